//===- ChainBodies.cpp - What waits for what in a body --------------------===//
//
// Whatever the order, an item that reads what another makes runs behind it. In
// the order of the text all earlier items do, too. Ways from one to the other
// go over collectives only where the second item waits for the first in every
// plan:
//
// - what is read must be made by the last part of its group, and a way leads to
//   the beginning of the other group if its first part reads it, to its end if
//   the second does: the parts are groups of their own if a collective stands
//   between;
// - statistics are reduced behind a group that makes what they are taken of
//   and before one that only reads it;
// - a carried value leads on to the next iteration only from the item that ends
//   every iteration, so that iterations that are not simulated take as long as
//   those that are.
//
// A part of a buffer is made by the item that updates it before: in a repeat,
// the last iteration.
//
//===----------------------------------------------------------------------===//

#include "ChainBodies.h"
#include "shardc/Cost/Saturating.h"
#include "shardc/Dialect/Shd/IR/CollectiveMatmul.h"
#include "shardc/Dialect/Shd/IR/Segments.h"
#include "shardc/Optimizer/Names.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

/// Gaps are looked for between items that are so far apart at most, since that
/// takes as long for each item.
static constexpr unsigned kMaxGap = 64;

namespace shardc {

class ChainBodiesBuilder {
public:
  ChainBodiesBuilder(ChainBodies &result, const LinkEdges &edges);

private:
  using Begin = std::pair<int, bool>;
  using End = std::pair<unsigned, bool>;
  /// Where a collective stands: the repeat of a body in which it is, if any.
  struct Site {
    Block *block = nullptr;
    Operation *op = nullptr;
    std::optional<unsigned> repeat;
  };
  using Windows = std::map<ChainLink, ChainWindow>;
  /// By item: those that begin, or end, once it has ended, in every order.
  struct Behind {
    std::vector<llvm::BitVector> begins, ends;
  };

  bool inText() const { return result.rules.orders == ChainOrders::Text; }
  void addItems();
  void addRoutes(Block *block);
  void addRoutesToGroup(Block *block, unsigned number);
  void addRoutesToRest(Block *block, unsigned number);
  void addRoutesToRepeat(Block *block, unsigned number);
  void addOrder(ChainBody &body);
  void addGaps(ChainBody &body);
  void addGap(ChainBody &body, const Behind &behind, int from, unsigned to);
  void keepCarried(ChainBody &body);

  void addEdges(Block *block, const LinkEdges &edges);
  void addWindow(const ChainBody &body, Windows &windows, const ChainLink &link,
                 ChainWindow window) const;
  bool isWithinGroup(const ChainLink &link) const;
  void addWindowsWithin(const ChainBody &body, Windows &windows) const;
  void addWindowsOfCopies(Block *block, Windows &windows) const;
  Windows windowsOf(Block *block, const LinkEdges &edges) const;
  std::optional<ChainWindow> windowOf(const ChainLink &link,
                                      Block *block) const;
  std::optional<ChainWindow> windowOfFlow(const ChainLink &link,
                                          Block *block) const;
  std::optional<ChainWindow> windowUntil(const ChainLink &link,
                                         const Site &site,
                                         std::optional<unsigned> last) const;
  std::optional<ChainWindow> around(const ChainBody &body, ChainWindow a,
                                    ChainWindow b) const;
  std::optional<unsigned> earlierReader(const ChainBody &body,
                                        std::optional<unsigned> a,
                                        std::optional<unsigned> b) const;
  std::optional<Begin> laterMaker(const ChainBody &body, std::optional<Begin> a,
                                  std::optional<Begin> b) const;
  std::optional<Site> siteIn(Block *block, Operation *op) const;
  std::optional<unsigned> itemAround(Block *block, Operation *op) const;
  std::optional<unsigned> itemOfReader(Block *block, Value read,
                                       unsigned chunk) const;
  bool isInOrder(Value read, Operation *reader) const;
  std::optional<Begin> madeBy(Value value, const Site &site) const;
  std::optional<Begin> madeBy(Operation *op, const Site &site) const;

