//===- Read.cpp - From the contest's JSON to a problem --------------------===//

#include "shardc/Contest/Read.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <fmt/format.h>
#include <simdjson.h>

namespace shardc::contest {

using namespace simdjson;
using solver::Cost;
using solver::kForbidden;

namespace {
/// Reads one problem. Each step returns false once `error` is set.
class Reader {
public:
  explicit Reader(llvm::StringRef text) : text(text) {}

  ReadResult run() {
    if (read() && check())
      return {std::move(problem), ""};
    return {std::nullopt, error};
  }

private:
  //===--------------------------------------------------------------------===//
  // Errors
  //===--------------------------------------------------------------------===//

  bool fail(std::string message) {
    if (error.empty())
      error = std::move(message);
    return false;
  }

  /// An error of the JSON itself, or of the type of what stands at `where`.
  bool fail(error_code code, const std::string &where) {
    switch (code) {
    case INCORRECT_TYPE:
    case NUMBER_ERROR:
      return fail(where + " has the wrong type");
    case NO_SUCH_FIELD:
      return fail(where + " is missing");
    default:
      return fail(
          fmt::format("is not valid JSON at {}: {}", where,
                      llvm::StringRef(error_message(code)).rtrim('.').str()));
    }
  }

  //===--------------------------------------------------------------------===//
  // Values
  //===--------------------------------------------------------------------===//

  /// A nonnegative integer as written; of more than 19 digits: `large`.
  template <typename Value>
  bool readInteger(Value &&value, const std::string &where, uint64_t &result,
                   bool &large) {
    large = false;
    if (value.get_uint64().get(result) == SUCCESS)
      return true;
    std::string_view token;
    if (auto code = std::forward<Value>(value).raw_json_token().get(token))
      return fail(code, where);
    llvm::StringRef number = llvm::StringRef(token).trim();
    bool negative = number.consume_front("-");
    if (number.empty() || !llvm::all_of(number, llvm::isDigit))
      return fail(fmt::format("{} is {}{}: expected an integer", where,
                              negative ? "-" : "",
                              number.take_front(40).str()));
    if (negative)
      return fail(fmt::format("{} is -{}: expected no negative number", where,
                              number.take_front(40).str()));
    large = true;
    return true;
  }

  template <typename Value>
  bool readCost(Value &&value, size_t index, const std::string &where,
                Cost &cost) {
    uint64_t integer = 0;
    if (value.get_uint64().get(integer) == SUCCESS) {
      cost = integer >= kForbiddenCost ? kForbidden : Cost(integer);
      return true;
    }
    bool large = false;
    if (!readInteger(value, fmt::format("{}[{}]", where, index), integer,
                     large))
      return false;
    cost = large || integer >= kForbiddenCost ? kForbidden : Cost(integer);
    return true;
  }

  template <typename Value>
  bool readBytes(Value &&value, const std::string &where, int64_t &result) {
    uint64_t integer = 0;
    bool large = false;
    if (!readInteger(value, where, integer, large))
      return false;
    if (large || integer > uint64_t(std::numeric_limits<int64_t>::max()))
      return fail(fmt::format("{} overflows: expected at most {}", where,
                              std::numeric_limits<int64_t>::max()));
    result = int64_t(integer);
    return true;
  }

  /// Calls `item(index, value)` for each item of the array `value`.
  template <typename Value, typename Item>
  bool readArray(Value &&value, const std::string &where, Item item) {
    ondemand::array array;
    if (auto code = value.get_array().get(array))
      return fail(code, where);
    size_t index = 0;
    for (auto element : array) {
      if (element.error())
        return fail(element.error(), fmt::format("{}[{}]", where, index));
      if (!item(index, element))
        return false;
      ++index;
    }
    return true;
  }

  /// Two integers.
  template <typename Value>
  bool readPair(Value &&value, const std::string &where, int64_t (&pair)[2]) {
    size_t count = 0;
    bool read = readArray(value, where, [&](size_t index, auto &item) {
      count = index + 1;
      int64_t ignored;
      return readBytes(item, fmt::format("{}[{}]", where, index),
                       index < 2 ? pair[index] : ignored);
    });
    if (read && count != 2)
      return fail(fmt::format("{} has {} numbers: expected 2", where, count));
    return read;
  }

  //===--------------------------------------------------------------------===//
  // The file
  //===--------------------------------------------------------------------===//

