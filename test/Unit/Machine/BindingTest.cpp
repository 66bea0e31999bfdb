//===- BindingTest.cpp - Where mesh axes lie on the machine ---------------===//

#include "Descriptions.h"

using namespace shardc;

namespace {

using Parts = llvm::SmallVector<AxisPart, 2>;

Mesh meshOf(llvm::ArrayRef<int64_t> sizes) {
  Mesh mesh;
  for (int64_t size : sizes)
    mesh.axes.push_back({std::string(1, "XYZUVW"[mesh.size()]), size});
  return mesh;
}

/// Requests by axis, each at its number + 100.
llvm::SmallVector<AxisRequest, 4>
requestsOf(unsigned axes,
           llvm::ArrayRef<llvm::SmallVector<std::string, 2>> on = {}) {
  llvm::SmallVector<AxisRequest, 4> requests(axes);
  for (unsigned axis = 0; axis < axes; ++axis) {
    requests[axis].where = axis + 100;
    if (axis < on.size())
      requests[axis].on = on[axis];
  }
  return requests;
}

MeshBinding bound(const Machine &machine, llvm::ArrayRef<int64_t> sizes,
                  llvm::ArrayRef<llvm::SmallVector<std::string, 2>> on = {}) {
  return value(
      bindMesh(machine, meshOf(sizes), requestsOf(sizes.size(), on), 42));
}

MachineError
bindError(const Machine &machine, llvm::ArrayRef<int64_t> sizes,
          llvm::ArrayRef<llvm::SmallVector<std::string, 2>> on = {}) {
  return error(
      bindMesh(machine, meshOf(sizes), requestsOf(sizes.size(), on), 42));
}

HardwareDescription cubeDescription() {
  HardwareDescription tpu = tpuDescription();
  tpu.fields.pop_back();
  tpu.networks[0].members = {"x", "y", "z"};
  return tpu;
}

//===----------------------------------------------------------------------===//
// Default bindings
//===----------------------------------------------------------------------===//

TEST(DefaultBindingTest, WholeAxesInOrder) {
  MeshBinding binding = bound(shaped(cubeDescription(), {2, 4, 8}), {2, 4, 8});
  EXPECT_EQ(binding.parts[0], Parts({{0, 2, 1}}));
  EXPECT_EQ(binding.parts[1], Parts({{1, 4, 1}}));
  EXPECT_EQ(binding.parts[2], Parts({{2, 8, 1}}));
  EXPECT_EQ(binding.idleChips, 0);
}

// 4x4x8, mesh 4x4: x and y are whole axes of the same torus; z idles.
TEST(DefaultBindingTest, WholeAxesOfASmallerMesh) {
  MeshBinding binding = bound(shaped(cubeDescription(), {4, 4, 8}), {4, 4});
  EXPECT_EQ(binding.parts[0], Parts({{0, 4, 1}}));
  EXPECT_EQ(binding.parts[1], Parts({{1, 4, 1}}));
  EXPECT_EQ(binding.idleChips, 112); // 128 - 16
}

// A mesh axis over two physical axes: Y = 16 = y (4) x z (4), y the major one.
TEST(DefaultBindingTest, RunsOfPhysicalAxes) {
  MeshBinding binding = bound(shaped(cubeDescription(), {4, 4, 4}), {4, 16});
  EXPECT_EQ(binding.parts[0], Parts({{0, 4, 1}}));
  EXPECT_EQ(binding.parts[1], Parts({{1, 4, 1}, {2, 4, 1}}));
}

// 4 nodes of 8, mesh 8x4: row-major, the last axis innermost. Y takes 4 of 8
// GPUs; X the other factor of 2, 4 positions apart, and the nodes.
TEST(DefaultBindingTest, RowMajor) {
  MeshBinding binding = bound(shaped(gpuDescription(), {4, 8}), {8, 4});
  EXPECT_EQ(binding.parts[1], Parts({{1, 4, 1}}));
  EXPECT_EQ(binding.parts[0], Parts({{0, 4, 1}, {1, 2, 4}}));
}

// Fewer chips take the inner part, the fastest network: 2 of the 8 GPUs, not
// the 2 nodes.
TEST(DefaultBindingTest, InnerPartOfALargerMachine) {
  MeshBinding binding = bound(shaped(gpuDescription(), {2, 8}), {2});
  EXPECT_EQ(binding.parts[0], Parts({{1, 2, 1}}));
  EXPECT_EQ(binding.idleChips, 14);
  binding = bound(shaped(gpuDescription(), {8, 8}), {8});
  EXPECT_EQ(binding.parts[0], Parts({{1, 8, 1}}));
}

// Three GPUs of eight, then two nodes: 6 = 2 x 3 does not fill a node evenly.
TEST(DefaultBindingTest, FactorsThatDoNotDivide) {
  MeshBinding binding = bound(shaped(gpuDescription(), {2, 8}), {3});
  EXPECT_EQ(binding.parts[0], Parts({{1, 3, 1}}));
  // 10 = 2 x 5: five GPUs of each of two nodes.
  binding = bound(shaped(gpuDescription(), {2, 8}), {10});
  EXPECT_EQ(binding.parts[0], Parts({{0, 2, 1}, {1, 5, 1}}));
}

// In a torus of 4 x 4 an axis of 4 is a whole one, a ring if it wraps, and not
// half of one and half of the other; what is left takes the rest.
TEST(DefaultBindingTest, WholeAxesOfATorusFirst) {
  for (unsigned whole : {0u, 1u}) {
    llvm::SmallVector<int64_t, 2> sizes = {2, 2};
    sizes[whole] = 4;
    MeshBinding binding = bound(shaped(tpuDescription(), {4, 4}), sizes);
    EXPECT_EQ(binding.parts[whole], Parts({{0, 4, 1}}));
    EXPECT_EQ(binding.parts[1 - whole], Parts({{1, 2, 1}}));
    EXPECT_EQ(binding.idleChips, 8);
  }
}

// 12 x 2 on 4 x 6: Y = 2 inside y; X = 12 = 3 outside it and 4 on x.
TEST(DefaultBindingTest, AxesShareAPhysicalAxis) {
  MeshBinding binding = bound(shaped(tpuDescription(), {4, 6}), {12, 2});
  EXPECT_EQ(binding.parts[1], Parts({{1, 2, 1}}));
  EXPECT_EQ(binding.parts[0], Parts({{0, 4, 1}, {1, 3, 2}}));
}

// 2 x 6 on 3 x 4: as much of Y = 6 as fits on y is 3, with 2 on x, which leaves
// X nowhere. So Y takes 2 of y and all of x, and X the outer half of y.
TEST(DefaultBindingTest, BacktracksToFit) {
  MeshBinding binding = bound(shaped(tpuDescription(), {3, 4}), {2, 6});
  EXPECT_EQ(binding.parts[1], Parts({{0, 3, 1}, {1, 2, 1}}));
  EXPECT_EQ(binding.parts[0], Parts({{1, 2, 2}}));
}

TEST(DefaultBindingTest, AxesOfOneBindToNothing) {
  MeshBinding binding = bound(shaped(tpuDescription(), {4, 4}), {1, 4, 1, 4});
  EXPECT_TRUE(binding.parts[0].empty());
  EXPECT_EQ(binding.parts[1], Parts({{0, 4, 1}}));
  EXPECT_TRUE(binding.parts[2].empty());
  EXPECT_EQ(binding.parts[3], Parts({{1, 4, 1}}));
}

TEST(DefaultBindingTest, OneChipAndNoAxes) {
  EXPECT_TRUE(bound(shaped(tpuDescription(), {}), {}).parts.empty());
  EXPECT_TRUE(bound(shaped(tpuDescription(), {}), {1}).parts[0].empty());
  EXPECT_EQ(bound(shaped(tpuDescription(), {4, 4}), {}).idleChips, 15);
}

// Two slices of 4x4: the slices are the outermost level.
TEST(DefaultBindingTest, SlicesAreOutermost) {
  MeshBinding binding = bound(shaped(tpuDescription(), {2, 4, 4}), {2, 16});
  EXPECT_EQ(binding.parts[0], Parts({{0, 2, 1}}));
  EXPECT_EQ(binding.parts[1], Parts({{1, 4, 1}, {2, 4, 1}}));
}

//===----------------------------------------------------------------------===//
// Requested bindings
//===----------------------------------------------------------------------===//

TEST(RequestedBindingTest, NamedAxes) {
  MeshBinding binding = bound(shaped(cubeDescription(), {16, 4, 4}), {16, 16},
                              {{"y", "z"}, {"x"}});
  EXPECT_EQ(binding.parts[0], Parts({{1, 4, 1}, {2, 4, 1}}));
  EXPECT_EQ(binding.parts[1], Parts({{0, 16, 1}}));
}

// The order in the list is the order of the parts, the major one first.
TEST(RequestedBindingTest, ListOrder) {
  MeshBinding binding =
      bound(shaped(cubeDescription(), {4, 2, 8}), {16}, {{"z", "y"}});
  EXPECT_EQ(binding.parts[0], Parts({{2, 8, 1}, {1, 2, 1}}));
}

// "Axes that name one physical axis split it, the first outermost".
TEST(RequestedBindingTest, AxesSplitAPhysicalAxis) {
  MeshBinding binding = bound(shaped(tpuDescription(), {16, 4}), {4, 2, 2},
                              {{"x"}, {"x"}, {"x"}});
  EXPECT_EQ(binding.parts[0], Parts({{0, 4, 4}}));
  EXPECT_EQ(binding.parts[1], Parts({{0, 2, 2}}));
  EXPECT_EQ(binding.parts[2], Parts({{0, 2, 1}}));
}

TEST(RequestedBindingTest, TheRestTakesWhatIsLeft) {
  MeshBinding binding =
      bound(shaped(tpuDescription(), {16, 4}), {4, 16}, {{"y"}, {}});
  EXPECT_EQ(binding.parts[0], Parts({{1, 4, 1}}));
  EXPECT_EQ(binding.parts[1], Parts({{0, 16, 1}}));
  // Beside named axes only where nothing else is left: the outer part of y.
  binding = bound(shaped(tpuDescription(), {4, 16}), {4, 16}, {{"y"}, {}});
  EXPECT_EQ(binding.parts[0], Parts({{1, 4, 1}}));
  EXPECT_EQ(binding.parts[1], Parts({{0, 4, 1}, {1, 4, 4}}));
}

TEST(RequestedBindingTest, PartOfALargerAxis) {
  MeshBinding binding =
      bound(shaped(tpuDescription(), {16, 16}), {4, 4}, {{"x"}, {"y"}});
  EXPECT_EQ(binding.parts[0], Parts({{0, 4, 1}}));
  EXPECT_EQ(binding.parts[1], Parts({{1, 4, 1}}));
  EXPECT_EQ(binding.idleChips, 240);
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

TEST(BindingErrorTest, MeshLargerThanTheMachine) {
  MachineError found = bindError(shaped(tpuDescription(), {4, 4}), {8, 4});
  EXPECT_EQ(found.where, 42u);
  EXPECT_EQ(found.message,
            "mesh of 8x4 devices is larger than 'tpu[4, 4]' with 16 chips");
  EXPECT_EQ(bindError(shaped(tpuDescription(), {}), {2}).message,
            "mesh of 2 devices is larger than 'tpu' with 1 chip");
  // 2^32 x 2^32 devices must not wrap round to few.
  EXPECT_NE(bindError(shaped(tpuDescription(), {4, 4}),
                      {int64_t(1) << 32, int64_t(1) << 32})
                .message.find("is larger than"),
            std::string::npos);
}

TEST(BindingErrorTest, SizeThatDoesNotFactor) {
  MachineError found = bindError(shaped(tpuDescription(), {4, 4}), {5});
  EXPECT_EQ(found.where, 42u);
  EXPECT_EQ(found.message, "mesh axis 'X' of size 5 does not fit on physical "
                           "axes 'x' of size 4, 'y' of size 4");
}

TEST(BindingErrorTest, RequestThatDoesNotFit) {
  MachineError found =
      bindError(shaped(tpuDescription(), {4, 4}), {8}, {{"y"}});
  EXPECT_EQ(found.where, 100u);
  EXPECT_EQ(found.message,
            "mesh axis 'X' of size 8 does not fit on physical axis 'y' of size "
            "4");
  // 4 x 8 positions on an axis of 16.
  found = bindError(shaped(tpuDescription(), {16, 16}), {4, 8}, {{"x"}, {"x"}});
  EXPECT_EQ(found.where, 100u);
  EXPECT_EQ(found.message,
            "mesh axis 'X' of size 4 does not fit on physical axis 'x' of size "
            "16 beside the other mesh axes");
}

TEST(BindingErrorTest, UnknownPhysicalAxis) {
  MachineError found =
      bindError(shaped(tpuDescription(), {4, 4}), {4, 4}, {{"x"}, {"gpu"}});
  EXPECT_EQ(found.where, 101u);
  EXPECT_EQ(found.message, "'tpu[4, 4]' has no physical axis 'gpu'");
  EXPECT_EQ(found.note, "it has 'x', 'y'");
  // DCN is a level of the machine, but not of this shape.
  EXPECT_EQ(
      bindError(shaped(tpuDescription(), {4, 4}), {2}, {{"slice"}}).message,
      "'tpu[4, 4]' has no physical axis 'slice'");
}

TEST(BindingErrorTest, SamePhysicalAxisTwice) {
  EXPECT_EQ(
      bindError(shaped(tpuDescription(), {4, 4}), {4}, {{"x", "x"}}).message,
      "mesh axis 'X' is bound to physical axis 'x' twice");
}

} // namespace
