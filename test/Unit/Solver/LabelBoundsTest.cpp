//===- LabelBoundsTest.cpp - What assignments with a label cost -----------===//

#include "shardc/Solver/LabelBounds.h"
#include "BruteForce.h"
#include "Clique.h"
#include "LayeredNetwork.h"
#include "shardc/Solver/Solve.h"
#include "gtest/gtest.h"

using namespace shardc::solver;
using namespace shardc::solver::test;

static size_t countLabels(const LabelSets &sets) {
  size_t count = 0;
  for (const std::vector<bool> &labels : sets)
    count += std::count(labels.begin(), labels.end(), true);
  return count;
}

/// The least cost of an assignment with each label that fits and costs less
/// than `limit`, by trying them all.
static LabelBounds leastCosts(const Problem &problem, Cost limit) {
  LabelBounds least;
  for (const VariableData &variable : problem.variables)
    least.emplace_back(variable.costs.size(), kForbidden);
  eachAssignment(problem, [&](const auto &labels, const Evaluation &now) {
    if (!now.cost || !now.fits || *now.cost >= limit)
      return;
    for (size_t v = 0; v < labels.size(); ++v)
      least[v][labels[v]] = std::min(least[v][labels[v]], *now.cost);
  });
  return least;
}

static LabelSets labelsLeft(const Problem &problem, Cost limit,
                            std::vector<double> prices, BoundWork &work) {
  return labelsBelow(boundLabels(problem, limit, std::move(prices), work));
}

/// Whatever prices it starts from.
TEST(LabelBounds, KeepsWhatCheaperAssignmentsUse) {
  std::mt19937_64 random(1);
  size_t kept = 0, needed = 0, all = 0;
  for (int i = 0; i < 3000; ++i) {
    SCOPED_TRACE(i);
    Shape shape;
    shape.memory = i % 2 == 0;
    shape.minCost = i % 4 == 0 ? -20 : 0;
    Problem problem = randomProblem(random, shape);
    Optimum optimum = bruteForce(problem);
    if (!optimum.cost)
      continue;
    Cost limit = *optimum.cost + uniform(random, 0, 8);
    std::vector<double> prices;
    for (uint32_t t = 0; t < problem.numPoints; ++t)
      prices.push_back(double(uniform(random, 0, 3)));
    LabelBounds least = leastCosts(problem, limit);
    LabelSets used = labelsBelow(least);
    for (const std::vector<double> &start : {std::vector<double>(), prices}) {
      BoundWork work{1e7};
      LabelBounds bounds = boundLabels(problem, limit, start, work);
      ASSERT_EQ(bounds.size(), least.size());
      for (size_t v = 0; v < least.size(); ++v)
        for (size_t l = 0; l < least[v].size(); ++l)
          EXPECT_LE(bounds[v][l], least[v][l]) << v << ' ' << l;
      LabelSets left = labelsBelow(bounds);
      if (start.empty()) {
        kept += countLabels(left);
        needed += countLabels(used);
        for (const VariableData &variable : problem.variables)
          all += variable.costs.size();
      }
    }
  }
  // Most of what no such assignment uses is found out.
  EXPECT_LT(kept - needed, (all - needed) / 2);
}

/// Without memory the bound of each label is exact.
TEST(LabelBounds, IsExactWithoutMemory) {
  std::mt19937_64 random(2);
  Shape shape;
  shape.memory = false;
  for (int i = 0; i < 1000; ++i) {
    SCOPED_TRACE(i);
    Problem problem = randomProblem(random, shape);
    Optimum optimum = bruteForce(problem);
    if (!optimum.cost)
      continue;
    Cost limit = *optimum.cost + uniform(random, 0, 8);
    BoundWork work{1e7};
    LabelBounds bounds = boundLabels(problem, limit, {}, work);
    EXPECT_EQ(bounds, leastCosts(problem, limit));
    // They are exact for lower limits, too.
    EXPECT_EQ(labelsBelow(bounds, limit - 2),
              labelsBelow(leastCosts(problem, limit - 2)));
  }
}

/// Layers like those of a transformer, in tight memory.
TEST(LabelBounds, KeepsThePlanOfLayers) {
  Problem problem = LayeredNetwork(3).problem;
  Solution free = solve(problem);
  problem.capacity = free.peak * 3 / 4;
  Solution solution = solve(problem);
  ASSERT_TRUE(solution.status == Status::Optimal ||
              solution.status == Status::Feasible);
  BoundWork work{1e9};
  LabelSets left =
      labelsLeft(problem, solution.cost + 1, solution.multipliers, work);
  EXPECT_LT(work.sum(), 1e9);
  size_t all = 0;
  for (size_t v = 0; v < left.size(); ++v) {
    EXPECT_TRUE(left[v][solution.assignment[v]]);
    all += left[v].size();
  }
  EXPECT_LT(countLabels(left), all / 2);
}

