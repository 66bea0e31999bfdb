//===- Kernels.cpp - Inner loops of the large-scale search ----------------===//

#include "Kernels.h"
#include <algorithm>

#if defined(__x86_64__) && defined(__ELF__)
#define SHARDC_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define SHARDC_CLONES
#endif

namespace shardc::solver::search {

/// `width` columns from `table` on, which stay in registers over all rows.
template <size_t width>
[[gnu::always_inline]] static inline void
minPlusGroup(float *__restrict out, const float *__restrict base,
             const float *__restrict table, size_t rows, size_t columns) {
  float low[width];
  for (size_t k = 0; k < width; ++k)
    low[k] = base[0] + table[k];
  for (size_t i = 1; i < rows; ++i) {
    table += columns;
    for (size_t k = 0; k < width; ++k) {
      float sum = base[i] + table[k];
      low[k] = sum < low[k] ? sum : low[k];
    }
  }
  for (size_t k = 0; k < width; ++k)
    out[k] = low[k];
}

[[gnu::always_inline]] static inline void
minPlusRows(float *__restrict out, const float *__restrict base,
            const float *__restrict table, size_t rows, size_t columns) {
  size_t j = 0;
  for (; j + 4 * kLanes <= columns; j += 4 * kLanes)
    minPlusGroup<4 * kLanes>(out + j, base, table + j, rows, columns);
  if (j + 2 * kLanes < columns && j + 3 * kLanes >= columns) {
    minPlusGroup<3 * kLanes>(out + j, base, table + j, rows, columns);
    return;
  }
  for (; j + 2 * kLanes <= columns; j += 2 * kLanes)
    minPlusGroup<2 * kLanes>(out + j, base, table + j, rows, columns);
  for (; j < columns; j += kLanes)
    minPlusGroup<kLanes>(out + j, base, table + j, rows, columns);
}

SHARDC_CLONES
void minPlus(float *out, const float *base, const float *table, size_t rows,
             size_t columns) {
  minPlusRows(out, base, table, rows, columns);
}

/// The least of values whose number is a multiple of kLanes.
[[gnu::always_inline]] static inline float leastOf(const float *values,
                                                   size_t size) {
  float low[kLanes];
  for (size_t k = 0; k < kLanes; ++k)
    low[k] = values[k];
  for (size_t j = kLanes; j < size; j += kLanes)
    for (size_t k = 0; k < kLanes; ++k)
      low[k] = values[j + k] < low[k] ? values[j + k] : low[k];
  float least = low[0];
  for (size_t k = 1; k < kLanes; ++k)
    least = low[k] < least ? low[k] : least;
  return least;
}

SHARDC_CLONES
float sendMessage(float *__restrict out, const float *__restrict belief,
                  const float *__restrict in, float share,
                  float *__restrict rest, const float *__restrict table,
                  size_t rows, size_t columns) {
#pragma clang fp contract(off)
  for (size_t i = 0; i < (rows + kLanes - 1) / kLanes * kLanes; ++i)
    rest[i] = share * belief[i] - in[i];
  minPlusRows(out, rest, table, rows, columns);
  float least = leastOf(out, columns);
  for (size_t j = 0; j < columns; ++j)
    out[j] -= least;
  return least;
}

SHARDC_CLONES
float collectMessages(float *__restrict belief, const float *__restrict own,
                      const float *__restrict messages, size_t count,
                      size_t size) {
  for (size_t j = 0; j < size; ++j)
    belief[j] = own[j];
  for (size_t k = 0; k < count; ++k, messages += size)
    for (size_t j = 0; j < size; ++j)
      belief[j] += messages[j];
  float least = leastOf(belief, size);
  for (size_t j = 0; j < size; ++j)
    belief[j] -= least;
  return least;
}

} // namespace shardc::solver::search
