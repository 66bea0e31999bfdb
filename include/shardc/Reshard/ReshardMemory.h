//===- ReshardMemory.h - Buffers of a sequence of collectives -*- C++ -*-===//

#ifndef SHARDC_RESHARD_RESHARDMEMORY_H
#define SHARDC_RESHARD_RESHARDMEMORY_H

#include "shardc/Cost/Collective.h"
#include <cmath>

namespace shardc {

/// Bytes alive on one device while a sequence of collectives runs: the operand
/// and the result of each step together, except that all_reduce works in place
/// (cost-model.md section 6). Slices are views.
struct ReshardMemory {
  bool moves = false;
  int64_t sourceBytes = 0, peakBytes = 0, resultBytes = 0;

  void add(CollectiveKind kind, int64_t fromBytes, int64_t toBytes) {
    if (peakBytes == 0)
      sourceBytes = fromBytes;
    moves |= kind != CollectiveKind::AllSlice;
    bool inPlace = kind == CollectiveKind::AllReduce;
    peakBytes = std::max(peakBytes, fromBytes + (inPlace ? 0 : toBytes));
    resultBytes = toBytes;
  }

  /// Beyond the source, where the result is used: at least the result.
  int64_t extraBytes() const {
    return moves ? std::max(peakBytes - sourceBytes, resultBytes) : 0;
  }
  /// Beyond the result, where the source is made and goes away.
  int64_t storeExtraBytes() const { return peakBytes - resultBytes; }
};

/// Bytes that count in memory are whole.
inline int64_t wholeBytes(double bytes) { return int64_t(std::ceil(bytes)); }

} // namespace shardc

#endif // SHARDC_RESHARD_RESHARDMEMORY_H
