//===- DeviceBound.h - A bound by the work of a program --------*- C++ -*-===//
//
// Devices together do at least the work that one device with memory for all of
// it does: the same operations, and no byte of HBM traffic less. So no plan is
// faster than the program on one device, divided by the devices. Collectives
// and waits are not in it. That one device may do what no plan does: read from
// HBM a value that lies as it is wanted, in place of computing it again, as
// users do on more devices where the value is resharded.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHD_TRANSFORMS_DEVICEBOUND_H
#define SHARDC_DIALECT_SHD_TRANSFORMS_DEVICEBOUND_H

#include "shardc/Dialect/Shd/Transforms/NetworkSearch.h"

namespace shardc::shd {

/// Seconds that no plan takes less than on so many devices, from what is proven
/// of one. Times are rounded to picoseconds, one kernel at a time; there are at
/// most so many kernels.
inline double shareOfDevices(double seconds, double devices, double kernels) {
  constexpr double kRelative = 1e-9; // of the sums
  const double rounding = 0.5e-12 * kernels;
  return std::max(0.0,
                  (seconds - rounding) / devices * (1 - kRelative) - rounding);
}

/// Runs of all operations in a step: it has no more kernels.
double kernelsOf(ProgramOp program);

/// Seconds that no plan of the program takes less than, by any objective,
/// whatever its layouts, and with each operation in up to so many `parts`, one
/// after the other; nothing of pipelines, which are not planned whole, and of
/// losses in chunks, which are not in chunks in every plan.
std::optional<double>
boundByWork(ProgramOp program, NetworkSearchOptions options, double parts = 1);

} // namespace shardc::shd

#endif // SHARDC_DIALECT_SHD_TRANSFORMS_DEVICEBOUND_H
