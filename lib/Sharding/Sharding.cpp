//===- Sharding.cpp - Meshes and layouts of tensors -----------------------===//
//
// Sizes of groups of axes, bytes per device, and the notation of layouts.
//
//===----------------------------------------------------------------------===//

#include "shardc/Sharding/Sharding.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cassert>
#include <limits>

using namespace shardc;

AxisSet shardc::axisSet(llvm::ArrayRef<AxisIndex> axes) {
  AxisSet set = 0;
  for (AxisIndex axis : axes)
    set |= axisBit(axis);
  return set;
}

//===----------------------------------------------------------------------===//
// Mesh
//===----------------------------------------------------------------------===//

/// The product of two sizes, at most the largest int64_t: a group that large
/// divides nothing and fits no machine.
static int64_t multiplySizes(int64_t a, int64_t b) {
  int64_t product;
  if (llvm::MulOverflow(a, b, product))
    return std::numeric_limits<int64_t>::max();
  return product;
}

int64_t Mesh::numDevices() const {
  int64_t devices = 1;
  for (const MeshAxis &axis : axes)
    devices = multiplySizes(devices, axis.size);
  return devices;
}

int64_t Mesh::groupSize(llvm::ArrayRef<AxisIndex> list) const {
  int64_t group = 1;
  for (AxisIndex axis : list)
    group = multiplySizes(group, axes[axis].size);
  return group;
}

int64_t Mesh::groupSize(AxisSet set) const {
  int64_t group = 1;
  for (unsigned axis = 0; axis < size(); ++axis)
    if (set & axisBit(axis))
      group = multiplySizes(group, axes[axis].size);
  return group;
}

std::optional<AxisIndex> Mesh::find(llvm::StringRef name) const {
  for (unsigned axis = 0; axis < size(); ++axis)
    if (axes[axis].name == name)
      return axis;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Layout
//===----------------------------------------------------------------------===//

AxisSet Layout::sharded() const {
  AxisSet set = 0;
  for (const AxisList &list : dims)
    set |= axisSet(list);
  return set;
}

bool Layout::operator<(const Layout &other) const {
  if (dims != other.dims)
    return dims < other.dims;
  return partial < other.partial;
}

llvm::hash_code shardc::hash_value(const Layout &layout) {
  llvm::hash_code code = llvm::hash_combine(layout.rank(), layout.partial);
  for (const AxisList &list : layout.dims)
    code = llvm::hash_combine(
        code, llvm::hash_combine_range(list.begin(), list.end()));
  return code;
}

std::string shardc::toString(const Mesh &mesh, const Layout &layout,
                             llvm::ArrayRef<std::string> indexNames) {
  assert(indexNames.size() == layout.rank() && "one name for each dimension");
  std::string text = "[";
  for (auto [position, list] : llvm::enumerate(layout.dims)) {
    if (position != 0)
      text += ", ";
    text += indexNames[position];
    if (list.empty())
      continue;
    text += list.size() > 1 ? "@(" : "@";
    text += llvm::join(llvm::map_range(list,
                                       [&](AxisIndex axis) -> llvm::StringRef {
                                         return mesh.axes[axis].name;
                                       }),
                       ", ");
    if (list.size() > 1)
      text += ")";
  }
  text += "]";
  if (layout.partial == 0)
    return text;
  llvm::StringRef separator = "{+";
  for (unsigned axis = 0; axis < mesh.size(); ++axis) {
    if (!(layout.partial & axisBit(axis)))
      continue;
    text += separator;
    text += mesh.axes[axis].name;
    separator = ", +";
  }
  return text + "}";
}

//===----------------------------------------------------------------------===//
// TensorShape
//===----------------------------------------------------------------------===//

double TensorShape::globalBytes() const {
  double bits = elementBits;
  for (int64_t extent : extents)
    bits *= static_cast<double>(extent);
  return bits / 8;
}

double TensorShape::localBytes(const Mesh &mesh, const Layout &layout) const {
  assert(layout.rank() == rank() && "a layout of another tensor");
  double bits = elementBits;
  for (auto [extent, list] : llvm::zip_equal(extents, layout.dims))
    bits *= static_cast<double>(localExtent(mesh, extent, list));
  return bits / 8;
}

llvm::hash_code shardc::hash_value(const TensorShape &shape) {
  llvm::hash_code hash = llvm::hash_combine(
      shape.elementBits,
      llvm::hash_combine_range(shape.extents.begin(), shape.extents.end()));
  if (const auto &routed = shape.routed)
    hash = llvm::hash_combine(hash, routed->dim, routed->count);
  return hash;
}

const AxisList *shardc::routedAxes(const RoutedBlocks &blocks,
                                   const Layout &from, const Layout &to) {
  const AxisList *less = &from.dims[blocks.dim], *more = &to.dims[blocks.dim];
  if (more->size() < less->size())
    std::swap(less, more);
  bool isPrefix =
      llvm::equal(*less, llvm::ArrayRef(*more).take_front(less->size()));
  return isPrefix && less->size() < more->size() ? more : nullptr;
}

int64_t shardc::localExtent(const Mesh &mesh, int64_t extent,
                            llvm::ArrayRef<AxisIndex> axes) {
  int64_t group = mesh.groupSize(axes);
  return extent / group + (extent % group != 0);
}

bool shardc::divides(const Mesh &mesh, const TensorShape &shape,
                     const Layout &layout) {
  assert(layout.rank() == shape.rank() && "a layout of another tensor");
  return llvm::all_of(llvm::zip_equal(shape.extents, layout.dims),
                      [&](auto pair) {
                        auto [extent, list] = pair;
                        return extent % mesh.groupSize(list) == 0;
                      });
}
