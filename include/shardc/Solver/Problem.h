//===- Problem.h - Cost function networks with memory ---------*- C++ -*-===//
//
// A cost function network: variables with finite domains, integer costs on
// variables and on pairs, and memory over time. Knows nothing of programs.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SOLVER_PROBLEM_H
#define SHARDC_SOLVER_PROBLEM_H

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace shardc::solver {

using Cost = int64_t;
/// A choice or pair that is not allowed. Finite costs and their sum over any
/// assignment stay below `kMaxTotal`, which check() enforces.
inline constexpr Cost kForbidden = std::numeric_limits<int64_t>::max() / 4;
inline constexpr Cost kMaxTotal = kForbidden / 2;

using Variable = uint32_t;
using TableId = uint32_t;
using Label = uint32_t;
/// A flag for each label, by variable.
using LabelSets = std::vector<std::vector<bool>>;

/// Memory in use over program points [begin, end), in bytes.
struct Usage {
  uint32_t begin = 0, end = 0;
  int64_t bytes = 0;
};

/// Costs of pairs of labels, row-major, `rows` labels of the edge's first
/// variable. Tables are shared by edges that refer to the same id.
struct Table {
  uint32_t rows = 0, columns = 0;
  std::vector<Cost> costs;
  Cost at(Label row, Label column) const {
    return costs[size_t(row) * columns + column];
  }
};

struct VariableData {
  std::string name;                       // for messages only
  std::vector<Cost> costs;                // one per label
  std::vector<std::vector<Usage>> usages; // one list per label, or empty
};

struct Edge {
  Variable first = 0, second = 0; // distinct; parallel edges add up
  TableId table = 0;
};

/// A pair of labels may use memory as well (buffers of a reshard).
struct EdgeUsage {
  uint32_t edge = 0;
  uint32_t begin = 0, end = 0;
  /// Row-major like the edge's table.
  std::vector<int64_t> bytes;
};

struct Problem {
  std::vector<VariableData> variables;
  std::vector<Table> tables;
  std::vector<Edge> edges;
  std::vector<EdgeUsage> edgeUsages;
  uint32_t numPoints = 0;
  /// At every point usages sum to at most this; none: memory does not matter.
  std::optional<int64_t> capacity;
  /// Memory in use at each point whatever is chosen; empty: none.
  std::vector<int64_t> fixedUsage;

  /// The first error in the problem, or nothing.
  std::optional<std::string> check() const;
};

/// An assignment's cost and memory, in exact integers, shared with no solver.
struct Evaluation {
  /// Nothing if a forbidden label or pair is used.
  std::optional<Cost> cost;
  /// Largest sum over points, and the first point where it is reached.
  int64_t peak = 0;
  uint32_t peakPoint = 0;
  std::vector<int64_t> usage; // per point
  bool fits = true;
};

Evaluation evaluate(const Problem &problem, llvm::ArrayRef<Label> assignment);

/// The cost alone, where costs may sum to more than check() allows.
__extension__ typedef __int128 Wide;
std::optional<Wide> totalCost(const Problem &problem,
                              llvm::ArrayRef<Label> assignment);

/// No assignment that is allowed costs more.
Wide mostCost(const Problem &problem);

/// Where the largest costs add up to more than check() allows, forbids those
/// above an equal share of that. Returns the least cost that it forbids: what
/// costs less than that uses none of them.
std::optional<Cost> forbidLargest(Problem &problem);

} // namespace shardc::solver

#endif // SHARDC_SOLVER_PROBLEM_H
