//===- Sweeps.h - Sequential tree-reweighted message passing --*- C++ -*-===//
//
// Kolmogorov's TRW-S on a graph whose labels cost what they use of memory at
// the rows' prices. In floating point: for guidance, never for a proof.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SOLVER_SEARCH_SWEEPS_H
#define SHARDC_SOLVER_SEARCH_SWEEPS_H

#include "Graph.h"

namespace shardc::solver::search {

/// Rows' prices per byte.
using Prices = std::vector<double>;

/// The price of each label's memory at `prices`.
std::vector<double> priceLabels(const Graph &graph, const Prices &prices);

class Sweeps {
public:
  explicit Sweeps(const Graph &graph);

  /// Messages are kept: they are good ones for prices near the last.
  void setPrices(const Prices &prices);

  /// A pass over all nodes, from the first to the last and back; the bound on
  /// costs and prices of labels without the graph's constant.
  double forward();
  double backward();

  /// Labels one after the other, the best given those before and messages from
  /// those after.
  Labels decode() const;

  /// Those to a node lie side by side, in the order of its arcs, each padded.
  std::vector<float> messages;

private:
  /// Node's part of a pass: what its costs and messages to it are worth at
  /// least, and messages from it.
  double visit(uint32_t node, bool forward);

  const Graph &graph;
  std::vector<float> priced;     // per label, padded
  std::vector<uint32_t> earlier; // arcs to nodes before each
  std::vector<float> belief, rest;
};

} // namespace shardc::solver::search

#endif // SHARDC_SOLVER_SEARCH_SWEEPS_H
