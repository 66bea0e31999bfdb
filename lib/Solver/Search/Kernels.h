//===- Kernels.h - Inner loops of the large-scale search ------*- C++ -*-===//
//
// Compiled for the machine at hand where that is possible. Additions and
// minima only, in the same order: the results do not depend on the machine.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SOLVER_SEARCH_KERNELS_H
#define SHARDC_SOLVER_SEARCH_KERNELS_H

#include <cstddef>
#include <cstdint>

namespace shardc::solver::search {

/// Rows are padded to a multiple of this, so that loops have no remainder.
inline constexpr uint32_t kLanes = 4;
inline uint32_t padded(uint32_t size) {
  return (size + kLanes - 1) / kLanes * kLanes;
}

/// out[j] = min over i of base[i] + table[i][j]; rows at least 1, columns a
/// multiple of kLanes.
void minPlus(float *out, const float *base, const float *table, size_t rows,
             size_t columns);

/// The message of a node whose labels cost `share` of `belief`, to the other
/// end of a pair: out[j] = min over i of share * belief[i] - in[i] +
/// table[i][j], less the least of these, which is returned.
float sendMessage(float *out, const float *belief, const float *in, float share,
                  float *rest, const float *table, size_t rows, size_t columns);

/// belief = own + the messages, which lie side by side; less the least of the
/// sums, which is returned. Sizes are padded; pads of `own` are large.
float collectMessages(float *belief, const float *own, const float *messages,
                      size_t count, size_t size);

/// out[j] += values[j].
inline void addTo(float *__restrict out, const float *__restrict values,
                  size_t size) {
  for (size_t j = 0; j < size; ++j)
    out[j] += values[j];
}

} // namespace shardc::solver::search

#endif // SHARDC_SOLVER_SEARCH_KERNELS_H
