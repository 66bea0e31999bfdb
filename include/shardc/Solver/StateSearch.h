//===- StateSearch.h - Exact search with costs to go ----------*- C++ -*-===//
//
// Assigns variables in reverse order of elimination. A state is what the rest
// depends on: labels of the frontier, cost, and usage of a few memory rows. It
// goes if its cost to go exceeds the best plan, or if another state of the same
// frontier costs and uses no more (Pareto states,
// docs/Optimizer.md#4-how-it-is-solved).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SOLVER_STATESEARCH_H
#define SHARDC_SOLVER_STATESEARCH_H

#include "shardc/Solver/Deadline.h"
#include "shardc/Solver/Elimination.h"

namespace shardc::solver {

struct StateLimits {
  /// States kept after each variable; the rest is dropped, least bound first
  /// to stay.
  size_t width = 1000;
  /// Additions and comparisons, about; then only what was dropped counts.
  uint64_t work = 1u << 24;
  Deadline deadline;
  /// Not 0: of two states with labels alike, one that has, but for rounding, at
  /// most 2^-mergeShift less left of each row than the other, and costs no
  /// more, stands for both, with what either has left. So what is found need
  /// not fit, but where nothing is found nothing fits.
  unsigned mergeShift = 0;
};

struct StateResult {
  /// Labels by the model's variables: the cheapest that was found within the
  /// capacity of the rows in question, or, of merged states, nearly.
  std::optional<std::vector<Label>> labels;
  /// No assignment that fits costs less than this and less than `upper`.
  Cost bound = 0;
  /// Nothing was dropped: labels, if any, are optimal for these rows.
  bool complete = true;
  /// Nothing was dropped either, but labels are of a state that stands for
  /// others.
  bool isMerged = false;
  uint64_t work = 0;
};

/// Costs to go at one vector of prices.
struct Guide {
  Model model;
  Elimination elimination;
  Int128 leastSum = 0;

  /// Runs a copy of `plan` on `model` at `prices`, with costs moved by
  /// `messages` if there are any.
  Guide(const Model &model, const Elimination &plan, Prices prices,
        const Messages *messages = nullptr);
  Guide(const Guide &) = delete; // the elimination points to the model
};

/// At least one; the first decides which of two states is cheaper.
using Guides = std::vector<std::unique_ptr<Guide>>;

/// Looks for assignments that cost less than `upper` and fit at `rows`, which
/// are ascending. All guides are of one network, shift and plan; a state must
/// pass each of them.
StateResult searchStates(const Guides &guides, llvm::ArrayRef<uint32_t> rows,
                         Cost upper, const StateLimits &limits);

} // namespace shardc::solver

#endif // SHARDC_SOLVER_STATESEARCH_H
