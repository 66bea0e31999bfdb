//===- Dive.h - New labels for whole regions ------------------*- C++ -*-===//
//
// Message passing inside a region whose surroundings stay as they are, then
// rounds that fix the nodes whose best label is clearest and pass messages
// again, until all are fixed.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SOLVER_SEARCH_DIVE_H
#define SHARDC_SOLVER_SEARCH_DIVE_H

#include "Random.h"
#include "State.h"

namespace shardc::solver::search {

class Dive {
public:
  explicit Dive(const Graph &graph);

  /// Chooses the nodes nearest to `root`, breadth first.
  void chooseRegion(uint32_t root, size_t size);

  /// Finds labels for the region by costs and `share` of what memory is worth
  /// by label; fixes a part `fraction` of the nodes in each round.
  void run(const State &state, const std::vector<double> &priced, double share,
           double fraction);

  /// The region's nodes in ascending order, and their labels.
  llvm::ArrayRef<uint32_t> nodes() const { return region; }
  uint32_t label(size_t k) const { return chosen[k]; }

  uint64_t work = 0;

private:
  static constexpr uint32_t kOutside = ~0u;

  void load(const State &state, const std::vector<double> &priced,
            double share);
  void pass(bool forward);
  void visit(uint32_t k, bool forward);
  /// Fixes the clearest of the nodes that are open.
  void fixClearest(double fraction);
  void fix(uint32_t k);

  const Graph &graph;
  std::vector<uint32_t> region;
  std::vector<uint32_t> position;             // in the region, by node
  std::vector<std::vector<const Arc *>> open; // to nodes that are not fixed
  std::vector<uint32_t> unfixed;              // positions, ascending
  std::vector<uint32_t> offsets;
  std::vector<float> costs; // per label of the region, padded
  std::vector<float> messages, belief, rest;
  std::vector<float> margins;
  std::vector<uint32_t> chosen;
};

} // namespace shardc::solver::search

#endif // SHARDC_SOLVER_SEARCH_DIVE_H
