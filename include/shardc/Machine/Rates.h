//===- Rates.h - What a machine's networks give one chip ------*- C++ -*-===//
//
// Bandwidths of networks as one chip sees them, and the arithmetic intensities
// at which memory and networks keep up with the matrix units:
// docs/CostModel.md#4-collectives, How to Scale Your Model chapters 1 and 5.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_MACHINE_RATES_H
#define SHARDC_MACHINE_RATES_H

#include "shardc/Machine/Machine.h"

namespace shardc {

/// Bytes/s that each network of the machine's shape gives one chip while all
/// chips use it, the fastest first. Of a torus: one link in one direction. Of a
/// switched level: w_i of docs/CostModel.md#4-collectives, what the link of one
/// of its members leaves each chip below, no more than the level's switches and
/// the levels between let through. Of a full mesh: all links of the chip.
llvm::SmallVector<double, 4> bandwidthsPerChip(const Machine &machine);

/// How many members a level can have: what the catalogue says, or the shape if
/// that is more.
int64_t largestExtent(const Machine &machine, unsigned physical);

/// FLOPs of a type for each byte of HBM traffic from which on an operation is
/// bound by compute. Nothing if the machine has no peak for the type.
std::optional<double> hbmIntensity(const Machine &machine,
                                   llvm::StringRef type);

/// FLOPs of one chip for each byte that it sends over a network of the shape
/// from which on the network is hidden; on a torus along one wrapped axis, both
/// ways at once.
std::optional<double> networkIntensity(const Machine &machine,
                                       llvm::StringRef type, unsigned network);

} // namespace shardc

#endif // SHARDC_MACHINE_RATES_H
