//===- LayoutGraph.h - Layouts and the collectives between them *- C++ -*-===//
//
// Private to lib/Reshard: which single collective turns one layout into
// another. Without sizes of tensors: one graph serves many shapes.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_RESHARD_LAYOUTGRAPH_H
#define SHARDC_LIB_RESHARD_LAYOUTGRAPH_H

#include "shardc/Reshard/Permutation.h"
#include "shardc/Cost/Collective.h"
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

class LayoutGraph {
public:
  /// `layouts` are distinct and sorted.
  LayoutGraph(const Mesh &mesh, PermutationTable &permutations,
              std::vector<Layout> layouts);

  unsigned size() const { return layouts.size(); }
  const Layout &layout(unsigned node) const { return layouts[node]; }
  std::optional<unsigned> find(const Layout &layout) const;
  /// Found when first asked for.
  llvm::ArrayRef<Edge> edges(unsigned node);

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

  const Mesh &mesh;
  PermutationTable &permutations;
  std::vector<Layout> layouts;
  /// Number of parts of each dimension of each node, node by node.
  std::vector<int64_t> dimParts;
  std::vector<Class> classes;
  std::vector<unsigned> classOf;
  std::unordered_map<Layout, unsigned> index;
  std::vector<std::optional<std::vector<Edge>>> edgesOf;
};

} // namespace shardc::reshard

#endif // SHARDC_LIB_RESHARD_LAYOUTGRAPH_H
