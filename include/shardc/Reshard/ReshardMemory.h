//===- ReshardMemory.h - Buffers of a sequence of collectives -*- C++ -*-===//

#ifndef SHARDC_RESHARD_RESHARDMEMORY_H
#define SHARDC_RESHARD_RESHARDMEMORY_H

#include "shardc/Cost/Collective.h"
#include <cmath>

namespace shardc {

/// Bytes alive on one device while a sequence of collectives runs: the operand
/// and the result of each step together, except that all_reduce works in place
/// (docs/CostModel.md#6-memory-of-one-device).
struct ReshardMemory {
  int64_t peakBytes = 0, resultBytes = 0;
  /// The same where the source stays as it is: slices of it are views, and the
  /// first array is a new one. Of what the sequence has made, the last array.
  int64_t extraPeakBytes = 0, madeBytes = 0;

  void add(CollectiveKind kind, int64_t fromBytes, int64_t toBytes) {
    if (kind == CollectiveKind::ToHost)
      return; // its result is not on the device
    bool isReduce = kind == CollectiveKind::AllReduce;
    peakBytes = std::max(peakBytes, fromBytes + (isReduce ? 0 : toBytes));
    resultBytes = toBytes;
    if (madeBytes > 0 ? isReduce : kind == CollectiveKind::AllSlice)
      return;
    extraPeakBytes = std::max(extraPeakBytes, madeBytes + toBytes);
    madeBytes = toBytes;
  }

  bool isView() const { return madeBytes == 0; }
  /// Beyond the source, where the result is used.
  int64_t extraBytes() const { return extraPeakBytes; }
  /// Beyond the result, where the source is made and goes away.
  int64_t storeExtraBytes() const { return peakBytes - resultBytes; }
};

/// Bytes that count in memory are whole.
inline int64_t wholeBytes(double bytes) { return int64_t(std::ceil(bytes)); }

} // namespace shardc

#endif // SHARDC_RESHARD_RESHARDMEMORY_H
