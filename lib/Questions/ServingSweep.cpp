//===- ServingSweep.cpp - Sweeps over programs that serve -----------------===//

#include "shardc/Questions/ServingSweep.h"
#include "SweepCells.h"
#include "mlir/IR/Diagnostics.h"
#include "shardc/Frontend/Question.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace shardc;

/// Points that are judged by what was known before them: the same for any
/// number of threads.
static constexpr size_t kRound = 4;

/// Plans points in the order of the least that a request can cost, until no
/// other one can be cheaper than the best that keeps the targets.
static void planPromising(
    std::vector<ServingRow> &rows, TrialRunner &runner,
    llvm::function_ref<void(ServingRow &, std::optional<double>)> plan,
    const ServingTargets &targets) {
  // Prices in USD and in chip-seconds do not compare.
  bool hasPrice = llvm::any_of(rows, [](const ServingRow &row) {
    return row.bound && row.bound->hasPrice;
  });
  std::vector<size_t> order;
  for (size_t i = 0; i < rows.size(); ++i)
    if (!rows[i].bound ||
        (rows[i].bound->hasPrice == hasPrice && rows[i].bound->keeps(targets)))
      order.push_back(i);
  auto costOf = [&](size_t i) {
    return rows[i].bound ? rows[i].bound->cost() : 0;
  };
  llvm::stable_sort(order,
                    [&](size_t a, size_t b) { return costOf(a) < costOf(b); });
  std::optional<double> best;
  for (size_t next = 0; next < order.size();) {
    std::vector<size_t> round;
    for (; next < order.size() && round.size() < kRound; ++next)
      if (!best || costOf(order[next]) < *best)
        round.push_back(order[next]);
    runner.runAlone(round.size(),
                    [&](size_t i) { plan(rows[round[i]], best); });
    for (size_t i : round)
      if (const auto &found = rows[i].outcome.plan;
          found && found->fits() && found->meets(targets))
        best = std::min(best.value_or(found->cost()), found->cost());
  }
}

/// Plans every point, or with `leavesOut` those that may be the answer, each on
/// one thread: what it finds does not depend on the others.
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
    runner.runAlone(rows.size(), [&](size_t i) {
      rows[i].bound = boundServing(program, rows[i].point, single);
    });
    planPromising(
        rows, runner,
        [&](ServingRow &row, std::optional<double> best) {
          ServingOptions how = single;
          how.bound = row.bound;
          how.cutoff = best;
          row.outcome = planServing(program, row.point, how);
          row.bound = row.outcome.ruledOut;
        },
        options.targets);
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
