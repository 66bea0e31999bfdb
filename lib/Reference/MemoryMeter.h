//===- MemoryMeter.h - Counts the bytes that devices hold -----*- C++ -*-===//

#ifndef SHARDC_LIB_REFERENCE_MEMORYMETER_H
#define SHARDC_LIB_REFERENCE_MEMORYMETER_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace shardc {

/// Bytes, by device.
using DeviceBytes = llvm::SmallVector<int64_t, 4>;

/// Memory in use on the devices, by the use of each piece, and its peak.
class MemoryMeter {
public:
  /// The owner of the memory, and its iteration.
  using Key = std::pair<const void *, int64_t>;

  explicit MemoryMeter(unsigned devices)
      : live(devices, 0), mostLive(devices, 0) {}

  /// From now on `key` holds this much, in place of what it held before.
  void hold(Key key, const DeviceBytes &bytes);
  void release(Key key) { hold(key, DeviceBytes(live.size(), 0)); }
  /// Something runs with what is held now.
  void sample();

  const DeviceBytes &peak() const { return mostLive; }

private:
  llvm::DenseMap<Key, DeviceBytes> held;
  DeviceBytes live, mostLive;
};

} // namespace shardc

#endif // SHARDC_LIB_REFERENCE_MEMORYMETER_H
