//===- TorusSimulationTest.cpp - Torus formulas against links -------------===//
//
// The time of a collective is what its busiest directed link carries, if every
// step is pipelined with the next. Here chunks are moved one by one, links are
// counted, and the formulas of docs/CostModel.md#4-collectives compared. They
// agree exactly but for two conventions of the book:
//
//   ring   V / W_bidi counts the device's own shard as if it were received:
//          (N - 1) / N of it crosses links. The book's own algorithm, in which
//          the opposite chip's chunk arrives whole from both sides, takes
//          exactly V / W_bidi for even N.
//   odd    all-to-all on odd sizes: (n^2 - 1) / n^2 of the formula
//
//===----------------------------------------------------------------------===//

#include "LinkSimulation.h"
#include "Machines.h"
#include <cmath>

using namespace shardc;
using namespace shardc::test;

namespace {

using Axis = LinkSimulation::Axis;
using Opposite = LinkSimulation::Opposite;

constexpr double kLink = 45e9;
/// Bytes of one shard.
constexpr double kShard = 1e6;

struct Shape {
  const char *name;
  std::vector<Axis> axes;

  int64_t chips() const {
    int64_t chips = 1;
    for (const Axis &axis : axes)
      chips *= axis.size;
    return chips;
  }
};

/// A machine whose torus has these axes: a ring of 16 or 12 or 8 or 4 is one by
/// the rule `wrap = n`, so that lines of other sizes may stand beside it.
CollectiveModel modelOf(const Shape &shape) {
  Machine machine = tpuV5e({});
  llvm::SmallVector<std::string, 3> names;
  llvm::SmallVector<int64_t, 3> sizes;
  Network::WrapRule rule = Network::WrapRule::None;
  int64_t parameter = 0;
  bool all = true;
  for (const Axis &axis : shape.axes) {
    names.push_back(std::string(1, "xyz"[names.size()]));
    sizes.push_back(axis.size);
    all &= axis.isRing;
    if (!axis.isRing)
      continue;
    rule = Network::WrapRule::Exactly;
    parameter = axis.size;
  }
  if (all)
    rule = Network::WrapRule::All;
  machine.shape.assign(sizes.begin(), sizes.end());
  machine.networks = {torus(names, kLink, rule, parameter)};
  return model(machine, sizes);
}

class TorusSimulation : public testing::TestWithParam<Shape> {
protected:
  const Shape &shape = GetParam();
  CollectiveModel chips = modelOf(shape);
  double shards = shape.chips();

  CollectiveCost cost(CollectiveKind kind, double bytes) const {
    llvm::SmallVector<AxisIndex, 3> all;
    for (unsigned axis = 0; axis < shape.axes.size(); ++axis)
      all.push_back(axis);
    return chips.cost(kind, all, bytes);
  }
  /// V / sum of W_i as docs/CostModel.md#4-collectives has it, with what a ring
  /// receives counted as it is: 2 W_one N / (N - 1).
  double exactGather() const {
    double inbound = 0;
    for (const Axis &axis : shape.axes)
      inbound += (axis.isRing ? 2 : 1) * kLink * shards / (shards - 1);
    return shards * kShard / inbound;
  }
  bool hasRing() const {
    return llvm::any_of(shape.axes,
                        [](const Axis &axis) { return axis.isRing; });
  }
};

} // namespace

// Parts of every shard go along the axes in each cyclic order, in proportions
// that load the axes alike: no link idles, and what a chip receives comes in
// equal parts through all its links.
TEST_P(TorusSimulation, AllGather) {
  BalancedOrders balanced = balancedOrders(shape.axes);
  LinkSimulation links(shape.axes);
  for (size_t part = 0; part < balanced.orders.size(); ++part) {
    ASSERT_GE(balanced.fractions[part], 0);
    links.allGather(balanced.orders[part], balanced.fractions[part],
                    Opposite::Halves);
  }
  EXPECT_TRUE(links.isComplete());
  double seconds = links.busiest() * kShard / kLink;
  CollectiveCost formula = cost(CollectiveKind::AllGather, shards * kShard);
  expectNear(seconds, exactGather());
  EXPECT_LE(seconds, formula.bandwidthSeconds * (1 + 1e-9));
  EXPECT_GE(seconds,
            formula.bandwidthSeconds * (shards - 1) / shards * (1 - 1e-9));
  if (!hasRing())
    expectNear(seconds, formula.bandwidthSeconds);
  // A hop of 1 us a step.
  expectNear(formula.latencySeconds, 1e-6 * double(links.steps()));
}

