//===- Chains.cpp - Work that waits for each other ------------------------===//
//
// The longest chain of a plan, body by body from the innermost. A chain comes
// to an item, or to its end, by a way from one that it waits for; over all
// items between two, one of which runs first and one last; or by what a network
// carries between two, once the first of those has run that make it. What is
// moved within a repeat for its own groups has been moved when the repeat ends:
// then the wait takes the place of the repeat. At its end the step waits for
// everything.
//
//===----------------------------------------------------------------------===//

#include "shardc/Optimizer/Chains.h"
#include "ChainBodies.h"
#include "shardc/Cost/Saturating.h"
#include "shardc/Optimizer/Names.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace shardc;
using solver::Cost;
using solver::Label;

/// Waits for networks are looked for between items that are so far apart at
/// most, since that takes as long for each item.
static constexpr int kMaxSpan = 200;

namespace {

class PathFinder {
public:
  PathFinder(const ChainBodies &chains, const ChainTimes &times)
      : chains(chains), times(times) {}

  std::vector<Chain> find();

private:
  using Routes = SmallVector<const ChainRoute *, 4>;
  /// The least of the waits on some ways, each from the same item.
  struct LeastWait {
    Cost time = 0;
    Routes routes;
  };
  /// Over all items between two.
  struct Crossing {
    const ChainGap *gap = nullptr;
    LeastWait in, out;
  };
  /// One network's load from the end of an item to another: all of it, or only
  /// what some items between the two make, none of which is moved before one of
  /// them has run.
  struct Wait {
    unsigned network = 0;
    int from = -1;
    std::pair<unsigned, bool> end;
    /// These items; empty: all is counted.
    SmallVector<int, 4> makers = {};
    /// The least work of a maker.
    Cost head = 0;

    bool counts(const ChainBody &body, const ChainWindow &window) const {
      return body.isWithin(window, from, end) &&
             (makers.empty() || (!window.isWithinFirst &&
                                 llvm::is_contained(makers, window.first)));
    }
  };
  /// The best time at an item, and how it comes about.
  struct Best {
    Cost time = 0;
    bool isReached = false;
    const ChainRoute *route = nullptr;
    Crossing crossing;
    std::optional<Wait> wait = std::nullopt;
    /// The route leads to the item's second part.
    bool toRest = false;

    /// A wait until the item has ended, or for what its second part reads,
    /// takes the item's place.
    bool isInstead() const { return toRest || (wait && wait->end.second); }
    /// The item before on the path; -1: the beginning of the body.
    int before() const {
      if (route)
        return route->from ? int(*route->from) : -1;
      if (crossing.gap)
        return crossing.gap->from;
      return wait ? wait->from : -1;
    }
  };
  /// The longest path to an item of a body, once.
  struct Path {
    Cost time = 0;
    SmallVector<unsigned, 8> items;
    Routes routes;
    SmallVector<Crossing, 2> crossings;
    SmallVector<Wait, 2> waits;
  };
  /// The longest path through all iterations of a body.
  struct Measured {
    Cost time = 0;
    Path path;
    /// From the last item to the first on the path of the next iteration.
    LeastWait back;
  };

  Cost timeOf(const ChainLink &link) const {
    auto it = times.links.find(link);
    return it == times.links.end() ? 0 : it->second.of(times.assignment);
  }
  Cost timeOf(const ChainLinks &links) const;
  Cost timeOf(const ChainItem &item, bool isOnPath) const;
  LeastWait leastOf(const Routes &routes) const;
  const ChainRoute *
  longestRoute(const ChainBody &body, unsigned to,
               llvm::function_ref<bool(const ChainRoute &)> isAsked) const;
  void followRoutes(const ChainBody &body, unsigned at, bool fromStart,
                    std::vector<Best> &best) const;
  void followRest(const ChainBody &body, unsigned at,
                  std::vector<Best> &best) const;
  void crossGaps(const ChainBody &body, unsigned at, bool fromStart,
                 std::vector<Best> &best) const;
  /// The load of each network, by when it is made.
  using Carried = std::map<std::pair<int, bool>, SmallVector<Cost>>;
  std::pair<Cost, Wait> waitBehindMakers(const ChainBody &body,
                                         const Carried &carried, size_t number,
                                         int from,
                                         std::pair<unsigned, bool> end) const;
  void waitForNetworks(const ChainBody &body, unsigned at, bool isEnd,
                       bool fromStart, std::vector<Best> &best) const;
  /// From the beginning, or from an item.
  Path longestPath(const ChainBody &body, std::optional<unsigned> first,
                   unsigned last) const;
  void measure(Block *block);
  void iterate(const ChainBody &body, Measured &measured) const;

