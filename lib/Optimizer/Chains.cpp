//===- Chains.cpp - Work that waits for each other ------------------------===//
//
// The compute stream runs the items of a body, its groups and repeats, in
// program order, so that the sum of their times is a chain. Where an item reads
// what an earlier one makes, through collectives, a chain may go that path
// instead: it leaves out what lies between and counts the collectives. Such
// steps are only taken where the second item waits for the first in every plan:
//
// - what is read must be made by the last part of its group and read by the
//   first part of the other, as the parts are groups of their own if a
//   collective stands between;
// - statistics are reduced behind a group that makes what they are taken of
//   and before one that only reads it;
// - a carried value leads on to the next iteration only from the body's last
//   item, so that iterations that are not simulated take as long as those that
//   are.
//
// Between two items a chain may also wait for a physical network: for all that
// it carries of what is made by the first item or later and read by the second
// or earlier. What is moved within a repeat for its own groups has been moved
// when the repeat ends: then the wait takes the place of the repeat. At its end
// the step waits for everything.
//
// A part of a buffer is made by the item that updates it before: in a repeat,
// the last iteration.
//
//===----------------------------------------------------------------------===//

#include "shardc/Optimizer/Chains.h"
#include "shardc/Cost/Saturating.h"
#include "shardc/Dialect/Shd/IR/CollectiveMatmul.h"
#include "shardc/Dialect/Shd/IR/Segments.h"
#include "shardc/Optimizer/Names.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;
using solver::Cost;
using solver::Label;

/// Loads are looked for between items that are so far apart at most, since that
/// takes as long for each item.
static constexpr int kMaxSpan = 200;

namespace {

class ChainFinder {
public:
  ChainFinder(const Graph &graph, const ChainTimes &times, bool matmulsOverlap);

  std::vector<Chain> find();

private:
  using Links = SmallVector<ChainLink, 6>;
  /// A group, or a repeat: `body`; or the end of the step, which takes no time.
  struct Item {
    uint32_t point = 0;
    int group = -1;
    Block *body = nullptr;
  };
  /// A path from an item of a body to the one that waits for it.
  struct Route {
    /// None: from the beginning of the step.
    std::optional<unsigned> from;
    /// From the iteration before.
    bool isCarried = false;
    Links links;
  };
  /// When something runs: after an item, or the beginning of the body (-1), and
  /// before another begins or ends.
  struct Window {
    int first = -1;
    unsigned last = 0;
    bool endsWithLast = false;

    std::pair<unsigned, bool> end() const { return {last, endsWithLast}; }
    bool holds(const Window &other) const {
      return first <= other.first && other.end() <= end();
    }
  };
  /// Where a collective stands: the repeat of a body in which it is, if any.
  struct Site {
    Block *block = nullptr;
    Operation *op = nullptr;
    std::optional<unsigned> repeat;
  };
  /// Time for which an edge occupies a physical network in one iteration.
  struct Load {
    ChainLoad load;
    Window window;
    Cost time = 0;
  };
  /// All that one carries in a window.
  struct Wait {
    unsigned network = 0;
    Window window;
  };
  /// The longest path through items [first, last] of a body, once.
  struct Path {
    Cost time = 0;
    /// Items, the routes taken, and the waits for networks.
    SmallVector<unsigned, 8> items;
    SmallVector<const Route *, 4> routes;
    SmallVector<Wait, 2> waits;
  };
  struct Body {
    /// Iterations each time it runs, and runs of an iteration in a step.
    int64_t count = 1, runs = 1;
    std::vector<Item> items;
    /// By item.
    std::vector<std::vector<Route>> routes;
    /// By the first item of the window, and one more.
    std::vector<std::vector<Load>> loads;
    /// Time of all its iterations each time it runs.
    Cost time = 0;
    Path path;
    /// From the last item to the first on the path of the next iteration.
    const Route *back = nullptr;
  };

