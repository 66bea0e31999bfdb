//===- EvaluationElementwiseTest.cpp - Functions of elements --------------===//

#include "Evaluated.h"
#include <cmath>

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// A function of vectors of one length.
OpText functionOf(const std::string &name, std::vector<std::string> types,
                  const std::string &resultType) {
  OpText text{"shd.elementwise " + name + "(", {}, {"B", resultType}};
  for (auto [i, type] : llvm::enumerate(types)) {
    text.head += (i ? ", %" : "%") + std::to_string(i);
    text.operands.push_back({"B", type});
  }
  text.head += ")";
  return text;
}

Values apply(const std::string &name, const std::vector<Values> &inputs,
             const std::string &type = "f64") {
  OpText text =
      functionOf(name, std::vector<std::string>(inputs.size(), type), type);
  return evaluate(text, {{"B", int64_t(inputs[0].size())}}, inputs);
}

TEST(EvaluationElementwise, Arithmetic) {
  EXPECT_EQ(apply("add", {{1, 2}, {0.5, -3}}), (Values{1.5, -1}));
  EXPECT_EQ(apply("sub", {{1, 2}, {0.5, -3}}), (Values{0.5, 5}));
  EXPECT_EQ(apply("neg", {{1, -2}}), (Values{-1, 2}));
  EXPECT_EQ(apply("copy", {{1, -2}}), (Values{1, -2}));
  EXPECT_EQ(apply("stop_gradient", {{1, -2}}), (Values{1, -2}));
  EXPECT_EQ(apply("mul", {{1, 2}, {0.5, -3}}), (Values{0.5, -6}));
  EXPECT_EQ(apply("div", {{1, 2}, {0.5, -4}}), (Values{2, -0.5}));
  EXPECT_EQ(apply("square", {{3, -0.5}}), (Values{9, 0.25}));
  EXPECT_EQ(apply("abs", {{3, -0.5}}), (Values{3, 0.5}));
  EXPECT_EQ(apply("maximum", {{1, 2}, {0.5, 4}}), (Values{1, 4}));
  EXPECT_EQ(apply("minimum", {{1, 2}, {0.5, 4}}), (Values{0.5, 2}));
}

TEST(EvaluationElementwise, Transcendentals) {
  EXPECT_EQ(apply("relu", {{1.5, -2}}), (Values{1.5, 0}));
  // 1 / (1 + 1/3) at log 3, and its complement.
  double log3 = 1.0986122886681098;
  expectNear(apply("sigmoid", {{0, log3, -log3}}), {0.5, 0.75, 0.25});
  expectNear(apply("silu", {{0, log3, -log3}}), {0, 0.75 * log3, -0.25 * log3});
  // tanh x = (e^2x - 1) / (e^2x + 1): (9 - 1) / (9 + 1) at log 3.
  expectNear(apply("tanh", {{0, log3}}), {0, 0.8});
  expectNear(apply("exp", {{0, log3}}), {1, 3});
  expectNear(apply("log", {{1, 3}}), {0, log3});
  expectNear(apply("sqrt", {{4, 2.25}}), {2, 1.5});
  expectNear(apply("rsqrt", {{4, 0.25}}), {0.5, 2});
  // The tanh form at 1: 0.5 (1 + tanh(0.7978845608 * 1.044715)), published as
  // 0.841192 (the exact one is 0.841345); odd part of x: gelu(x) - gelu(-x) =
  // x.
  Values gelu = apply("gelu", {{0, 1, -1}});
  EXPECT_EQ(gelu[0], 0);
  EXPECT_NEAR(gelu[1], 0.841192, 1e-6);
  EXPECT_NEAR(gelu[1] - gelu[2], 1, 1e-12);
}

