//===- ObjectiveSearch.cpp - Plan search under max-type objectives --------===//

#include "shardc/Optimizer/ObjectiveSearch.h"
#include "Branching.h"
#include "LocalSearch.h"
#include "SeedPlans.h"
#include "llvm/ADT/STLExtras.h"

using namespace shardc;

/// Seconds of a time limit that the usual work takes: longer limits allow more.
static constexpr double kUsualSeconds = 2;
/// Part of all work for small steps from the first plans: of `lower`, where
/// they are most of what finds plans, and of `scheduled`.
static constexpr double kLowerStepsPart = 0.25, kScheduledStepsPart = 0.1;

double shardc::searchWorkFor(std::optional<double> seconds) {
  return kUsualSearchWork * std::max(1.0, seconds.value_or(0) / kUsualSeconds);
}

namespace {
class ObjectiveSearch {
public:
  ObjectiveSearch(const PlanNetwork &network, const EvaluatePlan &evaluate,
                  const ObjectiveSearchOptions &options)
      : solver(network, evaluate, options), weights(solver),
        limits(solver, weights), steps(solver, weights, limits) {}

  std::optional<solver::Solution> run(const solver::Solution &first);

private:
  Region wholeSpace(const solver::Solution &first) const;
  void improveFirst(Region &region);
  void findCandidates(Region &region);
  void closeGap(Region &region);

  /// The rest of the gap is not worth the work of a search that proves nothing.
  bool isEnough(const Region &region) const {
    return !solver.options.proves && solver.isNearlyClosed(region);
  }
  bool isLower() const { return solver.options.objective == Objective::Lower; }

  PlanSolver solver;
  WeightBounds weights;
  LimitSearch limits;
  LocalSearch steps;
};
} // namespace

Region ObjectiveSearch::wholeSpace(const solver::Solution &first) const {
  Region all{solver.times.allLabels()};
  for (const std::vector<bool> &labels : all.labels)
    all.labelBounds.emplace_back(labels.size(), 0);
  // The longest row takes no less than the mean of all resources.
  all.bound =
      std::max(solver.options.bound,
               first.bound / solver::Cost(solver.candidates.numResources()));
  return all;
}

/// The plans of the least means may be far from the best for `lower`: other
/// weights are worth more once there is a better one.
void ObjectiveSearch::improveFirst(Region &region) {
  weights.raiseMany(region, kFirstWeights);
  if (solver.isNearlyClosed(region))
    return;
  Picoseconds before = solver.best();
  steps.improve(region, kLowerStepsPart * solver.work.all());
  if (solver.best() < before)
    weights.raiseByOwn(region);
}

/// Bounds by weights, and candidates of all kinds.
void ObjectiveSearch::findCandidates(Region &region) {
  if (isLower())
    improveFirst(region);
  weights.raiseMany(region, kAllWeights);
  if (solver.options.boundsOnly())
    return;
  tryMixedWeights(solver, weights, region);
  tryWithRoom(solver, region);
  steps.recombine(region);
  if (isEnough(region))
    return;
  size_t known = solver.candidates.all().size();
  tryShardedWeights(solver, weights, region);
  if (solver.candidates.all().size() > known)
    steps.recombine(region);
  weights.raiseByLongest(region);
  if (!isLower() && region.bound < solver.best())
    steps.improve(region, kScheduledStepsPart * solver.work.all());
}

/// Limits, and wider steps where these lead no further, in turn.
void ObjectiveSearch::closeGap(Region &region) {
  do
    limits.narrow(region);
  while (steps.improveFurther(region));
}

std::optional<solver::Solution>
ObjectiveSearch::run(const solver::Solution &first) {
  if (!isLower() && readsUpdatedBuffers(solver.network.graph))
    solver.candidates.addNetworkWaits();
  CandidatePool::Proposal proposal =
      solver.candidates.propose(first.assignment);
  if (!proposal.candidate)
    return std::nullopt;
  // The first is the best of what is known before.
  for (const auto &[i, start] : llvm::enumerate(solver.options.starts))
    if (i == 0 || !solver.work.isTimeUp())
      solver.candidates.propose(start);
  solver.polish(*proposal.candidate);
  Region all = wholeSpace(first);
  if (!solver.work.isTimeUp())
    weights.boundLabels(all,
                        weights.bestWeights(all, kAllWeights.rounds).weights);
  findCandidates(all);
  solver::Cost bound = std::min(all.bound, all.outside);
  if (solver.options.proves) {
    closeGap(all);
    bound = branchAndBound(std::move(all), solver, weights);
  }
  solver::Solution result = first;
  result.work += solver.work.spent();
  result.assignment = solver.candidates.incumbent().assignment;
  result.cost = solver.candidates.incumbent().value;
  result.bound = std::min(bound, result.cost);
  result.status = result.bound == result.cost ? solver::Status::Optimal
                                              : solver::Status::Feasible;
  return result;
}

std::optional<solver::Solution> shardc::searchObjective(
    const PlanNetwork &network, const solver::Solution &first,
    const EvaluatePlan &evaluate, const ObjectiveSearchOptions &options) {
  return ObjectiveSearch(network, evaluate, options).run(first);
}
