//===- ChooseOrder.cpp - The order in which a plan runs --------*- C++ -*-===//

#include "shardc/Dialect/Shd/Transforms/ChooseOrder.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/OwningOpRef.h"
#include "shardc/Dialect/Shd/IR/WorkOrder.h"
#include "shardc/Dialect/Shd/Transforms/MakeExplicit.h"
#include "shardc/Schedule/ListOrder.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {

/// A copy of a planned program, made explicit.
struct ExplicitCopy {
  OwningOpRef<ModuleOp> module;
  ProgramOp program;
  IRMapping mapping;
  /// Empty: that of the text.
  std::vector<int64_t> order;
};

/// Writes the order in which kernels and repeats have their ranks. Declarations
/// stand before all others, but for parts of buffers that work has to update
/// first. Another operation that costs nothing stands before the first that
/// reads it; one that nothing reads (an update, an output) as soon as it can.
class OrderWriter {
public:
  OrderWriter(ProgramOp program, const IRMapping &mapping,
              const ListOrder &ranks)
      : mapping(mapping), ranks(ranks) {
    for (auto [number, op] : llvm::enumerate(orderedOperations(program)))
      numbers[op] = number;
    write(program.getBody().front());
  }

  std::vector<int64_t> order;

private:
  std::optional<unsigned> rankOf(Operation *op) const;
  void write(Block &block);

  const IRMapping &mapping;
  const ListOrder &ranks;
  llvm::DenseMap<Operation *, int64_t> numbers;
};

/// The operations of one block.
class BlockWriter {
public:
  BlockWriter(Block &block, std::vector<std::optional<unsigned>> ranks)
      : before(dependencesIn(block)), ranks(std::move(ranks)),
        isWritten(before.size(), false) {
    writeDeclarations(block);
  }

  /// Positions in the new order.
  SmallVector<unsigned> run();

private:
  void writeDeclarations(Block &block);
  void write(unsigned position);
  void writeSinks();
  bool isDue(unsigned position) const;

  std::vector<SmallVector<unsigned, 4>> before;
  std::vector<std::optional<unsigned>> ranks;
  std::vector<bool> isWritten;
  SmallVector<unsigned> sinks, result;
};

} // namespace

void BlockWriter::write(unsigned position) {
  if (isWritten[position])
    return;
  isWritten[position] = true;
  for (unsigned earlier : before[position])
    write(earlier);
  result.push_back(position);
}

/// The first part of a buffer waits for the work that updates the buffer.
void BlockWriter::writeDeclarations(Block &block) {
  auto isThere = [&](unsigned earlier) { return isWritten[earlier]; };
  for (auto [position, op] : llvm::enumerate(block))
    if (isa<DeclareOp, ConstantOp>(op) ||
        (introducedBy(&op) && llvm::all_of(before[position], isThere)))
      write(position);
}

/// All the work that it depends on has been written.
bool BlockWriter::isDue(unsigned position) const {
  return llvm::all_of(before[position], [&](unsigned earlier) {
    return isWritten[earlier] || (!ranks[earlier] && isDue(earlier));
  });
}

void BlockWriter::writeSinks() {
  llvm::erase_if(sinks, [&](unsigned position) {
    if (!isDue(position))
      return false;
    write(position);
    return true;
  });
}

SmallVector<unsigned> BlockWriter::run() {
  // A program may have no statements.
  if (before.empty())
    return {};
  unsigned last = before.size() - 1;
  std::vector<bool> isRead(before.size(), false);
  for (unsigned position : llvm::reverse(llvm::seq(0u, last + 1)))
    if (ranks[position] || isRead[position])
      for (unsigned earlier : before[position])
        isRead[earlier] = true;
  SmallVector<unsigned> work;
  for (unsigned position = 0; position < last; ++position)
    if (ranks[position])
      work.push_back(position);
    else if (!isRead[position] && !isWritten[position])
      sinks.push_back(position);
  llvm::stable_sort(
      work, [&](unsigned a, unsigned b) { return *ranks[a] < *ranks[b]; });
  for (unsigned position : work) {
    write(position);
    writeSinks();
  }
  for (unsigned position = 0; position <= last; ++position)
    write(position);
  return std::move(result);
}

std::optional<unsigned> OrderWriter::rankOf(Operation *op) const {
  auto rank = ranks.find(mapping.lookupOrNull(op));
  return rank == ranks.end() ? std::nullopt : std::optional(rank->second);
}

void OrderWriter::write(Block &block) {
  SmallVector<Operation *> ops;
  std::vector<std::optional<unsigned>> ranks;
  for (Operation &op : block) {
    ops.push_back(&op);
    ranks.push_back(rankOf(&op));
  }
  for (unsigned position : BlockWriter(block, std::move(ranks)).run()) {
    Operation *op = ops[position];
    // Copies have no number.
    if (auto number = numbers.find(op); number != numbers.end())
      order.push_back(number->second);
    if (auto repeat = dyn_cast<RepeatOp>(op))
      write(repeat.getBody().front());
  }
}

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

/// The text's order, or what kernels allow of it. Stages of a pipeline keep the
/// text's: their parts are told apart by it.
static std::optional<ExplicitCopy> makeExplicitInText(PlanningContext &context,
                                                      ProgramOp planned) {
  std::optional<ExplicitCopy> copy = makeExplicit(context, planned, {});
  if (!copy || planned.getPipeline())
    return copy;
  std::optional<ListOrder> ranks = kernelOrder(copy->program, context.model);
  if (!ranks)
    return copy;
  return makeExplicit(context, planned,
                      OrderWriter(planned, copy->mapping, *ranks).order);
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
  int64_t limit = memoryLimit.value_or(int64_t(context.machine().hbmCapacity));
  auto rank = [&](const OrderedPlan &plan) {
    bool fits = plan.scheduled.memory.peak <= limit;
    return std::pair(!fits, fits ? plan.scheduled.schedule.scheduled : 0);
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
    std::vector<int64_t> order =
        OrderWriter(planned, inText->mapping,
                    listOrder(inText->program, context.model, rule))
            .order;
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
    // The lists are slower where memory does not matter.
    if (rule == ListRule::Searched && !isLimited)
      break;
  }
  return best;
}