TEST(EvaluationElementwise, NaNs) {
  double nan = std::nan("");
  for (const char *name : {"maximum", "minimum"}) {
    Values values = apply(name, {{nan, 1}, {1, nan}});
    EXPECT_TRUE(std::isnan(values[0]) && std::isnan(values[1])) << name;
  }
  EXPECT_TRUE(std::isnan(apply("relu", {{nan}})[0]));
}

TEST(EvaluationElementwise, Integers) {
  EXPECT_EQ(apply("add", {{127, -128}, {1, -1}}, "i8"), (Values{-128, 127}));
  EXPECT_EQ(apply("sub", {{0, 5}, {1, 2}}, "ui8"), (Values{255, 3}));
  // 7 * 3 = 21 = 5 modulo 16; -8 is its own negative.
  EXPECT_EQ(apply("mul", {{7, -1}, {3, 3}}, "i4"), (Values{5, -3}));
  EXPECT_EQ(apply("neg", {{-8, 3}}, "i4"), (Values{-8, -3}));
  EXPECT_EQ(apply("square", {{300, -2}}, "i16"), (Values{24464, 4}));
  EXPECT_EQ(apply("abs", {{-3, 4}}, "i32"), (Values{3, 4}));
  EXPECT_EQ(apply("relu", {{-3, 4}}, "i32"), (Values{0, 4}));
  EXPECT_EQ(apply("maximum", {{-3, 4}, {2, 3}}, "i32"), (Values{2, 4}));
  EXPECT_EQ(apply("minimum", {{-3, 4}, {2, 3}}, "i32"), (Values{-3, 3}));
  // -7 = -3 * 3 + 2 and 7 = -3 * -3 - 2; the rest has the divisor's sign.
  EXPECT_EQ(apply("rem", {{7, -7, 7, -6, 5}, {3, 3, -3, 3, 0}}, "i32"),
            (Values{1, 2, -2, 0, 0}));
  EXPECT_EQ(evaluate(functionOf("div", {"i32", "i32"}, "f32"), {{"B", 2}},
                     {{1, 7}, {2, -2}}),
            (Values{0.5, -3.5}));
}

TEST(EvaluationElementwise, Bool) {
  EXPECT_EQ(apply("mul", {{0, 0, 1, 1}, {0, 1, 0, 1}}, "i1"),
            (Values{0, 0, 0, 1}));
  EXPECT_EQ(apply("maximum", {{0, 0, 1, 1}, {0, 1, 0, 1}}, "i1"),
            (Values{0, 1, 1, 1}));
  EXPECT_EQ(apply("add", {{0, 0, 1, 1}, {0, 1, 0, 1}}, "i1"),
            (Values{0, 1, 1, 1}));
}

TEST(EvaluationElementwise, ComparisonsAndWhere) {
  std::map<std::string, Values> expected{{"eq", {0, 1, 0}}, {"ne", {1, 0, 1}},
                                         {"lt", {1, 0, 0}}, {"le", {1, 1, 0}},
                                         {"gt", {0, 0, 1}}, {"ge", {0, 1, 1}}};
  for (auto &[name, values] : expected)
    for (const char *type : {"f32", "i32"})
      EXPECT_EQ(evaluate(functionOf(name, {type, type}, "i1"), {{"B", 3}},
                         {{1, 2, 3}, {2, 2, 2}}),
                values)
          << name;
  for (const char *type : {"f32", "i32"})
    EXPECT_EQ(evaluate(functionOf("where", {"i1", type, type}, type),
                       {{"B", 2}}, {{1, 0}, {3, 4}, {5, 6}}),
              (Values{3, 6}));
}

Values cast(const std::string &from, const std::string &to,
            const Values &values) {
  return evaluate(functionOf("cast", {from}, to),
                  {{"B", int64_t(values.size())}}, {values});
}

