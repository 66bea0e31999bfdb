//===- Incumbent.h - The best plan and what is proven ---------*- C++ -*-===//
//
// Private to the solver: collects assignments and bounds from all steps. Every
// assignment is verified by evaluate() before it counts.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_SOLVER_INCUMBENT_H
#define SHARDC_LIB_SOLVER_INCUMBENT_H

#include "shardc/Solver/Solve.h"

namespace shardc::solver {

class Incumbent {
public:
  using Progress = std::function<void(const SearchProgress &)>;

  /// Only assignments of `problem` that cost less than `costLimit` count.
  /// `progress`, if there is one, is told of improvements.
  Incumbent(const Problem &problem, Cost costLimit, Progress progress)
      : problem(problem), costLimit(costLimit), progress(std::move(progress)) {}

  bool hasPlan() const { return found; }
  /// Only assignments that cost less are of interest.
  Cost upper() const { return found ? best.cost : costLimit; }
  Cost bound() const { return proven; }
  /// The bound meets the best plan, or there is none.
  bool isClosed() const { return proven >= upper(); }

  /// Takes an assignment if it is better than the best; true if it fits.
  bool offer(const std::vector<Label> &assignment);

  /// No assignment that fits costs less than both `value` and upper().
  void raiseBound(Cost value);
  /// Nothing that fits costs less than upper().
  void exhaust() { proven = kForbidden; }

  void setMultipliers(std::vector<double> multipliers) {
    best.multipliers = std::move(multipliers);
  }

  Solution solution() const;

private:
  void reportProgress() const;

  const Problem &problem;
  Cost costLimit;
  Progress progress;
  Solution best; // of least overflow while nothing fits
  Cost proven = -kForbidden;
  bool found = false;
};

} // namespace shardc::solver

#endif // SHARDC_LIB_SOLVER_INCUMBENT_H