  bool isStep(Block *block) const {
    return block == result.bodies.front().first;
  }
  bool isConnected(int group) const;
  Operation *statisticsTaker(unsigned chunk) const;
  bool isFedWithin(Operation *taker) const;
  /// The first or the last part of a group.
  unsigned entryOf(int group) const;
  unsigned exitOf(int group) const;
  void follow(unsigned chunk, const ChainLinks &links, Block *block,
              bool isCarried, std::vector<ChainRoute> &routes) const;
  void followValue(unsigned value, ChainLinks links, Block *block,
                   bool isCarried, std::vector<ChainRoute> &routes) const;
  void followCarried(unsigned value, const ChainLinks &links, Block *block,
                     std::vector<ChainRoute> &routes) const;
  void followPart(unsigned value, ChainLinks links, Block *block,
                  bool isCarried, std::vector<ChainRoute> &routes) const;
  void addRoute(const GraphValue &value, ChainLinks links, Block *block,
                std::vector<ChainRoute> &routes) const;
  std::optional<unsigned> itemOf(const GraphValue &value, Block *block) const;

  ChainBodies &result;
  const Graph &graph;
  /// Values that each chunk reads.
  std::vector<SmallVector<unsigned, 4>> readsOf;
  /// Chunks that read parts of a buffer after its update, by the update.
  llvm::DenseMap<Operation *, SmallVector<unsigned, 2>> readersOfUpdate;
};

} // namespace shardc

/// The update whose value a part of a buffer is, or null.
static UpdateOp updateOfPart(const GraphValue &value) {
  auto part = Value(value.value).getDefiningOp<PartOp>();
  return part ? updateBefore(part) : UpdateOp();
}

ChainBodies::ChainBodies(const Graph &graph, const LinkEdges &edges,
                         ChainRules rules)
    : graph(graph), rules(rules) {
  ChainBodiesBuilder(*this, edges);
}

ChainBodiesBuilder::ChainBodiesBuilder(ChainBodies &result,
                                       const LinkEdges &edges)
    : result(result), graph(result.graph), readsOf(graph.chunks.size()) {
  for (auto [index, value] : llvm::enumerate(graph.values))
    for (const ChunkUse &use : value.uses)
      if (!llvm::is_contained(readsOf[use.chunk], index))
        readsOf[use.chunk].push_back(index);
  for (const GraphValue &value : graph.values)
    if (UpdateOp update = updateOfPart(value))
      for (const ChunkUse &use : value.uses)
        readersOfUpdate[update].push_back(use.chunk);
  addItems();
  for (auto &[block, body] : result.bodies) {
    addRoutes(block);
    addOrder(body);
    keepCarried(body);
    if (!inText())
      addGaps(body);
    addEdges(block, edges);
  }
}

//===----------------------------------------------------------------------===//
// Items and the ways between them
//===----------------------------------------------------------------------===//

unsigned ChainBodiesBuilder::entryOf(int group) const {
  auto [leader, rest] = graph.groups[group];
  return leader >= 0 ? leader : rest;
}

unsigned ChainBodiesBuilder::exitOf(int group) const {
  auto [leader, rest] = graph.groups[group];
  return rest >= 0 ? rest : leader;
}

void ChainBodiesBuilder::addItems() {
  SmallVector<std::pair<uint32_t, RepeatOp>> repeats;
  for (auto [repeat, points] : graph.repeatPoints)
    repeats.push_back({points.first, cast<RepeatOp>(repeat)});
  llvm::sort(repeats, llvm::less_first());
  if (graph.chunks.empty())
    return;
  auto &bodies = result.bodies;
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
  for (auto &[block, body] : bodies) {
    if (isStep(block) || !inText())
      body.items.push_back({UINT32_MAX, -1, nullptr});
    body.runs =
        saturatingMultiply(executionCount(block->getParentOp()), body.count);
    llvm::sort(body.items, [](const ChainItem &a, const ChainItem &b) {
      return a.point < b.point;
    });
  }
}

