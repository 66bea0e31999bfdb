//===- Search.h - Large problems whose difficulty is memory ---*- C++ -*-===//
//
// For networks on which exact elimination does not fit: contraction, prices of
// memory by Lagrangian ascent, large neighbourhoods by dynamic programming on
// forests, and labels removed by bounds. See docs/Solver.md.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SOLVER_SEARCH_H
#define SHARDC_SOLVER_SEARCH_H

#include "shardc/Solver/Solve.h"

namespace shardc::solver {

struct SearchOptions {
  std::optional<double> timeLimitSeconds;
  /// Threads; what is found does not depend on them but for how far it gets.
  unsigned jobs = 1;
  uint64_t seed = 1;
  /// Exact elimination is tried on networks of at most this many labels.
  size_t exactLabels = 4000;
  /// The best so far is returned soon after this becomes true.
  const std::atomic<bool> *interrupted = nullptr;
  /// Called, by the thread that searches, whenever something improved.
  std::function<void(const SearchProgress &)> progress;
};

/// The finite cost of a forbidden pair where costs sum to at most `most`: a
/// power of two, so far above all plans that no other saving outweighs one.
Wide wallAbove(Wide most);

/// Whether a large-scale search can take costs that sum to `most`: it adds up
/// forbidden pairs, in the worst case all, in 64 bits.
bool fitsLargeSearch(Wide most, size_t edges);

/// A solution whose bound may be missing.
struct SearchResult : Solution {
  bool hasBound = false;
};

/// The problem has passed check(), its costs pass fitsLargeSearch(), and it has
/// no memory on pairs. Goes on until the plan is proven optimal, the time is
/// over, or it is interrupted.
SearchResult searchLarge(const Problem &problem, const SearchOptions &options);

} // namespace shardc::solver

#endif // SHARDC_SOLVER_SEARCH_H
