//===- Solve.cpp - Best assignment with a proven bound --------------------===//

#include "shardc/Solver/Solve.h"
#include "LeastPeak.h"
#include "Rounds.h"
#include "shardc/Solver/Polish.h"
#include <cassert>

namespace shardc::solver {

/// States and work of a search for any plan below a cutoff.
static constexpr size_t kWidest = 1 << 17;
static constexpr uint64_t kLongest = 10'000'000'000;
/// Times the usual work, at most: more than a day's is as good as none.
static constexpr double kMostEffort = 1e5;

static Solution search(const Problem &problem, const Options &options) {
  assert(!problem.check() && "the problem was not checked");
  Effort effort;
  effort.deadline = Deadline(options.timeLimitSeconds, options.interrupted);
  effort.tolerance = options.tolerance;
  effort.progress = options.progress;
  effort.stopAtPlan = options.anyBelowCutoff;
  double times = std::min(options.effort, kMostEffort);
  effort.searchWork *= times;
  effort.searchWidth = std::min<double>(times * effort.searchWidth, kWidest);
  effort.dualWork = std::min(times * effort.dualWork, options.maxWork);
  if (options.anyBelowCutoff) {
    effort.searchWidth = kWidest;
    effort.searchWork = kLongest;
  }
  effort.searchWork =
      std::min(double(effort.searchWork), options.maxWork / kEntriesPerState);
  if (options.cutoff)
    effort.cutoff = *options.cutoff;
  Rounds rounds(problem, effort);
  for (const std::vector<Label> &start : options.starts)
    rounds.offer(start);
  if (options.multipliers.size() == problem.numPoints)
    rounds.startWith(options.multipliers);
  Solution solution = rounds.run();
  solution.work = rounds.workDone();
  bool noPlan = solution.status == Status::Infeasible ||
                solution.status == Status::Unknown;
  if (!noPlan || !problem.capacity || options.cutoff || !options.findsLeastPeak)
    return solution;

  bool infeasible = solution.status == Status::Infeasible;
  LeastPeak least = findLeastPeak(problem, infeasible, effort.deadline);
  solution.peakBound = least.bound;
  if (least.assignment.empty() && !problem.variables.empty())
    return solution;
  Evaluation now = evaluate(problem, least.assignment);
  if (!infeasible && now.fits) {
    // A plan to start from may be all that was missing.
    Rounds again(problem, effort);
    again.offer(least.assignment);
    return again.run();
  }
  solution.assignment = std::move(least.assignment);
  solution.cost = *now.cost;
  solution.peak = now.peak;
  return solution;
}

Solution solve(const Problem &problem, const Options &options) {
  Solution solution = search(problem, options);
  if (solution.assignment.empty())
    return solution;
  polish(problem, solution.assignment);
  solution.peak = evaluate(problem, solution.assignment).peak;
  return solution;
}

} // namespace shardc::solver
