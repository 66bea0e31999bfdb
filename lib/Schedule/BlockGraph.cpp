//===- BlockGraph.cpp - The work of a block and what it waits for ---------===//

#include "BlockGraph.h"
#include "shardc/Cost/Saturating.h"
#include "shardc/Dialect/Shd/IR/WorkOrder.h"
#include "shardc/Schedule/Prices.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

BlockGraph::BlockGraph(Block &block, const CollectiveModel &model,
                       const BlockTimes &times)
    : numNetworks(model.numNetworks()), block(block), model(&model),
      times(&times) {
  addNodes();
  findReady();
  measureTails();
}

BlockGraph::BlockGraph(Block &block) : block(block) { addNodes(); }

unsigned BlockGraph::nodeOf(Operation &op) {
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
    if (times)
      node.time = saturatingMultiply(times->lookup(&repeat.getBody().front()),
                                     int64_t(repeat.getCount()));
  } else if (isCollective(&op)) {
    node.kind = Node::Collective;
    if (model) {
      CollectiveCost cost = collectivePrice(&op, *model);
      node.time = toPicoseconds(cost.seconds());
      node.networks.assign(cost.occupies.begin(), cost.occupies.end());
    }
  } else if (group || op.hasAttr(kGroupCost)) {
    node.kind = Node::Work;
    if (auto price = op.getAttrOfType<GroupCostAttr>(kGroupCost))
      node.time = toPicoseconds(groupPrice(price).seconds());
  }
  return number;
}

/// A collective that a kernel makes in its middle is late: it starts behind the
/// kernel, and readers of the kernel wait for it.
void BlockGraph::connect(unsigned before, unsigned behind) {
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

void BlockGraph::addNodes() {
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
  for (auto [number, node] : llvm::enumerate(nodes))
    for (unsigned earlier : node.before)
      nodes[earlier].behind.push_back(number);
}

/// Weights are gathered ahead, as memory allows: before the block runs. What
/// the iteration before makes is not, nor a part of a buffer that work updates.
void BlockGraph::findReady() {
  auto isCarried = [&](Value operand) {
    auto argument = dyn_cast<BlockArgument>(operand);
    return argument && argument.getOwner() == &block &&
           argument.getArgNumber() > 0;
  };
  auto isReady = [&](unsigned earlier) { return nodes[earlier].isReady; };
  for (Node &node : nodes)
    node.isReady = node.kind != Node::Work &&
                   llvm::all_of(node.before, isReady) &&
                   llvm::none_of(node.ops.front()->getOperands(), isCarried);
}

/// The collectives between a value that an iteration yields and its reader in
/// the next one.
Picoseconds BlockGraph::carriedWait(Value yielded) const {
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
Picoseconds BlockGraph::prefetchWait(const Node &node) const {
  Picoseconds longest = 0;
  for (unsigned earlier : node.before)
    if (nodes[earlier].kind == Node::Collective && nodes[earlier].isReady)
      longest = std::max(longest, nodes[earlier].time);
  return longest;
}

/// In a repeat nothing waits for a collective that only leaves it.
void BlockGraph::findOwnTail(Node &node) const {
  auto atLeast = [&](Picoseconds time) {
    node.ownTail = std::max(node.ownTail.value_or(0), time);
  };
  if (node.kind == Node::Work || isStep())
    atLeast(isStep() ? 0 : prefetchWait(node));
  if (!isStep())
    for (Operation *op : node.ops)
      for (Value result : op->getResults())
        if (llvm::is_contained(block.getTerminator()->getOperands(), result))
          atLeast(carriedWait(result));
  for (unsigned late : node.late)
    if (nodes[late].tail || isStep())
      atLeast(nodes[late].time);
}

void BlockGraph::measureTails() {
  std::vector<unsigned> pending(nodes.size());
  SmallVector<unsigned> done;
  for (auto [number, node] : llvm::enumerate(nodes)) {
    pending[number] = node.behind.size();
    if (pending[number] == 0)
      done.push_back(number);
  }
  while (!done.empty()) {
    Node &node = nodes[done.pop_back_val()];
    findOwnTail(node);
    if (node.ownTail)
      node.tail = std::max(node.tail.value_or(0), *node.ownTail);
    for (unsigned earlier : node.before) {
      if (node.tail)
        nodes[earlier].tail = std::max(nodes[earlier].tail.value_or(0),
                                       saturatingAdd(node.time, *node.tail));
      if (--pending[earlier] == 0)
        done.push_back(earlier);
    }
  }
}

Picoseconds BlockGraph::busy() const {
  Picoseconds sum = 0;
  for (const Node &node : nodes)
    if (node.kind == Node::Work)
      sum = saturatingAdd(sum, node.time);
  return sum;
}

Picoseconds BlockGraph::carry(const Node &node, Picoseconds release,
                              std::vector<Picoseconds> &networkFree) {
  Picoseconds end = release;
  for (unsigned network : node.networks)
    end = std::max(end, networkFree[network]);
  end = saturatingAdd(end, node.time);
  for (unsigned network : node.networks)
    networkFree[network] = end;
  return end;
}