/// True if collectives around the group are not hidden by it, and in the order
/// of the text nothing else runs between its parts.
bool ChainBodiesBuilder::isConnected(int group) const {
  auto [leader, rest] = graph.groups[group];
  if (leader < 0)
    return true;
  Operation *first = graph.chunks[leader].ops.front();
  if (result.rules.matmulsOverlap && mayBecomeRing(first))
    return false;
  if (rest < 0 || !inText())
    return true;
  Operation *last = graph.chunks[rest].ops.back();
  for (Operation *op = first; op && op != last; op = op->getNextNode()) {
    auto chunk = graph.chunkOf.find(op);
    bool isOther = chunk != graph.chunkOf.end() &&
                   !graph.chunks[chunk->second].isFree() &&
                   graph.chunks[chunk->second].group != group;
    if (isa<RepeatOp>(op) || isOther)
      return false;
  }
  return true;
}

ChainLinks ChainBodies::linksOf(int group) const {
  ChainLinks links = {{ChainLink::Kind::Group, unsigned(group), 0}};
  if (!connected.contains(group))
    return links;
  auto [leader, rest] = graph.groups[group];
  unsigned value =
      graph.valueIndex.lookup(groupValue(graph.chunks[leader].ops.front()));
  links.push_back({ChainLink::Kind::Store, value, 0});
  links.push_back({ChainLink::Kind::Read, value, unsigned(rest)});
  return links;
}

void ChainBodiesBuilder::addRoutes(Block *block) {
  ChainBody &body = result.bodies[block];
  body.routes.resize(body.items.size());
  body.restRoutes.resize(body.items.size());
  if (isStep(block))
    for (auto [index, chunk] : llvm::enumerate(graph.chunks))
      if (chunk.kind == Chunk::Kind::Output)
        follow(index, {}, block, /*isCarried=*/false, body.routes.back());
  for (auto [number, item] : llvm::enumerate(body.items)) {
    if (item.group >= 0) {
      addRoutesToGroup(block, number);
      if (!inText())
        addRoutesToRest(block, number);
    } else if (item.body && !inText()) {
      addRoutesToRepeat(block, number);
    }
    // Routes to later items only.
    llvm::erase_if(
        body.routes[number], [&, number = number](const ChainRoute &route) {
          return !route.isCarried && route.from && *route.from >= number;
        });
  }
}

void ChainBodiesBuilder::addRoutesToGroup(Block *block, unsigned number) {
  ChainBody &body = result.bodies[block];
  int group = body.items[number].group;
  std::vector<ChainRoute> &routes = body.routes[number];
  if (isConnected(group)) {
    auto [leader, rest] = graph.groups[group];
    if (leader >= 0 && rest >= 0)
      result.connected.insert(group);
    return follow(entryOf(group), {}, block, /*isCarried=*/false, routes);
  }
  if (inText())
    return;
  // It hides collectives, and still runs behind what it reads.
  follow(entryOf(group), {}, block, /*isCarried=*/false, routes);
  llvm::erase_if(routes, [](const ChainRoute &route) {
    return route.isCarried || !route.from;
  });
  for (ChainRoute &route : routes)
    route.links.clear();
}

/// Ways to what the second part of a group reads.
void ChainBodiesBuilder::addRoutesToRest(Block *block, unsigned number) {
  ChainBody &body = result.bodies[block];
  int group = body.items[number].group;
  if (entryOf(group) == exitOf(group))
    return;
  std::vector<ChainRoute> &routes = body.restRoutes[number];
  follow(exitOf(group), {}, block, /*isCarried=*/false, routes);
  llvm::erase_if(routes, [&](const ChainRoute &route) {
    return route.isCarried || !route.from || *route.from >= number;
  });
}

/// A repeat runs behind the items that make what its first iteration reads,
/// whenever that waits for collectives.
void ChainBodiesBuilder::addRoutesToRepeat(Block *block, unsigned number) {
  ChainBody &body = result.bodies[block];
  std::vector<ChainRoute> found;
  body.items[number].body->getParentOp()->walk([&](Operation *op) {
    for (Value operand : op->getOperands()) {
      auto value = graph.valueIndex.find(rootValue(operand));
      if (value != graph.valueIndex.end() &&
          graph.values[value->second].kind != GraphValue::Kind::Carried)
        followValue(value->second, {}, block, /*isCarried=*/false, found);
    }
  });
  llvm::SmallDenseSet<unsigned> known;
  for (const ChainRoute &route : found)
    if (route.from && *route.from < number && known.insert(*route.from).second)
      body.routes[number].push_back({route.from, false, {}});
}

