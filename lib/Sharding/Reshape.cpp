//===- Reshape.cpp - Layouts of a tensor and of its reshape ---------------===//

#include "shardc/Sharding/Reshape.h"
#include "llvm/ADT/STLExtras.h"

using namespace shardc;

/// A digit of the number of an element in row-major order: a device has one of
/// its values, by its coordinates on the axes, or without axes all of them.
struct Digit {
  int64_t size = 1;
  AxisList axes;

  bool operator==(const Digit &other) const = default;
};

/// The digits, the major one first, neighbours that a device has whole as one.
/// A dimension that its axes do not divide is one digit.
static llvm::SmallVector<Digit, 8> digitsOf(const Mesh &mesh,
                                            llvm::ArrayRef<int64_t> extents,
                                            const Layout &layout) {
  llvm::SmallVector<Digit, 8> digits;
  auto add = [&](int64_t size, llvm::ArrayRef<AxisIndex> axes) {
    if (size == 1)
      return;
    if (axes.empty() && !digits.empty() && digits.back().axes.empty())
      digits.back().size *= size; // of one tensor, whose size is an int64_t
    else
      digits.push_back({size, AxisList(axes)});
  };
  for (auto [extent, axes] : llvm::zip_equal(extents, layout.dims)) {
    int64_t group = mesh.groupSize(axes);
    if (extent % group != 0) {
      digits.push_back({extent, AxisList(axes)});
      continue;
    }
    for (AxisIndex axis : axes)
      add(mesh.axes[axis].size, axis);
    add(extent / group, {});
  }
  return digits;
}

bool shardc::areAlike(const Mesh &mesh, llvm::ArrayRef<int64_t> extents,
                      const Layout &layout, llvm::ArrayRef<int64_t> reshaped,
                      const Layout &other) {
  return layout.partial == other.partial &&
         digitsOf(mesh, extents, layout) == digitsOf(mesh, reshaped, other);
}
