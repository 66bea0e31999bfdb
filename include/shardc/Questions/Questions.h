//===- Questions.h - Questions about many plans ---------------*- C++ -*-===//
//
// `--sweep`, `--crossover`, `--explain`, `--memory-curve` and `--lint`: from
// the texts of the flags to what is printed.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_QUESTIONS_QUESTIONS_H
#define SHARDC_QUESTIONS_QUESTIONS_H

#include "shardc/Optimizer/Options.h"
#include "shardc/Questions/Frontier.h"

namespace shardc {

/// The questions of a command line about one program.
struct Questions {
  /// Texts of `--sweep`, in order.
  std::vector<std::string> sweeps;
  /// Text of `--crossover`.
  std::optional<std::string> crossover;
  /// Name of `--explain`.
  std::optional<std::string> explain;
  bool memoryCurve = false;
  /// `--target-time` and `--target-price` of a sweep.
  Targets targets;
  bool lint = false;
  /// As on the command line.
  std::string file;
  PlanOptions plan;
  SweepFormat format = SweepFormat::Table;
  unsigned jobs = 1;
  bool colour = false;
  bool showProgress = false;
  /// Ends searches; what has been planned by then is printed.
  const std::atomic<bool> *interrupted = nullptr;
  /// A plan of the program as it is written, if one is known.
  std::vector<solver::Label> start = {};
};

enum class Answer {
  Printed,
  /// `--lint` has findings; they were printed.
  Findings,
  /// Errors in the texts of the flags were emitted.
  WrongQuestion,
  /// Errors in machines of a sweep were emitted.
  WrongMachine,
  /// The time ended before there was a plan; an error says so. Nothing was
  /// printed.
  NoTime,
  /// No point has a plan, and neither has the program as it is written, for the
  /// same reason. Nothing was printed.
  WrongProgram,
  /// Printed, with an error: no point meets the targets.
  NoneMeets,
  /// Printed, with an error: no plan of the program fits.
  NoPlanFits,
};

/// Answers one of the questions. Diagnostics of the flags go to `context`.
Answer answer(llvm::raw_ostream &os, const Questions &questions,
              const ProgramText &program, mlir::MLIRContext *context);

} // namespace shardc

#endif // SHARDC_QUESTIONS_QUESTIONS_H
