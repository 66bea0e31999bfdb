//===- Ascent.h - Prices of memory that raise the bound -------*- C++ -*-===//
//
// Lagrangian ascent on the memory rows: one pass of message passing each way
// per step, and steps that are in proportion to the prices themselves.
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
  /// The price per byte that prices are measured by; 0: not known yet.
  double scale = 0;
};

class Ascent {
public:
  /// Number and rates of the first steps, which go from prices of zero to good
  /// ones.
  static constexpr unsigned kFirstSteps = 1000;
  static constexpr double kFirstRate = 0.1, kLastRate = 1e-4;

  /// Prices are per byte; `limit` is the problem's capacity in bytes.
  Ascent(const Graph &graph, int64_t limit);

  /// Starts at prices and messages that come from another graph of the same
  /// problem, after one sweep and more.
  void restart(const DualPoint &start, unsigned sweeps, const Deadline &stop);

  /// Plans `steps` steps from the best point on, whose lengths fall
  /// geometrically from one part of the prices to another.
  void plan(unsigned steps, double from, double to);

  /// Takes the next of the planned steps; those after the last are as short.
  void run(unsigned steps, const Deadline &stop);

  const DualPoint &best() const { return bestPoint; }

private:
  void findScale(const Deadline &stop);
  void step();
  double sweep();
  void keepIfBetter(double bound);

  const Graph &graph;
  Sweeps sweeps;
  double limit;
  Prices prices;
  std::vector<double> excess; // with momentum, per row, in parts of the limit
  DualPoint bestPoint;
  double scale = 0;
  double rate = 0, leastRate = 0, cooling = 1;
};

} // namespace shardc::solver::search

#endif // SHARDC_SOLVER_SEARCH_ASCENT_H
