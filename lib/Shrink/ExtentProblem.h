//===- ExtentProblem.h - Small extents that relate as large ones -*- C++
//-*-===//
//
// Private to lib/Verify: what the extents of a program must keep when they
// shrink, and the smallest ones that keep it. No MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_SHRINK_EXTENTPROBLEM_H
#define SHARDC_LIB_SHRINK_EXTENTPROBLEM_H

#include "shardc/Sharding/Sharding.h"
#include <vector>

namespace shardc {

/// An extent of at least 2, and the values that it may take.
struct ShrinkableExtent {
  int64_t original = 2;
  /// Divides the shrunk extent.
  int64_t step = 1;
  int64_t least = 2;
  int64_t most = 2;
  /// The least for which a shard has two elements where it had them.
  int64_t preferred = 2;
  /// Sizes that do not divide the extent, and should not afterwards.
  llvm::SmallVector<int64_t, 1> uneven;
  /// Also a number of iterations, which is 2 however large the extent: it has
  /// no place in the order of extents.
  bool isCount = false;
  /// Axes that split it.
  AxisSet axes = 0;

  explicit ShrinkableExtent(int64_t original)
      : original(original), most(original) {}
  /// `divisor` must divide the shrunk extent.
  void divideBy(int64_t divisor);
  void fixTo(int64_t value);
  bool isFixed() const { return least == most; }
  /// All but the preferences.
  bool admits(int64_t value) const {
    return value >= least && value <= most && value % step == 0;
  }
};

/// `whole` is the product or the sum of `parts`, which are smaller than it.
struct ExtentCombination {
  enum class Kind : uint8_t { Product, Sum };
  Kind kind = Kind::Product;
  unsigned whole = 0;
  llvm::SmallVector<unsigned, 3> parts;
  /// Parts of extent 1, which a sum counts.
  int64_t ones = 0;
};

/// `larger` exceeds `smaller` by at least `least`.
struct ExtentDistance {
  unsigned smaller = 0, larger = 0;
  int64_t least = 1;
};

struct ExtentProblem {
  /// Prefers the order of the original extents.
  bool prefersOrder = true;
  /// In ascending order.
  std::vector<ShrinkableExtent> extents;
  std::vector<ExtentCombination> combinations;
  std::vector<ExtentDistance> distances;
};

struct ShrunkExtents {
  std::vector<int64_t> values;
  /// Axes of the extents that stay as they are although their limits do not
  /// admit it: these axes must stay as they are too.
  AxisSet unmetAxes = 0;
};

/// The smallest values, the first extents first. Preferences give way where
/// they cannot be met together: first two elements in a shard, then the order
/// of extents that combinations and fixed values determine, then all order,
/// then unevenness. Extents whose combinations cannot be met stay as they are.
ShrunkExtents solve(const ExtentProblem &problem);

} // namespace shardc

#endif // SHARDC_LIB_SHRINK_EXTENTPROBLEM_H