  void addItems();
  void addRoutes(Block *block);
  void addLoads(Block *block);
  using Windows = std::map<ChainLink, Window>;
  static void addWindow(Windows &windows, const ChainLink &link, Window window);
  void addWindowOfCopies(Windows &windows) const;
  Windows windowsOf(Block *block) const;
  std::optional<Window> windowOf(const ChainLink &link, Block *block) const;
  std::optional<Window> windowOfFlow(const ChainLink &link, Block *block) const;
  std::optional<Window> windowUntil(const ChainLink &link, const Site &site,
                                    std::optional<unsigned> last) const;
  std::optional<Site> siteIn(Block *block, Operation *op) const;
  std::optional<unsigned> itemAround(Block *block, Operation *op) const;
  std::optional<unsigned> itemOfReader(Block *block, Value read,
                                       unsigned chunk) const;
  bool isInOrder(Value read, Operation *reader) const;
  std::optional<int> madeBy(Value value, const Site &site) const;
  std::optional<int> madeBy(Operation *op, const Site &site) const;
  bool isStep(Block *block) const { return block == bodies.front().first; }
  bool isConnected(int group) const;
  Operation *statisticsTaker(unsigned chunk) const;
  bool isFedWithin(Operation *taker) const;
  /// The first or the last part of a group.
  unsigned entryOf(int group) const;
  unsigned exitOf(int group) const;
  void follow(unsigned chunk, const Links &links, Block *block, bool isCarried,
              std::vector<Route> &routes) const;
  void followValue(unsigned value, Links links, Block *block, bool isCarried,
                   std::vector<Route> &routes) const;
  void followCarried(unsigned value, const Links &links, Block *block,
                     std::vector<Route> &routes) const;
  void followPart(unsigned value, Links links, Block *block, bool isCarried,
                  std::vector<Route> &routes) const;
  void addRoute(const GraphValue &value, Links links, Block *block,
                std::vector<Route> &routes) const;
  std::optional<unsigned> itemOf(const GraphValue &value, Block *block) const;

  Cost timeOf(const Links &links) const;
  Cost timeOf(const Item &item) const;
  /// The best time at an item, and how it comes about: from the item before, or
  /// over a route or a wait.
  struct Best {
    Cost time = 0;
    const Route *route = nullptr;
    std::optional<Wait> wait;

    /// A wait until the item has ended takes the item's place.
    bool isInstead() const { return wait && wait->window.endsWithLast; }
    /// The item before on the path; -1: the beginning of the step.
    int before(unsigned at) const {
      if (route)
        return route->from ? int(*route->from) : -1;
      return wait ? wait->window.first : int(at) - 1;
    }
  };
  void waitForNetworks(const Body &body, unsigned first, unsigned at,
                       bool isEnd, std::vector<Best> &best) const;
  Path longestPath(const Body &body, unsigned first, unsigned last) const;
  void measure(Block *block);
  /// With waits for this network, if one is given, whatever was waited for.
  Chain collect(std::optional<unsigned> network) const;
  void collect(Block *block, std::optional<unsigned> network,
               Chain &chain) const;
  void collect(const Links &links, int64_t runs, Chain &chain) const {
    for (const ChainLink &link : links)
      chain.links[link] += runs;
  }

  const Graph &graph;
  const ChainTimes &times;
  bool matmulsOverlap;
  /// Values that each chunk reads.
  std::vector<SmallVector<unsigned, 4>> readsOf;
  /// Chunks that read parts of a buffer after its update, by the update.
  llvm::DenseMap<Operation *, SmallVector<unsigned, 2>> readersOfUpdate;
  /// In program order, a repeat's body after the body around it.
  llvm::MapVector<Block *, Body> bodies;
};

} // namespace

/// The update whose value a part of a buffer is, or null.
static UpdateOp updateOfPart(const GraphValue &value) {
  auto part = Value(value.value).getDefiningOp<PartOp>();
  return part ? updateBefore(part) : UpdateOp();
}

ChainFinder::ChainFinder(const Graph &graph, const ChainTimes &times,
                         bool matmulsOverlap)
    : graph(graph), times(times), matmulsOverlap(matmulsOverlap),
      readsOf(graph.chunks.size()) {
  for (auto [index, value] : llvm::enumerate(graph.values))
    for (const ChunkUse &use : value.uses)
      if (!llvm::is_contained(readsOf[use.chunk], index))
        readsOf[use.chunk].push_back(index);
  for (const GraphValue &value : graph.values)
    if (UpdateOp update = updateOfPart(value))
      for (const ChunkUse &use : value.uses)
        readersOfUpdate[update].push_back(use.chunk);
  addItems();
  for (auto &[block, body] : bodies) {
    addRoutes(block);
    addLoads(block);
  }
}

//===----------------------------------------------------------------------===//
// Items and the paths between them
//===----------------------------------------------------------------------===//

unsigned ChainFinder::entryOf(int group) const {
  auto [leader, rest] = graph.groups[group];
  return leader >= 0 ? leader : rest;
}

