//===- ListOrder.cpp - The order of independent work ----------------------===//
//
// Jackson's rule on one machine with release times and tails: Jackson (1955),
// Carlier (1982). Release times come from a simulation of the collectives on
// their networks, in the order in which their operands are there.
//
//===----------------------------------------------------------------------===//

#include "shardc/Schedule/ListOrder.h"
#include "shardc/Cost/Saturating.h"
#include "shardc/Dialect/Shd/IR/WorkOrder.h"
#include "shardc/Schedule/Prices.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {

/// Orders one block.
class BlockOrder {
public:
  BlockOrder(Block &block, const CollectiveModel &model,
             const llvm::DenseMap<Block *, Picoseconds> &times,
             EarlyGathers gathers = EarlyGathers::Done)
      : block(block), model(model), times(times), gathers(gathers) {}

  /// The kernels and repeats, with all operations of each, as list scheduling
  /// orders them.
  std::vector<ArrayRef<Operation *>> run();
  /// The same in the order of their last operations, but each behind those that
  /// it depends on.
  std::vector<ArrayRef<Operation *>> runInText();
  /// Of its kernels and repeats together.
  Picoseconds busy() const;

private:
  /// A kernel or a repeat, which occupies the compute stream; a collective; or
  /// what costs nothing.
  struct Node {
    enum Kind { Work, Collective, Free } kind = Free;
    SmallVector<Operation *, 1> ops;
    Picoseconds time = 0;
    SmallVector<unsigned, 2> networks;
    SmallVector<unsigned, 4> before, behind;
    /// Collectives in the middle of it (statistics), for which those wait that
    /// read it.
    SmallVector<unsigned, 1> late;
    /// It moves what is there before the block runs: a weight.
    bool isReady = false;
    /// From its end to that of the block; none if nothing waits for it.
    std::optional<Picoseconds> tail;
    unsigned missing = 0;
    Picoseconds release = 0;
  };

  unsigned nodeOf(Operation &op);
  void addNodes();
  void connect(unsigned before, unsigned behind);
  bool isStep() const { return isa<ProgramOp>(block.getParentOp()); }
  void findReady();
  void measureTails();
  Picoseconds carriedWait(Value yielded) const;
  Picoseconds prefetchWait(const Node &node) const;
  void finish(unsigned node, Picoseconds end);
  void start(unsigned node);
  void startAll();
  unsigned next() const;

  Block &block;
  const CollectiveModel &model;
  const llvm::DenseMap<Block *, Picoseconds> &times;
  const EarlyGathers gathers;
  std::vector<Node> nodes;
  llvm::DenseMap<Operation *, unsigned> numberOf;
  llvm::DenseMap<Attribute, unsigned> kernels;
  /// By node: all that it depends on.
  std::vector<llvm::BitVector> behindAll;
  std::vector<Picoseconds> networkFree;
  llvm::SetVector<unsigned> available;
  Picoseconds now = 0;
};

} // namespace

unsigned BlockOrder::nodeOf(Operation &op) {
  Attribute group = op.getAttr(kGroup);
  if (group)
    if (auto known = kernels.find(group); known != kernels.end()) {
      Node &kernel = nodes[known->second];
      kernel.ops.push_back(&op);
      if (auto price = op.getAttrOfType<GroupCostAttr>(kGroupCost))
        kernel.time = toPicoseconds(groupPrice(price).seconds());
      return known->second;
    }
  Node &node = nodes.emplace_back();
  unsigned number = nodes.size() - 1;
  node.ops.push_back(&op);
  if (group)
    kernels[group] = number;
  if (auto repeat = dyn_cast<RepeatOp>(op)) {
    node.kind = Node::Work;
    node.time = saturatingMultiply(times.lookup(&repeat.getBody().front()),
                                   int64_t(repeat.getCount()));
  } else if (isCollective(&op)) {
    CollectiveCost cost = collectivePrice(&op, model);
    node.kind = Node::Collective;
    node.time = toPicoseconds(cost.seconds());
    node.networks.assign(cost.occupies.begin(), cost.occupies.end());
  } else if (group || op.hasAttr(kGroupCost)) {
    node.kind = Node::Work;
    if (auto price = op.getAttrOfType<GroupCostAttr>(kGroupCost))
      node.time = toPicoseconds(groupPrice(price).seconds());
  }
  return number;
}

