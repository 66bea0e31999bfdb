//===- TensorTest.cpp - Element types of tensors --------------------------===//

#include "shardc/Tensor/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace shardc;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

class TensorTest : public testing::Test {
protected:
  /// One number, rounded.
  double rounded(Type type, double value) {
    Tensor tensor(type, {});
    tensor.setReal(0, value);
    roundToElement(tensor);
    return tensor.getReal(0);
  }

  MLIRContext context;
  Builder builder{&context};
};

TEST_F(TensorTest, Storage) {
  Tensor real(builder.getBF16Type(), {2, 3, 4});
  EXPECT_TRUE(real.isReal());
  EXPECT_EQ(real.getNumElements(), 24);
  EXPECT_EQ(real.getStrides(), (SmallVector<int64_t, 4>{12, 4, 1}));
  EXPECT_EQ(real.getReals().size(), 24u);
  EXPECT_TRUE(real.getIntegers().empty());
  EXPECT_EQ(real.getReal(23), 0);
  Tensor scalar(builder.getI32Type(), {});
  EXPECT_FALSE(scalar.isReal());
  EXPECT_EQ(scalar.getNumElements(), 1);
  EXPECT_TRUE(scalar.getStrides().empty());
}

TEST_F(TensorTest, Equality) {
  Tensor a(builder.getF32Type(), {2}), b(builder.getF32Type(), {2});
  EXPECT_EQ(a, b);
  a.setReal(1, std::nan(""));
  EXPECT_FALSE(a == b);
  b.setReal(1, std::nan(""));
  EXPECT_EQ(a, b);
  EXPECT_FALSE(a == Tensor(builder.getF32Type(), {2, 1}));
  EXPECT_FALSE(Tensor(builder.getI8Type(), {1}) ==
               Tensor(builder.getI16Type(), {1}));
}

TEST_F(TensorTest, Wraps) {
  Type i4 = builder.getIntegerType(4),
       ui8 = builder.getIntegerType(8, /*isSigned=*/false);
  EXPECT_EQ(Tensor::wrap(i4, 8), -8);
  EXPECT_EQ(Tensor::wrap(i4, -9), 7);
  EXPECT_EQ(Tensor::wrap(ui8, -1), 255);
  EXPECT_EQ(Tensor::wrap(ui8, 256), 0);
  EXPECT_EQ(Tensor::wrap(builder.getI16Type(), 32768), -32768);
  EXPECT_EQ(Tensor::wrap(builder.getI32Type(), int64_t(1) << 31),
            -(int64_t(1) << 31));
  EXPECT_EQ(Tensor::wrap(builder.getI1Type(), 2), 1);
}

TEST_F(TensorTest, Ranges) {
  EXPECT_EQ(Tensor::lowest(builder.getI8Type()), -128);
  EXPECT_EQ(Tensor::highest(builder.getI32Type()), 2147483647);
  EXPECT_EQ(Tensor::lowest(builder.getIntegerType(8, false)), 0);
  EXPECT_EQ(Tensor::highest(builder.getIntegerType(8, false)), 255);
  EXPECT_EQ(Tensor::lowest(builder.getF32Type()), -infinity);
  EXPECT_EQ(Tensor::highest(builder.getType<Float8E5M2Type>()), infinity);
  EXPECT_EQ(Tensor::highest(builder.getType<Float8E4M3FNType>()), 448);
  EXPECT_EQ(Tensor::lowest(builder.getType<Float4E2M1FNType>()), -6);
  EXPECT_EQ(Tensor::highestFinite(builder.getF16Type()), 65504);
  EXPECT_EQ(Tensor::lowest(builder.getType<Float8E8M0FNUType>()), 0x1p-127);
  EXPECT_EQ(Tensor::highest(builder.getType<Float8E8M0FNUType>()), 0x1p127);
}

//===----------------------------------------------------------------------===//
// Rounding: ulps at 1 are 2^-(bits of the mantissa); ties to even.
//===----------------------------------------------------------------------===//

