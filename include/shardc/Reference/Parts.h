//===- Parts.h - Devices of a mesh and their parts of a tensor -*- C++ -*-===//

#ifndef SHARDC_REFERENCE_PARTS_H
#define SHARDC_REFERENCE_PARTS_H

#include "shardc/Sharding/Sharding.h"
#include "shardc/Tensor/Tensor.h"
#include <optional>

namespace shardc {

/// The devices of a mesh, numbered by their coordinates, the last axis
/// innermost.
class Devices {
public:
  explicit Devices(Mesh mesh);

  const Mesh &mesh() const { return theMesh; }
  unsigned size() const { return count; }
  llvm::SmallVector<int64_t, 4> coordinates(unsigned device) const;
  unsigned at(llvm::ArrayRef<int64_t> coordinates) const;
  /// `(X=1, Y=0)`.
  std::string name(unsigned device) const;
  /// The devices that differ from `device` on `axes` only, in the order of
  /// their coordinates on these, the last axis innermost.
  llvm::SmallVector<unsigned, 8> group(unsigned device,
                                       llvm::ArrayRef<AxisIndex> axes) const;

private:
  Mesh theMesh;
  unsigned count = 1;
};

/// The part of a dimension of `extent` that the device at `coordinates` has if
/// it is split over `axes`, one after the other. Parts are as long as those of
/// the first device; the last ones may have fewer true elements, or none.
FactorRange partOf(const Mesh &mesh, int64_t extent,
                   llvm::ArrayRef<AxisIndex> axes,
                   llvm::ArrayRef<int64_t> coordinates);

/// A range of each dimension of a global tensor.
using Box = llvm::SmallVector<FactorRange, 4>;

/// The part of a tensor that a device holds.
Box partOf(const Devices &devices, llvm::ArrayRef<int64_t> shape,
           const Layout &layout, unsigned device);

int64_t numElements(const Box &box);
std::optional<Box> intersect(const Box &a, const Box &b);

/// Copies, or adds, the elements of `what` from an array that holds `fromBox`
/// to one that holds `toBox`; both contain `what`.
void copyBox(const Tensor &from, const Box &fromBox, Tensor &to,
             const Box &toBox, const Box &what);
void addBox(const Tensor &from, const Box &fromBox, Tensor &to,
            const Box &toBox, const Box &what);

/// A device's array of `localShape` for a part of a tensor: zeros. If there is
/// padding, everything is what shows if it is used: NaN, or the least integer.
Tensor emptyPart(mlir::Type elementType, const Box &part,
                 llvm::ArrayRef<int64_t> localShape);

/// The same with the elements of the whole tensor.
Tensor cut(const Tensor &whole, const Box &part,
           llvm::ArrayRef<int64_t> localShape);

/// Part `number` of a stacked tensor, in row-major order of the dimensions that
/// the part lacks.
Tensor partOfStack(const Tensor &stacked, int64_t number,
                   mlir::RankedTensorType part);

/// Writes it.
void setPartOfStack(Tensor &stacked, int64_t number, const Tensor &part);

/// All of a tensor.
Box wholeBox(llvm::ArrayRef<int64_t> shape);

} // namespace shardc

#endif // SHARDC_REFERENCE_PARTS_H
