//===- Dual.h - Prices of memory by exact solves --------------*- C++ -*-===//
//
// Maximises the Lagrangian bound over prices of memory rows, each step an
// elimination: first one price for the row that is exceeded most, then a
// proximal bundle over all rows (Kiwiel, 1990). Steps are chosen in floating
// point; prices are integers and bounds exact.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SOLVER_DUAL_H
#define SHARDC_SOLVER_DUAL_H

#include "shardc/Solver/Elimination.h"
#include <functional>

namespace shardc::solver {

/// Usage of each row by labels of a model's variables, less the slack.
std::vector<int64_t> excessUsage(const Model &model,
                                 llvm::ArrayRef<Label> labels);

struct DualResult {
  Prices prices;
  Cost bound = 0;
  /// Runs of the elimination.
  unsigned steps = 0;
};

/// Is told of each minimiser that was met; true stops the ascent.
using Observer = std::function<bool(llvm::ArrayRef<Label>, Cost bound)>;

/// Ascends from `start` in at most `steps` eliminations.
DualResult ascendPrices(Model &model, Elimination &elimination, Prices start,
                        unsigned steps, const Observer &observe);

} // namespace shardc::solver

#endif // SHARDC_SOLVER_DUAL_H
