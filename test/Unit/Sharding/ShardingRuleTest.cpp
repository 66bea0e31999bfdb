//===- ShardingRuleTest.cpp - Factors and strategies ----------------------===//
//
// Layouts of strategies, their legality, enumeration and inference.
//
//===----------------------------------------------------------------------===//

#include "shardc/Sharding/ShardingRule.h"
#include "gtest/gtest.h"
#include <set>

using namespace shardc;

namespace {

enum : AxisIndex { X, Y, Z };

Mesh makeMesh(unsigned axes) {
  Mesh mesh{{{"X", 4}, {"Y", 2}, {"Z", 8}}};
  mesh.axes.truncate(axes);
  return mesh;
}

Factor parallel(std::string name, int64_t extent = 1024) {
  return {std::move(name), extent, FactorKind::Parallel};
}

Factor reduction(std::string name, int64_t extent = 1024) {
  return {std::move(name), extent, FactorKind::Reduction};
}

/// C[I, K] = A[I, J] * B[J, K].
ShardingRule makeMatmul() {
  ShardingRule rule;
  rule.factors = {parallel("I"), reduction("J"), parallel("K")};
  rule.operands = {{{0}, {1}}, {{1}, {2}}};
  rule.results = {{{0}, {2}}};
  rule.linearSets = {0b01, 0b10};
  return rule;
}

/// O[B, T, N, H] = x[B, T, D, E] * W[D, E, N, H]: six
/// indices, partial operands not offered.
ShardingRule makeSixIndexEinsum() {
  ShardingRule rule;
  rule.factors = {parallel("B"), parallel("T"),  parallel("N"),
                  parallel("H"), reduction("D"), reduction("E")};
  rule.operands = {{{0}, {1}, {4}, {5}}, {{4}, {5}, {2}, {3}}};
  rule.results = {{{0}, {1}, {2}, {3}}};
  return rule;
}

/// y[I, J] = a[I, J] + b[I], which broadcasts b: linear in both jointly.
ShardingRule makeSum() {
  ShardingRule rule;
  rule.factors = {parallel("I"), parallel("J")};
  rule.operands = {{{0}, {1}}, {{0}}};
  rule.results = {{{0}, {1}}};
  rule.linearSets = {0b11};
  return rule;
}

/// y[(I, J)] = x[I, J]: I has 4 elements, J 16.
ShardingRule makeMerge() {
  ShardingRule rule;
  rule.factors = {parallel("I", 4), parallel("J", 16)};
  rule.operands = {{{0}, {1}}};
  rule.results = {{{0, 1}}};
  rule.linearSets = {0b1};
  return rule;
}

/// Attention over keys S with result [T, H].
ShardingRule makeAttention() {
  ShardingRule rule;
  rule.factors = {parallel("T"),
                  {"S", 1024, FactorKind::StatisticReduction},
                  parallel("H"),
                  {"G", 1024, FactorKind::Replicated}};
  rule.operands = {{{0}, {3}}, {{1}, {3}}, {{1}, {2}}};
  rule.results = {{{0}, {2}}};
  rule.linearSets = {0b100};
  rule.statistics = {{"max", Statistic::Combination::Max, "f32", {0}},
                     {"sum", Statistic::Combination::Sum, "f32", {0}}};
  return rule;
}

/// Softmax over J of x[I, J].
ShardingRule makeSoftmax() {
  ShardingRule rule;
  rule.factors = {parallel("I"), {"J", 1024, FactorKind::Statistic}};
  rule.operands = {{{0}, {1}}};
  rule.results = {{{0}, {1}}};
  return rule;
}

/// y[I, J] = x[J]: no operand has I.
ShardingRule makeBroadcast() {
  ShardingRule rule;
  rule.factors = {parallel("I"), parallel("J")};
  rule.operands = {{{1}}};
  rule.results = {{{0}, {1}}};
  rule.linearSets = {0b1};
  return rule;
}

//===----------------------------------------------------------------------===//
// Layouts of a strategy
//===----------------------------------------------------------------------===//

TEST(StrategyTest, ShardedReductionLeavesPartialSums) {
  // Chapter 3, case 3: A[I@X, J@Y] * B[J@Y, K] -> C[I@X, K]{+Y}.
  ShardingRule rule = makeMatmul();
  Strategy strategy{{{X}, {Y}, {}}, {}};
  EXPECT_EQ(operandLayout(rule, strategy, 0), (Layout{{{X}, {Y}}}));
  EXPECT_EQ(operandLayout(rule, strategy, 1), (Layout{{{Y}, {}}}));
  EXPECT_EQ(resultLayout(rule, strategy, 0), (Layout{{{X}, {}}, axisBit(Y)}));
  EXPECT_TRUE(statisticAxes(rule, strategy).empty());
  EXPECT_EQ(localExtents(makeMesh(2), rule, strategy).extents,
            (llvm::SmallVector<int64_t, 6>{256, 512, 1024}));
}

TEST(StrategyTest, HalosFollowTheQueries) {
  // o[T] of k[S], and the gradient of k, which T is summed for.
  ShardingRule rule;
  rule.factors = {reduction("T"), reduction("S"), parallel("K")};
  rule.operands = {{{0}, {2}}, {{1}, {2}}};
  rule.results = {{{0}, {2}}, {{1}, {2}}};
  rule.halo = HaloRule{/*along=*/0, /*factor=*/1, /*rows=*/128};
  Mesh mesh = makeMesh(2);
  Strategy strategy{{{Y, X}, {}, {}}, {}};
  // 8 parts of 128 rows.
  EXPECT_TRUE(mayReadHalos(mesh, rule, strategy));
  strategy.halo = true;
  EXPECT_EQ(operandLayout(rule, strategy, 0), (Layout{{{Y, X}, {}}}));
  EXPECT_EQ(operandLayout(rule, strategy, 1), (Layout{{{Y, X}, {}}}));
  EXPECT_EQ(resultLayout(rule, strategy, 1), (Layout{{{Y, X}, {}}}));

  rule.halo->rows = 129;
  EXPECT_FALSE(mayReadHalos(mesh, rule, strategy));
  EXPECT_TRUE(mayReadHalos(mesh, rule, {{{X}, {}, {Y}}, {}}));
  EXPECT_FALSE(mayReadHalos(mesh, rule, {{{}, {}, {X}}, {}}));
  EXPECT_FALSE(mayReadHalos(mesh, rule, {{{X}, {Y}, {}}, {}}));
  rule.factors[0].extent = rule.factors[1].extent = 1022;
  EXPECT_FALSE(mayReadHalos(mesh, rule, {{{X}, {}, {}}, {}}));
  rule.halo.reset();
  EXPECT_FALSE(mayReadHalos(mesh, rule, {{{X}, {}, {}}, {}}));
}

TEST(StrategyTest, PartialSumsPassThroughLinearOperands) {
  ShardingRule matmul = makeMatmul();
  Strategy second{{{}, {}, {}}, {{X, 1}}};
  EXPECT_EQ(operandLayout(matmul, second, 0), Layout::replicated(2));
  EXPECT_EQ(operandLayout(matmul, second, 1), (Layout{{{}, {}}, axisBit(X)}));
  EXPECT_EQ(resultLayout(matmul, second, 0), (Layout{{{}, {}}, axisBit(X)}));

  ShardingRule sum = makeSum();
  Strategy both{{{}, {Y}}, {{X, 0}}};
  EXPECT_EQ(operandLayout(sum, both, 0), (Layout{{{}, {Y}}, axisBit(X)}));
  EXPECT_EQ(operandLayout(sum, both, 1), (Layout{{{}}, axisBit(X)}));
  EXPECT_EQ(resultLayout(sum, both, 0), (Layout{{{}, {Y}}, axisBit(X)}));
}

TEST(StrategyTest, StatisticsAndPartialSumsOfAttention) {
  ShardingRule rule = makeAttention();
  Strategy strategy{{{}, {Y, X}, {}, {}}, {}};
  EXPECT_EQ(operandLayout(rule, strategy, 1), (Layout{{{Y, X}, {}}}));
  EXPECT_EQ(resultLayout(rule, strategy, 0),
            (Layout{{{}, {}}, axisBit(X) | axisBit(Y)}));
  // In mesh order.
  EXPECT_EQ(statisticAxes(rule, strategy), (AxisList{X, Y}));
}

TEST(StrategyTest, NormalisedIndexStaysComplete) {
  ShardingRule rule = makeSoftmax();
  Strategy strategy{{{}, {X}}, {}};
  EXPECT_EQ(resultLayout(rule, strategy, 0), (Layout{{{}, {X}}}));
  EXPECT_EQ(statisticAxes(rule, strategy), (AxisList{X}));
}

TEST(StrategyTest, MergedDimensionsListMajorFactorFirst) {
  ShardingRule rule = makeMerge();
  Strategy strategy{{{X}, {Y}}, {}};
  EXPECT_EQ(operandLayout(rule, strategy, 0), (Layout{{{X}, {Y}}}));
  EXPECT_EQ(resultLayout(rule, strategy, 0), (Layout{{{X, Y}}}));
}

//===----------------------------------------------------------------------===//
// Legality
//===----------------------------------------------------------------------===//

TEST(CheckStrategyTest, AxisUsedTwice) {
  EXPECT_EQ(checkStrategy(makeMesh(2), makeMatmul(), {{{X}, {}, {X}}, {}}),
            "axis 'X' is used twice");
  EXPECT_EQ(checkStrategy(makeMesh(2), makeMatmul(), {{{X}, {}, {}}, {{X, 1}}}),
            "axis 'X' is used twice");
}

TEST(CheckStrategyTest, Divisibility) {
  ShardingRule rule = makeMatmul();
  rule.factors[0].extent = 12;
  Strategy strategy{{{X, Y}, {}, {}}, {}};
  EXPECT_EQ(checkStrategy(makeMesh(2), rule, strategy),
            "extent 12 of index 'I' is not divisible by 8, the size of axis "
            "'X', 'Y'");
  EXPECT_EQ(checkStrategy(makeMesh(2), rule, strategy, /*allowPadding=*/true),
            std::nullopt);
  EXPECT_EQ(checkStrategy(makeMesh(2), rule, {{{X}, {}, {}}, {}}),
            std::nullopt);
}

TEST(CheckStrategyTest, ReplicatedFactor) {
  EXPECT_EQ(
      checkStrategy(makeMesh(2), makeAttention(), {{{}, {}, {}, {Y}}, {}}),
      "index 'G' must be whole on every device, but is placed on axis 'Y'");
}

TEST(CheckStrategyTest, MergedDimension) {
  Mesh mesh = makeMesh(3);
  ShardingRule rule = makeMerge();
  // I has 4 elements: X (4) leaves one, Y (2) leaves two.
  EXPECT_EQ(checkStrategy(mesh, rule, {{{X}, {Y}}, {}}), std::nullopt);
  EXPECT_EQ(checkStrategy(mesh, rule, {{{Y}, {}}, {}}), std::nullopt);
  EXPECT_EQ(checkStrategy(mesh, rule, {{{Y}, {X}}, {}}),
            "index 'J' is sharded, but index 'I' before it in the same "
            "dimension is not down to one element on each device");
  // Padding in the middle of a dimension is never possible.
  EXPECT_EQ(checkStrategy(mesh, rule, {{{Z}, {}}, {}}, /*allowPadding=*/true),
            "extent 4 of index 'I', which shares a dimension with other "
            "indices, is not divisible by 8");
}

TEST(CheckStrategyTest, AxesOfSizeOneChangeNothing) {
  Mesh mesh{{{"X", 1}, {"Y", 2}}};
  ShardingRule rule = makeAttention();
  rule.factors[0].extent = 7;
  EXPECT_EQ(checkStrategy(mesh, rule, {{{X}, {}, {}, {}}, {}}), std::nullopt);
  EXPECT_EQ(checkStrategy(mesh, rule, {{{}, {}, {}, {X}}, {}}), std::nullopt);
}

//===----------------------------------------------------------------------===//
// Enumeration
//===----------------------------------------------------------------------===//

size_t countStrategies(const Mesh &mesh, const ShardingRule &rule) {
  return enumerateStrategies(mesh, rule).size();
}

TEST(EnumerateTest, EinsumOfSixIndices) {
  // Each axis idle or on one of 6 factors, 2 orders where both share one:
  // 7^2 + 6 = 55. Three axes: 1 + 3*6 + 3*(6*7) + 6*7*8 = 481.
  ShardingRule rule = makeSixIndexEinsum();
  EXPECT_EQ(countStrategies(makeMesh(1), rule), 7u);
  EXPECT_EQ(countStrategies(makeMesh(2), rule), 55u);
  EXPECT_EQ(countStrategies(makeMesh(3), rule), 481u);
}

TEST(EnumerateTest, PassThrough) {
  // One axis: idle, I, J, K, partial in A, partial in B.
  EXPECT_EQ(countStrategies(makeMesh(1), makeMatmul()), 6u);
  // Two: 6^2, and one more order for each of the 3 factors.
  EXPECT_EQ(countStrategies(makeMesh(2), makeMatmul()), 39u);
}

TEST(EnumerateTest, OrderIsFixedAndStartsReplicated) {
  std::vector<Strategy> strategies =
      enumerateStrategies(makeMesh(1), makeSum());
  std::vector<Strategy> expected = {
      {{{}, {}}, {}}, {{{X}, {}}, {}}, {{{}, {X}}, {}}, {{{}, {}}, {{X, 0}}}};
  EXPECT_EQ(strategies, expected);
}

TEST(EnumerateTest, OnlyLegalStrategies) {
  // Merge of 4 x 16 over X = 4, Y = 2:
  // I: {}, X, Y; (X, Y) and (Y, X) have 8 > 4. With I whole or on Y, J must be
  // whole: 2. With I on X, J is whole or on Y: 2. Partial sums over the idle
  // axes: I whole: x4; I on Y: x2; I on X, J whole: x2; both placed: x1.
  EXPECT_EQ(countStrategies(makeMesh(2), makeMerge()), 4u + 2 + 2 + 1);
  // T, S, H; G must be whole; partial sums of v.
  EXPECT_EQ(countStrategies(makeMesh(1), makeAttention()), 5u);
}

TEST(EnumerateTest, PaddingWhereAllowed) {
  ShardingRule rule = makeSoftmax();
  rule.factors[0].extent = 6;
  EXPECT_EQ(enumerateStrategies(makeMesh(1), rule).size(), 2u);
  EXPECT_EQ(
      enumerateStrategies(makeMesh(1), rule, /*allowPadding=*/true).size(), 3u);
}

TEST(EnumerateTest, AxesOfSizeOneAreNeverPlaced) {
  Mesh mesh{{{"X", 4}, {"Y", 1}}};
  EXPECT_EQ(countStrategies(mesh, makeMatmul()), 6u);
  TensorShape shape{{1024, 1024}, 16};
  EXPECT_EQ(enumerateLayouts(mesh, shape, /*withPartial=*/true).size(), 4u);
}

TEST(EnumerateTest, LayoutsOfThreeDimensions) {
  // Two axes: (1 + 3)^2 + 3 orders = 19. Three: 1 + 3*3 + 3*12 + 60 = 106.
  TensorShape shape{{1024, 1024, 1024}, 16};
  EXPECT_EQ(enumerateLayouts(makeMesh(2), shape, false).size(), 19u);
  EXPECT_EQ(enumerateLayouts(makeMesh(3), shape, false).size(), 106u);
  // With partial sums, an idle axis may be partial instead:
  // 12 + 2*3*2 + 4 = 28 and 60 + 3*12*2 + 3*3*4 + 8 = 176.
  EXPECT_EQ(enumerateLayouts(makeMesh(2), shape, true).size(), 28u);
  EXPECT_EQ(enumerateLayouts(makeMesh(3), shape, true).size(), 176u);
}

TEST(EnumerateTest, LayoutsAreDistinctAndDivide) {
  Mesh mesh = makeMesh(3);
  TensorShape shape{{4, 16}, 16};
  std::vector<Layout> layouts = enumerateLayouts(mesh, shape, true);
  EXPECT_TRUE(layouts.front().isReplicated());
  for (const Layout &layout : layouts)
    EXPECT_TRUE(divides(mesh, shape, layout));
  EXPECT_EQ(std::set<Layout>(layouts.begin(), layouts.end()).size(),
            layouts.size());
  // First dimension (4): {}, X, Y; second (16): axes whose product divides 16.
  // Of the rest, each axis is idle or partial (factor 2).
  //  first {}: {} 8, X 4, Y 4, Z 4, XY 2*2, YZ 2*2 = 28
  //  first X:  {} 4, Y 2, Z 2, YZ 2               = 10
  //  first Y:  {} 4, X 2, Z 2                     = 8
  EXPECT_EQ(layouts.size(), 46u);
}

TEST(EnumerateTest, Scalars) {
  // A scalar is replicated or partial.
  EXPECT_EQ(enumerateLayouts(makeMesh(2), {{}, 32}, true).size(), 4u);
}

//===----------------------------------------------------------------------===//
// Blocks of axes, and neighbours
//===----------------------------------------------------------------------===//

Mesh makeWideMesh(unsigned axes) {
  Mesh mesh;
  for (unsigned axis = 0; axis < axes; ++axis)
    mesh.axes.push_back({std::string(1, char('A' + axis)), 2});
  return mesh;
}

TEST(BlocksTest, MergingsOfNeighbours) {
  // Cuts between neighbours: 2 of 3, and 2 of 4.
  AxisBlocks four = separateAxes(makeWideMesh(4));
  std::vector<AxisBlocks> expected = {
      {{0}, {1}, {2, 3}}, {{0}, {1, 2}, {3}}, {{0, 1}, {2}, {3}}};
  EXPECT_EQ(mergeNeighbours(four, 3), expected);
  EXPECT_EQ(mergeNeighbours(separateAxes(makeWideMesh(5)), 3).size(), 6u);
  EXPECT_EQ(mergeNeighbours(four, 4), std::vector<AxisBlocks>{four});
}

TEST(BlocksTest, StagesAndAxesOfSizeOneAreNotPlaced) {
  Mesh mesh{{{"P", 4, /*isStages=*/true}, {"A", 2}, {"B", 1}, {"C", 2}}};
  EXPECT_EQ(separateAxes(mesh), (AxisBlocks{{1}, {3}}));
}

/// Blocks are placed as the axes of a mesh in which they are one are.
TEST(BlocksTest, AsManyAsOnTheMergedMesh) {
  Mesh four = makeWideMesh(4);
  Mesh merged{{{"A", 2}, {"BC", 4}, {"D", 2}}};
  AxisBlocks blocks = {{0}, {1, 2}, {3}};
  for (const ShardingRule &rule :
       {makeMatmul(), makeSixIndexEinsum(), makeMerge(), makeAttention()})
    EXPECT_EQ(enumerateStrategies(four, rule, blocks, false).size(),
              enumerateStrategies(merged, rule).size());
  // 106 and 176, as above; on four axes there are 685.
  TensorShape shape{{1024, 1024, 1024}, 16};
  EXPECT_EQ(enumerateLayouts(four, shape, false, blocks, false).size(), 106u);
  EXPECT_EQ(enumerateLayouts(four, shape, true, blocks, false).size(), 176u);
  EXPECT_EQ(enumerateLayouts(four, shape, false).size(), 685u);
  for (const Layout &layout :
       enumerateLayouts(four, shape, true, blocks, false)) {
    AxisSet both = axisBit(1) | axisBit(2);
    EXPECT_TRUE((layout.partial & both) == 0 ||
                (layout.partial & both) == both);
    for (const AxisList &list : layout.dims)
      if (const auto *at = llvm::find(list, 1); at != list.end()) {
        ASSERT_NE(at + 1, list.end());
        EXPECT_EQ(at[1], 2);
      }
  }
}

Layout without(Layout layout, AxisIndex axis) {
  for (AxisList &list : layout.dims)
    llvm::erase(list, axis);
  layout.partial &= ~axisBit(axis);
  return layout;
}

Strategy without(Strategy strategy, AxisIndex axis) {
  for (AxisList &list : strategy.factorAxes)
    llvm::erase(list, axis);
  llvm::erase_if(strategy.passThrough,
                 [&](auto passed) { return passed.first == axis; });
  return strategy;
}

template <typename T>
bool areNeighbours(const Mesh &mesh, const T &a, const T &b) {
  return !(a == b) &&
         llvm::any_of(llvm::seq<unsigned>(0, mesh.size()), [&](AxisIndex axis) {
           return without(a, axis) == without(b, axis);
         });
}

/// By definition: all that become equal when one axis is taken out of both.
TEST(NeighboursTest, DifferInThePlaceOfOneAxis) {
  Mesh mesh = makeMesh(3);
  TensorShape shape{{4, 16}, 16};
  std::vector<Layout> layouts = enumerateLayouts(mesh, shape, true);
  for (const Layout &layout : layouts) {
    std::vector<Layout> found = neighbourLayouts(mesh, shape, layout, true);
    std::set<Layout> neighbours(found.begin(), found.end()), expected;
    for (const Layout &other : layouts)
      if (areNeighbours(mesh, layout, other))
        expected.insert(other);
    EXPECT_EQ(neighbours, expected);
  }
  for (const ShardingRule &rule :
       {makeMatmul(), makeMerge(), makeAttention()}) {
    std::vector<Strategy> strategies = enumerateStrategies(mesh, rule);
    for (const Strategy &strategy : strategies) {
      std::vector<Strategy> found = neighbourStrategies(mesh, rule, strategy);
      for (const Strategy &other : strategies)
        EXPECT_EQ(llvm::is_contained(found, other),
                  areNeighbours(mesh, strategy, other));
      for (const Strategy &neighbour : found)
        EXPECT_TRUE(llvm::is_contained(strategies, neighbour));
    }
  }
}

//===----------------------------------------------------------------------===//
// Inference
//===----------------------------------------------------------------------===//

using OptionalLayouts = llvm::SmallVector<std::optional<Layout>, 3>;

OptionalLayouts operandLayouts(const ShardingRule &rule,
                               const Strategy &strategy) {
  OptionalLayouts layouts;
  for (unsigned operand = 0; operand < rule.operands.size(); ++operand)
    layouts.push_back(operandLayout(rule, strategy, operand));
  return layouts;
}

OptionalLayouts resultLayouts(const ShardingRule &rule,
                              const Strategy &strategy) {
  OptionalLayouts layouts;
  for (unsigned result = 0; result < rule.results.size(); ++result)
    layouts.push_back(resultLayout(rule, strategy, result));
  return layouts;
}

class InferRoundTrip : public testing::TestWithParam<ShardingRule (*)()> {};

TEST_P(InferRoundTrip, EveryStrategyIsFoundFromItsLayouts) {
  ShardingRule rule = GetParam()();
  Mesh mesh = makeMesh(3);
  for (const Strategy &strategy : enumerateStrategies(mesh, rule)) {
    std::string why;
    std::optional<Strategy> inferred =
        inferStrategy(mesh, rule, operandLayouts(rule, strategy),
                      resultLayouts(rule, strategy), &why);
    ASSERT_TRUE(inferred) << why;
    EXPECT_EQ(*inferred, strategy);
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, InferRoundTrip,
                         testing::Values(makeMatmul, makeSixIndexEinsum,
                                         makeSum, makeMerge, makeAttention,
                                         makeSoftmax, makeBroadcast));

std::optional<Strategy> infer(const ShardingRule &rule,
                              const OptionalLayouts &operands,
                              const std::optional<Layout> &result,
                              std::string *why = nullptr) {
  return inferStrategy(makeMesh(3), rule, operands, {result}, why);
}

std::string inferError(const ShardingRule &rule,
                       const OptionalLayouts &operands) {
  std::string why;
  EXPECT_FALSE(infer(rule, operands, std::nullopt, &why));
  return why;
}

TEST(InferTest, AbsentOperandsSayNothing) {
  std::optional<Strategy> strategy =
      infer(makeMatmul(), {Layout{{{X}, {Y}}}, std::nullopt}, std::nullopt);
  EXPECT_EQ(strategy, (Strategy{{{X}, {Y}, {}}, {}}));
}

TEST(InferTest, PartialSumsNeedAllKnownOperandsOfASet) {
  Layout partial{{{}, {}}, axisBit(X)};
  Layout whole = Layout::replicated(1);
  EXPECT_EQ(infer(makeSum(), {partial, std::nullopt}, std::nullopt),
            (Strategy{{{}, {}}, {{X, 0}}}));
  EXPECT_EQ(inferError(makeSum(), {partial, whole}),
            "the operation is not linear in the operands that hold partial "
            "sums over axis 'X'");
  EXPECT_EQ(inferError(makeSoftmax(), {partial}),
            "the operation is not linear in the operands that hold partial "
            "sums over axis 'X'");
}

TEST(InferTest, OperandsThatDisagree) {
  EXPECT_EQ(inferError(makeMatmul(), {Layout{{{}, {X}}}, Layout{{{Y}, {}}}}),
            "operands place index 'J' differently");
  EXPECT_EQ(inferError(makeMatmul(), {Layout{{{X}, {}}}, Layout{{{}, {X}}}}),
            "axis 'X' places index 'K' and another index");
  EXPECT_EQ(inferError(makeMatmul(),
                       {Layout{{{X}, {}}}, Layout{{{}, {}}, axisBit(X)}}),
            "axis 'X' places an index of one operand and holds partial sums "
            "of another");
}

TEST(InferTest, ResultsSpeakWhereOperandsDoNot) {
  ShardingRule rule = makeBroadcast();
  Layout onX{{{X}}};
  EXPECT_EQ(infer(rule, {onX}, Layout{{{Y}, {Z}}}), (Strategy{{{Y}, {X}}, {}}));
  // X is taken: the result's placement of I is a reshard.
  EXPECT_EQ(infer(rule, {onX}, Layout{{{X}, {}}}), (Strategy{{{}, {X}}, {}}));
}

TEST(InferTest, SplitsAMergedDimensionFromTheMajorEnd) {
  ShardingRule split = makeMerge();
  std::swap(split.operands.front(), split.results.front());
  EXPECT_EQ(infer(split, {Layout{{{X, Z}}}}, std::nullopt),
            (Strategy{{{X}, {Z}}, {}}));
  EXPECT_EQ(infer(split, {Layout{{{Y}}}}, std::nullopt),
            (Strategy{{{Y}, {}}, {}}));
  EXPECT_EQ(inferError(split, {Layout{{{Z}}}}),
            "index 'I' of a dimension that is merged or split has 4 elements "
            "left, which axis 'Z' of size 8 does not divide");
}

TEST(InferTest, AxesOfSizeOneNeverDisagree) {
  Mesh mesh{{{"X", 1}, {"Y", 2}}};
  EXPECT_EQ(inferStrategy(mesh, makeMatmul(),
                          {Layout{{{}, {X, Y}}}, Layout{{{Y}, {}}}},
                          {std::nullopt}),
            (Strategy{{{}, {X, Y}, {}}, {}}));
}

TEST(InferTest, DimensionWithoutAnIndexMustBeWhole) {
  ShardingRule rule;
  rule.factors = {parallel("I")};
  rule.operands = {{{0}, {}}};
  rule.results = {{{0}}};
  EXPECT_EQ(infer(rule, {Layout{{{X}, {}}}}, std::nullopt),
            (Strategy{{{X}}, {}}));
  EXPECT_EQ(inferError(rule, {Layout{{{}, {X}}}}),
            "a dimension without an index must be whole on every device, but "
            "is placed on axis 'X'");
}

} // namespace
