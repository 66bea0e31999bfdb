//===- Graph.h - A contracted network in flat arrays ----------*- C++ -*-===//
//
// The data of the large-scale search: the live nodes of a Network, numbered in
// the order of their ids, with costs, memory and pairs side by side.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SOLVER_SEARCH_GRAPH_H
#define SHARDC_SOLVER_SEARCH_GRAPH_H

#include "Kernels.h"
#include "shardc/Solver/Network.h"
#include "shardc/Solver/Search.h"
#include "llvm/ADT/ArrayRef.h"

namespace shardc::solver::search {

/// In the padding of rows of floats: above all that is compared with it.
inline constexpr float kPad = 0x1p50f;

/// A pair table in both orientations: [0] has the first end's labels as rows,
/// [1] the second's. Rounded rows are padded with kPad; floats take half the
/// memory, and what matters is near 0.
struct PairTable {
  uint32_t sizes[2] = {0, 0};
  std::vector<int64_t> exact[2];
  std::vector<float> rounded[2];
};

/// A link seen from one of its ends, whose labels are the table's rows.
struct Arc {
  uint32_t other = 0;
  uint32_t link = 0;
  uint32_t table = 0;
  uint32_t side = 0;
  /// Where messages to this end begin, and where those to the other.
  uint32_t incoming = 0, outgoing = 0;
};

struct Graph {
  /// The network's node of each node.
  std::vector<Variable> ids;
  /// Where the labels of each node begin in arrays with padding.
  std::vector<uint32_t> firstPadded;
  /// Labels of node u are [firstLabel[u], firstLabel[u + 1]).
  std::vector<uint32_t> firstLabel;
  /// Per label.
  std::vector<int64_t> costs;
  /// Memory of label l is [firstUsage[l], firstUsage[l + 1]).
  std::vector<uint32_t> firstUsage;
  std::vector<Usage> usages;
  /// Arcs of node u are [firstArc[u], firstArc[u + 1]), by the other end.
  std::vector<uint32_t> firstArc;
  std::vector<Arc> arcs;
  std::vector<PairTable> tables;
  /// Entries of the messages of all arcs, padded.
  uint32_t messageEntries = 0;
  size_t links = 0;
  /// Entries of all links' tables.
  size_t entries = 0;
  uint32_t maxLabels = 0;
  std::vector<int64_t> slack;
  int64_t constant = 0;
  /// Stands for a forbidden pair: above every plan's cost, and added to exact
  /// sums and taken away again without loss.
  int64_t wall = 0;

  size_t size() const { return ids.size(); }
  uint32_t labels(uint32_t node) const {
    return firstLabel[node + 1] - firstLabel[node];
  }
  llvm::ArrayRef<Arc> arcsOf(uint32_t node) const {
    return {arcs.data() + firstArc[node], arcs.data() + firstArc[node + 1]};
  }
  llvm::ArrayRef<Usage> usagesOf(uint32_t label) const {
    return {usages.data() + firstUsage[label],
            usages.data() + firstUsage[label + 1]};
  }
  /// Costs of pairs with `label` of the arc's own end, by the other's labels.
  const int64_t *exactRow(const Arc &arc, uint32_t label) const {
    const PairTable &table = tables[arc.table];
    return table.exact[arc.side].data() +
           size_t(label) * table.sizes[1 - arc.side];
  }
  const float *roundedRow(const Arc &arc, uint32_t label) const {
    return tables[arc.table].rounded[arc.side].data() +
           size_t(label) * padded(tables[arc.table].sizes[1 - arc.side]);
  }
  /// The other way around: with `label` of the other end, by the own labels.
  const int64_t *exactColumn(const Arc &arc, uint32_t label) const {
    const PairTable &table = tables[arc.table];
    return table.exact[1 - arc.side].data() +
           size_t(label) * table.sizes[arc.side];
  }
  const float *roundedColumn(const Arc &arc, uint32_t label) const {
    const PairTable &table = tables[arc.table];
    return table.rounded[1 - arc.side].data() +
           size_t(label) * padded(table.sizes[arc.side]);
  }
};

/// The live part of a network without infeasible nodes and without memory of
/// pairs, or nothing if it has memory of pairs.
std::optional<Graph> buildGraph(const Network &network);

/// One label for each node.
using Labels = std::vector<uint32_t>;

/// The labels as the network numbers them, and back (nothing if the network no
/// longer has one of them).
std::vector<Label> recoverLabels(const Network &network, const Graph &graph,
                                 const Labels &labels);
std::optional<Labels> projectLabels(const Network &network, const Graph &graph,
                                    llvm::ArrayRef<Label> assignment);

/// Memory in use less what is available, by row.
std::vector<int64_t> overflow(const Graph &graph, const Labels &labels);

/// Cost without the graph's constant; the wall and more if a pair is forbidden.
int64_t graphCost(const Graph &graph, const Labels &labels);

/// Additions that one pass over all links takes: the unit of work.
inline size_t workOfPass(const Graph &graph) {
  return graph.entries + 4 * graph.costs.size() + graph.slack.size();
}

} // namespace shardc::solver::search

#endif // SHARDC_SOLVER_SEARCH_GRAPH_H
