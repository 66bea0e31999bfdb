//===- Explain.h - Why a tensor has its sharding --------------*- C++ -*-===//
//
// `--explain` (docs/CommandLine.md): every other sharding of a tensor is forced
// and the program planned again, so that differences are true ones; and so for
// the program without each of its annotations, and without a limit of memory.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_QUESTIONS_EXPLAIN_H
#define SHARDC_QUESTIONS_EXPLAIN_H

#include "shardc/Questions/PlanFigures.h"
#include "shardc/Questions/TrialRunner.h"

namespace shardc {

/// The best plan with a sharding that was forced.
struct Alternative {
  std::string sharding;
  bool partial = false;
  /// The one that the plan has.
  bool chosen = false;
  /// The tensor's own annotation rules it out; it was replaced.
  bool forbidden = false;
  /// Nothing if there is no such plan, for the reason `error` at `loc`.
  std::optional<PlanFigures> plan;
  std::string error, loc;
  /// Its time if memory did not matter.
  std::optional<Picoseconds> unlimited;

  bool fits() const { return plan && plan->fits; }
};

/// One tensor of the name that was asked for.
struct ExplainedTensor {
  std::string name;
  /// `input`, `weight`, `state`, `activation` or `output`.
  std::string kind;
  std::string sharding, loc;
  /// Its annotation in the program, and where; empty: none.
  std::string pin, pinLoc;
  /// The operations that make it; none for a declared tensor.
  std::vector<ReportItem> makers;
  /// Of a weight that is trained: its gradient, moments and master copy, and
  /// the collectives of all of them.
  std::vector<ReportTensor> companions;
  std::vector<ReportItem> moves;
  /// Best first; of equal ones the one that the plan has, then the shortest.
  /// Shardings with which nothing fits follow, then those without a plan.
  std::vector<Alternative> alternatives;
};

/// An annotation of the program, and the best plan without it.
struct PinEffect {
  /// `In[B@X, D]`, and what it is of: `tensor`, `use` or `output`.
  std::string text, of;
  std::string loc;
  std::optional<PlanFigures> without;
  /// The shardings of the explained tensors then.
  std::vector<std::string> shardings;
};

/// What the backward pass of a step finds, and what it computes again.
struct ExplainedRemat {
  std::string remat;
  int64_t microbatches = 1;
  /// Values that are kept, the largest first; their bytes on a device.
  std::vector<ReportTensor> kept;
  double keptBytes = 0;
  /// Operations that run again, those that take longest first.
  std::vector<ReportItem> again;
  double againSeconds = 0;
  /// Bytes that the plan leaves free on a device.
  double room = 0;
};

/// The best plan with another value of an outer choice.
struct ChoiceValue {
  std::string value;
  /// The program's own, or the compiler's.
  bool chosen = false;
  /// Nothing if there is no such plan, for the reason `error`.
  std::optional<PlanFigures> plan;
  std::string error;
  /// A pipeline has these three.
  std::optional<double> bubble;
  std::string schedule;
  int64_t microbatches = 0;

  bool fits() const { return plan && plan->fits; }
};

struct Explanation {
  std::string file, name, objective;
  /// Of `--explain remat`, which explains no tensor.
  std::optional<ExplainedRemat> remat;
  /// `--explain remat`, `microbatches`, `schedule` and a pipeline's axis have
  /// values: the chosen one first, then others, the best first.
  std::vector<ChoiceValue> choices;
  PlanFigures plan;
  /// The same if memory did not matter.
  std::optional<PlanFigures> unlimited;
  std::vector<ExplainedTensor> tensors;
  std::vector<PinEffect> pins;
  /// All was planned, and no search interrupted.
  bool complete = true;

  /// The annotations without which the step is shorter, or without which a plan
  /// fits.
  std::vector<const PinEffect *> bindingPins() const;
  /// How much of an alternative's difference is for lack of memory.
  std::optional<Picoseconds> memoryShare(const Alternative &alternative) const;
};

enum class NoExplanation {
  /// An error in the question was emitted.
  WrongQuestion,
  /// The program has no plan whatever its shardings; nothing was emitted.
  WrongProgram,
};

/// Explains every tensor called `name`, which may be the name of several values
/// (`x` is that of `x`, `x.2`, ...) or of one (`x.2`). The search must be free
/// to choose (`--opt=optimize`). Of a training step in which nothing is called
/// so, `remat` is what its backward pass finds.
std::variant<Explanation, NoExplanation> explain(const ProgramText &program,
                                                 mlir::MLIRContext *context,
                                                 llvm::StringRef name,
                                                 TrialRunner &runner);

void printExplanation(llvm::raw_ostream &os, const Explanation &explanation,
                      bool colour);
/// Schema shardc.explain/1 of docs/CommandLine.md.
void printExplanationJson(llvm::raw_ostream &os,
                          const Explanation &explanation);

} // namespace shardc

#endif // SHARDC_QUESTIONS_EXPLAIN_H