unsigned ChainFinder::exitOf(int group) const {
  auto [leader, rest] = graph.groups[group];
  return rest >= 0 ? rest : leader;
}

void ChainFinder::addItems() {
  SmallVector<std::pair<uint32_t, RepeatOp>> repeats;
  for (auto [repeat, points] : graph.repeatPoints)
    repeats.push_back({points.first, cast<RepeatOp>(repeat)});
  llvm::sort(repeats, llvm::less_first());
  if (graph.chunks.empty())
    return;
  Operation *any = graph.chunks.front().ops.front();
  bodies[&any->getParentOfType<ProgramOp>().getBody().front()];
  for (auto [point, repeat] : repeats) {
    Block *inner = &repeat.getBody().front();
    bodies[repeat->getBlock()].items.push_back({point, -1, inner});
    bodies[inner].count = repeat.getCount();
    // The shortest segment bounds each.
    if (std::optional<Segments> segments = segmentsOf(repeat))
      bodies[inner].count = segments->iterations(segments->number() - 1);
  }
  for (auto [group, parts] : llvm::enumerate(graph.groups)) {
    if (parts.first < 0 && parts.second < 0)
      continue;
    const Chunk &chunk = graph.chunks[entryOf(group)];
    if (!chunk.prologue)
      bodies[chunk.ops.front()->getBlock()].items.push_back(
          {chunk.point, int(group), nullptr});
  }
  bodies.front().second.items.push_back({UINT32_MAX, -1, nullptr});
  for (auto &[block, body] : bodies) {
    body.runs =
        saturatingMultiply(executionCount(block->getParentOp()), body.count);
    llvm::sort(body.items,
               [](const Item &a, const Item &b) { return a.point < b.point; });
  }
}

/// True if nothing else may run between the parts of the group, and collectives
/// around it are not hidden by it.
bool ChainFinder::isConnected(int group) const {
  auto [leader, rest] = graph.groups[group];
  if (leader < 0)
    return true;
  Operation *first = graph.chunks[leader].ops.front();
  if (matmulsOverlap && mayBecomeRing(first))
    return false;
  if (rest < 0)
    return true;
  Operation *last = graph.chunks[rest].ops.back();
  for (Operation *op = first; op && op != last; op = op->getNextNode()) {
    auto chunk = graph.chunkOf.find(op);
    bool isOther = chunk != graph.chunkOf.end() &&
                   graph.chunks[chunk->second].kind != Chunk::Kind::Free &&
                   graph.chunks[chunk->second].group != group;
    if (isa<RepeatOp>(op) || isOther)
      return false;
  }
  return true;
}

void ChainFinder::addRoutes(Block *block) {
  Body &body = bodies[block];
  body.routes.resize(body.items.size());
  if (isStep(block))
    for (auto [index, chunk] : llvm::enumerate(graph.chunks))
      if (chunk.kind == Chunk::Kind::Output)
        follow(index, {}, block, /*isCarried=*/false, body.routes.back());
  for (auto [item, routes] : llvm::zip_equal(body.items, body.routes)) {
    if (item.group < 0 || !isConnected(item.group))
      continue;
    follow(entryOf(item.group), {}, block, /*isCarried=*/false, routes);
    // Routes to later items only.
    unsigned here = &item - body.items.data();
    llvm::erase_if(routes, [&](const Route &route) {
      return !route.isCarried && route.from && *route.from >= here;
    });
  }
}

/// The only operation of a chunk that may take statistics; null if there is
/// none or more than one.
Operation *ChainFinder::statisticsTaker(unsigned chunk) const {
  Operation *found = nullptr;
  for (Operation *op : graph.chunks[chunk].ops)
    if (isa<StatisticsOpInterface>(op)) {
      if (found)
        return nullptr;
      found = op;
    }
  return found;
}

/// True if its own group makes what statistics are taken of: they are reduced
/// behind the group, else before it.
bool ChainFinder::isFedWithin(Operation *taker) const {
  int64_t group = graph.chunks[graph.chunkOf.lookup(taker)].group;
  return llvm::any_of(taker->getOperands(), [&](Value operand) {
    auto maker = graph.chunkOf.find(operand.getDefiningOp());
    return maker != graph.chunkOf.end() &&
           graph.chunks[maker->second].group == group;
  });
}

