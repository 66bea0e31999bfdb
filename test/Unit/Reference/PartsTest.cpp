//===- PartsTest.cpp - Devices of a mesh and their parts of a tensor ------===//
//
// Every number is worked by hand.
//
//===----------------------------------------------------------------------===//

#include "shardc/Reference/Parts.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace shardc;

namespace {

constexpr AxisIndex X = 0, Y = 1;

/// Devices 0 1 2 with X = 0, and 3 4 5 with X = 1.
Devices twoByThree() { return Devices({{{"X", 2}, {"Y", 3}}}); }

using Indices = SmallVector<int64_t, 4>;
using Group = SmallVector<unsigned, 8>;

TEST(Devices, Coordinates) {
  Devices devices = twoByThree();
  EXPECT_EQ(devices.size(), 6u);
  EXPECT_EQ(devices.coordinates(0), (Indices{0, 0}));
  EXPECT_EQ(devices.coordinates(2), (Indices{0, 2}));
  EXPECT_EQ(devices.coordinates(4), (Indices{1, 1}));
  for (unsigned device = 0; device < devices.size(); ++device)
    EXPECT_EQ(devices.at(devices.coordinates(device)), device);
  EXPECT_EQ(devices.name(4), "(X=1, Y=1)");
}

TEST(Devices, OneWithoutAxes) {
  Devices devices{Mesh()};
  EXPECT_EQ(devices.size(), 1u);
  EXPECT_TRUE(devices.coordinates(0).empty());
  EXPECT_EQ(devices.name(0), "()");
  EXPECT_EQ(devices.group(0, {}), (Group{0}));
}

TEST(Devices, Groups) {
  Devices devices = twoByThree();
  EXPECT_EQ(devices.group(4, {}), (Group{4}));
  EXPECT_EQ(devices.group(4, {X}), (Group{1, 4}));
  EXPECT_EQ(devices.group(4, {Y}), (Group{3, 4, 5}));
  EXPECT_EQ(devices.group(4, {X, Y}), (Group{0, 1, 2, 3, 4, 5}));
  // The last axis of the list is innermost.
  EXPECT_EQ(devices.group(4, {Y, X}), (Group{0, 3, 1, 4, 2, 5}));
}

TEST(Parts, EvenAndNested) {
  Mesh mesh = twoByThree().mesh();
  EXPECT_EQ(partOf(mesh, 6, {}, {1, 2}), (FactorRange{0, 6, 6}));
  EXPECT_EQ(partOf(mesh, 6, {X}, {1, 2}), (FactorRange{3, 3, 6}));
  EXPECT_EQ(partOf(mesh, 6, {Y}, {1, 2}), (FactorRange{4, 2, 6}));
  // X halves 12 into 6 and 6, Y cuts each into 2, 2, 2.
  EXPECT_EQ(partOf(mesh, 12, {X, Y}, {1, 1}), (FactorRange{8, 2, 12}));
  // Y cuts 12 into 4, 4, 4, X halves each.
  EXPECT_EQ(partOf(mesh, 12, {Y, X}, {1, 1}), (FactorRange{6, 2, 12}));
}

/// X cuts 7 into 4 and 3; Y, in steps of ceil(4 / 3) = 2, the 4 into 2, 2, 0
/// and the 3 into 2, 1, 0.
TEST(Parts, NestedUneven) {
  Mesh mesh = twoByThree().mesh();
  const std::pair<Indices, FactorRange> expected[] = {
      {{0, 0}, {0, 2, 7}}, {{0, 1}, {2, 2, 7}}, {{0, 2}, {4, 0, 7}},
      {{1, 0}, {4, 2, 7}}, {{1, 1}, {6, 1, 7}}, {{1, 2}, {8, 0, 7}}};
  for (const auto &[coordinates, range] : expected)
    EXPECT_EQ(partOf(mesh, 7, {X, Y}, coordinates), range);
}

TEST(Parts, FewerElementsThanDevices) {
  Mesh mesh = twoByThree().mesh();
  EXPECT_EQ(partOf(mesh, 1, {Y}, {0, 0}), (FactorRange{0, 1, 1}));
  EXPECT_EQ(partOf(mesh, 1, {Y}, {0, 1}), (FactorRange{1, 0, 1}));
  EXPECT_EQ(partOf(mesh, 1, {Y}, {0, 2}), (FactorRange{2, 0, 1}));
}

TEST(Parts, OfATensor) {
  Layout layout = Layout::replicated(3);
  layout.dims[0] = {Y};
  layout.dims[2] = {X};
  Box box = partOf(twoByThree(), {3, 5, 4}, layout, /*device=*/5);
  EXPECT_EQ(box, (Box{{2, 1, 3}, {0, 5, 5}, {2, 2, 4}}));
  EXPECT_EQ(numElements(box), 10);
}

TEST(Parts, Intersections) {
  Box a = {{0, 4, 8}, {2, 3, 6}}, b = {{2, 6, 8}, {0, 3, 6}};
  EXPECT_EQ(intersect(a, b), (Box{{2, 2, 8}, {2, 1, 6}}));
  // Neighbours have nothing in common, nor has an empty part.
  EXPECT_EQ(intersect({{0, 4, 8}}, {{4, 4, 8}}), std::nullopt);
  EXPECT_EQ(intersect({{0, 8, 8}}, {{3, 0, 8}}), std::nullopt);
  // Scalars are the same everywhere.
  EXPECT_EQ(intersect({}, {}), Box());
}

class Arrays : public testing::Test {
protected:
  Tensor tensor(Type type, ArrayRef<int64_t> shape, ArrayRef<double> values) {
    Tensor result(type, shape);
    for (auto [i, value] : llvm::enumerate(values))
      result.setReal(int64_t(i), value);
    return result;
  }
  static std::vector<double> values(const Tensor &tensor) {
    std::vector<double> result;
    for (int64_t i = 0; i < tensor.getNumElements(); ++i)
      result.push_back(tensor.getReal(i));
    return result;
  }

