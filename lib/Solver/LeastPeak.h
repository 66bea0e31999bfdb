//===- LeastPeak.h - Assignments that use little memory -------*- C++ -*-===//

#ifndef SHARDC_LIB_SOLVER_LEASTPEAK_H
#define SHARDC_LIB_SOLVER_LEASTPEAK_H

#include "shardc/Solver/Deadline.h"
#include "shardc/Solver/Problem.h"

namespace shardc::solver {

struct LeastPeak {
  /// The assignment of least peak among those found; empty if all are
  /// forbidden.
  std::vector<Label> assignment;
  /// Proven: no assignment that is allowed has a lower peak.
  int64_t bound = 0;
};

/// Without regard to cost. The assignment fits into the capacity of the
/// problem, which must have one, if that was possible; only if not, peaks
/// between are tried. `knownTooLow` says that nothing fits.
LeastPeak findLeastPeak(const Problem &problem, bool knownTooLow,
                        Deadline deadline);

} // namespace shardc::solver

#endif // SHARDC_LIB_SOLVER_LEASTPEAK_H