/// The only operation of a chunk that may take statistics; null if there is
/// none or more than one.
Operation *ChainBodiesBuilder::statisticsTaker(unsigned chunk) const {
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
bool ChainBodiesBuilder::isFedWithin(Operation *taker) const {
  int64_t group = graph.chunks[graph.chunkOf.lookup(taker)].group;
  return llvm::any_of(taker->getOperands(), [&](Value operand) {
    auto maker = graph.chunkOf.find(operand.getDefiningOp());
    return maker != graph.chunkOf.end() &&
           graph.chunks[maker->second].group == group;
  });
}

/// Ways to what a chunk reads.
void ChainBodiesBuilder::follow(unsigned chunk, const ChainLinks &links,
                                Block *block, bool isCarried,
                                std::vector<ChainRoute> &routes) const {
  Operation *taker = statisticsTaker(chunk);
  if (taker && isFedWithin(taker))
    taker = nullptr;
  for (unsigned value : readsOf[chunk]) {
    ChainLinks further = links;
    if (taker &&
        llvm::is_contained(taker->getOperands(), graph.values[value].value))
      further.push_back({ChainLink::Kind::Statistics, chunk, 0});
    further.push_back({ChainLink::Kind::Read, value, chunk});
    followValue(value, std::move(further), block, isCarried, routes);
  }
}

void ChainBodiesBuilder::followValue(unsigned index, ChainLinks links,
                                     Block *block, bool isCarried,
                                     std::vector<ChainRoute> &routes) const {
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
  if (!maker.isFree() && !maker.prologue)
    return addRoute(value, std::move(links), block, routes);
  if (maker.prologue)
    links.push_back({ChainLink::Kind::Group, unsigned(maker.group), 0});
  follow(value.chunk, links, block, isCarried, routes);
}

/// Ways to the value with which a buffer was updated.
void ChainBodiesBuilder::followPart(unsigned index, ChainLinks links,
                                    Block *block, bool isCarried,
                                    std::vector<ChainRoute> &routes) const {
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
void ChainBodiesBuilder::followCarried(unsigned index, const ChainLinks &links,
                                       Block *block,
                                       std::vector<ChainRoute> &routes) const {
  for (auto [number, source] : llvm::enumerate(graph.values))
    for (const GraphValue::Flow &flow : source.flows) {
      if (flow.target != index || flow.operand->getOwner()->getBlock() != block)
        continue;
      ChainLinks further = links;
      further.push_back({ChainLink::Kind::Flow, unsigned(number), index});
      std::vector<ChainRoute> found;
      followValue(number, std::move(further), block, /*isCarried=*/true, found);
      for (ChainRoute &route : found)
        if (route.from)
          routes.push_back({route.from, /*isCarried=*/true, route.links});
    }
}

/// Only the item before which all others run ends an iteration.
void ChainBodiesBuilder::keepCarried(ChainBody &body) {
  for (std::vector<ChainRoute> &routes : body.routes)
    llvm::erase_if(routes, [&](const ChainRoute &route) {
      return route.isCarried && route.from != body.last;
    });
}

/// The item of the body that makes the value and ends with it.
std::optional<unsigned> ChainBodiesBuilder::itemOf(const GraphValue &value,
                                                   Block *block) const {
  auto it = result.bodies.find(block);
  if (it == result.bodies.end())
    return std::nullopt;
  for (auto [number, item] : llvm::enumerate(it->second.items)) {
    if (value.kind == GraphValue::Kind::Result) {
      if (item.body && item.body->getParentOp() == value.value.getDefiningOp())
        return number;
    } else if (item.group >= 0 &&
               item.group == graph.chunks[value.chunk].group &&
               exitOf(item.group) == value.chunk &&
               (!inText() || isConnected(item.group))) {
      return number;
    }
  }
  return std::nullopt;
}

void ChainBodiesBuilder::addRoute(const GraphValue &value, ChainLinks links,
                                  Block *block,
                                  std::vector<ChainRoute> &routes) const {
  std::optional<unsigned> from = itemOf(value, block);
  if (!from)
    return;
  if (value.kind == GraphValue::Kind::Computed) {
    int group = graph.chunks[value.chunk].group;
    auto [leader, rest] = graph.groups[group];
    // A value that is made before statistics are taken may be moved before
    // these are reduced.
    Operation *maker = value.value.getDefiningOp();
    for (int chunk : {leader, rest})
      if (chunk >= 0)
        if (Operation *taker = statisticsTaker(chunk);
            taker && isFedWithin(taker) && !maker->isBeforeInBlock(taker))
          links.push_back({ChainLink::Kind::Statistics, unsigned(chunk), 0});
    if (!isConnected(group))
      links.clear();
  }
  routes.push_back({*from, /*isCarried=*/false, std::move(links)});
}

//===----------------------------------------------------------------------===//
// Orders and gaps
//===----------------------------------------------------------------------===//

/// Items that run before others: in the order of the text all earlier ones.
/// Readers of a group's end also run behind what only the group's second part
/// reads.
void ChainBodiesBuilder::addOrder(ChainBody &body) {
  size_t size = body.items.size();
  body.before.assign(size, llvm::BitVector(size));
  body.beforeEnd.assign(size, llvm::BitVector(size));
  for (unsigned number = 0; number < size; ++number) {
    // The end of a body is behind all of its items.
    bool isEnd = body.items[number].point == UINT32_MAX;
    for (unsigned earlier = 0; earlier < number; ++earlier)
      if (isEnd || (inText() && earlier + 1 == number))
        body.routes[number].insert(body.routes[number].begin(),
                                   {earlier, /*isCarried=*/false, {}});
    for (const ChainRoute &route : body.routes[number])
      if (route.from && !route.isCarried) {
        body.before[number] |= body.beforeEnd[*route.from];
        body.before[number].set(*route.from);
      }
    body.beforeEnd[number] = body.before[number];
    for (const ChainRoute &route : body.restRoutes[number]) {
      body.beforeEnd[number] |= body.beforeEnd[*route.from];
      body.beforeEnd[number].set(*route.from);
    }
    if (body.before[number].none())
      body.first.push_back(number);
  }
  // The end of a body is no item that makes anything.
  for (unsigned number = 0; number < size; ++number)
    if (body.items[number].point != UINT32_MAX &&
        body.before[number].count() == number)
      body.last = number;
  if (body.last && *body.last + 1 < size &&
      body.items[*body.last + 1].point != UINT32_MAX)
    body.last = std::nullopt;
}

/// Gaps in which no item has its place: with one, the gaps before it and behind
/// it are longer together.
void ChainBodiesBuilder::addGap(ChainBody &body, const Behind &behind, int from,
                                unsigned to) {
  llvm::BitVector work = body.before[to];
  if (from >= 0)
    work &= behind.begins[from];
  if (work.none())
    return;
  for (unsigned item : work.set_bits()) {
    llvm::BitVector others = work;
    others.reset(item);
    others.reset(body.before[item]);
    others.reset(behind.begins[item]);
    if (others.none())
      return;
  }
  ChainGap gap;
  gap.from = from;
  for (unsigned item : work.set_bits()) {
    gap.work.push_back(item);
    if (!work.anyCommon(body.before[item]))
      gap.first.push_back(item);
    if (!work.anyCommon(behind.ends[item]))
      gap.last.push_back(item);
  }
  body.gaps[to].push_back(std::move(gap));
}

void ChainBodiesBuilder::addGaps(ChainBody &body) {
  size_t size = body.items.size();
  body.gaps.resize(size);
  Behind behind;
  for (auto [after, before] : {std::pair(&behind.begins, &body.before),
                               std::pair(&behind.ends, &body.beforeEnd)}) {
    after->assign(size, llvm::BitVector(size));
    for (unsigned number = 0; number < size; ++number)
      for (unsigned earlier : (*before)[number].set_bits())
        (*after)[earlier].set(number);
  }
  for (unsigned to = 0; to < size; ++to) {
    addGap(body, behind, -1, to);
    for (unsigned from : body.before[to].set_bits())
      if (to - from <= kMaxGap)
        addGap(body, behind, int(from), to);
  }
}

//===----------------------------------------------------------------------===//
// Networks between items
//===----------------------------------------------------------------------===//

/// The repeat of a body that an operation is in.
std::optional<unsigned> ChainBodiesBuilder::itemAround(Block *block,
                                                       Operation *op) const {
  Operation *around = block->findAncestorOpInBlock(*op);
  if (!around || around == op)
    return std::nullopt;
  for (auto [number, item] : llvm::enumerate(result.bodyOf(block).items))
    if (item.body && item.body->getParentOp() == around)
      return number;
  return std::nullopt;
}

/// Nothing if the operation is not in the body.
std::optional<ChainBodiesBuilder::Site>
ChainBodiesBuilder::siteIn(Block *block, Operation *op) const {
  if (!block->findAncestorOpInBlock(*op))
    return std::nullopt;
  return Site{block, op, itemAround(block, op)};
}

/// True unless a reader may run before the group does that makes the value: if
/// the group ends behind it.
bool ChainBodiesBuilder::isInOrder(Value read, Operation *reader) const {
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
  if (maker.isFree())
    return llvm::all_of(maker.ops, [&](Operation *op) {
      return llvm::all_of(op->getOperands(), [&](Value operand) {
        return isInOrder(operand, reader);
      });
    });
  if (!inText())
    return exitOf(maker.group) == value.chunk;
  return standsBefore(graph.chunks[exitOf(maker.group)].ops.back(), reader);
}

/// The item of the body at whose end has been moved what a chunk reads of a
/// value.
std::optional<unsigned> ChainBodiesBuilder::itemOfReader(Block *block,
                                                         Value read,
                                                         unsigned index) const {
  const Chunk &chunk = graph.chunks[index];
  if (chunk.isFree() || chunk.kind == Chunk::Kind::Output ||
      !isInOrder(read, chunk.ops.back()))
    return std::nullopt;
  Operation *op = chunk.ops.front();
  if (op->getBlock() != block)
    return itemAround(block, op);
  for (auto [number, item] : llvm::enumerate(result.bodyOf(block).items))
    if (item.group >= 0 && item.group == chunk.group)
      return number;
  return std::nullopt;
}

/// The later of two items that make what a collective moves; either holds.
std::optional<ChainBodiesBuilder::Begin>
ChainBodiesBuilder::laterMaker(const ChainBody &body, std::optional<Begin> a,
                               std::optional<Begin> b) const {
  if (!a || !b)
    return a ? a : b;
  return body.beginsAfter(a->first, *b) ? b : a;
}

/// The item that has ended when a collective at `site` moves what the operation
/// makes; nothing if it may be before the body begins. In its own repeat that
/// has begun.
std::optional<ChainBodiesBuilder::Begin>
ChainBodiesBuilder::madeBy(Operation *op, const Site &site) const {
  std::optional<unsigned> repeat = itemAround(site.block, op);
  if (!repeat)
    return std::nullopt;
  return Begin(int(*repeat), repeat == site.repeat);
}

/// The same of a value, which the collective moves.
std::optional<ChainBodiesBuilder::Begin>
ChainBodiesBuilder::madeBy(Value moved, const Site &site) const {
  const ChainBody &body = result.bodyOf(site.block);
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
    return laterMaker(body, madeBy(update.getValue(), site),
                      madeBy(update, site));
  }
  case GraphValue::Kind::Carried: {
    // For the first iteration it is moved when the repeat begins.
    Operation *repeat = root.getParentBlock()->getParentOp();
    bool isWithin = site.repeat && repeat->isAncestor(site.op) &&
                    site.block->findAncestorOpInBlock(*repeat);
    return isWithin ? std::optional(Begin(int(*site.repeat), true))
                    : std::nullopt;
  }
  case GraphValue::Kind::Result:
    if (std::optional<unsigned> item = itemOf(value, site.block))
      return Begin(int(*item), false);
    return madeBy(root.getDefiningOp(), site);
  case GraphValue::Kind::Computed:
    break;
  }
  const Chunk &maker = graph.chunks[value.chunk];
  std::optional<Begin> made;
  if (maker.isFree()) {
    for (Operation *op : maker.ops)
      for (Value operand : op->getOperands())
        made = laterMaker(body, made, madeBy(operand, site));
    return made;
  }
  if (maker.ops.front()->getBlock() != site.block)
    return madeBy(maker.ops.front(), site);
  if (!isConnected(maker.group))
    return std::nullopt;
  if (std::optional<unsigned> item = itemOf(value, site.block))
    return Begin(int(*item), false);
  return std::nullopt;
}

