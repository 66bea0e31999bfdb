//===- ServingSweep.cpp - Sweeps over programs that serve -----------------===//

#include "shardc/Questions/ServingSweep.h"
#include "SweepCells.h"
#include "mlir/IR/Diagnostics.h"
#include "shardc/Frontend/Question.h"
#include "llvm/ADT/StringExtras.h"

using namespace shardc;

/// Plans every point, each on one thread: what it finds does not depend on the
/// others.
static std::vector<ServingRow> planPoints(const Grid &grid,
                                          const ServingOptions &options,
                                          const ProgramText &program) {
  std::vector<ServingRow> rows(grid.size());
  ServingOptions single = options;
  single.jobs = 1;
  single.showProgress = false;
  TrialRunner runner([] { return nullptr; },
                     {options.jobs, options.showProgress});
  runner.runAlone(rows.size(), [&](size_t i) {
    rows[i].point = grid.at(i);
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
  std::vector<ServingRow> rows = planPoints(*grid, options, program);
  const ServingTargets &targets = options.targets;
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
