//===- ShapeTest.cpp - Shapes of machines ---------------------------------===//

#include "Descriptions.h"

using namespace shardc;

namespace {

MachineError shapeError(const HardwareDescription &description,
                        llvm::ArrayRef<int64_t> shape) {
  return error(withShape(value(buildMachine(description, nullptr)), shape, 42));
}

TEST(ShapeTest, TakesWholeNetworks) {
  EXPECT_EQ(shaped(tpuDescription(), {4, 4}).numChips(), 16);
  EXPECT_EQ(shaped(tpuDescription(), {3, 4, 4}).numChips(), 48);
  EXPECT_EQ(shaped(gpuDescription(), {8}).numChips(), 8);
  EXPECT_EQ(shaped(gpuDescription(), {4, 32, 8}).numChips(), 1024);
}

TEST(ShapeTest, WrongNumberOfExtents) {
  MachineError one = shapeError(tpuDescription(), {16});
  EXPECT_EQ(one.where, 42u);
  EXPECT_EQ(one.message,
            "'tpu' takes [x, y] or [slice, x, y] as its shape, found 1 number");
  EXPECT_EQ(shapeError(gpuDescription(), {2, 2, 2, 2}).message,
            "'h100' takes [gpu] or [node, gpu] or [leaf, node, gpu] as its "
            "shape, found 4 numbers");
}

TEST(ShapeTest, NoNetworkNoShape) {
  HardwareDescription chip = tpuDescription();
  chip.networks.clear();
  chip.fields.pop_back();
  EXPECT_EQ(shapeError(chip, {4}).message,
            "'tpu' has no network, so it takes no shape");
}

TEST(ShapeTest, ExtentsArePositive) {
  EXPECT_EQ(shapeError(tpuDescription(), {4, 0}).message,
            "the shape of 'tpu' has an extent of 0, below 1");
  EXPECT_EQ(shapeError(tpuDescription(), {-4, 4}).message,
            "the shape of 'tpu' has an extent of -4, below 1");
}

// 2^20 chips at most; 2^40 x 2^40 overflows 64 bits.
TEST(ShapeTest, ChipsAreCountable) {
  HardwareDescription tpu = tpuDescription();
  tpu.fields.pop_back();
  EXPECT_EQ(shaped(tpu, {1 << 10, 1 << 10}).numChips(), 1 << 20);
  for (int64_t extent : {(int64_t(1) << 10) + 1, int64_t(1) << 40})
    EXPECT_NE(shapeError(tpu, {extent, extent})
                  .message.find("has more than 1048576 chips"),
              std::string::npos);
}

// docs/Language.md#3-machine-and-mesh: 64 nodes are more than one leaf holds.
TEST(ShapeTest, TooManyNodesSuggestLeaves) {
  MachineError found = shapeError(gpuDescription(), {64, 8});
  EXPECT_EQ(found.where, 42u);
  EXPECT_EQ(found.message, "level 'node' of 'h100' has at most 32, found 64");
  EXPECT_EQ(found.note, "did you mean 'h100[2, 32, 8]'?");
}

// 16 GPUs are two nodes of 8.
TEST(ShapeTest, TooManyGpusSuggestNodes) {
  EXPECT_EQ(shapeError(gpuDescription(), {16}).note,
            "did you mean 'h100[2, 8]'?");
  // 32 nodes of 16: 64 nodes of 8, which are 2 leaves.
  EXPECT_EQ(shapeError(gpuDescription(), {32, 16}).note,
            "did you mean 'h100[2, 32, 8]'?");
}

// 8 leaves of 32 nodes are more than the catalogue has: nothing to suggest.
TEST(ShapeTest, TooLargeForAnySuggestion) {
  MachineError found = shapeError(gpuDescription(), {8, 32, 8});
  EXPECT_EQ(found.message, "level 'leaf' of 'h100' has at most 4, found 8");
  EXPECT_EQ(found.note, "");
}

TEST(ShapeTest, TorusIsLimitedAsAWhole) {
  MachineError found = shapeError(tpuDescription(), {32, 16});
  EXPECT_EQ(found.message, "a slice of 'tpu' is at most 16x16, found 32x16");
  EXPECT_EQ(found.note, "did you mean 'tpu[2, 16, 16]'?");
  // Slices are not limited.
  EXPECT_EQ(shaped(tpuDescription(), {100, 16, 16}).numChips(), 25600);
}

TEST(ShapeTest, SlicesLieInAnyOrientation) {
  HardwareDescription tpu = tpuDescription();
  tpu.fields.back() = list("shape.max", {16, 28});
  EXPECT_EQ(shaped(tpu, {28, 16}).numChips(), 448);
  EXPECT_EQ(shapeError(tpu, {28, 20}).message,
            "a slice of 'tpu' is at most 16x28, found 28x20");
}

} // namespace
