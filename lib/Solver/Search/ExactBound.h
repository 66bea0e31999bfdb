//===- ExactBound.h - A proof in integers ---------------------*- C++ -*-===//

#ifndef SHARDC_SOLVER_SEARCH_EXACTBOUND_H
#define SHARDC_SOLVER_SEARCH_EXACTBOUND_H

#include "Ascent.h"

namespace shardc::solver::search {

struct Proof {
  /// No assignment of the graph that fits costs less; with the constant.
  int64_t bound = std::numeric_limits<int64_t>::min();
  /// Labels (of all nodes side by side) that no assignment of at most the cost
  /// given uses; empty if none was given.
  std::vector<bool> excluded;
};

/// Prices and messages are rounded to integers; whatever they are, the result
/// holds, and it is good if they are. A pass from the first node to the last
/// and one back, in 128 bits.
Proof prove(const Graph &graph, const DualPoint &point,
            std::optional<int64_t> cost = std::nullopt);

} // namespace shardc::solver::search

#endif // SHARDC_SOLVER_SEARCH_EXACTBOUND_H
