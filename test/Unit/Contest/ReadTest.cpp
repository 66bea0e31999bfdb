//===- ReadTest.cpp - The contest's JSON ----------------------------------===//

#include "shardc/Contest/Read.h"
#include "gtest/gtest.h"

using namespace shardc;
using namespace shardc::contest;
using solver::kForbidden;

/// A problem of two nodes and one edge with the parts given.
static std::string problem(const std::string &intervals,
                           const std::string &costs, const std::string &usages,
                           const std::string &edges, const std::string &pairs,
                           const std::string &limit) {
  return "{\"problem\": {\"name\": \"x\", \"nodes\": {\"intervals\": " +
         intervals + ", \"costs\": " + costs + ", \"usages\": " + usages +
         "}, \"edges\": {\"nodes\": " + edges + ", \"costs\": " + pairs +
         "}, \"usage_limit\": " + limit + "}}";
}

static std::string errorOf(const std::string &text) {
  ReadResult result = parseProblem(text);
  EXPECT_FALSE(result.problem.has_value());
  return result.error;
}

TEST(Read, Values) {
  ReadResult result = parseProblem(
      problem("[[10, 70], [20, 20]]", "[[1, 2], [1000000000000000000]]",
              "[[3, 4], [5]]", "[[1, 0]]",
              "[[7, 123456789012345678901234567890]]", "9"));
  ASSERT_TRUE(result.problem.has_value()) << result.error;
  const solver::Problem &read = *result.problem;
  ASSERT_EQ(read.variables.size(), 2u);
  EXPECT_EQ(read.variables[0].costs, (std::vector<solver::Cost>{1, 2}));
  // 1e18 and more is forbidden, however many digits it has.
  EXPECT_EQ(read.variables[1].costs, (std::vector<solver::Cost>{kForbidden}));
  EXPECT_EQ(read.tables[0].costs, (std::vector<solver::Cost>{7, kForbidden}));
  EXPECT_EQ(read.tables[0].rows, 1u);
  EXPECT_EQ(read.tables[0].columns, 2u);
  // Points 10 and 70 are all there is; the second node's interval is empty.
  EXPECT_EQ(read.numPoints, 2u);
  EXPECT_EQ(read.variables[0].usages[1][0].bytes, 4);
  EXPECT_TRUE(read.variables[1].usages.empty());
  EXPECT_EQ(read.capacity, 9);
}

TEST(Read, KeysInAnyOrder) {
  ReadResult result = parseProblem(
      "{\"other\": [1, {}], \"problem\": {\"usage_limit\": 1, \"edges\": "
      "{\"costs\": [], \"nodes\": []}, \"nodes\": {\"usages\": [[0]], "
      "\"costs\": [[5]], \"intervals\": [[0, 1]]}}}");
  ASSERT_TRUE(result.problem.has_value()) << result.error;
  EXPECT_EQ(result.problem->variables.size(), 1u);
}

TEST(Read, EqualTablesAreShared) {
  ReadResult result = parseProblem(
      problem("[[0, 1], [0, 1]]", "[[0, 0], [0, 0]]", "[[0, 0], [0, 0]]",
              "[[0, 1], [1, 0]]", "[[1, 2, 3, 4], [1, 2, 3, 4]]", "1"));
  ASSERT_TRUE(result.problem.has_value()) << result.error;
  EXPECT_EQ(result.problem->edges.size(), 2u);
  EXPECT_EQ(result.problem->tables.size(), 1u);
}

TEST(Read, LoopsCostTheirDiagonal) {
  ReadResult result = parseProblem(problem("[[0, 1]]", "[[10, 20]]", "[[0, 0]]",
                                           "[[0, 0]]", "[[1, 2, 3, 4]]", "1"));
  ASSERT_TRUE(result.problem.has_value()) << result.error;
  EXPECT_TRUE(result.problem->edges.empty());
  EXPECT_EQ(result.problem->variables[0].costs,
            (std::vector<solver::Cost>{11, 24}));
}

TEST(Read, Errors) {
  const char *intervals = "[[0, 1], [0, 1]]", *costs = "[[0, 0], [0]]",
             *usages = "[[0, 0], [0]]", *edges = "[[0, 1]]",
             *pairs = "[[1, 2]]";
  EXPECT_EQ(errorOf(problem("[[0, 1]]", costs, usages, edges, pairs, "1")),
            "nodes.intervals has 1 entries: expected 2, one for each of "
            "nodes.costs");
  EXPECT_EQ(
      errorOf(problem("[[0, 1, 2], [0, 1]]", costs, usages, edges, pairs, "1")),
      "nodes.intervals[0] has 3 numbers: expected 2");
  EXPECT_EQ(errorOf(problem(intervals, "[[0, 0], []]", "[[0, 0], []]", edges,
                            pairs, "1")),
            "nodes.costs[1] is empty: expected at least one strategy");
  EXPECT_EQ(
      errorOf(problem(intervals, "[[0, -7], [0]]", usages, edges, pairs, "1")),
      "nodes.costs[0][1] is -7: expected no negative number");
  EXPECT_EQ(
      errorOf(problem(intervals, costs, "[[0, 1.5], [0]]", edges, pairs, "1")),
      "nodes.usages[0][1] is 1.5: expected an integer");
  EXPECT_EQ(errorOf(problem(intervals, costs, "[[0], [0]]", edges, pairs, "1")),
            "nodes.usages[0] has 1 entries: expected 2, one for each of "
            "nodes.costs[0]");
  EXPECT_EQ(errorOf(problem(intervals, costs, usages, "[[0, 2]]", pairs, "1")),
            "edges.nodes[0] names node 2: expected one of 2 nodes");
  EXPECT_EQ(errorOf(problem(intervals, costs, usages, edges, "[[1]]", "1")),
            "edges.costs[0] has 1 entries: expected 2, 2 strategies of node 0 "
            "times 1 of node 1");
  EXPECT_EQ(errorOf(problem(intervals, costs, usages, edges, "[]", "1")),
            "edges.costs has 0 entries: expected 1, one for each of "
            "edges.nodes");
  EXPECT_EQ(errorOf(problem(intervals, costs, usages, edges, pairs,
                            "99999999999999999999")),
            "usage_limit overflows: expected at most 9223372036854775807");
  EXPECT_EQ(errorOf(problem(intervals, costs, usages, edges, pairs, "\"1\"")),
            "usage_limit is \"1\": expected an integer");
  EXPECT_EQ(errorOf("{\"problem\": {\"nodes\": {}, \"edges\": {}}}"),
            "'usage_limit' is missing in 'problem'");
  EXPECT_EQ(errorOf("{}"), "'problem' is missing");
  EXPECT_EQ(errorOf("[]"), "the whole file has the wrong type");
}

TEST(Read, NothingMayFollow) {
  std::string text = problem("[]", "[]", "[]", "[]", "[]", "1");
  EXPECT_TRUE(parseProblem(text + " \n").problem.has_value());
  EXPECT_NE(errorOf(text + " 5"), "");
  EXPECT_EQ(errorOf(text + " {}"),
            "is not valid JSON: expected nothing behind the problem");
}

TEST(Read, NotJson) {
  for (const char *text : {"", "   ", "hello", "{\"problem\": {\"nodes\": ",
                           "{\"problem\": {\"nodes\": {\"costs\": [[1, 2"}) {
    SCOPED_TRACE(text);
    EXPECT_NE(errorOf(text), "");
  }
}