/// Ways to what a chunk reads.
void ChainFinder::follow(unsigned chunk, const Links &links, Block *block,
                         bool isCarried, std::vector<Route> &routes) const {
  Operation *taker = statisticsTaker(chunk);
  if (taker && isFedWithin(taker))
    taker = nullptr;
  for (unsigned value : readsOf[chunk]) {
    Links further = links;
    if (taker &&
        llvm::is_contained(taker->getOperands(), graph.values[value].value))
      further.push_back({ChainLink::Kind::Statistics, chunk, 0});
    further.push_back({ChainLink::Kind::Read, value, chunk});
    followValue(value, std::move(further), block, isCarried, routes);
  }
}

void ChainFinder::followValue(unsigned index, Links links, Block *block,
                              bool isCarried,
                              std::vector<Route> &routes) const {
  const GraphValue &value = graph.values[index];
  switch (value.kind) {
  case GraphValue::Kind::Carried:
    if (!isCarried)
      followCarried(index, links, block, routes);
    return;
  case GraphValue::Kind::Result:
    return addRoute(value, std::move(links), block, routes);
  case GraphValue::Kind::Part:
    return followPart(index, std::move(links), block, isCarried, routes);
  case GraphValue::Kind::Declared:
    // A collective at the beginning of a repeat may be issued before it.
    if (isStep(block))
      routes.push_back({std::nullopt, /*isCarried=*/false, std::move(links)});
    return;
  case GraphValue::Kind::Computed:
    break;
  }
  const Chunk &maker = graph.chunks[value.chunk];
  if (maker.ops.front()->getBlock() != block)
    return;
  links.push_back({ChainLink::Kind::Store, index, 0});
  if (maker.kind != Chunk::Kind::Free && !maker.prologue)
    return addRoute(value, std::move(links), block, routes);
  if (maker.prologue)
    links.push_back({ChainLink::Kind::Group, unsigned(maker.group), 0});
  follow(value.chunk, links, block, isCarried, routes);
}

/// Ways to the value with which a buffer was updated.
void ChainFinder::followPart(unsigned index, Links links, Block *block,
                             bool isCarried, std::vector<Route> &routes) const {
  UpdateOp update = updateOfPart(graph.values[index]);
  if (update && update->getBlock() == block) {
    unsigned value = graph.valueIndex.lookup(rootValue(update.getValue()));
    unsigned buffer = graph.valueIndex.lookup(update.getState());
    links.push_back({ChainLink::Kind::Flow, value, buffer});
    return followValue(value, std::move(links), block, isCarried, routes);
  }
  std::optional<unsigned> from;
  if (update)
    from = itemAround(block, update);
  if (from || isStep(block))
    routes.push_back({from, /*isCarried=*/false, std::move(links)});
}

/// Ways to what the iteration before makes of a carried value.
void ChainFinder::followCarried(unsigned index, const Links &links,
                                Block *block,
                                std::vector<Route> &routes) const {
  size_t numItems = bodies.find(block)->second.items.size();
  for (auto [number, source] : llvm::enumerate(graph.values))
    for (const GraphValue::Flow &flow : source.flows) {
      if (flow.target != index || flow.operand->getOwner()->getBlock() != block)
        continue;
      Links further = links;
      further.push_back({ChainLink::Kind::Flow, unsigned(number), index});
      std::vector<Route> found;
      followValue(number, std::move(further), block, /*isCarried=*/true, found);
      // Only the last item ends an iteration.
      for (Route &route : found)
        if (route.from && *route.from + 1 == numItems)
          routes.push_back({route.from, /*isCarried=*/true, route.links});
    }
}

/// The item of the body that makes the value and ends with it.
std::optional<unsigned> ChainFinder::itemOf(const GraphValue &value,
                                            Block *block) const {
  auto it = bodies.find(block);
  if (it == bodies.end())
    return std::nullopt;
  for (auto [number, item] : llvm::enumerate(it->second.items)) {
    if (value.kind == GraphValue::Kind::Result) {
      if (item.body && item.body->getParentOp() == value.value.getDefiningOp())
        return number;
    } else if (item.group >= 0 &&
               item.group == graph.chunks[value.chunk].group &&
               exitOf(item.group) == value.chunk && isConnected(item.group)) {
      return number;
    }
  }
  return std::nullopt;
}

