//===- CompareTest.cpp - Parts of a tensor against the whole --------------===//

#include "mlir/IR/Builders.h"
#include "shardc/Verify/Verify.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace shardc;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Values = std::vector<double>;

class CompareTest : public testing::Test {
protected:
  CompareTest() { context.loadDialect<shd::ShdDialect>(); }

  Tensor tensor(ArrayRef<int64_t> shape, const Values &values) {
    Tensor result(type, shape);
    for (auto [i, value] : llvm::enumerate(values))
      result.setReal(int64_t(i), value);
    return result;
  }

  /// `{X}` for each dimension, or nothing; and what is partial.
  RankedTensorType global(ArrayRef<int64_t> shape, ArrayRef<StringRef> dims,
                          StringRef partial = "") {
    Builder builder(&context);
    auto axes = [&](StringRef axis) {
      return axis.empty()
                 ? SmallVector<StringAttr>()
                 : SmallVector<StringAttr>{builder.getStringAttr(axis)};
    };
    SmallVector<shd::DimShardingAttr> list;
    for (StringRef axis : dims)
      list.push_back(shd::DimShardingAttr::get(&context, axes(axis), false));
    return RankedTensorType::get(
        shape, type, shd::ShardingAttr::get(&context, list, axes(partial)));
  }

  /// One array of `local` shape per device.
  Difference run(RankedTensorType global, const Values &expected,
                 ArrayRef<int64_t> local, const std::vector<Values> &parts) {
    std::vector<TensorRef> found;
    for (const Values &part : parts)
      found.push_back(std::make_shared<const Tensor>(tensor(local, part)));
    return compare(devices, global, tensor(global.getShape(), expected), found);
  }

  MLIRContext context;
  Type type = Float32Type::get(&context);
  Devices devices{Mesh{{{"X", 2}, {"Y", 2}}}};
};

/// Devices 0 and 1 have the first row, 2 and 3 the second.
TEST_F(CompareTest, EqualParts) {
  Difference difference = run(global({2, 2}, {"X", ""}), {1, 2, 3, 4}, {1, 2},
                              {{1, 2}, {1, 2}, {3, 4}, {3, 4}});
  EXPECT_EQ(difference.size, 0);
  EXPECT_TRUE(difference.element.empty());
}

/// The farthest element of all devices, by its place in the whole tensor;
/// relative to the largest magnitude, 8.
TEST_F(CompareTest, TheLargestDifference) {
  Difference difference = run(global({2, 2}, {"X", ""}), {1, 2, 3, -8}, {1, 2},
                              {{1, 2.5}, {1, 2}, {3, -8}, {3, -7}});
  EXPECT_EQ(difference.size, 1.0 / 8);
  EXPECT_EQ(difference.element, (SmallVector<int64_t, 4>{1, 1}));
  EXPECT_EQ(difference.device, 3u);
  EXPECT_EQ(difference.expected, -8);
  EXPECT_EQ(difference.found, -7);
}

/// For small tensors the absolute difference counts.
TEST_F(CompareTest, SmallNumbers) {
  Difference difference = run(global({2}, {""}), {1e-3, 0}, {2},
                              {{1e-3, 0}, {1e-3, 0}, {1e-3, 0}, {1e-3, 0.25}});
  EXPECT_EQ(difference.size, 0.25);
  EXPECT_EQ(difference.element, (SmallVector<int64_t, 4>{1}));
}

/// Devices along Y hold summands: 1 = 3 - 2, and 2 = 1 + 1 is 3 with X = 1.
TEST_F(CompareTest, PartialSums) {
  RankedTensorType type = global({1}, {""}, "Y");
  EXPECT_EQ(run(type, {1}, {1}, {{3}, {-2}, {0}, {1}}).size, 0);
  Difference difference = run(type, {2}, {1}, {{1}, {1}, {1}, {2}});
  EXPECT_EQ(difference.size, 0.5);
  EXPECT_EQ(difference.device, 2u);
  EXPECT_EQ(difference.found, 3);
}

TEST_F(CompareTest, NotANumber) {
  RankedTensorType type = global({2}, {"X"});
  EXPECT_EQ(run(type, {kNaN, 1}, {1}, {{kNaN}, {kNaN}, {1}, {1}}).size, 0);
  EXPECT_EQ(run(type, {0, 1}, {1}, {{kNaN}, {0}, {1}, {1}}).size, kInfinity);
  EXPECT_EQ(run(type, {kNaN, 1}, {1}, {{0}, {kNaN}, {1}, {1}}).size, kInfinity);
}

/// Infinities are equal, and no measure for others.
TEST_F(CompareTest, Infinity) {
  RankedTensorType type = global({2}, {"X"});
  EXPECT_EQ(
      run(type, {kInfinity, 2}, {1}, {{kInfinity}, {kInfinity}, {2}, {1}}).size,
      0.5);
  EXPECT_EQ(
      run(type, {kInfinity, 2}, {1}, {{-kInfinity}, {kInfinity}, {2}, {2}})
          .size,
      kInfinity);
}

TEST_F(CompareTest, Integers) {
  type = IntegerType::get(&context, 32);
  RankedTensorType global = this->global({2}, {"X"});
  EXPECT_EQ(run(global, {1000, 7}, {1}, {{1000}, {1000}, {7}, {7}}).size, 0);
  Difference difference =
      run(global, {1000, 7}, {1}, {{1000}, {1000}, {7}, {8}});
  EXPECT_EQ(difference.size, 1);
  EXPECT_EQ(difference.device, 3u);
  EXPECT_EQ(difference.element, (SmallVector<int64_t, 4>{1}));
}

/// 3 over X = 2 are 2 and 1: what lies beyond is nobody's.
TEST_F(CompareTest, Padding) {
  RankedTensorType type = global({3}, {"X"});
  EXPECT_EQ(run(type, {1, 2, 3}, {2}, {{1, 2}, {1, 2}, {3, kNaN}, {3, 5}}).size,
            0);
  EXPECT_EQ(run(type, {1, 2, 3}, {2}, {{1, 2}, {1, 2}, {3, 0}, {0, 3}}).device,
            3u);
}

TEST_F(CompareTest, Scalars) {
  Difference difference =
      run(RankedTensorType::get({}, type), {4}, {}, {{4}, {3}, {4}, {4}});
  EXPECT_EQ(difference.size, 0.25);
  EXPECT_EQ(difference.device, 1u);
  EXPECT_TRUE(difference.element.empty());
}

} // namespace