  /// With waits for this network, if one is given, whatever was waited for.
  Chain collect(std::optional<unsigned> network) const;
  void collect(Block *block, std::optional<unsigned> network,
               Chain &chain) const;
  void collect(const ChainLinks &links, int64_t runs, Chain &chain) const {
    for (const ChainLink &link : links)
      chain.links[link] += runs;
  }
  void collect(const ChainItem &item, int64_t runs, bool isOnPath,
               std::optional<unsigned> network, Chain &chain) const;
  void collect(const LeastWait &wait, int64_t runs, Chain &chain) const;
  void collectHead(const ChainBody &body, const Wait &wait, Chain &chain) const;

  const ChainBodies &chains;
  const ChainTimes &times;
  llvm::DenseMap<Block *, Measured> measured;
  /// The work of the items of the body that is measured, and the time of each
  /// way.
  std::vector<Cost> work;
  Cost mostWork = 0;
  llvm::DenseMap<const ChainRoute *, Cost> ways;
};

} // namespace

//===----------------------------------------------------------------------===//
// Times
//===----------------------------------------------------------------------===//

Cost PathFinder::timeOf(const ChainLinks &links) const {
  Cost sum = 0;
  for (const ChainLink &link : links)
    sum = saturatingAdd(sum, timeOf(link));
  return sum;
}

/// Other items may run while one waits between its parts: then only its work
/// counts.
Cost PathFinder::timeOf(const ChainItem &item, bool isOnPath) const {
  if (item.body) {
    auto inner = measured.find(item.body);
    return inner == measured.end() ? 0 : inner->second.time;
  }
  if (item.group < 0)
    return 0;
  ChainLinks links = chains.linksOf(item.group);
  return isOnPath ? timeOf(links) : timeOf(links.front());
}

const ChainRoute *PathFinder::longestRoute(
    const ChainBody &body, unsigned to,
    llvm::function_ref<bool(const ChainRoute &)> isAsked) const {
  const ChainRoute *longest = nullptr;
  Cost most = 0;
  for (const ChainRoute &route : body.routes[to])
    if (isAsked(route))
      if (Cost time = ways.lookup(&route); time > most) {
        longest = &route;
        most = time;
      }
  return longest;
}

PathFinder::LeastWait PathFinder::leastOf(const Routes &routes) const {
  LeastWait least;
  for (const ChainRoute *route : routes) {
    Cost time = route ? ways.lookup(route) : 0;
    if (time == 0)
      return {};
    least.time = least.routes.empty() ? time : std::min(least.time, time);
    least.routes.push_back(route);
  }
  return least;
}

//===----------------------------------------------------------------------===//
// The longest path
//===----------------------------------------------------------------------===//

void PathFinder::followRoutes(const ChainBody &body, unsigned at,
                              bool fromStart, std::vector<Best> &best) const {
  for (const ChainRoute &route : body.routes[at]) {
    if (route.isCarried ||
        (route.from ? !best[*route.from].isReached : !fromStart))
      continue;
    Cost before = route.from ? best[*route.from].time : 0;
    Cost time = saturatingAdd(before, ways.lookup(&route));
    if (!best[at].isReached || time > best[at].time)
      best[at] = {time, true, &route, {}, std::nullopt};
  }
}

/// Comes to the end of an item by what its second part waits for.
void PathFinder::followRest(const ChainBody &body, unsigned at,
                            std::vector<Best> &best) const {
  for (const ChainRoute &route : body.restRoutes[at]) {
    if (!best[*route.from].isReached)
      continue;
    Cost time = saturatingAdd(best[*route.from].time, ways.lookup(&route));
    if (time > best[at].time)
      best[at] = {time, true, &route, {}, std::nullopt, /*toRest=*/true};
  }
}

