//===- Arithmetic.cpp - Min-plus kernels ----------------------------------===//
//
// The inner loops of elimination and of message passing, compiled for several
// instruction sets: 64-bit minima need AVX2 or AVX-512 to vectorise well.
//
//===----------------------------------------------------------------------===//

#include "shardc/Solver/Arithmetic.h"

// Resolvers run before a sanitizer's runtime is ready.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||     \
    __has_feature(memory_sanitizer)
#define SHARDC_NO_CLONES
#endif
#endif
#if defined(__x86_64__) && defined(__linux__) && defined(__clang__) &&         \
    !defined(SHARDC_NO_CLONES)
#define SHARDC_CLONES                                                          \
  __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define SHARDC_CLONES
#endif

namespace shardc::solver {

SHARDC_CLONES void minPlus(Scaled *__restrict out, const Scaled *__restrict row,
                           Scaled base, size_t n) {
  for (size_t j = 0; j < n; ++j)
    out[j] = std::min(out[j], base + row[j]);
}

SHARDC_CLONES Scaled minPlusMost(Scaled *__restrict out,
                                 const Scaled *__restrict row, Scaled base,
                                 size_t n) {
  Scaled most = std::numeric_limits<Scaled>::min();
  for (size_t j = 0; j < n; ++j) {
    out[j] = std::min(out[j], base + row[j]);
    most = std::max(most, out[j]);
  }
  return most;
}

SHARDC_CLONES void minPlus(Scaled *__restrict out, const Scaled *__restrict a,
                           const Scaled *__restrict b, Scaled base, size_t n) {
  for (size_t j = 0; j < n; ++j)
    out[j] = std::min(out[j], base + a[j] + b[j]);
}

SHARDC_CLONES void minPlus(Cost *__restrict out, Label *__restrict best,
                           const Cost *__restrict row, Cost base, Label label,
                           size_t n) {
  for (size_t j = 0; j < n; ++j) {
    Cost cost = base + row[j];
    bool isLess = cost < out[j];
    out[j] = isLess ? cost : out[j];
    best[j] = isLess ? label : best[j];
  }
}

SHARDC_CLONES void addSaturated(Scaled *__restrict out,
                                const Scaled *__restrict row, Scaled base,
                                size_t n) {
  for (size_t j = 0; j < n; ++j)
    out[j] = std::min(base + row[j], kInfinity);
}

SHARDC_CLONES Scaled leastOf(const Scaled *row, size_t n) {
  Scaled least = kInfinity;
  for (size_t j = 0; j < n; ++j)
    least = std::min(least, row[j]);
  return least;
}

SHARDC_CLONES void addSaturated(Scaled *__restrict out,
                                const Scaled *__restrict row, size_t n) {
  for (size_t j = 0; j < n; ++j)
    out[j] = std::clamp(out[j] + row[j], -kInfinity, kInfinity);
}

SHARDC_CLONES void addCapped(Scaled *__restrict out,
                             const Scaled *__restrict row, Scaled most,
                             size_t n) {
  for (size_t j = 0; j < n; ++j)
    out[j] += std::min(row[j], most);
}

SHARDC_CLONES void minOverRows(Scaled *__restrict out,
                               const Scaled *__restrict matrix,
                               const Scaled *__restrict offsets, size_t rows,
                               size_t columns) {
  for (size_t j = 0; j < columns; ++j)
    out[j] = 2 * kInfinity;
  // Rows that are left, two at a time.
  const Scaled *waiting = nullptr;
  Scaled waitingOffset = 0;
  for (size_t i = 0; i < rows; ++i) {
    const Scaled *row = matrix + i * columns;
    Scaled offset = offsets[i];
    if (offset <= -kInfinity)
      continue;
    if (!waiting) {
      waiting = row;
      waitingOffset = offset;
      continue;
    }
    for (size_t j = 0; j < columns; ++j)
      out[j] = std::min(out[j],
                        std::min(row[j] - offset, waiting[j] - waitingOffset));
    waiting = nullptr;
  }
  if (waiting)
    for (size_t j = 0; j < columns; ++j)
      out[j] = std::min(out[j], waiting[j] - waitingOffset);
}

SHARDC_CLONES void minOverColumns(Scaled *__restrict out,
                                  const Scaled *__restrict matrix,
                                  const Scaled *__restrict offsets, size_t rows,
                                  size_t columns) {
  for (size_t i = 0; i < rows; ++i) {
    const Scaled *row = matrix + i * columns;
    Scaled least = 2 * kInfinity;
    for (size_t j = 0; j < columns; ++j)
      least = std::min(least, row[j] - offsets[j]);
    out[i] = least;
  }
}

SHARDC_CLONES void addPriced(Scaled *out, const Scaled *costs,
                             const int64_t *__restrict bytes, int64_t whole,
                             int64_t part, unsigned shift, size_t n) {
#pragma clang loop vectorize(assume_safety)
  for (size_t j = 0; j < n; ++j)
    out[j] = std::min(costs[j] + bytes[j] * whole + (bytes[j] * part >> shift),
                      kInfinity);
}

} // namespace shardc::solver