/// From when a value is made that is moved at a site to the end of an item, or
/// of the step.
std::optional<ChainWindow>
ChainBodiesBuilder::windowUntil(const ChainLink &link, const Site &site,
                                std::optional<unsigned> last) const {
  std::optional<Begin> first = madeBy(graph.values[link.first].value, site);
  // A value that is there before an iteration may be moved in the one before.
  if (!isStep(site.block) && (!first || !last))
    return std::nullopt;
  unsigned end = result.bodyOf(site.block).items.size() - 1;
  Begin begin = first.value_or(Begin(-1, false));
  return ChainWindow{begin.first, begin.second, last.value_or(end),
                     /*endsWithLast=*/true};
}

/// A window that holds two others; nothing if none is known to.
std::optional<ChainWindow> ChainBodiesBuilder::around(const ChainBody &body,
                                                      ChainWindow a,
                                                      ChainWindow b) const {
  ChainWindow result = a;
  if (a.begin() != b.begin()) {
    if (body.beginsAfter(b.first, a.begin()))
      std::tie(result.first, result.isWithinFirst) = b.begin();
    else if (!body.beginsAfter(a.first, b.begin()))
      return std::nullopt;
    if (a.first == b.first)
      result.isWithinFirst = true;
  }
  if (body.endsBefore(a.end(), b.end()))
    std::tie(result.last, result.endsWithLast) = b.end();
  else if (!body.endsBefore(b.end(), a.end()))
    return std::nullopt;
  return result;
}

