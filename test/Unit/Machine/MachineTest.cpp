//===- MachineTest.cpp - Peaks, names, levels and wrap rules --------------===//

#include "Descriptions.h"

using namespace shardc;

namespace {

Machine withPeaks(std::map<std::string, double> flops) {
  Machine machine;
  machine.flops = std::move(flops);
  return machine;
}

// docs/CostModel.md#2-one-operation-on-one-device: f16 is bf16's; f8 and int8
// share theirs; int4 and f4 fall back to int8, then bf16; f8e8m0, f32 and tf32
// run at bf16's.
TEST(PeakTest, FallsBackToStatedPeaks) {
  Machine machine = withPeaks({{"bf16", 2}, {"int8", 4}});
  EXPECT_EQ(machine.peak("bf16"), 2);
  EXPECT_EQ(machine.peak("f16"), 2);
  EXPECT_EQ(machine.peak("f32"), 2);
  EXPECT_EQ(machine.peak("tf32"), 2);
  EXPECT_EQ(machine.peak("int8"), 4);
  EXPECT_EQ(machine.peak("f8e4m3"), 4);
  EXPECT_EQ(machine.peak("f8e5m2"), 4);
  EXPECT_EQ(machine.peak("int4"), 4);
  EXPECT_EQ(machine.peak("f4e2m1"), 4);
  EXPECT_EQ(machine.peak("f8e8m0"), 2);
  EXPECT_EQ(machine.peak("f64"), std::nullopt);
  EXPECT_EQ(machine.peak("int32"), std::nullopt);
}

TEST(PeakTest, BytePeaksAreShared) {
  Machine machine = withPeaks({{"bf16", 2}, {"f8e4m3", 4}});
  EXPECT_EQ(machine.peak("int8"), 4);
  EXPECT_EQ(machine.peak("f8e5m2"), 4);
  EXPECT_EQ(machine.peak("int4"), 4);
}

TEST(PeakTest, NibblesFallBackToHalfAndBytesDoNot) {
  Machine machine = withPeaks({{"bf16", 2}});
  EXPECT_EQ(machine.peak("int4"), 2);
  EXPECT_EQ(machine.peak("f4e2m1"), 2);
  EXPECT_EQ(machine.peak("int8"), std::nullopt);
  EXPECT_EQ(machine.peak("f8e4m3"), std::nullopt);
}

TEST(PeakTest, StatedPeaksWin) {
  Machine machine =
      withPeaks({{"bf16", 2}, {"f32", 1}, {"int8", 4}, {"f4e2m1", 8}});
  EXPECT_EQ(machine.peak("f32"), 1);
  EXPECT_EQ(machine.peak("tf32"), 2);
  EXPECT_EQ(machine.peak("f4e2m1"), 8);
  EXPECT_EQ(machine.peak("int4"), 4);
}

// docs/CostModel.md#1-conventions; the nibble types are half a byte.
TEST(ElementTypeTest, Widths) {
  EXPECT_EQ(elementTypeBits("f64"), 64u);
  EXPECT_EQ(elementTypeBits("tf32"), 32u);
  EXPECT_EQ(elementTypeBits("int32"), 32u);
  EXPECT_EQ(elementTypeBits("bf16"), 16u);
  EXPECT_EQ(elementTypeBits("int16"), 16u);
  EXPECT_EQ(elementTypeBits("f8e5m2"), 8u);
  EXPECT_EQ(elementTypeBits("f8e8m0"), 8u);
  EXPECT_EQ(elementTypeBits("bool"), 8u);
  EXPECT_EQ(elementTypeBits("f4e2m1"), 4u);
  EXPECT_EQ(elementTypeBits("bf17"), 0u);
}

TEST(NearestNameTest, FindsTheLeastEdits) {
  EXPECT_EQ(nearestName("tpu_v5x", {"h100", "tpu_v5e", "tpu_v5p"}), "tpu_v5e");
  EXPECT_EQ(nearestName("h10", {"tpu_v5e", "h100"}, 1), "h100");
  EXPECT_EQ(nearestName("completely", {"h100"}, 3), "");
  EXPECT_EQ(nearestName("x", {}), "");
}

TEST(PhysicalAxesTest, AreOutermostFirst) {
  Machine machine = shaped(tpuDescription(), {2, 8, 16});
  llvm::SmallVector<PhysicalAxis, 4> axes = physicalAxes(machine);
  ASSERT_EQ(axes.size(), 3u);
  EXPECT_EQ(axes[0].name, "slice");
  EXPECT_EQ(axes[0].size, 2);
  EXPECT_EQ(axes[0].network, 1u);
  EXPECT_EQ(axes[1].name, "x");
  EXPECT_EQ(axes[1].size, 8);
  EXPECT_EQ(axes[2].name, "y");
  EXPECT_EQ(axes[2].size, 16);
  EXPECT_EQ(axes[2].network, 0u);
  EXPECT_EQ(machine.numChips(), 256);
}

TEST(PhysicalAxesTest, OnlyTheLevelsOfTheShape) {
  EXPECT_EQ(physicalAxes(shaped(gpuDescription(), {4, 8})).size(), 2u);
  Machine chip = shaped(gpuDescription(), {});
  EXPECT_TRUE(physicalAxes(chip).empty());
  EXPECT_EQ(chip.numChips(), 1);
}

// HW-07: no axis of a v5e 4x4 slice wraps. HW-08: of 8x16, the axis of 16.
TEST(WrapTest, ExactlySixteen) {
  Machine small = shaped(tpuDescription(), {4, 4});
  EXPECT_FALSE(wraps(small, 0));
  EXPECT_FALSE(wraps(small, 1));
  Machine mixed = shaped(tpuDescription(), {8, 16});
  EXPECT_FALSE(wraps(mixed, 0));
  EXPECT_TRUE(wraps(mixed, 1));
}

// "every axis if all of the slice's dimensions are multiples of 4, none
// otherwise": 4x8 wraps, 4x2 does not, not even its axis of 4.
TEST(WrapTest, MultipleOfFour) {
  HardwareDescription tpu = tpuDescription();
  tpu.networks[0].fields[2] = word("wrap", "multiple", {4});
  Machine cubes = shaped(tpu, {4, 8});
  EXPECT_TRUE(wraps(cubes, 0));
  EXPECT_TRUE(wraps(cubes, 1));
  Machine part = shaped(tpu, {4, 2});
  EXPECT_FALSE(wraps(part, 0));
  EXPECT_FALSE(wraps(part, 1));
  // Only the slice's own dimensions count, not the number of slices.
  Machine slices = shaped(tpu, {3, 4, 8});
  EXPECT_FALSE(wraps(slices, 0));
  EXPECT_TRUE(wraps(slices, 1));
}

TEST(WrapTest, AllAndNone) {
  HardwareDescription tpu = tpuDescription();
  tpu.networks[0].fields[2] = word("wrap", "all");
  EXPECT_TRUE(wraps(shaped(tpu, {3, 5}), 0));
  EXPECT_FALSE(wraps(shaped(tpu, {1, 5}), 0));
  tpu.networks[0].fields[2] = word("wrap", "none");
  EXPECT_FALSE(wraps(shaped(tpu, {16, 16}), 0));
}

TEST(WrapTest, SwitchesDoNot) {
  EXPECT_FALSE(wraps(shaped(gpuDescription(), {16, 8}), 0));
}

} // namespace
