//===- Arithmetic.h - Exact and saturating integers of the solver -*- C++
//-*-===//
//
// The solver works in scaled int64: true costs times a power of two, so that
// prices of memory can be fractions. Values saturate at kInfinity; lowering a
// value never makes a lower bound wrong, so saturation is always safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SOLVER_ARITHMETIC_H
#define SHARDC_SOLVER_ARITHMETIC_H

#include "shardc/Solver/Problem.h"
#include <algorithm>
#include <cstddef>

namespace shardc::solver {

__extension__ typedef __int128 Int128;

/// A scaled cost.
using Scaled = int64_t;

/// Stands for "not allowed" among scaled costs. Four of them can be added.
inline constexpr Scaled kInfinity = kForbidden;

inline bool isForbidden(Cost cost) { return cost >= kForbidden; }

/// Sum of two costs, either of which may be forbidden.
inline Cost addCosts(Cost a, Cost b) {
  return isForbidden(a) || isForbidden(b) ? kForbidden : a + b;
}

/// Sum of two scaled costs in [0, kInfinity], saturated.
inline Scaled addScaled(Scaled a, Scaled b) {
  return std::min(a + b, kInfinity);
}

inline Scaled saturate(Int128 value) {
  return value >= kInfinity ? kInfinity : static_cast<Scaled>(value);
}

/// The least integer that is at least value / 2^shift.
inline Int128 ceilShift(Int128 value, unsigned shift) {
  return -((-value) >> shift);
}

/// out[j] = min(out[j], base + row[j]) for n entries.
void minPlus(Scaled *out, const Scaled *row, Scaled base, size_t n);

/// out[j] = min(out[j], base + a[j] + b[j]) for n entries.
void minPlus(Scaled *out, const Scaled *a, const Scaled *b, Scaled base,
             size_t n);

/// out[j] = min(out[j] + row[j], kInfinity) for n entries.
void addSaturated(Scaled *out, const Scaled *row, size_t n);

/// out[j] = min over i of matrix[i][j] - offsets[i]; rows >= 1. Rows and
/// columns may be any sizes; the matrix is row-major.
void minOverRows(Scaled *out, const Scaled *matrix, const Scaled *offsets,
                 size_t rows, size_t columns);

} // namespace shardc::solver

#endif // SHARDC_SOLVER_ARITHMETIC_H
