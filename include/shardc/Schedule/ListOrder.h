//===- ListOrder.h - The order of independent work ------------*- C++ -*-===//
//
// List scheduling of a program whose plan is explicit:
// docs/CostModel.md#the-order-of-operations.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SCHEDULE_LISTORDER_H
#define SHARDC_SCHEDULE_LISTORDER_H

#include "shardc/Dialect/Shd/IR/Shd.h"

namespace shardc {

/// Where in the order of its block the kernel or repeat of an operation stands.
using ListOrder = llvm::DenseMap<mlir::Operation *, unsigned>;

/// How work is ordered. In the lists the compute stream of a block never waits
/// where there is work to do, and of the work that it may do takes that first
/// which has the longest way to the end of the block, through operations and
/// collectives. The gathers of weights that the step itself reads have ended
/// before it begins, or when its networks have carried them.
enum class ListRule {
  /// A local search from the faster of the lists. It does not look at memory.
  Searched,
  GathersDone,
  GathersInStep,
};

/// Quadratic in the operations of a block.
ListOrder listOrder(shd::ProgramOp program, const CollectiveModel &model,
                    ListRule rule);

/// The order of the text, in which a kernel (a part of a fusion group, where
/// the plan is not explicit) runs where its last operation stands, changed so
/// far that what reads an earlier operation of a kernel runs behind it; nothing
/// if the text has that order.
std::optional<ListOrder> kernelOrder(shd::ProgramOp program);

} // namespace shardc

#endif // SHARDC_SCHEDULE_LISTORDER_H