void PathFinder::crossGaps(const ChainBody &body, unsigned at, bool fromStart,
                           std::vector<Best> &best) const {
  if (body.gaps.empty())
    return;
  for (const ChainGap &gap : body.gaps[at]) {
    if (gap.from < 0 ? !fromStart : !best[gap.from].isReached)
      continue;
    Crossing crossing{&gap, {}, {}};
    Routes in, out;
    for (unsigned item : gap.first)
      in.push_back(longestRoute(body, item, [&](const ChainRoute &route) {
        return !route.isCarried &&
               (gap.from < 0 ? !route.from : route.from == unsigned(gap.from));
      }));
    for (unsigned item : gap.last)
      out.push_back(longestRoute(body, at, [&](const ChainRoute &route) {
        return !route.isCarried && route.from == item;
      }));
    crossing.in = leastOf(in);
    crossing.out = leastOf(out);
    Cost time = gap.from < 0 ? 0 : best[gap.from].time;
    time = saturatingAdd(time, crossing.in.time);
    time = saturatingAdd(time, crossing.out.time);
    for (unsigned item : gap.work)
      time = saturatingAdd(time, work[item]);
    if (!best[at].isReached || time > best[at].time)
      best[at] = {time, true, nullptr, std::move(crossing), std::nullopt};
  }
}

/// Comes to an item, or to its end, from an earlier one by what a network
/// carries between them: from those items behind which something is made.
void PathFinder::waitForNetworks(const ChainBody &body, unsigned at, bool isEnd,
                                 bool fromStart,
                                 std::vector<Best> &best) const {
  if (times.networks.empty())
    return;
  std::pair<unsigned, bool> end(at, isEnd);
  // What each network carries before the end, by where it begins.
  Carried carried;
  for (const ChainEdge &edge : body.edges) {
    if (!body.endsBefore(edge.window.end(), end))
      continue;
    SmallVector<Cost> &sums = carried[edge.window.begin()];
    sums.resize(times.networks.size());
    for (auto [sum, network] : llvm::zip_equal(sums, times.networks))
      sum = saturatingAdd(sum, times.loadOf({network, edge.edge}) / body.runs);
  }
  llvm::SmallDenseSet<int> froms = {-1};
  for (const auto &[begin, sums] : carried) {
    froms.insert(begin.first);
    if (begin.second)
      for (const ChainRoute &route : body.routes[begin.first])
        if (route.from && !route.isCarried)
          froms.insert(int(*route.from));
  }
  SmallVector<int> sorted(froms.begin(), froms.end());
  llvm::sort(sorted, std::greater<>());
  for (int from : sorted) {
    bool isKnown = from < 0 ? fromStart
                            : from != int(at) && best[from].isReached &&
                                  body.isBefore(from, at) &&
                                  int(at) - from <= kMaxSpan;
    if (!isKnown)
      continue;
    SmallVector<Cost> sums(times.networks.size(), 0);
    for (const auto &[begin, behind] : carried)
      if (body.beginsAfter(from, begin))
        for (auto [sum, time] : llvm::zip_equal(sums, behind))
          sum = saturatingAdd(sum, time);
    Cost before = from < 0 ? 0 : best[from].time;
    auto consider = [&](Cost time, Wait wait) {
      time = saturatingAdd(before, time);
      if (time > best[at].time)
        best[at] = {time, true, nullptr, {}, std::move(wait)};
    };
    for (auto [number, sum] : llvm::enumerate(sums)) {
      consider(sum, {times.networks[number], from, end});
      Cost most = saturatingAdd(saturatingAdd(before, sum), mostWork);
      if (most <= best[at].time)
        continue;
      auto [time, wait] = waitBehindMakers(body, carried, number, from, end);
      consider(time, std::move(wait));
    }
  }
}

/// The longest wait for what some groups between two items make: those of most
/// work.
std::pair<Cost, PathFinder::Wait>
PathFinder::waitBehindMakers(const ChainBody &body, const Carried &carried,
                             size_t number, int from,
                             std::pair<unsigned, bool> end) const {
  SmallVector<std::pair<Cost, int>> makers;
  for (const auto &[begin, sums] : carried) {
    auto [maker, isWithin] = begin;
    if (sums[number] > 0 && !isWithin && maker >= 0 && maker != from &&
        body.isBefore(from, maker) && body.isBefore(maker, end.first) &&
        body.items[maker].group >= 0)
      makers.push_back({work[maker], maker});
  }
  llvm::stable_sort(makers, llvm::on_first(std::greater<>()));
  Wait longest{times.networks[number], from, end};
  Cost sum = 0, most = 0;
  size_t count = 0;
  for (auto [i, each] : llvm::enumerate(makers)) {
    auto [head, maker] = each;
    sum = saturatingAdd(sum, carried.at({maker, false})[number]);
    if (saturatingAdd(sum, head) <= most)
      continue;
    most = saturatingAdd(sum, head);
    longest.head = head;
    count = i + 1;
  }
  for (auto [head, maker] : ArrayRef(makers).take_front(count))
    longest.makers.push_back(maker);
  return {most, std::move(longest)};
}

