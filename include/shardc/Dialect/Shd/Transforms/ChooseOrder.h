//===- ChooseOrder.h - The order in which a plan runs ---------*- C++ -*-===//

#ifndef SHARDC_DIALECT_SHD_TRANSFORMS_CHOOSEORDER_H
#define SHARDC_DIALECT_SHD_TRANSFORMS_CHOOSEORDER_H

#include "shardc/Optimizer/Context.h"
#include "shardc/Schedule/ScheduledProgram.h"

namespace shardc::shd {

/// A plan in time, and its order (WorkOrder.h); empty: that of the text. The
/// operations that were scheduled no longer exist.
struct OrderedPlan {
  ScheduledProgram scheduled;
  std::vector<int64_t> order;
};

/// Schedules a planned program, which stays as it is, in the order of its text
/// (where kernels forbid it, in that of `kernelOrder`, ListOrder.h), with
/// `memoryLimit` (none: what the machine has). Nothing if it cannot be made
/// explicit.
std::optional<OrderedPlan> scheduleInText(PlanningContext &context,
                                          ProgramOp planned,
                                          std::optional<int64_t> memoryLimit);

/// The same in that order or in one of list scheduling (ListOrder.h), whichever
/// is the fastest that fits; if none does, that of the least peak.
std::optional<OrderedPlan> chooseOrder(PlanningContext &context,
                                       ProgramOp planned,
                                       std::optional<int64_t> memoryLimit);

/// Has a plan run in the order of the text, or what kernels allow of it, if it
/// is as fast there as in the order that it has chosen and takes little more
/// memory.
void preferText(PlanningContext &context, ProgramOp planned,
                std::optional<int64_t> memoryLimit);

} // namespace shardc::shd

#endif // SHARDC_DIALECT_SHD_TRANSFORMS_CHOOSEORDER_H
