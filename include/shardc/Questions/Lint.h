//===- Lint.h - What a plan does in vain ----------------------*- C++ -*-===//
//
// `--lint` (docs/CommandLine.md): what a plan seems to do in vain, each with a
// change that was tried, so that what it saves is true.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_QUESTIONS_LINT_H
#define SHARDC_QUESTIONS_LINT_H

#include "shardc/Optimizer/Options.h"
#include "shardc/Questions/PlanFigures.h"
#include "shardc/Questions/StepNotes.h"
#include "shardc/Questions/TrialRunner.h"

namespace shardc {

/// Findings that save a smaller share of the step are not reported.
inline constexpr double kLintThreshold = 0.001;

/// Something that can be changed, and what comes of it.
struct LintFix {
  /// `pin`, `unpin`, `copy`, `search`, `mesh`, `dim` or `merge`.
  std::string kind;
  /// The text to write: `H[B@X, F]`, `--dim B=1024`.
  std::string change, loc;
  /// Time saved in a step, by the objective.
  Picoseconds saves = 0;
  /// The plan with the change; nothing if the plan was only priced again.
  std::optional<PlanFigures> plan;
  /// A gain besides time; empty: none.
  std::string gain;
};

struct LintFinding {
  /// The kind of a suspect, or `pin-costs` or `pins-cost`.
  std::string kind;
  std::string text, loc;
  /// Its time in a step.
  Picoseconds cost = 0;
  LintFix fix;
};

struct Lint {
  std::string file, objective;
  PlanFigures plan;
  /// The plan's time that is minimised.
  Picoseconds value = 0;
  /// Places that were looked at, changes that were tried, and those for which
  /// there were too many.
  size_t suspects = 0, tried = 0, untried = 0;
  /// No change was left out, and no search interrupted, because the time ended.
  bool complete = true;
  /// Those that save most first.
  std::vector<LintFinding> findings;
  /// Of a training step; for these nothing is tried.
  std::vector<StepNote> notes;
};

/// Nothing if the program has no plan.
std::optional<Lint> lint(const ProgramText &text, mlir::MLIRContext *context,
                         const PlanOptions &options, TrialRunner &runner);

void printLint(llvm::raw_ostream &os, const Lint &lint, bool colour);
/// Schema shardc.lint/1 of docs/CommandLine.md.
void printLintJson(llvm::raw_ostream &os, const Lint &lint);

} // namespace shardc

#endif // SHARDC_QUESTIONS_LINT_H
