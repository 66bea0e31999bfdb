//===- LabelsBelow.h - What cheaper assignments may use -------*- C++ -*-===//
//
// For objectives that are more than one sum: an assignment whose every sum
// stays below a limit can use only labels that are left under each of them.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SOLVER_LABELSBELOW_H
#define SHARDC_SOLVER_LABELSBELOW_H

#include "shardc/Solver/Deadline.h"
#include "shardc/Solver/Problem.h"

namespace shardc::solver {

/// A superset of the labels that are used by any assignment that fits and costs
/// less than `limit`. Goes from `multipliers`, shadow prices at each point of
/// the problem, or from none, and takes the table entries that it looks at off
/// `workLeft`, some at least.
LabelSets labelsBelow(const Problem &problem, Cost limit,
                      std::vector<double> multipliers, double &workLeft,
                      const Deadline &deadline = {});

/// Some variable has no label left: no assignment uses these alone.
bool lacksLabels(const LabelSets &labels);

} // namespace shardc::solver

#endif // SHARDC_SOLVER_LABELSBELOW_H
