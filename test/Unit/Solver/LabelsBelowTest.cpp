//===- LabelsBelowTest.cpp - Labels of cheaper assignments ----------------===//

#include "shardc/Solver/LabelsBelow.h"
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

/// What every assignment that fits and costs less than `limit` uses, by trying
/// them all.
static LabelSets labelsInUse(const Problem &problem, Cost limit) {
  LabelSets used;
  for (const VariableData &variable : problem.variables)
    used.emplace_back(variable.costs.size(), false);
  eachAssignment(problem, [&](const auto &labels, const Evaluation &now) {
    if (!now.cost || !now.fits || *now.cost >= limit)
      return;
    for (size_t v = 0; v < labels.size(); ++v)
      used[v][labels[v]] = true;
  });
  return used;
}

/// Whatever prices it starts from.
TEST(LabelsBelow, KeepsWhatCheaperAssignmentsUse) {
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
    LabelSets used = labelsInUse(problem, limit);
    for (const std::vector<double> &start : {std::vector<double>(), prices}) {
      double work = 1e7;
      LabelSets left = labelsBelow(problem, limit, start, work);
      ASSERT_EQ(left.size(), used.size());
      for (size_t v = 0; v < used.size(); ++v)
        for (size_t l = 0; l < used[v].size(); ++l)
          EXPECT_TRUE(left[v][l] || !used[v][l]) << v << ' ' << l;
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
TEST(LabelsBelow, IsExactWithoutMemory) {
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
    double work = 1e7;
    EXPECT_EQ(labelsBelow(problem, limit, {}, work),
              labelsInUse(problem, limit));
  }
}

/// Layers like those of a transformer, in tight memory.
TEST(LabelsBelow, KeepsThePlanOfLayers) {
  Problem problem = LayeredNetwork(3).problem;
  Solution free = solve(problem);
  problem.capacity = free.peak * 3 / 4;
  Solution solution = solve(problem);
  ASSERT_TRUE(solution.status == Status::Optimal ||
              solution.status == Status::Feasible);
  double work = 1e9;
  LabelSets left =
      labelsBelow(problem, solution.cost + 1, solution.multipliers, work);
  EXPECT_LT(work, 1e9);
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
TEST(LabelsBelow, KeepsNothingFarBelowAllCosts) {
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
  double work = 1e7;
  EXPECT_EQ(countLabels(labelsBelow(problem, 1000, {}, work)), 0u);
}