// The mirror image; an all_reduce is both.
TEST_P(TorusSimulation, ReduceScatter) {
  BalancedOrders balanced = balancedOrders(shape.axes);
  LinkSimulation links(shape.axes);
  for (size_t part = 0; part < balanced.orders.size(); ++part) {
    std::vector<unsigned> order = balanced.orders[part];
    std::reverse(order.begin(), order.end());
    links.reduceScatter(order, balanced.fractions[part], Opposite::Halves);
  }
  EXPECT_TRUE(links.isComplete());
  double seconds = links.busiest() * kShard / kLink;
  expectNear(seconds, exactGather());
  double bytes = shards * kShard;
  CollectiveCost scatter = cost(CollectiveKind::ReduceScatter, bytes);
  CollectiveCost reduce = cost(CollectiveKind::AllReduce, bytes);
  EXPECT_LE(seconds, scatter.bandwidthSeconds * (1 + 1e-9));
  EXPECT_GE(seconds,
            scatter.bandwidthSeconds * (shards - 1) / shards * (1 - 1e-9));
  EXPECT_EQ(reduce.bandwidthSeconds, 2 * scatter.bandwidthSeconds);
  expectNear(reduce.latencySeconds, 2e-6 * double(links.steps()));
}

// Every chip sends a unit to each, so V = N^2 units. All axes of even size:
// exact; a chip of an odd axis has as many to its left as to its right.
TEST_P(TorusSimulation, AllToAll) {
  LinkSimulation links(shape.axes);
  links.allToAll();
  EXPECT_TRUE(links.isComplete());
  double seconds = 0;
  for (unsigned axis = 0; axis < shape.axes.size(); ++axis) {
    double size = shape.axes[axis].size;
    double odd = std::fmod(size, 2) == 0 ? 1 : (size * size - 1) / size / size;
    seconds = std::max(seconds, links.busiest(axis) / odd * kShard / kLink);
  }
  CollectiveCost formula =
      cost(CollectiveKind::AllToAll, shards * shards * kShard);
  expectNear(formula.bandwidthSeconds, seconds);
  expectNear(formula.latencySeconds, 1e-6 * double(links.steps()));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, TorusSimulation,
    testing::Values(Shape{"Ring4", {{4, true}}}, Shape{"Ring7", {{7, true}}},
                    Shape{"Ring16", {{16, true}}}, Shape{"Line2", {{2, false}}},
                    Shape{"Line5", {{5, false}}}, Shape{"Line8", {{8, false}}},
                    Shape{"Rings4x4", {{4, true}, {4, true}}},
                    Shape{"Rings4x8", {{4, true}, {8, true}}},
                    Shape{"Rings5x3", {{5, true}, {3, true}}},
                    Shape{"Rings16x16", {{16, true}, {16, true}}},
                    Shape{"Lines4x4", {{4, false}, {4, false}}},
                    Shape{"Lines2x8", {{2, false}, {8, false}}},
                    Shape{"Line8Ring16", {{8, false}, {16, true}}},
                    Shape{"Ring16Line4", {{16, true}, {4, false}}},
                    Shape{"Rings4x4x4", {{4, true}, {4, true}, {4, true}}},
                    Shape{"Rings4x4x8", {{4, true}, {4, true}, {8, true}}},
                    Shape{"Lines2x2x4", {{2, false}, {2, false}, {4, false}}}),
    [](const auto &info) { return std::string(info.param.name); });