/// A collective that a kernel makes in its middle is late: it starts behind the
/// kernel, and readers of the kernel wait for it.
void BlockOrder::connect(unsigned before, unsigned behind) {
  if (before == behind || llvm::is_contained(nodes[behind].before, before))
    return;
  if (behindAll[before].test(behind)) {
    if (!llvm::is_contained(nodes[behind].late, before))
      nodes[behind].late.push_back(before);
    return;
  }
  nodes[behind].before.push_back(before);
  behindAll[behind] |= behindAll[before];
  behindAll[behind].set(before);
  for (unsigned late : SmallVector<unsigned, 1>(nodes[before].late))
    connect(late, behind);
}

void BlockOrder::addNodes() {
  std::vector<SmallVector<unsigned, 4>> before = dependencesIn(block);
  behindAll.assign(before.size(), llvm::BitVector(before.size()));
  std::vector<unsigned> at;
  for (auto [op, earlier] : llvm::zip_equal(block, before)) {
    if (op.hasTrait<OpTrait::IsTerminator>())
      break;
    at.push_back(nodeOf(op));
    numberOf[&op] = at.back();
    for (unsigned position : earlier)
      connect(at[position], at.back());
  }
  for (auto [number, node] : llvm::enumerate(nodes)) {
    node.missing = node.before.size();
    for (unsigned earlier : node.before)
      nodes[earlier].behind.push_back(number);
  }
}

/// Weights are gathered ahead, as memory allows: before the block runs. What
/// the iteration before makes is not.
void BlockOrder::findReady() {
  if (isStep() && gathers == EarlyGathers::InStep)
    return;
  for (Node &node : nodes) {
    if (node.kind == Node::Work)
      continue;
    node.isReady =
        llvm::none_of(node.ops.front()->getOperands(), [&](Value operand) {
          auto argument = dyn_cast<BlockArgument>(operand);
          if (argument)
            return argument.getOwner() == &block && argument.getArgNumber() > 0;
          auto made = numberOf.find(operand.getDefiningOp());
          return made != numberOf.end() && !nodes[made->second].isReady;
        });
  }
}

/// The collectives between a value that an iteration yields and its reader in
/// the next one.
Picoseconds BlockOrder::carriedWait(Value yielded) const {
  Picoseconds longest = 0;
  for (OpOperand &use : yielded.getUses()) {
    if (use.getOwner() != block.getTerminator())
      continue;
    BlockArgument argument = block.getArgument(use.getOperandNumber() + 1);
    for (Operation *reader : argument.getUsers()) {
      Picoseconds wait = 0;
      for (Operation *at = reader; at && isCollective(at);
           at = at->hasOneUse() ? *at->user_begin() : nullptr)
        if (auto number = numberOf.find(at); number != numberOf.end())
          wait = saturatingAdd(wait, nodes[number->second].time);
      longest = std::max(longest, wait);
    }
  }
  return longest;
}

/// The longest collective that brings a node what is there before the
/// iteration: the next iteration's starts once the node has read it.
Picoseconds BlockOrder::prefetchWait(const Node &node) const {
  Picoseconds longest = 0;
  for (unsigned earlier : node.before)
    if (nodes[earlier].kind == Node::Collective && nodes[earlier].isReady)
      longest = std::max(longest, nodes[earlier].time);
  return longest;
}

/// In a repeat nothing waits for a collective that only leaves it.
void BlockOrder::measureTails() {
  std::vector<unsigned> pending(nodes.size());
  SmallVector<unsigned> done;
  for (auto [number, node] : llvm::enumerate(nodes)) {
    pending[number] = node.behind.size();
    if (pending[number] == 0)
      done.push_back(number);
  }
  while (!done.empty()) {
    Node &node = nodes[done.pop_back_val()];
    if (node.kind == Node::Work || isStep())
      node.tail = std::max<Picoseconds>(node.tail.value_or(0),
                                        isStep() ? 0 : prefetchWait(node));
    if (!isStep())
      for (Operation *op : node.ops)
        for (Value result : op->getResults())
          if (llvm::is_contained(block.getTerminator()->getOperands(), result))
            node.tail = std::max(node.tail.value_or(0), carriedWait(result));
    for (unsigned late : node.late)
      if (nodes[late].tail || isStep())
        node.tail = std::max(node.tail.value_or(0), nodes[late].time);
    for (unsigned earlier : node.before) {
      if (node.tail)
        nodes[earlier].tail = std::max(nodes[earlier].tail.value_or(0),
                                       saturatingAdd(node.time, *node.tail));
      if (--pending[earlier] == 0)
        done.push_back(earlier);
    }
  }
}

