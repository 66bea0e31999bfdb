//===- ListOrder.cpp - The order of independent work ----------------------===//
//
// Jackson's rule on one machine with release times and tails: Jackson (1955),
// Carlier (1982). Release times come from a simulation of the collectives on
// their networks, in the order in which their operands are there. A local
// search goes on from the faster of two lists.
//
//===----------------------------------------------------------------------===//

#include "shardc/Schedule/ListOrder.h"
#include "BlockGraph.h"
#include "OrderSearch.h"
#include "shardc/Cost/Saturating.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {

using Node = BlockGraph::Node;

/// When the gathers of weights that the step itself reads have ended: before
/// it begins, or when its networks have carried them.
enum class EarlyGathers { Done, InStep };

/// Lists the work of one block.
class ListScheduler {
public:
  ListScheduler(const BlockGraph &graph, EarlyGathers gathers)
      : graph(graph), gathers(gathers), networkFree(graph.numNetworks, 0),
        release(graph.nodes.size(), 0) {
    for (const Node &node : graph.nodes)
      missing.push_back(node.before.size());
  }

  /// The kernels and repeats, as list scheduling orders them.
  std::vector<unsigned> run();
  /// The same in the order of their last operations, but each behind those that
  /// it depends on.
  std::vector<unsigned> runInText();

private:
  /// Weights are gathered ahead, as memory allows: before the block runs.
  bool isThere(const Node &node) const {
    return node.isReady && !(graph.isStep() && gathers == EarlyGathers::InStep);
  }
  void finish(unsigned node, Picoseconds end);
  void start(unsigned node);
  void startAll();
  unsigned next() const;

  const BlockGraph &graph;
  const EarlyGathers gathers;
  std::vector<Picoseconds> networkFree, release;
  std::vector<unsigned> missing;
  llvm::SetVector<unsigned> available;
  Picoseconds now = 0;
};

} // namespace

/// Hands the end of a node on to those behind it.
void ListScheduler::finish(unsigned number, Picoseconds end) {
  for (unsigned behind : graph.nodes[number].behind) {
    release[behind] = std::max(release[behind], end);
    if (--missing[behind] == 0)
      start(behind);
  }
}

void ListScheduler::start(unsigned number) {
  const Node &node = graph.nodes[number];
  if (node.kind == Node::Work) {
    available.insert(number);
    return;
  }
  Picoseconds end = release[number];
  if (node.kind == Node::Collective && !isThere(node))
    end = BlockGraph::carry(node, end, networkFree);
  finish(number, end);
}

/// The work of the longest tail among that which may run now, or what may run
/// first; of equal ones the first in the text.
unsigned ListScheduler::next() const {
  auto key = [&](unsigned number) {
    return std::tuple(std::max(release[number], now),
                      -graph.nodes[number].tail.value_or(0), number);
  };
  return *llvm::min_element(
      available, [&](unsigned a, unsigned b) { return key(a) < key(b); });
}

/// Begins with what depends on nothing.
void ListScheduler::startAll() {
  for (auto [number, node] : llvm::enumerate(graph.nodes))
    if (node.before.empty())
      start(number);
}

std::vector<unsigned> ListScheduler::runInText() {
  startAll();
  auto isEarlier = [&](unsigned a, unsigned b) {
    return graph.nodes[a].ops.back()->isBeforeInBlock(
        graph.nodes[b].ops.back());
  };
  std::vector<unsigned> order;
  while (!available.empty()) {
    unsigned number = *llvm::min_element(available, isEarlier);
    available.remove(number);
    order.push_back(number);
    finish(number, 0);
  }
  return order;
}

std::vector<unsigned> ListScheduler::run() {
  startAll();
  std::vector<unsigned> order;
  while (!available.empty()) {
    unsigned number = next();
    available.remove(number);
    order.push_back(number);
    now =
        saturatingAdd(std::max(now, release[number]), graph.nodes[number].time);
    finish(number, now);
  }
  assert(llvm::count_if(graph.nodes,
                        [](const Node &node) {
                          return node.kind == Node::Work;
                        }) == std::ptrdiff_t(order.size()) &&
         "work waits for itself");
  return order;
}

/// `order` names the work of a block in its order.
static void addRanks(const BlockGraph &graph, ArrayRef<unsigned> order,
                     ListOrder &ranks) {
  for (auto [rank, number] : llvm::enumerate(order))
    for (Operation *op : graph.nodes[number].ops)
      ranks[op] = rank;
}

/// Inner repeats first.
static void forEachBlock(ProgramOp program,
                         llvm::function_ref<void(Block &)> visit) {
  program.walk([&](RepeatOp repeat) { visit(repeat.getBody().front()); });
  visit(program.getBody().front());
}

/// The order of a block by one rule, or what a local search makes of the faster
/// list.
static std::vector<unsigned> orderOf(const BlockGraph &graph, ListRule rule) {
  auto list = [&](EarlyGathers gathers) {
    return ListScheduler(graph, gathers).run();
  };
  if (rule != ListRule::Searched)
    return list(rule == ListRule::GathersDone ? EarlyGathers::Done
                                              : EarlyGathers::InStep);
  OrderSearch search(graph);
  std::vector<unsigned> order = list(EarlyGathers::Done);
  if (graph.isStep())
    if (std::vector<unsigned> other = list(EarlyGathers::InStep);
        search.lengthOf(other) < search.lengthOf(order))
      order = std::move(other);
  return search.improve(std::move(order));
}

ListOrder shardc::listOrder(ProgramOp program, const CollectiveModel &model,
                            ListRule rule) {
  ListOrder result;
  BlockTimes times;
  forEachBlock(program, [&](Block &block) {
    BlockGraph graph(block, model, times);
    addRanks(graph, orderOf(graph, rule), result);
    times[&block] = graph.busy();
  });
  return result;
}

std::optional<ListOrder> shardc::kernelOrder(ProgramOp program) {
  ListOrder result;
  bool isText = true;
  forEachBlock(program, [&](Block &block) {
    BlockGraph graph(block);
    std::vector<unsigned> order =
        ListScheduler(graph, EarlyGathers::Done).runInText();
    isText &= llvm::is_sorted(order, [&](unsigned a, unsigned b) {
      return graph.nodes[a].ops.back()->isBeforeInBlock(
          graph.nodes[b].ops.back());
    });
    addRanks(graph, order, result);
  });
  return isText ? std::nullopt : std::optional(std::move(result));
}
