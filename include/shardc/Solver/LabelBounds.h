//===- LabelBounds.h - What assignments with a label cost -----*- C++ -*-===//
//
// For objectives that are more than one sum: an assignment whose every sum
// stays below a limit can use only labels whose bounds under each of them are
// below it.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SOLVER_LABELBOUNDS_H
#define SHARDC_SOLVER_LABELBOUNDS_H

#include "shardc/Solver/Deadline.h"
#include "shardc/Solver/Problem.h"

namespace shardc::solver {

/// By variable and label.
using LabelBounds = std::vector<std::vector<Cost>>;

/// Table entries that may be looked at, some at least: by message passing,
/// which excludes labels, unless it has none, and by exact elimination, which
/// bounds each of them.
struct BoundWork {
  double messages = 0, elimination = 0;

  double sum() const { return messages + elimination; }
};

/// For each label, a lower bound on assignments that use it, fit and cost less
/// than `limit`; kForbidden if there is none. Starts from `multipliers`, shadow
/// prices at each point of the problem, or from none, and takes the entries
/// that it looks at off `left`.
LabelBounds boundLabels(const Problem &problem, Cost limit,
                        std::vector<double> multipliers, BoundWork &left,
                        const Deadline &deadline = {});

/// A superset of the labels that assignments below `limit` use.
LabelSets labelsBelow(const LabelBounds &bounds, Cost limit = kForbidden);

/// Some variable has no label left: no assignment uses these alone.
bool lacksLabels(const LabelSets &labels);

} // namespace shardc::solver

#endif // SHARDC_SOLVER_LABELBOUNDS_H
