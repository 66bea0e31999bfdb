//===- Network.cpp - The working copy that the solver contracts -----------===//

#include "shardc/Solver/Network.h"
#include "shardc/Solver/Arithmetic.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include <cassert>

namespace shardc::solver {

//===----------------------------------------------------------------------===//
// Usage lists
//===----------------------------------------------------------------------===//

UsageList canonicalUsages(std::vector<Usage> usages) {
  // Changes of the running sum, in order of points.
  std::vector<std::pair<uint32_t, int64_t>> changes;
  for (const Usage &usage : usages)
    if (usage.begin < usage.end && usage.bytes > 0) {
      changes.push_back({usage.begin, usage.bytes});
      changes.push_back({usage.end, -usage.bytes});
    }
  llvm::sort(changes);
  UsageList result;
  int64_t bytes = 0;
  for (size_t i = 0; i < changes.size();) {
    uint32_t point = changes[i].first;
    int64_t before = bytes;
    for (; i < changes.size() && changes[i].first == point; ++i)
      bytes += changes[i].second;
    if (bytes == before)
      continue;
    if (before > 0)
      result.back().end = point;
    if (bytes > 0)
      result.push_back({point, point, bytes});
  }
  return result;
}

UsageList addUsages(const UsageList &a, const UsageList &b) {
  if (a.empty())
    return b;
  if (b.empty())
    return a;
  UsageList both = a;
  both.insert(both.end(), b.begin(), b.end());
  return canonicalUsages(std::move(both));
}

bool Network::usesMemory(Variable node) const {
  if (!nodes[node].usages.empty())
    return true;
  return llvm::any_of(nodes[node].links,
                      [&](LinkId link) { return !links[link].usages.empty(); });
}

//===----------------------------------------------------------------------===//
// Links
//===----------------------------------------------------------------------===//

Cost pairCost(const Link &link, Variable node, Label own, Label others) {
  return link.first == node ? link.table->at(own, others)
                            : link.table->at(others, own);
}

Link *findLink(Network &network, Variable a, Variable b) {
  if (network.nodes[a].links.size() > network.nodes[b].links.size())
    std::swap(a, b);
  for (LinkId link : network.nodes[a].links)
    if (network.links[link].other(a) == b)
      return &network.links[link];
  return nullptr;
}

void addLink(Network &network, Variable first, Variable second,
             std::shared_ptr<const Table> table,
             std::vector<PairUsage> usages) {
  assert(table && first != second && "a link needs a table and two nodes");
  Link *there = findLink(network, first, second);
  if (!there) {
    LinkId id = network.links.size();
    network.links.push_back(
        {true, first, second, std::move(table), std::move(usages)});
    network.nodes[first].links.push_back(id);
    network.nodes[second].links.push_back(id);
    return;
  }
  if (there->first != first) {
    for (PairUsage &usage : usages)
      usage.bytes = transposed(usage.bytes, table->rows, table->columns);
    auto turned = std::make_shared<Table>();
    turned->rows = table->columns;
    turned->columns = table->rows;
    turned->costs = transposed(table->costs, table->rows, table->columns);
    table = std::move(turned);
  }
  auto sum = std::make_shared<Table>(*there->table);
  for (auto [total, cost] : llvm::zip_equal(sum->costs, table->costs))
    total = addCosts(total, cost);
  there->table = std::move(sum);
  llvm::append_range(there->usages, usages);
}

void removeLink(Network &network, LinkId link) {
  Link &gone = network.links[link];
  gone.alive = false;
  for (Variable end : {gone.first, gone.second}) {
    auto &list = network.nodes[end].links;
    list.erase(llvm::find(list, link));
  }
  gone.table.reset();
  gone.usages.clear();
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

/// Tables shifted so that their least cost is 0, and that cost.
static std::vector<std::pair<std::shared_ptr<const Table>, Cost>>
shiftTables(const Problem &problem) {
  std::vector<std::pair<std::shared_ptr<const Table>, Cost>> result;
  for (const Table &table : problem.tables) {
    Cost least = kForbidden;
    for (Cost cost : table.costs)
      least = std::min(least, cost);
    if (least == kForbidden)
      least = 0;
    auto shifted = std::make_shared<Table>(table);
    for (Cost &cost : shifted->costs)
      if (!isForbidden(cost))
        cost -= least;
    result.push_back({std::move(shifted), least});
  }
  return result;
}

static Node buildNode(const VariableData &variable, bool memory,
                      Cost &constant) {
  Node node;
  for (auto [label, cost] : llvm::enumerate(variable.costs))
    if (!isForbidden(cost)) {
      node.labels.push_back(label);
      node.costs.push_back(cost);
      if (memory && !variable.usages.empty())
        node.usages.push_back(canonicalUsages(variable.usages[label]));
    }
  if (node.costs.empty())
    return node;
  Cost least = *llvm::min_element(node.costs);
  constant += least;
  for (Cost &cost : node.costs)
    cost -= least;
  return node;
}

/// The part of a table or of pair usages that belongs to labels that are left.
template <typename T>
static std::vector<T> restrictPairs(const std::vector<T> &values,
                                    size_t columns,
                                    const std::vector<Label> &keepRows,
                                    const std::vector<Label> &keepColumns) {
  std::vector<T> result;
  result.reserve(keepRows.size() * keepColumns.size());
  for (Label row : keepRows)
    for (Label column : keepColumns)
      result.push_back(values[size_t(row) * columns + column]);
  return result;
}

static std::shared_ptr<const Table>
restrictTable(const std::shared_ptr<const Table> &table,
              const std::vector<Label> &rows,
              const std::vector<Label> &columns) {
  if (rows.size() == table->rows && columns.size() == table->columns)
    return table;
  auto result = std::make_shared<Table>();
  result->rows = rows.size();
  result->columns = columns.size();
  result->costs = restrictPairs(table->costs, table->columns, rows, columns);
  return result;
}

Network buildNetwork(const Problem &problem) {
  Network network;
  bool memory = problem.capacity.has_value();
  if (memory) {
    network.slack.assign(problem.numPoints, *problem.capacity);
    for (auto [slack, fixed] : llvm::zip(network.slack, problem.fixedUsage))
      slack -= fixed;
    for (uint32_t t = 0; t < problem.numPoints; ++t)
      network.rowPoints.push_back(t);
  }
  for (const VariableData &variable : problem.variables) {
    network.nodes.push_back(buildNode(variable, memory, network.constant));
    network.noLabel |= network.nodes.back().labels.empty();
  }
  if (network.noLabel)
    return network;

  std::vector<std::vector<PairUsage>> pairUsages(problem.edges.size());
  if (memory)
    for (const EdgeUsage &usage : problem.edgeUsages)
      if (usage.begin < usage.end)
        pairUsages[usage.edge].push_back({usage.begin, usage.end, usage.bytes});
  auto tables = shiftTables(problem);
  for (auto [edge, usages] : llvm::zip_equal(problem.edges, pairUsages)) {
    const auto &[table, least] = tables[edge.table];
    network.constant += least;
    const auto &rows = network.nodes[edge.first].labels;
    const auto &columns = network.nodes[edge.second].labels;
    for (PairUsage &usage : usages)
      usage.bytes = restrictPairs(usage.bytes, table->columns, rows, columns);
    addLink(network, edge.first, edge.second,
            restrictTable(table, rows, columns), std::move(usages));
  }
  return network;
}

Network withoutMemory(const Network &network) {
  Network result = network;
  for (Node &node : result.nodes)
    node.usages.clear();
  for (Link &link : result.links)
    link.usages.clear();
  result.slack.clear();
  result.rowPoints.clear();
  result.overCapacity = false;
  return result;
}

//===----------------------------------------------------------------------===//
// Changing
//===----------------------------------------------------------------------===//

static std::vector<Label> allLabels(size_t count) {
  std::vector<Label> result(count);
  for (size_t i = 0; i < count; ++i)
    result[i] = i;
  return result;
}

template <typename T>
static void keepOnly(std::vector<T> &values, const std::vector<Label> &kept) {
  if (values.empty())
    return;
  std::vector<T> result;
  result.reserve(kept.size());
  for (Label label : kept)
    result.push_back(std::move(values[label]));
  values = std::move(result);
}

void filterLabels(Network &network, Variable node,
                  const std::vector<bool> &keep) {
  Node &data = network.nodes[node];
  std::vector<Label> kept;
  for (Label label = 0; label < data.size(); ++label)
    if (keep[label])
      kept.push_back(label);
  if (kept.size() == data.size())
    return;
  for (LinkId id : data.links) {
    Link &link = network.links[id];
    bool isFirst = link.first == node;
    std::vector<Label> others =
        allLabels(network.nodes[link.other(node)].size());
    const std::vector<Label> &rows = isFirst ? kept : others;
    const std::vector<Label> &columns = isFirst ? others : kept;
    for (PairUsage &usage : link.usages)
      usage.bytes =
          restrictPairs(usage.bytes, link.table->columns, rows, columns);
    link.table = restrictTable(link.table, rows, columns);
  }
  keepOnly(data.costs, kept);
  keepOnly(data.usages, kept);
  keepOnly(data.labels, kept);
  network.noLabel |= kept.empty();
}

/// Adds the memory that the fixed node's links use to the neighbour's labels.
static void movePairUsages(Node &neighbour, const Link &link) {
  if (link.usages.empty())
    return;
  neighbour.usages.resize(neighbour.size());
  for (const PairUsage &usage : link.usages)
    for (Label label = 0; label < neighbour.size(); ++label)
      if (usage.bytes[label] > 0)
        neighbour.usages[label] =
            addUsages(neighbour.usages[label],
                      {{usage.begin, usage.end, usage.bytes[label]}});
}

void fixNode(Network &network, Variable node) {
  Node &data = network.nodes[node];
  assert(data.alive && data.size() == 1 && "only a single label can be fixed");
  network.constant += data.costs[0];
  if (!data.usages.empty())
    for (const Usage &usage : data.usages[0])
      for (uint32_t row = usage.begin; row < usage.end; ++row)
        network.slack[row] -= usage.bytes;
  while (!data.links.empty()) {
    LinkId id = data.links.back();
    const Link &link = network.links[id];
    Variable other = link.other(node);
    Node &neighbour = network.nodes[other];
    std::vector<bool> keep(neighbour.size(), true);
    for (Label label = 0; label < neighbour.size(); ++label) {
      Cost sum = addCosts(neighbour.costs[label], link.table->costs[label]);
      keep[label] = !isForbidden(sum);
      neighbour.costs[label] = sum;
    }
    movePairUsages(neighbour, link);
    removeLink(network, id);
    filterLabels(network, other, keep);
  }
  network.recoveries.push_back({node, {}, {}, {data.labels[0]}});
  data.alive = false;
}

//===----------------------------------------------------------------------===//
// Back to the problem
//===----------------------------------------------------------------------===//

static size_t positionOf(const std::vector<Label> &labels, Label label) {
  auto found = llvm::lower_bound(labels, label);
  assert(found != labels.end() && *found == label && "a removed label");
  return found - labels.begin();
}

std::vector<Label> recover(const Network &network,
                           llvm::ArrayRef<Label> nodeLabels) {
  std::vector<Label> result(network.nodes.size());
  for (auto [index, node] : llvm::enumerate(network.nodes))
    if (node.alive)
      result[index] = node.labels[nodeLabels[index]];
  for (const Recovery &step : llvm::reverse(network.recoveries)) {
    size_t position = 0;
    for (auto [parent, labels] :
         llvm::zip_equal(step.parents, step.parentLabels))
      position = position * labels.size() + positionOf(labels, result[parent]);
    result[step.node] = step.best[position];
  }
  return result;
}

std::optional<std::vector<Label>> project(const Network &network,
                                          llvm::ArrayRef<Label> assignment) {
  std::vector<Label> result(network.nodes.size(), 0);
  for (auto [index, node] : llvm::enumerate(network.nodes)) {
    if (!node.alive)
      continue;
    auto found = llvm::lower_bound(node.labels, assignment[index]);
    if (found == node.labels.end() || *found != assignment[index])
      return std::nullopt;
    result[index] = found - node.labels.begin();
  }
  return result;
}

} // namespace shardc::solver
