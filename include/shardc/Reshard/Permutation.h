//===- Permutation.h - Which device holds which part ----------*- C++ -*-===//
//
// The permutation of devices between two layouts that cut a tensor into the
// same parts.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RESHARD_PERMUTATION_H
#define SHARDC_RESHARD_PERMUTATION_H

#include "shardc/Cost/Collective.h"
#include <map>
#include <vector>

namespace shardc::reshard {

/// The axes of a set, in mesh order.
AxisList axisList(AxisSet axes);

/// Which coordinates number the same parts before and after: the parts that
/// the first list of axes counts (major first) are counted by the second.
using AxisExchange = std::pair<AxisList, AxisList>;

/// A bijection of the devices, independent of what is permuted: the device
/// that receives a part has the part's number on the new axes, its source has
/// it on the old ones. Axes that only the new layout uses are replicas in the
/// old one; they take their source coordinates from the axes that become idle,
/// so that every device sends exactly once.
class Permutation {
public:
  /// `from` and `to` split every dimension into equally many parts and have
  /// the same partial axes.
  Permutation(const Mesh &mesh, const Layout &from, const Layout &to);

  /// Axes along which coordinates change, in mesh order.
  AxisSet axes() const;
  /// The exchanges, in the order in which `source` applies them.
  llvm::ArrayRef<AxisExchange> exchanged() const { return exchanges; }
  /// Coordinates of the device that holds what `destination` receives, over
  /// all axes of the mesh.
  void source(const Mesh &mesh, llvm::ArrayRef<int64_t> destination,
              llvm::MutableArrayRef<int64_t> source) const;
  CollectiveCost cost(const CollectiveModel &model, double localBytes) const;
  bool operator<(const Permutation &other) const {
    return exchanges < other.exchanges;
  }

private:
  void addDim(const Mesh &mesh, llvm::ArrayRef<AxisIndex> from,
              llvm::ArrayRef<AxisIndex> to);
  void addReplicas();

  std::vector<AxisExchange> exchanges;
};

} // namespace shardc::reshard

#endif // SHARDC_RESHARD_PERMUTATION_H
