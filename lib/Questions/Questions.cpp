//===- Questions.cpp - Questions about many plans -------------------------===//

#include "shardc/Questions/Questions.h"
#include "SweepCells.h"
#include "mlir/IR/Diagnostics.h"
#include "shardc/Frontend/Question.h"
#include "shardc/Questions/Crossover.h"
#include "shardc/Questions/Evaluator.h"
#include "shardc/Questions/Explain.h"
#include "shardc/Questions/Lint.h"
#include "shardc/Questions/MemoryCurve.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

using namespace shardc;

/// True if every point fails as the program itself does.
static bool isProgramWrong(llvm::ArrayRef<SweepRow> rows, TrialRunner &runner) {
  for (const SweepRow &row : rows)
    if (row.outcome.report || row.outcome.isUntried ||
        row.outcome.error != rows[0].outcome.error ||
        row.outcome.loc != rows[0].outcome.loc)
      return false;
  Outcome written = runner.plan(Variant());
  return !written.report && written.error == rows[0].outcome.error &&
         written.loc == rows[0].outcome.loc;
}

std::optional<Grid> shardc::readGrid(const Questions &questions,
                                     const ProgramText &program,
                                     mlir::MLIRContext *context) {
  std::vector<std::vector<Setting>> axes;
  std::set<std::string> names;
  bool ok = true;
  for (const std::string &text : questions.sweeps) {
    std::optional<std::vector<Setting>> axis =
        readSweep(program, context, text);
    ok &= axis.has_value();
    if (!axis)
      continue;
    if (!names.insert(axis->front().name).second) {
      emitError(mlir::UnknownLoc::get(context))
          << "'" << axis->front().name << "' is set by two --sweep";
      ok = false;
    }
    axes.push_back(std::move(*axis));
  }
  if (!ok)
    return std::nullopt;
  Grid grid(std::move(axes));
  if (grid.size() <= size_t(kMaxPoints))
    return grid;
  emitError(mlir::UnknownLoc::get(context))
      << "the grid of the --sweep flags has more than " << kMaxPoints
      << " points, which are too many";
  return std::nullopt;
}

static Answer answerSweep(llvm::raw_ostream &os, const Questions &questions,
                          const ProgramText &program,
                          mlir::MLIRContext *context, TrialRunner &runner) {
  std::optional<Grid> grid = readGrid(questions, program, context);
  if (!grid)
    return Answer::WrongQuestion;
  for (size_t axis = 0; axis < grid->numAxes(); ++axis)
    if (!checkMachines(program, context, grid->values(axis)))
      return Answer::WrongMachine;
  std::vector<SweepRow> rows = sweep(*grid, questions.format, runner);
  bool isUntried = llvm::all_of(
      rows, [](const SweepRow &row) { return row.outcome.isUntried; });
  if (isUntried || isProgramWrong(rows, runner))
    return Answer::WrongProgram;
  std::vector<std::string> names = grid->names();
  std::optional<Frontier> frontier;
  if (questions.targets.any())
    frontier = findFrontier(rows, questions.targets);
  const Frontier *shown = frontier ? &*frontier : nullptr;
  switch (questions.format) {
  case SweepFormat::Table:
    printSweepTable(os,
                    questions.file + ": " + llvm::join(questions.sweeps, "; "),
                    names, rows, questions.colour);
    if (frontier)
      printFrontier(os, names, rows, *frontier, questions.colour);
    break;
  case SweepFormat::Csv:
    printSweepCsv(os, names, rows, shown);
    break;
  case SweepFormat::Json:
    printSweepJson(os, rows, shown);
    break;
  }
  if (!frontier || frontier->chosen)
    return Answer::Printed;
  emitError(mlir::UnknownLoc::get(context)) << missText(rows, *frontier);
  return Answer::NoneMeets;
}

