//===- Graph.cpp - A contracted network in flat arrays --------------------===//

#include "Graph.h"
#include "shardc/Solver/Arithmetic.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"
#include <cassert>

namespace shardc::solver::search {

namespace {
/// Fills a graph from a network, sharing equal tables.
class Builder {
public:
  explicit Builder(const Network &network) : network(network) {}

  std::optional<Graph> run() {
    numberNodes();
    addLabels();
    setWall();
    if (!addLinks())
      return std::nullopt;
    graph.slack = network.slack;
    graph.constant = network.constant;
    assert(fitsLargeSearch(graph.wall / 2 - 1, graph.links));
    return std::move(graph);
  }

private:
  void numberNodes() {
    number.assign(network.nodes.size(), 0);
    for (Variable v = 0; v < network.nodes.size(); ++v)
      if (network.nodes[v].alive) {
        number[v] = graph.ids.size();
        graph.ids.push_back(v);
      }
  }

  void addLabels() {
    graph.firstLabel.push_back(0);
    graph.firstPadded.push_back(0);
    graph.firstUsage.push_back(0);
    for (Variable v : graph.ids) {
      const Node &node = network.nodes[v];
      llvm::append_range(graph.costs, node.costs);
      for (size_t label = 0; label < node.size(); ++label) {
        if (!node.usages.empty())
          llvm::append_range(graph.usages, node.usages[label]);
        graph.firstUsage.push_back(graph.usages.size());
      }
      graph.firstLabel.push_back(graph.costs.size());
      graph.firstPadded.push_back(graph.firstPadded.back() +
                                  padded(node.size()));
      graph.maxLabels =
          std::max(graph.maxLabels, static_cast<uint32_t>(node.size()));
    }
  }

  void setWall() {
    Wide most = 0;
    for (Variable v : graph.ids)
      most += *llvm::max_element(network.nodes[v].costs);
    for (const Link &link : network.links)
      if (link.alive)
        most += mostOf(*link.table);
    graph.wall = static_cast<int64_t>(wallAbove(most));
  }

  static Cost mostOf(const Table &table) {
    Cost most = 0;
    for (Cost cost : table.costs)
      if (!isForbidden(cost))
        most = std::max(most, cost);
    return most;
  }

  bool addLinks() {
    std::vector<std::vector<Arc>> arcs(graph.size());
    for (const Link &link : network.links) {
      if (!link.alive)
        continue;
      if (!link.usages.empty())
        return false;
      uint32_t ends[2] = {number[link.first], number[link.second]};
      uint32_t table = shareTable(*link.table);
      uint32_t id = graph.links++;
      graph.entries += link.table->costs.size();
      for (uint32_t side : {0, 1})
        arcs[ends[side]].push_back({ends[1 - side], id, table, side, 0, 0});
    }
    // Messages to a node lie side by side.
    std::vector<std::array<uint32_t, 2>> begin(graph.links);
    graph.firstArc.push_back(0);
    for (uint32_t u = 0; u < graph.size(); ++u) {
      llvm::sort(arcs[u],
                 [](const Arc &a, const Arc &b) { return a.other < b.other; });
      for (Arc &arc : arcs[u]) {
        arc.incoming = graph.messageEntries;
        begin[arc.link][arc.side] = graph.messageEntries;
        graph.messageEntries += padded(graph.labels(u));
        graph.arcs.push_back(arc);
      }
      graph.firstArc.push_back(graph.arcs.size());
    }
    for (Arc &arc : graph.arcs)
      arc.outgoing = begin[arc.link][1 - arc.side];
    return true;
  }

  static std::vector<float> roundRows(const std::vector<int64_t> &exact,
                                      uint32_t columns) {
    std::vector<float> result;
    for (size_t i = 0; i < exact.size(); i += columns) {
      for (size_t j = 0; j < columns; ++j)
        result.push_back(static_cast<float>(exact[i + j]));
      result.resize(result.size() + padded(columns) - columns, kPad);
    }
    return result;
  }

  uint32_t shareTable(const Table &table) {
    size_t hash = llvm::hash_combine(
        table.rows,
        llvm::hash_combine_range(table.costs.begin(), table.costs.end()));
    auto &candidates = ids[hash];
    for (uint32_t id : candidates)
      if (sources[id]->rows == table.rows && sources[id]->costs == table.costs)
        return id;
    uint32_t id = graph.tables.size();
    candidates.push_back(id);
    sources.push_back(&table);
    PairTable &pairs = graph.tables.emplace_back();
    pairs.sizes[0] = table.rows;
    pairs.sizes[1] = table.columns;
    for (Cost cost : table.costs)
      pairs.exact[0].push_back(isForbidden(cost) ? graph.wall : cost);
    for (Label j = 0; j < table.columns; ++j)
      for (Label i = 0; i < table.rows; ++i)
        pairs.exact[1].push_back(pairs.exact[0][size_t(i) * table.columns + j]);
    for (int side : {0, 1})
      pairs.rounded[side] = roundRows(pairs.exact[side], pairs.sizes[1 - side]);
    return id;
  }

  const Network &network;
  Graph graph;
  std::vector<uint32_t> number;
  std::vector<const Table *> sources;
  llvm::DenseMap<size_t, std::vector<uint32_t>> ids; // by hash
};
} // namespace

std::optional<Graph> buildGraph(const Network &network) {
  return Builder(network).run();
}

std::vector<Label> recoverLabels(const Network &network, const Graph &graph,
                                 const Labels &labels) {
  std::vector<Label> all(network.nodes.size(), 0);
  for (auto [id, label] : llvm::zip_equal(graph.ids, labels))
    all[id] = label;
  return recover(network, all);
}

std::optional<Labels> projectLabels(const Network &network, const Graph &graph,
                                    llvm::ArrayRef<Label> assignment) {
  std::optional<std::vector<Label>> all = project(network, assignment);
  if (!all)
    return std::nullopt;
  Labels result;
  for (Variable id : graph.ids)
    result.push_back((*all)[id]);
  return result;
}

std::vector<int64_t> overflow(const Graph &graph, const Labels &labels) {
  std::vector<int64_t> result(graph.slack.size() + 1, 0);
  for (uint32_t u = 0; u < graph.size(); ++u)
    for (const Usage &usage : graph.usagesOf(graph.firstLabel[u] + labels[u])) {
      result[usage.begin] += usage.bytes;
      result[usage.end] -= usage.bytes;
    }
  int64_t sum = 0;
  for (size_t row = 0; row < graph.slack.size(); ++row) {
    sum += result[row];
    result[row] = sum - graph.slack[row];
  }
  result.pop_back();
  return result;
}

int64_t graphCost(const Graph &graph, const Labels &labels) {
  int64_t cost = 0;
  for (uint32_t u = 0; u < graph.size(); ++u) {
    cost += graph.costs[graph.firstLabel[u] + labels[u]];
    for (const Arc &arc : graph.arcsOf(u))
      if (arc.other > u)
        cost += graph.exactRow(arc, labels[u])[labels[arc.other]];
  }
  return cost;
}

} // namespace shardc::solver::search
