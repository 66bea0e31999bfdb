//===- EvaluationTest.cpp - Constants, products and layout ----------------===//

#include "Evaluated.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {

double constant(const std::string &text) {
  Program program("%c = shd.constant " + text);
  FailureOr<TensorList> values =
      program.get<ConstantOp>().evaluate({}, {}, PositionPolicy::Error);
  EXPECT_TRUE(succeeded(values));
  EXPECT_EQ(values->front().getRank(), 0u);
  return values->front().getReal(0);
}

TEST(Evaluation, Constants) {
  EXPECT_EQ(constant("dense<1.5> : tensor<f32>"), 1.5);
  EXPECT_EQ(constant("dense<-0.5> : tensor<bf16>"), -0.5);
  EXPECT_EQ(constant("dense<0xFF800000> : tensor<f32>"),
            -std::numeric_limits<double>::infinity());
  EXPECT_EQ(constant("dense<-7> : tensor<i32>"), -7);
  EXPECT_EQ(constant("dense<-8> : tensor<i4>"), -8);
  EXPECT_EQ(constant("dense<255> : tensor<ui8>"), 255);
  EXPECT_EQ(constant("dense<true> : tensor<i1>"), 1);
}

//===----------------------------------------------------------------------===//
// Einsum
//===----------------------------------------------------------------------===//

const OpText matmul{"shd.einsum(%0, %1)", {{"BD"}, {"DF"}}, {"BF"}};

TEST(Evaluation, Matmul) {
  // [1 2] [5 6]   [19 22]
  // [3 4] [7 8] = [43 50]
  EXPECT_EQ(evaluate(matmul, {{"B", 2}, {"D", 2}, {"F", 2}},
                     {{1, 2, 3, 4}, {5, 6, 7, 8}}),
            (Values{19, 22, 43, 50}));
}

TEST(Evaluation, EinsumInAnyOrderOfIndices) {
  // y[F, E] = sum B, D: a[E, B, D] b[D, F], where D is batched nowhere.
  OpText text{"shd.einsum(%0, %1)", {{"EBD"}, {"DF"}}, {"FE"}};
  // E = 2, B = 2, D = 1, F = 2; sum_B a = [1 + 2, 3 + 4] = [3, 7].
  // y[F, E] = b[F] [3, 7] with b = [10, 100].
  EXPECT_EQ(evaluate(text, {{"E", 2}, {"B", 2}, {"D", 1}, {"F", 2}},
                     {{1, 2, 3, 4}, {10, 100}}),
            (Values{30, 70, 300, 700}));
}

TEST(Evaluation, EinsumOfIntegersWraps) {
  OpText text{"shd.einsum(%0, %1)", {{"D", "i8"}, {"D", "i8"}}, {"", "i8"}};
  // 100 * 2 + 50 * 2 = 300 = 44 modulo 256.
  EXPECT_EQ(evaluate(text, {{"D", 2}}, {{100, 50}, {2, 2}}), Values{44});
  text.result.type = "i32";
  EXPECT_EQ(evaluate(text, {{"D", 2}}, {{100, 50}, {2, 2}}), Values{300});
  // 2^31 - 1 squared is 2^62 - 2^32 + 1; twice that is 2^63 - 2^33 + 2.
  OpText wide{"shd.einsum(%0, %1)", {{"D", "i32"}, {"D", "i32"}}, {"", "i32"}};
  double most = 2147483647;
  EXPECT_EQ(evaluate(wide, {{"D", 2}}, {{most, most}, {most, most}}),
            Values{2});
}

TEST(Evaluation, EinsumOfMixedTypesAndBool) {
  OpText mixed{"shd.einsum(%0, %1)", {{"D", "i8"}, {"D", "f32"}}, {"", "f32"}};
  EXPECT_EQ(evaluate(mixed, {{"D", 2}}, {{3, -1}, {0.5, 2}}), Values{-0.5});
  // Products are and, sums or.
  OpText logic{"shd.einsum(%0, %1)", {{"BD", "i1"}, {"D", "i1"}}, {"B", "i1"}};
  EXPECT_EQ(evaluate(logic, {{"B", 2}, {"D", 2}}, {{1, 1, 0, 1}, {1, 1}}),
            (Values{1, 1}));
  EXPECT_EQ(evaluate(logic, {{"B", 2}, {"D", 2}}, {{1, 0, 0, 1}, {1, 0}}),
            (Values{1, 0}));
}