TEST_F(TensorTest, RoundsByMantissa) {
  std::pair<Type, int> mantissas[] = {{builder.getF32Type(), 23},
                                      {builder.getTF32Type(), 10},
                                      {builder.getF16Type(), 10},
                                      {builder.getBF16Type(), 7},
                                      {builder.getType<Float8E4M3FNType>(), 3},
                                      {builder.getType<Float8E5M2Type>(), 2},
                                      {builder.getType<Float4E2M1FNType>(), 1}};
  for (auto [type, bits] : mantissas) {
    double ulp = std::ldexp(1, -bits);
    EXPECT_EQ(rounded(type, 1 + ulp), 1 + ulp);
    // Half-way: down to 1, whose mantissa is even, and up to 1 + 2 ulp.
    EXPECT_EQ(rounded(type, 1 + ulp / 2), 1);
    EXPECT_EQ(rounded(type, 1 + ulp * 0.51), 1 + ulp);
    EXPECT_EQ(rounded(type, -(1 + ulp * 1.5)), -(1 + 2 * ulp));
  }
  EXPECT_EQ(rounded(builder.getF64Type(), 1 + 0x1p-52), 1 + 0x1p-52);
}

TEST_F(TensorTest, RoundsDenormals) {
  // The least positive numbers; half of one is a tie to 0.
  std::pair<Type, double> least[] = {
      {builder.getF32Type(), 0x1p-149},
      {builder.getF16Type(), 0x1p-24},
      {builder.getBF16Type(), 0x1p-133},
      {builder.getType<Float8E4M3FNType>(), 0x1p-9},
      {builder.getType<Float8E5M2Type>(), 0x1p-16},
      {builder.getType<Float4E2M1FNType>(), 0.5}};
  for (auto [type, value] : least) {
    EXPECT_EQ(rounded(type, value), value);
    EXPECT_EQ(rounded(type, value / 2), 0);
    EXPECT_EQ(rounded(type, value * 0.51), value);
    EXPECT_EQ(rounded(type, value * 1.5), 2 * value);
  }
}

TEST_F(TensorTest, RoundsToPowersOfTwo) {
  Type scale = builder.getType<Float8E8M0FNUType>();
  EXPECT_EQ(rounded(scale, 1), 1);
  EXPECT_EQ(rounded(scale, 1.49), 1);
  // Half-way up: 1 has no even mantissa to prefer.
  EXPECT_EQ(rounded(scale, 1.5), 2);
  EXPECT_EQ(rounded(scale, 3), 4);
  EXPECT_EQ(rounded(scale, 0.26), 0.25);
  EXPECT_EQ(rounded(scale, 0x1p-127), 0x1p-127);
  EXPECT_EQ(rounded(scale, 0x1.9p-127), 0x1p-126);
  EXPECT_EQ(rounded(scale, 0), 0x1p-127);
  EXPECT_EQ(rounded(scale, -2), 0x1p-127);
  EXPECT_EQ(rounded(scale, 0x1.9p127), 0x1p127);
  EXPECT_EQ(rounded(scale, infinity), 0x1p127);
  EXPECT_TRUE(std::isnan(rounded(scale, std::nan(""))));
}

TEST_F(TensorTest, Overflows) {
  EXPECT_EQ(rounded(builder.getF16Type(), 65519), 65504);
  EXPECT_EQ(rounded(builder.getF16Type(), 65520), infinity);
  EXPECT_EQ(rounded(builder.getBF16Type(), 1e39), infinity);
  EXPECT_EQ(rounded(builder.getF32Type(), -1e39), -infinity);
  EXPECT_EQ(rounded(builder.getType<Float8E5M2Type>(), 57344), 57344);
  EXPECT_EQ(rounded(builder.getType<Float8E5M2Type>(), 65536), infinity);
  EXPECT_EQ(rounded(builder.getType<Float8E4M3FNType>(), 448), 448);
  EXPECT_EQ(rounded(builder.getType<Float8E4M3FNType>(), 460), 448);
  EXPECT_TRUE(std::isnan(rounded(builder.getType<Float8E4M3FNType>(), 1000)));
  EXPECT_EQ(rounded(builder.getType<Float4E2M1FNType>(), 100), 6);
  EXPECT_EQ(rounded(builder.getType<Float4E2M1FNType>(), -infinity), -6);
}

TEST_F(TensorTest, RoundsNaNs) {
  for (Type type : {Type(builder.getF32Type()), Type(builder.getBF16Type()),
                    Type(builder.getType<Float8E5M2Type>()),
                    Type(builder.getType<Float8E4M3FNType>())})
    EXPECT_TRUE(std::isnan(rounded(type, std::nan(""))));
  EXPECT_EQ(rounded(builder.getType<Float4E2M1FNType>(), std::nan("")), 0);
}

TEST_F(TensorTest, IntegersStay) {
  Tensor tensor(builder.getI32Type(), {1});
  tensor.setInteger(0, 16777217);
  roundToElement(tensor);
  EXPECT_EQ(tensor.getInteger(0), 16777217);
}

} // namespace
