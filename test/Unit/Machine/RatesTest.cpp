//===- RatesTest.cpp - What a machine's networks give one chip ------------===//

#include "shardc/Machine/Rates.h"
#include "Descriptions.h"

using namespace shardc;

namespace {

using Rates = llvm::SmallVector<double, 4>;

// A link of the torus is the chip's own; DCN is quoted per chip.
TEST(RatesTest, Torus) {
  EXPECT_EQ(bandwidthsPerChip(shaped(tpuDescription(), {2, 16, 16})),
            Rates({45e9, 3.125e9}));
  EXPECT_EQ(bandwidthsPerChip(shaped(tpuDescription(), {16, 16})),
            Rates({45e9}));
  EXPECT_TRUE(bandwidthsPerChip(shaped(tpuDescription(), {})).empty());
}

// A node's 400e9 over 8 GPUs, a leaf's 12.8e12 over 256.
TEST(RatesTest, SwitchedLevels) {
  EXPECT_EQ(bandwidthsPerChip(shaped(gpuDescription(), {4, 32, 8})),
            Rates({450e9, 50e9, 50e9}));
  // Half a leaf: 12.8e12 / 128 = 100e9 is more than the nodes' NICs carry.
  EXPECT_EQ(bandwidthsPerChip(shaped(gpuDescription(), {4, 16, 8})),
            Rates({450e9, 50e9, 50e9}));
  // Switches of 1.6e12 for 4 nodes of 8 leave each GPU 50e9, of 0.8e12 25e9;
  // what lies above gets no more.
  HardwareDescription gpu = gpuDescription();
  gpu.networks[1].fields.push_back(
      quantity("switch.bandwidth", 0.8e12, Quantity::BytesPerSecond));
  EXPECT_EQ(bandwidthsPerChip(shaped(gpu, {2, 4, 8})),
            Rates({450e9, 25e9, 25e9}));
}

// 197e12 / 820e9 = 240.2 (RL-03), / (2 x 45e9) = 2189, / 3.125e9 = 63040.
TEST(RatesTest, IntensitiesOfATpu) {
  Machine tpu = shaped(tpuDescription(), {2, 16, 16});
  EXPECT_NEAR(*hbmIntensity(tpu, "bf16"), 240.24, 0.01);
  EXPECT_NEAR(*networkIntensity(tpu, "bf16", 0), 2188.89, 0.01);
  EXPECT_NEAR(*networkIntensity(tpu, "bf16", 1), 63040, 1e-6);
  // f32 runs at bf16's peak; int8 has none.
  EXPECT_NEAR(*hbmIntensity(tpu, "f32"), 240.24, 0.01);
  EXPECT_EQ(hbmIntensity(tpu, "int8"), std::nullopt);
  EXPECT_EQ(networkIntensity(tpu, "int8", 0), std::nullopt);
  // No slices in the shape.
  EXPECT_EQ(networkIntensity(shaped(tpuDescription(), {16, 16}), "bf16", 1),
            std::nullopt);
}

// 989e12 / 3.35e12 = 295.2 (RL-12), / 450e9 = 2198 (GP-29), / 50e9 = 19780,
// which is 8 GPUs x 2472.5 (GP-29).
TEST(RatesTest, IntensitiesOfAGpu) {
  Machine gpu = shaped(gpuDescription(), {4, 32, 8});
  EXPECT_NEAR(*hbmIntensity(gpu, "bf16"), 295.22, 0.01);
  EXPECT_NEAR(*networkIntensity(gpu, "bf16", 0), 2197.78, 0.01);
  EXPECT_NEAR(*networkIntensity(gpu, "bf16", 1), 19780, 1e-6);
}

TEST(RatesTest, LargestExtent) {
  Machine tpu = shaped(tpuDescription(), {2, 4, 8});
  EXPECT_EQ(largestExtent(tpu, 0), 2); // the catalogue says nothing of slices
  EXPECT_EQ(largestExtent(tpu, 1), 16);
  EXPECT_EQ(largestExtent(tpu, 2), 16);
}

} // namespace
