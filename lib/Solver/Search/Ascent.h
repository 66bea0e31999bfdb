//===- Ascent.h - Prices of memory that raise the bound -------*- C++ -*-===//
//
// Lagrangian ascent on the memory rows: one pass of message passing each way
// per step, the usage of decoded assignments averaged over steps.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SOLVER_SEARCH_ASCENT_H
#define SHARDC_SOLVER_SEARCH_ASCENT_H

#include "Sweeps.h"
#include "shardc/Solver/Deadline.h"

namespace shardc::solver::search {

/// Prices, the messages that belong to them, and the bound that they gave.
/// Prices without their messages decode to garbage: they stay together.
struct DualPoint {
  Prices prices;
  std::vector<float> messages;
  /// With the graph's constant; in floating point.
  double bound = -std::numeric_limits<double>::infinity();
};

class Ascent {
public:
  /// Prices are per byte; `limit` is the problem's capacity in bytes.
  Ascent(const Graph &graph, int64_t limit);

  /// Starts at prices and messages that come from another graph of the same
  /// problem, after one sweep and more.
  void restart(const DualPoint &start, unsigned sweeps, const Deadline &stop);

  /// Takes `steps` steps towards `target`, the cost of the best plan if there
  /// is one. Step sizes go on from `scale()`.
  void run(unsigned steps, std::optional<double> target, const Deadline &stop);

  /// Starts again with larger or smaller steps.
  void setScale(double value) { scale = value; }

  const DualPoint &best() const { return bestPoint; }
  bool isDone() const { return scale <= kLeastScale && stale > 0; }

private:
  static constexpr double kLeastScale = 1e-4;

  void step(double target);
  void keepIfBetter(double bound);
  void averageUsage();

  const Graph &graph;
  Sweeps sweeps;
  double unit;
  Prices prices;
  std::vector<double> excess; // averaged, per row, in units
  DualPoint bestPoint;
  double scale = 1;
  unsigned stale = 0;
  double reference = -std::numeric_limits<double>::infinity();
};

} // namespace shardc::solver::search

#endif // SHARDC_SOLVER_SEARCH_ASCENT_H
