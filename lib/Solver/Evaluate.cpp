//===- Evaluate.cpp - Cost and memory of one assignment -------------------===//
//
// Adds up an assignment from the problem alone. Every answer of the solver is
// verified here, so nothing in this file may be shared with its algorithms.
//
//===----------------------------------------------------------------------===//

#include "shardc/Solver/Problem.h"
#include <cassert>

namespace shardc::solver {

static int64_t narrow(Wide value) {
  assert(value <= std::numeric_limits<int64_t>::max() &&
         value >= std::numeric_limits<int64_t>::min() &&
         "the problem was not checked");
  return static_cast<int64_t>(value);
}

std::optional<Wide> totalCost(const Problem &problem,
                              llvm::ArrayRef<Label> assignment) {
  Wide sum = 0;
  for (size_t v = 0; v < problem.variables.size(); ++v) {
    Cost cost = problem.variables[v].costs[assignment[v]];
    if (cost >= kForbidden)
      return std::nullopt;
    sum += cost;
  }
  for (const Edge &edge : problem.edges) {
    Cost cost = problem.tables[edge.table].at(assignment[edge.first],
                                              assignment[edge.second]);
    if (cost >= kForbidden)
      return std::nullopt;
    sum += cost;
  }
  return sum;
}

static std::vector<int64_t> usagePerPoint(const Problem &problem,
                                          llvm::ArrayRef<Label> assignment) {
  // Changes at each point; their running sum is the usage.
  std::vector<Wide> change(size_t(problem.numPoints) + 1, 0);
  auto add = [&](uint32_t begin, uint32_t end, int64_t bytes) {
    change[begin] += bytes;
    change[end] -= bytes;
  };
  for (size_t v = 0; v < problem.variables.size(); ++v) {
    const VariableData &variable = problem.variables[v];
    if (variable.usages.empty())
      continue;
    for (const Usage &usage : variable.usages[assignment[v]])
      add(usage.begin, usage.end, usage.bytes);
  }
  for (const EdgeUsage &usage : problem.edgeUsages) {
    const Edge &edge = problem.edges[usage.edge];
    size_t columns = problem.tables[edge.table].columns;
    add(usage.begin, usage.end,
        usage
            .bytes[assignment[edge.first] * columns + assignment[edge.second]]);
  }
  std::vector<int64_t> result(problem.numPoints);
  Wide sum = 0;
  for (size_t t = 0; t < result.size(); ++t) {
    sum += change[t];
    Wide fixed = problem.fixedUsage.empty() ? 0 : problem.fixedUsage[t];
    result[t] = narrow(sum + fixed);
  }
  return result;
}

Evaluation evaluate(const Problem &problem, llvm::ArrayRef<Label> assignment) {
  assert(assignment.size() == problem.variables.size() &&
         "one label per variable");
  Evaluation result;
  if (std::optional<Wide> cost = totalCost(problem, assignment))
    result.cost = narrow(*cost);
  result.usage = usagePerPoint(problem, assignment);
  for (size_t t = 0; t < result.usage.size(); ++t)
    if (result.usage[t] > result.peak) {
      result.peak = result.usage[t];
      result.peakPoint = static_cast<uint32_t>(t);
    }
  result.fits = !problem.capacity || result.peak <= *problem.capacity;
  return result;
}

} // namespace shardc::solver
