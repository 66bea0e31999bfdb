//===- NetworkSearch.cpp - The best plan of a network ----------*- C++ -*-===//

#include "shardc/Dialect/Shd/Transforms/NetworkSearch.h"
#include "shardc/Dialect/Shd/Transforms/PlanEvaluator.h"

using namespace shardc;
using namespace shardc::shd;

/// Gap of the least `upper` where the work for it is limited.
static constexpr double kUpperTolerance = 1e-3;

/// The plan of the least `upper`, with which every search begins.
static solver::Solution
solveUpper(const PlanNetwork &network, const NetworkSearchOptions &options,
           std::vector<std::vector<solver::Label>> starts) {
  solver::Options how;
  how.starts = std::move(starts);
  how.timeLimitSeconds = options.deadline.remaining();
  how.interrupted = options.deadline.interruption();
  if (options.maxUpperWork) {
    how.maxWork = *options.maxUpperWork;
    how.tolerance = kUpperTolerance;
  }
  if (options.objective == Objective::Upper) {
    how.cutoff = options.cutoff;
    how.progress = options.progress;
  }
  return solver::solve(network.problem, how);
}

SearchedPlan
shardc::shd::searchNetwork(PlanningContext &context, ProgramOp program,
                           const PlanNetwork &network,
                           const NetworkSearchOptions &options,
                           std::vector<std::vector<solver::Label>> starts) {
  SearchedPlan found{solveUpper(network, options, std::move(starts))};
  if (!found.fits() || options.objective == Objective::Upper)
    return found;
  ObjectiveSearchOptions search;
  search.objective = options.objective;
  search.matmulsOverlap = context.machine().collectiveMatmul;
  search.maxWork = options.maxWork;
  search.cutoff = options.cutoff.value_or(search.cutoff);
  search.deadline = options.deadline;
  search.progress = options.progress;
  PlanEvaluator evaluate(context, program, network);
  // A plan that cannot be made explicit stays the one of the least `upper`.
  if (auto better =
          searchObjective(network, found.solution, evaluate, search)) {
    found.solution = std::move(*better);
    found.of = options.objective;
  }
  return found;
}
