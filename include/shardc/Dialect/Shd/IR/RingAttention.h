//===- RingAttention.h - Attention that runs around a ring ----*- C++ -*-===//
//
// Attention whose keys and values are on the axis that its queries are on: they
// travel around the devices of that axis, and each device attends to the part
// that it has. In the backward pass the gradients of the keys and values that
// are here travel with them, and each device adds what its queries give. In an
// explicit program all_gathers and reduce_scatters that are marked stand for
// what travels, so that the operation has the shardings of its rule.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHD_IR_RINGATTENTION_H
#define SHARDC_DIALECT_SHD_IR_RINGATTENTION_H

#include "shardc/Dialect/Shd/IR/Shd.h"

namespace shardc::shd {

/// The operands with the index that travels.
llvm::SmallVector<unsigned, 2> ringOperands(const ShardingRule &rule);
/// The results with it.
llvm::SmallVector<unsigned, 2> ringResults(const ShardingRule &rule);

/// True for a collective that stands for parts that travel around a ring.
bool travels(mlir::Operation *collective);
/// The index of which a half of each part goes one way around the ring, the
/// other half the other way; empty if all goes one way.
llvm::StringRef halvedIndex(mlir::Operation *collective);

/// The all_gathers that stand for what travels while the operation runs; none
/// if it does not run around a ring.
llvm::SmallVector<mlir::Operation *, 2> ringGathers(mlir::Operation *op);
/// The reduce_scatters that stand for sums that travel while it runs, by
/// result.
llvm::SmallVector<mlir::Operation *, 2> ringScatters(mlir::Operation *op);
/// Both.
llvm::SmallVector<mlir::Operation *, 4> ringCollectives(mlir::Operation *op);

/// The axis around which it runs.
std::optional<AxisIndex> ringAxis(const Mesh &mesh, mlir::Operation *op);

} // namespace shardc::shd

#endif // SHARDC_DIALECT_SHD_IR_RINGATTENTION_H
