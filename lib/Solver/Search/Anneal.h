//===- Anneal.h - Large neighbourhoods that keep memory feasible -*- C++
//-*-===//

#ifndef SHARDC_SOLVER_SEARCH_ANNEAL_H
#define SHARDC_SOLVER_SEARCH_ANNEAL_H

#include "Dive.h"
#include "Forest.h"
#include "Sweeps.h"
#include "shardc/Solver/Deadline.h"

namespace shardc::solver::search {

/// State that all walks over a graph share.
struct Guide {
  /// Prices of memory at the best bound known.
  Prices prices;
  /// The price of the labels' memory at these prices.
  std::vector<double> priced;
  /// Sampled rows, and the nodes that may use memory at each.
  std::vector<uint32_t> rows;
  std::vector<std::vector<uint32_t>> alive;

  Guide(const Graph &graph, const Prices &prices);
};

/// A plan with its cost, without the graph's constant.
struct Plan {
  Labels labels;
  int64_t cost = std::numeric_limits<int64_t>::max();
};

/// A walk by moves of whole forests.
class Walk {
public:
  Walk(const Graph &graph, const Guide &guide, Labels start, uint64_t seed);

  /// Moves until `work` additions have been made. The temperature falls
  /// geometrically from `hot` to `cold`.
  void anneal(double hot, double cold, uint64_t work, const Deadline &stop);

  /// New labels for regions, each followed by moves that may only improve,
  /// instead of single blocks.
  void diveRegions(double hot, double cold, uint64_t work,
                   const Deadline &stop);

  /// One pass of exact moves over a forest of all nodes, by priced costs and
  /// whatever the memory; true if anything changed.
  bool sweepPriced(const std::vector<double> &priced);

  State state;
  /// The best plan that fits, if any was seen.
  Plan best;
  uint64_t steps = 0, accepted = 0;

private:
  void chooseBlock();
  void setTargets(double temperature);
  bool tryMove(double temperature);
  bool moveBlock(double temperature);
  bool applyIfFits();
  void bump();
  void keepIfBest();
  void diveOnce(Dive &dive, double temperature);
  uint32_t chooseRoot();

  const Graph &graph;
  const Guide &guide;
  Random random;
  Forest forest;
};

} // namespace shardc::solver::search

#endif // SHARDC_SOLVER_SEARCH_ANNEAL_H
