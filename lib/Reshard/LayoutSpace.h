//===- LayoutSpace.h - Layouts that a reshard may pass through -*- C++ -*-===//
//
// Private to lib/Reshard: which layouts are the nodes of a search.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_RESHARD_LAYOUTSPACE_H
#define SHARDC_LIB_RESHARD_LAYOUTSPACE_H

#include "shardc/Sharding/ShardingRule.h"
#include <array>
#include <vector>

namespace shardc::reshard {

/// Dimensions, in order.
using DimList = llvm::SmallVector<unsigned, 2>;

/// A set of dimensions, one bit each.
using DimSet = uint64_t;
inline constexpr DimSet kAllDims = ~DimSet(0);

/// For each axis the one that moves with it and comes right after it, or
/// itself.
using AxisSuccessors = std::array<AxisIndex, kMaxMeshAxes>;

/// How a layout places axes next to each other.
struct AxisLinks {
  explicit AxisLinks(const Layout &layout);

  /// For each axis the one that splits its parts further, or itself.
  AxisSuccessors next;
  AxisSet sharded = 0, partial = 0;
  /// Dimensions that it splits.
  DimSet dims = 0;
};

/// The axes of `axes` that move together between two layouts: neighbours in one
/// dimension of both, or of one while the other treats them alike; and
/// neighbours in the mesh that neither of them places and both treat alike.
AxisSuccessors axesTogether(AxisSet axes, const AxisLinks &from,
                            const AxisLinks &to);

/// The links of blocks that a layout treats as one.
AxisSuccessors linksWithin(const AxisBlocks &blocks, const AxisLinks &links);

/// A set of layouts of one tensor.
struct LayoutSpace {
  /// Axes that each dimension keeps, at its major end.
  llvm::SmallVector<AxisList, 4> fixed;
  /// Lists of axes that are placed as one; each may be idle, in a dimension,
  /// or partial.
  llvm::SmallVector<AxisList, 4> atoms;
  /// Axes that may be partial.
  AxisSet partial = 0;
  /// Dimensions that axes may split, one bit each.
  DimSet dims = kAllDims;
  /// Dimensions that may be padded: any axes may split them.
  DimList padded;

  /// One atom for each of `axes`.
  static LayoutSpace ofAxes(unsigned rank, AxisSet axes, AxisSet partial,
                            DimList padded);
  /// Only what moves on the way between two layouts: axes that are next to
  /// each other in both are one atom, and with `fixCommon` the axes that both
  /// have at the major end of a dimension stay.
  static LayoutSpace between(const Layout &from, const Layout &to,
                             DimList padded, bool fixCommon);

  /// Those of `axes`, where axes that `successors` puts after one another are
  /// one atom.
  static LayoutSpace joined(unsigned rank, AxisSet axes,
                            const AxisSuccessors &successors, AxisSet partial,
                            DimList padded);

  /// Number of layouts, but for divisibility.
  double count() const;
  /// All of them that the mesh divides, in the order of layouts.
  std::vector<Layout> enumerate(const Mesh &mesh,
                                const TensorShape &shape) const;
};

/// `layout` reduced, in each dimension, to the axes that `other` has too at
/// the major end. Partial sums are those of `other`.
Layout commonPrefix(const Layout &layout, const Layout &other);

/// Dimensions that `a` or `b` does not divide.
DimList paddedDims(const Mesh &mesh, const TensorShape &shape, const Layout &a,
                   const Layout &b);

} // namespace shardc::reshard

#endif // SHARDC_LIB_RESHARD_LAYOUTSPACE_H
