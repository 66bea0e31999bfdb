//===- ContractTest.cpp - Contraction loses no optimum --------------------===//

#include "shardc/Solver/Contract.h"
#include "BruteForce.h"
#include "gtest/gtest.h"

using namespace shardc::solver;
using namespace shardc::solver::test;

/// Cost of labels of a network's live nodes, by its own tables.
static std::optional<Cost> networkCost(const Network &network,
                                       const std::vector<Label> &labels) {
  Cost sum = network.constant;
  for (size_t v = 0; v < network.nodes.size(); ++v)
    if (network.nodes[v].alive)
      sum += network.nodes[v].costs[labels[v]];
  for (const Link &link : network.links) {
    if (!link.alive)
      continue;
    Cost cost = link.table->at(labels[link.first], labels[link.second]);
    if (cost >= kForbidden)
      return std::nullopt;
    sum += cost;
  }
  return sum;
}

/// Does what the labels use fit into the network's slack?
static bool networkFits(const Network &network,
                        const std::vector<Label> &labels) {
  std::vector<int64_t> slack = network.slack;
  auto use = [&](uint32_t begin, uint32_t end, int64_t bytes) {
    for (uint32_t row = begin; row < end; ++row)
      slack[row] -= bytes;
  };
  for (size_t v = 0; v < network.nodes.size(); ++v)
    if (network.nodes[v].alive && !network.nodes[v].usages.empty())
      for (const Usage &usage : network.nodes[v].usages[labels[v]])
        use(usage.begin, usage.end, usage.bytes);
  for (const Link &link : network.links)
    for (const PairUsage &usage : link.usages)
      use(usage.begin, usage.end,
          usage.bytes[labels[link.first] * link.table->columns +
                      labels[link.second]]);
  for (int64_t left : slack)
    if (left < 0)
      return false;
  return true;
}

/// The least cost of what fits; each assignment of the network must be worth
/// exactly what its recovered assignment is worth.
static std::optional<Cost> bruteForceNetwork(const Problem &problem,
                                             const Network &network) {
  if (network.infeasible())
    return std::nullopt;
  std::optional<Cost> best;
  std::vector<Label> labels(network.nodes.size(), 0);
  while (true) {
    std::optional<Cost> cost = networkCost(network, labels);
    if (cost) {
      Evaluation full = evaluate(problem, recover(network, labels));
      EXPECT_TRUE(full.cost.has_value());
      EXPECT_EQ(full.cost.value_or(-1), *cost);
      EXPECT_EQ(full.fits, networkFits(network, labels));
      if (full.fits && (!best || *cost < *best))
        best = cost;
    }
    size_t v = 0;
    for (; v < labels.size(); ++v) {
      if (!network.nodes[v].alive)
        continue;
      if (++labels[v] < network.nodes[v].size())
        break;
      labels[v] = 0;
    }
    if (v == labels.size())
      return best;
  }
}

TEST(Contract, KeepsTheOptimum) {
  std::mt19937_64 random(3);
  size_t nodesBefore = 0, nodesAfter = 0;
  for (int i = 0; i < 4000; ++i) {
    SCOPED_TRACE(i);
    Shape shape;
    shape.forbiddenPercent = i % 3 == 0 ? 50 : 15;
    shape.minCost = i % 2 == 0 ? -10 : 0;
    Problem problem = randomProblem(random, shape);
    ASSERT_EQ(problem.check(), std::nullopt);
    Network network = buildNetwork(problem);
    contract(network);
    nodesBefore += problem.variables.size();
    for (const Node &node : network.nodes)
      nodesAfter += node.alive;
    EXPECT_EQ(bruteForceNetwork(problem, network), bruteForce(problem).cost);
  }
  // Most of these tiny problems contract to little.
  EXPECT_LT(nodesAfter, nodesBefore / 2);
}

TEST(Contract, BuildingLosesNothing) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 1000; ++i) {
    SCOPED_TRACE(i);
    Problem problem = randomProblem(random, Shape());
    EXPECT_EQ(bruteForceNetwork(problem, buildNetwork(problem)),
              bruteForce(problem).cost);
  }
}
