//===- LayoutGraph.cpp - Layouts and the collectives between them ---------===//
//
// At most one kind of collective turns one layout into another in one step;
// which one follows from the axes that the two use.
//
//===----------------------------------------------------------------------===//

#include "LayoutGraph.h"
#include "llvm/ADT/STLExtras.h"

using namespace shardc;
using namespace shardc::reshard;

unsigned PermutationTable::intern(Permutation permutation) {
  auto [entry, isNew] =
      indices.try_emplace(std::move(permutation), permutations.size());
  if (isNew)
    permutations.push_back(&entry->first);
  return entry->second;
}

LayoutGraph::LayoutGraph(const Mesh &mesh, PermutationTable &permutations,
                         std::vector<Layout> layoutsIn,
                         llvm::ArrayRef<unsigned> padded)
    : mesh(mesh), permutations(permutations), layouts(std::move(layoutsIn)),
      edgesOf(layouts.size()) {
  std::map<std::pair<AxisSet, AxisSet>, unsigned> classIndex;
  for (auto [node, layout] : llvm::enumerate(layouts)) {
    index.emplace(layout, node);
    addCuts(layout, padded);
    AxisSet sharded = layout.sharded();
    auto [entry, isNew] = classIndex.try_emplace({sharded, layout.partial},
                                                 unsigned(classes.size()));
    if (isNew)
      classes.push_back({sharded, layout.partial, mesh.groupSize(sharded), {}});
    classes[entry->second].nodes.push_back(node);
    classOf.push_back(entry->second);
  }
}

/// Axes that divide an extent cut it by the number of parts alone.
void LayoutGraph::addCuts(const Layout &layout,
                          llvm::ArrayRef<unsigned> padded) {
  for (auto [dim, list] : llvm::enumerate(layout.dims)) {
    if (!llvm::is_contained(padded, dim)) {
      cuts.push_back(mesh.groupSize(list));
      continue;
    }
    llvm::SmallVector<int64_t, 4> sizes;
    for (AxisIndex axis : list)
      if (mesh.axes[axis].size > 1)
        sizes.push_back(mesh.axes[axis].size);
    cuts.push_back(
        paddedCuts.try_emplace(sizes, paddedCuts.size()).first->second);
  }
}

std::optional<unsigned> LayoutGraph::find(const Layout &layout) const {
  auto entry = index.find(layout);
  if (entry == index.end())
    return std::nullopt;
  return entry->second;
}

//===----------------------------------------------------------------------===//
// Moves
//===----------------------------------------------------------------------===//

static bool isPrefix(const AxisList &prefix, const AxisList &list) {
  return prefix.size() <= list.size() &&
         std::equal(prefix.begin(), prefix.end(), list.begin());
}

/// Every dimension of `longer` is that of `shorter` with axes added at the
/// minor end.
static bool extends(const Layout &shorter, const Layout &longer) {
  for (auto [prefix, list] : llvm::zip_equal(shorter.dims, longer.dims))
    if (!isPrefix(prefix, list))
      return false;
  return true;
}

/// The axes that move if every dimension either loses axes at its minor end or
/// gains some there: then each device exchanges equal parts with every other.
/// Empty if some dimension does both or changes otherwise.
static AxisSet exchangedAxes(const Layout &from, const Layout &to) {
  AxisSet moved = 0;
  for (auto [before, after] : llvm::zip_equal(from.dims, to.dims)) {
    if (isPrefix(after, before))
      moved |= axisSet(llvm::ArrayRef(before).drop_front(after.size()));
    else if (!isPrefix(before, after))
      return 0;
  }
  return moved;
}

/// Axes of the dimensions in which two layouts differ.
static AxisSet differingAxes(const Layout &from, const Layout &to) {
  AxisSet axes = 0;
  for (auto [before, after] : llvm::zip_equal(from.dims, to.dims))
    if (before != after)
      axes |= axisSet(before) | axisSet(after);
  return axes;
}

static bool isSubset(AxisSet part, AxisSet whole) {
  return (part & ~whole) == 0;
}

bool LayoutGraph::samePartsPerDim(unsigned a, unsigned b) const {
  size_t rank = layouts[a].rank();
  auto cut = cuts.begin();
  return std::equal(cut + a * rank, cut + (a + 1) * rank, cut + b * rank);
}

std::optional<Move> LayoutGraph::findMove(unsigned fromNode, unsigned toNode,
                                          const Class &fromClass,
                                          const Class &toClass) const {
  const Layout &from = layouts[fromNode], &to = layouts[toNode];
  AxisSet before = fromClass.sharded, after = toClass.sharded;
  if (fromClass.partial != toClass.partial) {
    AxisSet resolved = fromClass.partial & ~toClass.partial;
    if (before == after && from.dims == to.dims)
      return Move{CollectiveKind::AllReduce, resolved};
    if (after == (before | resolved) && extends(from, to))
      return Move{CollectiveKind::ReduceScatter, resolved};
    return std::nullopt;
  }
  if (before != after && isSubset(after, before) && extends(to, from))
    return Move{CollectiveKind::AllGather, before & ~after};
  if (before != after && isSubset(before, after) && extends(from, to))
    return Move{CollectiveKind::AllSlice, after & ~before};
  if (before == after)
    if (AxisSet moved = exchangedAxes(from, to))
      return Move{CollectiveKind::AllToAll, moved};
  if (fromClass.parts == toClass.parts && samePartsPerDim(fromNode, toNode))
    return Move{CollectiveKind::CollectivePermute, differingAxes(from, to)};
  return std::nullopt;
}

/// Whether any node of one class may have a move to a node of the other.
static bool mayMove(AxisSet before, AxisSet partialBefore, AxisSet after,
                    AxisSet partialAfter, bool sameParts) {
  if (partialBefore == partialAfter)
    return sameParts || isSubset(after, before) || isSubset(before, after);
  if (!isSubset(partialAfter, partialBefore))
    return false;
  return after == before || after == (before | (partialBefore & ~partialAfter));
}

llvm::ArrayRef<Edge> LayoutGraph::edges(unsigned node) {
  std::optional<std::vector<Edge>> &edges = edgesOf[node];
  if (edges)
    return *edges;
  edges.emplace();
  const Class &from = classes[classOf[node]];
  for (const Class &to : classes) {
    if (!mayMove(from.sharded, from.partial, to.sharded, to.partial,
                 from.parts == to.parts))
      continue;
    for (unsigned target : to.nodes) {
      if (target == node)
        continue;
      std::optional<Move> move = findMove(node, target, from, to);
      if (!move)
        continue;
      Edge edge{*move, target};
      if (move->kind == CollectiveKind::CollectivePermute) {
        Permutation permutation(mesh, layouts[node], layouts[target]);
        if (AxisSet changed = permutation.axes())
          edge.axes = changed;
        edge.permutation = permutations.intern(std::move(permutation));
      }
      edges->push_back(edge);
    }
  }
  return *edges;
}

llvm::ArrayRef<EdgeIndex> LayoutGraph::edgesTo(unsigned node) {
  if (edgesToNode.empty()) {
    edgesToNode.resize(size());
    for (unsigned source = 0; source < size(); ++source)
      for (auto [number, edge] : llvm::enumerate(edges(source)))
        edgesToNode[edge.target].push_back({source, unsigned(number)});
  }
  return edgesToNode[node];
}
