//===- GroupCosts.h - Roofline of fused operations ------------*- C++ -*-===//
//
// Turns strategies into work and HBM traffic of a part of a fusion group. Used
// by the optimizer for its tables and by shd-annotate-cost for the report.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_OPTIMIZER_GROUPCOSTS_H
#define SHARDC_OPTIMIZER_GROUPCOSTS_H

#include "shardc/Optimizer/Context.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace shardc {

/// The strategy of an operation whose plan is in its types.
Strategy explicitStrategy(const Mesh &mesh, mlir::Operation *op,
                          const ShardingRule &rule);

/// FLOPs on the matrix units of one run of an operation whose plan is in its
/// types: those of the busiest device, and of a device on average.
struct DeviceFlops {
  double busiest = 0, mean = 0;
};
DeviceFlops deviceFlops(const Mesh &mesh, mlir::Operation *op);

/// HBM traffic and FLOPs of operations under one strategy.
struct PartWork {
  struct Access {
    mlir::Value value;
    Layout layout;
    double bytes = 0;
    /// The part that is read: positions [first, second) along an index, without
    /// gaps; none: the value may be read whole.
    using Range = std::pair<int64_t, int64_t>;
    mlir::StringAttr index = {};
    llvm::SmallVector<Range, 1> ranges = {};
  };
  /// A slice of another value, and where that lies.
  struct View {
    mlir::Value value;
    Layout layout;
    Access whole;
  };
  double matrixFlops = 0, vectorFlops = 0;
  double matrixSeconds = 0, attentionSeconds = 0;
  /// Kernels that it runs in: one, or one for each chunk.
  double kernels = 1;
  /// HBM traffic beside reads and writes: of the steps of a ring.
  double ringBytes = 0;
  /// Values from outside, each once; values made, if they may be needed in HBM.
  llvm::SmallVector<Access, 4> reads, writes;
  /// Views that the part reads through.
  llvm::SmallVector<View, 1> views;
  /// False of views alone: nothing runs.
  bool runs = false;
};

/// Adds one operation, of sharding rule `rule`, to a part: its operands are
/// read, each value once per layout, unless the part made them. Through a view
/// the operations behind it read the whole that it shows.
void addOperation(const PlanningContext &context, mlir::Operation *op,
                  const ShardingRule &rule, const Strategy &strategy,
                  PartWork &part);

/// The work of a leader in the chunks of the row operation behind it, in
/// `rest`: each reads the operands again that have no index of the chunks, as
/// the weight of a product. All of it without chunks.
PartWork inChunks(PartWork part, mlir::Operation *leader,
                  llvm::ArrayRef<mlir::Operation *> rest);

/// The work of a row operation that runs in the chunks that it says.
PartWork inOwnChunks(PartWork part, llvm::ArrayRef<mlir::Operation *> rest);

/// Time of one or two parts that run as one kernel: what the first makes
/// and the second reads stays on the chip; `needed` says which values must be
/// written to HBM.
GroupCost costParts(const Machine &machine, const PartWork &first,
                    const PartWork *second,
                    llvm::function_ref<bool(mlir::Value)> needed);

} // namespace shardc

#endif // SHARDC_OPTIMIZER_GROUPCOSTS_H