/// The earlier of two items that read a value; either holds.
std::optional<unsigned>
ChainBodiesBuilder::earlierReader(const ChainBody &body,
                                  std::optional<unsigned> a,
                                  std::optional<unsigned> b) const {
  if (!a || !b)
    return a ? a : b;
  return body.isBefore(int(*b), *a) ? b : a;
}

/// A value that updates a buffer has been moved when the first of those ends
/// that read the buffer.
std::optional<ChainWindow>
ChainBodiesBuilder::windowOfFlow(const ChainLink &link, Block *block) const {
  const ChainBody &body = result.bodyOf(block);
  std::optional<ChainWindow> all;
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
        last = earlierReader(body, last, itemOfReader(block, moved, chunk));
    std::optional<ChainWindow> window = windowUntil(link, *site, last);
    if (window && all)
      window = around(body, *all, *window);
    if (!window)
      return std::nullopt;
    all = window;
  }
  return all;
}

/// When the collectives of a link run, wherever in the body they stand.
std::optional<ChainWindow> ChainBodiesBuilder::windowOf(const ChainLink &link,
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
        last = earlierReader(result.bodyOf(block), last,
                             itemOfReader(block, value.value, use.chunk));
    return windowUntil(link, *site, last);
  }
  case ChainLink::Kind::Copy:
  case ChainLink::Kind::Group:
  case ChainLink::Kind::Statistics:
    return std::nullopt;
  }
  llvm_unreachable("unknown kind of link");
}

