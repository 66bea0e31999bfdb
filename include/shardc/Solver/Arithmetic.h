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

/// The same; returns the largest that `out` has then.
Scaled minPlusMost(Scaled *out, const Scaled *row, Scaled base, size_t n);

/// out[j] = min(out[j], base + a[j] + b[j]) for n entries.
void minPlus(Scaled *out, const Scaled *a, const Scaled *b, Scaled base,
             size_t n);

/// out[j] = min(out[j], base + row[j]) for n entries, and best[j] = label where
/// that is less than before.
void minPlus(Cost *out, Label *best, const Cost *row, Cost base, Label label,
             size_t n);

/// out[j] = min(base + row[j], kInfinity) for n entries.
void addSaturated(Scaled *out, const Scaled *row, Scaled base, size_t n);

/// The least of n entries; at most kInfinity.
Scaled leastOf(const Scaled *row, size_t n);

/// out[j] += row[j] for n entries, within [-kInfinity, kInfinity]: messages may
/// take many times what is not allowed off a label. A row has 3 kInfinity at
/// most.
void addSaturated(Scaled *out, const Scaled *row, size_t n);

/// out[j] += min(row[j], most) for n entries.
void addCapped(Scaled *out, const Scaled *row, Scaled most, size_t n);

/// out[j] = min over i of matrix[i][j] - offsets[i], the matrix row-major; rows
/// whose offset is -kInfinity or less do not count. At least kInfinity if none
/// does.
void minOverRows(Scaled *out, const Scaled *matrix, const Scaled *offsets,
                 size_t rows, size_t columns);

/// out[i] = min over j of matrix[i][j] - offsets[j], the matrix row-major; at
/// least kInfinity if all those offsets are -kInfinity or less that are of
/// finite entries.
void minOverColumns(Scaled *out, const Scaled *matrix, const Scaled *offsets,
                    size_t rows, size_t columns);

/// out[j] = min(costs[j] + bytes[j] * price, kInfinity) for n entries, the
/// price being `whole` and `part` / 2^shift; products are rounded down, and
/// none exceeds kInfinity. `out` may be `costs`.
void addPriced(Scaled *out, const Scaled *costs, const int64_t *bytes,
               int64_t whole, int64_t part, unsigned shift, size_t n);

} // namespace shardc::solver

#endif // SHARDC_SOLVER_ARITHMETIC_H