PathFinder::Path PathFinder::longestPath(const ChainBody &body,
                                         std::optional<unsigned> first,
                                         unsigned last) const {
  std::vector<Best> best(last + 1);
  for (unsigned at = first.value_or(0); at <= last; ++at) {
    bool isFirst = first ? at == *first : body.before[at].none();
    if (!isFirst && first && !body.isBefore(int(*first), at))
      continue;
    best[at].isReached = isFirst;
    if (!first || !isFirst) {
      followRoutes(body, at, /*fromStart=*/!first, best);
      crossGaps(body, at, /*fromStart=*/!first, best);
      best[at].isReached |= !first;
      waitForNetworks(body, at, /*isEnd=*/false, !first, best);
    }
    if (!best[at].isReached)
      continue;
    best[at].time =
        saturatingAdd(best[at].time, timeOf(body.items[at], /*isOnPath=*/true));
    if (!first || !isFirst) {
      followRest(body, at, best);
      waitForNetworks(body, at, /*isEnd=*/true, !first, best);
    }
  }
  Path path;
  path.time = best[last].time;
  for (int at = int(last); at >= 0; at = best[at].before()) {
    if (!best[at].isInstead())
      path.items.push_back(at);
    if (best[at].route)
      path.routes.push_back(best[at].route);
    if (best[at].crossing.gap)
      path.crossings.push_back(best[at].crossing);
    if (best[at].wait)
      path.waits.push_back(*best[at].wait);
  }
  return path;
}

/// Paths over what one iteration hands to the next: to the item that waits for
/// it, or to whichever runs first.
void PathFinder::iterate(const ChainBody &body, Measured &found) const {
  auto isCarried = [](const ChainRoute &route) { return route.isCarried; };
  auto consider = [&](Path path, LeastWait back) {
    Cost time = saturatingAdd(saturatingMultiply(path.time, body.count),
                              saturatingMultiply(back.time, body.count - 1));
    if (time > found.time)
      found = {time, std::move(path), std::move(back)};
  };
  Path whole = found.path;
  Routes toFirst;
  for (unsigned item = 0; item < body.items.size(); ++item) {
    const ChainRoute *route = longestRoute(body, item, isCarried);
    if (llvm::is_contained(body.first, item))
      toFirst.push_back(route);
    if (route)
      consider(longestPath(body, item, *body.last), leastOf({route}));
  }
  // What networks carry from the beginning may be carried meanwhile.
  bool waitsAtFirst =
      llvm::any_of(whole.waits, [](const Wait &wait) { return wait.from < 0; });
  if (LeastWait back = leastOf(toFirst); back.time > 0 && !waitsAtFirst)
    consider(whole, std::move(back));
}

void PathFinder::measure(Block *block) {
  const ChainBody &body = chains.bodyOf(block);
  if (body.items.empty())
    return;
  work.clear();
  ways.clear();
  for (const ChainItem &item : body.items)
    work.push_back(timeOf(item, /*isOnPath=*/false));
  mostWork = *llvm::max_element(work);
  for (const auto *ofItems : {&body.routes, &body.restRoutes})
    for (const std::vector<ChainRoute> &routes : *ofItems)
      for (const ChainRoute &route : routes)
        ways[&route] = timeOf(route.links);
  Measured found;
  found.path = longestPath(body, std::nullopt, body.items.size() - 1);
  found.time = saturatingMultiply(found.path.time, body.count);
  if (body.last)
    iterate(body, found);
  measured[block] = std::move(found);
}

//===----------------------------------------------------------------------===//
// Chains
//===----------------------------------------------------------------------===//

void PathFinder::collect(const ChainItem &item, int64_t runs, bool isOnPath,
                         std::optional<unsigned> network, Chain &chain) const {
  if (item.body)
    return collect(item.body, network, chain);
  if (item.group < 0)
    return;
  ChainLinks links = chains.linksOf(item.group);
  if (!isOnPath)
    links.truncate(1);
  collect(links, runs, chain);
}

/// Takes off what so many links, each up to `least`, count more than one.
static void discountOthers(Cost least, size_t links, int64_t runs,
                           Chain &chain) {
  auto others = int64_t(links - 1);
  chain.constant -= saturatingMultiply(saturatingMultiply(least, others), runs);
}

