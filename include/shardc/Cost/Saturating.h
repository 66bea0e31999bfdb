//===- Saturating.h - Sums and products that do not overflow --*- C++ -*-===//

#ifndef SHARDC_COST_SATURATING_H
#define SHARDC_COST_SATURATING_H

#include "llvm/Support/MathExtras.h"
#include <cstdint>

namespace shardc {

/// `a * b` and `a + b` of numbers of at least 0, saturated at the largest.
inline int64_t saturatingMultiply(int64_t a, int64_t b) {
  int64_t result;
  return llvm::MulOverflow(a, b, result) ? INT64_MAX : result;
}

inline int64_t saturatingAdd(int64_t a, int64_t b) {
  int64_t result;
  return llvm::AddOverflow(a, b, result) ? INT64_MAX : result;
}

} // namespace shardc

#endif // SHARDC_COST_SATURATING_H
