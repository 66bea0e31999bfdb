//===- PermuteTest.cpp - Permutations on tori and switched levels ---------===//

#include "Machines.h"
#include <functional>
#include <map>
#include <numeric>
#include <random>

using namespace shardc;

namespace {

using Coordinates = llvm::ArrayRef<int64_t>;
using Source = std::function<void(Coordinates, llvm::MutableArrayRef<int64_t>)>;
using Occupied = llvm::SmallVector<unsigned, 4>;

/// Every device receives what the one `distance` before it on an axis holds.
Source shift(AxisIndex axis, int64_t size, int64_t distance) {
  return [=](Coordinates at, llvm::MutableArrayRef<int64_t> from) {
    from[axis] = (at[axis] + size - distance) % size;
  };
}

/// The device at (x, y) receives what (y, x) holds.
void transpose(Coordinates at, llvm::MutableArrayRef<int64_t> from) {
  from[0] = at[1];
  from[1] = at[0];
}

//===----------------------------------------------------------------------===//
// Tori
//===----------------------------------------------------------------------===//

// One step round a ring of 16: each link carries one message of 45e6 at 4.5e10;
// one hop.
TEST(PermuteTest, ShiftOnARing) {
  CollectiveModel ring = model(tpuV5e({16, 4}), {16, 4});
  CollectiveCost cost = ring.permuteCost({0}, 45e6, shift(0, 16, 1));
  expectNear(cost.bandwidthSeconds, 1e-3);
  expectNear(cost.latencySeconds, 1e-6);
  EXPECT_EQ(cost.wireBytes, 45e6);
  EXPECT_EQ(cost.bytes, 45e6);
  EXPECT_EQ(cost.occupies, Occupied({0}));
}

// Five steps up: every upward link carries 5 messages. Thirteen up are three
// down.
TEST(PermuteTest, ShortestWayRound) {
  CollectiveModel ring = model(tpuV5e({16, 4}), {16, 4});
  CollectiveCost five = ring.permuteCost({0}, 9e6, shift(0, 16, 5));
  expectNear(five.bandwidthSeconds, 1e-3);
  expectNear(five.latencySeconds, 5e-6);
  CollectiveCost thirteen = ring.permuteCost({0}, 15e6, shift(0, 16, 13));
  expectNear(thirteen.bandwidthSeconds, 1e-3);
  expectNear(thirteen.latencySeconds, 3e-6);
}

// A step up and a step down at once take links of their own; of two steps up
// and one down, upward links carry two.
TEST(PermuteTest, SeveralAtOnce) {
  CollectiveModel ring = model(tpuV5e({16, 4}), {16, 4});
  auto up = shift(0, 16, 1), down = shift(0, 16, 15), twoUp = shift(0, 16, 2);
  CollectiveCost both = ring.permuteCost({0}, 45e6, {up, down});
  expectNear(both.bandwidthSeconds, 1e-3);
  EXPECT_EQ(both.bytes, 90e6);
  CollectiveCost more = ring.permuteCost({0}, 45e6, {twoUp, down});
  expectNear(more.bandwidthSeconds, 2e-3);
  // A switch gives a device one message after the other: 2 x 450e6 at 450e9.
  CollectiveModel node = model(h100({8}), {8});
  auto next = shift(0, 8, 1), last = shift(0, 8, 7);
  CollectiveCost switched = node.permuteCost({0}, 450e6, {next, last});
  expectNear(switched.bandwidthSeconds, 2e-3);
  EXPECT_EQ(switched.wireBytes, 900e6);
}

// Half way round, 8 steps, all upwards: 8 messages a link.
TEST(PermuteTest, HalfWayRound) {
  CollectiveModel ring = model(tpuV5e({16, 4}), {16, 4});
  CollectiveCost cost = ring.permuteCost({0}, 45e6, shift(0, 16, 8));
  expectNear(cost.bandwidthSeconds, 8e-3);
  expectNear(cost.latencySeconds, 8e-6);
}

// One step on a line of 4: three messages go up one link each, the last one's
// comes down all three links: no link has two. Longest path 3 hops.
TEST(PermuteTest, ShiftOnALine) {
  CollectiveModel line = model(tpuV5e({4, 4}), {4, 4});
  CollectiveCost cost = line.permuteCost({0}, 45e6, shift(0, 4, 1));
  expectNear(cost.bandwidthSeconds, 1e-3);
  expectNear(cost.latencySeconds, 3e-6);
}

// X = 4 outside Y = 4 on a ring of 16: one step of X is 4 links for every one
// of the 16 devices, so each upward link carries 4 messages.
TEST(PermuteTest, OuterPartSharesLinks) {
  CollectiveModel ring = model(tpuV5e({16, 1}), {4, 4}, {{"x"}, {"x"}});
  CollectiveCost outer = ring.permuteCost({0}, 45e6, shift(0, 4, 1));
  expectNear(outer.bandwidthSeconds, 4e-3);
  expectNear(outer.latencySeconds, 4e-6);
  // A step of Y stays inside its part, a line.
  CollectiveCost inner = ring.permuteCost({1}, 45e6, shift(1, 4, 1));
  expectNear(inner.bandwidthSeconds, 1e-3);
  expectNear(inner.latencySeconds, 3e-6);
}

// Transposing 2x2: (0, 1) and (1, 0) exchange. (1, 0) goes down x to (0, 0),
// then up y; (0, 1) goes up x to (1, 1), then down y. One message a link, two
// hops.
TEST(PermuteTest, TransposeOfTwoByTwo) {
  CollectiveModel chips = model(tpuV5e({2, 2}), {2, 2});
  CollectiveCost cost = chips.permuteCost({0, 1}, 45e6, transpose);
  expectNear(cost.bandwidthSeconds, 1e-3);
  expectNear(cost.latencySeconds, 2e-6);
  EXPECT_EQ(cost.occupies, Occupied({0, 1}));
}

// Transposing 4x4 without wraparound: in row y of the x axis three messages
// meet at x = y: from below y of them, from above 3 - y. Row 3 has three on its
// last link up. Longest path: the corners', 3 + 3 hops.
TEST(PermuteTest, TransposeOfFourByFour) {
  CollectiveModel chips = model(tpuV5e({4, 4}), {4, 4});
  CollectiveCost cost = chips.permuteCost({0, 1}, 45e6, transpose);
  expectNear(cost.bandwidthSeconds, 3e-3);
  expectNear(cost.latencySeconds, 6e-6);
}

TEST(PermuteTest, NothingMoves) {
  CollectiveModel chips = model(tpuV5e({4, 4}), {4, 4});
  CollectiveCost cost = chips.permuteCost(
      {0, 1}, 45e6, [](Coordinates, llvm::MutableArrayRef<int64_t>) {});
  EXPECT_EQ(cost.seconds(), 0);
  EXPECT_EQ(cost.wireBytes, 0);
  EXPECT_TRUE(cost.occupies.empty());
}

//===----------------------------------------------------------------------===//
// A simulation link by link
//===----------------------------------------------------------------------===//

/// Loads of a permutation on a torus of two axes, message by message: the most
/// messages on one directed link, and the longest path.
struct Simulation {
  int64_t sizes[2];
  bool isRing[2];
  std::map<std::tuple<int64_t, int64_t, int64_t, int64_t>, int> loads;
  int64_t longest = 0;

