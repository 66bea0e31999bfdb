//===- LabelBoundsTest.cpp - What assignments with a label cost -----------===//

#include "shardc/Solver/LabelBounds.h"
#include "BruteForce.h"
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

/// What the best assignment with each label costs, if it fits and costs less
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
    // Of lower limits they tell as much.
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
  std::mt19937_64 random(3);
  constexpr unsigned kVariables = 11, kLabels = 10;
  Problem problem;
  problem.numPoints = 1;
  problem.capacity = kVariables * 5;
  for (unsigned v = 0; v < kVariables; ++v) {
    VariableData &data = problem.variables.emplace_back();
    for (unsigned label = 0; label < kLabels; ++label) {
      data.costs.push_back(uniform(random, 0, 100));
      data.usages.push_back({{0, 1, int64_t(label)}});
    }
  }
  for (unsigned a = 0; a < kVariables; ++a)
    for (unsigned b = a + 1; b < kVariables; ++b) {
      problem.edges.push_back({a, b, TableId(problem.tables.size())});
      Table &table = problem.tables.emplace_back();
      table.rows = table.columns = kLabels;
      for (unsigned i = 0; i < kLabels * kLabels; ++i)
        table.costs.push_back(1000 + uniform(random, 0, 1000));
    }
  ASSERT_FALSE(problem.check());
  BoundWork work{1e7};
  EXPECT_EQ(countLabels(labelsLeft(problem, 1000, {}, work)), 0u);
}
