//===- Incumbent.cpp - The best plan and what is proven -------------------===//

#include "Incumbent.h"

namespace shardc::solver {

bool Incumbent::offer(const std::vector<Label> &assignment) {
  Evaluation now = evaluate(problem, assignment);
  if (!now.cost || *now.cost >= costLimit)
    return false;
  std::pair<Cost, int64_t> quality(*now.cost, now.peak);
  bool better =
      now.fits ? !found || quality < std::pair(best.cost, best.peak)
               : !found && (best.assignment.empty() || now.peak < best.peak);
  if (better) {
    best.assignment = assignment;
    best.cost = *now.cost;
    best.peak = now.peak;
    found = now.fits;
    reportProgress();
  }
  return now.fits;
}

void Incumbent::raiseBound(Cost value) {
  if (value <= proven)
    return;
  proven = value;
  reportProgress();
}

void Incumbent::reportProgress() const {
  if (!progress)
    return;
  SearchProgress now;
  if (found)
    now.cost = best.cost;
  if (proven > -kForbidden)
    now.bound = std::min(proven, upper());
  progress(now);
}

Solution Incumbent::solution() const {
  Solution result = best;
  if (found) {
    result.bound = std::min(proven, best.cost);
    result.status = isClosed() ? Status::Optimal : Status::Feasible;
  } else {
    result.bound = proven;
    result.status = isClosed() ? Status::Infeasible : Status::Unknown;
  }
  return result;
}

} // namespace shardc::solver
