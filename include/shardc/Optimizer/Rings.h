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

/// An operand that travels, or a result, of which each device has a part of so
/// many bytes, and the price of all its way. They travel together, in as many
/// permutes as there are steps, but one: each has its share of these.
struct RingMove {
  unsigned number = 0;
  bool isResult = false;
  double bytes = 0;
  CollectiveCost cost;
  /// The index of which halves go both ways; empty: all goes one way.
  std::string halved = {};
};
/// None for a strategy without a ring.
llvm::SmallVector<RingMove, 4> ringMoves(const CollectiveModel &model,
                                         mlir::Operation *op,
                                         const ShardingRule &rule,
                                         const Strategy &strategy);

/// One permute of so many bytes around the devices of an axis, or of half of
/// them each way at once.
CollectiveCost ringShiftCost(const CollectiveModel &model, AxisIndex axis,
                             double bytes, bool bothWays);

/// Bytes beside what travels: of the part that is here and of the one that
/// comes in.
int64_t ringBufferBytes(double partBytes);

/// Bytes of the f32 tensor to which the steps add.
double ringSumBytes(const ShardingRule &rule,
                    llvm::ArrayRef<int64_t> localExtents);

/// Bytes that the steps read and write beyond what one kernel would: what does
/// not travel is read in each, the sum is read and written, and sums that
/// travel are read by all but the first that adds to them.
double ringTraffic(const Mesh &mesh, const ShardingRule &rule,
                   const Strategy &strategy,
                   llvm::ArrayRef<double> operandBytes,
                   llvm::ArrayRef<double> resultBytes);

} // namespace shardc

#endif // SHARDC_OPTIMIZER_RINGS_H
