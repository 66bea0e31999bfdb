//===- LeastPeak.cpp - Assignments that use little memory -----------------===//
//
// Bisects the capacity of a problem whose costs are the memory itself, bytes
// times points, so that bounds and searches are led to what is small.
//
//===----------------------------------------------------------------------===//

#include "LeastPeak.h"
#include "Rounds.h"
#include "shardc/Solver/Arithmetic.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc::solver {

static constexpr unsigned kMaxSteps = 64;
/// Bisection ends when this many times the uncertainty is below the peak.
static constexpr int64_t kPrecision = 1000;
/// Of all steps together, and of one step: searches and ascents.
static constexpr uint64_t kMaxWork = 400'000'000, kStepWork = 50'000'000;
static constexpr double kMaxDualWork = 1e10, kDualStepWork = 2e9;

/// Sums of bytes times points stay below this after division.
static constexpr Int128 kMaxVolume = Int128(1) << 56;

static Int128 volumeOf(const std::vector<Usage> &usages) {
  Int128 sum = 0;
  for (const Usage &usage : usages)
    sum += Int128(usage.bytes) * (usage.end - usage.begin);
  return sum;
}

/// A divisor of all volumes that keeps their sums in range.
static Int128 volumeUnit(const Problem &problem) {
  Int128 total = 0;
  for (const VariableData &variable : problem.variables) {
    Int128 most = 0;
    for (const std::vector<Usage> &usages : variable.usages)
      most = std::max(most, volumeOf(usages));
    total += most;
  }
  for (const EdgeUsage &usage : problem.edgeUsages)
    total +=
        Int128(*llvm::max_element(usage.bytes)) * (usage.end - usage.begin);
  return total / kMaxVolume + 1;
}

/// The problem with memory for its costs.
static Problem withVolumes(const Problem &problem) {
  Problem result = problem;
  Int128 unit = volumeUnit(problem);
  for (VariableData &variable : result.variables)
    for (auto [label, cost] : llvm::enumerate(variable.costs))
      if (!isForbidden(cost))
        cost = variable.usages.empty()
                   ? 0
                   : static_cast<Cost>(volumeOf(variable.usages[label]) / unit);
  for (Table &table : result.tables)
    for (Cost &cost : table.costs)
      if (!isForbidden(cost))
        cost = 0;
  for (const EdgeUsage &usage : problem.edgeUsages) {
    Edge &edge = result.edges[usage.edge];
    Table table = result.tables[edge.table];
    for (auto [cost, bytes] : llvm::zip_equal(table.costs, usage.bytes))
      if (!isForbidden(cost))
        cost +=
            static_cast<Cost>(Int128(bytes) * (usage.end - usage.begin) / unit);
    edge.table = result.tables.size();
    result.tables.push_back(std::move(table));
  }
  return result;
}

std::optional<std::vector<Label>>
findLeastPeak(const Problem &problem, bool knownTooLow, Deadline deadline) {
  Problem relaxed = withVolumes(problem);
  uint64_t workLeft = kMaxWork;
  double dualLeft = kMaxDualWork;
  auto solveAt = [&](std::optional<int64_t> capacity) {
    relaxed.capacity = capacity;
    Effort effort;
    effort.searchWork = std::min(workLeft, kStepWork);
    effort.dualWork = std::min(dualLeft, kDualStepWork);
    effort.stopAtPlan = true;
    effort.deadline = deadline;
    Rounds rounds(relaxed, effort);
    Solution solution = rounds.run();
    workLeft -= rounds.searchWorkDone();
    dualLeft -= rounds.dualWorkDone();
    return solution;
  };
  auto isPlan = [](const Solution &solution) {
    return solution.status == Status::Optimal ||
           solution.status == Status::Feasible;
  };

  if (!knownTooLow) {
    Solution fitting = solveAt(problem.capacity);
    if (isPlan(fitting))
      return std::move(fitting.assignment);
  }
  Solution best = solveAt(std::nullopt);
  if (!isPlan(best))
    return std::nullopt;
  int64_t tooLow = *problem.capacity;
  for (unsigned step = 0;
       step < kMaxSteps && best.peak - tooLow > 1 + best.peak / kPrecision &&
       workLeft > 0 && dualLeft > 0 && !deadline.expired();
       ++step) {
    Solution now = solveAt(tooLow + (best.peak - tooLow) / 2);
    if (isPlan(now))
      best = std::move(now);
    else
      tooLow = *relaxed.capacity;
  }
  return std::move(best.assignment);
}

} // namespace shardc::solver
