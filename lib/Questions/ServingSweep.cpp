//===- ServingSweep.cpp - Sweeps over programs that serve -----------------===//

#include "shardc/Questions/ServingSweep.h"
#include "SweepCells.h"
#include "mlir/IR/Diagnostics.h"
#include "shardc/Frontend/Question.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace shardc;

/// Points that are judged by what was known before them: the same for any
/// number of threads. Points in the order of estimates are planned one by one.
static constexpr size_t kRound = 4, kEstimatedRound = 1;
/// Part of the usual work for the choice of each point's mesh: it suffices for
/// two axes.
static constexpr double kMeshWork = 0.05;

namespace {
/// Plans the points of a sweep that may be its answer.
class TargetSweep {
public:
  TargetSweep(std::vector<ServingRow> &rows, const ServingOptions &options,
              const ProgramText &program, TrialRunner &runner)
      : rows(rows), options(options), program(program), runner(runner) {}

  void run();

private:
  void findBounds();
  void makeEstimates();
  void planInOrder();
  void take(llvm::ArrayRef<size_t> planned);

  double boundOf(size_t i) const {
    return rows[i].bound ? rows[i].bound->cost() : 0;
  }
  /// The rank of a point: estimates that keep the targets are first, then
  /// points without one by their bounds, then the other estimates.
  struct Promise {
    bool misses = false, isBound = false;
    double cost = 0;

    auto rank() const { return std::tuple(misses, isBound, cost); }
  };
  Promise promiseOf(size_t i) const;
  bool isOutdone(size_t i) const;

  std::vector<ServingRow> &rows;
  const ServingOptions &options;
  const ProgramText &program;
  TrialRunner &runner;
  /// Those that no bound rules out, and what is estimated of each row.
  std::vector<size_t> open;
  std::vector<std::optional<ServingBound>> estimates;
  /// The cheapest row that keeps the targets, and its cost.
  std::optional<size_t> best;
  double bestCost = 0;
};
} // namespace

void TargetSweep::findBounds() {
  runner.runAlone(rows.size(), [&](size_t i) {
    rows[i].bound = boundServing(program, rows[i].point, options);
  });
  // Prices in USD and in chip-seconds do not compare.
  bool hasPrice = llvm::any_of(rows, [](const ServingRow &row) {
    return row.bound && row.bound->hasPrice;
  });
  for (auto [i, row] : llvm::enumerate(rows))
    if (!row.bound ||
        (row.bound->hasPrice == hasPrice && row.bound->keeps(options.targets)))
      open.push_back(i);
  llvm::stable_sort(
      open, [&](size_t a, size_t b) { return boundOf(a) < boundOf(b); });
}

/// Estimates points in the order of their bounds, until these are beyond what
/// is near the least estimate.
void TargetSweep::makeEstimates() {
  estimates.resize(rows.size());
  std::optional<double> least;
  for (size_t next = 0; next < open.size();) {
    std::vector<size_t> round;
    for (; next < open.size() && round.size() < kRound; ++next)
      if (rows[open[next]].bound &&
          (!least || boundOf(open[next]) < kNearEstimate * *least))
        round.push_back(open[next]);
    runner.runAlone(round.size(), [&](size_t i) {
      const ServingRow &row = rows[round[i]];
      estimates[round[i]] =
          estimateServing(program, row.point, options, *row.bound);
    });
    for (size_t i : round)
      if (estimates[i] && estimates[i]->keeps(options.targets))
        least = std::min(least.value_or(estimates[i]->cost()),
                         estimates[i]->cost());
  }
}

TargetSweep::Promise TargetSweep::promiseOf(size_t i) const {
  const std::optional<ServingBound> &estimate = estimates[i];
  if (!estimate)
    return {/*misses=*/false, /*isBound=*/true, boundOf(i)};
  return {!estimate->keeps(options.targets, kNearEstimate), /*isBound=*/false,
          estimate->cost()};
}

/// True if the row cannot be better than the best one, or by the estimates of
/// both is not.
bool TargetSweep::isOutdone(size_t i) const {
  if (!best || !rows[i].bound)
    return false;
  if (boundOf(i) >= bestCost)
    return true;
  if (!estimates[i] || !estimates[*best])
    return false;
  Promise promise = promiseOf(i);
  return promise.misses ||
         promise.cost > kNearEstimate * estimates[*best]->cost();
}