TEST(Evaluation, EinsumInParts) {
  Extents extents{{"B", 5}, {"D", 7}, {"F", 6}};
  std::vector<Values> inputs{someValues({"BD"}, extents, 1),
                             someValues({"DF"}, extents, 2)};
  expectPartsMakeWhole(matmul, extents, inputs, {{"B", 2}});
  expectPartsMakeWhole(matmul, extents, inputs, {{"D", 3}});
  // 7 over 4 is 2, 2, 2 and 1; 5 over 4 is 2, 2, 1 and nothing.
  expectPartsMakeWhole(matmul, extents, inputs, {{"B", 4}, {"D", 4}, {"F", 2}});
}

//===----------------------------------------------------------------------===//
// Layout of indices
//===----------------------------------------------------------------------===//

TEST(Evaluation, SplitAndMerge) {
  OpText split{"shd.split(%0) \"D\" into [\"A\", \"B\"]",
               {{"TD"}},
               {"BTA"},
               "",
               false,
               {{"D", "AB"}}};
  Extents extents{{"T", 2}, {"A", 2}, {"B", 3}, {"D", 6}};
  // x[t, 3 a + b] = 10 t + 3 a + b stands at [b, t, a].
  EXPECT_EQ(
      evaluate(split, extents, {{0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15}}),
      (Values{0, 3, 10, 13, 1, 4, 11, 14, 2, 5, 12, 15}));
  OpText merge{"shd.merge(%0) [\"A\", \"B\"] into \"D\"",
               {{"BTA"}},
               {"TD"},
               "",
               false,
               {{"D", "AB"}}};
  EXPECT_EQ(
      evaluate(merge, extents, {{0, 3, 10, 13, 1, 4, 11, 14, 2, 5, 12, 15}}),
      (Values{0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15}));
  // The minor part may be split where the major one is down to one element.
  std::vector<Values> whole{someValues({"TD"}, extents, 3)};
  std::vector<Values> parts{someValues({"BTA"}, extents, 3)};
  for (std::map<std::string, int64_t> on :
       {std::map<std::string, int64_t>{{"A", 2}},
        {{"A", 2}, {"B", 3}},
        {{"T", 2}, {"A", 2}}}) {
    expectPartsMakeWhole(split, extents, whole, on);
    expectPartsMakeWhole(merge, extents, parts, on);
  }
}

TEST(Evaluation, Slice) {
  OpText slice{"shd.slice(%0) \"I\" [1, 3] into \"J\"", {{"ID"}}, {"DJ"}};
  Extents extents{{"I", 4}, {"D", 2}, {"J", 2}};
  // Rows 1 and 2 of four, with the dimensions swapped.
  EXPECT_EQ(evaluate(slice, extents, {{0, 1, 10, 11, 20, 21, 30, 31}}),
            (Values{10, 20, 11, 21}));
  expectPartsMakeWhole(slice, {{"I", 4}, {"D", 3}, {"J", 2}},
                       {someValues({"ID"}, {{"I", 4}, {"D", 3}}, 1)},
                       {{"D", 2}});
}

TEST(Evaluation, Concat) {
  OpText concat{
      "shd.concat(%0, %1) [\"I\", \"J\"] into \"K\"", {{"ID"}, {"DJ"}}, {"DK"}};
  Extents extents{{"I", 2}, {"J", 1}, {"K", 3}, {"D", 2}};
  // x[I, D] = [[1 2] [3 4]], y[D, J] = [[5] [6]].
  EXPECT_EQ(evaluate(concat, extents, {{1, 2, 3, 4}, {5, 6}}),
            (Values{1, 3, 5, 2, 4, 6}));
  expectPartsMakeWhole(concat, extents, {{1, 2, 3, 4}, {5, 6}}, {{"D", 2}});
  expectPartsMakeWhole(concat, {{"I", 2}, {"J", 1}, {"K", 3}, {"D", 3}},
                       {{1, 2, 3, 4, 5, 6}, {7, 8, 9}}, {{"D", 2}});
}

TEST(Evaluation, Iota) {
  OpText iota{"shd.iota", {}, {"T", "i32"}};
  EXPECT_EQ(evaluate(iota, {{"T", 5}}, {}), (Values{0, 1, 2, 3, 4}));
  // 5 over 3 devices: 0 1, 2 3, 4 and padding.
  expectPartsMakeWhole(iota, {{"T", 5}}, {}, {{"T", 3}});
}

TEST(Evaluation, Reshard) {
  OpText reshard{"shd.reshard(%0)", {{"BD"}}, {"BD"}};
  EXPECT_EQ(evaluate(reshard, {{"B", 2}, {"D", 2}}, {{1, 2, 3, 4}}),
            (Values{1, 2, 3, 4}));
  expectPartsMakeWhole(reshard, {{"B", 3}, {"D", 3}},
                       {{1, 2, 3, 4, 5, 6, 7, 8, 9}}, {{"B", 2}, {"D", 2}});
}

} // namespace
