//===- ElementTypes.cpp - Common types and literals -----------------------===//

#include "ElementTypes.h"
#include "mlir/IR/Builders.h"
#include "shardc/Dialect/Shd/IR/Shd.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace shardc;
using mlir::Type;

//===----------------------------------------------------------------------===//
// Literals
//===----------------------------------------------------------------------===//

std::optional<int64_t> Scalar::asInteger() const {
  if (isInteger)
    return integer;
  // Doubles hold the integers up to 2^53 exactly.
  constexpr double limit = 9007199254740992.0;
  if (!(std::abs(real) <= limit) || real != std::floor(real))
    return std::nullopt;
  return int64_t(real);
}

Scalar Scalar::operator-() const { return *this * get(-1); }

Scalar Scalar::operator+(const Scalar &other) const {
  int64_t sum = 0;
  if (isInteger && other.isInteger &&
      !__builtin_add_overflow(integer, other.integer, &sum))
    return get(sum);
  return getReal(value() + other.value());
}

Scalar Scalar::operator*(const Scalar &other) const {
  int64_t product = 0;
  if (isInteger && other.isInteger &&
      !__builtin_mul_overflow(integer, other.integer, &product))
    return get(product);
  return getReal(value() * other.value());
}

Scalar Scalar::operator/(const Scalar &other) const {
  return getReal(value() / other.value());
}

std::string shardc::toString(const Scalar &scalar) {
  if (scalar.isInteger)
    return std::to_string(scalar.integer);
  return llvm::formatv("{0}", llvm::format("%g", scalar.real));
}

Type shardc::literalType(mlir::MLIRContext *context, const Scalar &scalar,
                         Type other) {
  mlir::Builder builder(context);
  if (!other || isBool(other) || (isInteger(other) && !scalar.isInteger))
    return scalar.isInteger ? Type(builder.getI32Type())
                            : Type(builder.getF32Type());
  return other;
}

std::optional<mlir::DenseElementsAttr>
shardc::constantAttr(const Scalar &scalar, Type type) {
  auto tensor = mlir::RankedTensorType::get({}, type);
  if (auto floatType = mlir::dyn_cast<mlir::FloatType>(type)) {
    const llvm::fltSemantics &semantics = floatType.getFloatSemantics();
    if (shd::isScale(type) && !(scalar.value() > 0))
      return std::nullopt;
    llvm::APFloat value(scalar.value());
    bool losesInfo = false;
    value.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    // Types without an infinity saturate, as casts do.
    if (std::isinf(scalar.value()) && !value.isInfinity())
      value = llvm::APFloat::getLargest(semantics, scalar.isNegative());
    return mlir::DenseElementsAttr::get(tensor, value);
  }
  auto integerType = mlir::cast<mlir::IntegerType>(type);
  if (!scalar.isInteger)
    return std::nullopt;
  unsigned width = integerType.getWidth();
  bool isUnsigned = integerType.isUnsigned() || width == 1;
  bool fits = isUnsigned
                  ? scalar.integer >= 0 && llvm::isUIntN(width, scalar.integer)
                  : llvm::isIntN(width, scalar.integer);
  if (!fits)
    return std::nullopt;
  llvm::APInt value(width, scalar.integer, !isUnsigned);
  return mlir::DenseElementsAttr::get(tensor, value);
}

//===----------------------------------------------------------------------===//
// Common types
//===----------------------------------------------------------------------===//

/// Order of float types by what they can hold; equal ranks are different types
/// of which neither holds the other.
static unsigned floatRank(Type type) {
  return llvm::TypeSwitch<Type, unsigned>(type)
      .Case([](mlir::Float64Type) { return 6u; })
      .Case([](mlir::Float32Type) { return 5u; })
      .Case([](mlir::FloatTF32Type) { return 4u; })
      .Case<mlir::Float16Type, mlir::BFloat16Type>([](Type) { return 3u; })
      .Case<mlir::Float8E4M3FNType, mlir::Float8E5M2Type>(
          [](Type) { return 2u; })
      .Default(1u);
}

static std::optional<Type> commonFloat(Type a, Type b) {
  // A scaled number of few bits has no more of them, but the scale's range.
  for (Type *type : {&a, &b})
    if (shd::isScale(*type))
      *type = mlir::BFloat16Type::get(type->getContext());
  if (a == b)
    return a;
  unsigned rankA = floatRank(a), rankB = floatRank(b);
  if (rankA != rankB)
    return rankA > rankB ? a : b;
  if (rankA == 3)
    return mlir::Float32Type::get(a.getContext());
  return std::nullopt;
}

/// As NumPy: the smallest type that holds both.
static Type commonInteger(mlir::IntegerType a, mlir::IntegerType b) {
  if (a.isUnsigned() == b.isUnsigned())
    return a.getWidth() >= b.getWidth() ? a : b;
  auto [unsignedType, signedType] =
      a.isUnsigned() ? std::pair(a, b) : std::pair(b, a);
  if (signedType.getWidth() > unsignedType.getWidth())
    return signedType;
  return mlir::IntegerType::get(a.getContext(), 2 * unsignedType.getWidth());
}

std::optional<Type> shardc::commonType(Type a, Type b) {
  if (a == b)
    return a;
  if (isFloat(a) && isFloat(b))
    return commonFloat(a, b);
  if (isFloat(a) || isBool(b))
    return a;
  if (isFloat(b) || isBool(a))
    return b;
  return commonInteger(mlir::cast<mlir::IntegerType>(a),
                       mlir::cast<mlir::IntegerType>(b));
}

Type shardc::floatFor(Type type) {
  return isFloat(type) ? type : Type(mlir::Float32Type::get(type.getContext()));
}
