//===- Sharding.h - Meshes and layouts of tensors -------------*- C++ -*-===//
//
// The vocabulary that the cost, reshard, solver and optimizer libraries share:
// a logical mesh of named axes and the layout of one tensor on it. No MLIR.
// Notation and rules: How to Scale Your Model, chapter 3.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SHARDING_SHARDING_H
#define SHARDC_SHARDING_SHARDING_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace shardc {

/// One named axis of the logical mesh.
struct MeshAxis {
  std::string name;
  int64_t size = 1;
  /// Its devices are the stages of a pipeline: no tensor lies on it.
  bool isStages = false;
  bool operator==(const MeshAxis &other) const = default;
};

/// Position of an axis in `Mesh::axes`.
using AxisIndex = uint8_t;

/// Axes that split one dimension, the major one first.
using AxisList = llvm::SmallVector<AxisIndex, 4>;

/// A set of mesh axes, one bit per axis.
using AxisSet = uint32_t;

/// More axes than this are refused by the front end.
inline constexpr unsigned kMaxMeshAxes = 16;

inline AxisSet axisBit(AxisIndex axis) { return AxisSet(1) << axis; }
AxisSet axisSet(llvm::ArrayRef<AxisIndex> axes);

/// The logical device mesh, outermost axis first.
struct Mesh {
  llvm::SmallVector<MeshAxis, 4> axes;

  unsigned size() const { return axes.size(); }
  /// Number of devices: the product of the axis sizes.
  int64_t numDevices() const;
  /// Product of the sizes of `list`.
  int64_t groupSize(llvm::ArrayRef<AxisIndex> list) const;
  int64_t groupSize(AxisSet set) const;
  std::optional<AxisIndex> find(llvm::StringRef name) const;
  bool operator==(const Mesh &other) const = default;
};

/// How one tensor lies on the mesh: the axes of each dimension, and the axes
/// along which every device holds a partial sum (the book's {U_X}). An axis
/// appears at most once. Axes that appear nowhere replicate the tensor.
struct Layout {
  llvm::SmallVector<AxisList, 4> dims;
  AxisSet partial = 0;

  static Layout replicated(unsigned rank) {
    Layout layout;
    layout.dims.resize(rank);
    return layout;
  }

  unsigned rank() const { return dims.size(); }
  /// Axes that split some dimension.
  AxisSet sharded() const;
  /// Axes that split some dimension or carry a partial sum.
  AxisSet used() const { return sharded() | partial; }
  bool isReplicated() const { return used() == 0; }
  bool operator==(const Layout &other) const = default;
  /// A total order, by dimension, then axis order, then partial axes.
  bool operator<(const Layout &other) const;
};

// The name that LLVM looks up.
// NOLINTNEXTLINE(readability-identifier-naming)
llvm::hash_code hash_value(const Layout &layout);

/// Slots of experts whose tokens keep to few blocks of experts, so that fewer
/// copies of a token go to devices that have whole blocks than it has slots.
struct RoutedBlocks {
  unsigned dim = 0;
  /// Equal blocks of the dimension.
  int64_t count = 1;
  /// Copies of a token that go, over its copies in slots.
  double share = 1;

  bool operator==(const RoutedBlocks &other) const = default;
};

/// Global extents and element width of one tensor.
struct TensorShape {
  llvm::SmallVector<int64_t, 4> extents;
  unsigned elementBits = 0;
  std::optional<RoutedBlocks> routed = std::nullopt;

  unsigned rank() const { return extents.size(); }
  /// Bytes of the whole tensor (int4 and f4 take half a byte).
  double globalBytes() const;
  /// Bytes that one device holds under `layout`; dimensions that their axes do
  /// not divide are rounded up.
  double localBytes(const Mesh &mesh, const Layout &layout) const;
  bool operator==(const TensorShape &other) const = default;
};

// The name that LLVM looks up.
// NOLINTNEXTLINE(readability-identifier-naming)
llvm::hash_code hash_value(const TensorShape &shape);

/// The axes of the dimension of experts on the side of an all_to_all that has
/// more, if that adds axes to the other side's; null if it does not.
const AxisList *routedAxes(const RoutedBlocks &blocks, const Layout &from,
                           const Layout &to);

/// Extent that one device holds of a dimension of `extent` split over `axes`.
int64_t localExtent(const Mesh &mesh, int64_t extent,
                    llvm::ArrayRef<AxisIndex> axes);

/// True if every dimension is divided by the sizes of its axes.
bool divides(const Mesh &mesh, const TensorShape &shape, const Layout &layout);

/// The language's notation: `[B@X, D]{+Y}`, `[B@(X, Y), D]`, `[B, D]` (nothing
/// sharded; every list that is printed is closed).
std::string toString(const Mesh &mesh, const Layout &layout,
                     llvm::ArrayRef<std::string> indexNames);

} // namespace shardc

template <> struct std::hash<shardc::Layout> {
  size_t operator()(const shardc::Layout &layout) const {
    return hash_value(layout);
  }
};

#endif // SHARDC_SHARDING_SHARDING_H
