//===- Solve.cpp - Best assignment with a proven bound --------------------===//

#include "shardc/Solver/Solve.h"
#include "LeastPeak.h"
#include "Polish.h"
#include "Rounds.h"
#include <cassert>

namespace shardc::solver {

static Solution search(const Problem &problem, const Options &options) {
  assert(!problem.check() && "the problem was not checked");
  Effort effort;
  effort.deadline = Deadline(options.timeLimitSeconds, options.interrupted);
  effort.tolerance = options.tolerance;
  Rounds rounds(problem, effort);
  for (const std::vector<Label> &start : options.starts)
    rounds.offer(start);
  Solution solution = rounds.run();
  bool noPlan = solution.status == Status::Infeasible ||
                solution.status == Status::Unknown;
  if (!noPlan || !problem.capacity)
    return solution;

  bool infeasible = solution.status == Status::Infeasible;
  std::optional<std::vector<Label>> assignment =
      findLeastPeak(problem, infeasible, effort.deadline);
  if (!assignment)
    return solution;
  Evaluation now = evaluate(problem, *assignment);
  if (!infeasible && now.fits) {
    // A plan to start from may be all that was missing.
    Rounds again(problem, effort);
    again.offer(*assignment);
    return again.run();
  }
  solution.assignment = std::move(*assignment);
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
