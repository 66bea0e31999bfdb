//===- Parts.cpp - Devices of a mesh and their parts of a tensor ----------===//

#include "shardc/Reference/Parts.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace shardc;
using llvm::ArrayRef;
using llvm::SmallVector;

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

Devices::Devices(Mesh mesh)
    : theMesh(std::move(mesh)), count(unsigned(theMesh.numDevices())) {}

SmallVector<int64_t, 4> Devices::coordinates(unsigned device) const {
  SmallVector<int64_t, 4> result(theMesh.size(), 0);
  for (unsigned axis = theMesh.size(); axis-- > 0;) {
    result[axis] = device % theMesh.axes[axis].size;
    device /= theMesh.axes[axis].size;
  }
  return result;
}

unsigned Devices::at(ArrayRef<int64_t> coordinates) const {
  int64_t device = 0;
  for (auto [axis, coordinate] : llvm::zip_equal(theMesh.axes, coordinates))
    device = device * axis.size + coordinate;
  return unsigned(device);
}

std::string Devices::name(unsigned device) const {
  std::string text = "(";
  for (auto [axis, coordinate] :
       llvm::zip_equal(theMesh.axes, coordinates(device)))
    text += (text.size() > 1 ? ", " : "") + axis.name + "=" +
            std::to_string(coordinate);
  return text + ")";
}

SmallVector<unsigned, 8> Devices::group(unsigned device,
                                        ArrayRef<AxisIndex> axes) const {
  SmallVector<int64_t, 4> at = coordinates(device);
  SmallVector<unsigned, 8> members;
  int64_t size = theMesh.groupSize(axes);
  for (int64_t member = 0; member < size; ++member) {
    int64_t rest = member;
    for (AxisIndex axis : llvm::reverse(axes)) {
      at[axis] = rest % theMesh.axes[axis].size;
      rest /= theMesh.axes[axis].size;
    }
    members.push_back(this->at(at));
  }
  return members;
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

FactorRange shardc::partOf(const Mesh &mesh, int64_t extent,
                           ArrayRef<AxisIndex> axes,
                           ArrayRef<int64_t> coordinates) {
  FactorRange range{0, extent, extent};
  int64_t length = extent;
  for (AxisIndex axis : axes) {
    length = llvm::divideCeil(length, mesh.axes[axis].size);
    int64_t begin = coordinates[axis] * length;
    range.offset += begin;
    range.size = std::clamp<int64_t>(range.size - begin, 0, length);
  }
  return range;
}

Box shardc::partOf(const Devices &devices, ArrayRef<int64_t> shape,
                   const Layout &layout, unsigned device) {
  SmallVector<int64_t, 4> coordinates = devices.coordinates(device);
  Box box;
  for (auto [extent, axes] : llvm::zip_equal(shape, layout.dims))
    box.push_back(partOf(devices.mesh(), extent, axes, coordinates));
  return box;
}

Tensor shardc::partOfStack(const Tensor &stacked, int64_t number,
                           mlir::RankedTensorType part) {
  Tensor result(part);
  int64_t size = result.getNumElements();
  if (result.isReal())
    llvm::copy(stacked.getReals().slice(number * size, size),
               result.getReals().begin());
  else
    llvm::copy(stacked.getIntegers().slice(number * size, size),
               result.getIntegers().begin());
  return result;
}

void shardc::setPartOfStack(Tensor &stacked, int64_t number,
                            const Tensor &part) {
  int64_t first = number * part.getNumElements();
  if (part.isReal())
    llvm::copy(part.getReals(), stacked.getReals().begin() + first);
  else
    llvm::copy(part.getIntegers(), stacked.getIntegers().begin() + first);
}

Box shardc::wholeBox(ArrayRef<int64_t> shape) {
  Box box;
  for (int64_t extent : shape)
    box.push_back({0, extent, extent});
  return box;
}

int64_t shardc::numElements(const Box &box) {
  int64_t count = 1;
  for (const FactorRange &range : box)
    count *= range.size;
  return count;
}

std::optional<Box> shardc::intersect(const Box &a, const Box &b) {
  Box result;
  for (auto [left, right] : llvm::zip_equal(a, b)) {
    int64_t begin = std::max(left.offset, right.offset);
    int64_t end = std::min(left.offset + left.size, right.offset + right.size);
    if (begin >= end)
      return std::nullopt;
    result.push_back({begin, end - begin, left.whole});
  }
  return result;
}

/// Calls `visit` with the positions of each element of `what` in two arrays.
template <typename Visitor>
static void forEachElement(const Tensor &a, const Box &aBox, const Tensor &b,
                           const Box &bBox, const Box &what, Visitor visit) {
  if (numElements(what) == 0)
    return;
  SmallVector<int64_t, 4> aStrides = a.getStrides(), bStrides = b.getStrides();
  int64_t aAt = 0, bAt = 0;
  for (unsigned dim = 0; dim < what.size(); ++dim) {
    aAt += (what[dim].offset - aBox[dim].offset) * aStrides[dim];
    bAt += (what[dim].offset - bBox[dim].offset) * bStrides[dim];
  }
  SmallVector<int64_t, 4> index(what.size(), 0);
  while (true) {
    visit(aAt, bAt);
    unsigned dim = what.size();
    for (; dim-- > 0;) {
      aAt += aStrides[dim];
      bAt += bStrides[dim];
      if (++index[dim] < what[dim].size)
        break;
      aAt -= what[dim].size * aStrides[dim];
      bAt -= what[dim].size * bStrides[dim];
      index[dim] = 0;
    }
    if (dim == unsigned(-1))
      return;
  }
}

void shardc::copyBox(const Tensor &from, const Box &fromBox, Tensor &to,
                     const Box &toBox, const Box &what) {
  forEachElement(from, fromBox, to, toBox, what, [&](int64_t a, int64_t b) {
    if (from.isReal())
      to.getReals()[b] = from.getReals()[a];
    else
      to.getIntegers()[b] = from.getIntegers()[a];
  });
}

void shardc::addBox(const Tensor &from, const Box &fromBox, Tensor &to,
                    const Box &toBox, const Box &what) {
  forEachElement(from, fromBox, to, toBox, what, [&](int64_t a, int64_t b) {
    if (from.isReal())
      to.getReals()[b] += from.getReals()[a];
    else
      to.setInteger(b, to.getInteger(b) + from.getInteger(a));
  });
}

Tensor shardc::emptyPart(mlir::Type elementType, const Box &part,
                         ArrayRef<int64_t> localShape) {
  Tensor result(elementType, localShape);
  if (numElements(part) == result.getNumElements())
    return result;
  for (double &value : result.getReals())
    value = std::numeric_limits<double>::quiet_NaN();
  if (!result.isReal())
    for (int64_t i = 0; i < result.getNumElements(); ++i)
      result.setReal(i, Tensor::lowest(elementType));
  return result;
}

Tensor shardc::cut(const Tensor &whole, const Box &part,
                   ArrayRef<int64_t> localShape) {
  Tensor result = emptyPart(whole.getElementType(), part, localShape);
  copyBox(whole, wholeBox(whole.getShape()), result, part, part);
  return result;
}
