//===- Problem.cpp - Checks of a cost function network --------------------===//

#include "shardc/Solver/Problem.h"
#include "shardc/Solver/Arithmetic.h"
#include "llvm/ADT/STLExtras.h"
#include <fmt/format.h>

namespace shardc::solver {

/// Sums of bytes stay below this, so that int64 never overflows.
static constexpr int64_t kMaxBytes = std::numeric_limits<int64_t>::max() / 4;

namespace {
/// Finds the first thing that is wrong; sums up what must stay in range.
class Checker {
public:
  explicit Checker(const Problem &problem) : problem(problem) {}

  std::optional<std::string> run() {
    using Step = std::optional<std::string> (Checker::*)();
    for (Step step : {&Checker::checkMemory, &Checker::checkVariables,
                      &Checker::checkTables, &Checker::checkEdges,
                      &Checker::checkEdgeUsages, &Checker::checkTotals})
      if (std::optional<std::string> error = (this->*step)())
        return error;
    return std::nullopt;
  }

private:
  std::string describe(size_t variable) const {
    const std::string &name = problem.variables[variable].name;
    return name.empty() ? fmt::format("variable {}", variable)
                        : fmt::format("variable '{}'", name);
  }

  static bool isCost(Cost cost) {
    return cost == kForbidden || (cost > -kMaxTotal && cost < kMaxTotal);
  }

  /// Largest magnitude among finite costs.
  static Cost largest(llvm::ArrayRef<Cost> costs) {
    Cost result = 0;
    for (Cost cost : costs)
      if (cost != kForbidden)
        result = std::max(result, cost < 0 ? -cost : cost);
    return result;
  }

  std::optional<std::string> checkCosts(llvm::ArrayRef<Cost> costs,
                                        const std::string &subject) const {
    const Cost *bad = llvm::find_if_not(costs, isCost);
    if (bad == costs.end())
      return std::nullopt;
    return fmt::format(
        "cost {} of {} is out of range: expected a magnitude below {} or {} "
        "for what is forbidden, found {}",
        bad - costs.begin(), subject, kMaxTotal, kForbidden, *bad);
  }

  std::optional<std::string> checkInterval(uint32_t begin, uint32_t end,
                                           const std::string &subject) const {
    if (begin <= end && end <= problem.numPoints)
      return std::nullopt;
    return fmt::format("memory of {} is used over points [{}, {}): expected an "
                       "interval within [0, {})",
                       subject, begin, end, problem.numPoints);
  }

  static std::optional<std::string> checkBytes(int64_t bytes,
                                               const std::string &subject) {
    if (bytes >= 0 && bytes < kMaxBytes)
      return std::nullopt;
    return fmt::format("memory of {} is out of range: expected 0 to {} bytes, "
                       "found {}",
                       subject, kMaxBytes - 1, bytes);
  }

  std::optional<std::string> checkMemory() {
    if (problem.capacity)
      if (auto error = checkBytes(*problem.capacity, "the capacity"))
        return error;
    if (problem.fixedUsage.empty())
      return std::nullopt;
    if (problem.fixedUsage.size() != problem.numPoints)
      return fmt::format("fixed usage has {} entries: expected none or one for "
                         "each of {} points",
                         problem.fixedUsage.size(), problem.numPoints);
    int64_t most = 0;
    for (int64_t bytes : problem.fixedUsage) {
      if (auto error = checkBytes(bytes, "the fixed usage"))
        return error;
      most = std::max(most, bytes);
    }
    bytesTotal += most;
    return std::nullopt;
  }

  std::optional<std::string> checkVariables() {
    for (auto [index, variable] : llvm::enumerate(problem.variables)) {
      std::string subject = describe(index);
      if (variable.costs.empty())
        return fmt::format("{} has no label: expected at least one", subject);
      if (auto error = checkCosts(variable.costs, subject))
        return error;
      if (!variable.usages.empty() &&
          variable.usages.size() != variable.costs.size())
        return fmt::format("{} has {} lists of memory usage: expected none or "
                           "one for each of {} labels",
                           subject, variable.usages.size(),
                           variable.costs.size());
      if (auto error = checkUsages(variable, subject))
        return error;
      costTotal += largest(variable.costs);
    }
    return std::nullopt;
  }

  std::optional<std::string> checkUsages(const VariableData &variable,
                                         const std::string &subject) {
    Int128 most = 0;
    for (const std::vector<Usage> &usages : variable.usages) {
      Int128 sum = 0;
      for (const Usage &usage : usages) {
        if (auto error = checkInterval(usage.begin, usage.end, subject))
          return error;
        if (auto error = checkBytes(usage.bytes, subject))
          return error;
        sum += usage.bytes;
      }
      most = std::max(most, sum);
    }
    bytesTotal += most;
    return std::nullopt;
  }

