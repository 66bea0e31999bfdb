//===- LeastPeak.h - Assignments that use little memory -------*- C++ -*-===//

#ifndef SHARDC_LIB_SOLVER_LEASTPEAK_H
#define SHARDC_LIB_SOLVER_LEASTPEAK_H

#include "shardc/Solver/Deadline.h"
#include "shardc/Solver/Problem.h"

namespace shardc::solver {

/// Without regard to cost, the assignment of least peak that was found, or
/// nothing if all that were found are forbidden. It fits into the capacity of
/// the problem, which must have one, if that was possible; only if not, peaks
/// between are tried. `knownTooLow` says that nothing fits.
std::optional<std::vector<Label>>
findLeastPeak(const Problem &problem, bool knownTooLow, Deadline deadline);

} // namespace shardc::solver

#endif // SHARDC_LIB_SOLVER_LEASTPEAK_H
