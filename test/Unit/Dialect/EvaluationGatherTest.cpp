//===- EvaluationGatherTest.cpp - Gather and scatter ----------------------===//

#include "Evaluated.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {

//===----------------------------------------------------------------------===//
// Gather
//===----------------------------------------------------------------------===//

const OpText lookup{
    "shd.gather(%0, %1)", {{"VD"}, {"BT", "i32"}}, {"BTD"}, "at [0]"};

TEST(EvaluationGather, Lookup) {
  // Row v is [10 v, 10 v + 1].
  EXPECT_EQ(evaluate(lookup, {{"V", 3}, {"D", 2}, {"B", 2}, {"T", 2}},
                     {{0, 1, 10, 11, 20, 21}, {2, 0, 1, 2}}),
            (Values{20, 21, 0, 1, 10, 11, 20, 21}));
}

TEST(EvaluationGather, SharedIndexMeansTheSameElement) {
  // y[B, T] = x[B, idx[B, T]].
  OpText text{"shd.gather(%0, %1)", {{"BS"}, {"BT", "i32"}}, {"BT"}, "at [1]"};
  EXPECT_EQ(evaluate(text, {{"B", 2}, {"S", 3}, {"T", 2}},
                     {{1, 2, 3, 4, 5, 6}, {2, 0, 0, 1}}),
            (Values{3, 1, 4, 5}));
}

TEST(EvaluationGather, SeveralAndScalarPositions) {
  // y[T] = x[a[T], b[], T'], the middle dimension selected by a scalar.
  OpText text{"shd.gather(%0, %1, %2)",
              {{"IJD"}, {"T", "i32"}, {"", "i32"}},
              {"DT"},
              "at [0, 1]"};
  // x[i, j, d] = 100 i + 10 j + d; a = [1, 0, 1], b = 1.
  EXPECT_EQ(evaluate(text, {{"I", 2}, {"J", 2}, {"D", 2}, {"T", 3}},
                     {{0, 1, 10, 11, 100, 101, 110, 111}, {1, 0, 1}, {1}}),
            (Values{110, 10, 110, 111, 11, 111}));
}

TEST(EvaluationGather, PositionsOutOfRange) {
  Extents extents{{"V", 3}, {"D", 1}, {"B", 1}, {"T", 2}};
  EXPECT_EQ(errorOf(lookup, extents, {{1, 2, 3}, {0, 3}}),
            "'shd.gather' op position 3 is not in index 'V' of extent 3");
  EXPECT_EQ(errorOf(lookup, extents, {{1, 2, 3}, {-1, 7}}),
            "'shd.gather' op position -1 is not in index 'V' of extent 3");
  // 7 and -1 are 1 and 2 modulo 3.
  EXPECT_EQ(
      evaluate(lookup, extents, {{1, 2, 3}, {7, -1}}, PositionPolicy::Wrap),
      (Values{2, 3}));
}

TEST(EvaluationGather, InParts) {
  Extents extents{{"V", 7}, {"D", 3}, {"B", 3}, {"T", 2}};
  std::vector<Values> inputs{someValues({"VD"}, extents, 1),
                             {6, 0, 3, 3, 5, 1}};
  for (std::map<std::string, int64_t> parts :
       {std::map<std::string, int64_t>{{"V", 2}},
        {{"V", 4}, {"D", 2}},
        {{"B", 2}, {"V", 3}},
        {{"T", 2}}})
    expectPartsMakeWhole(lookup, extents, inputs, parts);
  inputs[1] = {13, -7, 3, 10, 5, 1};
  expectPartsMakeWhole(lookup, extents, inputs, {{"V", 4}},
                       PositionPolicy::Wrap);
}

TEST(EvaluationGather, SeveralPositionsInParts) {
  OpText text{"shd.gather(%0, %1, %2)",
              {{"IJB"}, {"TB", "i32"}, {"B", "i32"}},
              {"BT"},
              "at [0, 1]"};
  Extents extents{{"I", 4}, {"J", 3}, {"B", 3}, {"T", 2}};
  std::vector<Values> inputs{
      someValues({"IJB"}, extents, 1), {0, 1, 2, 3, 1, 0}, {2, 0, 1}};
  expectPartsMakeWhole(text, extents, inputs, {{"I", 2}, {"J", 2}, {"B", 2}});
}

//===----------------------------------------------------------------------===//
// Scatter
//===----------------------------------------------------------------------===//

OpText scatter(const std::string &tail, const std::string &type = "f64") {
  // kc[B, pos[B], D] = k[B, D]
  return {"shd.scatter(%0, %1, %2)",
          {{"BSD", type}, {"BD", type}, {"B", "i32"}},
          {"BSD", type},
          "at [1] " + tail};
}

TEST(EvaluationScatter, WritesAndKeeps) {
  Extents extents{{"B", 2}, {"S", 2}, {"D", 2}};
  std::vector<Values> inputs{
      {1, 2, 3, 4, 5, 6, 7, 8}, {10, 20, 30, 40}, {1, 0}};
  EXPECT_EQ(evaluate(scatter(""), extents, inputs),
            (Values{1, 2, 10, 20, 30, 40, 7, 8}));
  EXPECT_EQ(evaluate(scatter("accumulate"), extents, inputs),
            (Values{1, 2, 13, 24, 35, 46, 7, 8}));
  // 5 + 100 + 30 wraps in an int8: 135 is -121.
  EXPECT_EQ(evaluate(scatter("accumulate", "i8"),
                     {{"B", 1}, {"S", 1}, {"D", 1}}, {{105}, {30}, {0}}),
            Values{-121});
}

