//===- PlanEvaluator.cpp - Schedules of a network's assignments -----------===//

#include "shardc/Dialect/Shd/Transforms/PlanEvaluator.h"
#include "shardc/Dialect/Shd/Transforms/ChooseOrder.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

/// `networks`: those that the network's resources are; the links to the host,
/// behind them, are none.
static EvaluatedPlan summarize(const ScheduledProgram &scheduled,
                               size_t networks) {
  const Schedule &schedule = scheduled.schedule;
  EvaluatedPlan plan;
  plan.busy.push_back(schedule.device);
  llvm::append_range(plan.busy, ArrayRef(schedule.busy).take_front(networks));
  plan.upper = schedule.upper;
  plan.lower = schedule.lower;
  plan.scheduled = schedule.scheduled;
  plan.memoryCosts = scheduled.memoryCosts;
  plan.unlimitedPeak = scheduled.unlimitedPeak;
  return plan;
}

std::optional<EvaluatedPlan>
PlanEvaluator::operator()(ArrayRef<solver::Label> assignment) const {
  applyAssignment(context, network, assignment);
  std::optional<OrderedPlan> plan =
      orders == ChainOrders::Text
          ? scheduleInText(context, program, network.problem.capacity)
          : chooseOrder(context, program, network.problem.capacity);
  removeCopies(program);
  if (!plan)
    return std::nullopt;
  return summarize(plan->scheduled, network.resources.size() - 1);
}
