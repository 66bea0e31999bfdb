//===- CalibratedPrices.h - Calibrated terms in attributes -----*- C++ -*-===//
//
// How `calibrated_s` of a price holds the terms of a calibrated time, and
// `host` the part of the host.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHD_IR_CALIBRATEDPRICES_H
#define SHARDC_DIALECT_SHD_IR_CALIBRATEDPRICES_H

#include "mlir/IR/BuiltinAttributes.h"
#include "shardc/Cost/Collective.h"
#include "shardc/Cost/Operation.h"

namespace shardc::shd {

/// Null where the cost is not calibrated.
mlir::DenseF64ArrayAttr calibratedAttr(mlir::MLIRContext *context,
                                       const CollectiveCost &cost);
mlir::DenseF64ArrayAttr calibratedAttr(mlir::MLIRContext *context,
                                       const GroupCost &cost);

/// Null where the host has no part.
mlir::DenseF64ArrayAttr hostAttr(mlir::MLIRContext *context,
                                 const GroupCost &cost);
std::optional<HostCost> hostCost(mlir::DenseF64ArrayAttr attr);

/// Nothing for null.
std::optional<CalibratedCollective>
calibratedCollective(mlir::DenseF64ArrayAttr attr);
std::optional<CalibratedGroup> calibratedGroup(mlir::DenseF64ArrayAttr attr);

} // namespace shardc::shd

#endif // SHARDC_DIALECT_SHD_IR_CALIBRATEDPRICES_H