/// y[pos[T, U]] = u[U, T]
OpText scatterTwo(const std::string &tail) {
  return {"shd.scatter(%0, %1, %2)",
          {{"S"}, {"UT"}, {"TU", "i32"}},
          {"S"},
          "at [0] " + tail};
}

TEST(EvaluationScatter, LastOfEqualPositions) {
  // Row-major order of the positions: (t, u) = (0, 0), (0, 1), (1, 0), (1, 1)
  // write elements 1, 3, 2, 4 of u. Element 0: 1, then 2; element 1: 3, then 4.
  Extents extents{{"S", 3}, {"T", 2}, {"U", 2}};
  std::vector<Values> inputs{{7, 8, 9}, {1, 2, 3, 4}, {0, 1, 0, 1}};
  EXPECT_EQ(evaluate(scatterTwo(""), extents, inputs), (Values{2, 4, 9}));
  // All to element 2: (1, 1) is the last.
  inputs[2] = {2, 2, 2, 2};
  EXPECT_EQ(evaluate(scatterTwo(""), extents, inputs), (Values{7, 8, 4}));
  EXPECT_EQ(evaluate(scatterTwo("accumulate"), extents, inputs),
            (Values{7, 8, 19}));
  // Among 1 and 2 at (0, 0) and (1, 0), and 3 at (0, 1), the last is 2.
  inputs[2] = {2, 2, 2, 0};
  EXPECT_EQ(evaluate(scatterTwo(""), extents, inputs), (Values{4, 8, 2}));
}

TEST(EvaluationScatter, PositionsOutOfRange) {
  Extents extents{{"B", 1}, {"S", 2}, {"D", 1}};
  EXPECT_EQ(errorOf(scatter(""), extents, {{1, 2}, {3}, {2}}),
            "'shd.scatter' op position 2 is not in index 'S' of extent 2");
  EXPECT_EQ(
      evaluate(scatter(""), extents, {{1, 2}, {3}, {-1}}, PositionPolicy::Wrap),
      (Values{1, 3}));
}

TEST(EvaluationScatter, InParts) {
  Extents extents{{"B", 3}, {"S", 5}, {"D", 3}, {"T", 2}, {"U", 2}};
  std::vector<Values> inputs{someValues({"BSD"}, extents, 1),
                             someValues({"BD"}, extents, 2),
                             {4, 0, 2}};
  for (const char *tail : {"", "accumulate"}) {
    for (std::map<std::string, int64_t> parts :
         {std::map<std::string, int64_t>{{"S", 2}},
          {{"S", 4}, {"B", 2}},
          {{"D", 2}, {"S", 3}}})
      expectPartsMakeWhole(scatter(tail), extents, inputs, parts);
    expectPartsMakeWhole(
        scatterTwo(tail), extents,
        {someValues({"S"}, extents, 3), {1, 2, 3, 4}, {4, 1, 1, 4}},
        {{"S", 3}});
  }
}

//===----------------------------------------------------------------------===//
// Scatter sum
//===----------------------------------------------------------------------===//

const OpText scatterSum{
    "shd.scatter_sum(%0, %1)", {{"BTD"}, {"BT", "i32"}}, {"VD"}, "at [0]"};

TEST(EvaluationScatterSum, AddsEqualPositions) {
  // Rows 2, 0, 2 of 3: [1 2] + [5 6] in row 2, [3 4] in row 0.
  EXPECT_EQ(evaluate(scatterSum, {{"B", 1}, {"T", 3}, {"V", 3}, {"D", 2}},
                     {{1, 2, 3, 4, 5, 6}, {2, 0, 2}}),
            (Values{3, 4, 0, 0, 6, 8}));
}

TEST(EvaluationScatterSum, SharedIndexAndScalarPosition) {
  // y[B, pos[B, T], one] += x[B, T].
  OpText text{"shd.scatter_sum(%0, %1, %2)",
              {{"TB"}, {"BT", "i32"}, {"", "i32"}},
              {"BIJ"},
              "at [1, 2]"};
  EXPECT_EQ(evaluate(text, {{"B", 2}, {"T", 2}, {"I", 2}, {"J", 2}},
                     {{1, 2, 3, 4}, {0, 0, 1, 0}, {1}}),
            (Values{0, 4, 0, 0, 0, 4, 0, 2}));
}

TEST(EvaluationScatterSum, PositionsOutOfRange) {
  Extents extents{{"B", 1}, {"T", 1}, {"V", 3}, {"D", 1}};
  EXPECT_EQ(errorOf(scatterSum, extents, {{1}, {3}}),
            "'shd.scatter_sum' op position 3 is not in index 'V' of extent 3");
  EXPECT_EQ(evaluate(scatterSum, extents, {{1}, {-1}}, PositionPolicy::Wrap),
            (Values{0, 0, 1}));
}

TEST(EvaluationScatterSum, InParts) {
  Extents extents{{"V", 7}, {"D", 3}, {"B", 3}, {"T", 2}};
  std::vector<Values> inputs{someValues({"BTD"}, extents, 1),
                             {6, 0, 3, 3, 5, 1}};
  for (std::map<std::string, int64_t> parts :
       {std::map<std::string, int64_t>{{"V", 2}},
        {{"V", 4}, {"D", 2}},
        {{"B", 2}, {"V", 3}},
        {{"T", 2}, {"B", 3}}})
    expectPartsMakeWhole(scatterSum, extents, inputs, parts);
}

} // namespace
