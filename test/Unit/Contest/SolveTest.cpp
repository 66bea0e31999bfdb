//===- SolveTest.cpp - Answers to problems of the contest -----------------===//

#include "shardc/Contest/Solve.h"
#include "gtest/gtest.h"

using namespace shardc;
using namespace shardc::contest;
using solver::Status;

static solver::Problem chain(solver::Cost cheap, solver::Cost dear, int count) {
  solver::Problem problem;
  problem.numPoints = 1;
  problem.capacity = count - 1;
  for (int v = 0; v < count; ++v)
    // One of them must take its dear label, which needs no memory.
    problem.variables.push_back(
        {"", {cheap, dear}, {{{0, 1, 1}}, {{0, 1, 0}}}});
  return problem;
}

TEST(ContestSolve, CostsThatNeedMoreThan64Bits) {
  const solver::Cost dear = 999'999'999'999'999'999;
  Answer answer = contest::solve(chain(dear - 1, dear, 40), {});
  ASSERT_EQ(answer.choices.size(), 40u);
  // 39 cheap ones and a dear one, or a few dear ones where costs were divided.
  solver::Wide least = solver::Wide(dear) * 40 - 39;
  EXPECT_GE(answer.cost, least);
  EXPECT_LE(answer.cost, least + 40);
  ASSERT_TRUE(answer.bound.has_value());
  EXPECT_LE(*answer.bound, least);
  EXPECT_LT(answer.gap(), 1e-9);
}

TEST(ContestSolve, Infeasible) {
  solver::Problem problem = chain(1, 2, 3);
  for (solver::VariableData &variable : problem.variables)
    variable.usages[1][0].bytes = 1;
  Answer answer = contest::solve(problem, {});
  EXPECT_EQ(answer.status, Status::Infeasible);
  EXPECT_TRUE(answer.choices.empty());
  EXPECT_NE(toText(answer).find("infeasible: proven"), std::string::npos);
}

TEST(ContestSolve, Json) {
  Answer answer = contest::solve(chain(1, 3, 2), {});
  // One cheap, one dear: 1 + 3.
  EXPECT_EQ(answer.status, Status::Optimal);
  std::string json = toJson(answer, 0.5);
  EXPECT_EQ(json.substr(0, json.find(", \"choices\"")),
            "{\"schema\": \"shardc.solve/1\", \"status\": \"optimal\", "
            "\"cost\": 4, \"bound\": 4, \"gap\": 0, \"peak\": 1, \"limit\": 1, "
            "\"seconds\": 0.500");
}
