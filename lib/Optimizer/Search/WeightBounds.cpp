//===- WeightBounds.cpp - Bounds by weighted means of rows ----------------===//

#include "WeightBounds.h"
#include "shardc/Cost/Schedule.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace shardc;
using solver::Cost;

/// Weights add up to a power of two, at most this: finer ones move no bound of
/// the models by more than their last digits.
static constexpr int64_t kMaxUnit = 1024;
/// Gaps of weighted means, in parts of the mean: a bound at more weights is
/// worth more than the last picosecond at few.
static constexpr double kBoundTolerance = 1e-5, kQuickTolerance = 1e-2;
/// Weights are not solved for whose known plans bound by no more than this part
/// above the region's bound.
static constexpr double kConverged = 1e-3;
/// Weights that are solved for whatever work that takes, and those in a row
/// that may fail to help before the search for weights ends. Of a quick search
/// one gives the bound.
static constexpr unsigned kMinWeights = 2, kQuickBoundWeights = 1,
                          kPatience = 4;
/// By how much the radius in which weights are looked for grows if the last
/// helped, and shrinks if they did not.
static constexpr double kGrowRadius = 2, kShrinkRadius = 0.25;
/// Part of all weights that the resources get in equal shares the second time,
/// half of it the third, and so on: a plan of the least mean then does not take
/// at random what costs nothing.
static constexpr double kEqualPart = 0.05;
/// Labels are pruned once the gap is at most this part of what it was at the
/// last pruning, by weights whose own gap is at most so many times the
/// region's.
static constexpr double kWorthPruning = 0.9, kUsefulGap = 1.3;
/// Work units (table entries) to bound labels: for messages, always, and for
/// exact elimination, in work that the solution took.
static constexpr double kMessageWork = 3e7, kPruneFactor = 8;

/// The largest unit at which sums of costs stay in range, with three times as
/// much again for chains.
static int64_t unitFor(const solver::Problem &problem) {
  solver::Wide most = solver::mostCost(problem);
  int64_t unit = kMaxUnit;
  while (unit > 1 && 4 * most * unit >= solver::kMaxTotal)
    unit /= 2;
  return unit;
}

WeightBounds::WeightBounds(PlanSolver &solver)
    : solver(solver), parts(unitFor(solver.network.problem)) {}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

Rows WeightBounds::weightsOf(const Region &region) const {
  Rows weights = region.weights;
  size_t resources = solver.candidates.numResources();
  if (weights.empty())
    weights.assign(resources, 1 / double(resources));
  // Chains that came later weigh nothing.
  weights.resize(solver.candidates.numRows(), 0);
  return weights;
}

DualGame WeightBounds::bestWeights(const Region &region,
                                   unsigned rounds) const {
  std::vector<const Candidate *> plans =
      solver.candidates.within(region.labels);
  if (plans.empty())
    plans.push_back(&solver.candidates.incumbent());
  DualGame game = playDualGame(plans, weightsOf(region), region.radius, rounds);
  solver.work.spend(game.work);
  return game;
}

/// Of all weights, what hidden collectives cost compute goes to the device and
/// to them: a step takes (1 - part) of any row and part of `upper` at least.
RowWeights WeightBounds::integral(const Rows &weights) const {
  RowWeights result;
  result.collectives = solver.options.slowdown * parts / kSlowdownUnit;
  int64_t ofRows = parts - result.collectives, left = ofRows;
  size_t numNetworks = solver.candidates.numResources() - 1;
  for (auto [row, weight] : llvm::enumerate(llvm::drop_begin(weights))) {
    int64_t rounded =
        std::min<int64_t>(left, std::llround(weight * double(ofRows)));
    left -= rounded;
    if (row < numNetworks) {
      result.networks.push_back(rounded);
      continue;
    }
    const Chain &chain = solver.candidates.chains()[row - numNetworks];
    if (rounded == 0)
      continue;
    for (auto [link, runs] : chain.links)
      result.chain.links[link] += runs * rounded;
    for (auto [load, times] : chain.loads)
      result.chain.loads[load] += times * rounded;
    for (auto [link, runs] : chain.capped)
      result.chain.capped[link] += runs * rounded;
    result.chain.constant += chain.constant * rounded;
  }
  result.device = left + result.collectives;
  return result;
}

RowWeights WeightBounds::mixWithUpper(const solver::LabelSets &labels,
                                      double share) const {
  Rows part(solver.candidates.numRows(), 0);
  // No bound is sought here: the weights are those of the known plans alone.
  if (share < 1)
    part = bestWeights(Region{labels}, kAllWeights.rounds).weights;
  for (double &weight : part)
    weight *= 1 - share;
  RowWeights result = integral(part); // what is left goes to the device
  result.collectives = std::max<int64_t>(result.collectives,
                                         std::llround(share * double(parts)));
  return result;
}

Rows WeightBounds::blendResources(Rows weights, double part) const {
  size_t resources = solver.candidates.numResources();
  for (auto [row, weight] : llvm::enumerate(weights))
    weight =
        (1 - part) * weight + (row < resources ? part / double(resources) : 0);
  return weights;
}

//===----------------------------------------------------------------------===//
// Bounds of regions
//===----------------------------------------------------------------------===//

