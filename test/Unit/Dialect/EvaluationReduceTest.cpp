//===- EvaluationReduceTest.cpp - Reductions, normalisations, losses ------===//

#include "Evaluated.h"
#include <cmath>

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

OpText reduce(const std::string &kind, const std::string &type = "f64",
              const std::string &resultType = "f64") {
  return {"shd.reduce " + kind + "(%0)", {{"BDS", type}}, {"D", resultType}};
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

TEST(EvaluationReduce, ByHand) {
  // x[B, D, S] = [[[1 9] [3 4]] [[5 6] [-7 8]]]
  Values x{1, 9, 3, 4, 5, 6, -7, 8};
  Extents extents{{"B", 2}, {"D", 2}, {"S", 2}};
  EXPECT_EQ(evaluate(reduce("sum"), extents, {x}), (Values{21, 8}));
  EXPECT_EQ(evaluate(reduce("mean"), extents, {x}), (Values{5.25, 2}));
  EXPECT_EQ(evaluate(reduce("max"), extents, {x}), (Values{9, 8}));
  EXPECT_EQ(evaluate(reduce("min"), extents, {x}), (Values{1, -7}));
  // Over [B, S] in row-major order: 9 is element 1 of [1 9 5 6], 8 element 3.
  EXPECT_EQ(evaluate(reduce("argmax", "f64", "i32"), extents, {x}),
            (Values{1, 3}));
}

TEST(EvaluationReduce, Integers) {
  Extents extents{{"B", 1}, {"D", 1}, {"S", 3}};
  // 100 + 100 + 100 = 300 = 44 modulo 256.
  EXPECT_EQ(evaluate(reduce("sum", "i8", "i8"), extents, {{100, 100, 100}}),
            Values{44});
  EXPECT_EQ(evaluate(reduce("sum", "i8", "i32"), extents, {{100, 100, 100}}),
            Values{300});
  EXPECT_EQ(evaluate(reduce("mean", "i8", "f32"), extents, {{1, 2, 4}}),
            Values{7.0 / 3});
  EXPECT_EQ(evaluate(reduce("max", "i8", "i8"), extents, {{-5, -4, -128}}),
            Values{-4});
  EXPECT_EQ(evaluate(reduce("min", "ui8", "ui8"), extents, {{255, 200, 201}}),
            Values{200});
}

TEST(EvaluationReduce, FirstOfEqualMaximaWins) {
  EXPECT_EQ(
      evaluate(reduce("argmax", "f64", "i32"), {{"B", 1}, {"D", 2}, {"S", 4}},
               {{2, 7, 7, 1, -infinity, -infinity, -infinity, -infinity}}),
      (Values{1, 0}));
}

TEST(EvaluationReduce, InParts) {
  Extents extents{{"B", 3}, {"D", 5}, {"S", 7}};
  std::vector<Values> inputs{someValues({"BDS"}, extents, 4)};
  std::vector<std::map<std::string, int64_t>> cases{
      {{"S", 2}},
      {{"B", 2}, {"S", 4}},
      {{"D", 4}},
      {{"D", 2}, {"B", 3}},
      // 5 elements over 4: the last has none.
      {{"D", 4}, {"S", 3}}};
  for (const char *kind : {"sum", "mean", "max", "min"})
    for (auto &parts : cases)
      expectPartsMakeWhole(reduce(kind), extents, inputs, parts);
  for (auto &parts : cases)
    expectPartsMakeWhole(reduce("argmax", "f64", "i32"), extents, inputs,
                         parts);
}

TEST(EvaluationReduce, NothingOnTheLastDevice) {
  // 5 over 4 is 2, 2, 1 and nothing, whose maximum must not win.
  Extents extents{{"B", 5}, {"D", 1}, {"S", 1}};
  for (const char *type : {"f64", "f8E4M3FN", "i8"}) {
    expectPartsMakeWhole(reduce("max", type, type), extents,
                         {{-5, -4, -3, -8, -9}}, {{"B", 4}});
    expectPartsMakeWhole(reduce("min", type, type), extents, {{5, 4, 3, 8, 9}},
                         {{"B", 4}});
    expectPartsMakeWhole(reduce("argmax", type, "i32"), extents,
                         {{-5, -4, -3, -3, -9}}, {{"B", 4}});
  }
}

TEST(EvaluationReduce, EqualMaximaOnSeveralDevices) {
  // Elements 1 and 3 of [B, S] are greatest; the first is on device S = 1.
  Extents extents{{"B", 2}, {"D", 1}, {"S", 2}};
  OpText text = reduce("argmax", "f64", "i32");
  EXPECT_EQ(evaluate(text, extents, {{0, 5, 1, 5}}), Values{1});
  expectPartsMakeWhole(text, extents, {{0, 5, 1, 5}}, {{"S", 2}});
  expectPartsMakeWhole(text, extents, {{0, 5, 1, 5}}, {{"B", 2}, {"S", 2}});
}

//===----------------------------------------------------------------------===//
// Normalisations
//===----------------------------------------------------------------------===//

OpText normalize(const std::string &kind, unsigned inputs = 1,
                 const std::string &tail = "") {
  OpText text{"shd.normalize " + kind + "(%0", {{"BD"}}, {"BD"}, tail};
  for (unsigned i = 1; i < inputs; ++i) {
    text.head += ", %" + std::to_string(i);
    text.operands.push_back({"D"});
  }
  text.head += ") over [\"D\"]";
  if (kind == "logsumexp")
    text.result = {"B"};
  return text;
}

const double log2 = std::log(2.0), log3 = std::log(3.0);

TEST(EvaluationNormalize, Softmax) {
  // e^x = 1, 2, 3 sums to 6; the second row is the first plus 1000.
  expectNear(evaluate(normalize("softmax"), {{"B", 2}, {"D", 3}},
                      {{0, log2, log3, 1000, 1000 + log2, 1000 + log3}}),
             {1.0 / 6, 2.0 / 6, 3.0 / 6, 1.0 / 6, 2.0 / 6, 3.0 / 6});
  expectNear(evaluate(normalize("logsumexp"), {{"B", 2}, {"D", 3}},
                      {{0, log2, log3, 1000, 1000 + log2, 1000 + log3}}),
             {std::log(6.0), 1000 + std::log(6.0)});
}

TEST(EvaluationNormalize, MinusInfinitiesAreNoNaNs) {
  EXPECT_EQ(evaluate(normalize("softmax"), {{"B", 2}, {"D", 2}},
                     {{-infinity, -infinity, -infinity, 3}}),
            (Values{0, 0, 0, 1}));
  EXPECT_EQ(evaluate(normalize("logsumexp"), {{"B", 2}, {"D", 2}},
                     {{-infinity, -infinity, -infinity, 3}}),
            (Values{-infinity, 3}));
}

TEST(EvaluationNormalize, RmsNorm) {
  // Mean of squares (9 + 16) / 2 = 12.5, plus eps 3.5 = 16: divide by 4.
  OpText text = normalize("rmsnorm", 2, "{eps = 3.5}");
  EXPECT_EQ(evaluate(text, {{"B", 1}, {"D", 2}}, {{3, 4}, {10, 100}}),
            (Values{7.5, 100}));
  OpText plain = normalize("rmsnorm", 1, "{eps = 3.5}");
  EXPECT_EQ(evaluate(plain, {{"B", 1}, {"D", 2}}, {{3, 4}}), (Values{0.75, 1}));
}

TEST(EvaluationNormalize, LayerNorm) {
  // Mean 3, variance ((-2)^2 + 2^2) / 2 = 4, plus eps 5 = 9: divide by 3.
  OpText text = normalize("layernorm", 3, "{eps = 5.0}");
  expectNear(evaluate(text, {{"B", 1}, {"D", 2}}, {{1, 5}, {3, 6}, {0.5, 1}}),
             {-1.5, 5});
  // A constant row has variance 0.
  expectNear(
      evaluate(normalize("layernorm"), {{"B", 1}, {"D", 3}}, {{0.1, 0.1, 0.1}}),
      {0, 0, 0}, 1e-6);
}

TEST(EvaluationNormalize, InParts) {
  Extents extents{{"B", 3}, {"D", 7}};
  Values x = someValues({"BD"}, extents, 5);
  Values scale = someValues({"D"}, extents, 6),
         bias = someValues({"D"}, extents, 7);
  std::vector<std::map<std::string, int64_t>> cases{
      {{"D", 2}},
      {{"D", 4}},
      {{"B", 2}},
      {{"B", 2}, {"D", 3}},
      // 7 over 5 is 2, 2, 2, 1 and nothing.
      {{"D", 5}}};
  for (auto &parts : cases) {
    for (const char *kind : {"softmax", "logsumexp", "rmsnorm", "layernorm"})
      expectPartsMakeWhole(normalize(kind), extents, {x}, parts);
    expectPartsMakeWhole(normalize("rmsnorm", 2), extents, {x, scale}, parts);
    expectPartsMakeWhole(normalize("layernorm", 3), extents, {x, scale, bias},
                         parts);
  }
}

TEST(EvaluationNormalize, OverSeveralIndices) {
  OpText text{
      "shd.normalize rmsnorm(%0) over [\"B\", \"D\"]", {{"BTD"}}, {"DTB"}};
  Extents extents{{"B", 3}, {"T", 2}, {"D", 4}};
  expectPartsMakeWhole(text, extents, {someValues({"BTD"}, extents, 1)},
                       {{"B", 2}, {"D", 2}, {"T", 2}});
}

//===----------------------------------------------------------------------===//
// Cross entropy
//===----------------------------------------------------------------------===//

const OpText crossEntropy{"shd.cross_entropy(%0, %1) over \"V\"",
                          {{"BV"}, {"B", "i32"}},
                          {"B"},
                          "",
                          true};

TEST(EvaluationCrossEntropy, ByHand) {
  // e^x = 1, 2, 3 sums to 6: losses log 6 - log 3 and log 6 - 0.
  Values logits{0, log2, log3, 0, log2, log3};
  expectNear(evaluate(crossEntropy, {{"B", 2}, {"V", 3}}, {logits, {2, 0}}),
             {log2, std::log(6.0)});
}

TEST(EvaluationCrossEntropy, LabelsOutOfRange) {
  Extents extents{{"B", 2}, {"V", 3}};
  Values logits{0, log2, log3, 0, log2, log3};
  EXPECT_EQ(errorOf(crossEntropy, extents, {logits, {0, 3}}),
            "'shd.cross_entropy' op position 3 is not in index 'V' of extent "
            "3");
  EXPECT_EQ(errorOf(crossEntropy, extents, {logits, {-1, 5}}),
            "'shd.cross_entropy' op position -1 is not in index 'V' of extent "
            "3");
  // 5 and -3 are 2 and 0 modulo 3.
  expectNear(
      evaluate(crossEntropy, extents, {logits, {5, -3}}, PositionPolicy::Wrap),
      {log2, std::log(6.0)});
}

TEST(EvaluationCrossEntropy, InParts) {
  Extents extents{{"B", 3}, {"V", 7}};
  std::vector<Values> inputs{someValues({"BV"}, extents, 8), {6, 0, 3}};
  for (std::map<std::string, int64_t> parts :
       {std::map<std::string, int64_t>{{"V", 2}},
        {{"V", 4}},
        {{"B", 2}},
        {{"B", 2}, {"V", 3}}})
    expectPartsMakeWhole(crossEntropy, extents, inputs, parts);
  inputs[1] = {13, -7, 10};
  expectPartsMakeWhole(crossEntropy, extents, inputs, {{"B", 2}, {"V", 3}},
                       PositionPolicy::Wrap);
}

} // namespace
