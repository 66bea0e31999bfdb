//===- Tensor.cpp - Values of tensors, for evaluation ---------------------===//

#include "shardc/Tensor/Tensor.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace shardc;
using llvm::APFloat;

int64_t shardc::numElements(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

Tensor::Tensor(Type elementType, ArrayRef<int64_t> shape)
    : elementType(elementType), shape(shape),
      realTyped(isa<FloatType>(elementType)) {
  if (realTyped)
    reals.resize(numElements(shape));
  else
    integers.resize(numElements(shape));
}

SmallVector<int64_t, 4> Tensor::getStrides() const {
  SmallVector<int64_t, 4> strides(shape.size(), 1);
  for (size_t dim = shape.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * shape[dim];
  return strides;
}

bool Tensor::operator==(const Tensor &other) const {
  if (elementType != other.elementType || shape != other.shape)
    return false;
  auto same = [](double a, double b) {
    return a == b || (std::isnan(a) && std::isnan(b));
  };
  return integers == other.integers && llvm::equal(reals, other.reals, same);
}

//===----------------------------------------------------------------------===//
// Ranges of element types
//===----------------------------------------------------------------------===//

namespace {
struct IntegerRange {
  int64_t low = 0, high = 0;
};
} // namespace

static IntegerRange rangeOf(Type integerType) {
  auto type = cast<IntegerType>(integerType);
  unsigned width = type.getWidth();
  if (width == 1)
    return {0, 1};
  if (type.isUnsigned())
    return {0, static_cast<int64_t>(llvm::maxUIntN(width))};
  return {llvm::minIntN(width), llvm::maxIntN(width)};
}

static const llvm::fltSemantics &semanticsOf(Type realType) {
  return cast<FloatType>(realType).getFloatSemantics();
}

/// True for powers of two alone: no sign, no 0, no infinity.
static bool isScale(Type realType) { return isa<Float8E8M0FNUType>(realType); }

static double toDouble(APFloat value) {
  bool losesInfo;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value.convertToDouble();
}

int64_t Tensor::wrap(Type integerType, int64_t value) {
  auto type = cast<IntegerType>(integerType);
  unsigned width = type.getWidth();
  if (width == 1)
    return value != 0;
  if (type.isUnsigned())
    return static_cast<int64_t>(static_cast<uint64_t>(value) &
                                llvm::maskTrailingOnes<uint64_t>(width));
  return llvm::SignExtend64(static_cast<uint64_t>(value), width);
}

int64_t Tensor::saturate(Type integerType, double value) {
  IntegerRange range = rangeOf(integerType);
  if (integerType.isInteger(1))
    return value != 0;
  if (std::isnan(value))
    return 0;
  if (value <= static_cast<double>(range.low))
    return range.low;
  if (value >= static_cast<double>(range.high))
    return range.high;
  // The rounding mode of a process is to nearest, ties to even.
  return static_cast<int64_t>(std::nearbyint(value));
}

double Tensor::highestFinite(Type realType) {
  return toDouble(APFloat::getLargest(semanticsOf(realType)));
}

double Tensor::highest(Type elementType) {
  if (!isa<FloatType>(elementType))
    return static_cast<double>(rangeOf(elementType).high);
  if (APFloat::semanticsHasInf(semanticsOf(elementType)))
    return std::numeric_limits<double>::infinity();
  return highestFinite(elementType);
}

double Tensor::lowest(Type elementType) {
  if (!isa<FloatType>(elementType))
    return static_cast<double>(rangeOf(elementType).low);
  if (isScale(elementType))
    return toDouble(APFloat::getSmallestNormalized(semanticsOf(elementType)));
  return -highest(elementType);
}

//===----------------------------------------------------------------------===//
// Rounding
//===----------------------------------------------------------------------===//

static double roundTo(const llvm::fltSemantics &semantics, double value) {
  if (!APFloat::semanticsHasNaN(semantics)) {
    if (std::isnan(value))
      return 0;
    double largest = toDouble(APFloat::getLargest(semantics));
    value = std::clamp(value, -largest, largest);
  }
  APFloat rounded(value);
  bool losesInfo;
  rounded.convert(semantics, APFloat::rmNearestTiesToEven, &losesInfo);
  return toDouble(rounded);
}

/// The nearest power of two, of two the larger. APFloat has no such NaN.
static double roundToScale(double value, double least, double most) {
  if (std::isnan(value))
    return value;
  int exponent;
  double fraction = std::frexp(std::clamp(value, least, most), &exponent);
  return std::min(std::ldexp(fraction < 0.75 ? 0.5 : 1, exponent), most);
}

void shardc::roundToElement(Tensor &tensor) {
  Type type = tensor.getElementType();
  if (!tensor.isReal() || type.isF64())
    return;
  if (isScale(type)) {
    double least = Tensor::lowest(type), most = Tensor::highest(type);
    for (double &value : tensor.getReals())
      value = roundToScale(value, least, most);
    return;
  }
  const llvm::fltSemantics &semantics = semanticsOf(type);
  for (double &value : tensor.getReals())
    value = roundTo(semantics, value);
}
