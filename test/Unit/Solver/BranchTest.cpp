//===- BranchTest.cpp - Branch and bound without searches -----------------===//

#include "BruteForce.h"
#include "Rounds.h"
#include "shardc/Solver/Polish.h"
#include "gtest/gtest.h"

using namespace shardc::solver;
using namespace shardc::solver::test;

/// A problem whose capacity is between its least peak and what it would use
/// freely, so that the relaxation leaves a gap.
static Problem tightProblem(std::mt19937_64 &random) {
  Shape shape;
  shape.minVariables = 6;
  shape.maxVariables = 7;
  shape.maxCost = 1000;
  shape.forbiddenPercent = 5;
  shape.maxPoints = 3;
  Problem problem = randomProblem(random, shape);
  for (VariableData &variable : problem.variables)
    for (std::vector<Usage> &usages : variable.usages)
      for (Usage &usage : usages)
        usage.bytes = uniform(random, 0, 1000);
  if (std::optional<int64_t> least = bruteForce(problem).leastPeak)
    problem.capacity = *least + *least / 10;
  return problem;
}

TEST(Branch, ClosesWhatSearchesLeave) {
  std::mt19937_64 random(11);
  Effort effort;
  effort.searchWidth = 0;
  unsigned optimal = 0, solvable = 0;
  for (int i = 0; i < 1500; ++i) {
    SCOPED_TRACE(i);
    Problem problem = tightProblem(random);
    Optimum optimum = bruteForce(problem);
    if (!optimum.cost)
      continue;
    ++solvable;
    Solution solution = Rounds(problem, effort).run();
    EXPECT_LE(solution.bound, *optimum.cost);
    EXPECT_NE(solution.status, Status::Infeasible);
    if (solution.status != Status::Optimal)
      continue;
    ++optimal;
    EXPECT_EQ(solution.cost, *optimum.cost);
  }
  EXPECT_GT(optimal, solvable * 9 / 10);
}

TEST(Polish, OfEqualCostsTheLeastMemory) {
  // v reads u: u's labels 0 and 1 cost v the same, and label 1 is smaller.
  Problem problem;
  problem.numPoints = 2;
  problem.variables = {
      {"u", {0, 0, 5}, {{{0, 2, 8}}, {{0, 2, 4}}, {{0, 2, 1}}}},
      {"v", {0, 0}, {}}};
  problem.tables = {{3, 2, {1, 2, 1, 3, 1, 1}}};
  problem.edges = {{0, 1, 0}};
  std::vector<Label> assignment = {0, 0};
  polish(problem, assignment);
  EXPECT_EQ(assignment, (std::vector<Label>{1, 0}));
}

TEST(Polish, ChainsChangeTogether) {
  // A tensor, whole in 8 bytes or split in 2, and two views of it, which take a
  // byte only where they alone are split. A split part of what is whole is
  // free, the whole of what is split is not.
  Problem problem;
  problem.numPoints = 1;
  std::vector<std::vector<Usage>> ofTensor = {{{0, 1, 8}}, {{0, 1, 2}}},
                                  ofView = {{}, {{0, 1, 1}}};
  problem.variables = {{"tensor", {0, 0}, ofTensor},
                       {"view", {0, 0}, ofView},
                       {"view of view", {0, 0}, ofView},
                       {"reader", {0}, {}}};
  problem.tables = {{2, 2, {0, 0, 5, 0}}, {2, 1, {0, 0}}};
  problem.edges = {{0, 1, 0}, {1, 2, 0}, {2, 3, 1}};
  std::vector<Label> assignment = {0, 0, 0, 0};
  polish(problem, assignment);
  EXPECT_EQ(assignment, (std::vector<Label>{0, 0, 0, 0}));
  polishChains(problem, assignment);
  EXPECT_EQ(assignment, (std::vector<Label>{1, 1, 1, 0}));
}

TEST(Polish, ShortChainsComeFirst) {
  // A tensor and a view of it, which another of 200 labels reads at no cost if
  // both are whole or both are split, and five more of as many labels behind
  // it: far more chains than can be tried end elsewhere.
  constexpr size_t kLabels = 200, kReaders = 6;
  Problem problem;
  problem.numPoints = 1;
  problem.variables = {{"tensor", {0, 0}, {{{0, 1, 8}}, {{0, 1, 2}}}},
                       {"view", std::vector<Cost>(kLabels, 0), {}}};
  // Every label of the view but the first does for a split tensor; those but
  // the last cost something with the first reader's first label.
  std::vector<Cost> ofView(2 * kLabels, 0);
  ofView[kLabels] = 5;
  std::vector<Cost> ofReader(kLabels * kLabels, 0);
  for (size_t label = 1; label + 1 < kLabels; ++label)
    ofReader[label * kLabels] = 5;
  std::vector<Cost> alike(kLabels * kLabels, 5);
  alike[0] = 0;
  problem.tables = {{2, kLabels, ofView},
                    {kLabels, kLabels, ofReader},
                    {kLabels, kLabels, alike}};
  problem.edges = {{0, 1, 0}, {1, 2, 1}};
  for (size_t i = 0; i < kReaders; ++i) {
    problem.variables.push_back({"reader", std::vector<Cost>(kLabels, 0), {}});
    if (i > 0)
      problem.edges.push_back({Variable(i + 1), Variable(i + 2), 2});
  }
  std::vector<Label> assignment(2 + kReaders, 0);
  polishChains(problem, assignment);
  EXPECT_EQ(assignment[0], 1u);
  EXPECT_EQ(assignment[1], kLabels - 1);
}

TEST(Polish, NeverCostsMoreNorRaisesThePeak) {
  std::mt19937_64 random(12);
  for (int i = 0; i < 1000; ++i) {
    SCOPED_TRACE(i);
    Problem problem = tightProblem(random);
    std::vector<Label> assignment = solve(problem).assignment;
    if (assignment.empty())
      continue;
    for (size_t v = 0; v < assignment.size(); ++v)
      assignment[v] = uniform(random, 0, problem.variables[v].costs.size() - 1);
    Evaluation before = evaluate(problem, assignment);
    (i % 2 ? polish : polishChains)(problem, assignment);
    Evaluation after = evaluate(problem, assignment);
    if (!before.cost)
      continue;
    EXPECT_EQ(after.cost, before.cost);
    EXPECT_LE(after.peak, before.peak);
  }
}