/// A plan of which one row takes longer than the incumbent is no better.
PartialProblem WeightBounds::meanOf(const Region &region,
                                    const Rows &weights) const {
  Picoseconds best = solver.best();
  return solver.times.combine(integral(weights), region.labels,
                              {.each = best, .weighed = best * parts});
}

void WeightBounds::raise(Region &region, const Rows &weights,
                         double tolerance) {
  if (solver.work.isTimeUp())
    return;
  PartialProblem mean = meanOf(region, weights);
  std::optional<PlanSolver::Solved> solved =
      solver.solveAndPolish(mean, tolerance);
  if (!solved)
    return;
  Cost proven = (solved->solution.bound + mean.constant + parts - 1) / parts;
  if (solved->solution.status == solver::Status::Infeasible)
    proven = solver.best();
  if (proven > region.bound) {
    region.bound = proven;
    region.weights = weights;
  }
  solver.reportProgress(region);
  prune(region, weights, mean, proven, solved->solution);
}

void WeightBounds::raiseByOwn(Region &region) {
  raise(region, weightsOf(region), kBoundTolerance);
}

void WeightBounds::raiseByLongest(Region &region) {
  if (region.bound >= solver.best() || solver.work.isSpent())
    return;
  Rows longest = weighLongest(solver.candidates.incumbent().rows);
  // Whatever is on no chain that waits for networks would be free.
  bool isChain = llvm::is_contained(
      llvm::drop_begin(longest, solver.candidates.numResources()), 1);
  if (!isChain || !solver.candidates.hasNetworkWaits())
    raise(region, longest, /*tolerance=*/0);
}

/// Weights that are solved for whatever work that takes.
unsigned WeightBounds::leastWeights() const {
  return solver.options.boundsOnly() ? kQuickBoundWeights : kMinWeights;
}

void WeightBounds::raiseMany(Region &region, const WeightEffort &effort) {
  double tolerance = solver.options.isQuick ? kQuickTolerance : kBoundTolerance;
  unsigned idle = 0;
  for (unsigned i = 0; i < effort.weights && region.bound < solver.best() &&
                       !solver.work.isTimeUp();
       ++i) {
    if (solver.work.remaining() <= effort.leave * solver.work.all() &&
        i >= leastWeights())
      return;
    DualGame game = bestWeights(region, effort.rounds);
    if (game.mean <= region.bound * (1 + kConverged) && region.bound > 0)
      return;
    Cost last = region.bound;
    raise(region,
          i == 0 ? game.weights : blendResources(game.weights, kEqualPart / i),
          tolerance);
    bool helped = region.bound > last;
    idle = helped ? 0 : idle + 1;
    if (idle == kPatience)
      return;
    // Weights far from any tried are good for the known plans alone.
    region.radius = helped ? std::min(kGrowRadius * region.radius, 1.0)
                           : kShrinkRadius * region.radius;
  }
}

//===----------------------------------------------------------------------===//
// Bounds of labels
//===----------------------------------------------------------------------===//

/// Plans better than the incumbent have a lower mean under any weights, of
/// which `proven` is the least.
void WeightBounds::prune(Region &region, const Rows &weights,
                         const PartialProblem &mean, Cost proven,
                         const solver::Solution &solution) {
  if (solver.options.isQuick)
    return;
  double gap = double(solver.best()) - double(proven);
  if (gap > kUsefulGap * double(solver.best() - region.bound))
    return;
  if (gap <= 0 || gap > kWorthPruning * region.prunedGap)
    return;
  region.prunedGap = gap;
  boundLabels(region, weights, mean, solution.multipliers,
              kPruneFactor * solution.work);
}

void WeightBounds::boundLabels(Region &region, const Rows &weights) {
  if (solver.options.isQuick)
    return;
  PartialProblem mean = meanOf(region, weights);
  if (!mean.problem.check())
    boundLabels(region, weights, mean, {}, /*elimination=*/0);
}

void WeightBounds::boundLabels(Region &region, const Rows &weights,
                               const PartialProblem &mean,
                               const std::vector<double> &multipliers,
                               double elimination) {
  Picoseconds below = solver.best() - 1;
  bool isKnown =
      region.boundedWeights == weights && region.boundedBelow == below;
  solver::BoundWork left{.messages = isKnown ? 0 : kMessageWork,
                         .elimination = elimination};
  double allowed = left.sum();
  region.boundedWeights = weights;
  region.boundedBelow = below;
  mean.raise(region.labelBounds,
             solver::boundLabels(mean.problem,
                                 below * parts + 1 - mean.constant, multipliers,
                                 left, solver.work.until()),
             parts);
  solver.work.spend(allowed - left.sum());
  region.labels = labelsWithin(region, below);
  if (solver::lacksLabels(region.labels))
    region.bound = solver.best();
}

solver::LabelSets WeightBounds::labelsWithin(const Region &region,
                                             Picoseconds limit) const {
  solver::LabelSets result = region.labels;
  for (auto [flags, bounds] : llvm::zip(result, region.labelBounds))
    for (auto [label, bound] : llvm::enumerate(bounds))
      if (bound > limit)
        flags[label] = false;
  return result;
}
