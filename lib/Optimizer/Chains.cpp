//===- Chains.cpp - Work that waits for each other ------------------------===//
//
// The compute stream runs the items of a body, its groups and repeats, in
// program order, so that the sum of their times is a chain. Where an item reads
// what an earlier one makes, through collectives, a chain may go that way
// instead: it leaves out what lies between and counts the collectives. Such
// steps are only taken where the second item waits for the first in every plan:
//
// - what is read must be made by the last part of its group and read by the
//   first part of the other, as the parts are groups of their own if a
//   collective stands between;
// - a carried value leads on to the next iteration only from the body's last
//   item, so that iterations that are not simulated take as long as those that
//   are.
//
//===----------------------------------------------------------------------===//

#include "shardc/Optimizer/Chains.h"
#include "shardc/Cost/Saturating.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;
using solver::Cost;
using solver::Label;

namespace {

class ChainFinder {
public:
  ChainFinder(const Graph &graph, const LinkTimes &times,
              ArrayRef<Label> assignment, bool matmulsOverlap);

  Chain find();

private:
  using Links = SmallVector<ChainLink, 6>;
  /// A group, or a repeat: `body`.
  struct Item {
    uint32_t point = 0;
    int group = -1;
    Block *body = nullptr;
  };
  /// A way from an item of a body to the one that waits for it.
  struct Route {
    /// None: from the beginning of the step.
    std::optional<unsigned> from;
    /// From the iteration before.
    bool isCarried = false;
    Links links;
  };
  /// The longest way through items [first, last] of a body, once.
  struct Way {
    Cost time = 0;
    /// Items, and the routes taken.
    SmallVector<unsigned, 8> items;
    SmallVector<const Route *, 4> routes;
  };
  struct Body {
    /// Iterations each time it runs, and runs of an iteration in a step.
    int64_t count = 1, runs = 1;
    std::vector<Item> items;
    /// By item.
    std::vector<std::vector<Route>> routes;
    /// What its iterations take together each time it runs.
    Cost time = 0;
    Way way;
    /// From the last item to the first on the way of the next iteration.
    const Route *back = nullptr;
  };

  void addItems();
  void addRoutes(Block *block);
  bool isConnected(int group) const;
  /// The first or the last part of a group.
  unsigned entryOf(int group) const;
  unsigned exitOf(int group) const;
  void follow(unsigned chunk, const Links &links, Block *block, bool isCarried,
              std::vector<Route> &routes) const;
  void followValue(unsigned value, Links links, Block *block, bool isCarried,
                   std::vector<Route> &routes) const;
  void followCarried(unsigned value, const Links &links, Block *block,
                     std::vector<Route> &routes) const;
  void addRoute(const GraphValue &value, Links links, Block *block,
                std::vector<Route> &routes) const;
  std::optional<unsigned> itemOf(const GraphValue &value, Block *block) const;

  Cost timeOf(const Links &links) const;
  Cost timeOf(const Item &item) const;
  Way longestWay(const Body &body, unsigned first, unsigned last) const;
  void measure(Block *block);
  void collect(Block *block, Chain &chain) const;
  void collect(const Links &links, int64_t runs, Chain &chain) const {
    for (const ChainLink &link : links)
      chain[link] += runs;
  }

  const Graph &graph;
  const LinkTimes &times;
  ArrayRef<Label> assignment;
  bool matmulsOverlap;
  /// Values that each chunk reads.
  std::vector<SmallVector<unsigned, 4>> readsOf;
  /// In program order, a repeat's body after the body around it.
  llvm::MapVector<Block *, Body> bodies;
};

} // namespace

ChainFinder::ChainFinder(const Graph &graph, const LinkTimes &times,
                         ArrayRef<Label> assignment, bool matmulsOverlap)
    : graph(graph), times(times), assignment(assignment),
      matmulsOverlap(matmulsOverlap), readsOf(graph.chunks.size()) {
  for (auto [index, value] : llvm::enumerate(graph.values))
    for (const ChunkUse &use : value.uses)
      if (!llvm::is_contained(readsOf[use.chunk], index))
        readsOf[use.chunk].push_back(index);
  addItems();
  for (auto &[block, body] : bodies)
    addRoutes(block);
}

//===----------------------------------------------------------------------===//
// Items and the ways between them
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
  if (matmulsOverlap && isa<EinsumOp>(first))
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
  for (auto [item, routes] : llvm::zip_equal(body.items, body.routes)) {
    if (item.group < 0 || !isConnected(item.group))
      continue;
    follow(entryOf(item.group), {}, block, /*isCarried=*/false, routes);
    // What runs later is no way here.
    unsigned here = &item - body.items.data();
    llvm::erase_if(routes, [&](const Route &route) {
      return !route.isCarried && route.from && *route.from >= here;
    });
  }
}

