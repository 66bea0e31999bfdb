//===- ReshardTest.cpp - Closed forms of single reshards ------------------===//
//
// Plans against hand calculations from How to Scale Your Model, chapter 3.
//
//===----------------------------------------------------------------------===//

#include "shardc/Reshard/Reshard.h"
#include "Models.h"
#include "gtest/gtest.h"
#include <chrono>

using namespace shardc;
using namespace shardc::test;

namespace {

enum : AxisIndex { X, Y, Z };
using Kind = CollectiveKind;

/// bf16[16384, 16384]: V = 2^29 bytes.
const TensorShape kMatrix{{16384, 16384}, 16};
constexpr double kV = 536870912;

std::vector<Kind> kinds(const ReshardPlan &plan) {
  std::vector<Kind> kinds;
  for (const ReshardStep &step : plan.steps)
    kinds.push_back(step.kind);
  return kinds;
}

/// The steps follow each other from `from` to `to`, their sums are the plan's,
/// and the price is that of the plan.
const ReshardPlan &checkedPlan(ReshardPlanner &planner,
                               const TensorShape &shape, const Layout &from,
                               const Layout &to) {
  const ReshardPlan *plan = planner.plan(shape, from, to);
  EXPECT_TRUE(plan);
  const Mesh &mesh = planner.model().mesh();
  Layout at = from;
  Picoseconds time = 0;
  double wire = 0;
  ReshardMemory memory;
  for (const ReshardStep &step : plan->steps) {
    EXPECT_EQ(step.from, at);
    EXPECT_EQ(step.fromBytes, shape.localBytes(mesh, step.from));
    EXPECT_EQ(step.toBytes, shape.localBytes(mesh, step.to));
    EXPECT_TRUE(llvm::is_sorted(step.axes));
    EXPECT_FALSE(step.axes.empty());
    at = step.to;
    time += toPicoseconds(step.cost.seconds());
    wire += step.cost.wireBytes;
    memory.add(step.kind, wholeBytes(step.fromBytes), wholeBytes(step.toBytes));
  }
  EXPECT_EQ(at, to);
  EXPECT_EQ(plan->picoseconds, time);
  EXPECT_EQ(plan->wireBytes, wire);
  std::optional<ReshardPrice> price =
      planner.prices(shape, {from}, {to}).front();
  EXPECT_EQ(price->picoseconds, time);
  EXPECT_EQ(price->memory.extraBytes(), memory.extraBytes());
  EXPECT_EQ(price->memory.storeExtraBytes(), memory.storeExtraBytes());
  return *plan;
}

TEST(ReshardTest, IdentityIsFree) {
  CollectiveModel model = torusModel({16, 16}, true);
  ReshardPlanner planner(model);
  Layout layout{{{X}, {}}, axisBit(Y)};
  const ReshardPlan &plan = checkedPlan(planner, kMatrix, layout, layout);
  EXPECT_TRUE(plan.steps.empty());
  EXPECT_EQ(plan.picoseconds, 0);
  // Only the operand is alive: 1/16 of it.
  EXPECT_EQ(plan.peakBytes, kV / 16);
}

TEST(ReshardTest, NothingMakesPartialSums) {
  CollectiveModel model = torusModel({16, 16}, true);
  ReshardPlanner planner(model);
  Layout whole = Layout::replicated(2);
  Layout partial{{{}, {}}, axisBit(X)};
  Layout other{{{}, {}}, axisBit(Y)};
  EXPECT_EQ(planner.plan(kMatrix, whole, partial), nullptr);
  EXPECT_EQ(priceOf(planner, kMatrix, whole, partial), std::nullopt);
  EXPECT_EQ(priceOf(planner, kMatrix, other, partial), std::nullopt);
  EXPECT_NE(priceOf(planner, kMatrix, partial, whole), std::nullopt);
}

TEST(ReshardTest, GatherOverOneWrappedAxis) {
  CollectiveModel model = torusModel({16, 16}, true);
  ReshardPlanner planner(model);
  // Y is taken, so V is 1/16 of the array: 2^25 / 9e10 = 372.827 us.
  const ReshardPlan &plan =
      checkedPlan(planner, kMatrix, Layout{{{X}, {Y}}}, Layout{{{}, {Y}}});
  EXPECT_EQ(kinds(plan), std::vector{Kind::AllGather});
  EXPECT_EQ(plan.steps[0].axes, (AxisList{X}));
  EXPECT_EQ(plan.picoseconds, 372827022);
  EXPECT_EQ(plan.wireBytes, kV / 16 * 15 / 16);
  EXPECT_EQ(plan.peakBytes, kV / 256 + kV / 16);
}

TEST(ReshardTest, GatherOverTwoAxesIsOneCollective) {
  CollectiveModel model = torusModel({16, 16}, true);
  ReshardPlanner planner(model);
  // 2^29 / (2 x 9e10) = 2982.616 us.
  for (const Layout &from : {Layout{{{X}, {Y}}}, Layout{{{Y, X}, {}}}}) {
    const ReshardPlan &plan =
        checkedPlan(planner, kMatrix, from, Layout::replicated(2));
    EXPECT_EQ(kinds(plan), std::vector{Kind::AllGather});
    EXPECT_EQ(plan.steps[0].axes, (AxisList{X, Y}));
    EXPECT_EQ(plan.picoseconds, 2982616178);
  }
}

TEST(ReshardTest, IdleAxisSpeedsTheGatherUp) {
  CollectiveModel model = torusModel({16, 16}, true);
  ReshardPlanner planner(model);
  const ReshardPlan &plan =
      checkedPlan(planner, kMatrix, Layout{{{X}, {}}}, Layout::replicated(2));
  EXPECT_EQ(kinds(plan), (std::vector{Kind::AllSlice, Kind::AllGather}));
  EXPECT_EQ(plan.steps[0].axes, (AxisList{Y}));
  EXPECT_EQ(plan.picoseconds, 2982616178);
}

TEST(ReshardTest, AllToAllIsAQuarterOfAGather) {
  CollectiveModel model = torusModel({16}, true);
  ReshardPlanner planner(model);
  // 2^29 / 9e10 = 5965.232 us; a quarter of it: 1491.308 us.
  const ReshardPlan &gather =
      checkedPlan(planner, kMatrix, Layout{{{X}, {}}}, Layout::replicated(2));
  EXPECT_EQ(kinds(gather), std::vector{Kind::AllGather});
  EXPECT_EQ(gather.picoseconds, 5965232356);
  const ReshardPlan &exchange =
      checkedPlan(planner, kMatrix, Layout{{{X}, {}}}, Layout{{{}, {X}}});
  EXPECT_EQ(kinds(exchange), std::vector{Kind::AllToAll});
  EXPECT_EQ(exchange.picoseconds, 1491308089);
  EXPECT_EQ(exchange.steps[0].cost.bytes, kV);
  EXPECT_EQ(exchange.peakBytes, kV / 16 * 2);
}

TEST(ReshardTest, AllToAllMovesSeveralAxesAtOnce) {
  CollectiveModel model = nodeModel({2, 4});
  ReshardPlanner planner(model);
  // V (N - 1) / (N^2 w) with N = 8: 2^29 x 7 / 64 / 450e9 = 130.490 us.
  const ReshardPlan &plan =
      checkedPlan(planner, kMatrix, Layout{{{X, Y}, {}}}, Layout{{{}, {Y, X}}});
  EXPECT_EQ(kinds(plan), std::vector{Kind::AllToAll});
  EXPECT_EQ(plan.steps[0].axes, (AxisList{X, Y}));
  EXPECT_EQ(plan.picoseconds, 130489458);
}

// Tokens keep to half as many blocks as they pick experts: half of the bytes go
// between parts of whole blocks, here quarters of 4 blocks.
TEST(ReshardTest, TokensGoOnceToEachBlock) {
  CollectiveModel model = nodeModel({4, 2});
  ReshardPlanner planner(model);
  TensorShape routed = kMatrix;
  routed.routed = RoutedBlocks{/*dim=*/0, /*count=*/4, /*share=*/0.5};
  Layout before{{{}, {X}}}, after{{{X}, {}}};
  double whole = checkedPlan(planner, kMatrix, before, after).wireBytes;
  // There and back, and nothing else: no gather of the blocks, no parts of
  // them, and no exchange of other dimensions.
  for (auto [from, to] : {std::pair(before, after), std::pair(after, before)}) {
    const ReshardPlan &plan = checkedPlan(planner, routed, from, to);
    EXPECT_EQ(kinds(plan), std::vector{Kind::AllToAll});
    EXPECT_EQ(plan.wireBytes, whole / 2);
  }
  Layout gathered = Layout::replicated(2);
  EXPECT_EQ(checkedPlan(planner, routed, after, gathered).wireBytes,
            checkedPlan(planner, kMatrix, after, gathered).wireBytes);
  Layout inBlocks{{{X, Y}, {}}}, outside{{{X}, {Y}}};
  EXPECT_EQ(checkedPlan(planner, routed, outside, inBlocks).wireBytes,
            checkedPlan(planner, kMatrix, outside, inBlocks).wireBytes);
}

TEST(ReshardTest, PartialSumsBecomeShards) {
  CollectiveModel model = torusModel({16}, true);
  ReshardPlanner planner(model);
  Layout partial{{{}, {}}, axisBit(X)};
  const ReshardPlan &scatter =
      checkedPlan(planner, kMatrix, partial, Layout{{{X}, {}}});
  EXPECT_EQ(kinds(scatter), std::vector{Kind::ReduceScatter});
  EXPECT_EQ(scatter.picoseconds, 5965232356);
  EXPECT_EQ(scatter.peakBytes, kV + kV / 16);
}

TEST(ReshardTest, AllReduceIsTwiceAReduceScatter) {
  CollectiveModel model = torusModel({16}, true);
  ReshardPlanner planner(model);
  Layout partial{{{}, {}}, axisBit(X)};
  const ReshardPlan &reduce =
      checkedPlan(planner, kMatrix, partial, Layout::replicated(2));
  // A reduce_scatter and an all_gather take as long, but are two collectives.
  EXPECT_EQ(kinds(reduce), std::vector{Kind::AllReduce});
  // 2 x 2^29 / 9e10 = 11930.465 us.
  EXPECT_EQ(reduce.picoseconds, 11930464711);
  // In place.
  EXPECT_EQ(reduce.peakBytes, kV);
}

TEST(ReshardTest, RoundingNeverPrefersMoreSteps) {
  // A reduce_scatter whose time rounds down would make two of them look
  // cheaper than the all_reduce whose time rounds up. Bytes above 9e5 a group
  // are bound by bandwidth.
  CollectiveModel model = torusModel({16}, true);
  ReshardPlanner planner(model);
  for (int64_t rows = 65536; rows < 65536 + 16 * 200; rows += 16) {
    TensorShape shape{{rows, 16}, 16};
    const ReshardPlan *plan = planner.plan(shape, Layout{{{}, {}}, axisBit(X)},
                                           Layout::replicated(2));
    ASSERT_TRUE(plan);
    EXPECT_EQ(kinds(*plan), std::vector{Kind::AllReduce}) << rows;
  }
}

TEST(ReshardTest, ScalarsAreReduced) {
  CollectiveModel model = torusModel({16}, true);
  ReshardPlanner planner(model);
  Layout partial = Layout::replicated(0);
  partial.partial = axisBit(X);
  const ReshardPlan &plan =
      checkedPlan(planner, {{}, 32}, partial, Layout::replicated(0));
  EXPECT_EQ(kinds(plan), std::vector{Kind::AllReduce});
  // Latency: there and back over 8 hops.
  EXPECT_EQ(plan.picoseconds, 16000000);
}

TEST(ReshardTest, SlicesAreFree) {
  CollectiveModel model = torusModel({16, 16}, true);
  ReshardPlanner planner(model);
  const ReshardPlan &plan =
      checkedPlan(planner, kMatrix, Layout::replicated(2), Layout{{{Y}, {X}}});
  EXPECT_EQ(kinds(plan), std::vector{Kind::AllSlice});
  EXPECT_EQ(plan.steps[0].axes, (AxisList{X, Y}));
  EXPECT_EQ(plan.picoseconds, 0);
  EXPECT_EQ(plan.wireBytes, 0);
}

TEST(ReshardTest, AxisOrderIsAPermute) {
  CollectiveModel model = nodeModel({2, 2});
  ReshardPlanner planner(model);
  TensorShape vector{{int64_t(1) << 28}, 16};
  // A device sends its quarter: 2^27 / 450e9 = 298.262 us.
  const ReshardPlan &plan =
      checkedPlan(planner, vector, Layout{{{X, Y}}}, Layout{{{Y, X}}});
  EXPECT_EQ(kinds(plan), std::vector{Kind::CollectivePermute});
  EXPECT_EQ(plan.steps[0].axes, (AxisList{X, Y}));
  EXPECT_EQ(plan.picoseconds, 298261618);
  EXPECT_EQ(plan.wireBytes, kV / 4);
}

TEST(ReshardTest, AxesOfEqualSizeAreExchanged) {
  CollectiveModel model = nodeModel({2, 2});
  ReshardPlanner planner(model);
  // Both keep a quarter of the matrix on a device.
  const ReshardPlan &swap =
      checkedPlan(planner, kMatrix, Layout{{{X}, {Y}}}, Layout{{{Y}, {X}}});
  EXPECT_EQ(kinds(swap), std::vector{Kind::CollectivePermute});
  EXPECT_EQ(swap.picoseconds, 298261618);
}

TEST(ReshardTest, ScatterKeepsTheOtherPartialSums) {
  CollectiveModel model = nodeModel({2, 4});
  ReshardPlanner planner(model);
  // V (D - 1) / (D w): 2^29 / 2 / 450e9 = 596.523 us.
  const ReshardPlan &plan =
      checkedPlan(planner, kMatrix, Layout{{{}, {}}, axisBit(X) | axisBit(Y)},
                  Layout{{{X}, {}}, axisBit(Y)});
  EXPECT_EQ(kinds(plan), std::vector{Kind::ReduceScatter});
  EXPECT_EQ(plan.picoseconds, 596523236);
}

TEST(ReshardTest, PaddedDimension) {
  CollectiveModel model = torusModel({4}, false);
  ReshardPlanner planner(model);
  // 10 rows on 4 devices: 3 on each.
  TensorShape shape{{10, 1 << 20}, 16};
  const ReshardPlan &gather =
      checkedPlan(planner, shape, Layout{{{X}, {}}}, Layout::replicated(2));
  EXPECT_EQ(kinds(gather), std::vector{Kind::AllGather});
  EXPECT_EQ(gather.steps[0].fromBytes, 3 * 2097152);
  EXPECT_EQ(gather.steps[0].toBytes, 10 * 2097152);
  const ReshardPlan &slice =
      checkedPlan(planner, shape, Layout::replicated(2), Layout{{{X}, {}}});
  EXPECT_EQ(kinds(slice), std::vector{Kind::AllSlice});
}

TEST(ReshardTest, AxesOfSizeOneCostNothing) {
  CollectiveModel model = torusModel({1, 4}, false);
  ReshardPlanner planner(model);
  const ReshardPlan &plan =
      checkedPlan(planner, kMatrix, Layout{{{X}, {Y}}}, Layout{{{}, {Y}}});
  EXPECT_EQ(kinds(plan), std::vector{Kind::AllGather});
  EXPECT_EQ(plan.steps[0].axes, (AxisList{X}));
  EXPECT_EQ(plan.picoseconds, 0);
}

TEST(ReshardTest, ShapesOfOneSizeAndDifferentWidthsAreApart) {
  CollectiveModel model = torusModel({16}, true);
  ReshardPlanner planner(model);
  TensorShape narrow{{16384, 16384}, 8};
  Layout from{{{X}, {}}}, to = Layout::replicated(2);
  EXPECT_EQ(priceOf(planner, kMatrix, from, to), 5965232356);
  EXPECT_EQ(priceOf(planner, narrow, from, to), 2982616178);
}

//===----------------------------------------------------------------------===//
// Meshes of many axes
//===----------------------------------------------------------------------===//

Layout layoutOf(std::initializer_list<std::pair<int, int>> ranges) {
  Layout layout;
  for (auto [begin, end] : ranges) {
    AxisList &list = layout.dims.emplace_back();
    for (int axis = begin; axis < end; ++axis)
      list.push_back(axis);
  }
  return layout;
}

TEST(ManyAxesTest, AxesThatStayTogetherMoveTogether) {
  CollectiveModel model = nodeModel(llvm::SmallVector<int64_t>(16, 2));
  ReshardPlanner planner(model);
  TensorShape shape{{65536, 65536, 256}, 16};
  // Twelve axes change their dimension at once.
  const ReshardPlan &plan =
      checkedPlan(planner, shape, layoutOf({{0, 14}, {0, 0}, {14, 16}}),
                  layoutOf({{0, 2}, {2, 14}, {14, 16}}));
  EXPECT_EQ(kinds(plan), std::vector{Kind::AllToAll});
  EXPECT_EQ(plan.steps[0].axes.size(), 12u);
}

TEST(ManyAxesTest, ScrambledAxesAreStillResharded) {
  CollectiveModel model = nodeModel(llvm::SmallVector<int64_t>(16, 2));
  ReshardPlanner planner(model);
  TensorShape shape{{65536, 65536}, 16};
  Layout from = Layout::replicated(2), to = Layout::replicated(2);
  for (AxisIndex axis = 0; axis < 16; ++axis) {
    from.dims[axis % 2].push_back(axis);
    to.dims[axis % 3 == 0].insert(to.dims[axis % 3 == 0].begin(), axis);
  }
  auto start = std::chrono::steady_clock::now();
  const ReshardPlan &plan = checkedPlan(planner, shape, from, to);
  std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - start;
  EXPECT_EQ(kinds(plan), (std::vector{Kind::AllGather, Kind::AllSlice}));
  EXPECT_LT(elapsed.count(), 10);
  // Partial sums go first.
  from.dims[1].clear();
  from.partial = axisBit(1);
  EXPECT_FALSE(checkedPlan(planner, shape, from, to).steps.empty());
}

TEST(ManyAxesTest, FiveAxesOneSearch) {
  CollectiveModel model = nodeModel({2, 2, 2, 2, 2});
  ReshardPlanner planner(model);
  TensorShape shape{{1024, 1024, 1024}, 16};
  const ReshardPlan &plan =
      checkedPlan(planner, shape, layoutOf({{0, 2}, {2, 4}, {4, 5}}),
                  layoutOf({{0, 0}, {0, 4}, {4, 5}}));
  EXPECT_FALSE(plan.steps.empty());
}

} // namespace
