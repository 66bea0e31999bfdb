//===- ContractionOrder.h - In which order to multiply ---------*- C++ -*-===//
//
// The order of least FLOPs for a product of several tensors
// (docs/Language.md#6-statements-and-indices). No MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_FRONTEND_CONTRACTIONORDER_H
#define SHARDC_LIB_FRONTEND_CONTRACTIONORDER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <utility>

namespace shardc {

/// A set of indices, one bit each.
using IndexBits = uint64_t;
/// One product of two: positions of factors, or n + i for the result of step i.
using ContractionStep = std::pair<unsigned, unsigned>;

/// The steps that multiply all of `factors` with the least FLOPs; of equal ones
/// the leftmost first. An index is summed by the first step after which neither
/// another factor nor `needed` has it; such a step counts twice (multiply and
/// add). Exact up to 10 factors, then each next step is the cheapest one, then
/// (more than 100) from left to right.
llvm::SmallVector<ContractionStep>
contractionOrder(llvm::ArrayRef<IndexBits> factors,
                 llvm::ArrayRef<int64_t> extents, IndexBits needed);

} // namespace shardc

#endif // SHARDC_LIB_FRONTEND_CONTRACTIONORDER_H