void ChainFinder::addRoute(const GraphValue &value, Links links, Block *block,
                           std::vector<Route> &routes) const {
  std::optional<unsigned> from = itemOf(value, block);
  if (!from)
    return;
  if (value.kind == GraphValue::Kind::Computed) {
    auto [leader, rest] = graph.groups[graph.chunks[value.chunk].group];
    for (int chunk : {leader, rest})
      if (chunk >= 0)
        if (Operation *taker = statisticsTaker(chunk);
            taker && isFedWithin(taker))
          links.push_back({ChainLink::Kind::Statistics, unsigned(chunk), 0});
  }
  routes.push_back({*from, /*isCarried=*/false, std::move(links)});
}

//===----------------------------------------------------------------------===//
// What networks carry between items
//===----------------------------------------------------------------------===//

/// The repeat of a body that an operation is in.
std::optional<unsigned> ChainFinder::itemAround(Block *block,
                                                Operation *op) const {
  Operation *around = block->findAncestorOpInBlock(*op);
  if (!around || around == op)
    return std::nullopt;
  for (auto [number, item] : llvm::enumerate(bodies.find(block)->second.items))
    if (item.body && item.body->getParentOp() == around)
      return number;
  return std::nullopt;
}

/// Nothing if the operation is not in the body.
std::optional<ChainFinder::Site> ChainFinder::siteIn(Block *block,
                                                     Operation *op) const {
  if (!block->findAncestorOpInBlock(*op))
    return std::nullopt;
  return Site{block, op, itemAround(block, op)};
}

/// True unless a reader may run before the group does that makes the value: if
/// the group ends behind it.
bool ChainFinder::isInOrder(Value read, Operation *reader) const {
  Value root = rootValue(read);
  auto found = graph.valueIndex.find(root);
  if (found == graph.valueIndex.end())
    return true;
  const GraphValue &value = graph.values[found->second];
  if (UpdateOp update = updateOfPart(value))
    return isInOrder(update.getValue(), reader);
  if (value.kind != GraphValue::Kind::Computed)
    return true;
  const Chunk &maker = graph.chunks[value.chunk];
  if (maker.kind == Chunk::Kind::Free)
    return llvm::all_of(maker.ops, [&](Operation *op) {
      return llvm::all_of(op->getOperands(), [&](Value operand) {
        return isInOrder(operand, reader);
      });
    });
  return standsBefore(graph.chunks[exitOf(maker.group)].ops.back(), reader);
}

/// The item of the body at whose end has been moved what a chunk reads of a
/// value.
std::optional<unsigned> ChainFinder::itemOfReader(Block *block, Value read,
                                                  unsigned index) const {
  const Chunk &chunk = graph.chunks[index];
  if (chunk.kind == Chunk::Kind::Free || chunk.kind == Chunk::Kind::Output ||
      !isInOrder(read, chunk.ops.back()))
    return std::nullopt;
  Operation *op = chunk.ops.front();
  if (op->getBlock() != block)
    return itemAround(block, op);
  for (auto [number, item] : llvm::enumerate(bodies.find(block)->second.items))
    if (item.group >= 0 && item.group == chunk.group)
      return number;
  return std::nullopt;
}

/// The item that has ended when a collective at `site` moves what the operation
/// makes; nothing if it may be before the body begins. In its own repeat it is
/// the item before that.
std::optional<int> ChainFinder::madeBy(Operation *op, const Site &site) const {
  std::optional<unsigned> repeat = itemAround(site.block, op);
  if (!repeat)
    return std::nullopt;
  return repeat == site.repeat ? int(*repeat) - 1 : int(*repeat);
}

/// The same of a value, which the collective moves.
std::optional<int> ChainFinder::madeBy(Value moved, const Site &site) const {
  Value root = rootValue(moved);
  auto found = graph.valueIndex.find(root);
  if (found == graph.valueIndex.end())
    return std::nullopt;
  const GraphValue &value = graph.values[found->second];
  switch (value.kind) {
  case GraphValue::Kind::Declared:
    return std::nullopt;
  case GraphValue::Kind::Part: {
    UpdateOp update = updateOfPart(value);
    if (!update)
      return std::nullopt;
    return std::max(madeBy(update.getValue(), site), madeBy(update, site));
  }
  case GraphValue::Kind::Carried: {
    // For the first iteration it is moved when the repeat begins.
    Operation *repeat = root.getParentBlock()->getParentOp();
    bool isWithin = site.repeat && repeat->isAncestor(site.op) &&
                    site.block->findAncestorOpInBlock(*repeat);
    return isWithin ? std::optional<int>(int(*site.repeat) - 1) : std::nullopt;
  }
  case GraphValue::Kind::Result:
    if (std::optional<unsigned> item = itemOf(value, site.block))
      return *item;
    return madeBy(root.getDefiningOp(), site);
  case GraphValue::Kind::Computed:
    break;
  }
  const Chunk &maker = graph.chunks[value.chunk];
  std::optional<int> made;
  if (maker.kind == Chunk::Kind::Free) {
    for (Operation *op : maker.ops)
      for (Value operand : op->getOperands())
        made = std::max(made, madeBy(operand, site));
    return made;
  }
  if (maker.ops.front()->getBlock() != site.block)
    return madeBy(maker.ops.front(), site);
  if (std::optional<unsigned> item = itemOf(value, site.block))
    return *item;
  return std::nullopt;
}

