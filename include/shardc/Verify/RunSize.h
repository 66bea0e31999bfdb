//===- RunSize.h - What running a program takes ---------------*- C++ -*-===//

#ifndef SHARDC_VERIFY_RUNSIZE_H
#define SHARDC_VERIFY_RUNSIZE_H

#include "mlir/IR/Operation.h"

namespace shardc {

/// Limits of what is run: about ten seconds, and 2 GB.
struct RunLimits {
  /// Elements that operations go through, all runs of all devices together.
  double steps = 5e8;
  /// Elements that devices hold: values live to the end of the program.
  double elements = 1e8;
};

/// Success if running `program` on each of `devices` keeps within the limits;
/// else an error at the operation that exceeds one.
llvm::LogicalResult checkRunSize(mlir::Operation *program, double devices,
                                 const RunLimits &limits = {});

/// The same without an error.
bool isRunnable(mlir::Operation *program, double devices,
                const RunLimits &limits = {});

} // namespace shardc

#endif // SHARDC_VERIFY_RUNSIZE_H
