//===- Core.cpp - Exact solution of what contraction leaves ---------------===//

#include "Core.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc::solver::search {

Problem coreProblem(const Network &network, const Graph &graph) {
  Problem problem;
  llvm::DenseMap<Variable, Variable> number;
  for (auto [index, id] : llvm::enumerate(graph.ids)) {
    number[id] = index;
    const Node &node = network.nodes[id];
    problem.variables.push_back({"", node.costs, node.usages});
  }
  llvm::DenseMap<const Table *, TableId> tables;
  for (const Link &link : network.links) {
    if (!link.alive)
      continue;
    auto [it, isNew] = tables.try_emplace(link.table.get(), tables.size());
    if (isNew)
      problem.tables.push_back(*link.table);
    problem.edges.push_back(
        {number[link.first], number[link.second], it->second});
  }
  problem.numPoints = network.slack.size();
  if (network.slack.empty())
    return problem;
  // Rows have different capacities left.
  problem.capacity = *llvm::max_element(network.slack);
  for (int64_t slack : network.slack)
    problem.fixedUsage.push_back(*problem.capacity - slack);
  return problem;
}

} // namespace shardc::solver::search