/// All that is known of a link holds: the narrower end of each side is kept.
void ChainBodiesBuilder::addWindow(const ChainBody &body, Windows &windows,
                                   const ChainLink &link,
                                   ChainWindow window) const {
  auto [it, isNew] = windows.try_emplace(link, window);
  if (isNew)
    return;
  ChainWindow &known = it->second;
  if (body.beginsAfter(known.first, window.begin()))
    std::tie(known.first, known.isWithinFirst) = window.begin();
  if (body.endsBefore(window.end(), known.end()))
    std::tie(known.last, known.endsWithLast) = window.end();
}

/// A copy is there before the last of its readers, whichever these are; the
/// best plans make none that nobody reads.
void ChainBodiesBuilder::addWindowsOfCopies(Block *block,
                                            Windows &windows) const {
  const ChainBody &body = result.bodyOf(block);
  for (auto [index, value] : llvm::enumerate(graph.values)) {
    std::optional<ChainWindow> all;
    bool isKnown = value.flows.empty();
    for (const ChunkUse &use : value.uses) {
      auto it =
          windows.find({ChainLink::Kind::Read, unsigned(index), use.chunk});
      isKnown &= it != windows.end();
      if (!isKnown)
        break;
      all = all ? around(body, *all, it->second) : it->second;
      isKnown = all.has_value();
    }
    if (isKnown && all)
      addWindow(body, windows, {ChainLink::Kind::Copy, unsigned(index), 0},
                *all);
  }
}