/// The links that all ways have in common count whole, the others of each way
/// up to the shortest.
void PathFinder::collect(const LeastWait &wait, int64_t runs,
                         Chain &chain) const {
  if (wait.routes.empty())
    return;
  ChainLinks common = wait.routes.front()->links;
  llvm::erase_if(common, [&](const ChainLink &link) {
    return !llvm::all_of(wait.routes, [&](const ChainRoute *route) {
      return llvm::is_contained(route->links, link);
    });
  });
  collect(common, runs, chain);
  Cost least = wait.time - timeOf(common);
  for (const ChainRoute *route : wait.routes) {
    Cost left = least;
    for (const ChainLink &link : route->links) {
      Cost most = std::min(left, timeOf(link));
      if (most == 0 || llvm::is_contained(common, link))
        continue;
      chain.capped[{link, most}] += runs;
      left -= most;
    }
  }
  discountOthers(least, wait.routes.size(), runs, chain);
}

/// Some maker runs first, whichever: each counts up to the least.
void PathFinder::collectHead(const ChainBody &body, const Wait &wait,
                             Chain &chain) const {
  if (wait.head == 0)
    return;
  for (int maker : wait.makers) {
    ChainLink link = {ChainLink::Kind::Group, unsigned(body.items[maker].group),
                      0};
    chain.capped[{link, wait.head}] += body.runs;
  }
  discountOthers(wait.head, wait.makers.size(), body.runs, chain);
}

void PathFinder::collect(Block *block, std::optional<unsigned> network,
                         Chain &chain) const {
  const ChainBody &body = chains.bodyOf(block);
  auto known = measured.find(block);
  if (known == measured.end())
    return;
  const Measured &found = known->second;
  const Path &path = found.path;
  for (unsigned number : path.items)
    collect(body.items[number], body.runs, /*isOnPath=*/true, network, chain);
  for (const ChainRoute *route : path.routes)
    collect(route->links, body.runs, chain);
  for (const Crossing &crossing : path.crossings) {
    collect(crossing.in, body.runs, chain);
    collect(crossing.out, body.runs, chain);
    for (unsigned number : crossing.gap->work)
      collect(body.items[number], body.runs, /*isOnPath=*/false, network,
              chain);
  }
  for (const Wait &wait : path.waits)
    collectHead(body, wait, chain);
  for (const ChainEdge &edge : body.edges)
    for (const Wait &wait : path.waits)
      if (wait.counts(body, edge.window))
        chain.loads[{network.value_or(wait.network), edge.edge}] += 1;
  collect(found.back, body.runs - body.runs / body.count, chain);
}

Chain PathFinder::collect(std::optional<unsigned> network) const {
  Chain chain;
  collect(chains.bodies.front().first, network, chain);
  // Links that take no time in any plan do not matter.
  std::erase_if(chain.links, [&](const auto &each) {
    return !times.links.count(each.first);
  });
  return chain;
}

std::vector<Chain> PathFinder::find() {
  if (chains.bodies.empty())
    return {Chain()};
  for (auto &[block, body] : llvm::reverse(chains.bodies))
    measure(block);
  std::vector<Chain> found = {collect(std::nullopt)};
  if (!found.front().loads.empty())
    for (unsigned network : times.networks)
      if (Chain chain = collect(network); chain != found.front())
        found.push_back(std::move(chain));
  return found;
}

ChainFinder::ChainFinder(const Graph &graph, const LinkEdges &edges,
                         ChainRules rules)
    : bodies(std::make_unique<ChainBodies>(graph, edges, rules)) {}

ChainFinder::~ChainFinder() = default;

std::vector<Chain> ChainFinder::longest(const ChainTimes &times) const {
  return PathFinder(*bodies, times).find();
}

bool shardc::readsUpdatedBuffers(const Graph &graph) {
  return llvm::any_of(graph.values, [](const GraphValue &value) {
    auto part = Value(value.value).getDefiningOp<shd::PartOp>();
    return !value.uses.empty() && part && shd::updateBefore(part);
  });
}

Cost shardc::lengthOf(const Chain &chain, const ChainTimes &times) {
  auto timeOf = [&](const ChainLink &link) {
    auto it = times.links.find(link);
    return it == times.links.end() ? 0 : it->second.of(times.assignment);
  };
  Cost sum = 0;
  for (auto [link, runs] : chain.links)
    sum = saturatingAdd(sum, saturatingMultiply(timeOf(link), runs));
  for (auto [link, runs] : chain.capped)
    sum = saturatingAdd(
        sum, saturatingMultiply(std::min(timeOf(link.link), link.most), runs));
  for (auto [load, weight] : chain.loads)
    sum = saturatingAdd(sum, saturatingMultiply(times.loadOf(load), weight));
  return sum + chain.constant;
}
