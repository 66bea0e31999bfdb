//===- Write.cpp - From a problem to the contest's JSON -------------------===//

#include "shardc/Contest/Write.h"
#include "shardc/Contest/Read.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include <fmt/format.h>
#include <map>

namespace shardc::contest {

using namespace solver;

/// More entries of tables than this make a file that is too large to be of use.
static constexpr size_t kMaxEntries = 50'000'000;

namespace {

/// A node as it is written.
struct OutNode {
  uint32_t begin = 0, end = 0;
  std::vector<Cost> costs;
  std::vector<int64_t> usages;
};

struct OutEdge {
  uint32_t first = 0, second = 0;
  std::vector<Cost> costs; // row-major
};

class Writer {
public:
  explicit Writer(const Problem &problem) : problem(problem) {}

  std::optional<std::string> run(llvm::raw_ostream &os, llvm::StringRef name);

private:
  using Interval = std::pair<uint32_t, uint32_t>;

  void addVariable(const VariableData &variable);
  void addIntervals(uint32_t node, const VariableData &variable);
  void addEdgeUsage(const EdgeUsage &usage);
  void addFixedUsage();
  void connect(uint32_t node, uint32_t of, llvm::ArrayRef<uint32_t> classOf,
               llvm::function_ref<uint32_t(uint32_t)> classOfStrategy);
  std::optional<std::string> findTooLarge() const;
  void print(llvm::raw_ostream &os, llvm::StringRef name) const;

