//===- ProblemTest.cpp - Checks and evaluation ----------------------------===//

#include "shardc/Solver/Problem.h"
#include "gtest/gtest.h"

using namespace shardc::solver;

/// Variables a (2 labels) and b (3 labels), one edge with a buffer, 4 points.
static Problem smallProblem() {
  Problem problem;
  problem.numPoints = 4;
  problem.capacity = 20;
  problem.fixedUsage = {1, 2, 3, 4};
  problem.variables.push_back(
      {"a", {10, 20}, {{{0, 2, 5}}, {{0, 4, 1}, {1, 2, 2}}}});
  problem.variables.push_back({"b", {1, kForbidden, 3}, {}});
  problem.tables.push_back({2, 3, {100, 0, 300, kForbidden, 0, 600}});
  problem.edges.push_back({0, 1, 0});
  problem.edgeUsages.push_back({0, 1, 3, {7, 0, 9, 0, 0, 11}});
  return problem;
}

static void expectError(const Problem &problem, const std::string &part) {
  std::optional<std::string> error = problem.check();
  ASSERT_TRUE(error.has_value()) << "expected an error with: " << part;
  EXPECT_NE(error->find(part), std::string::npos) << *error;
}

TEST(Evaluate, AddsCostsAndMemory) {
  // Labels 0 and 2: 10 + 3 + 300. Memory: fixed 1 2 3 4, a: 5 5 0 0,
  // edge: 0 9 9 0; sums 6 16 12 4.
  Evaluation now = evaluate(smallProblem(), {0, 2});
  EXPECT_EQ(now.cost, 313);
  EXPECT_EQ(now.usage, (std::vector<int64_t>{6, 16, 12, 4}));
  EXPECT_EQ(now.peak, 16);
  EXPECT_EQ(now.peakPoint, 1u);
  EXPECT_TRUE(now.fits);
}

TEST(Evaluate, SeesWhatIsForbiddenAndWhatDoesNotFit) {
  EXPECT_EQ(evaluate(smallProblem(), {0, 1}).cost, std::nullopt);
  EXPECT_EQ(evaluate(smallProblem(), {1, 0}).cost, std::nullopt);
  Problem problem = smallProblem();
  problem.capacity = 15;
  EXPECT_FALSE(evaluate(problem, {0, 2}).fits);
  problem.capacity.reset();
  EXPECT_TRUE(evaluate(problem, {0, 2}).fits);
}

TEST(Evaluate, ReportsTheFirstPointOfThePeak) {
  // a's second label: 1 everywhere and 2 at point 1; edge 11 at points 1 and 2;
  // fixed 1 2 3 4: sums 2 16 15 5.
  Evaluation now = evaluate(smallProblem(), {1, 2});
  EXPECT_EQ(now.usage, (std::vector<int64_t>{2, 16, 15, 5}));
  EXPECT_EQ(now.peakPoint, 1u);
  EXPECT_EQ(now.cost, 20 + 3 + 600);
}

TEST(Check, AcceptsWhatIsRight) {
  EXPECT_EQ(smallProblem().check(), std::nullopt);
  EXPECT_EQ(Problem().check(), std::nullopt);
}

TEST(Check, NamesEmptyDomains) {
  Problem problem = smallProblem();
  problem.variables.push_back({"empty", {}, {}});
  expectError(problem, "variable 'empty' has no label");
}

TEST(Check, NamesCostsOutOfRange) {
  Problem problem = smallProblem();
  problem.variables[0].costs[1] = kMaxTotal;
  expectError(problem, "cost 1 of variable 'a' is out of range");
  problem = smallProblem();
  problem.tables[0].costs[4] = -kMaxTotal;
  expectError(problem, "cost 4 of table 0 is out of range");
}

TEST(Check, NamesSumsOutOfRange) {
  Problem problem = smallProblem();
  problem.variables[0].costs[0] = kMaxTotal - 1;
  expectError(problem, "the largest costs add up to too much");
  problem = smallProblem();
  int64_t half = std::numeric_limits<int64_t>::max() / 8;
  problem.variables[0].usages[0] = {{0, 1, half}, {0, 1, half}};
  expectError(problem, "the largest memory usages add up to too much");
}

TEST(Check, ForbidsWhatMakesSumsTooLarge) {
  // Three summands: a quarter of the largest sum is too large for each, and
  // smaller costs stay.
  Problem problem = smallProblem();
  EXPECT_EQ(forbidLargest(problem), std::nullopt);
  problem.variables[0].costs[1] = kMaxTotal / 3;
  problem.tables[0].costs[2] = kMaxTotal / 2;
  EXPECT_EQ(forbidLargest(problem), std::nullopt);
  problem.tables[0].costs[5] = kMaxTotal - 1;
  EXPECT_EQ(forbidLargest(problem), kMaxTotal / 3);
  EXPECT_EQ(problem.check(), std::nullopt);
  EXPECT_EQ(problem.variables[0].costs, (std::vector<Cost>{10, kForbidden}));
  EXPECT_EQ(problem.tables[0].costs,
            (std::vector<Cost>{100, 0, kForbidden, kForbidden, 0, kForbidden}));
}

TEST(Check, NamesWrongShapes) {
  Problem problem = smallProblem();
  problem.tables[0].costs.pop_back();
  expectError(problem, "table 0 has 5 entries: expected 2 rows of 3");
  problem = smallProblem();
  problem.variables[1].costs.push_back(0);
  expectError(problem, "is 2 x 3: expected 2 x 4");
  problem = smallProblem();
  problem.variables[0].usages.pop_back();
  expectError(problem, "variable 'a' has 1 lists of memory usage");
  problem = smallProblem();
  problem.edgeUsages[0].bytes.pop_back();
  expectError(problem, "edge usage 0 has 5 entries: expected 6");
  problem = smallProblem();
  problem.fixedUsage.pop_back();
  expectError(problem, "fixed usage has 3 entries");
}

TEST(Check, NamesWrongReferences) {
  Problem problem = smallProblem();
  problem.edges[0].second = 0;
  expectError(problem, "edge 0 joins variable 'a' with itself");
  problem = smallProblem();
  problem.edges[0].second = 2;
  expectError(problem, "edge 0 joins variables 0 and 2: expected two of 2");
  problem = smallProblem();
  problem.edges[0].table = 1;
  expectError(problem, "edge 0 uses table 1: expected one of 1 tables");
  problem = smallProblem();
  problem.edgeUsages[0].edge = 1;
  expectError(problem, "edge usage 0 belongs to edge 1");
}

TEST(Check, NamesWrongMemory) {
  Problem problem = smallProblem();
  problem.variables[0].usages[0][0].end = 5;
  expectError(problem, "memory of variable 'a' is used over points [0, 5)");
  problem = smallProblem();
  problem.variables[0].usages[0][0].bytes = -1;
  expectError(problem, "memory of variable 'a' is out of range");
  problem = smallProblem();
  problem.capacity = -1;
  expectError(problem, "memory of the capacity is out of range");
  problem = smallProblem();
  problem.edgeUsages[0].begin = 3;
  problem.edgeUsages[0].end = 2;
  expectError(problem, "memory of edge usage 0 is used over points [3, 2)");
}
