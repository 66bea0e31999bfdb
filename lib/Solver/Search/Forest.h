//===- Forest.h - Exact moves of many nodes at once -----------*- C++ -*-===//
//
// A block is a set of nodes whose links among each other form a forest. Given
// the labels of all others, its best labels for any costs of single labels are
// found by dynamic programming from the leaves.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SOLVER_SEARCH_FOREST_H
#define SHARDC_SOLVER_SEARCH_FOREST_H

#include "Random.h"
#include "State.h"

namespace shardc::solver::search {

class Forest {
public:
  /// How nodes are taken from those that a block could grow to.
  enum class Order { Random, Breadth, Depth };

  explicit Forest(const Graph &graph);

  /// Begins an empty block.
  void clear();

  /// Adds a tree from `seed` on, until the block has `size` nodes. A node joins
  /// with at most one neighbour inside; of each node at most `fanout` random
  /// neighbours are looked at.
  void grow(uint32_t seed, size_t size, Order order, uint32_t fanout,
            Random &random);

  llvm::ArrayRef<uint32_t> nodes() const { return members; }

  /// Loads what each label of the block costs with the labels outside as they
  /// are, without what pairs inside cost.
  void load(const State &state);

  /// Costs of labels of the block's k-th node that solve() goes by, to be
  /// changed at will: as loaded, less the least of the node.
  float *target(size_t k) { return targets.data() + offsets[k]; }
  uint32_t label(size_t k) const { return chosen[k]; }

  /// Finds the labels of least sum of targets and pairs.
  void solve();

  /// The change in true cost from choosing the solved labels.
  int64_t change(const State &state) const;

  /// The gain of choosing them, in targets and pairs, over the current labels.
  double targetGain(const State &state) const;

  uint64_t work = 0;

private:
  static constexpr uint32_t kOutside = ~0u;
  struct Candidate {
    uint32_t node;
    const Arc *arc; // from the parent to the node, or null
  };

  bool mayJoin(uint32_t node, const Arc *arc);
  void join(const Candidate &candidate);
  void addCandidates(uint32_t node, uint32_t fanout, Random &random);

  const Graph &graph;
  std::vector<uint32_t> members;
  std::vector<const Arc *> parentArcs; // from the parent, or null
  std::vector<uint32_t> parents;       // positions of parents
  std::vector<uint32_t> offsets;
  std::vector<uint32_t> position; // by node
  std::vector<Candidate> frontier;
  std::vector<int64_t> loaded;
  std::vector<float> targets, sums, message;
  std::vector<uint32_t> chosen;
};

} // namespace shardc::solver::search

#endif // SHARDC_SOLVER_SEARCH_FOREST_H
