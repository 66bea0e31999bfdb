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
/// Points at which the least usage is looked for, and searches below the best
/// peak that is left.
static constexpr unsigned kMaxPeakPoints = 4, kMaxDescents = 8;
/// Bisection ends when this many times the uncertainty is below the peak.
static constexpr int64_t kPrecision = 1000;
/// Work of all steps together, and of one step: entries of searches and
/// ascents.
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

/// Sets allowed costs to zero: any allowed assignment will do.
static void clearCosts(std::vector<Table> &tables) {
  for (Table &table : tables)
    for (Cost &cost : table.costs)
      if (!isForbidden(cost))
        cost = 0;
}

/// Adds what pairs use to their costs; tables may be shared by other edges.
template <typename ToCost>
static void addToPairs(Problem &problem, const EdgeUsage &usage,
                       ToCost toCost) {
  Edge &edge = problem.edges[usage.edge];
  Table table = problem.tables[edge.table];
  for (auto [cost, bytes] : llvm::zip_equal(table.costs, usage.bytes))
    if (!isForbidden(cost))
      cost += toCost(bytes);
  edge.table = problem.tables.size();
  problem.tables.push_back(std::move(table));
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
  clearCosts(result.tables);
  for (const EdgeUsage &usage : problem.edgeUsages)
    addToPairs(result, usage, [&](int64_t bytes) {
      return static_cast<Cost>(Int128(bytes) * (usage.end - usage.begin) /
                               unit);
    });
  return result;
}

/// The problem with the memory at one point for its costs.
static Problem withUsageAt(const Problem &problem, uint32_t point) {
  auto isThere = [point](const auto &usage) {
    return usage.begin <= point && point < usage.end;
  };
  Problem result = problem;
  result.capacity = std::nullopt;
  result.fixedUsage.clear();
  result.edgeUsages.clear();
  for (VariableData &variable : result.variables) {
    for (auto [label, cost] : llvm::enumerate(variable.costs)) {
      if (isForbidden(cost))
        continue;
      cost = 0;
      if (!variable.usages.empty())
        for (const Usage &usage : variable.usages[label])
          if (isThere(usage))
            cost += usage.bytes;
    }
    variable.usages.clear();
  }
  clearCosts(result.tables);
  for (const EdgeUsage &usage : problem.edgeUsages)
    if (isThere(usage))
      addToPairs(result, usage, [](int64_t bytes) { return bytes; });
  return result;
}

namespace {
/// Bisects, and remembers the best assignment and what is proven.
class PeakSearch {
public:
  PeakSearch(const Problem &problem, Deadline deadline)
      : problem(problem), relaxed(withVolumes(problem)), deadline(deadline) {}

  LeastPeak run(bool knownTooLow);

private:
  /// Costs are the memory at a point beside `fixed`, if that is given.
  void solve(const Problem &with, std::optional<int64_t> fixed = std::nullopt);
  void solveAt(std::optional<int64_t> capacity) {
    relaxed.capacity = capacity;
    solve(relaxed);
  }
  void boundAtPeaks();
  void bisect();
  void descend();
  bool canGoOn() const {
    return workLeft > 0 && dualLeft > 0 && !deadline.expired() &&
           bound < bestPeak;
  }

  const Problem &problem;
  Problem relaxed;
  Deadline deadline;
  uint64_t workLeft = kMaxWork;
  double dualLeft = kMaxDualWork;
  std::vector<Label> best;
  int64_t bestPeak = std::numeric_limits<int64_t>::max();
  uint32_t bestPoint = 0;
  int64_t bound = 0;
};
} // namespace

/// Keeps what is better than the best, and what is proven.
void PeakSearch::solve(const Problem &with, std::optional<int64_t> fixed) {
  Effort effort;
  effort.searchWork = std::min(workLeft, kStepWork);
  effort.dualWork = std::min(dualLeft, kDualStepWork);
  effort.stopAtPlan = !fixed;
  effort.deadline = deadline;
  Rounds rounds(with, effort);
  Solution solution = rounds.run();
  workLeft -= rounds.searchWorkDone();
  dualLeft -= rounds.dualWorkDone();
  if (solution.status == Status::Optimal ||
      solution.status == Status::Feasible) {
    Evaluation found = evaluate(problem, solution.assignment);
    if (found.peak < bestPeak) {
      best = std::move(solution.assignment);
      bestPeak = found.peak;
      bestPoint = found.peakPoint;
    }
  }
  if (fixed)
    bound = std::max(bound, *fixed + solution.bound);
  if (with.capacity && solution.status == Status::Infeasible)
    bound = std::max(bound, *with.capacity + 1);
}

/// Whatever is chosen, this much is in use where the best assignment peaks.
void PeakSearch::boundAtPeaks() {
  std::vector<uint32_t> tried;
  while (canGoOn() && tried.size() < kMaxPeakPoints &&
         !llvm::is_contained(tried, bestPoint)) {
    tried.push_back(bestPoint);
    int64_t fixed =
        problem.fixedUsage.empty() ? 0 : problem.fixedUsage[bestPoint];
    solve(withUsageAt(problem, bestPoint), fixed);
  }
}

/// A limit at which the search finds nothing counts as too low, proven or not.
void PeakSearch::bisect() {
  int64_t tooLow = std::max(*problem.capacity, bound - 1);
  for (unsigned step = 0; step < kMaxSteps && canGoOn() &&
                          bestPeak - tooLow > 1 + bestPeak / kPrecision;
       ++step) {
    int64_t middle = tooLow + (bestPeak - tooLow) / 2;
    solveAt(middle);
    if (bestPeak > middle)
      tooLow = middle;
    tooLow = std::max(tooLow, bound - 1);
  }
}

/// From the best down, byte by byte if need be, to what is proven.
void PeakSearch::descend() {
  for (unsigned step = 0; step < kMaxDescents && canGoOn(); ++step) {
    int64_t before = bestPeak;
    solveAt(bestPeak - 1);
    if (bestPeak == before)
      return;
  }
}

LeastPeak PeakSearch::run(bool knownTooLow) {
  if (knownTooLow)
    bound = *problem.capacity + 1;
  else
    solveAt(problem.capacity);
  if (bestPeak > *problem.capacity) {
    solveAt(std::nullopt);
    if (best.empty() && !problem.variables.empty())
      return {};
    boundAtPeaks();
    bisect();
    descend();
  }
  return {std::move(best), std::min(bound, bestPeak)};
}

LeastPeak findLeastPeak(const Problem &problem, bool knownTooLow,
                        Deadline deadline) {
  return PeakSearch(problem, deadline).run(knownTooLow);
}

} // namespace shardc::solver
