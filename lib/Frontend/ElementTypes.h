//===- ElementTypes.h - Common types and literals --------------*- C++ -*-===//
//
// The element type of a result (docs/Language.md#7-element-types), and
// literals, which adopt the type of the other operands.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_FRONTEND_ELEMENTTYPES_H
#define SHARDC_LIB_FRONTEND_ELEMENTTYPES_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include <optional>

namespace shardc {

/// A number of the program. Integers stay exact; what does not fit 64 bits or
/// comes from a division is real.
struct Scalar {
  bool isInteger = true;
  int64_t integer = 0;
  double real = 0;

  static Scalar get(int64_t value) { return {true, value, 0}; }
  static Scalar getReal(double value) { return {false, 0, value}; }
  double value() const { return isInteger ? double(integer) : real; }
  /// The value if it is an integer that fits, also of `16 / 4`.
  std::optional<int64_t> asInteger() const;
  bool isOne() const { return value() == 1.0; }
  bool isNegative() const { return value() < 0; }
  Scalar operator-() const;
  Scalar operator+(const Scalar &other) const;
  Scalar operator*(const Scalar &other) const;
  /// Always real: `/` of integers is f32.
  Scalar operator/(const Scalar &other) const;
};

/// As a person would write it: `3`, `0.5`.
std::string toString(const Scalar &scalar);

/// The language's classes of element types.
inline bool isBool(mlir::Type type) { return type.isInteger(1); }
inline bool isFloat(mlir::Type type) {
  return mlir::isa<mlir::FloatType>(type);
}
/// An integer that is not a bool.
inline bool isInteger(mlir::Type type) {
  return mlir::isa<mlir::IntegerType>(type) && !isBool(type);
}

/// The common type of two operands; nothing for two different 8-bit floats.
std::optional<mlir::Type> commonType(mlir::Type a, mlir::Type b);
/// The type that a literal has next to operands of type `other` (null: alone).
mlir::Type literalType(mlir::MLIRContext *context, const Scalar &scalar,
                       mlir::Type other);
/// `type` if it is a float, else f32 (functions of real numbers).
mlir::Type floatFor(mlir::Type type);

/// A rank-0 constant; nothing if the number does not fit the type.
std::optional<mlir::DenseElementsAttr> constantAttr(const Scalar &scalar,
                                                    mlir::Type type);

} // namespace shardc

#endif // SHARDC_LIB_FRONTEND_ELEMENTTYPES_H