TEST(EvaluationElementwise, CastsToIntegers) {
  // To nearest, ties to even, saturated.
  EXPECT_EQ(cast("f32", "i8", {0.5, 1.5, 2.5, -0.5, -1.5, 1.4, 126.5, 127.5}),
            (Values{0, 2, 2, 0, -2, 1, 126, 127}));
  EXPECT_EQ(cast("f32", "i8", {1e9, -1e9, infinity, -infinity, std::nan("")}),
            (Values{127, -128, 127, -128, 0}));
  EXPECT_EQ(cast("f32", "ui8", {-3, 255.4, 256, 0.51}),
            (Values{0, 255, 255, 1}));
  EXPECT_EQ(cast("f32", "i4", {7.4, 7.6, -8.4, -9}), (Values{7, 7, -8, -8}));
  EXPECT_EQ(cast("f64", "i32", {2147483647.5, -2147483649.0}),
            (Values{2147483647, -2147483648.0}));
  EXPECT_EQ(cast("i32", "i8", {300, -300, 5}), (Values{127, -128, 5}));
  EXPECT_EQ(cast("i8", "ui8", {-1, 5}), (Values{0, 5}));
  EXPECT_EQ(cast("f32", "i1", {0, 0.25, -3}), (Values{0, 1, 1}));
  EXPECT_EQ(cast("i32", "i1", {0, 2, -3}), (Values{0, 1, 1}));
}

TEST(EvaluationElementwise, CastsToReals) {
  EXPECT_EQ(cast("i8", "f32", {-3, 4}), (Values{-3, 4}));
  EXPECT_EQ(cast("i1", "f32", {0, 1}), (Values{0, 1}));
  // The cast does not round, but it saturates.
  EXPECT_EQ(cast("f32", "f8E4M3FN", {1000, -infinity, 0.3}),
            (Values{448, -448, 0.3}));
  EXPECT_EQ(cast("f32", "f4E2M1FN", {7, -7}), (Values{6, -6}));
  EXPECT_EQ(cast("f32", "f8E8M0FNU", {0, -3, 0.5, infinity}),
            (Values{0x1p-127, 0x1p-127, 0.5, 0x1p127}));
  EXPECT_EQ(cast("f8E8M0FNU", "bf16", {0.25, 4}), (Values{0.25, 4}));
  EXPECT_EQ(cast("f32", "bf16", {infinity}), (Values{infinity}));
}

TEST(EvaluationElementwise, Broadcasts) {
  OpText text{"shd.elementwise sub(%0, %1)", {{"DB"}, {"B"}}, {"BD"}};
  // x[D, B] - y[B] at [B, D].
  EXPECT_EQ(
      evaluate(text, {{"B", 2}, {"D", 3}}, {{1, 2, 3, 4, 5, 6}, {10, 20}}),
      (Values{-9, -7, -5, -18, -16, -14}));
  OpText scalar{"shd.elementwise copy(%0)", {{""}}, {"BD"}};
  EXPECT_EQ(evaluate(scalar, {{"B", 1}, {"D", 2}}, {{7}}), (Values{7, 7}));
}

TEST(EvaluationElementwise, InParts) {
  OpText text{"shd.elementwise maximum(%0, %1)", {{"DB"}, {"B"}}, {"BD"}};
  Extents extents{{"B", 5}, {"D", 3}};
  expectPartsMakeWhole(
      text, extents,
      {someValues({"DB"}, extents, 1), someValues({"B"}, extents, 2)},
      {{"B", 4}, {"D", 2}});
}

TEST(EvaluationElementwise, LinearInPartialSums) {
  // 2 x + y of sums of two parts is the sum of the parts' results.
  OpText text{"shd.elementwise sub(%0, %1)", {{"B"}, {"B"}}, {"B"}};
  Extents extents{{"B", 2}};
  Values first = evaluate(text, extents, {{1, 2}, {5, 7}});
  Values second = evaluate(text, extents, {{10, 20}, {1, 1}});
  EXPECT_EQ(evaluate(text, extents, {{11, 22}, {6, 8}}),
            (Values{first[0] + second[0], first[1] + second[1]}));
}

} // namespace