/// True of what the second part of a group reads of the first.
bool ChainBodiesBuilder::isWithinGroup(const ChainLink &link) const {
  if (link.kind != ChainLink::Kind::Read)
    return false;
  const GraphValue &value = graph.values[link.first];
  const Chunk &reader = graph.chunks[link.second];
  return value.kind == GraphValue::Kind::Computed && reader.group >= 0 &&
         graph.chunks[value.chunk].group == reader.group;
}

/// Between the parts of a group.
void ChainBodiesBuilder::addWindowsWithin(const ChainBody &body,
                                          Windows &windows) const {
  if (inText())
    return;
  for (auto [number, item] : llvm::enumerate(body.items)) {
    if (item.group < 0)
      continue;
    const ChainLinks links = result.linksOf(item.group);
    for (const ChainLink &link : llvm::drop_begin(links))
      addWindow(body, windows, link,
                {int(number), /*isWithinFirst=*/true, unsigned(number),
                 /*endsWithLast=*/true});
  }
}

/// The narrowest known window of each link.
ChainBodiesBuilder::Windows
ChainBodiesBuilder::windowsOf(Block *block, const LinkEdges &edges) const {
  const ChainBody &body = result.bodyOf(block);
  Windows windows;
  for (const auto &[link, ofLink] : edges)
    if (std::optional<ChainWindow> window =
            isWithinGroup(link) ? std::nullopt : windowOf(link, block))
      addWindow(body, windows, link, *window);
  for (auto [item, routes] : llvm::enumerate(body.routes))
    for (const ChainRoute &route : routes)
      if (!route.isCarried)
        for (const ChainLink &link : route.links)
          addWindow(body, windows, link,
                    {route.from ? int(*route.from) : -1, false, unsigned(item),
                     false});
  for (auto [item, routes] : llvm::enumerate(body.restRoutes))
    for (const ChainRoute &route : routes)
      for (const ChainLink &link : route.links)
        addWindow(body, windows, link,
                  {int(*route.from), /*isWithinFirst=*/false, unsigned(item),
                   /*endsWithLast=*/true});
  addWindowsWithin(body, windows);
  addWindowsOfCopies(block, windows);
  return windows;
}

/// Collectives of one iteration; those that run more seldom are left out.
void ChainBodiesBuilder::addEdges(Block *block, const LinkEdges &edges) {
  ChainBody &body = result.bodies[block];
  for (auto [link, window] : windowsOf(block, edges)) {
    auto found = edges.find(link);
    bool isPoint = window.first == int(window.last) && !window.isWithinFirst;
    if (found == edges.end() || isPoint)
      continue;
    for (auto [edge, count] : found->second)
      if (count % body.runs == 0)
        body.edges.push_back({edge, window});
  }
}
