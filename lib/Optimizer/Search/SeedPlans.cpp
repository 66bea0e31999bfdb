//===- SeedPlans.cpp - Plans that means and limits do not find ------------===//

#include "SeedPlans.h"

using namespace shardc;

/// Part of `upper` in weights between those of the bound (0) and of `upper`
/// (1).
static constexpr double kUpperShares[] = {0.5, 0.125, 0.03};
/// Work units (table entries) that a problem may have taken for `lower` to try
/// mixed weights, too: without chains, limits find such plans as well.
static constexpr double kQuickWork = 1e8;
/// Plans that leave memory free, at most.
static constexpr unsigned kMaxRooms = 5;
/// Work units (table entries) for all of them.
static constexpr double kRoomWork = 2.5e8;

void shardc::tryMixedWeights(PlanSolver &solver, const WeightBounds &weights,
                             const Region &region) {
  if (solver.options.objective == Objective::Lower &&
      solver.largestWork() > kQuickWork)
    return;
  for (double share : kUpperShares) {
    if (solver.work.isSpent() || solver.work.isTimeUp() ||
        solver.isNearlyClosed(region))
      return;
    PartialProblem partial =
        solver.times.combine(weights.mixWithUpper(region.labels, share),
                             region.labels, {.each = solver.best()});
    solver.solveAndPolish(partial, kPlanTolerance);
  }
}

void shardc::tryWithRoom(PlanSolver &solver, const Region &region) {
  std::optional<int64_t> capacity = solver.network.problem.capacity;
  if (!capacity)
    return;
  double leave = solver.work.remaining() - kRoomWork;
  int64_t room = 0, step = 0;
  for (unsigned i = 0; i < kMaxRooms; ++i) {
    const Candidate &fullest = solver.candidates.incumbent();
    if (fullest.memoryCosts == 0 || fullest.missingBytes <= 0 ||
        solver.work.remaining() < leave || solver.work.isTimeUp())
      return;
    step = i == 0 ? fullest.missingBytes : std::min(step, fullest.missingBytes);
    PartialProblem partial =
        solver.times.combine({}, region.labels, {.each = fullest.value});
    *partial.problem.capacity -= std::min(room + step, *capacity);
    std::optional<PlanSolver::Solved> solved =
        solver.solve(partial, kPlanTolerance);
    if (solved && solved->solution.status != solver::Status::Infeasible)
      room += step;
    else
      step /= 2;
  }
}
