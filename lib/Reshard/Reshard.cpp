//===- Reshard.cpp - Cheapest sequence of collectives ---------------------===//
//
// Dijkstra's algorithm over the layouts of a tensor. Graphs are shared by
// tensors with the same divisibility, prices by those with the same bytes too;
// one search serves all targets of a source and goes only as far as asked.
//
//===----------------------------------------------------------------------===//

#include "shardc/Reshard/Reshard.h"
#include "LayoutGraph.h"
#include "LayoutSpace.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"
#include <cassert>
#include <cmath>
#include <deque>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>

using namespace shardc;
using namespace shardc::reshard;

static Picoseconds addTimes(Picoseconds a, Picoseconds b) {
  Picoseconds sum;
  if (llvm::AddOverflow(a, b, sum))
    return std::numeric_limits<Picoseconds>::max();
  return sum;
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

namespace {
/// A set of layouts to search that many pairs of layouts share.
struct SharedSpace {
  AxisSet axes = 0, partial = 0;
  DimList padded;

  bool operator<(const SharedSpace &other) const {
    return std::tie(axes, partial, padded) <
           std::tie(other.axes, other.partial, other.padded);
  }
};

/// Layouts to search on a mesh of many axes: by the axes that move together, as
/// far as the number of layouts asks for it.
struct JoinedSpace {
  AxisSuccessors successors;
  /// Axes that split no dimension, those of them that are not partial either,
  /// and those that may be partial.
  AxisSet unplaced = 0, idle = 0, partial = 0;
  /// Dimensions that one of the layouts splits.
  DimSet dims = 0;
  DimList padded;

  bool operator<(const JoinedSpace &other) const {
    return std::tie(successors, unplaced, idle, partial, dims, padded) <
           std::tie(other.successors, other.unplaced, other.idle, other.partial,
                    other.dims, other.padded);
  }
  bool operator==(const JoinedSpace &other) const = default;
};

struct JoinedHash {
  size_t operator()(const JoinedSpace &joined) const {
    return llvm::hash_combine(
        llvm::hash_combine_range(joined.successors.begin(),
                                 joined.successors.end()),
        joined.unplaced, joined.idle, joined.partial, joined.dims);
  }
};
} // namespace

struct shardc::ReshardTables {
  explicit ReshardTables(const Mesh &mesh) : mesh(mesh) {}
  ReshardTables(const ReshardTables &) = delete;
  ReshardTables &operator=(const ReshardTables &) = delete;

  LayoutGraph &graph(std::vector<Layout> layouts, const DimList &padded);
  /// The graph of all layouts of the space that divide the shape.
  LayoutGraph &graph(const TensorShape &shape, const SharedSpace &shared);

  Mesh mesh;
  PermutationTable permutations;
  /// Costs of permutations of one byte: they are proportional to the bytes.
  std::vector<std::optional<CollectiveCost>> unitPermuteCosts;

private:
  std::map<std::pair<DimList, std::vector<Layout>>,
           std::unique_ptr<LayoutGraph>>
      graphs;
  /// By the space and, for each dimension, what the axes have in common with
  /// its extent: that says which of them divide it.
  std::map<std::pair<SharedSpace, std::vector<int64_t>>, LayoutGraph *> known;
};

LayoutGraph &ReshardTables::graph(const TensorShape &shape,
                                  const SharedSpace &shared) {
  int64_t devices = mesh.groupSize(shared.axes);
  std::vector<int64_t> common;
  for (int64_t extent : shape.extents)
    common.push_back(std::gcd(extent, devices));
  LayoutGraph *&entry = known[{shared, std::move(common)}];
  if (!entry)
    entry = &graph(LayoutSpace::ofAxes(shape.rank(), shared.axes,
                                       shared.partial, shared.padded)
                       .enumerate(mesh, shape),
                   shared.padded);
  return *entry;
}

LayoutGraph &ReshardTables::graph(std::vector<Layout> layouts,
                                  const DimList &padded) {
  std::unique_ptr<LayoutGraph> &graph = graphs[{padded, layouts}];
  if (!graph)
    graph = std::make_unique<LayoutGraph>(mesh, permutations,
                                          std::move(layouts), padded);
  return *graph;
}

namespace {

//===----------------------------------------------------------------------===//
// Prices of moves
//===----------------------------------------------------------------------===//

/// On meshes of more axes than that, and of tensors with more layouts than that
/// on them, axes that stay together move together. So a search takes as long as
/// on a mesh in which they are one axis, and finds the same sequences.
constexpr unsigned kMaxSeparateAxes = 3;
constexpr double kMaxJoinedLayouts = 400;
/// Most layouts of such a search where no axis stays in its place.
constexpr double kMaxScatteredLayouts = 2000;
/// The same of a search for many pairs.
constexpr double kMaxBlockLayouts = 5000;

/// The search compares integral femtoseconds, exact up to 2^53 (9 s), with a
/// few added for each step. Sequences whose exact times are equal may differ by
/// the rounding of their steps, half a femtosecond each; the addition makes the
/// one with fewer steps win nevertheless.
constexpr double kStepFemtoseconds = 4;

struct Price {
  double femtoseconds = 0;
  Picoseconds picoseconds = 0;
  /// Physical networks that it occupies, one bit each.
  uint64_t occupies = 0;
};

/// Prices single moves, each combination of kind, axes and bytes once.
class Pricer {
public:
  Pricer(const CollectiveModel &model, ReshardTables &tables)
      : model(model), tables(tables) {}

  /// V of docs/CostModel.md#4-collectives.
  double groupBytes(const Edge &edge, double fromBytes, double toBytes) const;
  CollectiveCost cost(const Edge &edge, double groupBytes);
  Price price(const Edge &edge, double groupBytes);
  const CollectiveModel &collectives() const { return model; }

  const Mesh &mesh() const { return model.mesh(); }
  bool isOptimistic() const { return model.isOptimistic(); }

private:
  const CollectiveCost &unitPermuteCost(const Edge &edge);

  const CollectiveModel &model;
  ReshardTables &tables;
  /// By kind and axes, and by the bits of V.
  llvm::DenseMap<std::pair<uint64_t, uint64_t>, Price> prices;
};
} // namespace

double Pricer::groupBytes(const Edge &edge, double fromBytes,
                          double toBytes) const {
  switch (edge.kind) {
  case CollectiveKind::AllGather:
  case CollectiveKind::AllSlice:
    return std::max(fromBytes, toBytes);
  case CollectiveKind::AllToAll:
    return static_cast<double>(mesh().groupSize(edge.axes)) *
           std::max(fromBytes, toBytes);
  case CollectiveKind::ReduceScatter:
  case CollectiveKind::AllReduce:
  case CollectiveKind::CollectivePermute:
    return fromBytes;
  case CollectiveKind::ToHost:
  case CollectiveKind::FromHost:
  case CollectiveKind::HaloExchange:
  case CollectiveKind::HaloReduce:
    break; // no sequence has them
  }
  llvm_unreachable("unknown collective");
}

const CollectiveCost &Pricer::unitPermuteCost(const Edge &edge) {
  auto &costs = tables.unitPermuteCosts;
  if (edge.permutation >= costs.size())
    costs.resize(edge.permutation + 1);
  std::optional<CollectiveCost> &cost = costs[edge.permutation];
  if (!cost)
    cost = tables.permutations[edge.permutation].cost(model, /*localBytes=*/1);
  return *cost;
}

static Price priceOf(const CollectiveCost &cost) {
  double seconds = cost.seconds();
  Price price{std::nearbyint(seconds * 1e15) + kStepFemtoseconds,
              toPicoseconds(seconds)};
  for (unsigned network : cost.occupies)
    price.occupies |= uint64_t(1) << network;
  return price;
}

CollectiveCost Pricer::cost(const Edge &edge, double bytes) {
  if (edge.kind != CollectiveKind::CollectivePermute)
    return model.cost(edge.kind, axisList(edge.axes), bytes);
  return unitPermuteCost(edge).timesBytes(bytes);
}

Price Pricer::price(const Edge &edge, double bytes) {
  uint64_t what = uint64_t(edge.kind) << 32 | edge.axes;
  if (edge.kind == CollectiveKind::CollectivePermute)
    what = uint64_t(edge.kind) << 32 | edge.permutation;
  auto [entry, isNew] =
      prices.try_emplace({what, llvm::bit_cast<uint64_t>(bytes)});
  if (isNew)
    entry->second = priceOf(cost(edge, bytes));
  return entry->second;
}

//===----------------------------------------------------------------------===//
// Shortest paths
//===----------------------------------------------------------------------===//

namespace {

/// A graph with the bytes and prices of one tensor, or of several that agree.
class PricedGraph {
public:
  PricedGraph(LayoutGraph &graph, Pricer &pricer, const TensorShape &shape)
      : graph(graph), pricer(pricer), routed(shape.routed),
        pricesOf(graph.size()) {
    for (unsigned node = 0; node < graph.size(); ++node)
      bytesOf.push_back(shape.localBytes(pricer.mesh(), graph.layout(node)));
  }

  double bytes(unsigned node) const { return bytesOf[node]; }
  CollectiveCost cost(unsigned source, const Edge &edge) {
    double volume = groupBytes(source, edge);
    const AxisList *experts = routedAxes(source, edge);
    return experts ? pricer.collectives().slotsCost(axisList(edge.axes), volume,
                                                    *experts, *routed)
                   : pricer.cost(edge, volume);
  }
  /// Prices of the edges of `node`, in their order.
  llvm::ArrayRef<Price> prices(unsigned node) {
    std::optional<std::vector<Price>> &prices = pricesOf[node];
    if (!prices) {
      prices.emplace();
      for (const Edge &edge : graph.edges(node))
        prices->push_back(price(node, edge));
    }
    return *prices;
  }

  LayoutGraph &graph;
  Pricer &pricer;

private:
  double groupBytes(unsigned source, const Edge &edge) const {
    return pricer.groupBytes(edge, bytes(source), bytes(edge.target));
  }
  const AxisList *routedAxes(unsigned source, const Edge &edge) const;
  Price price(unsigned source, const Edge &edge) {
    return routedAxes(source, edge)
               ? priceOf(cost(source, edge))
               : pricer.price(edge, groupBytes(source, edge));
  }

  std::optional<RoutedBlocks> routed;
  std::vector<double> bytesOf;
  std::vector<std::optional<std::vector<Price>>> pricesOf;
};

const AxisList *PricedGraph::routedAxes(unsigned source,
                                        const Edge &edge) const {
  return routed && edge.kind == CollectiveKind::AllToAll
             ? shardc::routedAxes(*routed, graph.layout(source),
                                  graph.layout(edge.target))
             : nullptr;
}

using Path = llvm::SmallVector<EdgeIndex, 4>;

/// The cheapest paths from one node, or to it. Steps count in every edge's
/// price, so that along a path nodes become final in order, free moves
/// included. Of equally cheap paths the choice does not depend on the
/// direction.
class PathTree {
public:
  enum class Paths { FromRoot, ToRoot };

  PathTree(PricedGraph &priced, unsigned root, Paths paths)
      : priced(priced), root(root), paths(paths), labels(priced.graph.size()) {
    labels[root].femtoseconds = 0;
    queue.push({0, 0, root});
  }

  /// Between the root and `node`. Empty if that is the root, nothing if there
  /// is no path.
  std::optional<Path> path(unsigned node);
  /// The price of the path to a node that has one.
  ReshardPrice price(unsigned node);

private:
  struct Label {
    double femtoseconds = std::numeric_limits<double>::infinity();
    /// The edge between the node and the next one on the way to the root.
    EdgeIndex next;
    uint16_t steps = 0;
    bool isFinal = false;
  };
  /// Time, steps, node; the cheapest on top.
  using Entry = std::tuple<double, unsigned, unsigned>;

  void settleUntil(unsigned node);
  void relax(unsigned node);
  void relax(unsigned node, EdgeIndex candidate, unsigned next);
  Path pathOf(unsigned node) const;
  bool breaksTie(EdgeIndex candidate, unsigned node, unsigned next) const;
  const Edge &edge(EdgeIndex edge) const {
    return priced.graph.edges(edge.source)[edge.edge];
  }

  PricedGraph &priced;
  unsigned root;
  Paths paths;
  std::vector<Label> labels;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue;
};
} // namespace

std::optional<Path> PathTree::path(unsigned node) {
  settleUntil(node);
  if (!labels[node].isFinal)
    return std::nullopt;
  return pathOf(node);
}

Path PathTree::pathOf(unsigned node) const {
  Path path;
  while (node != root) {
    EdgeIndex next = labels[node].next;
    path.push_back(next);
    node = paths == Paths::FromRoot ? next.source : edge(next).target;
  }
  if (paths == Paths::FromRoot)
    std::reverse(path.begin(), path.end());
  return path;
}

void PathTree::settleUntil(unsigned node) {
  while (!labels[node].isFinal && !queue.empty()) {
    unsigned nearest = std::get<2>(queue.top());
    queue.pop();
    if (labels[nearest].isFinal)
      continue;
    labels[nearest].isFinal = true;
    relax(nearest);
  }
}

/// A lower bound on the memory of any sequence of collectives, whatever the
/// prices: which one is the cheapest differs from binding to binding.
static ReshardMemory leastMemory(int64_t fromBytes, int64_t toBytes) {
  ReshardMemory least;
  least.peakBytes = std::max(fromBytes, toBytes);
  least.resultBytes = least.extraPeakBytes = least.madeBytes = toBytes;
  return least;
}

/// A sequence that takes the time of `step` more.
static void addPrice(ReshardPrice &price, const Price &step) {
  price.picoseconds = addTimes(price.picoseconds, step.picoseconds);
  for (uint64_t left = step.occupies; left != 0; left &= left - 1) {
    unsigned network = llvm::countr_zero(left);
    if (price.occupied.size() <= network)
      price.occupied.resize(network + 1);
    price.occupied[network] =
        addTimes(price.occupied[network], step.picoseconds);
  }
}

ReshardPrice PathTree::price(unsigned node) {
  settleUntil(node);
  assert(labels[node].isFinal && "there is a path");
  ReshardPrice price;
  Path steps = pathOf(node);
  for (EdgeIndex step : steps) {
    addPrice(price, priced.prices(step.source)[step.edge]);
    price.memory.add(edge(step).kind, wholeBytes(priced.bytes(step.source)),
                     wholeBytes(priced.bytes(edge(step).target)));
  }
  if (priced.pricer.isOptimistic() && !price.memory.isView())
    price.memory =
        leastMemory(wholeBytes(priced.bytes(steps.front().source)),
                    wholeBytes(priced.bytes(edge(steps.back()).target)));
  return price;
}

void PathTree::relax(unsigned node) {
  if (paths == Paths::ToRoot) {
    for (EdgeIndex candidate : priced.graph.edgesTo(node))
      relax(candidate.source, candidate, node);
    return;
  }
  llvm::ArrayRef<Edge> edges = priced.graph.edges(node);
  for (unsigned i = 0; i < edges.size(); ++i)
    relax(edges[i].target, {node, i}, node);
}

/// From `node`, `candidate` leads to `next` on the way to the root.
void PathTree::relax(unsigned node, EdgeIndex candidate, unsigned next) {
  Label &label = labels[node];
  if (label.isFinal)
    return;
  double time = labels[next].femtoseconds +
                priced.prices(candidate.source)[candidate.edge].femtoseconds;
  unsigned steps = labels[next].steps + 1;
  auto current = std::tuple(label.femtoseconds, unsigned(label.steps));
  if (current < std::tuple(time, steps))
    return;
  bool isCheaper = std::tuple(time, steps) < current;
  if (!isCheaper && !breaksTie(candidate, node, next))
    return;
  label.femtoseconds = time;
  label.steps = steps;
  label.next = candidate;
  if (isCheaper)
    queue.push({time, steps, node});
}

/// The order of the sorted lists of two sets.
static int compareAxes(AxisSet a, AxisSet b) {
  if (a == b)
    return 0;
  AxisSet first = (a ^ b) & -(a ^ b);
  // The lists agree below `first`. The one that has it goes on with a smaller
  // axis than the other, unless the other ends there.
  if (a & first)
    return (b & ~(first - 1)) == 0 ? 1 : -1;
  return (a & ~(first - 1)) == 0 ? -1 : 1;
}

/// Whether the path of `node` through `candidate` goes before the one known, of
/// equal price and length: by kinds, then axes, then layouts.
bool PathTree::breaksTie(EdgeIndex candidate, unsigned node,
                         unsigned next) const {
  Path fresh = pathOf(next);
  fresh.insert(paths == Paths::FromRoot ? fresh.end() : fresh.begin(),
               candidate);
  Path known = pathOf(node);
  for (auto [a, b] : llvm::zip_equal(fresh, known))
    if (edge(a).kind != edge(b).kind)
      return edge(a).kind < edge(b).kind;
  for (auto [a, b] : llvm::zip_equal(fresh, known))
    if (int order = compareAxes(edge(a).axes, edge(b).axes))
      return order < 0;
  for (auto [a, b] : llvm::zip_equal(fresh, known))
    if (edge(a).target != edge(b).target)
      return edge(a).target < edge(b).target;
  return false;
}

//===----------------------------------------------------------------------===//
// The planner
//===----------------------------------------------------------------------===//

namespace {

/// The searches in one priced graph, by source and by target.
struct Search {
  explicit Search(PricedGraph &priced)
      : priced(priced), trees(priced.graph.size()),
        treesTo(priced.graph.size()) {}

  PathTree &treeFrom(unsigned source);
  PathTree &treeTo(unsigned target);
  Path path(unsigned source, unsigned target);
  ReshardPrice price(unsigned source, unsigned target, bool toTarget);
  ReshardPrice price(const Layout &from, const Layout &to, bool toTarget) {
    return price(*priced.graph.find(from), *priced.graph.find(to), toTarget);
  }

  PricedGraph &priced;
  std::vector<std::unique_ptr<PathTree>> trees, treesTo;
};

using LayoutPair = std::pair<Layout, Layout>;

struct PairHash {
  size_t operator()(const LayoutPair &pair) const {
    return llvm::hash_combine(hash_value(pair.first), hash_value(pair.second));
  }
};

struct ShapeHash {
  size_t operator()(const TensorShape &shape) const {
    return hash_value(shape);
  }
};

/// Cached searches for one shape. Its maps are never iterated, since their
/// order depends on hashes.
struct ShapeEntry {
  /// The searches over axes that are joined.
  std::map<JoinedSpace, Search *> joined;
  /// Those of blocks of axes, some of which may be partial.
  std::map<std::pair<AxisSuccessors, AxisSet>, Search *> ofBlocks;
  /// And those in which axes stay in their place, too.
  std::map<std::pair<JoinedSpace, Layout>, Search *> anchored;
  /// The search over all axes of the mesh without padding, where it exists.
  Search *full = nullptr;
  std::map<SharedSpace, Search *> shared;
  std::unordered_map<LayoutPair, Search *, PairHash> single;
  std::unordered_map<LayoutPair, ReshardPlan, PairHash> plans;
};
} // namespace

PathTree &Search::treeFrom(unsigned source) {
  std::unique_ptr<PathTree> &tree = trees[source];
  if (!tree)
    tree =
        std::make_unique<PathTree>(priced, source, PathTree::Paths::FromRoot);
  return *tree;
}

PathTree &Search::treeTo(unsigned target) {
  std::unique_ptr<PathTree> &tree = treesTo[target];
  if (!tree)
    tree = std::make_unique<PathTree>(priced, target, PathTree::Paths::ToRoot);
  return *tree;
}

Path Search::path(unsigned source, unsigned target) {
  std::optional<Path> path = treeFrom(source).path(target);
  assert(path && "to reduce, gather and slice everything is always possible");
  return std::move(*path);
}

/// By the tree of the target, or of the source.
ReshardPrice Search::price(unsigned source, unsigned target, bool toTarget) {
  return toTarget ? treeTo(target).price(source)
                  : treeFrom(source).price(target);
}

struct ReshardPlanner::Cache {
  Cache(const CollectiveModel &model, std::shared_ptr<ReshardTables> shared);

  const Mesh &mesh() const { return pricer.mesh(); }
  bool fits(unsigned rank, AxisSet axes, AxisSet partial) const;
  std::optional<SharedSpace> sharedSpace(const TensorShape &shape,
                                         const Layout &from,
                                         const Layout &to) const;
  std::vector<Layout> pairLayouts(const TensorShape &shape, const Layout &from,
                                  const Layout &to) const;
  Search *makeSearch(const TensorShape &shape, LayoutGraph &graph, bool mayPad);
  Search *makeSearch(const TensorShape &shape, const LayoutSpace &space,
                     const DimList &padded) {
    return makeSearch(shape,
                      tables->graph(space.enumerate(mesh(), shape), padded),
                      /*mayPad=*/!padded.empty());
  }
  bool hasManyLayouts(unsigned rank) const;
  LayoutSpace joinedLayouts(unsigned rank, const JoinedSpace &joined) const;
  LayoutSpace anchoredLayouts(const JoinedSpace &joined, const Layout &from,
                              const Layout &to) const;
  JoinedSpace joinedSpace(const AxisLinks &from, const AxisLinks &to,
                          DimList padded) const;
  Search *findJoined(const TensorShape &shape, ShapeEntry &entry,
                     const JoinedSpace &joined);
  Search *findAnchored(const TensorShape &shape, ShapeEntry &entry,
                       const JoinedSpace &joined, const Layout &from,
                       const Layout &to);
  Search *findOfBlocks(const TensorShape &shape, ShapeEntry &entry,
                       const AxisSuccessors &together, AxisSet partial);
  void blockPrices(const TensorShape &shape, llvm::ArrayRef<Layout> from,
                   llvm::ArrayRef<Layout> to, const AxisBlocks &blocks,
                   std::vector<std::optional<ReshardPrice>> &prices);
  void joinedPrices(const TensorShape &shape, llvm::ArrayRef<Layout> from,
                    llvm::ArrayRef<Layout> to, bool toTargets,
                    std::vector<std::optional<ReshardPrice>> &prices);
  Search &findSearch(const TensorShape &shape, ShapeEntry &entry,
                     const Layout &from, const Layout &to);

  std::shared_ptr<ReshardTables> tables;
  Pricer pricer;
  /// Axes of more than one device that tensors may lie on.
  AxisSet wideAxes = 0;
  std::vector<std::unique_ptr<PricedGraph>> pricedGraphs;
  std::vector<std::unique_ptr<Search>> searches;
  /// By graph and bits of the tensor's bytes: where nothing is padded, these
  /// say what every node takes.
  llvm::DenseMap<std::pair<LayoutGraph *, uint64_t>, Search *> searchOfBytes;
  std::unordered_map<TensorShape, ShapeEntry, ShapeHash> shapes;
};

ReshardPlanner::Cache::Cache(const CollectiveModel &model,
                             std::shared_ptr<ReshardTables> shared)
    : tables(shared ? std::move(shared)
                    : std::make_shared<ReshardTables>(model.mesh())),
      pricer(model, *tables) {
  for (unsigned axis = 0; axis < mesh().size(); ++axis)
    if (mesh().axes[axis].size > 1 && !mesh().axes[axis].isStages)
      wideAxes |= axisBit(axis);
}

bool ReshardPlanner::Cache::fits(unsigned rank, AxisSet axes,
                                 AxisSet partial) const {
  return LayoutSpace::ofAxes(rank, axes, partial, {}).count() <= kMaxLayouts;
}

/// All axes if there are few enough; else those that the layouts use, and
/// others in mesh order while they fit.
std::optional<SharedSpace>
ReshardPlanner::Cache::sharedSpace(const TensorShape &shape, const Layout &from,
                                   const Layout &to) const {
  AxisSet axes = from.used() | to.used();
  AxisSet all = axes | wideAxes;
  DimList padded = paddedDims(mesh(), shape, from, to);
  if (fits(shape.rank(), all, all))
    return SharedSpace{all, all, std::move(padded)};
  if (!fits(shape.rank(), axes, from.partial))
    return std::nullopt;
  for (AxisIndex axis : axisList(all & ~axes))
    if (fits(shape.rank(), axes | axisBit(axis), from.partial))
      axes |= axisBit(axis);
  return SharedSpace{axes, from.partial, std::move(padded)};
}

/// Whether axes are joined before tensors of that rank are searched.
bool ReshardPlanner::Cache::hasManyLayouts(unsigned rank) const {
  return llvm::popcount(wideAxes) > int(kMaxSeparateAxes) &&
         LayoutSpace::ofAxes(rank, wideAxes, 0, {}).count() > kMaxJoinedLayouts;
}

JoinedSpace ReshardPlanner::Cache::joinedSpace(const AxisLinks &from,
                                               const AxisLinks &to,
                                               DimList padded) const {
  AxisSet used = from.sharded | from.partial | to.sharded | to.partial;
  return {axesTogether(wideAxes, from, to),
          wideAxes & ~(from.sharded | to.sharded),
          wideAxes & ~used,
          from.partial,
          from.dims | to.dims,
          std::move(padded)};
}

/// The layouts that place only `axes`, joined as far as they can be, on
/// dimensions that one of the two layouts splits.
static LayoutSpace joinedWithin(unsigned rank, AxisSet axes,
                                const JoinedSpace &joined) {
  AxisSuccessors successors = joined.successors;
  for (AxisIndex axis = 0; axis < kMaxMeshAxes; ++axis)
    if (!(axes & axisBit(successors[axis])))
      successors[axis] = axis;
  LayoutSpace space = LayoutSpace::joined(rank, axes, successors,
                                          joined.partial, joined.padded);
  space.dims = joined.dims;
  return space;
}

/// Axes are joined one by one, those that neither layout places last, until few
/// enough layouts are left. If all are and it does not suffice, dimensions that
/// neither layout splits stay whole, and then axes that neither uses stay idle.
LayoutSpace
ReshardPlanner::Cache::joinedLayouts(unsigned rank,
                                     const JoinedSpace &joined) const {
  AxisSuccessors successors;
  for (AxisIndex axis = 0; axis < kMaxMeshAxes; ++axis)
    successors[axis] = axis;
  auto spaceOf = [&](AxisSet axes) {
    return LayoutSpace::joined(rank, axes, successors, joined.partial,
                               joined.padded);
  };
  LayoutSpace space = spaceOf(wideAxes);
  AxisList order = axisList(wideAxes & ~joined.unplaced);
  order.append(axisList(wideAxes & joined.unplaced));
  for (AxisIndex axis : order) {
    if (space.count() <= kMaxJoinedLayouts)
      return space;
    successors[axis] = joined.successors[axis];
    space = spaceOf(wideAxes);
  }
  if (space.count() > kMaxJoinedLayouts)
    space.dims = joined.dims;
  return space.count() <= kMaxJoinedLayouts
             ? space
             : joinedWithin(rank, wideAxes & ~joined.idle, joined);
}

/// The search between layouts whose axes are joined so; null if there are too
/// many layouts.
Search *ReshardPlanner::Cache::findJoined(const TensorShape &shape,
                                          ShapeEntry &entry,
                                          const JoinedSpace &joined) {
  auto [known, isNew] = entry.joined.try_emplace(joined, nullptr);
  if (!isNew)
    return known->second;
  LayoutSpace space = joinedLayouts(shape.rank(), joined);
  if (space.count() <= kMaxJoinedLayouts)
    known->second = makeSearch(shape, space, joined.padded);
  return known->second;
}

/// The layouts that keep the major axes that both have in a dimension; all that
/// are joined where that does not make them few.
LayoutSpace ReshardPlanner::Cache::anchoredLayouts(const JoinedSpace &joined,
                                                   const Layout &from,
                                                   const Layout &to) const {
  Layout common = commonPrefix(from, to);
  LayoutSpace space = joinedWithin(
      from.rank(), wideAxes & ~joined.idle & ~common.sharded(), joined);
  space.fixed = std::move(common.dims);
  return space.count() <= kMaxJoinedLayouts
             ? space
             : joinedLayouts(from.rank(), joined);
}

/// The same for two layouts whose search has too many.
Search *ReshardPlanner::Cache::findAnchored(const TensorShape &shape,
                                            ShapeEntry &entry,
                                            const JoinedSpace &joined,
                                            const Layout &from,
                                            const Layout &to) {
  Layout common = commonPrefix(from, to);
  common.partial = 0;
  auto [known, isNew] =
      entry.anchored.try_emplace({joined, std::move(common)}, nullptr);
  if (!isNew)
    return known->second;
  LayoutSpace space = anchoredLayouts(joined, from, to);
  if (space.count() <= kMaxScatteredLayouts)
    known->second = makeSearch(shape, space, joined.padded);
  return known->second;
}

/// Layouts between two that use too many axes for a search over all of them.
std::vector<Layout> ReshardPlanner::Cache::pairLayouts(const TensorShape &shape,
                                                       const Layout &from,
                                                       const Layout &to) const {
  bool isSearched = !hasManyLayouts(shape.rank());
  for (bool fixCommon : {false, true}) {
    LayoutSpace space = LayoutSpace::between(
        from, to, paddedDims(mesh(), shape, from, to), fixCommon);
    if (isSearched && space.count() <= kMaxLayouts)
      return space.enumerate(mesh(), shape);
  }
  Layout reduced = from;
  reduced.partial = to.partial;
  std::vector<Layout> layouts = {from, reduced, commonPrefix(from, to), to};
  llvm::sort(layouts);
  layouts.erase(llvm::unique(layouts), layouts.end());
  return layouts;
}

Search *ReshardPlanner::Cache::makeSearch(const TensorShape &shape,
                                          LayoutGraph &graph, bool mayPad) {
  Search *unshared = nullptr;
  uint64_t bytes = llvm::bit_cast<uint64_t>(shape.globalBytes());
  bool isShared = !mayPad && !shape.routed;
  Search *&search = isShared ? searchOfBytes[{&graph, bytes}] : unshared;
  if (search)
    return search;
  pricedGraphs.push_back(std::make_unique<PricedGraph>(graph, pricer, shape));
  searches.push_back(std::make_unique<Search>(*pricedGraphs.back()));
  return search = searches.back().get();
}

Search &ReshardPlanner::Cache::findSearch(const TensorShape &shape,
                                          ShapeEntry &entry, const Layout &from,
                                          const Layout &to) {
  if (entry.full && entry.full->priced.graph.find(from) &&
      entry.full->priced.graph.find(to))
    return *entry.full;
  std::optional<SharedSpace> space;
  if (!hasManyLayouts(shape.rank())) {
    space = sharedSpace(shape, from, to);
  } else {
    JoinedSpace joined = joinedSpace(AxisLinks(from), AxisLinks(to),
                                     paddedDims(mesh(), shape, from, to));
    Search *search = findJoined(shape, entry, joined);
    if (!search)
      search = findAnchored(shape, entry, joined, from, to);
    if (search)
      return *search;
  }
  if (!space) {
    Search *&search = entry.single[{from, to}];
    if (!search)
      search =
          makeSearch(shape,
                     tables->graph(pairLayouts(shape, from, to),
                                   paddedDims(pricer.mesh(), shape, from, to)),
                     /*mayPad=*/true);
    return *search;
  }
  Search *&search = entry.shared[*space];
  if (!search)
    search = makeSearch(shape, tables->graph(shape, *space),
                        /*mayPad=*/!space->padded.empty());
  if (space->axes == wideAxes && space->partial == wideAxes &&
      space->padded.empty())
    entry.full = search;
  return *search;
}

ReshardPlanner::ReshardPlanner(const CollectiveModel &model,
                               std::shared_ptr<ReshardTables> tables)
    : theModel(model),
      cache(std::make_unique<Cache>(model, std::move(tables))) {}

ReshardPlanner::~ReshardPlanner() = default;

const std::shared_ptr<ReshardTables> &ReshardPlanner::tables() const {
  return cache->tables;
}

/// False if `to` has partial sums that `from` lacks: no collective makes them.
static bool isPossible(const Layout &from, const Layout &to) {
  return (to.partial & ~from.partial) == 0;
}

/// The nodes of layouts; nothing for those that the graph lacks.
static std::vector<std::optional<unsigned>>
nodesOf(const LayoutGraph &graph, llvm::ArrayRef<Layout> layouts) {
  std::vector<std::optional<unsigned>> nodes;
  for (const Layout &layout : layouts)
    nodes.push_back(graph.find(layout));
  return nodes;
}

std::vector<std::optional<ReshardPrice>>
ReshardPlanner::prices(const TensorShape &shape, llvm::ArrayRef<Layout> from,
                       llvm::ArrayRef<Layout> to, const AxisBlocks &blocks) {
  std::vector<std::optional<ReshardPrice>> result(from.size() * to.size());
  if (result.empty())
    return result;
  ShapeEntry &entry = cache->shapes[shape];
  // Sources often come again with other targets: their trees are worth more.
  bool toTargets = 4 * to.size() < from.size();
  if (cache->hasManyLayouts(shape.rank())) {
    if (!blocks.empty())
      cache->blockPrices(shape, from, to, blocks, result);
    cache->joinedPrices(shape, from, to, toTargets, result);
    return result;
  }
  // Most pairs are of one graph: its nodes are looked up once.
  Search &common = cache->findSearch(shape, entry, from.front(), to.front());
  LayoutGraph &graph = common.priced.graph;
  bool isFull = &common == entry.full;
  std::vector<std::optional<unsigned>> sources = nodesOf(graph, from),
                                       targets = nodesOf(graph, to);
  for (size_t i = 0; i < from.size(); ++i)
    for (size_t j = 0; j < to.size(); ++j) {
      std::optional<ReshardPrice> &price = result[i * to.size() + j];
      if (!isPossible(from[i], to[j]))
        continue;
      if (from[i] == to[j]) {
        price.emplace();
      } else if (isFull && sources[i] && targets[j]) {
        price = common.price(*sources[i], *targets[j], toTargets);
      } else {
        price = cache->findSearch(shape, entry, from[i], to[j])
                    .price(from[i], to[j], toTargets);
      }
    }
  return result;
}

namespace {
/// Searches of one matrix of prices, and the nodes that its layouts have in
/// each.
struct JoinedSearch {
  /// Null: each pair has its own.
  Search *search = nullptr;
  std::vector<std::optional<unsigned>> sources, targets;
};
} // namespace

/// The search of all layouts that keep axes together, without padding; null if
/// there are too many.
Search *ReshardPlanner::Cache::findOfBlocks(const TensorShape &shape,
                                            ShapeEntry &entry,
                                            const AxisSuccessors &together,
                                            AxisSet partial) {
  auto [known, isNew] =
      entry.ofBlocks.try_emplace({together, partial}, nullptr);
  if (!isNew)
    return known->second;
  LayoutSpace space =
      LayoutSpace::joined(shape.rank(), wideAxes, together, partial, {});
  if (space.count() <= kMaxBlockLayouts)
    known->second = makeSearch(shape, space, {});
  return known->second;
}

/// Prices between layouts that keep blocks together, but for a few targets that
/// divide one (attention sends keys around a ring of one axis): one search
/// serves each target.
void ReshardPlanner::Cache::blockPrices(
    const TensorShape &shape, llvm::ArrayRef<Layout> from,
    llvm::ArrayRef<Layout> to, const AxisBlocks &blocks,
    std::vector<std::optional<ReshardPrice>> &prices) {
  ShapeEntry &entry = shapes[shape];
  AxisSet partial = 0;
  for (const Layout &layout : from)
    partial |= layout.partial;
  std::map<Search *, std::vector<std::optional<unsigned>>> sources;
  for (auto [j, target] : llvm::enumerate(to)) {
    Search *search = findOfBlocks(
        shape, entry, linksWithin(blocks, AxisLinks(target)), partial);
    std::optional<unsigned> node =
        search ? search->priced.graph.find(target) : std::nullopt;
    if (!node)
      continue;
    std::vector<std::optional<unsigned>> &nodes = sources[search];
    if (nodes.empty())
      nodes = nodesOf(search->priced.graph, from);
    for (auto [i, source] : llvm::enumerate(nodes))
      if (source && source != node && isPossible(from[i], target))
        prices[i * to.size() + j] =
            search->price(*source, *node, /*toTarget=*/true);
  }
}

/// Prices where axes are joined, of pairs that have none yet: most share a few
/// searches.
void ReshardPlanner::Cache::joinedPrices(
    const TensorShape &shape, llvm::ArrayRef<Layout> from,
    llvm::ArrayRef<Layout> to, bool toTargets,
    std::vector<std::optional<ReshardPrice>> &prices) {
  ShapeEntry &entry = shapes[shape];
  std::vector<AxisLinks> sources(from.begin(), from.end()),
      targets(to.begin(), to.end());
  std::deque<JoinedSearch> searches;
  std::unordered_map<JoinedSpace, JoinedSearch *, JoinedHash> known;
  auto searchOf = [&](JoinedSpace joined) -> JoinedSearch & {
    JoinedSearch *&entryOf = known[joined];
    if (!entryOf) {
      entryOf = &searches.emplace_back();
      entryOf->search = findJoined(shape, entry, joined);
      entryOf->sources.resize(from.size());
      entryOf->targets.resize(to.size());
    }
    return *entryOf;
  };
  auto nodeOf = [](Search &search, std::optional<unsigned> &node,
                   const Layout &layout) {
    if (!node)
      node = search.priced.graph.find(layout);
    return *node;
  };
  for (size_t i = 0; i < from.size(); ++i)
    for (size_t j = 0; j < to.size(); ++j) {
      std::optional<ReshardPrice> &price = prices[i * to.size() + j];
      if (price || !isPossible(from[i], to[j]))
        continue;
      if (from[i] == to[j]) {
        price.emplace();
        continue;
      }
      JoinedSearch &own = searchOf(joinedSpace(
          sources[i], targets[j], paddedDims(mesh(), shape, from[i], to[j])));
      if (own.search)
        price = own.search->price(nodeOf(*own.search, own.sources[i], from[i]),
                                  nodeOf(*own.search, own.targets[j], to[j]),
                                  toTargets);
      else
        price = findSearch(shape, entry, from[i], to[j])
                    .price(from[i], to[j], toTargets);
    }
}

/// Appends the collective of `edge` from `source`.
static void addStep(PricedGraph &priced, unsigned source, const Edge &edge,
                    ReshardPlan &plan) {
  ReshardStep &step = plan.steps.emplace_back();
  step.kind = edge.kind;
  step.axes = axisList(edge.axes);
  step.from = priced.graph.layout(source);
  step.to = priced.graph.layout(edge.target);
  step.fromBytes = priced.bytes(source);
  step.toBytes = priced.bytes(edge.target);
  step.cost = priced.cost(source, edge);
  plan.picoseconds =
      addTimes(plan.picoseconds, toPicoseconds(step.cost.seconds()));
  plan.wireBytes += step.cost.wireBytes;
  bool inPlace = edge.kind == CollectiveKind::AllReduce;
  plan.peakBytes =
      std::max(plan.peakBytes, step.fromBytes + (inPlace ? 0 : step.toBytes));
}

const ReshardPlan *ReshardPlanner::plan(const TensorShape &shape,
                                        const Layout &from, const Layout &to) {
  if (!isPossible(from, to))
    return nullptr;
  ShapeEntry &entry = cache->shapes[shape];
  auto [known, isNew] = entry.plans.try_emplace({from, to});
  ReshardPlan &plan = known->second;
  if (!isNew)
    return &plan;
  plan.peakBytes = shape.localBytes(theModel.mesh(), from);
  if (from == to)
    return &plan;
  Search &search = cache->findSearch(shape, entry, from, to);
  LayoutGraph &graph = search.priced.graph;
  for (EdgeIndex step : search.path(*graph.find(from), *graph.find(to)))
    addStep(search.priced, step.source, graph.edges(step.source)[step.edge],
            plan);
  return &plan;
}