void TargetSweep::take(llvm::ArrayRef<size_t> planned) {
  for (size_t i : planned) {
    const std::optional<ServingPlan> &found = rows[i].outcome.plan;
    if (!found || !found->fits() || !found->meets(options.targets) ||
        (best && found->cost() >= bestCost))
      continue;
    best = i;
    bestCost = found->cost();
  }
}

void TargetSweep::planInOrder() {
  bool isEstimated = llvm::any_of(
      estimates, [](const auto &estimate) { return estimate.has_value(); });
  size_t most = isEstimated ? kEstimatedRound : kRound;
  llvm::stable_sort(open, [&](size_t a, size_t b) {
    return promiseOf(a).rank() < promiseOf(b).rank();
  });
  for (size_t next = 0; next < open.size();) {
    std::vector<size_t> round;
    for (; next < open.size() && round.size() < most; ++next) {
      if (!isOutdone(open[next]))
        round.push_back(open[next]);
      else if (boundOf(open[next]) < bestCost)
        rows[open[next]].estimate = estimates[open[next]];
    }
    ServingOptions how = options;
    how.showProgress = false;
    if (isEstimated) {
      how.meshWork = kMeshWork;
      how.plan.effort = kQuickEffort;
    }
    if (best)
      how.cutoff = bestCost;
    auto planRow = [&](size_t i) {
      ServingRow &row = rows[i];
      ServingOptions each = how;
      each.bound = row.bound;
      row.outcome = planServing(program, row.point, each);
      row.estimate = row.outcome.unlikely;
      if (!row.estimate)
        row.bound = row.outcome.ruledOut;
      else if (estimates[i])
        row.estimate->firstSeconds =
            std::max(row.estimate->firstSeconds, estimates[i]->firstSeconds);
    };
    // With `mesh auto`, a point keeps all threads busy by itself.
    how.jobs = std::max<size_t>(1, options.jobs / most);
    runner.runAlone(round.size(), [&](size_t i) { planRow(round[i]); });
    take(round);
  }
}

void TargetSweep::run() {
  findBounds();
  makeEstimates();
  planInOrder();
}

/// Plans every point, each on one thread: what it finds does not depend on the
/// others. With `leavesOut`, those that may be the answer.
static std::vector<ServingRow> planPoints(const Grid &grid,
                                          const ServingOptions &options,
                                          const ProgramText &program,
                                          bool leavesOut) {
  std::vector<ServingRow> rows(grid.size());
  ServingOptions single = options;
  single.jobs = 1;
  single.showProgress = false;
  TrialRunner runner([] { return nullptr; },
                     {options.jobs, options.showProgress});
  for (size_t i = 0; i < rows.size(); ++i)
    rows[i].point = grid.at(i);
  if (leavesOut) {
    TargetSweep(rows, options, program, runner).run();
    return rows;
  }
  runner.runAlone(rows.size(), [&](size_t i) {
    rows[i].outcome = planServing(program, rows[i].point, single);
  });
  return rows;
}

Answer shardc::answerServingSweep(llvm::raw_ostream &os,
                                  const Questions &questions,
                                  const ServingOptions &options,
                                  const ProgramText &program,
                                  mlir::MLIRContext *context) {
  std::optional<Grid> grid = readGrid(questions, program, context);
  if (!grid)
    return Answer::WrongQuestion;
  for (size_t axis = 0; axis < grid->numAxes(); ++axis)
    if (!checkMachines(program, context, grid->values(axis)))
      return Answer::WrongMachine;
  const ServingTargets &targets = options.targets;
  // On one machine, all points are wanted as a curve.
  bool leavesOut =
      targets.any() && llvm::is_contained(grid->names(), "hardware");
  std::vector<ServingRow> rows = planPoints(*grid, options, program, leavesOut);
  ServingFrontier frontier = findServingFrontier(rows, targets);
  std::vector<std::string> names = grid->names();
  switch (questions.format) {
  case SweepFormat::Table:
    printServingTable(
        os, questions.file + ": " + llvm::join(questions.sweeps, "; "), names,
        rows, frontier, targets, questions.colour);
    break;
  case SweepFormat::Csv:
    printServingCsv(os, names, rows, frontier);
    break;
  case SweepFormat::Json:
    printServingSweepJson(os, rows, frontier, targets);
    break;
  }
  if (!targets.any() || frontier.chosen)
    return Answer::Printed;
  emitError(mlir::UnknownLoc::get(context))
      << "no point of the sweep that fits keeps the targets";
  return Answer::NoneMeets;
}