  void send(int64_t x, int64_t y, int64_t toX, int64_t toY) {
    int64_t hops = 0;
    int64_t at[2] = {x, y};
    int64_t to[2] = {toX, toY};
    for (int axis : {0, 1}) {
      int64_t up = (to[axis] - at[axis] + sizes[axis]) % sizes[axis];
      bool goesUp = isRing[axis] ? up <= sizes[axis] - up : to[axis] > at[axis];
      while (at[axis] != to[axis]) {
        int64_t next[2] = {at[0], at[1]};
        next[axis] = (at[axis] + (goesUp ? 1 : -1) + sizes[axis]) % sizes[axis];
        // On an axis of two, up and down are different links.
        ++loads[{at[0] * sizes[1] + at[1], next[0] * sizes[1] + next[1], axis,
                 goesUp}];
        at[axis] = next[axis];
        ++hops;
      }
    }
    longest = std::max(longest, hops);
  }

  int most() const {
    int most = 0;
    for (const auto &[link, load] : loads)
      most = std::max(most, load);
    return most;
  }
};

struct TorusShape {
  int64_t x, y;
  Network::WrapRule wrap;
};

class PermuteSimulation : public testing::TestWithParam<TorusShape> {};

TEST_P(PermuteSimulation, AgreesOnRandomPermutations) {
  auto [sizeX, sizeY, wrap] = GetParam();
  Machine machine = tpuV5e({sizeX, sizeY});
  machine.networks[0].wrap = wrap;
  CollectiveModel chips = model(machine, {sizeX, sizeY});
  std::mt19937 random(7);
  bool isRing = wrap == Network::WrapRule::All;
  for (int round = 0; round < 50; ++round) {
    std::vector<int64_t> sources(sizeX * sizeY);
    std::iota(sources.begin(), sources.end(), 0);
    // Not std::shuffle, whose result is the library's own.
    for (size_t last = sources.size(); last > 1; --last)
      std::swap(sources[last - 1], sources[random() % last]);
    Simulation simulation{{sizeX, sizeY}, {isRing, isRing}, {}, 0};
    for (int64_t device = 0; device < sizeX * sizeY; ++device)
      simulation.send(sources[device] / sizeY, sources[device] % sizeY,
                      device / sizeY, device % sizeY);
    CollectiveCost cost = chips.permuteCost(
        {0, 1}, 45e6, [&](Coordinates at, llvm::MutableArrayRef<int64_t> from) {
          int64_t source = sources[at[0] * sizeY + at[1]];
          from[0] = source / sizeY;
          from[1] = source % sizeY;
        });
    expectNear(cost.bandwidthSeconds, simulation.most() * 1e-3);
    expectNear(cost.latencySeconds, simulation.longest * 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Tori, PermuteSimulation,
    testing::Values(TorusShape{3, 4, Network::WrapRule::None},
                    TorusShape{3, 4, Network::WrapRule::All},
                    TorusShape{2, 5, Network::WrapRule::All},
                    TorusShape{4, 4, Network::WrapRule::All},
                    TorusShape{1, 6, Network::WrapRule::All}));

//===----------------------------------------------------------------------===//
// Switched levels
//===----------------------------------------------------------------------===//

// In the node at 450e9; between nodes at 50e9 a GPU.
TEST(SwitchPermuteTest, OutermostLevelCrossed) {
  CollectiveModel nodes = model(h100({4, 8}), {4, 8});
  CollectiveCost inner = nodes.permuteCost({1}, 450e6, shift(1, 8, 1));
  expectNear(inner.bandwidthSeconds, 1e-3);
  EXPECT_EQ(inner.occupies, Occupied({1}));
  CollectiveCost outer = nodes.permuteCost({0}, 50e6, shift(0, 4, 1));
  expectNear(outer.bandwidthSeconds, 1e-3);
  EXPECT_EQ(outer.occupies, Occupied({0}));
  // Latency as of every collective over 4 nodes: 2 x 8 us.
  expectNear(outer.latencySeconds, 16e-6);
  EXPECT_EQ(outer.wireBytes, 50e6);
}

// X = 16 over two nodes: some step from node to node, the others to the next
// GPU; the node's egress sets the time. 3 x 3 us + 8 us.
TEST(SwitchPermuteTest, AxisAcrossLevels) {
  CollectiveModel nodes = model(h100({2, 8}), {16});
  CollectiveCost cost = nodes.permuteCost({0}, 50e6, shift(0, 16, 1));
  expectNear(cost.bandwidthSeconds, 1e-3);
  expectNear(cost.latencySeconds, 17e-6);
  EXPECT_EQ(cost.occupies, Occupied({0, 1}));
}

// Pairs of neighbours exchange: nothing leaves a node.
TEST(SwitchPermuteTest, LevelsThatNothingCrosses) {
  CollectiveModel nodes = model(h100({2, 8}), {16});
  CollectiveCost cost = nodes.permuteCost(
      {0}, 450e6, [](Coordinates at, llvm::MutableArrayRef<int64_t> from) {
        from[0] = at[0] ^ 1;
      });
  expectNear(cost.bandwidthSeconds, 1e-3);
  EXPECT_EQ(cost.occupies, Occupied({1}));
}

// Between leaves: both levels above the node.
TEST(SwitchPermuteTest, SharesTheEgress) {
  CollectiveModel pod = model(h100({4, 32, 8}), {4, 256});
  CollectiveCost cost = pod.permuteCost({0}, 50e6, shift(0, 4, 1));
  expectNear(cost.bandwidthSeconds, 1e-3);
  EXPECT_EQ(cost.occupies, Occupied({0, 1}));
}

// A full mesh sends to one other chip over one link of 448e9 / 7 = 64e9.
TEST(SwitchPermuteTest, FullMesh) {
  Machine machine = h100({8});
  machine.networks = {switched("gpu", 448e9, 3e-6)};
  machine.networks[0].kind = Network::Kind::FullMesh;
  machine.maxShape.clear();
  CollectiveModel node = model(machine, {8});
  auto next = shift(0, 8, 1), last = shift(0, 8, 7), again = shift(0, 8, 1);
  expectNear(node.permuteCost({0}, 64e6, next).bandwidthSeconds, 1e-3);
  // From two neighbours over two links; twice from one over one link.
  CollectiveCost both = node.permuteCost({0}, 64e6, {next, last});
  expectNear(both.bandwidthSeconds, 1e-3);
  EXPECT_EQ(both.wireBytes, 128e6);
  expectNear(node.permuteCost({0}, 64e6, {next, again}).bandwidthSeconds, 2e-3);
}

// X = 8 over two nodes of four. Inside a node a GPU receives one message from
// each side over its port of 100e9; at the border one comes over its 90e9 of
// the node's 360e9 instead. The ports set the time.
TEST(SwitchPermuteTest, SlowerOfTwoLevels) {
  Machine machine = h100({2, 4});
  machine.networks = {switched("gpu", 100e9, 3e-6),
                      switched("node", 360e9, 8e-6)};
  machine.maxShape.clear();
  CollectiveModel pod = model(machine, {8});
  auto before = [](Coordinates at, llvm::MutableArrayRef<int64_t> from) {
    from[0] = std::max<int64_t>(at[0] - 1, 0);
  };
  auto behind = [](Coordinates at, llvm::MutableArrayRef<int64_t> from) {
    from[0] = std::min<int64_t>(at[0] + 1, 7);
  };
  CollectiveCost cost = pod.permuteCost({0}, 50e6, {before, behind});
  expectNear(cost.bandwidthSeconds, 2 * 50e6 / 100e9);
  EXPECT_EQ(cost.slowest, physicalBit(1));
  // 2 doublings of 3 us and one of 8 us.
  expectNear(cost.latencySeconds, 14e-6);
}

// Slices exchange over DCN at 6.25e9 a chip; within a slice nothing moves.
TEST(SwitchPermuteTest, BetweenSlices) {
  CollectiveModel slices = model(tpuV5p({2, 4, 4, 4}), {2, 64});
  CollectiveCost cost = slices.permuteCost({0}, 6.25e6, shift(0, 2, 1));
  expectNear(cost.bandwidthSeconds, 1e-3);
  expectNear(cost.latencySeconds, 10e-6);
  EXPECT_EQ(cost.occupies, Occupied({0}));
}

// Parts over slices (2) and z (4), the slices the major axis, become parts with
// z the major axis: both networks are used, DCN the slower.
TEST(SwitchPermuteTest, TorusAndSlices) {
  CollectiveModel slices =
      model(tpuV5p({2, 4, 4, 4}), {2, 16, 4}, {{"slice"}, {"x", "y"}, {"z"}});
  // (s, z) is part s * 4 + z; it becomes part z * 2 + s.
  CollectiveCost cost = slices.permuteCost(
      {0, 2}, 6.25e6, [](Coordinates at, llvm::MutableArrayRef<int64_t> from) {
        int64_t part = at[2] * 2 + at[0];
        from[0] = part / 4;
        from[2] = part % 4;
      });
  expectNear(cost.bandwidthSeconds, 1e-3);
  EXPECT_EQ(cost.occupies, Occupied({0, 3}));
  // Device (s, z) holds part 4 s + z and takes part 2 z + s. Along z: (0, 1)
  // takes 2 from (0, 2), one hop; (0, 2) takes 4 from (1, 0), two hops; (1, 1)
  // takes 3 from (0, 3), two hops; none takes more. 2 x 1 us, and 10 us of DCN.
  expectNear(cost.latencySeconds, 12e-6);
}

} // namespace
