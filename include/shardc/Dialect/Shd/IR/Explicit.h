//===- Explicit.h - Programs whose plan is in their types -----*- C++ -*-===//
//
// After `shd-insert-collectives` shardings are in the types, and collectives
// stand where they differ. A program without a mesh needs neither.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHD_IR_EXPLICIT_H
#define SHARDC_DIALECT_SHD_IR_EXPLICIT_H

#include "shardc/Dialect/Shd/IR/Shd.h"

namespace shardc::shd {

/// Fails, with an error, where the plan is still to be made explicit.
llvm::LogicalResult checkExplicit(ProgramOp program);

/// The layout of a value of an explicit program; without a sharding it is
/// replicated.
Layout explicitLayout(const Mesh &mesh, mlir::Type type);

/// The operation that names the row of operations that are costed together.
mlir::Operation *leaderOf(llvm::ArrayRef<mlir::Operation *> part);

/// The value as it is stored for its users: what the collectives that belong to
/// its production make of it.
mlir::Value storedValue(mlir::Value value);

/// The copy in another layout that several readers of a stored value share, or
/// null.
mlir::Value sharedCopy(mlir::Value stored);

} // namespace shardc::shd

#endif // SHARDC_DIALECT_SHD_IR_EXPLICIT_H
