//===- ExtentRules.h - What operations ask of extents ---------*- C++ -*-===//
//
// A sharding rule says which dimensions have the same extent, or consist of
// others. What else the extents of an operation must keep is here, for tools
// that change them. No MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SHARDING_EXTENTRULES_H
#define SHARDC_SHARDING_EXTENTRULES_H

#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace shardc {

struct ExtentRules {
  /// The parts add up to the whole.
  struct Sum {
    int64_t whole = 0;
    llvm::SmallVector<int64_t, 3> parts;
  };
  /// The part lies within the whole, which has at least `least` elements more.
  struct Distance {
    int64_t part = 0, whole = 0, least = 0;
  };

  llvm::SmallVector<int64_t, 1> even;
  llvm::SmallVector<Sum, 1> sums;
  llvm::SmallVector<Distance, 1> distances;
};

} // namespace shardc

#endif // SHARDC_SHARDING_EXTENTRULES_H
