//===- Tensor.h - Values of tensors, for evaluation -------------*- C++ -*-===//
//
// Values of the reference interpreter: dense tensors that hold real types in
// double precision and integers exactly, and the part of an operation's
// iteration space that one device has.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TENSOR_TENSOR_H
#define SHARDC_TENSOR_TENSOR_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <vector>

namespace shardc {

/// A dense tensor in row-major order. Elements of real types are doubles, those
/// of integers and bool (0 or 1) 64-bit integers in the range of their type.
class Tensor {
public:
  /// A null tensor: no element type, no elements.
  Tensor() = default;
  /// Zeros.
  Tensor(mlir::Type elementType, llvm::ArrayRef<int64_t> shape);
  explicit Tensor(mlir::RankedTensorType type)
      : Tensor(type.getElementType(), type.getShape()) {}

  mlir::Type getElementType() const { return elementType; }
  llvm::ArrayRef<int64_t> getShape() const { return shape; }
  unsigned getRank() const { return shape.size(); }
  int64_t getNumElements() const {
    return static_cast<int64_t>(realTyped ? reals.size() : integers.size());
  }
  /// True for floating-point element types.
  bool isReal() const { return realTyped; }
  /// How far apart in row-major order neighbours along each dimension are.
  llvm::SmallVector<int64_t, 4> getStrides() const;

  /// The element of any type as a real number.
  double getReal(int64_t element) const {
    return realTyped ? reals[element] : static_cast<double>(integers[element]);
  }
  /// The element of an integer type.
  int64_t getInteger(int64_t element) const {
    assert(!realTyped && "real numbers are not read as integers");
    return integers[element];
  }

  /// Sets an element of any type; integer types take the nearest integer, ties
  /// to even, saturated, bool whether the value is not 0.
  void setReal(int64_t element, double value) {
    if (realTyped)
      reals[element] = value;
    else
      integers[element] = saturate(elementType, value);
  }
  /// Sets an element of any type; integer types wrap (two's complement).
  void setInteger(int64_t element, int64_t value) {
    if (realTyped)
      reals[element] = static_cast<double>(value);
    else
      integers[element] = wrap(elementType, value);
  }

  /// The whole storage; the one that the element type does not have is empty.
  llvm::ArrayRef<double> getReals() const { return reals; }
  llvm::MutableArrayRef<double> getReals() { return reals; }
  llvm::ArrayRef<int64_t> getIntegers() const { return integers; }
  llvm::MutableArrayRef<int64_t> getIntegers() { return integers; }

  /// Same element type, shape and elements; NaN equals NaN, 0 equals -0.
  bool operator==(const Tensor &other) const;

  /// The value in the range of an integer type: that of its low bits, or the
  /// nearest integer (ties to even) within the range (NaN: 0). Of bool whether
  /// it is not 0, so that sums are *or* and products *and*.
  static int64_t wrap(mlir::Type integerType, int64_t value);
  static int64_t saturate(mlir::Type integerType, double value);
  /// The least and the greatest value of an element type: infinities where it
  /// has them. The least of f8e8m0 is above 0.
  static double lowest(mlir::Type elementType);
  static double highest(mlir::Type elementType);
  /// The greatest finite value of a real type.
  static double highestFinite(mlir::Type realType);

private:
  mlir::Type elementType;
  llvm::SmallVector<int64_t, 4> shape;
  bool realTyped = false;
  std::vector<double> reals;
  std::vector<int64_t> integers;
};

/// The number of elements of a shape.
int64_t numElements(llvm::ArrayRef<int64_t> shape);

/// Rounds every element to its element type, to nearest, ties to even. What is
/// too large becomes infinity; without one NaN (f8e4m3) or the greatest value
/// (f4e2m1, which lacks NaN too: 0). f8e8m0 takes the nearest power of two that
/// it has, also for 0 and less. Integers stay.
void roundToElement(Tensor &tensor);

/// The part of a factor of an operation's sharding rule that a device has:
/// elements [offset, offset + size) of `whole`. The extent of its arrays may be
/// larger than `size`: what lies beyond is padding, never read into a result,
/// and 0 in results. The first `halo` of them are not those of the part, which
/// begins behind them, but come from other devices.
struct FactorRange {
  int64_t offset = 0;
  int64_t size = 1;
  int64_t whole = 1;
  int64_t halo = 0;

  bool operator==(const FactorRange &other) const = default;
};

/// Meaning of a position outside of [0, whole) in a gather, a scatter or a
/// label.
enum class PositionPolicy : uint8_t {
  /// An error of the operation.
  Error,
  /// Taken modulo `whole`, as for programs whose extents were reduced.
  Wrap,
};

} // namespace shardc

#endif // SHARDC_TENSOR_TENSOR_H