static Answer answerCrossover(llvm::raw_ostream &os, const Questions &questions,
                              const ProgramText &program,
                              mlir::MLIRContext *context, TrialRunner &runner) {
  std::optional<CrossoverRange> range =
      readCrossover(program, context, *questions.crossover);
  if (!range)
    return Answer::WrongQuestion;
  LegalValues values = findLegalValues(program, context, *range, runner);
  Crossovers result = findCrossovers(*range, values, runner);
  if (!result.first) {
    // Say why, of one value.
    SweepRow row;
    row.point = {range->at(range->low)};
    row.outcome = runner.plan(Variant::at(row.point));
    if (row.outcome.isUntried || isProgramWrong(row, runner))
      return Answer::WrongProgram;
    if (result.error.empty())
      result.error = row.outcome.error;
  }
  if (questions.format == SweepFormat::Json)
    printCrossoverJson(os, result);
  else
    printCrossoverTable(os, questions.file, result, questions.colour);
  return Answer::Printed;
}

static Answer answerExplain(llvm::raw_ostream &os, const Questions &questions,
                            const ProgramText &program,
                            mlir::MLIRContext *context, TrialRunner &runner) {
  std::variant<Explanation, NoExplanation> result =
      explain(program, context, *questions.explain, runner);
  if (auto *none = std::get_if<NoExplanation>(&result))
    return *none == NoExplanation::WrongQuestion ? Answer::WrongQuestion
                                                 : Answer::WrongProgram;
  auto &explanation = std::get<Explanation>(result);
  explanation.complete = runner.isComplete();
  if (questions.format == SweepFormat::Json)
    printExplanationJson(os, explanation);
  else
    printExplanation(os, explanation, questions.colour);
  return explanation.plan.fits ? Answer::Printed : Answer::NoPlanFits;
}

static Answer answerMemoryCurve(llvm::raw_ostream &os,
                                const Questions &questions,
                                TrialRunner &runner) {
  std::optional<MemoryCurve> curve = findMemoryCurve(runner);
  if (!curve)
    return Answer::WrongProgram;
  if (questions.format == SweepFormat::Json)
    printMemoryCurveJson(os, *curve);
  else
    printMemoryCurve(os, *curve, questions.colour);
  return curve->atAllowed().plan.fits ? Answer::Printed : Answer::NoPlanFits;
}

static Answer answerLint(llvm::raw_ostream &os, const Questions &questions,
                         const ProgramText &program, mlir::MLIRContext *context,
                         TrialRunner &runner) {
  std::optional<Lint> found = lint(program, context, questions.plan, runner);
  if (!found)
    return Answer::WrongProgram;
  if (questions.format == SweepFormat::Json)
    printLintJson(os, *found);
  else
    printLint(os, *found, questions.colour);
  if (!found->plan.fits)
    return Answer::NoPlanFits;
  return found->findings.empty() ? Answer::Printed : Answer::Findings;
}

static Answer answerOne(llvm::raw_ostream &os, const Questions &questions,
                        const ProgramText &program, mlir::MLIRContext *context,
                        TrialRunner &runner) {
  if (questions.explain)
    return answerExplain(os, questions, program, context, runner);
  if (questions.memoryCurve)
    return answerMemoryCurve(os, questions, runner);
  if (questions.lint)
    return answerLint(os, questions, program, context, runner);
  if (questions.crossover)
    return answerCrossover(os, questions, program, context, runner);
  return answerSweep(os, questions, program, context, runner);
}

Answer shardc::answer(llvm::raw_ostream &os, const Questions &questions,
                      const ProgramText &program, mlir::MLIRContext *context) {
  TrialRunner runner(
      [&] {
        auto planner = std::make_unique<Evaluator>(program, questions.plan,
                                                   questions.file);
        planner->stopAt(questions.interrupted);
        return planner;
      },
      {questions.jobs, questions.showProgress, questions.plan.timeLimitSeconds,
       questions.interrupted, /*showsOne=*/true, questions.start});
  Answer result = answerOne(os, questions, program, context, runner);
  if (runner.isComplete())
    return result;
  llvm::StringRef why =
      runner.isInterrupted() ? "interrupted" : "the time limit ended";
  if (result == Answer::WrongProgram) {
    emitError(mlir::UnknownLoc::get(context),
              llvm::Twine(why) + " before any plan was found");
    return Answer::NoTime;
  }
  if (questions.format == SweepFormat::Table && result != Answer::WrongQuestion)
    os << "\n  incomplete: " << why << " before all plans were found\n";
  return result;
}
