//===- OperationTest.cpp - Rooflines of fusion groups ---------------------===//

#include "shardc/Cost/Operation.h"
#include "Machines.h"

using namespace shardc;

namespace {

OpWork matmul(double flops, llvm::StringRef type) {
  OpWork work;
  work.matrixFlops = flops;
  work.computeType = type.str();
  return work;
}

// RL-01: 1e12 bf16 FLOPs on an H100 of 9.89e14 FLOP/s take 1.01 ms.
TEST(GroupCostTest, MatrixTime) {
  GroupCost group;
  addWork(h100({}), matmul(1e12, "bf16"), group);
  expectNear(group.matrixSeconds, 0.0010111223458038423);
  EXPECT_EQ(group.bound(), OpBound::Compute);
}

// int8 runs at 394e12: 394e9 / 394e12 = 1 ms; then bf16 at 197e12: 2 ms more.
TEST(GroupCostTest, EachOperationAtItsOwnPeak) {
  GroupCost group;
  addWork(tpuV5e({}), matmul(394e9, "int8"), group);
  addWork(tpuV5e({}), matmul(394e9, "bf16"), group);
  expectNear(group.matrixSeconds, 3e-3);
  EXPECT_EQ(group.matrixFlops, 788e9);
}

// HW-22: 16e9 bytes over 8.1e11 B/s; here 8.2e9 over 8.2e11, 10 ms.
TEST(GroupCostTest, HbmTime) {
  GroupCost group;
  addTraffic(tpuV5e({}), 8e9, group);
  addTraffic(tpuV5e({}), 0.2e9, group);
  expectNear(group.hbmSeconds, 10e-3);
  EXPECT_EQ(group.hbmBytes, 8.2e9);
  EXPECT_EQ(group.bound(), OpBound::Hbm);
}

// The device computes: 12e6 B in and out at 16e9 B/s are 0.75 ms each; HBM
// moves 30e6 B.
TEST(GroupCostTest, HostTensorsStreamToTheDevice) {
  Machine machine = tpuV5e({});
  machine.hostBandwidth = 16e9;
  GroupTraffic traffic;
  traffic.deviceReads = 4e6;
  traffic.deviceWrites = 2e6;
  traffic.hostReads = traffic.hostWrites = 12e6;
  GroupCost group;
  addHostTraffic(machine, traffic, group);
  EXPECT_EQ(group.host->outBytes, 12e6);
  EXPECT_EQ(group.host->inBytes, 12e6);
  EXPECT_EQ(group.hbmBytes, 30e6);
  expectNear(group.seconds(), 0.75e-3);
  EXPECT_EQ(group.bound(), OpBound::Host);
}

// The host computes: 4e6 B out, 2e6 B in, and 30e6 B of its memory at 25e9 B/s,
// 1.2 ms.
TEST(GroupCostTest, HostUpdates) {
  Machine machine = tpuV5e({});
  machine.hostBandwidth = 16e9;
  machine.hostMemoryBandwidth = 25e9;
  GroupTraffic traffic;
  traffic.deviceReads = 4e6;
  traffic.deviceWrites = 2e6;
  traffic.hostReads = traffic.hostWrites = 12e6;
  GroupCost group;
  addHostTraffic(machine, traffic, group);
  EXPECT_EQ(group.host->outBytes, 4e6);
  EXPECT_EQ(group.host->inBytes, 2e6);
  EXPECT_EQ(group.host->memoryBytes, 30e6);
  EXPECT_EQ(group.hbmBytes, 6e6);
  expectNear(group.seconds(), 1.2e-3);
}

// v5p: 1.4e9 vector FLOPs at 1.4e13 are 100 us; the v5e states none: free.
TEST(GroupCostTest, VectorUnits) {
  OpWork work;
  work.vectorFlops = 1.4e9;
  GroupCost group;
  addWork(tpuV5p({}), work, group);
  expectNear(group.vectorSeconds, 100e-6);
  GroupCost free;
  addWork(tpuV5e({}), work, free);
  EXPECT_EQ(free.vectorSeconds, 0);
  EXPECT_EQ(free.vectorFlops, 1.4e9);
}

// Matrix 1 ms, vector 2 ms, HBM 3 ms: they overlap, the largest counts.
TEST(GroupCostTest, TakesTheLargest) {
  OpWork work = matmul(459e9, "bf16");
  work.vectorFlops = 28e9;
  GroupCost group;
  addWork(tpuV5p({}), work, group);
  expectNear(group.computeSeconds(), 2e-3);
  EXPECT_EQ(group.bound(), OpBound::Compute);
  addTraffic(tpuV5p({}), 8.4e9, group);
  expectNear(group.seconds(), 3e-3);
  EXPECT_EQ(group.bound(), OpBound::Hbm);
}

// RL-03, RL-06: on a v5e a bf16 matmul of B x D x F with B << D, F is bound by
// compute from 197e12 / 8.2e11 = 240.2 tokens on. FLOPs 2BDF, bytes 2DF.
TEST(GroupCostTest, CriticalBatch) {
  for (auto [batch, bound] :
       {std::pair(240.0, OpBound::Hbm), std::pair(241.0, OpBound::Compute)}) {
    GroupCost group;
    addWork(tpuV5e({}), matmul(2 * batch * 4096 * 4096, "bf16"), group);
    addTraffic(tpuV5e({}), 2.0 * 4096 * 4096, group);
    EXPECT_EQ(group.bound(), bound) << batch;
  }
}

TEST(ComputeTypeTest, WidestThenSlowest) {
  Machine machine = tpuV5e({});
  EXPECT_EQ(computeType(machine, {"bf16", "bf16"}), "bf16");
  // int8 weights, bf16 activations.
  EXPECT_EQ(computeType(machine, {"int8", "bf16"}), "bf16");
  EXPECT_EQ(computeType(machine, {"bf16", "int8"}), "bf16");
  EXPECT_EQ(computeType(machine, {"int8", "int8"}), "int8");
  EXPECT_EQ(computeType(machine, {"int8", "f32", "bf16"}), "f32");
  EXPECT_EQ(computeType(machine, {}), "");
}

TEST(ComputeTypeTest, EqualWidths) {
  Machine machine = tpuV5e({});
  machine.flops["f8e4m3"] = 300e12; // slower than int8's 394e12
  EXPECT_EQ(computeType(machine, {"int8", "f8e4m3"}), "f8e4m3");
  EXPECT_EQ(computeType(machine, {"f8e4m3", "int8"}), "f8e4m3");
  // int32 has no peak, f32 runs at bf16's.
  EXPECT_EQ(computeType(machine, {"int32", "f32"}), "f32");
  // f16 and bf16 share one peak: the first.
  EXPECT_EQ(computeType(machine, {"f16", "bf16"}), "f16");
}

TEST(ComputeTypeTest, MissingPeakNamesTheField) {
  EXPECT_EQ(missingPeak(tpuV5e({}), "int32"), "flops.int32");
  EXPECT_EQ(missingPeak(tpuV5e({}), "f8e4m3"), std::nullopt);
}

TEST(AttentionPairsTest, All) {
  EXPECT_EQ(attentionPairs(128, 1024, false, std::nullopt), 128 * 1024);
}

// Prefill: T = S, half. Decode: one query sees all but half a key:
// 1 x 1024 x (1 - 1/2048) = 1023.5. T = 512 of S = 1024: 1 - 512/2048 = 3/4.
TEST(AttentionPairsTest, Causal) {
  EXPECT_EQ(attentionPairs(1024, 1024, true, std::nullopt), 1024 * 512);
  EXPECT_EQ(attentionPairs(1, 1024, true, std::nullopt), 1023.5);
  EXPECT_EQ(attentionPairs(512, 1024, true, std::nullopt), 512 * 768);
  // More queries than keys: never less than half.
  EXPECT_EQ(attentionPairs(4096, 1024, true, std::nullopt), 4096 * 512);
}

// A window leaves each query 128 keys but the first 128, half as many: 1024 x
// 128 - 128 x 128 / 2; one of 4096 hides none. A window implies the mask.
TEST(AttentionPairsTest, Window) {
  EXPECT_EQ(attentionPairs(1024, 1024, true, 128), 1024 * 128 - 8192);
  EXPECT_EQ(attentionPairs(1024, 1024, false, 4096), 1024 * 512);
  EXPECT_EQ(attentionPairs(1, 8192, true, 128), 128);
}

// T = S = 64 on c devices: the last one's 64 / c queries see 64 - 64 / 2c keys,
// 2 - 1/c times the mean of 64 x 32 / c.
TEST(BusiestPairsTest, CausalQueries) {
  for (double parts : {1, 2, 4, 8, 64})
    EXPECT_EQ(busiestAttentionPairs({64, 64 / parts, 64, 64}, true, {}),
              (2 - 1 / parts) * 64 * 32 / parts)
        << parts;
  EXPECT_EQ(busiestAttentionPairs({64, 16, 64, 64}, false, {}), 16 * 64);
}

// The first keys are seen most: by 32 queries all 32 of them, and below the
// diagonal half of 32 x 32.
TEST(BusiestPairsTest, CausalKeys) {
  EXPECT_EQ(busiestAttentionPairs({64, 64, 64, 32}, true, {}), 32 * 32 + 512);
  // The last half of the queries sees them all.
  EXPECT_EQ(busiestAttentionPairs({64, 32, 64, 32}, true, {}), 32 * 32);
}

// 10 positions on 4 devices are 3, 3, 3 and 1: the third has 3 queries, which
// see 6 to 9 keys, 7.5 on average; the last one's sees 9.5.
TEST(BusiestPairsTest, Padding) {
  EXPECT_EQ(busiestAttentionPairs({10, 3, 10, 10}, true, {}), 22.5);
}

// 6 positions over 2 x 2 devices are 3 and 3, and these 2 and 1: the third
// device has two queries, which see 3.5 and 4.5 keys; three of 2 in a row would
// end in 4.5 and 5.5.
TEST(BusiestPairsTest, PaddingAlongTwoAxes) {
  EXPECT_EQ(busiestAttentionPairs({6, 2, 6, 6, {2, 2}}, true, {}), 8);
  EXPECT_EQ(busiestAttentionPairs({6, 2, 6, 6, {4}}, true, {}), 10);
  // A window of 4, keys over an axis of 2: of the first three keys the third
  // device's query at 3 sees all, that at 4 all but half of one.
  EXPECT_EQ(busiestAttentionPairs({6, 2, 6, 3, {2, 2}, {2}}, true, 4), 5.5);
}

// A window of 8 keys: all devices but the first have 16 queries of 8 keys. Keys
// on 4 devices: those of a device that has all 8 of the last query.
TEST(BusiestPairsTest, Window) {
  EXPECT_EQ(busiestAttentionPairs({64, 16, 64, 64}, true, 8), 16 * 8);
  EXPECT_EQ(busiestAttentionPairs({1, 1, 64, 16}, true, 8), 8);
  // 16 consecutive queries and their own keys: the first 8 see 4 on average.
  EXPECT_EQ(busiestAttentionPairs({64, 16, 64, 16}, true, 8), 8 * 4 + 8 * 8);
}

} // namespace
