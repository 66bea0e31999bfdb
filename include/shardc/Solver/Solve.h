//===- Solve.h - Best assignment with a proven bound ----------*- C++ -*-===//

#ifndef SHARDC_SOLVER_SOLVE_H
#define SHARDC_SOLVER_SOLVE_H

#include "shardc/Solver/Problem.h"
#include <atomic>
#include <functional>

namespace shardc::solver {

/// Incumbent and bound while a search goes on.
struct SearchProgress {
  std::optional<Cost> cost;
  std::optional<Cost> bound;
};

struct Options {
  /// Wall-clock budget; none: only the deterministic work limits apply.
  std::optional<double> timeLimitSeconds;
  /// Assignments to start from; those that are not allowed do not matter.
  std::vector<std::vector<Label>> starts;
  /// A gap of this part of the cost is as good as none.
  double tolerance = 0;
  /// Table entries that may be looked at, about; as in `Solution::work`.
  double maxWork = std::numeric_limits<double>::infinity();
  /// Times the usual work, and the usual states of a search at once.
  double effort = 1;
  /// Only assignments that cost less are of interest: where there is none, that
  /// is proven as Status::Infeasible.
  std::optional<Cost> cutoff = {};
  /// Any assignment that costs less than the cutoff is as good as the best.
  bool anyBelowCutoff = false;
  /// Prices of memory to start from, as `Solution::multipliers` of a problem
  /// with the same points; empty: none.
  std::vector<double> multipliers = {};
  /// Where none that fits is found, the least memory is looked for, which is
  /// not counted as work.
  bool findsLeastPeak = true;
  /// The best so far is returned soon after this becomes true.
  const std::atomic<bool> *interrupted = nullptr;
  /// Called whenever something improved.
  std::function<void(const SearchProgress &)> progress = {};
};

enum class Status {
  /// The bound equals the cost.
  Optimal,
  /// An assignment that fits, with a proven bound.
  Feasible,
  /// Proven: no assignment avoids forbidden choices and fits in memory.
  Infeasible,
  /// Nothing found that fits and no proof that nothing does.
  Unknown,
};

struct Solution {
  Status status = Status::Unknown;
  /// The best assignment that fits. If none was found: one of the least
  /// overflow found (if any avoids the forbidden choices), so that users can
  /// be told how much is missing.
  std::vector<Label> assignment;
  Cost cost = 0;
  /// Never above the optimum, in exact integers.
  Cost bound = 0;
  int64_t peak = 0;
  /// If none was found that fits: no assignment has a lower peak.
  int64_t peakBound = 0;
  /// Shadow price of memory at each point in cost units per byte; may be empty.
  std::vector<double> multipliers;
  /// Table entries looked at; some billion a second.
  double work = 0;
};

/// Deterministic: work is counted in sweeps and steps unless a time limit cuts.
Solution solve(const Problem &problem, const Options &options = {});

} // namespace shardc::solver

#endif // SHARDC_SOLVER_SOLVE_H