  bool read() {
    padded_string json(text.data(), text.size());
    ondemand::parser parser;
    ondemand::document document;
    if (auto code = parser.iterate(json).get(document))
      return fail(code, "its start");
    ondemand::object root;
    if (auto code = document.get_object().get(root))
      return fail(code, "the whole file");
    bool found = false;
    for (auto field : root) {
      std::string_view key;
      if (auto code = field.unescaped_key().get(key))
        return fail(code, "a key of the file");
      if (key != "problem")
        continue;
      if (std::exchange(found, true))
        return fail("'problem' stands there twice");
      ondemand::object body;
      if (auto code = field.value().get_object().get(body))
        return fail(code, "'problem'");
      if (!readBody(body))
        return false;
    }
    if (!found)
      return fail("'problem' is missing");
    // The cursor stands behind the object unless something follows.
    const char *rest = nullptr;
    if (document.current_location().get(rest) == SUCCESS)
      return fail("is not valid JSON: expected nothing behind the problem");
    return true;
  }

  /// Keys may come in any order, and others than ours are passed over.
  bool readBody(ondemand::object &body) {
    bool nodes = false, edges = false, limit = false;
    for (auto field : body) {
      std::string_view key;
      if (auto code = field.unescaped_key().get(key))
        return fail(code, "a key of 'problem'");
      auto value = field.value();
      bool read = true;
      if (key == "nodes" && !std::exchange(nodes, true)) {
        read = readNodes(value);
      } else if (key == "edges" && !std::exchange(edges, true)) {
        read = readEdges(value);
      } else if (key == "usage_limit" && !std::exchange(limit, true)) {
        int64_t bytes = 0;
        read = readBytes(value, "usage_limit", bytes);
        problem.capacity = bytes;
      } else if (key == "nodes" || key == "edges" || key == "usage_limit") {
        read = fail(fmt::format("'problem' has two values of '{}'", key));
      }
      if (!read)
        return false;
    }
    for (auto [found, key] :
         {std::pair(nodes, "nodes"), {edges, "edges"}, {limit, "usage_limit"}})
      if (!found)
        return fail(fmt::format("'{}' is missing in 'problem'", key));
    return true;
  }

  /// Calls `handle(key, value)` for each field of `value`.
  template <typename Value, typename Handle>
  bool readObject(Value &&value, const std::string &where, Handle handle) {
    ondemand::object object;
    if (auto code = value.get_object().get(object))
      return fail(code, where);
    for (auto field : object) {
      std::string_view key;
      if (auto code = field.unescaped_key().get(key))
        return fail(code, "a key of " + where);
      auto item = field.value();
      if (!handle(llvm::StringRef(key), item))
        return false;
    }
    return true;
  }

  template <typename Value> bool readNodes(Value &&value) {
    return readObject(value, "nodes", [&](llvm::StringRef key, auto &item) {
      if (key == "intervals")
        return readArray(item, "nodes.intervals", [&](size_t i, auto &entry) {
          intervals.emplace_back();
          int64_t pair[2];
          if (!readPair(entry, fmt::format("nodes.intervals[{}]", i), pair))
            return false;
          intervals.back() = {pair[0], pair[1]};
          return true;
        });
      if (key == "costs")
        return readArray(item, "nodes.costs", [&](size_t i, auto &entry) {
          return readCosts(entry, fmt::format("nodes.costs[{}]", i),
                           nodeCosts.emplace_back());
        });
      if (key == "usages")
        return readArray(item, "nodes.usages", [&](size_t i, auto &entry) {
          std::string where = fmt::format("nodes.usages[{}]", i);
          std::vector<int64_t> &list = nodeUsages.emplace_back();
          return readArray(entry, where, [&](size_t k, auto &number) {
            uint64_t plain = 0;
            list.emplace_back();
            if (number.get_uint64().get(plain) == SUCCESS &&
                plain <= uint64_t(std::numeric_limits<int64_t>::max())) {
              list.back() = int64_t(plain);
              return true;
            }
            return readBytes(number, fmt::format("{}[{}]", where, k),
                             list.back());
          });
        });
      return true;
    });
  }

  template <typename Value>
  bool readCosts(Value &&value, const std::string &where,
                 std::vector<Cost> &costs) {
    return readArray(value, where, [&](size_t index, auto &item) {
      return readCost(item, index, where, costs.emplace_back());
    });
  }

  template <typename Value> bool readEdges(Value &&value) {
    return readObject(value, "edges", [&](llvm::StringRef key, auto &item) {
      if (key == "nodes")
        return readArray(item, "edges.nodes", [&](size_t e, auto &entry) {
          int64_t pair[2];
          if (!readPair(entry, fmt::format("edges.nodes[{}]", e), pair))
            return false;
          edgeNodes.push_back({pair[0], pair[1]});
          return true;
        });
      if (key == "costs")
        return readArray(item, "edges.costs", [&](size_t e, auto &entry) {
          std::vector<Cost> costs;
          if (!readCosts(entry, fmt::format("edges.costs[{}]", e), costs))
            return false;
          edgeTables.push_back(shareTable(std::move(costs)));
          return true;
        });
      return true;
    });
  }