/// From when a value is made that is moved at a site to the end of an item, or
/// of the step.
std::optional<ChainFinder::Window>
ChainFinder::windowUntil(const ChainLink &link, const Site &site,
                         std::optional<unsigned> last) const {
  std::optional<int> first = madeBy(graph.values[link.first].value, site);
  // What is there before an iteration may be moved in the one before.
  if (!isStep(site.block) && (!first || !last))
    return std::nullopt;
  unsigned end = bodies.find(site.block)->second.items.size() - 1;
  return Window{first.value_or(-1), last.value_or(end), /*endsWithLast=*/true};
}

/// A value that updates a buffer has been moved when the first of those ends
/// that read the buffer.
std::optional<ChainFinder::Window>
ChainFinder::windowOfFlow(const ChainLink &link, Block *block) const {
  std::optional<Window> all;
  Value moved = graph.values[link.first].value;
  for (const GraphValue::Flow &flow : graph.values[link.first].flows) {
    if (flow.target != link.second)
      continue;
    Operation *at = flow.operand->getOwner();
    std::optional<Site> site = siteIn(block, at);
    if (!site)
      return std::nullopt;
    std::optional<unsigned> last;
    if (auto readers = readersOfUpdate.find(at);
        readers != readersOfUpdate.end())
      for (unsigned chunk : readers->second)
        if (std::optional<unsigned> item = itemOfReader(block, moved, chunk))
          last = std::min(last.value_or(*item), *item);
    std::optional<Window> window = windowUntil(link, *site, last);
    if (!window)
      return std::nullopt;
    if (!all)
      all = window;
    all->first = std::min(all->first, window->first);
    all->last = std::max(all->last, window->last);
  }
  return all;
}

/// When the collectives of a link run, wherever in the body they stand.
std::optional<ChainFinder::Window> ChainFinder::windowOf(const ChainLink &link,
                                                         Block *block) const {
  const GraphValue &value = graph.values[link.first];
  switch (link.kind) {
  case ChainLink::Kind::Read:
    if (std::optional<Site> site =
            siteIn(block, graph.chunks[link.second].ops.front()))
      return windowUntil(link, *site,
                         itemOfReader(block, value.value, link.second));
    return std::nullopt;
  case ChainLink::Kind::Flow:
    return windowOfFlow(link, block);
  case ChainLink::Kind::Store: {
    std::optional<Site> site = siteIn(block, value.value.getDefiningOp());
    if (!site)
      return std::nullopt;
    std::optional<unsigned> last;
    for (const ChunkUse &use : value.uses)
      if (graph.chunks[use.chunk].group != graph.chunks[value.chunk].group)
        if (std::optional<unsigned> item =
                itemOfReader(block, value.value, use.chunk))
          last = std::min(last.value_or(*item), *item);
    return windowUntil(link, *site, last);
  }
  case ChainLink::Kind::Copy:
  case ChainLink::Kind::Group:
  case ChainLink::Kind::Statistics:
    return std::nullopt;
  }
  llvm_unreachable("unknown kind of link");
}

/// All that is known of a link holds.
void ChainFinder::addWindow(Windows &windows, const ChainLink &link,
                            Window window) {
  auto [it, isNew] = windows.try_emplace(link, window);
  if (isNew)
    return;
  Window &known = it->second;
  known.first = std::max(known.first, window.first);
  std::tie(known.last, known.endsWithLast) =
      std::min(known.end(), window.end());
}

