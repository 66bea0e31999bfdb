//===- Carry.h - Prices and messages for a smaller network ----*- C++ -*-===//

#ifndef SHARDC_SOLVER_SEARCH_CARRY_H
#define SHARDC_SOLVER_SEARCH_CARRY_H

#include "Ascent.h"

namespace shardc::solver::search {

/// A graph and what its rows and labels are called in the problem: what is
/// needed of a network that contraction is about to change.
struct Naming {
  explicit Naming(const Network &network, const Graph &graph);

  std::vector<uint32_t> points;           // by row
  std::vector<Variable> ids;              // by node
  std::vector<std::vector<Label>> labels; // by node
};

/// The point of `before` as a start in `after`. Messages between nodes that
/// were there stay. Rows that went were implied by one of those beside them:
/// their prices go to the one of these where `tightness`, by rows before, is
/// larger.
DualPoint carry(const Graph &before, const Naming &from, const DualPoint &point,
                llvm::ArrayRef<int64_t> tightness, const Graph &after,
                const Naming &to);

} // namespace shardc::solver::search

#endif // SHARDC_SOLVER_SEARCH_CARRY_H