  /// The id of a table of these entries, whose shape is not known yet.
  size_t shareTable(std::vector<Cost> costs) {
    auto &ids = tableIds[llvm::hash_combine_range(costs.begin(), costs.end())];
    for (size_t id : ids)
      if (entries[id] == costs)
        return id;
    ids.push_back(entries.size());
    entries.push_back(std::move(costs));
    return ids.back();
  }

  //===--------------------------------------------------------------------===//
  // The problem
  //===--------------------------------------------------------------------===//

  bool check() { return checkSizes() && makeNodes() && makeEdges(); }

  bool checkSizes() {
    size_t nodes = nodeCosts.size();
    for (auto [size, key] : {std::pair(intervals.size(), "intervals"),
                             {nodeUsages.size(), "usages"}})
      if (size != nodes)
        return fail(fmt::format("nodes.{} has {} entries: expected {}, one for "
                                "each of nodes.costs",
                                key, size, nodes));
    if (edgeNodes.size() != edgeTables.size())
      return fail(fmt::format("edges.costs has {} entries: expected {}, one "
                              "for each of edges.nodes",
                              edgeTables.size(), edgeNodes.size()));
    return true;
  }

  bool makeNodes() {
    std::vector<int64_t> points;
    for (auto [begin, end] : intervals)
      if (begin < end)
        points.insert(points.end(), {begin, end});
    llvm::sort(points);
    points.erase(std::unique(points.begin(), points.end()), points.end());
    auto rank = [&](int64_t point) {
      return uint32_t(llvm::lower_bound(points, point) - points.begin());
    };
    problem.numPoints = points.size();
    for (size_t v = 0; v < nodeCosts.size(); ++v) {
      const std::vector<int64_t> &usages = nodeUsages[v];
      if (nodeCosts[v].empty())
        return fail(fmt::format("nodes.costs[{}] is empty: expected at least "
                                "one strategy",
                                v));
      if (usages.size() != nodeCosts[v].size())
        return fail(fmt::format("nodes.usages[{}] has {} entries: expected {}, "
                                "one for each of nodes.costs[{}]",
                                v, usages.size(), nodeCosts[v].size(), v));
      solver::VariableData &variable = problem.variables.emplace_back();
      variable.costs = std::move(nodeCosts[v]);
      auto [begin, end] = intervals[v];
      if (begin >= end)
        continue;
      for (int64_t bytes : usages)
        variable.usages.push_back({{rank(begin), rank(end), bytes}});
    }
    return true;
  }

  bool makeEdges() {
    // One table per content and number of rows.
    llvm::DenseMap<std::pair<size_t, size_t>, solver::TableId> shaped;
    for (size_t e = 0; e < edgeNodes.size(); ++e) {
      for (int64_t node : edgeNodes[e])
        if (node >= int64_t(problem.variables.size()))
          return fail(fmt::format("edges.nodes[{}] names node {}: expected one "
                                  "of {} nodes",
                                  e, node, problem.variables.size()));
      solver::Variable first = edgeNodes[e][0], second = edgeNodes[e][1];
      size_t rows = problem.variables[first].costs.size();
      size_t columns = problem.variables[second].costs.size();
      const std::vector<Cost> &costs = entries[edgeTables[e]];
      if (costs.size() != rows * columns)
        return fail(fmt::format("edges.costs[{}] has {} entries: expected {}, "
                                "{} strategies of node {} times {} of node {}",
                                e, costs.size(), rows * columns, rows, first,
                                columns, second));
      if (first == second) {
        addLoop(first, costs);
        continue;
      }
      auto [it, isNew] =
          shaped.try_emplace({edgeTables[e], rows}, problem.tables.size());
      if (isNew)
        problem.tables.push_back({uint32_t(rows), uint32_t(columns), costs});
      problem.edges.push_back({first, second, it->second});
    }
    return true;
  }

  /// An edge of a node with itself costs what its diagonal says.
  void addLoop(solver::Variable node, const std::vector<Cost> &costs) {
    std::vector<Cost> &own = problem.variables[node].costs;
    for (size_t i = 0; i < own.size(); ++i) {
      Cost loop = costs[i * own.size() + i];
      own[i] = own[i] == kForbidden || loop == kForbidden ? kForbidden
                                                          : own[i] + loop;
    }
  }

  llvm::StringRef text;
  solver::Problem problem;
  std::string error;
  std::vector<std::pair<int64_t, int64_t>> intervals;
  std::vector<std::vector<Cost>> nodeCosts;
  std::vector<std::vector<int64_t>> nodeUsages;
  std::vector<std::array<int64_t, 2>> edgeNodes;
  std::vector<size_t> edgeTables;
  std::vector<std::vector<Cost>> entries;
  llvm::DenseMap<size_t, std::vector<size_t>> tableIds; // by hash
};
} // namespace

ReadResult parseProblem(llvm::StringRef text) { return Reader(text).run(); }

} // namespace shardc::contest
