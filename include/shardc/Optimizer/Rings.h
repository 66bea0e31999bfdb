//===- Rings.h - Work and traffic of attention around a ring --*- C++ -*-===//
//
// docs/CostModel.md#ring-attention, for the optimizer's tables and for the
// explicit program.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_OPTIMIZER_RINGS_H
#define SHARDC_OPTIMIZER_RINGS_H

#include "shardc/Optimizer/Context.h"

namespace shardc {

/// An operand that travels, of which each device has a part of so many bytes,
/// and the price of all its way. The operands travel together, in one permute
/// for each step but the last: each has its share of these.
struct RingMove {
  unsigned operand = 0;
  double bytes = 0;
  CollectiveCost cost;
};
/// None for a strategy without a ring.
llvm::SmallVector<RingMove, 2> ringMoves(const CollectiveModel &model,
                                         mlir::Operation *op,
                                         const ShardingRule &rule,
                                         const Strategy &strategy);

/// One permute of so many bytes around the devices of an axis.
CollectiveCost ringShiftCost(const CollectiveModel &model, AxisIndex axis,
                             double bytes);

/// Bytes beside an operand that travels: of the part that is read and of the
/// one that comes in.
int64_t ringBufferBytes(double partBytes);

/// Bytes of the f32 tensor to which the steps add.
double ringSumBytes(const ShardingRule &rule,
                    llvm::ArrayRef<int64_t> localExtents);

/// Bytes that the steps read and write beyond what one kernel would: what does
/// not travel is read in each, and the sum is read and written.
double ringTraffic(const Mesh &mesh, const ShardingRule &rule,
                   const Strategy &strategy,
                   llvm::ArrayRef<double> operandBytes);

} // namespace shardc

#endif // SHARDC_OPTIMIZER_RINGS_H
