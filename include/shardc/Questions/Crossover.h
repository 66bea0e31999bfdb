//===- Crossover.h - Where the outcome changes ----------------*- C++ -*-===//
//
// `--crossover` (docs/CommandLine.md): the values of a range at which another
// resource bounds the step or an operation, another plan is chosen, or the plan
// begins or ceases to fit.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_QUESTIONS_CROSSOVER_H
#define SHARDC_QUESTIONS_CROSSOVER_H

#include "shardc/Questions/LegalValues.h"

namespace shardc {

/// The facts of a plan that are compared between values.
struct PlanState {
  struct Op {
    std::string name, kind, loc;
    /// The tensor that a collective moves.
    std::string operand;
    std::string bound;
  };
  /// Not legal: the rest is empty.
  bool legal = false;
  std::string bound;
  bool fits = true;
  /// The part of each mesh axis in the matrix work: `X data, Y context`.
  std::string parallelism;
  /// In program order.
  std::vector<Op> ops;
  /// `W[D@X, F]` of each tensor, in program order, then `all_gather W[D@X, F]
  /// -> [D, F]` and `einsum H[B@X, F]` of each operation.
  std::vector<std::string> tensors, steps;

  bool operator==(const PlanState &other) const;
};

/// True if states, in order, come back after others more than once.
bool alternates(llvm::ArrayRef<const PlanState *> states);

PlanState stateOf(const Outcome &outcome);

/// One thing that is different from one legal value to the next.
struct Change {
  /// The first value with the new state, and the legal value before it.
  int64_t at = 0, before = 0;
  /// `time.bound`, `op.bound`, `parallelism`, `plan` or `memory.fits`.
  std::string what;
  /// The operation of `op.bound`.
  PlanState::Op op;
  std::string from, to;
};

/// The differences between the states of two values, those of the step first.
std::vector<Change> changesBetween(int64_t before, const PlanState &from,
                                   int64_t at, const PlanState &to);

struct Crossovers {
  std::string name;
  int64_t low = 1, high = 1;
  /// The first and the last legal value; nothing if none is. The others are
  /// `step` apart, if that is known.
  std::optional<int64_t> first, last;
  PlanState firstState;
  /// Every legal value was planned, so that no change is missing.
  bool complete = false;
  /// How many values were planned, of how many that may be legal.
  int64_t planned = 0, values = 0;
  std::vector<Change> changes;
  /// States come back after others, as where the plan depends on what divides
  /// the value: what two values have in common need not hold between them.
  bool alternates = false;
  /// Values between which others were not planned, where these differ or the
  /// state alternates.
  std::vector<std::pair<int64_t, int64_t>> unresolved;
  /// Why no value is legal.
  std::string error;
};

/// Plans samples of the values, and bisects between those that differ.
Crossovers findCrossovers(const CrossoverRange &range,
                          const LegalValues &values, TrialRunner &runner);

void printCrossoverTable(llvm::raw_ostream &os, llvm::StringRef file,
                         const Crossovers &result, bool colour);
/// Schema shardc.crossover/1 of docs/CommandLine.md#crossovers.
void printCrossoverJson(llvm::raw_ostream &os, const Crossovers &result);

} // namespace shardc

#endif // SHARDC_QUESTIONS_CROSSOVER_H
