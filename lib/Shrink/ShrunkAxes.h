//===- ShrunkAxes.h - Small meshes ----------------------------*- C++ -*-===//
//
// Private to lib/Verify: the sizes of mesh axes that shrink. No MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_SHRINK_SHRUNKAXES_H
#define SHARDC_LIB_SHRINK_SHRUNKAXES_H

#include "shardc/Sharding/Sharding.h"
#include <set>

namespace shardc {

/// Sets of axes, without common ones, whose sizes multiply to the same number.
using EqualGroups = std::set<std::pair<AxisSet, AxisSet>>;

/// The mesh of fewest devices whose axes are at most `maxAxis` (or, where equal
/// groups need it, a power of it or their own size), with the axes in `kept` as
/// they are, and of those in `twoWays` three devices, so that the two ways
/// around them differ.
Mesh shrinkAxes(const Mesh &mesh, const EqualGroups &equalGroups,
                int64_t maxAxis, AxisSet kept, AxisSet twoWays = 0);

} // namespace shardc

#endif // SHARDC_LIB_SHRINK_SHRUNKAXES_H