/// A copy is there before the last of its readers, whichever these are; the
/// best plans make none that nobody reads.
void ChainFinder::addWindowOfCopies(Windows &windows) const {
  for (auto [index, value] : llvm::enumerate(graph.values)) {
    std::optional<Window> all;
    bool isKnown = value.flows.empty();
    for (const ChunkUse &use : value.uses) {
      auto it =
          windows.find({ChainLink::Kind::Read, unsigned(index), use.chunk});
      isKnown &= it != windows.end();
      if (!isKnown)
        break;
      const Window &window = it->second;
      if (!all)
        all = window;
      all->first = std::min(all->first, window.first);
      std::tie(all->last, all->endsWithLast) =
          std::max(all->end(), window.end());
    }
    if (isKnown && all)
      addWindow(windows, {ChainLink::Kind::Copy, unsigned(index), 0}, *all);
  }
}

/// The narrowest known window of each link.
ChainFinder::Windows ChainFinder::windowsOf(Block *block) const {
  Windows windows;
  for (const auto &[link, edges] : times.edges)
    if (std::optional<Window> window = windowOf(link, block))
      addWindow(windows, link, *window);
  for (auto [item, routes] : llvm::enumerate(bodies.find(block)->second.routes))
    for (const Route &route : routes)
      if (!route.isCarried)
        for (const ChainLink &link : route.links)
          addWindow(windows, link,
                    {route.from ? int(*route.from) : -1, unsigned(item)});
  addWindowOfCopies(windows);
  return windows;
}

void ChainFinder::addLoads(Block *block) {
  Body &body = bodies[block];
  body.loads.resize(body.items.size() + 1);
  if (times.networks.empty())
    return;
  for (auto [link, window] : windowsOf(block)) {
    auto found = times.edges.find(link);
    if (found == times.edges.end() || window.first >= int(window.last))
      continue;
    for (auto [edge, count] : found->second) {
      if (count % body.runs != 0)
        continue;
      for (unsigned network : times.networks)
        body.loads[window.first + 1].push_back(
            {{network, edge},
             window,
             times.loadOf({network, edge}) / body.runs});
    }
  }
}

//===----------------------------------------------------------------------===//
// The longest path
//===----------------------------------------------------------------------===//

Cost ChainFinder::timeOf(const Links &links) const {
  Cost sum = 0;
  for (const ChainLink &link : links)
    if (auto it = times.links.find(link); it != times.links.end())
      sum = saturatingAdd(sum, it->second.of(times.assignment));
  return sum;
}

/// The links of a group's own: what stands between its parts too, if nothing
/// else does.
static SmallVector<ChainLink, 6> linksOf(const Graph &graph, int group,
                                         bool isConnected) {
  SmallVector<ChainLink, 6> links = {
      {ChainLink::Kind::Group, unsigned(group), 0}};
  auto [leader, rest] = graph.groups[group];
  if (leader < 0 || rest < 0 || !isConnected)
    return links;
  unsigned value =
      graph.valueIndex.lookup(groupValue(graph.chunks[leader].ops.front()));
  links.push_back({ChainLink::Kind::Store, value, 0});
  links.push_back({ChainLink::Kind::Read, value, unsigned(rest)});
  return links;
}

Cost ChainFinder::timeOf(const Item &item) const {
  if (item.body)
    return bodies.find(item.body)->second.time;
  if (item.group < 0)
    return 0;
  return timeOf(linksOf(graph, item.group, isConnected(item.group)));
}

ChainFinder::Path ChainFinder::longestPath(const Body &body, unsigned first,
                                           unsigned last) const {
  std::vector<Best> best(last + 1);
  for (unsigned at = first; at <= last; ++at) {
    if (at > first)
      best[at].time = best[at - 1].time;
    for (const Route &route : body.routes[at]) {
      if (route.isCarried || (route.from ? *route.from < first : first > 0))
        continue;
      Cost before = route.from ? best[*route.from].time : 0;
      Cost time = saturatingAdd(before, timeOf(route.links));
      if (time > best[at].time)
        best[at] = {time, &route, std::nullopt};
    }
    waitForNetworks(body, first, at, /*isEnd=*/false, best);
    best[at].time = saturatingAdd(best[at].time, timeOf(body.items[at]));
    waitForNetworks(body, first, at, /*isEnd=*/true, best);
  }
  Path path;
  path.time = best[last].time;
  for (int at = last; at >= int(first); at = best[at].before(at)) {
    if (!best[at].isInstead())
      path.items.push_back(at);
    if (best[at].route)
      path.routes.push_back(best[at].route);
    if (best[at].wait)
      path.waits.push_back(*best[at].wait);
  }
  return path;
}

