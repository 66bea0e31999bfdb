//===- ExactBound.h - A proof in integers ---------------------*- C++ -*-===//

#ifndef SHARDC_SOLVER_SEARCH_EXACTBOUND_H
#define SHARDC_SOLVER_SEARCH_EXACTBOUND_H

#include "Ascent.h"
#include "shardc/Solver/Arithmetic.h"

namespace shardc::solver::search {

struct Proof {
  /// No assignment of the graph that fits costs less; with the constant.
  int64_t bound = std::numeric_limits<int64_t>::min();
  /// Labels (of all nodes side by side) that no assignment of at most the cost
  /// given uses; empty if none was given.
  std::vector<bool> excluded;
};

/// Costs with prices and messages, rounded to integers, multiplied by
/// 2^kShift.
struct ExactCosts {
  static constexpr unsigned kShift = 32;

  ExactCosts(const Graph &graph, const DualPoint &point);

  /// The bound of the least costs' sum, with the graph's constant.
  Int128 total(Int128 sum) const {
    return graph.constant + ceilShift(sum, kShift);
  }

  /// Sends the message of a node, of whose labels only [from, to) are allowed,
  /// and which lends one of `parts` of `belief` to the pair.
  void send(const Arc &arc, const Int128 *belief, int64_t parts, uint32_t from,
            uint32_t to);

  const Graph &graph;
  std::vector<Int128> messages, priced;
  Int128 offset = 0; // less what the available memory is worth
};

/// A pass from the first node to the last and one back.
class Prover {
public:
  Prover(const Graph &graph, const DualPoint &point);

  Proof run(std::optional<int64_t> cost);

  /// After run(): all nodes lend backward, and their least costs sum to `sum`.
  ExactCosts costs;
  std::vector<Int128> lows;
  Int128 sum = 0;

private:
  Int128 visit(uint32_t node, bool forward);

  std::vector<Int128> belief;
};

/// Whatever prices and messages are, the result holds, and it is good if they
/// are.
Proof prove(const Graph &graph, const DualPoint &point,
            std::optional<int64_t> cost = std::nullopt);

} // namespace shardc::solver::search

#endif // SHARDC_SOLVER_SEARCH_EXACTBOUND_H