/// Ways to what a chunk reads.
void ChainFinder::follow(unsigned chunk, const Links &links, Block *block,
                         bool isCarried, std::vector<Route> &routes) const {
  for (unsigned value : readsOf[chunk]) {
    Links further = links;
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
  case GraphValue::Kind::Declared:
    // A collective at the beginning of a repeat may be issued before it.
    if (block == bodies.front().first)
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
        links.push_back({ChainLink::Kind::Statistics, unsigned(chunk), 0});
  }
  routes.push_back({*from, /*isCarried=*/false, std::move(links)});
}

//===----------------------------------------------------------------------===//
// The longest way
//===----------------------------------------------------------------------===//

Cost ChainFinder::timeOf(const Links &links) const {
  Cost sum = 0;
  for (const ChainLink &link : links)
    if (auto it = times.find(link); it != times.end())
      sum = saturatingAdd(sum, it->second.of(assignment));
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
      graph.valueIndex.lookup(graph.chunks[leader].ops.front()->getResult(0));
  links.push_back({ChainLink::Kind::Store, value, 0});
  links.push_back({ChainLink::Kind::Read, value, unsigned(rest)});
  return links;
}

Cost ChainFinder::timeOf(const Item &item) const {
  if (item.body)
    return bodies.find(item.body)->second.time;
  return timeOf(linksOf(graph, item.group, isConnected(item.group)));
}

ChainFinder::Way ChainFinder::longestWay(const Body &body, unsigned first,
                                         unsigned last) const {
  struct Best {
    Cost time = 0;
    const Route *route = nullptr; // none: from the item before
  };
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
        best[at] = {time, &route};
    }
    best[at].time = saturatingAdd(best[at].time, timeOf(body.items[at]));
  }
  Way way;
  way.time = best[last].time;
  for (unsigned at = last;;) {
    way.items.push_back(at);
    const Route *route = best[at].route;
    if (route)
      way.routes.push_back(route);
    if (route ? !route->from : at == first)
      return way;
    at = route ? *route->from : at - 1;
  }
}

/// The longest way through all iterations of a body.
void ChainFinder::measure(Block *block) {
  Body &body = bodies[block];
  if (body.items.empty())
    return;
  unsigned last = body.items.size() - 1;
  body.way = longestWay(body, 0, last);
  body.time = saturatingMultiply(body.way.time, body.count);
  for (auto [first, routes] : llvm::enumerate(body.routes))
    for (const Route &route : routes) {
      if (!route.isCarried)
        continue;
      Way way = longestWay(body, first, last);
      Cost time = saturatingAdd(
          saturatingMultiply(way.time, body.count),
          saturatingMultiply(timeOf(route.links), body.count - 1));
      if (time <= body.time)
        continue;
      body.time = time;
      body.way = std::move(way);
      body.back = &route;
    }
}

void ChainFinder::collect(Block *block, Chain &chain) const {
  const Body &body = bodies.find(block)->second;
  for (unsigned number : body.way.items) {
    const Item &item = body.items[number];
    if (item.body)
      collect(item.body, chain);
    else
      collect(linksOf(graph, item.group, isConnected(item.group)), body.runs,
              chain);
  }
  for (const Route *route : body.way.routes)
    collect(route->links, body.runs, chain);
  if (body.back)
    collect(body.back->links, body.runs - body.runs / body.count, chain);
}

Chain ChainFinder::find() {
  Chain chain;
  if (bodies.empty())
    return chain;
  for (auto &[block, body] : llvm::reverse(bodies))
    measure(block);
  Block *program = bodies.front().first;
  Body &body = bodies.front().second;
  // What leaves at the end may be waited for too.
  Links ending;
  Cost longest = body.time;
  for (auto [index, chunk] : llvm::enumerate(graph.chunks)) {
    if (chunk.kind != Chunk::Kind::Output)
      continue;
    std::vector<Route> routes;
    follow(index, {}, program, /*isCarried=*/false, routes);
    for (const Route &route : routes) {
      if (!route.from)
        continue;
      Way way = longestWay(body, 0, *route.from);
      Cost time = saturatingAdd(way.time, timeOf(route.links));
      if (time <= longest)
        continue;
      longest = time;
      body.way = std::move(way);
      ending = route.links;
    }
  }
  collect(program, chain);
  collect(ending, 1, chain);
  // What takes no time in any plan is no matter.
  for (auto it = chain.begin(); it != chain.end();)
    it = times.count(it->first) ? std::next(it) : chain.erase(it);
  return chain;
}

Chain shardc::longestChain(const Graph &graph, const LinkTimes &times,
                           ArrayRef<Label> assignment, bool matmulsOverlap) {
  return ChainFinder(graph, times, assignment, matmulsOverlap).find();
}

Cost shardc::lengthOf(const Chain &chain, const LinkTimes &times,
                      ArrayRef<Label> assignment) {
  Cost sum = 0;
  for (auto [link, runs] : chain)
    if (auto it = times.find(link); it != times.end())
      sum = saturatingAdd(sum,
                          saturatingMultiply(it->second.of(assignment), runs));
  return sum;
}
