//===- Halos.h - Price and memory of halo exchanges -----------*- C++ -*-===//
//
// docs/CostModel.md#halos, for the optimizer's tables and for the explicit
// program.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_OPTIMIZER_HALOS_H
#define SHARDC_OPTIMIZER_HALOS_H

#include "shardc/Optimizer/Context.h"

namespace shardc {

/// The exchange of one operand, or the sum of one result: along which
/// dimension, how many bytes a device has with the halo, and the price.
struct HaloMove {
  unsigned number = 0;
  bool isResult = false;
  unsigned dim = 0;
  double bytes = 0;
  CollectiveCost cost;
};
/// None for a strategy without halos. A value that is read twice in one layout
/// is exchanged once.
llvm::SmallVector<HaloMove, 2> haloMoves(const CollectiveModel &model,
                                         mlir::Operation *op,
                                         const ShardingRule &rule,
                                         const Strategy &strategy);

/// One permute in which each device sends so many bytes to the next one in the
/// row-major order of the axes; the last one sends none. With two stretches of
/// positions, each sends as much to the one before, too, at the same time. The
/// way back costs as much.
CollectiveCost haloCost(const CollectiveModel &model,
                        llvm::ArrayRef<AxisIndex> axes, double bytes,
                        int64_t stretches);

/// The part of its extent that a device has of the factor of the rule's halo:
/// 1 without halos.
double shareWithHalo(const Mesh &mesh, const ShardingRule &rule,
                     const Strategy &strategy);

} // namespace shardc

#endif // SHARDC_OPTIMIZER_HALOS_H
