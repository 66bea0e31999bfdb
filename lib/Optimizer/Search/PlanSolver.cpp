//===- PlanSolver.cpp - Candidates from problems of one sum ---------------===//

#include "PlanSolver.h"
#include "llvm/ADT/STLExtras.h"

using namespace shardc;
using llvm::ArrayRef;
using solver::Label;

/// Work units (table entries) for one problem: with the usual budget, in
/// proportion to a larger one, and at most. A weighted mean of a model on two
/// axes is solved within the first.
static constexpr double kSolveWork = 6e7, kMostSolveWork = 3e8;
/// For a problem that is solved to the end, at least this part of what is left.
static constexpr double kExactPart = 0.2;
/// Work units for each entry of a problem's tables, whatever the solver looks
/// at: they are combined, copied, checked and contracted.
static constexpr double kEntryWork = 80;
/// Plans are polished that take at most so many times as long as the incumbent:
/// polishing rarely halves a plan's time.
static constexpr double kWorthPolishing = 2;
/// The same of quick searches: of quick plans of training steps, none that took
/// longer became the best by it.
static constexpr double kQuickWorthPolishing = 1.25;
/// The gap of polishing, in parts of the cost. It is above 0 so that a polish
/// gets the work of an ordinary problem, and not kExactPart of what is left.
static constexpr double kPolishTolerance = 1e-6;
/// Gaps, in values of the incumbent, below which other plans are hardly worth
/// their search.
static constexpr double kNearlyClosed = 1e-3;

bool shardc::isPlan(const solver::Solution &solution) {
  return solution.status == solver::Status::Optimal ||
         solution.status == solver::Status::Feasible;
}

void shardc::keepOnly(std::vector<bool> &labels, Label label) {
  labels.assign(labels.size(), false);
  labels[label] = true;
}

solver::Solution PlanSolver::solveCounted(const PartialProblem &partial,
                                          solver::Options &how) {
  how.timeLimitSeconds = work.until().remaining();
  how.interrupted = work.until().interruption();
  how.findsLeastPeak = false;
  solver::Solution solution = solver::solve(partial.problem, how);
  for (const solver::Table &table : partial.problem.tables)
    work.spend(kEntryWork * table.costs.size());
  work.spend(solution.work);
  return solution;
}

std::optional<PlanSolver::Solved> PlanSolver::solve(PartialProblem &partial,
                                                    double tolerance) {
  if (partial.problem.check() || work.isTimeUp())
    return std::nullopt;
  solver::Options how;
  how.tolerance = tolerance;
  double most = std::min(kMostSolveWork, work.scaled(kSolveWork));
  how.maxWork =
      tolerance > 0 ? most : std::max(most, kExactPart * work.remaining());
  for (const Candidate &candidate : candidates.all())
    if (auto start = partial.restrict(candidate.assignment))
      how.starts.push_back(std::move(*start));
  Solved solved{solveCounted(partial, how), {}};
  mostWork = std::max(mostWork, solved.solution.work);
  if (isPlan(solved.solution))
    solved.proposal =
        candidates.propose(partial.expand(solved.solution.assignment));
  return solved;
}

std::optional<PlanSolver::Solved>
PlanSolver::solveAndPolish(PartialProblem &partial, double tolerance) {
  std::optional<Solved> solved = solve(partial, tolerance);
  if (solved && solved->proposal.isNew)
    polish(*solved->proposal.candidate);
  return solved;
}

void PlanSolver::polish(const Candidate &candidate) {
  double worth = options.isQuick ? kQuickWorthPolishing : kWorthPolishing;
  if (candidate.value > worth * double(best()) || work.isTimeUp())
    return;
  std::vector<bool> none(candidate.assignment.size(), false);
  PartialProblem partial =
      times.combine({}, keepOperations(candidate.assignment, none), {});
  solve(partial, options.isQuick ? kPlanTolerance : kPolishTolerance);
}

solver::LabelSets
PlanSolver::keepOperations(ArrayRef<Label> plan,
                           const std::vector<bool> &touched) const {
  solver::LabelSets labels = times.allLabels();
  for (solver::Variable chunk : network.chunkVariable)
    if (!times.isFree(chunk) && !touched[chunk])
      keepOnly(labels[chunk], plan[chunk]);
  return labels;
}

double PlanSolver::gapOf(const Region &region) const {
  return double(best() - region.bound) / double(best());
}

bool PlanSolver::isNearlyClosed(const Region &region) const {
  return gapOf(region) <= kNearlyClosed;
}

void PlanSolver::reportProgress(const Region &region) const {
  if (options.progress)
    options.progress(
        {best(), std::min({region.bound, region.outside, best()})});
}