// The book's own count on an even ring: N / 2 steps of whole shards.
TEST(RingSimulation, WholeChunks) {
  for (int64_t size : {4, 8, 16, 32}) {
    LinkSimulation links({{size, true}});
    links.allGather({0}, 1, Opposite::Whole);
    EXPECT_TRUE(links.isComplete());
    Shape ring{"", {{size, true}}};
    CollectiveCost formula = modelOf(ring).cost(CollectiveKind::AllGather, {0},
                                                double(size) * kShard);
    expectNear(links.busiest() * kShard / kLink, formula.bandwidthSeconds);
    EXPECT_EQ(links.steps(), size / 2);
    LinkSimulation sums({{size, true}});
    sums.reduceScatter({0}, 1, Opposite::Whole);
    EXPECT_TRUE(sums.isComplete());
    EXPECT_EQ(sums.busiest(), links.busiest());
  }
}

//===----------------------------------------------------------------------===//
// Parts of an axis
//===----------------------------------------------------------------------===//

namespace {

/// One direction of each link of a ring of physical chips, when groups of a
/// part of it run a collective at once: a virtual link from one member to the
/// next is `stride` physical ones.
class SharedLinks {
public:
  SharedLinks(int64_t chips, int64_t stride) : upward(chips), stride(stride) {}

  /// Adds the load of a virtual link, upwards from the chip at `position`.
  void add(int64_t position, double units) {
    for (int64_t hop = 0; hop < stride; ++hop)
      upward[(position + hop) % upward.size()] += units;
  }
  double busiest() const {
    return *std::max_element(upward.begin(), upward.end());
  }

private:
  std::vector<double> upward;
  int64_t stride;
};

} // namespace

// A ring of 16 of which X = 4 is the outer part, 4 apart. Four groups gather at
// once, each around the ring; every physical link belongs to one virtual link
// of each group. Whole chunks: 2 steps, 2 units on each virtual link, so 8 on
// each physical one. V = 4 units: V / (W_bidi / 4) = 8 units / W_one.
TEST(PartSimulation, OuterPartOfARing) {
  CollectiveModel ring = model(tpuV5e({16, 1}), {4, 4}, {{"x"}, {"x"}});
  SharedLinks links(16, 4);
  for (int64_t group = 0; group < 4; ++group)
    for (int64_t member = 0; member < 4; ++member)
      links.add(member * 4 + group, 2);
  EXPECT_EQ(links.busiest(), 8);
  expectNear(
      ring.cost(CollectiveKind::AllGather, {0}, 4 * kShard).bandwidthSeconds,
      links.busiest() * kShard / kLink);
}

// X = 2, Y = 4, Z = 2: Y is a line of four members 2 apart, shared by 2 groups.
// The virtual link below the last member carries the three units of the
// others. V = 4 units: V 3/4 / (W_one / 2) = 6 units / W_one.
TEST(PartSimulation, MiddlePartOfARing) {
  CollectiveModel ring =
      model(tpuV5e({16, 1}), {2, 4, 2}, {{"x"}, {"x"}, {"x"}});
  SharedLinks links(16, 2);
  for (int64_t outer = 0; outer < 2; ++outer)
    for (int64_t inner = 0; inner < 2; ++inner)
      for (int64_t member = 0; member < 3; ++member)
        links.add(outer * 8 + member * 2 + inner, double(member) + 1);
  EXPECT_EQ(links.busiest(), 6);
  expectNear(
      ring.cost(CollectiveKind::AllGather, {1}, 4 * kShard).bandwidthSeconds,
      links.busiest() * kShard / kLink);
}

// All-to-all over the outer part: on a virtual ring of 4, with a unit for each
// pair, a link carries 1 for the neighbour and, of the 2 steps to the opposite
// chip, half of two: 2 units; four groups share it. V = 16 units: V / (4 x 4) x
// 4 / (W_bidi / 4) = 8 units / W_one.
TEST(PartSimulation, AllToAllOverAnOuterPart) {
  CollectiveModel ring = model(tpuV5e({16, 1}), {4, 4}, {{"x"}, {"x"}});
  LinkSimulation virtualRing({{4, true}});
  virtualRing.allToAll();
  SharedLinks links(16, 4);
  for (int64_t group = 0; group < 4; ++group)
    for (int64_t member = 0; member < 4; ++member)
      links.add(member * 4 + group, virtualRing.busiest());
  EXPECT_EQ(links.busiest(), 8);
  expectNear(
      ring.cost(CollectiveKind::AllToAll, {0}, 16 * kShard).bandwidthSeconds,
      links.busiest() * kShard / kLink);
}
