//===- WriteTest.cpp - Problems in the contest's format -------------------===//

#include "shardc/Contest/Write.h"
#include "../Solver/BruteForce.h"
#include "shardc/Contest/Read.h"
#include "shardc/Solver/Solve.h"
#include "gtest/gtest.h"

using namespace shardc;
using namespace shardc::solver;
using namespace shardc::solver::test;

/// The problem written and read back.
static Problem rewritten(const Problem &problem) {
  std::string text;
  llvm::raw_string_ostream os(text);
  std::optional<std::string> error =
      contest::writeProblem(os, problem, "a \"name\"");
  EXPECT_EQ(error, std::nullopt);
  contest::ReadResult read = contest::parseProblem(text);
  EXPECT_TRUE(read.problem.has_value()) << read.error;
  return read.problem.value_or(Problem());
}

TEST(WriteProblem, SameOptimum) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 1000; ++i) {
    SCOPED_TRACE(i);
    Shape shape;
    shape.maxVariables = 5;
    shape.edgePercent = 30 + i % 3 * 30;
    Problem problem = randomProblem(random, shape);
    if (!problem.capacity)
      problem.capacity = 1000;
    Optimum optimum = bruteForce(problem);
    Problem written = rewritten(problem);
    ASSERT_EQ(written.check(), std::nullopt);
    Solution solution = solve(written);
    if (!optimum.cost) {
      EXPECT_EQ(solution.status, Status::Infeasible);
      continue;
    }
    ASSERT_EQ(solution.status, Status::Optimal);
    EXPECT_EQ(solution.cost, *optimum.cost);
    // The first choices are those of the problem, with the same memory.
    solution.assignment.resize(problem.variables.size());
    Evaluation original = evaluate(problem, solution.assignment);
    EXPECT_EQ(original.cost, optimum.cost);
    EXPECT_EQ(original.peak, solution.peak);
  }
}

TEST(WriteProblem, IntervalsAndPairsBecomeNodes) {
  Problem problem;
  problem.numPoints = 4;
  problem.capacity = 20;
  problem.fixedUsage = {0, 3, 3, 0};
  problem.variables.push_back(
      {"a", {1, 2}, {{{0, 2, 5}}, {{0, 2, 6}, {3, 4, 7}}}});
  problem.variables.push_back({"b", {0, kForbidden, 4}, {}});
  // Labels 0 and 2 of b use the same with each label of a.
  problem.tables.push_back({2, 3, {9, 8, 7, 6, 5, 4}});
  problem.edges.push_back({0, 1, 0});
  problem.edgeUsages.push_back({0, 1, 3, {1, 2, 1, 0, 2, 0}});
  std::string text;
  llvm::raw_string_ostream os(text);
  ASSERT_EQ(contest::writeProblem(os, problem, "p"), std::nullopt);
  // Nodes: a over [0, 2), b, what a uses over [3, 4) (0 or 7), the kinds of
  // pairs (two rows by two columns: 1 2, 0 2), and what is always in use.
  EXPECT_EQ(text,
            "{\"problem\": {\"name\": \"p\",\n"
            "\"nodes\": {\"intervals\": [[0,2], [0,0], [3,4], [1,3], [1,3]],\n"
            "\"costs\": [[1,2], [0,1000000000000000000,4], [0,0], [0,0,0,0], "
            "[0]],\n"
            "\"usages\": [[5,6], [0,0,0], [0,7], [1,2,0,2], [3]]},\n"
            "\"edges\": {\"nodes\": [[0,2], [0,1], [0,3], [1,3]],\n"
            "\"costs\": [[0,1000000000000000000,1000000000000000000,0], "
            "[9,8,7,6,5,4], "
            "[0,0,1000000000000000000,1000000000000000000,"
            "1000000000000000000,1000000000000000000,0,0], "
            "[0,1000000000000000000,0,1000000000000000000,"
            "1000000000000000000,0,1000000000000000000,0,"
            "0,1000000000000000000,0,1000000000000000000]]},\n"
            "\"usage_limit\": 20}}\n");
}

TEST(WriteProblem, RefusesWhatTheFormatCannotSay) {
  Problem problem;
  problem.capacity = 1;
  problem.variables.push_back({"a", {-1, 0}, {}});
  std::string text;
  llvm::raw_string_ostream os(text);
  EXPECT_EQ(contest::writeProblem(os, problem, "p"),
            "it has costs that are negative or not below 1000000000000000000");
  problem.variables[0].costs = {1'000'000'000'000'000'000, 0};
  EXPECT_EQ(contest::writeProblem(os, problem, "p"),
            "it has costs that are negative or not below 1000000000000000000");
  EXPECT_EQ(text, "");
}
