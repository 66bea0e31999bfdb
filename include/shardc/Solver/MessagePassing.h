//===- MessagePassing.h - Bounds where tables do not fit ------*- C++ -*-===//
//
// Sequential tree-reweighted message passing (Kolmogorov, 2006) as an exact
// change of costs: messages move cost between pairs and their ends, nothing is
// ever created, all parts stay nonnegative, and what every assignment must pay
// collects in a constant, the bound. Shares are rounded down, so all of it is
// integers.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SOLVER_MESSAGEPASSING_H
#define SHARDC_SOLVER_MESSAGEPASSING_H

#include "shardc/Solver/Model.h"

namespace shardc::solver {

class MessagePassing {
public:
  explicit MessagePassing(const Model &model);

  /// Takes over the model's costs after its prices changed; messages stay.
  void updateCosts();

  /// Goes on from messages of an earlier pass, once costs are updated.
  void restore(const Messages &messages);

  /// One pass through the variables and one back. The bound is valid after it.
  void sweep();

  /// A lower bound on the model's priced sums.
  Int128 bound() const { return constant; }

  /// From now on labels go for good if sums with them must exceed `limit`.
  void setLimit(Int128 newLimit) { limit = newLimit; }
  /// For each label of each variable whether it is left.
  LabelSets remaining() const;
  /// Some variable has no label left: every sum exceeds the limit.
  bool isExhausted() const { return exhausted; }

  /// Labels chosen one variable after another, given those before and the
  /// messages of those after.
  std::vector<Label> decode() const;

  /// Labels that were best by themselves in the last pass: where to take a
  /// subgradient.
  llvm::ArrayRef<Label> leastLabels() const { return least; }

  const Messages &messages() const { return current; }

private:
  void visit(uint32_t variable, bool forward);
  void extractLeast(uint32_t variable);
  void pushAndPull(uint32_t variable, uint32_t pair, int64_t share);
  bool comesAfter(uint32_t variable, uint32_t pair) const;

  const Model &model;
  Messages current;
  std::vector<std::vector<Scaled>> unary; // costs with messages, less minima
  std::vector<Label> least;
  Int128 constant = 0;
  Int128 limit;
  bool prunes = false; // in this pass a label's excess is a bound
  bool exhausted = false;
  std::vector<Scaled> scratch;
};

} // namespace shardc::solver

#endif // SHARDC_SOLVER_MESSAGEPASSING_H