  std::optional<std::string> checkTables() {
    for (auto [index, table] : llvm::enumerate(problem.tables)) {
      std::string subject = fmt::format("table {}", index);
      if (table.costs.size() != size_t(table.rows) * table.columns)
        return fmt::format("{} has {} entries: expected {} rows of {}", subject,
                           table.costs.size(), table.rows, table.columns);
      if (auto error = checkCosts(table.costs, subject))
        return error;
      tableLargest.push_back(largest(table.costs));
    }
    return std::nullopt;
  }

  std::optional<std::string> checkEdges() {
    for (auto [index, edge] : llvm::enumerate(problem.edges)) {
      if (edge.first >= problem.variables.size() ||
          edge.second >= problem.variables.size())
        return fmt::format("edge {} joins variables {} and {}: expected two of "
                           "{} variables",
                           index, edge.first, edge.second,
                           problem.variables.size());
      if (edge.first == edge.second)
        return fmt::format("edge {} joins {} with itself: expected two "
                           "different variables",
                           index, describe(edge.first));
      if (edge.table >= problem.tables.size())
        return fmt::format("edge {} uses table {}: expected one of {} tables",
                           index, edge.table, problem.tables.size());
      const Table &table = problem.tables[edge.table];
      size_t rows = problem.variables[edge.first].costs.size();
      size_t columns = problem.variables[edge.second].costs.size();
      if (table.rows != rows || table.columns != columns)
        return fmt::format("table {} of edge {} between {} and {} is {} x {}: "
                           "expected {} x {}",
                           edge.table, index, describe(edge.first),
                           describe(edge.second), table.rows, table.columns,
                           rows, columns);
      costTotal += tableLargest[edge.table];
    }
    return std::nullopt;
  }

  std::optional<std::string> checkEdgeUsages() {
    for (auto [index, usage] : llvm::enumerate(problem.edgeUsages)) {
      std::string subject = fmt::format("edge usage {}", index);
      if (usage.edge >= problem.edges.size())
        return fmt::format("{} belongs to edge {}: expected one of {} edges",
                           subject, usage.edge, problem.edges.size());
      if (auto error = checkInterval(usage.begin, usage.end, subject))
        return error;
      const Table &table = problem.tables[problem.edges[usage.edge].table];
      if (usage.bytes.size() != table.costs.size())
        return fmt::format("{} has {} entries: expected {} as its edge's table",
                           subject, usage.bytes.size(), table.costs.size());
      int64_t most = 0;
      for (int64_t bytes : usage.bytes) {
        if (auto error = checkBytes(bytes, subject))
          return error;
        most = std::max(most, bytes);
      }
      bytesTotal += most;
    }
    return std::nullopt;
  }

  std::optional<std::string> checkTotals() {
    if (costTotal >= kMaxTotal)
      return fmt::format("the largest costs add up to too much: expected a sum "
                         "below {}",
                         kMaxTotal);
    if (bytesTotal >= kMaxBytes)
      return fmt::format("the largest memory usages add up to too much: "
                         "expected a sum below {} bytes",
                         kMaxBytes);
    return std::nullopt;
  }

  const Problem &problem;
  std::vector<Cost> tableLargest;
  Int128 costTotal = 0, bytesTotal = 0;
};
} // namespace

std::optional<std::string> Problem::check() const {
  return Checker(*this).run();
}

Wide mostCost(const Problem &problem) {
  auto most = [](llvm::ArrayRef<Cost> costs) {
    Cost result = 0;
    for (Cost cost : costs)
      if (cost < kForbidden)
        result = std::max(result, cost);
    return result;
  };
  std::vector<Cost> ofTables;
  for (const Table &table : problem.tables)
    ofTables.push_back(most(table.costs));
  Wide sum = 0;
  for (const VariableData &variable : problem.variables)
    sum += most(variable.costs);
  for (const Edge &edge : problem.edges)
    sum += ofTables[edge.table];
  return sum;
}

std::optional<Cost> forbidLargest(Problem &problem) {
  if (mostCost(problem) < kMaxTotal)
    return std::nullopt;
  size_t summands = problem.variables.size() + problem.edges.size();
  Cost share = kMaxTotal / Cost(summands + 1), least = kForbidden;
  auto forbid = [&](std::vector<Cost> &costs) {
    for (Cost &cost : costs)
      if (cost > share) {
        least = std::min(least, cost);
        cost = kForbidden;
      }
  };
  for (VariableData &variable : problem.variables)
    forbid(variable.costs);
  for (Table &table : problem.tables)
    forbid(table.costs);
  return least;
}

} // namespace shardc::solver