/// Where messages alone show at once that nothing is below the limit: eleven
/// variables of ten labels, each pair with costs of at least 1000, are too many
/// to eliminate exactly.
TEST(LabelBounds, KeepsNothingFarBelowAllCosts) {
  Problem problem;
  problem.numPoints = 1;
  problem.capacity = kCliqueVariables * 5;
  addClique(problem, {0, 100}, {1000, 2000});
  for (VariableData &data : problem.variables)
    for (Label label = 0; label < kCliqueLabels; ++label)
      data.usages.push_back({{0, 1, int64_t(label)}});
  ASSERT_FALSE(problem.check());
  BoundWork work{1e7};
  EXPECT_EQ(countLabels(labelsLeft(problem, 1000, {}, work)), 0u);
}

/// Prices at which what fits pays more than messages can carry: no label of the
/// best assignment may go.
TEST(LabelBounds, HighPricesForbidNothing) {
  // Costs in thousands, and bytes at two points in 10^12.
  struct Choice {
    Cost cost;
    int64_t bytes[2];
  };
  const std::vector<std::vector<Choice>> nodes = {
      {{78, {24, 27}}, {43, {3, 20}}, {43, {21, 11}}, {53, {23, 15}}},
      {{25, {13, 6}}, {72, {14, 29}}},
      {{70, {12, 29}}, {81, {27, 27}}},
      {{47, {19, 14}}, {34, {12, 11}}},
      {{77, {17, 30}}, {29, {13, 8}}, {26, {2, 12}}},
      {{37, {3, 17}}, {54, {28, 13}}},
  };
  struct Pairs {
    Variable other;
    std::vector<Cost> costs;
    std::vector<int64_t> bytes[2];
  };
  const std::vector<Pairs> star = {
      {1,
       {36, 22, 17, 82, 32, 46, 57, 50},
       {{12, 2, 1, 24, 8, 20, 25, 18}, {12, 10, 8, 29, 12, 13, 16, 16}}},
      {1,
       {29, 29, 79, 63, 55, 43, 26, 62},
       {{15, 15, 19, 15, 7, 13, 24, 10}, {7, 7, 30, 24, 24, 15, 1, 26}}},
      {2,
       {69, 87, 57, 58, 9, 19, 43, 42},
       {{19, 29, 23, 6, 3, 15, 5, 22}, {25, 29, 17, 26, 3, 2, 19, 10}}},
      {2,
       {78, 49, 25, 37, 32, 20, 44, 58},
       {{28, 1, 1, 5, 18, 12, 6, 18}, {25, 24, 12, 16, 7, 4, 19, 20}}},
      {3,
       {50, 37, 53, 14, 47, 54, 34, 87},
       {{20, 27, 17, 4, 23, 8, 16, 27}, {15, 5, 18, 5, 12, 23, 9, 30}}},
      {4,
       {7, 67, 67, 10, 56, 31, 25, 62, 60, 17, 53, 44},
       {{5, 29, 9, 6, 10, 15, 5, 26, 16, 1, 9, 18},
        {1, 19, 29, 2, 23, 8, 10, 18, 22, 8, 22, 13}}},
      {5,
       {44, 64, 62, 33, 43, 66, kForbidden, 49},
       {{14, 30, 20, 17, 7, 30, 27, 11}, {15, 17, 21, 8, 18, 18, 6, 19}}},
  };
  constexpr int64_t kBytes = 1'000'000'000'000, kCost = 1'000;
  Problem problem;
  problem.numPoints = 2;
  problem.capacity = 180 * kBytes;
  for (const std::vector<Choice> &node : nodes) {
    VariableData &data = problem.variables.emplace_back();
    for (const Choice &choice : node) {
      data.costs.push_back(choice.cost * kCost);
      data.usages.push_back(
          {{0, 1, choice.bytes[0] * kBytes}, {1, 2, choice.bytes[1] * kBytes}});
    }
  }
  for (const Pairs &pairs : star) {
    uint32_t edge = problem.edges.size();
    problem.edges.push_back({0, pairs.other, edge});
    Table &table = problem.tables.emplace_back();
    table.rows = nodes[0].size();
    table.columns = nodes[pairs.other].size();
    for (Cost cost : pairs.costs)
      table.costs.push_back(cost == kForbidden ? cost : cost * kCost);
    for (uint32_t at : {0u, 1u}) {
      EdgeUsage &usage = problem.edgeUsages.emplace_back();
      usage.edge = edge;
      usage.begin = at;
      usage.end = at + 1;
      for (int64_t bytes : pairs.bytes[at])
        usage.bytes.push_back(bytes * kBytes);
    }
  }
  Optimum optimum = bruteForce(problem);
  ASSERT_TRUE(optimum.cost);
  LabelBounds least = leastCosts(problem, *optimum.cost + 1);
  Cost limit = *optimum.cost + addClique(problem, {0, 3}, {0, 30}) + 1;
  ASSERT_FALSE(problem.check());
  for (double price : {0.02, 2.0, 200.0}) {
    BoundWork work{1e7};
    LabelSets left = labelsLeft(problem, limit, {price, price}, work);
    for (size_t v = 0; v < least.size(); ++v)
      for (size_t l = 0; l < least[v].size(); ++l)
        EXPECT_TRUE(left[v][l] || least[v][l] == kForbidden) << v << ' ' << l;
  }
}
