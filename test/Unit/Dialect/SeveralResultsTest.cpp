//===- SeveralResultsTest.cpp - Operations with several results -----------===//

#include "Evaluated.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {

const OpText doubleAndSum{
    "test.double_and_sum(%0)", {{"BD"}}, {"BD"}, "", false, {}, {{"B"}}};

constexpr const char *twoResults = R"(
    %x = shd.declare input "x" ["B", "D"] : tensor<4x8xf32>
    %y, %s = test.double_and_sum(%x) <[B, D] -> [B, D], [B]>
      : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>))";

TEST(SeveralResults, Evaluate) {
  std::vector<Values> results =
      evaluateAll(doubleAndSum, {{"B", 2}, {"D", 3}}, {{1, 2, 3, 4, 5, 6}});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0], (Values{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(results[1], (Values{6, 15}));
}

TEST(SeveralResults, PartsMakeTheWhole) {
  Extents extents{{"B", 4}, {"D", 6}};
  std::vector<Values> inputs{someValues({"BD"}, extents, 1)};
  expectPartsMakeWhole(doubleAndSum, extents, inputs, {{"B", 2}});
  expectPartsMakeWhole(doubleAndSum, extents, inputs, {{"D", 3}});
  expectPartsMakeWhole(doubleAndSum, extents, inputs, {{"B", 2}, {"D", 4}});
}

/// Split over an index that one result keeps and the other sums.
TEST(SeveralResults, PartialSumOfOne) {
  Program program(twoResults);
  ShardingRule rule = program.get<test::DoubleAndSumOp>().getShardingRule();
  Strategy strategy;
  strategy.factorAxes = {{}, {0}};
  EXPECT_EQ(resultLayout(rule, strategy, 0), (Layout{{{}, {0}}, 0}));
  EXPECT_EQ(resultLayout(rule, strategy, 1), (Layout{{{}}, 1}));
  // Both are sums of what the devices have if the operand is.
  Strategy passing;
  passing.factorAxes = {{}, {}};
  passing.passThrough = {{0, 0}};
  EXPECT_EQ(resultLayout(rule, passing, 0), (Layout{{{}, {}}, 1}));
  EXPECT_EQ(resultLayout(rule, passing, 1), (Layout{{{}}, 1}));
  // Unless the devices make one of what they agree on.
  rule.completeResults = 2;
  EXPECT_EQ(resultLayout(rule, passing, 1), (Layout{{{}}, 0}));
  EXPECT_EQ(resultLayout(rule, strategy, 1), (Layout{{{}}, 0}));
}

TEST(SeveralResults, Attributes) {
  Program program(twoResults);
  auto op = program.get<test::DoubleAndSumOp>();
  MLIRContext *context = &program.context;
  auto open = DimShardingAttr::get(context, {}, /*isOpen=*/true);
  auto pin = ShardingAttr::get(context, {open}, {});
  setResultPin(op.getSum(), pin);
  EXPECT_FALSE(getResultPin(op.getDoubled()));
  EXPECT_EQ(getResultPin(op.getSum()), pin);
  EXPECT_EQ(op->getAttrOfType<ArrayAttr>(kResultPin).size(), 2u);
  setResultAttr(op.getDoubled(), kName, StringAttr::get(context, "y"));
  EXPECT_EQ(getResultName(op.getDoubled()), "y");
  EXPECT_EQ(getResultName(op.getSum()), "");
  setResultPin(op.getSum(), nullptr);
  EXPECT_FALSE(op->hasAttr(kResultPin));
}

} // namespace
