//===- Reduce.cpp - Links and nodes that dynamic programming takes out ----===//

#include "shardc/Solver/Arithmetic.h"
#include "shardc/Solver/Contract.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc::solver {

/// A node is eliminated if the table that it leaves has at most this many
/// entries, and the work at most this many additions.
static constexpr size_t kMaxEntries = 20000;
static constexpr double kMaxWork = 2e6;

//===----------------------------------------------------------------------===//
// Separable links
//===----------------------------------------------------------------------===//

/// All entries are allowed and M[i][j] = M[i][0] + M[0][j] - M[0][0].
static bool isSeparable(const Table &table) {
  if (llvm::any_of(table.costs, isForbidden))
    return false;
  for (Label i = 1; i < table.rows; ++i)
    for (Label j = 1; j < table.columns; ++j)
      if (table.at(i, j) - table.at(i, 0) != table.at(0, j) - table.at(0, 0))
        return false;
  return true;
}

/// Adds row and column parts of a separable table to its ends.
static void splitTable(Network &network, const Link &link) {
  const Table &table = *link.table;
  Node &first = network.nodes[link.first], &second = network.nodes[link.second];
  // The least row part is kept apart so that both parts are nonnegative.
  Label least = 0;
  for (Label i = 1; i < table.rows; ++i)
    if (table.at(i, 0) < table.at(least, 0))
      least = i;
  for (Label i = 0; i < table.rows; ++i)
    first.costs[i] += table.at(i, 0) - table.at(least, 0);
  for (Label j = 0; j < table.columns; ++j)
    second.costs[j] += table.at(least, j);
}

bool removeSeparableLinks(Network &network, Variable node) {
  llvm::SmallVector<LinkId, 8> separable;
  for (LinkId id : network.nodes[node].links) {
    const Link &link = network.links[id];
    if (link.usages.empty() && isSeparable(*link.table))
      separable.push_back(id);
  }
  for (LinkId id : separable) {
    splitTable(network, network.links[id]);
    removeLink(network, id);
  }
  return !separable.empty();
}

//===----------------------------------------------------------------------===//
// Elimination
//===----------------------------------------------------------------------===//

namespace {
/// The least cost of a node for each combination of its neighbours' labels, and
/// the problem's label that reaches it.
struct Eliminated {
  std::vector<Cost> costs;
  std::vector<Label> best;

  /// For all labels of one neighbour; `table` has the node's labels as rows.
  /// With `base(own)` on top.
  template <typename Base>
  void addRow(const Node &node, llvm::ArrayRef<Cost> table, size_t columns,
              Base base) {
    size_t begin = costs.size();
    costs.resize(begin + columns, kForbidden);
    best.resize(begin + columns, node.labels[0]);
    for (Label own = 0; own < node.size(); ++own)
      if (Cost cost = addCosts(node.costs[own], base(own)); !isForbidden(cost))
        minPlus(&costs[begin], &best[begin], &table[own * columns], cost,
                node.labels[own], columns);
  }
};
} // namespace

static void eliminateLeaf(Network &network, Variable node) {
  const Node &data = network.nodes[node];
  LinkId id = data.links[0];
  const Link &link = network.links[id];
  Variable parent = link.other(node);
  Node &parentData = network.nodes[parent];
  Eliminated eliminated;
  eliminated.addRow(data, oriented(link, node, link.table->costs),
                    parentData.size(), [](Label) { return Cost(0); });
  std::vector<bool> keep;
  for (auto [total, cost] :
       llvm::zip_equal(parentData.costs, eliminated.costs)) {
    keep.push_back(!isForbidden(cost));
    total = addCosts(total, cost);
  }
  network.recoveries.push_back(
      {node, {parent}, {parentData.labels}, std::move(eliminated.best)});
  removeLink(network, id);
  network.nodes[node].alive = false;
  filterLabels(network, parent, keep);
}

static void eliminateMiddle(Network &network, Variable node) {
  const Node &data = network.nodes[node];
  LinkId ids[2] = {data.links[0], data.links[1]};
  const Link &first = network.links[ids[0]], &second = network.links[ids[1]];
  Variable a = first.other(node), b = second.other(node);
  const auto &aLabels = network.nodes[a].labels;
  const auto &bLabels = network.nodes[b].labels;
  std::vector<Cost> rows = oriented(second, node, second.table->costs);
  Eliminated eliminated;
  for (Label i = 0; i < aLabels.size(); ++i)
    eliminated.addRow(data, rows, bLabels.size(),
                      [&](Label own) { return pairCost(first, node, own, i); });
  auto table = std::make_shared<Table>();
  table->rows = aLabels.size();
  table->columns = bLabels.size();
  table->costs = std::move(eliminated.costs);
  network.recoveries.push_back(
      {node, {a, b}, {aLabels, bLabels}, std::move(eliminated.best)});
  removeLink(network, ids[0]);
  removeLink(network, ids[1]);
  network.nodes[node].alive = false;
  addLink(network, a, b, std::move(table));
}

bool eliminateNode(Network &network, Variable node) {
  Node &data = network.nodes[node];
  if (data.links.size() > 2 || network.usesMemory(node))
    return false;
  size_t entries = 1;
  for (LinkId link : data.links)
    entries *= network.nodes[network.links[link].other(node)].size();
  switch (data.links.size()) {
  case 0: {
    size_t own = llvm::min_element(data.costs) - data.costs.begin();
    network.constant += data.costs[own];
    network.recoveries.push_back({node, {}, {}, {data.labels[own]}});
    data.alive = false;
    return true;
  }
  case 1:
    eliminateLeaf(network, node);
    return true;
  default:
    if (entries > kMaxEntries || double(entries) * data.size() > kMaxWork)
      return false;
    eliminateMiddle(network, node);
    return true;
  }
}

} // namespace shardc::solver
