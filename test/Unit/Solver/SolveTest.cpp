//===- SolveTest.cpp - The whole solver against brute force ---------------===//

#include "shardc/Solver/Solve.h"
#include "BruteForce.h"
#include "gtest/gtest.h"

using namespace shardc::solver;
using namespace shardc::solver::test;

/// The answer must be right whatever its status says.
static void expectSound(const Problem &problem, const Solution &solution) {
  Optimum optimum = bruteForce(problem);
  bool found =
      solution.status == Status::Optimal || solution.status == Status::Feasible;
  if (found) {
    ASSERT_TRUE(optimum.cost.has_value());
    Evaluation now = evaluate(problem, solution.assignment);
    ASSERT_TRUE(now.cost.has_value());
    EXPECT_TRUE(now.fits);
    EXPECT_EQ(*now.cost, solution.cost);
    EXPECT_EQ(now.peak, solution.peak);
    EXPECT_LE(solution.bound, *optimum.cost);
  }
  if (solution.status == Status::Optimal) {
    EXPECT_EQ(solution.cost, *optimum.cost);
    EXPECT_EQ(solution.bound, *optimum.cost);
  }
  if (solution.status == Status::Infeasible)
    EXPECT_FALSE(optimum.cost.has_value());
  if (!found && optimum.leastPeak) {
    ASSERT_EQ(solution.assignment.size(), problem.variables.size());
    EXPECT_TRUE(evaluate(problem, solution.assignment).cost.has_value());
    EXPECT_EQ(solution.peak, *optimum.leastPeak);
  }
}

TEST(Solve, SmallRandomProblemsWithoutMemory) {
  std::mt19937_64 random(1);
  Shape shape;
  shape.memory = false;
  for (int i = 0; i < 2000; ++i) {
    SCOPED_TRACE(i);
    Problem problem = randomProblem(random, shape);
    ASSERT_EQ(problem.check(), std::nullopt);
    Solution solution = solve(problem);
    expectSound(problem, solution);
    EXPECT_TRUE(solution.status == Status::Optimal ||
                solution.status == Status::Infeasible);
  }
}

TEST(Solve, SmallRandomProblemsWithMemory) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 4000; ++i) {
    SCOPED_TRACE(i);
    Problem problem = randomProblem(random, Shape());
    ASSERT_EQ(problem.check(), std::nullopt);
    Solution solution = solve(problem);
    expectSound(problem, solution);
    EXPECT_TRUE(solution.status == Status::Optimal ||
                solution.status == Status::Infeasible);
  }
}
