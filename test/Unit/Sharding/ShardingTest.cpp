//===- ShardingTest.cpp - Meshes, layouts and bytes -----------------------===//
//
// Notation and local bytes, against How to Scale Your Model, chapter 3.
//
//===----------------------------------------------------------------------===//

#include "shardc/Sharding/Reshape.h"
#include "gtest/gtest.h"
#include <limits>

using namespace shardc;

namespace {

enum : AxisIndex { X, Y, Z };

Mesh makeMesh() { return {{{"X", 8}, {"Y", 2}, {"Z", 4}}}; }

TEST(MeshTest, SizesOfGroups) {
  Mesh mesh = makeMesh();
  EXPECT_EQ(mesh.numDevices(), 64);
  EXPECT_EQ(mesh.groupSize({X, Z}), 32);
  EXPECT_EQ(mesh.groupSize(axisBit(Y) | axisBit(Z)), 8);
  EXPECT_EQ(mesh.groupSize(AxisSet(0)), 1);
  EXPECT_EQ(Mesh().numDevices(), 1);
  EXPECT_EQ(mesh.find("Z"), Z);
  EXPECT_EQ(mesh.find("W"), std::nullopt);
}

TEST(MeshTest, SizesSaturateInsteadOfOverflowing) {
  Mesh mesh{{{"X", int64_t(1) << 40}, {"Y", int64_t(1) << 40}}};
  EXPECT_EQ(mesh.numDevices(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(localExtent(mesh, 1000, {X, Y}), 1);
}

TEST(LayoutTest, Notation) {
  Mesh mesh = makeMesh();
  std::vector<std::string> names = {"B", "D"};
  EXPECT_EQ(toString(mesh, Layout::replicated(2), names), "[B, D]");
  EXPECT_EQ(toString(mesh, {{{X}, {}}, axisBit(Y)}, names), "[B@X, D]{+Y}");
  EXPECT_EQ(toString(mesh, {{{X, Y}, {}}}, names), "[B@(X, Y), D]");
  EXPECT_EQ(toString(mesh, {{{}, {Z}}, axisBit(X) | axisBit(Y)}, names),
            "[B, D@Z]{+X, +Y}");
  EXPECT_EQ(toString(mesh, Layout::replicated(0), {}), "[]");
}

TEST(LayoutTest, AxesInUse) {
  Layout layout{{{X}, {Z}}, axisBit(Y)};
  EXPECT_EQ(layout.sharded(), axisBit(X) | axisBit(Z));
  EXPECT_EQ(layout.used(), axisBit(X) | axisBit(Y) | axisBit(Z));
  EXPECT_FALSE(layout.isReplicated());
  EXPECT_FALSE((Layout{{{}, {}}, axisBit(Y)}.isReplicated()));
  EXPECT_TRUE(Layout::replicated(2).isReplicated());
}

TEST(LayoutTest, TotalOrder) {
  Layout replicated = Layout::replicated(2);
  Layout onX{{{X}, {}}};
  Layout onXY{{{X, Y}, {}}};
  Layout onYX{{{Y, X}, {}}};
  Layout partial{{{}, {}}, axisBit(X)};
  EXPECT_LT(replicated, onX);
  EXPECT_LT(onX, onXY);
  EXPECT_LT(onXY, onYX);
  EXPECT_LT(replicated, partial);
  EXPECT_LT(partial, onX);
  EXPECT_FALSE(onX < onX);
}

TEST(LayoutTest, EqualLayoutsHashAlike) {
  Layout a{{{X, Y}, {}}, axisBit(Z)};
  Layout b{{{X, Y}, {}}, axisBit(Z)};
  EXPECT_EQ(hash_value(a), hash_value(b));
  // The same axes, differently divided among the dimensions.
  Layout c{{{X}, {Y}}, axisBit(Z)};
  EXPECT_NE(hash_value(a), hash_value(c));
}

/// X has 8 devices, Y 2, Z 4.
TEST(LayoutTest, ReshapesThatLieAlike) {
  Mesh mesh = makeMesh();
  auto alike = [&](llvm::ArrayRef<int64_t> extents, const Layout &layout,
                   llvm::ArrayRef<int64_t> reshaped, const Layout &other) {
    EXPECT_EQ(areAlike(mesh, extents, layout, reshaped, other),
              areAlike(mesh, reshaped, other, extents, layout));
    return areAlike(mesh, extents, layout, reshaped, other);
  };
  // Of 64 rows each device has 8 that follow one another: 2 of 16 blocks of 4,
  // half of 4 blocks of 16, which no axis of 8 splits.
  EXPECT_TRUE(alike({64, 3}, {{{X}, {}}}, {16, 4, 3}, {{{X}, {}, {}}}));
  EXPECT_FALSE(alike({64, 3}, {{{X}, {}}}, {4, 16, 3}, {{{}, {X}, {}}}));
  // Two axes one after another, the major one on the major part.
  EXPECT_TRUE(alike({8}, {{{Y, Z}}}, {2, 4}, {{{Y}, {Z}}}));
  EXPECT_FALSE(alike({8}, {{{Y, Z}}}, {4, 2}, {{{Z}, {Y}}}));
  EXPECT_FALSE(alike({8}, {{{Y, Z}}}, {2, 4}, {{{Y}, {}}}));
  // One row on the first of two devices, the other has padding.
  EXPECT_FALSE(alike({1, 4}, {{{Y}, {}}}, {4}, {{{}}}));
  // Elements 0 to 3 and 8 to 11 are no neighbours in 16, but in 2 x 2 x 4.
  EXPECT_FALSE(alike({16}, {{{Y}}}, {2, 8}, {{{}, {Y}}}));
  EXPECT_TRUE(alike({2, 8}, {{{}, {Y}}}, {2, 2, 4}, {{{}, {Y}, {}}}));
  // Dimensions of one element say nothing; an extent that its axes do not
  // divide must be the same.
  EXPECT_TRUE(alike({6, 1}, {{{Y}, {}}}, {1, 2, 3}, {{{}, {Y}, {}}}));
  EXPECT_TRUE(alike({6, 1}, {{{Z}, {}}}, {6}, {{{Z}}}));
  EXPECT_FALSE(alike({6}, {{{Z}}}, {3, 2}, {{{Z}, {}}}));
  EXPECT_FALSE(alike({6}, {{{}}, axisBit(Y)}, {6}, {{{}}}));
}

TEST(TensorShapeTest, LocalBytes) {
  Mesh mesh = makeMesh();
  // Chapter 3's example: int8[128, 2048] over a mesh {X: 8, Y: 2}.
  TensorShape shape{{128, 2048}, 8};
  EXPECT_EQ(shape.globalBytes(), 262144);
  // A[I@(X, Y), J]: 8 x 2048 elements on a device.
  EXPECT_EQ(shape.localBytes(mesh, {{{X, Y}, {}}}), 16384);
  // Partial sums are as large as the tensor.
  EXPECT_EQ(shape.localBytes(mesh, {{{}, {}}, axisBit(X)}), 262144);
}

TEST(TensorShapeTest, HalfBytesAndPadding) {
  Mesh mesh = makeMesh();
  // 3 x 5 int4 elements: 60 bits.
  EXPECT_EQ((TensorShape{{3, 5}, 4}.globalBytes()), 7.5);
  // 10 rows over 8 devices: 2 rows of 4 bf16 elements each.
  TensorShape rows{{10, 4}, 16};
  EXPECT_EQ(rows.localBytes(mesh, {{{X}, {}}}), 16);
  EXPECT_FALSE(divides(mesh, rows, {{{X}, {}}}));
  EXPECT_TRUE(divides(mesh, rows, {{{Y}, {Z}}}));
  EXPECT_FALSE(divides(mesh, rows, {{{}, {Y, Z}}}));
}

} // namespace