/// Hands the end of a node on to those behind it.
void BlockOrder::finish(unsigned number, Picoseconds end) {
  for (unsigned behind : nodes[number].behind) {
    nodes[behind].release = std::max(nodes[behind].release, end);
    if (--nodes[behind].missing == 0)
      start(behind);
  }
}

void BlockOrder::start(unsigned number) {
  Node &node = nodes[number];
  if (node.kind == Node::Work) {
    available.insert(number);
    return;
  }
  Picoseconds end = node.release;
  if (node.kind == Node::Collective && !node.isReady) {
    for (unsigned network : node.networks)
      end = std::max(end, networkFree[network]);
    end = saturatingAdd(end, node.time);
    for (unsigned network : node.networks)
      networkFree[network] = end;
  }
  finish(number, end);
}

/// The work of the longest tail among that which may run now, or what may run
/// first; of equal ones the first in the text.
unsigned BlockOrder::next() const {
  auto key = [&](unsigned number) {
    const Node &node = nodes[number];
    return std::tuple(std::max(node.release, now), -node.tail.value_or(0),
                      number);
  };
  return *llvm::min_element(
      available, [&](unsigned a, unsigned b) { return key(a) < key(b); });
}

/// Begins with what depends on nothing.
void BlockOrder::startAll() {
  networkFree.assign(model.numNetworks(), 0);
  for (unsigned number = 0; number < nodes.size(); ++number)
    if (nodes[number].before.empty())
      start(number);
}

std::vector<ArrayRef<Operation *>> BlockOrder::runInText() {
  addNodes();
  startAll();
  auto isEarlier = [&](unsigned a, unsigned b) {
    return nodes[a].ops.back()->isBeforeInBlock(nodes[b].ops.back());
  };
  std::vector<ArrayRef<Operation *>> order;
  while (!available.empty()) {
    unsigned number = *llvm::min_element(available, isEarlier);
    available.remove(number);
    order.push_back(nodes[number].ops);
    finish(number, 0);
  }
  return order;
}

std::vector<ArrayRef<Operation *>> BlockOrder::run() {
  addNodes();
  findReady();
  measureTails();
  startAll();
  std::vector<ArrayRef<Operation *>> order;
  while (!available.empty()) {
    unsigned number = next();
    available.remove(number);
    Node &node = nodes[number];
    order.push_back(node.ops);
    now = saturatingAdd(std::max(now, node.release), node.time);
    finish(number, now);
  }
  assert(llvm::count_if(
             nodes, [](const Node &node) { return node.kind == Node::Work; }) ==
             std::ptrdiff_t(order.size()) &&
         "work waits for itself");
  return order;
}

Picoseconds BlockOrder::busy() const {
  Picoseconds sum = 0;
  for (const Node &node : nodes)
    if (node.kind == Node::Work)
      sum = saturatingAdd(sum, node.time);
  return sum;
}

/// `order` names the work of a block in its order.
static void addRanks(ArrayRef<ArrayRef<Operation *>> order, ListOrder &ranks) {
  for (auto [rank, ops] : llvm::enumerate(order))
    for (Operation *op : ops)
      ranks[op] = rank;
}

/// Inner repeats first.
static void forEachBlock(ProgramOp program,
                         llvm::function_ref<void(Block &)> visit) {
  program.walk([&](RepeatOp repeat) { visit(repeat.getBody().front()); });
  visit(program.getBody().front());
}

ListOrder shardc::listOrder(ProgramOp program, const CollectiveModel &model,
                            EarlyGathers gathers) {
  ListOrder result;
  llvm::DenseMap<Block *, Picoseconds> times;
  forEachBlock(program, [&](Block &block) {
    BlockOrder order(block, model, times, gathers);
    addRanks(order.run(), result);
    times[&block] = order.busy();
  });
  return result;
}

std::optional<ListOrder> shardc::kernelOrder(ProgramOp program,
                                             const CollectiveModel &model) {
  ListOrder result;
  const llvm::DenseMap<Block *, Picoseconds> noTimes;
  bool isText = true;
  forEachBlock(program, [&](Block &block) {
    BlockOrder blockOrder(block, model, noTimes);
    std::vector<ArrayRef<Operation *>> order = blockOrder.runInText();
    isText &= llvm::is_sorted(order, [](auto a, auto b) {
      return a.back()->isBeforeInBlock(b.back());
    });
    addRanks(order, result);
  });
  return isText ? std::nullopt : std::optional(std::move(result));
}