  MLIRContext context;
  Builder builder{&context};
  Type f32 = builder.getF32Type();
};

TEST_F(Arrays, CutAndCopy) {
  Tensor whole = tensor(f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  Box right = {{0, 2, 2}, {1, 2, 3}};
  Tensor part = cut(whole, right, {2, 2});
  EXPECT_EQ(values(part), (std::vector<double>{2, 3, 5, 6}));
  // The lower left of the part, into the middle of the whole.
  Box what = {{1, 1, 2}, {1, 1, 3}};
  Tensor to = tensor(f32, {2, 3}, {0, 0, 0, 0, 0, 0});
  copyBox(part, right, to, wholeBox({2, 3}), what);
  EXPECT_EQ(values(to), (std::vector<double>{0, 0, 0, 0, 5, 0}));
  addBox(part, right, to, wholeBox({2, 3}), right);
  EXPECT_EQ(values(to), (std::vector<double>{0, 2, 3, 0, 10, 6}));
}

TEST_F(Arrays, IntegersWrapWhenAdded) {
  Tensor a = tensor(builder.getI8Type(), {1}, {100}), b = a;
  Box all = wholeBox({1});
  addBox(a, all, b, all, all);
  EXPECT_EQ(b.getInteger(0), 200 - 256);
}

TEST_F(Arrays, Scalars) {
  Tensor whole = tensor(f32, {}, {7});
  EXPECT_EQ(values(cut(whole, {}, {})), (std::vector<double>{7}));
}

/// Two of three elements are there; the third shows if anyone reads it.
TEST_F(Arrays, PaddingShows) {
  Tensor whole = tensor(f32, {5}, {1, 2, 3, 4, 5});
  Tensor part = cut(whole, {{3, 2, 5}}, {3});
  EXPECT_EQ(part.getReal(0), 4);
  EXPECT_EQ(part.getReal(1), 5);
  EXPECT_TRUE(std::isnan(part.getReal(2)));
  Tensor integers = emptyPart(builder.getI8Type(), {{3, 2, 5}}, {3});
  EXPECT_EQ(values(integers), (std::vector<double>(3, -128)));
  Tensor full = emptyPart(f32, {{0, 3, 6}}, {3});
  EXPECT_EQ(values(full), (std::vector<double>(3, 0)));
}

} // namespace
