//===- RingAttention.h - Attention that runs around a ring ----*- C++ -*-===//
//
// Attention whose keys and values are on the axis that its queries are on: they
// travel around the devices of that axis, and each device attends to the part
// that it has. In an explicit program an all_gather that is marked stands for
// what travels, so that attention has the shardings of its rule.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHD_IR_RINGATTENTION_H
#define SHARDC_DIALECT_SHD_IR_RINGATTENTION_H

#include "shardc/Dialect/Shd/IR/Shd.h"

namespace shardc::shd {

/// The operands with the index that travels.
llvm::SmallVector<unsigned, 2> ringOperands(const ShardingRule &rule);

/// True for an all_gather that stands for parts that travel around a ring.
bool travels(mlir::Operation *collective);

/// The all_gathers that stand for what travels while the operation runs; none
/// if it does not run around a ring.
llvm::SmallVector<mlir::Operation *, 2> ringGathers(mlir::Operation *op);

/// The axis around which it runs.
std::optional<AxisIndex> ringAxis(const Mesh &mesh, mlir::Operation *op);

} // namespace shardc::shd

#endif // SHARDC_DIALECT_SHD_IR_RINGATTENTION_H
