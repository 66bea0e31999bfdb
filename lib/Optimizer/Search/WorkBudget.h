//===- WorkBudget.h - How much a search may still do ----------*- C++ -*-===//
//
// Work is counted in table entries that solvers look at, not in seconds, so
// that the same program gives the same plan on any machine.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_OPTIMIZER_SEARCH_WORKBUDGET_H
#define SHARDC_LIB_OPTIMIZER_SEARCH_WORKBUDGET_H

#include "shardc/Optimizer/ObjectiveSearch.h"

namespace shardc {

class WorkBudget {
public:
  WorkBudget(double total, solver::Deadline deadline)
      : total(total), left(total), deadline(deadline) {}

  double all() const { return total; }
  /// Negative once more was spent than there was.
  double remaining() const { return left; }
  double spent() const { return total - left; }
  bool isSpent() const { return left <= 0; }
  void spend(double work) { left -= work; }

  /// Work that was chosen for the usual budget, in proportion to this one.
  double scaled(double work) const { return work * total / kUsualSearchWork; }

  bool isTimeUp() const { return deadline.expired(); }
  const solver::Deadline &until() const { return deadline; }

private:
  double total, left;
  solver::Deadline deadline;
};

} // namespace shardc

#endif // SHARDC_LIB_OPTIMIZER_SEARCH_WORKBUDGET_H
