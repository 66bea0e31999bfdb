//===- ChooseOrder.cpp - The order in which a plan runs --------*- C++ -*-===//

#include "shardc/Dialect/Shd/Transforms/ChooseOrder.h"
#include "WriteOrder.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/OwningOpRef.h"
#include "shardc/Dialect/Shd/IR/WorkOrder.h"
#include "shardc/Dialect/Shd/Transforms/MakeExplicit.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

/// The text's order is easier to follow: it may take so many times the memory.
static constexpr double kMemoryOfText = 1.1;

namespace {

/// A copy of a planned program, made explicit.
struct ExplicitCopy {
  OwningOpRef<ModuleOp> module;
  ProgramOp program;
  IRMapping mapping;
  /// Empty: that of the text.
  std::vector<int64_t> order;
};

} // namespace

/// A copy in this order; the text's if it is empty.
static std::optional<ExplicitCopy> makeExplicit(PlanningContext &context,
                                                ProgramOp planned,
                                                ArrayRef<int64_t> order) {
  ExplicitCopy copy;
  copy.module = ModuleOp::create(planned->getLoc());
  copy.program = cast<ProgramOp>(planned->clone(copy.mapping));
  copy.module->push_back(copy.program);
  moveInOrder(copy.program, order);
  if (failed(insertCollectives(context, copy.program)) ||
      failed(annotateCost(context, copy.program)))
    return std::nullopt;
  copy.order = order.vec();
  return copy;
}

static std::vector<int64_t> orderOf(ProgramOp planned, const ExplicitCopy &copy,
                                    const ListOrder &ranks) {
  return writeOrder(planned, ranks, [&](Operation *op) {
    return copy.mapping.lookupOrNull(op);
  });
}

/// The text's order, or what kernels allow of it. Stages of a pipeline keep the
/// text's: their parts are told apart by it.
static std::optional<ExplicitCopy> makeExplicitInText(PlanningContext &context,
                                                      ProgramOp planned) {
  std::optional<ExplicitCopy> copy = makeExplicit(context, planned, {});
  if (!copy || planned.getPipeline())
    return copy;
  std::optional<ListOrder> ranks = kernelOrder(copy->program);
  if (!ranks)
    return copy;
  return makeExplicit(context, planned, orderOf(planned, *copy, *ranks));
}

static OrderedPlan scheduleCopy(PlanningContext &context,
                                const ExplicitCopy &copy,
                                std::optional<int64_t> memoryLimit) {
  return {scheduleProgram(copy.program, context.model, memoryLimit),
          copy.order};
}

std::optional<OrderedPlan>
shd::scheduleInText(PlanningContext &context, ProgramOp planned,
                    std::optional<int64_t> memoryLimit) {
  std::optional<ExplicitCopy> inText = makeExplicitInText(context, planned);
  if (!inText)
    return std::nullopt;
  return scheduleCopy(context, *inText, memoryLimit);
}

std::optional<OrderedPlan>
shd::chooseOrder(PlanningContext &context, ProgramOp planned,
                 std::optional<int64_t> memoryLimit) {
  std::optional<ExplicitCopy> inText = makeExplicitInText(context, planned);
  if (!inText)
    return std::nullopt;
  OrderedPlan best = scheduleCopy(context, *inText, memoryLimit);
  if (planned.getPipeline())
    return best;
  int64_t limit = memoryLimit.value_or(context.machine().usableMemory());
  auto rank = [&](const OrderedPlan &plan) {
    bool fits = plan.scheduled.memory.peak <= limit;
    return std::pair(!fits, fits ? plan.scheduled.schedule.scheduled
                                 : plan.scheduled.memory.peak);
  };
  std::vector<std::vector<int64_t>> tried = {inText->order};
  auto isKnown = [&](const std::vector<int64_t> &order) {
    return (inText->order.empty() && llvm::is_sorted(order)) ||
           llvm::is_contained(tried, order);
  };
  for (ListRule rule :
       {ListRule::Searched, ListRule::GathersDone, ListRule::GathersInStep}) {
    // No order is faster than what the resources take.
    if (rank(best) <= std::pair(false, best.scheduled.schedule.lower))
      break;
    std::vector<int64_t> order = orderOf(
        planned, *inText, listOrder(inText->program, context.model, rule));
    if (isKnown(order))
      continue;
    std::optional<ExplicitCopy> copy = makeExplicit(context, planned, order);
    tried.push_back(std::move(order));
    if (!copy)
      continue;
    OrderedPlan other = scheduleCopy(context, *copy, memoryLimit);
    bool isLimited = rank(other).first || other.scheduled.memoryCosts > 0;
    if (rank(other) < rank(best))
      best = std::move(other);
    // It began with the lists, so that they are rarely faster where memory does
    // not matter.
    if (rule == ListRule::Searched && !isLimited)
      break;
  }
  return best;
}

void shd::preferText(PlanningContext &context, ProgramOp planned,
                     std::optional<int64_t> memoryLimit) {
  std::optional<ExplicitCopy> inText = makeExplicitInText(context, planned);
  std::optional<ExplicitCopy> chosen =
      makeExplicit(context, planned, workOrderOf(planned));
  if (!inText || !chosen)
    return;
  OrderedPlan text = scheduleCopy(context, *inText, memoryLimit);
  OrderedPlan now = scheduleCopy(context, *chosen, memoryLimit);
  int64_t limit = memoryLimit.value_or(context.machine().usableMemory());
  auto fits = [&](const OrderedPlan &plan) {
    return plan.scheduled.memory.peak <= limit;
  };
  // A faster order would have the value depend on the text; and where the plan
  // does not fit, its order is the one that bounds of memory are of.
  if (!fits(now) || !fits(text) ||
      text.scheduled.schedule.scheduled != now.scheduled.schedule.scheduled ||
      double(text.scheduled.memory.peak) >
          kMemoryOfText * double(now.scheduled.memory.peak))
    return;
  planned->removeAttr(kWorkOrder);
  if (!text.order.empty())
    planned->setAttr(kWorkOrder,
                     DenseI64ArrayAttr::get(planned.getContext(), text.order));
}