  const Problem &problem;
  std::vector<OutNode> nodes;
  std::vector<OutEdge> edges;
  size_t entries = 0;
};

} // namespace

/// Numbers equal items alike, in the order in which they first stand there.
template <typename Item>
static std::vector<uint32_t> classesOf(const std::vector<Item> &items,
                                       std::vector<Item> &distinct) {
  std::map<Item, uint32_t> numbers;
  std::vector<uint32_t> result;
  for (const Item &item : items) {
    auto [it, isNew] = numbers.try_emplace(item, distinct.size());
    if (isNew)
      distinct.push_back(item);
    result.push_back(it->second);
  }
  return result;
}

/// Allows a strategy of `node` with one of `of` if both belong to the same
/// class.
void Writer::connect(uint32_t node, uint32_t of,
                     llvm::ArrayRef<uint32_t> classOf,
                     llvm::function_ref<uint32_t(uint32_t)> classOfStrategy) {
  OutEdge edge{of, node, {}};
  size_t strategies = nodes[node].costs.size();
  entries += classOf.size() * strategies;
  if (entries > kMaxEntries)
    return;
  for (uint32_t wanted : classOf)
    for (uint32_t strategy = 0; strategy < strategies; ++strategy)
      edge.costs.push_back(classOfStrategy(strategy) == wanted ? 0
                                                               : kForbidden);
  edges.push_back(std::move(edge));
}

/// Writes a variable's usage over several intervals: over the first as the node
/// itself, over each other as a node that follows it.
void Writer::addIntervals(uint32_t node, const VariableData &variable) {
  std::map<Interval, std::vector<int64_t>> byInterval;
  for (auto [label, usages] : llvm::enumerate(variable.usages))
    for (const Usage &usage : usages) {
      if (usage.begin >= usage.end || usage.bytes == 0)
        continue;
      std::vector<int64_t> &bytes = byInterval[{usage.begin, usage.end}];
      bytes.resize(variable.costs.size());
      bytes[label] += usage.bytes;
    }
  bool isFirst = true;
  for (const auto &[interval, bytes] : byInterval) {
    if (std::exchange(isFirst, false)) {
      std::tie(nodes[node].begin, nodes[node].end) = interval;
      nodes[node].usages = bytes;
      continue;
    }
    OutNode follower{interval.first, interval.second, {}, {}};
    std::vector<uint32_t> classOf = classesOf(bytes, follower.usages);
    follower.costs.assign(follower.usages.size(), 0);
    nodes.push_back(std::move(follower));
    connect(nodes.size() - 1, node, classOf, [](uint32_t s) { return s; });
  }
}

/// A node whose strategies are the kinds of pairs: labels of one end that use
/// the same with every label of the other are of one kind.
void Writer::addEdgeUsage(const EdgeUsage &usage) {
  if (usage.begin >= usage.end ||
      llvm::all_of(usage.bytes, [](int64_t bytes) { return bytes == 0; }))
    return;
  const Edge &edge = problem.edges[usage.edge];
  const Table &table = problem.tables[edge.table];
  std::vector<std::vector<int64_t>> rows(table.rows), columns(table.columns);
  for (uint32_t row = 0; row < table.rows; ++row)
    for (uint32_t column = 0; column < table.columns; ++column) {
      int64_t bytes = usage.bytes[size_t(row) * table.columns + column];
      rows[row].push_back(bytes);
      columns[column].push_back(bytes);
    }
  std::vector<std::vector<int64_t>> rowKinds, columnKinds;
  std::vector<uint32_t> rowOf = classesOf(rows, rowKinds);
  std::vector<uint32_t> columnOf = classesOf(columns, columnKinds);
  std::vector<uint32_t> someColumn(columnKinds.size());
  for (auto [column, kind] : llvm::enumerate(columnOf))
    someColumn[kind] = column;
  OutNode node{usage.begin, usage.end, {}, {}};
  for (const std::vector<int64_t> &row : rowKinds)
    for (uint32_t column : someColumn)
      node.usages.push_back(row[column]);
  node.costs.assign(node.usages.size(), 0);
  nodes.push_back(std::move(node));
  uint32_t numColumns = columnKinds.size();
  connect(nodes.size() - 1, edge.first, rowOf,
          [=](uint32_t strategy) { return strategy / numColumns; });
  connect(nodes.size() - 1, edge.second, columnOf,
          [=](uint32_t strategy) { return strategy % numColumns; });
}

/// A node for each stretch of points with the same usage.
void Writer::addFixedUsage() {
  const std::vector<int64_t> &fixed = problem.fixedUsage;
  for (uint32_t begin = 0, end = 0; begin < fixed.size(); begin = end) {
    while (end < fixed.size() && fixed[end] == fixed[begin])
      ++end;
    if (fixed[begin] != 0)
      nodes.push_back({begin, end, {0}, {fixed[begin]}});
  }
}

/// A cost that would be read as forbidden, or is negative; or tables that are
/// too large.
std::optional<std::string> Writer::findTooLarge() const {
  if (entries > kMaxEntries)
    return fmt::format("its tables would have more than {} entries",
                       kMaxEntries);
  auto isWrong = [](Cost cost) {
    return cost < 0 || (cost != kForbidden && uint64_t(cost) >= kForbiddenCost);
  };
  auto anyWrong = [&](const auto &each) {
    return llvm::any_of(each.costs, isWrong);
  };
  if (llvm::any_of(nodes, anyWrong) || llvm::any_of(edges, anyWrong))
    return fmt::format("it has costs that are negative or not below {}",
                       kForbiddenCost);
  return std::nullopt;
}

void Writer::print(llvm::raw_ostream &os, llvm::StringRef name) const {
  auto list = [&](llvm::StringRef key, const auto &items, auto print) {
    os << "\"" << key << "\": [";
    llvm::interleaveComma(items, os, print);
    os << "]";
  };
  auto numbers = [&](const auto &values) {
    os << '[';
    llvm::interleave(
        values, os,
        [&](int64_t value) {
          os << (value == kForbidden ? kForbiddenCost : uint64_t(value));
        },
        ",");
    os << ']';
  };
  os << "{\"problem\": {\"name\": " << llvm::json::Value(name)
     << ",\n\"nodes\": {";
  list("intervals", nodes, [&](const OutNode &node) {
    os << '[' << node.begin << ',' << node.end << ']';
  });
  os << ",\n";
  list("costs", nodes, [&](const OutNode &node) { numbers(node.costs); });
  os << ",\n";
  list("usages", nodes, [&](const OutNode &node) { numbers(node.usages); });
  os << "},\n\"edges\": {";
  list("nodes", edges, [&](const OutEdge &edge) {
    os << '[' << edge.first << ',' << edge.second << ']';
  });
  os << ",\n";
  list("costs", edges, [&](const OutEdge &edge) { numbers(edge.costs); });
  os << "},\n\"usage_limit\": " << *problem.capacity << "}}\n";
}

std::optional<std::string> Writer::run(llvm::raw_ostream &os,
                                       llvm::StringRef name) {
  for (const Edge &edge : problem.edges)
    entries += problem.tables[edge.table].costs.size();
  for (const VariableData &variable : problem.variables)
    nodes.push_back(
        {0, 0, variable.costs, std::vector<int64_t>(variable.costs.size(), 0)});
  for (auto [node, variable] : llvm::enumerate(problem.variables))
    addIntervals(node, variable);
  if (entries <= kMaxEntries)
    for (const Edge &edge : problem.edges)
      edges.push_back(
          {edge.first, edge.second, problem.tables[edge.table].costs});
  for (const EdgeUsage &usage : problem.edgeUsages)
    addEdgeUsage(usage);
  addFixedUsage();
  if (std::optional<std::string> wrong = findTooLarge())
    return wrong;
  print(os, name);
  return std::nullopt;
}

std::optional<std::string> writeProblem(llvm::raw_ostream &os,
                                        const Problem &problem,
                                        llvm::StringRef name) {
  return Writer(problem).run(os, name);
}

} // namespace shardc::contest
