//===- CalibratedTest.cpp - Times that machines reach ---------------------===//

#include "Machines.h"
#include "shardc/Cost/Operation.h"

using namespace shardc;

namespace {

constexpr CollectiveKind kAllGather = CollectiveKind::AllGather;
constexpr CollectiveKind kAllReduce = CollectiveKind::AllReduce;
constexpr CollectiveKind kAllToAll = CollectiveKind::AllToAll;

MaybeFigure figure(double value) { return CalibratedFigure{value, "h100"}; }

/// An H100 cluster: nodes reach half of their links, leaves a quarter.
Machine calibrated(llvm::ArrayRef<int64_t> shape) {
  Machine machine = h100(shape);
  machine.calibration.matmul = figure(0.5);
  machine.calibration.hbm = figure(0.8);
  machine.calibration.overhead = figure(5e-6);
  NetworkCalibration &node = machine.networks[0].calibration;
  node.base = figure(4e-6);
  node.latency = figure(1e-6);
  node.bandwidth = figure(0.5);
  node.ramp = figure(6e-9);
  NetworkCalibration &leaf = machine.networks[1].calibration;
  leaf.base = figure(10e-6);
  leaf.bandwidth = figure(0.25);
  machine.isCalibrated = true;
  return machine;
}

// V = 4 MB over 4 GPUs: w = 3 MB. 4 us + 2 doublings of 1 us + 3e6 / 225e9 B/s
// + 6 ns * sqrt(3e6).
TEST(CalibratedTest, TermsOfOneNodeAddUp) {
  CollectiveModel node = model(calibrated({4}), {4});
  CollectiveCost cost = node.cost(kAllGather, {0}, 4e6);
  ASSERT_TRUE(cost.calibrated);
  expectNear(cost.calibrated->fixedSeconds, 6e-6);
  expectNear(cost.calibrated->bandwidthSeconds, 3e6 / 225e9);
  expectNear(cost.calibrated->rampSeconds, 6e-9 * std::sqrt(3e6));
  expectNear(cost.seconds(), 6e-6 + 3e6 / 225e9 + 6e-9 * std::sqrt(3e6));
  // The roofline is as before: 3e6 / 450e9, at least 2 * 3 us.
  expectNear(cost.rooflineSeconds(), 3e6 / 450e9);
}

// Twice the bytes are sent, but no more steps are made.
TEST(CalibratedTest, AllReduce) {
  CollectiveModel node = model(calibrated({4}), {4});
  CollectiveCost cost = node.cost(kAllReduce, {0}, 4e6);
  expectNear(cost.calibrated->fixedSeconds, 6e-6);
  expectNear(cost.calibrated->bandwidthSeconds, 6e6 / 225e9);
  expectNear(cost.calibrated->rampSeconds, 6e-9 * std::sqrt(6e6));
}

// From 8 members on the switches add: V / 225e9, not 2 V 7/8 / 225e9.
TEST(CalibratedTest, ReductionFromALeastGroup) {
  Machine machine = calibrated({8});
  machine.networks[0].calibration.reductionMin = figure(8);
  CollectiveModel whole = model(machine, {8}), halves = model(machine, {2, 4});
  expectNear(whole.cost(kAllReduce, {0}, 9e6).calibrated->bandwidthSeconds,
             9e6 / 225e9);
  expectNear(halves.cost(kAllReduce, {1}, 9e6).calibrated->bandwidthSeconds,
             13.5e6 / 225e9);
  expectNear(whole.cost(kAllGather, {0}, 8e6).calibrated->bandwidthSeconds,
             7e6 / 225e9);
}

// 2 nodes of 8: the larger base, of the leaf; one doubling at its latency of 8
// us, which nobody measured, and 3 at 1 us. In the node V * 7/8 / (1 * 225e9),
// between nodes V * 1/2 / (8 * 12.5e9): the latter is slower. Of the ramps the
// node's is the larger.
TEST(CalibratedTest, LevelsShareBaseAndRamp) {
  CollectiveModel nodes = model(calibrated({1, 2, 8}), {2, 8});
  CollectiveCost cost = nodes.cost(kAllGather, {0, 1}, 16e6);
  expectNear(cost.calibrated->fixedSeconds, 10e-6 + 8e-6 + 3e-6);
  expectNear(cost.calibrated->bandwidthSeconds, 16e6 * 0.5 / 100e9);
  expectNear(cost.calibrated->rampSeconds, 6e-9 * std::sqrt(15e6));
}

// One hop of a torus of 4: nobody measured one, so it takes the network's 1 us.
TEST(CalibratedTest, PermuteAndItsScaling) {
  Machine machine = tpuV5e({4, 1});
  machine.networks[0].calibration.base = figure(2e-6);
  machine.networks[0].calibration.bandwidth = figure(0.9);
  machine.networks[0].calibration.ramp = figure(1e-9);
  machine.isCalibrated = true;
  CollectiveModel line = model(machine, {4});
  auto next = [](llvm::ArrayRef<int64_t> to,
                 llvm::MutableArrayRef<int64_t> from) { from[0] = to[0] ^ 1; };
  CollectiveCost cost = line.permuteCost({0}, 9e6, next);
  expectNear(cost.calibrated->fixedSeconds, 3e-6);
  expectNear(cost.calibrated->bandwidthSeconds, 9e6 / (0.9 * 45e9));
  expectNear(cost.calibrated->rampSeconds, 3e-6);
  CollectiveCost unit = line.permuteCost({0}, 1, next);
  expectNear(unit.timesBytes(9e6).seconds(), cost.seconds());
}

/// Bindings of a mesh of 4 x 4 to a torus of 4 x 4 under which no term of all
/// collectives is the least at once.
std::vector<MeshBinding> bindings() {
  MeshBinding rows, columns, mixed;
  rows.parts = {{{0, 4, 1}}, {{1, 4, 1}}};
  columns.parts = {{{1, 4, 1}}, {{0, 4, 1}}};
  mixed.parts = {{{0, 2, 2}, {1, 2, 2}}, {{0, 2, 1}, {1, 2, 1}}};
  return {rows, columns, mixed};
}

TEST(CalibratedTest, OptimisticIsABound) {
  Machine machine = tpuV5e({4, 4});
  machine.networks[0].calibration.base = figure(2e-6);
  machine.networks[0].calibration.latency = figure(0.5e-6);
  machine.networks[0].calibration.bandwidth = figure(0.7);
  machine.networks[0].calibration.ramp = figure(3e-9);
  machine.isCalibrated = true;
  Mesh mesh;
  mesh.axes = {{"X", 4}, {"Y", 4}};
  CollectiveModel bound =
      CollectiveModel::optimistic(machine, mesh, bindings());
  for (const MeshBinding &binding : bindings()) {
    CollectiveModel exact(machine, mesh, binding);
    for (CollectiveKind kind : {kAllGather, kAllReduce, kAllToAll})
      for (llvm::SmallVector<AxisIndex, 4> axes :
           {llvm::SmallVector<AxisIndex, 4>{0}, {1}, {0, 1}})
        for (double bytes : {1.0, 1e4, 1e6, 1e9})
          EXPECT_LE(bound.cost(kind, axes, bytes).seconds(),
                    exact.cost(kind, axes, bytes).seconds());
    auto turn = [](llvm::ArrayRef<int64_t> to,
                   llvm::MutableArrayRef<int64_t> from) {
      from[0] = (to[0] + 1) % 4;
      from[1] = to[1];
    };
    for (double bytes : {1.0, 1e4, 1e6, 1e9}) {
      EXPECT_LE(bound.permuteCost({0}, bytes, turn).seconds(),
                exact.permuteCost({0}, bytes, turn).seconds());
      for (int64_t blocks : {1, 4, 16}) {
        RoutedBlocks routed{0, blocks, /*share=*/0.25};
        double slots = exact.slotsCost({0, 1}, bytes, {0, 1}, routed).seconds();
        EXPECT_LE(bound.slotsCost({0, 1}, bytes, {0, 1}, routed).seconds(),
                  slots);
        EXPECT_LE(slots, exact.cost(kAllToAll, {0, 1}, bytes).seconds());
      }
    }
  }
}

TEST(CalibratedTest, TimesGrowWithBytesAndFallWithBandwidth) {
  Machine faster = calibrated({1, 2, 8});
  for (Network &network : faster.networks)
    network.bandwidth *= 2;
  CollectiveModel slow = model(calibrated({1, 2, 8}), {2, 8}),
                  fast = model(faster, {2, 8});
  for (CollectiveKind kind : {kAllGather, kAllReduce, kAllToAll}) {
    double before = 0;
    for (double bytes = 1; bytes < 1e12; bytes *= 3) {
      double seconds = slow.cost(kind, {0, 1}, bytes).seconds();
      EXPECT_GT(seconds, before);
      EXPECT_LE(fast.cost(kind, {0, 1}, bytes).seconds(), seconds);
      before = seconds;
    }
  }
}

TEST(CalibratedTest, GroupsOfOneAreFree) {
  CollectiveModel nodes = model(calibrated({1, 1, 8}), {1, 8});
  EXPECT_EQ(nodes.cost(kAllReduce, {0}, 1e9).seconds(), 0);
}

/// A product and a read of 3.35e9 B in one group.
GroupCost productOn(const Machine &machine) {
  GroupCost group;
  OpWork work;
  work.matrixFlops = 989e9;
  work.computeType = "bf16";
  addWork(machine, work, group);
  addTraffic(machine, 3.35e9, group);
  return group;
}

/// Checks the time of the read alone, and that a group without work takes none.
void expectReadAndNothing(const Machine &machine, double seconds) {
  GroupCost read;
  addTraffic(machine, 3.35e9, read);
  calibrate(machine, /*kernels=*/1, read);
  expectNear(read.seconds(), seconds);
  GroupCost nothing;
  calibrate(machine, /*kernels=*/1, nothing);
  EXPECT_EQ(nothing.seconds(), 0);
}

// 989e9 FLOPs are 1 ms at peak, 2 ms at half of it; 3.35e9 B are 1 ms, 1.25 ms
// at 0.8 of it; a kernel takes 5 us beside them, three take 15 us.
TEST(CalibratedTest, Groups) {
  Machine machine = calibrated({});
  GroupCost group = productOn(machine);
  calibrate(machine, /*kernels=*/1, group);
  expectNear(group.seconds(), 2.005e-3);
  EXPECT_EQ(group.bound(), OpBound::Compute);
  expectNear(group.matrixSeconds, 1e-3);
  calibrate(machine, /*kernels=*/3, group);
  expectNear(group.seconds(), 2.015e-3);
  expectReadAndNothing(machine, 1.255e-3);
}

// In a step kernels keep half of their FLOPs, so that the 2 ms become 4 ms, and
// all of HBM: 1.25 ms. A framework runs 2.5 of them for a group, 12.5 us.
TEST(CalibratedTest, WholeSteps) {
  Machine machine = calibrated({});
  machine.calibration.step = figure(0.5);
  machine.calibration.kernels = figure(2.5);
  GroupCost group = productOn(machine);
  calibrate(machine, /*kernels=*/1, group);
  expectNear(group.seconds(), 4.0125e-3);
  calibrate(machine, /*kernels=*/3, group);
  expectNear(group.seconds(), 4.0375e-3);
  expectReadAndNothing(machine, 1.2625e-3);
}

} // namespace
