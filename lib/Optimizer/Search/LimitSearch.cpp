//===- LimitSearch.cpp - Limits on all rows together ----------------------===//

#include "LimitSearch.h"
#include "llvm/ADT/STLExtras.h"

using namespace shardc;
using solver::Label;

/// Part of the remaining work for one limit.
static constexpr double kLimitPart = 0.3;
/// A limit that would close less than this part of the gap is not tried.
static constexpr double kWorthLimit = 0.125;

solver::Solution LimitSearch::findWithin(const Region &region,
                                         Picoseconds limit, double work) {
  solver::Solution none;
  none.status = solver::Status::Infeasible;
  solver::LabelSets labels = weights.labelsWithin(region, limit);
  if (solver::lacksLabels(labels))
    return none;
  int64_t unit = weights.unit();
  PartialProblem partial =
      solver.times.limitRows(weights.integral(weights.weightsOf(region)),
                             labels, solver.candidates.chains(),
                             {.each = limit,
                              .slowdown = solver.options.slowdown,
                              .weighed = limit * unit});
  if (partial.problem.check())
    return {};
  solver::Options how;
  how.anyBelowCutoff = true;
  how.cutoff = limit * unit + 1 - partial.constant;
  how.maxWork = work;
  solver::Solution solution = solver.solveCounted(partial, how);
  // An assignment that does not fit is no plan.
  if (isPlan(solution))
    solution.assignment = partial.expand(solution.assignment);
  else
    solution.assignment.clear();
  return solution;
}

LimitSearch::Scheduled LimitSearch::schedule(const std::vector<Label> &plan) {
  size_t known = solver.candidates.chains().size();
  CandidatePool::Proposal proposal = solver.candidates.propose(plan);
  if (!proposal.candidate)
    return {};
  if (proposal.isNew)
    solver.polish(*proposal.candidate);
  return {proposal.candidate->longestRow(),
          solver.candidates.chains().size() > known};
}

/// The limit that halves the gap below `horizon`; none if what it could prove
/// is not worth it.
std::optional<Picoseconds> LimitSearch::nextLimit(const Region &region,
                                                  Picoseconds horizon) const {
  Picoseconds best = solver.best();
  Picoseconds most = std::min(best, horizon) - 1;
  if (most < region.bound)
    return std::nullopt;
  double gap = double(best - region.bound);
  if (horizon < best && double(most - region.bound) < kWorthLimit * gap)
    return std::nullopt;
  return region.bound + (most - region.bound) / 2;
}

void LimitSearch::narrow(Region &region) {
  narrow(region, /*leave=*/0, /*proves=*/true);
}

/// A plan that keeps the limit is better than the incumbent; or it has a chain
/// that is longer than the limit, which is one more row; or no row tells it
/// from a better one, and only lower limits can still be proven.
void LimitSearch::narrow(Region &region, double leave, bool proves) {
  /// Limits at or above this are not known to be refutable.
  Picoseconds horizon = solver.best();
  while (region.bound < solver.best() && solver.work.remaining() > leave &&
         !solver.work.isTimeUp()) {
    std::optional<Picoseconds> limit = nextLimit(region, horizon);
    if (!limit)
      return;
    solver::Solution found = findWithin(
        region, *limit, kLimitPart * (solver.work.remaining() - leave));
    if (found.status == solver::Status::Infeasible) {
      region.bound = *limit + 1;
      solver.reportProgress(region);
      continue;
    }
    horizon = std::min(horizon, solver.best());
    if (found.status == solver::Status::Unknown) {
      horizon = *limit;
      continue;
    }
    Scheduled plan = schedule(found.assignment);
    solver.reportProgress(region);
    if (plan.longestRow && *plan.longestRow > *limit && plan.addsRows)
      continue;
    if (proves && solver.options.objective == Objective::Scheduled &&
        !solver.candidates.hasNetworkWaits())
      solver.candidates.addNetworkWaits();
    else
      horizon = plan.longestRow ? std::min(*limit, *plan.longestRow) : *limit;
  }
}