/// Comes to an item, or to its end, from an earlier one by what a network
/// carries between them.
void ChainFinder::waitForNetworks(const Body &body, unsigned first, unsigned at,
                                  bool isEnd, std::vector<Best> &best) const {
  if (times.networks.empty())
    return;
  SmallVector<Cost> carried(times.networks.back() + 1, 0);
  int earliest = std::max<int>(first == 0 ? -1 : first, int(at) - kMaxSpan);
  for (int from = int(at) - 1; from >= earliest; --from) {
    for (const Load &load : body.loads[from + 1])
      if (load.window.end() <= std::pair(at, isEnd))
        carried[load.load.network] =
            saturatingAdd(carried[load.load.network], load.time);
    Cost before = from < 0 ? 0 : best[from].time;
    for (auto [network, time] : llvm::enumerate(carried))
      if (saturatingAdd(before, time) > best[at].time)
        best[at] = {before + time, nullptr,
                    Wait{unsigned(network), {from, at, isEnd}}};
  }
}

/// The longest path through all iterations of a body.
void ChainFinder::measure(Block *block) {
  Body &body = bodies[block];
  if (body.items.empty())
    return;
  unsigned last = body.items.size() - 1;
  body.path = longestPath(body, 0, last);
  body.time = saturatingMultiply(body.path.time, body.count);
  for (auto [first, routes] : llvm::enumerate(body.routes))
    for (const Route &route : routes) {
      if (!route.isCarried)
        continue;
      Path path = longestPath(body, first, last);
      Cost time = saturatingAdd(
          saturatingMultiply(path.time, body.count),
          saturatingMultiply(timeOf(route.links), body.count - 1));
      if (time <= body.time)
        continue;
      body.time = time;
      body.path = std::move(path);
      body.back = &route;
    }
}

void ChainFinder::collect(Block *block, std::optional<unsigned> network,
                          Chain &chain) const {
  const Body &body = bodies.find(block)->second;
  for (unsigned number : body.path.items) {
    const Item &item = body.items[number];
    if (item.body)
      collect(item.body, network, chain);
    else if (item.group >= 0)
      collect(linksOf(graph, item.group, isConnected(item.group)), body.runs,
              chain);
  }
  for (const Route *route : body.path.routes)
    collect(route->links, body.runs, chain);
  for (const auto &loads : body.loads)
    for (const Load &load : loads)
      for (const Wait &wait : body.path.waits)
        if (network.value_or(wait.network) == load.load.network &&
            wait.window.holds(load.window))
          chain.loads[load.load] += 1;
  if (body.back)
    collect(body.back->links, body.runs - body.runs / body.count, chain);
}

Chain ChainFinder::collect(std::optional<unsigned> network) const {
  Chain chain;
  collect(bodies.front().first, network, chain);
  // Links that take no time in any plan do not matter.
  std::erase_if(chain.links, [&](const auto &each) {
    return !times.links.count(each.first);
  });
  return chain;
}

std::vector<Chain> ChainFinder::find() {
  if (bodies.empty())
    return {Chain()};
  for (auto &[block, body] : llvm::reverse(bodies))
    measure(block);
  std::vector<Chain> chains = {collect(std::nullopt)};
  if (!chains.front().loads.empty())
    for (unsigned network : times.networks)
      if (Chain chain = collect(network); chain != chains.front())
        chains.push_back(std::move(chain));
  return chains;
}

std::vector<Chain> shardc::longestChains(const Graph &graph,
                                         const ChainTimes &times,
                                         bool matmulsOverlap) {
  return ChainFinder(graph, times, matmulsOverlap).find();
}

bool shardc::readsUpdatedBuffers(const Graph &graph) {
  return llvm::any_of(graph.values, [](const GraphValue &value) {
    return !value.uses.empty() && updateOfPart(value);
  });
}

Cost shardc::lengthOf(const Chain &chain, const ChainTimes &times) {
  Cost sum = 0;
  for (auto [link, runs] : chain.links)
    if (auto it = times.links.find(link); it != times.links.end())
      sum = saturatingAdd(
          sum, saturatingMultiply(it->second.of(times.assignment), runs));
  for (auto [load, weight] : chain.loads)
    sum = saturatingAdd(sum, saturatingMultiply(times.loadOf(load), weight));
  return sum;
}
