//===- CollectiveTest.cpp - Collectives on tori and switched levels -------===//

#include "Machines.h"

using namespace shardc;

namespace {

constexpr CollectiveKind kAllGather = CollectiveKind::AllGather;
constexpr CollectiveKind kReduceScatter = CollectiveKind::ReduceScatter;
constexpr CollectiveKind kAllReduce = CollectiveKind::AllReduce;
constexpr CollectiveKind kAllToAll = CollectiveKind::AllToAll;

using Axes = llvm::SmallVector<AxisIndex, 4>;
using Occupied = llvm::SmallVector<unsigned, 4>;

double bandwidthSeconds(const CollectiveModel &model, CollectiveKind kind,
                        Axes axes, double bytes) {
  return model.cost(kind, axes, bytes).bandwidthSeconds;
}

double latencySeconds(const CollectiveModel &model, CollectiveKind kind,
                      Axes axes) {
  return model.cost(kind, axes, 1).latencySeconds;
}

//===----------------------------------------------------------------------===//
// What every collective has in common
//===----------------------------------------------------------------------===//

TEST(CollectiveTest, Names) {
  EXPECT_EQ(stringify(CollectiveKind::AllGather), "all_gather");
  EXPECT_EQ(stringify(CollectiveKind::AllSlice), "all_slice");
  EXPECT_EQ(stringify(CollectiveKind::AllToAll), "all_to_all");
  EXPECT_EQ(stringify(CollectiveKind::ReduceScatter), "reduce_scatter");
  EXPECT_EQ(stringify(CollectiveKind::AllReduce), "all_reduce");
  EXPECT_EQ(stringify(CollectiveKind::CollectivePermute), "collective_permute");
}

TEST(CollectiveTest, Picoseconds) {
  EXPECT_EQ(toPicoseconds(1.5e-6), 1500000);
  EXPECT_EQ(toPicoseconds(0.6e-12), 1);
  EXPECT_EQ(toPicoseconds(1e9), Picoseconds(1) << 60);
}

// V = 1600 over N = 16: V (N - 1) / N = 1500; all_to_all a 16th of it, 93.75.
TEST(CollectiveTest, WireBytes) {
  CollectiveModel line = model(tpuV5e({4, 4}), {4, 4});
  EXPECT_EQ(line.cost(kAllGather, {0, 1}, 1600).wireBytes, 1500);
  EXPECT_EQ(line.cost(kReduceScatter, {0, 1}, 1600).wireBytes, 1500);
  EXPECT_EQ(line.cost(kAllReduce, {0, 1}, 1600).wireBytes, 3000);
  EXPECT_EQ(line.cost(kAllToAll, {0, 1}, 1600).wireBytes, 93.75);
  EXPECT_EQ(line.cost(kAllGather, {0, 1}, 1600).bytes, 1600);
}

TEST(CollectiveTest, GroupsOfOneAndSlicesAreFree) {
  CollectiveModel chips = model(tpuV5e({4, 4}), {1, 16});
  CollectiveCost one = chips.cost(kAllReduce, {0}, 1e9);
  EXPECT_EQ(one.seconds(), 0);
  EXPECT_EQ(one.wireBytes, 0);
  EXPECT_TRUE(one.occupies.empty());
  CollectiveCost slice = chips.cost(CollectiveKind::AllSlice, {1}, 1e9);
  EXPECT_EQ(slice.seconds(), 0);
  EXPECT_TRUE(slice.occupies.empty());
  EXPECT_EQ(model(tpuV5e({}), {}).cost(kAllGather, {}, 1e9).seconds(), 0);
}

TEST(CollectiveTest, AxisOrderDoesNotMatter) {
  CollectiveModel chips = model(tpuV5e({4, 16}), {4, 16});
  EXPECT_EQ(chips.cost(kAllGather, {0, 1}, 1e6).seconds(),
            chips.cost(kAllGather, {1, 0}, 1e6).seconds());
}

// Nine axes are more than are listed ahead: 2 x 2 x ... on 16 x 32, all of one
// group. The union of the parts is both axes, as for a mesh of two axes.
TEST(CollectiveTest, ManyAxes) {
  Machine machine = tpuV5e({16, 32});
  Mesh mesh;
  for (unsigned axis = 0; axis < 9; ++axis)
    mesh.axes.push_back({std::string(1, char('a' + axis)), 2});
  llvm::SmallVector<AxisRequest, 9> requests(9);
  CollectiveModel many(
      machine, mesh,
      std::get<MeshBinding>(bindMesh(machine, mesh, requests, 0)));
  // Wrapped x: 9e10. Line y: 512/511 x 4.5e10. 1 / (9e10 + 4.5088e10).
  expectNear(
      bandwidthSeconds(many, kAllGather, {0, 1, 2, 3, 4, 5, 6, 7, 8}, 1e9),
      1e9 / (90e9 + 45e9 * 512 / 511));
  expectNear(
      bandwidthSeconds(model(machine, {16, 32}), kAllGather, {0, 1}, 1e9),
      1e9 / (90e9 + 45e9 * 512 / 511));
}

//===----------------------------------------------------------------------===//
// Tori
//===----------------------------------------------------------------------===//

// A ring of 16: W_bidi = 9e10. 90e6 bytes gather in 1 ms, reduce in 2 ms and
// exchange in a quarter, 0.25 ms. Half the ring: 8 hops of 1 us.
TEST(TorusTest, WrappedAxis) {
  CollectiveModel ring = model(tpuV5e({8, 16}), {8, 16});
  expectNear(bandwidthSeconds(ring, kAllGather, {1}, 90e6), 1e-3);
  expectNear(bandwidthSeconds(ring, kReduceScatter, {1}, 90e6), 1e-3);
  expectNear(bandwidthSeconds(ring, kAllReduce, {1}, 90e6), 2e-3);
  expectNear(bandwidthSeconds(ring, kAllToAll, {1}, 90e6), 0.25e-3);
  expectNear(latencySeconds(ring, kAllGather, {1}), 8e-6);
  expectNear(latencySeconds(ring, kReduceScatter, {1}), 8e-6);
  expectNear(latencySeconds(ring, kAllReduce, {1}), 16e-6);
  expectNear(latencySeconds(ring, kAllToAll, {1}), 8e-6);
  EXPECT_EQ(ring.cost(kAllGather, {1}, 1).occupies, Occupied({1}));
}

// A line of 8 at 4.5e10: V (N - 1) / (N W_one) = 45e6 x 7/8 / 4.5e10 = 0.875
// ms; all_to_all V / (4 x 8) x 8 / W_one = V / (4 W_one) = 0.25 ms; 7 hops.
TEST(TorusTest, Line) {
  CollectiveModel line = model(tpuV5e({8, 16}), {8, 16});
  expectNear(bandwidthSeconds(line, kAllGather, {0}, 45e6), 0.875e-3);
  expectNear(bandwidthSeconds(line, kAllReduce, {0}, 45e6), 1.75e-3);
  expectNear(bandwidthSeconds(line, kAllToAll, {0}, 45e6), 0.25e-3);
  expectNear(latencySeconds(line, kAllGather, {0}), 7e-6);
  EXPECT_EQ(line.cost(kAllGather, {0}, 1).occupies, Occupied({0}));
}

// 4x4 without wraparound (HW-21): a corner has two inbound links and lacks
// 15/16 of V: 90e6 x 15/16 / (2 x 4.5e10) = 0.9375 ms. All_to_all: V / (4 x 16)
// x 4 / 4.5e10 = 90e6 / 7.2e11 = 0.125 ms. Hops 3 + 3.
TEST(TorusTest, UnwrappedMesh) {
  CollectiveModel chips = model(tpuV5e({4, 4}), {4, 4});
  expectNear(bandwidthSeconds(chips, kAllGather, {0, 1}, 90e6), 0.9375e-3);
  expectNear(bandwidthSeconds(chips, kAllToAll, {0, 1}, 90e6), 0.125e-3);
  expectNear(latencySeconds(chips, kAllGather, {0, 1}), 6e-6);
  EXPECT_EQ(chips.cost(kAllGather, {0, 1}, 1).occupies, Occupied({0, 1}));
}

// A ring of 16 and a line of 8, N = 128: W = 9e10 + 128/127 x 4.5e10 =
// 1.35354e11. All_to_all: max(16 / 9e10, 8 / 4.5e10) are equal: V / 512 x
// 1.7778e-10. Hops 8 + 7.
TEST(TorusTest, RingAndLine) {
  CollectiveModel chips = model(tpuV5e({8, 16}), {8, 16});
  expectNear(bandwidthSeconds(chips, kAllGather, {0, 1}, 1e9),
             1e9 / (90e9 + 128.0 / 127 * 45e9));
  expectNear(bandwidthSeconds(chips, kAllToAll, {0, 1}, 1e9),
             1e9 / 512 * (8 / 45e9));
  expectNear(latencySeconds(chips, kAllGather, {0, 1}), 15e-6);
}

// Three wrapped axes of a v5p: 3 x 1.8e11 = 5.4e11 (GP-22: 540 GB/s). Slowest
// all_to_all axis 12: V / (4 x 384) x 12 / 1.8e11. Hops 2 + 4 + 6.
TEST(TorusTest, ThreeWrappedAxes) {
  CollectiveModel chips = model(tpuV5p({4, 8, 12}), {4, 8, 12});
  expectNear(bandwidthSeconds(chips, kAllGather, {0, 1, 2}, 540e6), 1e-3);
  expectNear(bandwidthSeconds(chips, kAllToAll, {0, 1, 2}, 1e9),
             1e9 / (4 * 384) * 12 / 180e9);
  expectNear(latencySeconds(chips, kAllGather, {0, 1, 2}), 12e-6);
}

// Axes of a torus gather together; an all_to_all waits for the longest.
TEST(TorusTest, BoundBy) {
  CollectiveModel chips = model(tpuV5p({4, 8, 12}), {4, 8, 12});
  EXPECT_EQ(chips.cost(kAllGather, {0, 2}, 1e9).boundBy(),
            physicalBit(0) | physicalBit(2));
  EXPECT_EQ(chips.cost(kAllToAll, {0, 1}, 1e9).boundBy(), physicalBit(1));
  EXPECT_EQ(chips.cost(kAllReduce, {0, 1}, 1).boundBy(),
            physicalBit(0) | physicalBit(1));
}

// One mesh axis over two physical ones counts both.
TEST(TorusTest, MeshAxisOverSeveralPhysicalAxes) {
  CollectiveModel chips = model(tpuV5p({4, 4, 4}), {4, 16});
  expectNear(bandwidthSeconds(chips, kAllGather, {1}, 360e6), 1e-3);
  EXPECT_EQ(chips.cost(kAllGather, {1}, 1).occupies, Occupied({1, 2}));
}

//===----------------------------------------------------------------------===//
// Parts of torus axes
//===----------------------------------------------------------------------===//

// A ring of 16 split into X = 2, Y = 4, Z = 2, the first outermost.
class PartTest : public testing::Test {
protected:
  CollectiveModel ring =
      model(tpuV5e({16, 1}), {2, 4, 2}, {{"x"}, {"x"}, {"x"}});
};

// Z: pairs of neighbours, a line: 2/1 x 4.5e10 = 9e10; one hop.
TEST_F(PartTest, InnerPartIsALine) {
  expectNear(bandwidthSeconds(ring, kAllGather, {2}, 90e6), 1e-3);
  expectNear(latencySeconds(ring, kAllGather, {2}), 1e-6);
  // 90e6 / (4 x 2) x 2 / 4.5e10 = 0.5 ms.
  expectNear(bandwidthSeconds(ring, kAllToAll, {2}, 90e6), 0.5e-3);
}

// Y: 4 positions 2 apart, a line that 2 groups share: 4/3 x 4.5e10 / 2 = 3e10;
// 3 steps of 2 hops.
TEST_F(PartTest, MiddlePartIsASharedLine) {
  expectNear(bandwidthSeconds(ring, kAllGather, {1}, 30e6), 1e-3);
  expectNear(latencySeconds(ring, kAllGather, {1}), 6e-6);
  // 45e6 / (4 x 4) x 4 / 2.25e10 = 0.5 ms.
  expectNear(bandwidthSeconds(ring, kAllToAll, {1}, 45e6), 0.5e-3);
}

// X: 2 positions 8 apart, wrapped, shared by 8 groups: 9e10 / 8 = 1.125e10;
// one step of 8 hops.
TEST_F(PartTest, OuterPartIsASharedRing) {
  expectNear(bandwidthSeconds(ring, kAllGather, {0}, 11.25e6), 1e-3);
  expectNear(latencySeconds(ring, kAllGather, {0}), 8e-6);
}

// X and Y: 8 positions 2 apart, wrapped: 9e10 / 2 = 4.5e10; 4 steps of 2 hops.
TEST_F(PartTest, OuterUnion) {
  expectNear(bandwidthSeconds(ring, kAllGather, {0, 1}, 45e6), 1e-3);
  expectNear(latencySeconds(ring, kAllGather, {0, 1}), 8e-6);
}

// Y and Z: 8 contiguous positions, a line: 8/7 x 4.5e10; 7 hops.
TEST_F(PartTest, InnerUnion) {
  expectNear(bandwidthSeconds(ring, kAllGather, {1, 2}, 45e6), 0.875e-3);
  expectNear(latencySeconds(ring, kAllGather, {1, 2}), 7e-6);
}

// X and Z: positions 0, 1, 8, 9, wrapped; the span of 16 holds 4 members, so 4
// groups share the links: 9e10 / 4; 2 steps of 4 hops.
TEST_F(PartTest, UnionWithAGap) {
  expectNear(bandwidthSeconds(ring, kAllGather, {0, 2}, 22.5e6), 1e-3);
  expectNear(latencySeconds(ring, kAllGather, {0, 2}), 8e-6);
}

// All parts together are the whole ring.
TEST_F(PartTest, WholeUnion) {
  expectNear(bandwidthSeconds(ring, kAllGather, {0, 1, 2}, 90e6), 1e-3);
  expectNear(latencySeconds(ring, kAllGather, {0, 1, 2}), 8e-6);
}

// A mesh on the inner half of the ring: its outermost part does not wrap. X: 2
// positions 4 apart, a line: 2 x 4.5e10 / 4 = 2.25e10; 4 hops.
TEST(PartialTorusTest, InnerHalfOfARing) {
  CollectiveModel half = model(tpuV5e({16, 1}), {2, 4}, {{"x"}, {"x"}});
  expectNear(bandwidthSeconds(half, kAllGather, {0}, 22.5e6), 1e-3);
  expectNear(latencySeconds(half, kAllGather, {0}), 4e-6);
}

//===----------------------------------------------------------------------===//
// Switched levels
//===----------------------------------------------------------------------===//

// Eight GPUs at 450e9: V 7/8 / 450e9; 720e6 x 7/8 / 450e9 = 1.4 ms. All_to_all
// V (8 - 1) / 64 / 450e9 = 0.175 ms. ceil(log2 8) = 3 rounds of 3 us.
TEST(SwitchTest, OneLevel) {
  CollectiveModel node = model(h100({8}), {8});
  expectNear(bandwidthSeconds(node, kAllGather, {0}, 720e6), 1.4e-3);
  expectNear(bandwidthSeconds(node, kReduceScatter, {0}, 720e6), 1.4e-3);
  expectNear(bandwidthSeconds(node, kAllReduce, {0}, 720e6), 2.8e-3);
  expectNear(bandwidthSeconds(node, kAllToAll, {0}, 720e6), 0.175e-3);
  expectNear(latencySeconds(node, kAllGather, {0}), 9e-6);
  expectNear(latencySeconds(node, kAllReduce, {0}), 18e-6);
  EXPECT_EQ(node.cost(kAllGather, {0}, 1).occupies, Occupied({0}));
}

// Three of the eight: V 2/3 / 450e9; ceil(log2 3) = 2 rounds.
TEST(SwitchTest, PartOfALevel) {
  CollectiveModel node = model(h100({8}), {3});
  expectNear(bandwidthSeconds(node, kAllGather, {0}, 450e6), 2e-3 / 3);
  expectNear(latencySeconds(node, kAllGather, {0}), 6e-6);
}

// Four nodes of 8 (w_1 = 50e9): in the node 7/8 / 450e9 = 1.944e-12; between
// nodes 3/4 / (8 x 50e9) = 1.875e-12: the node is slower. All_to_all: in the
// node (32 - 1) / 32^2 / 450e9 = 6.7e-14; between (32 - 8) / 1024 / 50e9 =
// 4.6875e-13. Rounds: 3 x 3 us + 2 x 8 us.
TEST(SwitchTest, TwoLevels) {
  CollectiveModel nodes = model(h100({4, 8}), {4, 8});
  expectNear(bandwidthSeconds(nodes, kAllGather, {0, 1}, 1e9),
             1e9 * 7 / 8 / 450e9);
  expectNear(bandwidthSeconds(nodes, kAllToAll, {0, 1}, 1e9), 4.6875e-4);
  expectNear(latencySeconds(nodes, kAllGather, {0, 1}), 25e-6);
  EXPECT_EQ(nodes.cost(kAllGather, {0, 1}, 1).occupies, Occupied({0, 1}));
}

// The network that sets the time: of a gather over 4 nodes of 8 the node's, of
// an all_to_all the one above; of the latency 3 x 3 us and 2 x 8 us the latter.
TEST(SwitchTest, BoundBy) {
  CollectiveModel nodes = model(h100({4, 8}), {4, 8});
  EXPECT_EQ(nodes.cost(kAllGather, {0, 1}, 1e9).boundBy(), physicalBit(1));
  EXPECT_EQ(nodes.cost(kAllToAll, {0, 1}, 1e9).boundBy(), physicalBit(0));
  EXPECT_EQ(nodes.cost(kAllGather, {0, 1}, 1).boundBy(), physicalBit(0));
  EXPECT_EQ(nodes.cost(kAllGather, {1}, 1).boundBy(), physicalBit(1));
  EXPECT_EQ(model(h100({8}), {1, 8}).cost(kAllGather, {0}, 1).boundBy(), 0u);
}

// Only between the nodes, 8 groups at once, one per GPU of a node: S = 1,
// 3/4 / 50e9.
TEST(SwitchTest, OuterLevelAlone) {
  CollectiveModel nodes = model(h100({4, 8}), {4, 8});
  expectNear(bandwidthSeconds(nodes, kAllGather, {0}, 1e9), 15e-3);
  expectNear(bandwidthSeconds(nodes, kAllToAll, {0}, 1e9), 1e9 * 3 / 16 / 50e9);
  expectNear(latencySeconds(nodes, kAllGather, {0}), 16e-6);
  EXPECT_EQ(nodes.cost(kAllGather, {0}, 1).occupies, Occupied({0}));
}

// X = 8 over 4 nodes and 2 groups of 4 GPUs: D = (2, 4), S_1 = 2. In the node
// 1/2 / 450e9; between 3/4 / (2 x 50e9) = 7.5e-12.
TEST(SwitchTest, AxisAcrossLevels) {
  CollectiveModel nodes = model(h100({4, 8}), {8, 4});
  expectNear(bandwidthSeconds(nodes, kAllGather, {0}, 1e9), 7.5e-3);
  expectNear(latencySeconds(nodes, kAllGather, {0}), 3e-6 + 16e-6);
}

// The whole SuperPod, 4 x 32 x 8: node 7/8 / 450e9 = 1.944e-12; leaf
// 31/32 / (8 x 50e9) = 2.422e-12; spine 3/4 / (256 x 50e9). The leaf is
// slowest. All_to_all: leaf (1024 - 8) / 1024^2 / 50e9, the slowest. 3 x 3 + 5
// x 8 + 2 x 8 us.
TEST(SwitchTest, ThreeLevels) {
  CollectiveModel pod = model(h100({4, 32, 8}), {4, 32, 8});
  expectNear(bandwidthSeconds(pod, kAllGather, {0, 1, 2}, 1e9),
             1e9 * 31 / 32 / 400e9);
  expectNear(bandwidthSeconds(pod, kAllToAll, {0, 1, 2}, 1e9),
             1e9 * 1016 / (1024.0 * 1024) / 50e9);
  expectNear(latencySeconds(pod, kAllGather, {0, 1, 2}), 65e-6);
}

// Between leaves only: the traffic leaves through the node's NIC as well, so it
// occupies both levels (docs/CostModel.md#5-the-time-of-a-step). 3/4 / 50e9.
TEST(SwitchTest, OuterLevelsShareTheEgress) {
  CollectiveModel pod = model(h100({4, 32, 8}), {4, 32, 8});
  CollectiveCost cost = pod.cost(kAllGather, {0}, 1e9);
  EXPECT_EQ(cost.occupies, Occupied({0, 1}));
  expectNear(cost.bandwidthSeconds, 15e-3);
  // Leaves and GPUs: NVLink too.
  EXPECT_EQ(pod.cost(kAllGather, {0, 2}, 1).occupies, Occupied({0, 1, 2}));
  // A leaf of 4 nodes has 12.8e12 / 32 = 400e9 per GPU, but a node's NICs only
  // 50e9.
  CollectiveModel sparse = model(h100({2, 4, 8}), {2, 4, 8});
  expectNear(bandwidthSeconds(sparse, kAllGather, {0}, 1e9), 1e9 / 2 / 50e9);
}

// SHARP in the node's switch: V / 450e9 rather than twice 7/8 of it; gathers
// are as before. Between nodes, without it: 2 x 3/4 / (8 x 50e9) = 3.75e-12,
// now the slowest; with it 1 / (8 x 50e9) = 2.5e-12.
TEST(SwitchTest, InNetworkReduction) {
  Machine machine = h100({4, 8});
  machine.networks[0].inNetworkReduction = true;
  CollectiveModel inNode = model(machine, {4, 8});
  expectNear(bandwidthSeconds(inNode, kAllReduce, {1}, 450e6), 1e-3);
  expectNear(bandwidthSeconds(inNode, kAllGather, {1}, 450e6), 0.875e-3);
  expectNear(bandwidthSeconds(inNode, kReduceScatter, {1}, 450e6), 0.875e-3);
  expectNear(bandwidthSeconds(inNode, kAllReduce, {0, 1}, 1e9), 3.75e-3);
  machine.networks[1].inNetworkReduction = true;
  CollectiveModel everywhere = model(machine, {4, 8});
  expectNear(bandwidthSeconds(everywhere, kAllReduce, {0, 1}, 1e9), 2.5e-3);
  expectNear(latencySeconds(everywhere, kAllReduce, {1}), 18e-6);
}

// Switches of 1.6e12 for 8 GPUs leave each 200e9; of 6.4e12 (GP-09) they do not
// limit the GPUs' 450e9.
TEST(SwitchTest, SwitchesMayLimitALevel) {
  Machine machine = h100({8});
  machine.networks[0].switchBandwidth = 1.6e12;
  expectNear(bandwidthSeconds(model(machine, {8}), kAllGather, {0}, 200e6),
             0.875e-3);
  machine.networks[0].switchBandwidth = 6.4e12;
  expectNear(bandwidthSeconds(model(machine, {8}), kAllGather, {0}, 450e6),
             0.875e-3);
}

// 50e9 per GPU is 400e9 per node of 8; 7.1e9 per GPU between pods.
TEST(SwitchTest, BandwidthPerGpu) {
  Machine machine = h100({2, 2, 8});
  machine.networks[1] = switched("rack", 50e9, 8e-6, "gpu");
  machine.networks[2] = switched("pod", 7.1e9, 8e-6, "gpu");
  CollectiveModel pods = model(machine, {2, 2, 8});
  expectNear(bandwidthSeconds(pods, kAllGather, {1}, 100e6), 1e-3);
  expectNear(bandwidthSeconds(pods, kAllGather, {0}, 14.2e6), 1e-3);
  // 100e9 per rack of 8 GPUs is 12.5e9 per GPU.
  machine.networks[2] = switched("pod", 100e9, 8e-6, "rack");
  expectNear(bandwidthSeconds(model(machine, {2, 2, 8}), kAllGather, {0}, 25e6),
             1e-3);
}

//===----------------------------------------------------------------------===//
// Full meshes
//===----------------------------------------------------------------------===//

Machine mi325x(llvm::ArrayRef<int64_t> shape) {
  Machine machine = h100(shape);
  machine.networks = {switched("gpu", 448e9, 3e-6),
                      switched("node", 400e9, 8e-6)};
  machine.networks[0].kind = Network::Kind::FullMesh;
  machine.maxShape = {8};
  return machine;
}

// All eight: W = 448e9. Four: each has 3 of its 7 links of 64e9, 192e9.
// 448e6 x 7/8 / 448e9; 192e6 x 3/4 / 192e9.
TEST(FullMeshTest, LinksToTheGroup) {
  CollectiveModel all = model(mi325x({8}), {8});
  expectNear(bandwidthSeconds(all, kAllGather, {0}, 448e6), 0.875e-3);
  expectNear(bandwidthSeconds(all, kAllToAll, {0}, 448e6),
             448e6 * 7 / 64 / 448e9);
  CollectiveModel half = model(mi325x({8}), {2, 4});
  expectNear(bandwidthSeconds(half, kAllGather, {1}, 192e6), 0.75e-3);
  expectNear(latencySeconds(half, kAllGather, {1}), 6e-6);
}

// A shape of 4 has the links of a node of 8 all the same.
TEST(FullMeshTest, SmallerShape) {
  expectNear(bandwidthSeconds(model(mi325x({4}), {4}), kAllGather, {0}, 192e6),
             0.75e-3);
}

// Two nodes: between them 1/2 / (8 x 50e9); in the node 7/8 / 448e9, slower.
TEST(FullMeshTest, BelowASwitch) {
  CollectiveModel nodes = model(mi325x({2, 8}), {2, 8});
  expectNear(bandwidthSeconds(nodes, kAllGather, {0, 1}, 1e9),
             1e9 * 7 / 8 / 448e9);
  expectNear(bandwidthSeconds(nodes, kAllGather, {0}, 1e9), 1e9 / 2 / 50e9);
}

//===----------------------------------------------------------------------===//
// Tori joined by switches
//===----------------------------------------------------------------------===//

// Two v5p slices of 4x4x4 over DCN, 6.25e9 per chip. DCN alone: V 1/2 / 6.25e9
// = 0.8 ms for 10e6. Both: torus V / 5.4e11 = 1.85e-12; DCN V 1/2 / (64 x
// 6.25e9) = 1.25e-12: the torus.
TEST(HierarchyTest, TorusAndDcn) {
  CollectiveModel slices = model(tpuV5p({2, 4, 4, 4}), {2, 64});
  CollectiveCost dcn = slices.cost(kAllGather, {0}, 10e6);
  expectNear(dcn.bandwidthSeconds, 0.8e-3);
  expectNear(dcn.latencySeconds, 10e-6);
  EXPECT_EQ(dcn.occupies, Occupied({0}));
  CollectiveCost both = slices.cost(kAllGather, {0, 1}, 540e6);
  expectNear(both.bandwidthSeconds, 1e-3);
  expectNear(both.latencySeconds, 6e-6 + 10e-6);
  EXPECT_EQ(both.occupies, Occupied({0, 1, 2, 3}));
}

// One axis of the torus with DCN: torus V / 1.8e11 = 5.6e-12, DCN V 1/2 / (4 x
// 6.25e9) = 2e-11: DCN. All_to_all of N = 8: torus V / 32 x 4 / 1.8e11
// = 6.9e-13; DCN V (8 - 4) / 64 / 6.25e9 = 1e-11.
TEST(HierarchyTest, DcnIsSlower) {
  CollectiveModel slices = model(tpuV5p({2, 4, 4, 4}), {2, 4, 16});
  expectNear(bandwidthSeconds(slices, kAllGather, {0, 1}, 1e9), 20e-3);
  expectNear(bandwidthSeconds(slices, kAllReduce, {0, 1}, 1e9), 40e-3);
  expectNear(bandwidthSeconds(slices, kAllToAll, {0, 1}, 1e9), 10e-3);
}

// A torus of nodes: 2 GPUs below each member share its links of 90e9. Along the
// ring alone: 4 members, V / (2 x 45e9). With the GPUs: S = 2, V / (2 x 90e9),
// slower than 1/2 / 450e9.
TEST(HierarchyTest, TorusAboveASwitch) {
  Machine machine = h100({4, 2});
  machine.maxShape.clear();
  machine.networks = {switched("gpu", 450e9, 3e-6),
                      torus({"x"}, 90e9, Network::WrapRule::All)};
  CollectiveModel nodes = model(machine, {4, 2});
  expectNear(bandwidthSeconds(nodes, kAllGather, {0}, 90e6), 1e-3);
  expectNear(bandwidthSeconds(nodes, kAllGather, {0, 1}, 180e6), 1e-3);
  expectNear(latencySeconds(nodes, kAllGather, {0, 1}), 3e-6 + 2e-6);
}

} // namespace
