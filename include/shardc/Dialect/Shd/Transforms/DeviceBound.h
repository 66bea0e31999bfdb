//===- DeviceBound.h - A bound by the work of a program --------*- C++ -*-===//
//
// Devices together do at least the work that one device with memory for all of
// it does: the same operations, and no byte of HBM traffic less. So no plan is
// faster than the program on one device, divided by the devices. Collectives
// and waits are not in it.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHD_TRANSFORMS_DEVICEBOUND_H
#define SHARDC_DIALECT_SHD_TRANSFORMS_DEVICEBOUND_H

#include "shardc/Dialect/Shd/Transforms/NetworkSearch.h"

namespace shardc::shd {

/// Times are rounded to picoseconds, one operation at a time.
inline constexpr double kRounding = 1e-6;

/// Seconds that no plan takes less than on so many devices, from what is proven
/// of one.
inline double shareOfDevices(double seconds, double devices) {
  return seconds / devices * (1 - kRounding);
}

/// Picoseconds that no plan of the program takes less than, by any objective,
/// whatever its layouts; nothing of pipelines, which are not planned whole, and
/// of losses in chunks, which are not in chunks in every plan.
std::optional<solver::Cost> boundByWork(ProgramOp program,
                                        NetworkSearchOptions options);

} // namespace shardc::shd

#endif // SHARDC_DIALECT_SHD_TRANSFORMS_DEVICEBOUND_H
