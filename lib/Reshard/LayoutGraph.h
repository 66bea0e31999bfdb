//===- LayoutGraph.h - Layouts and the collectives between them *- C++ -*-===//
//
// Private to lib/Reshard: which single collective turns one layout into
// another. Without sizes of tensors: one graph serves many shapes.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_RESHARD_LAYOUTGRAPH_H
#define SHARDC_LIB_RESHARD_LAYOUTGRAPH_H

#include "shardc/Cost/Collective.h"
#include "shardc/Reshard/Permutation.h"
#include <optional>
#include <unordered_map>

namespace shardc::reshard {

/// One collective.
struct Move {
  CollectiveKind kind;
  AxisSet axes = 0;
};

/// A move to another node.
struct Edge : Move {
  unsigned target = 0;
  /// CollectivePermute: index into the permutations of the planner.
  unsigned permutation = 0;
};

/// Every permutation that occurs, once.
class PermutationTable {
public:
  unsigned intern(Permutation permutation);
  const Permutation &operator[](unsigned index) const {
    return *permutations[index];
  }

private:
  std::map<Permutation, unsigned> indices;
  std::vector<const Permutation *> permutations;
};

/// An edge by its place: `edges(source)[edge]`.
struct EdgeIndex {
  unsigned source = 0;
  unsigned edge = 0;
};

class LayoutGraph {
public:
  /// `layouts` are distinct and sorted. Of a padded dimension the last parts
  /// are shorter, and how its axes follow each other decides where parts begin.
  LayoutGraph(const Mesh &mesh, PermutationTable &permutations,
              std::vector<Layout> layouts, llvm::ArrayRef<unsigned> padded);

  unsigned size() const { return layouts.size(); }
  const Layout &layout(unsigned node) const { return layouts[node]; }
  std::optional<unsigned> find(const Layout &layout) const;
  /// Found when first asked for.
  llvm::ArrayRef<Edge> edges(unsigned node);
  /// The edges to a node. The first question finds all edges of the graph.
  llvm::ArrayRef<EdgeIndex> edgesTo(unsigned node);

private:
  /// Nodes that use the same axes: most pairs of such classes have no moves.
  struct Class {
    AxisSet sharded = 0, partial = 0;
    /// Number of parts of the tensor.
    int64_t parts = 1;
    std::vector<unsigned> nodes;
  };

  std::optional<Move> findMove(unsigned from, unsigned to,
                               const Class &fromClass,
                               const Class &toClass) const;
  bool samePartsPerDim(unsigned a, unsigned b) const;
  void addCuts(const Layout &layout, llvm::ArrayRef<unsigned> padded);

  const Mesh &mesh;
  PermutationTable &permutations;
  std::vector<Layout> layouts;
  /// Where each dimension of each node is cut, node by node: the same number,
  /// the same parts.
  std::vector<int64_t> cuts;
  /// Numbers of the ways in which padded dimensions are cut, by the sizes of
  /// their axes.
  std::map<llvm::SmallVector<int64_t, 4>, int64_t> paddedCuts;
  std::vector<Class> classes;
  std::vector<unsigned> classOf;
  std::unordered_map<Layout, unsigned> index;
  std::vector<std::optional<std::vector<Edge>>> edgesOf;
  std::vector<std::vector<EdgeIndex>> edgesToNode;
};

} // namespace shardc::reshard

#endif // SHARDC_LIB_RESHARD_LAYOUTGRAPH_H
