//===- Halo.h - Operands with the rows of the part before -----*- C++ -*-===//
//
// Attention with a window, whose queries are on axes, reads its own part of the
// keys and the last rows of the part before; in zigzag order a part is two
// stretches of positions, with rows before each. In the backward pass the
// gradients of these rows go back. In an explicit program a halo_exchange of
// each operand and a halo_reduce of each gradient stand for them, so that the
// operation has the shardings of its rule.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHD_IR_HALO_H
#define SHARDC_DIALECT_SHD_IR_HALO_H

#include "shardc/Dialect/Shd/IR/Shd.h"

namespace shardc::shd {

/// The operands that may come with halos: those with the factor of the rule's.
llvm::SmallVector<unsigned, 2> haloOperands(const ShardingRule &rule);

/// The results with it, whose summands for the rows of the part before go back.
llvm::SmallVector<unsigned, 2> haloResults(const ShardingRule &rule);

/// The axes on which pins of operands place the factor of the rule's halo and
/// the one along which the operation is split; empty without a rule.
struct HaloPins {
  AxisList halo, along;
};
HaloPins haloPins(const Mesh &mesh, mlir::Operation *op,
                  const ShardingRule &rule);

/// The parts that the rows of a halo_exchange or halo_reduce, of either
/// dialect, are dealt to: 1 where they are not in zigzag order.
int64_t haloDealt(mlir::Operation *op);
/// How many rows of others it has on a device: those before each stretch of
/// positions.
int64_t haloRows(mlir::Operation *op);

/// The halo_exchange of the first operand that comes with a halo; null if none
/// does.
HaloExchangeOp haloOf(mlir::Operation *op);
/// The halo_reduce of a value; null if there is none.
HaloReduceOp haloReduceOf(mlir::Value value);

} // namespace shardc::shd

#endif // SHARDC_DIALECT_SHD_IR_HALO_H
