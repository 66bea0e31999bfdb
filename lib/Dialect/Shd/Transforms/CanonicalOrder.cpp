//===- CanonicalOrder.cpp - shd-canonical-order, shd-text-order *- C++ -*-===//

#include "CanonicalOrder.h"
#include "WriteOrder.h"
#include "shardc/Cost/Saturating.h"
#include "shardc/Dialect/Shd/IR/WorkOrder.h"
#include "shardc/Dialect/Shd/Transforms/ChooseOrder.h"
#include "shardc/Dialect/Shd/Transforms/Passes.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StableHashing.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

using llvm::stable_hash;
using llvm::stable_hash_combine;

namespace shardc::shd {
#define GEN_PASS_DEF_SHDCANONICALORDER
#define GEN_PASS_DEF_SHDTEXTORDER
#include "shardc/Dialect/Shd/Transforms/Passes.h.inc"
} // namespace shardc::shd

namespace {

/// Tells operations apart by what they are made of and what reads them.
class Colours {
public:
  explicit Colours(ProgramOp program) {
    colourByOperands(program.getBody().front());
    colourByReaders(program.getBody().front());
  }

  stable_hash of(Operation *op) const { return readers.lookup(op); }

private:
  void colourByOperands(Block &block);
  stable_hash ofPlace(OpOperand &operand) const;
  stable_hash ofOperands(Operation *op) const;
  void colourByReaders(Block &block);

  /// By value, and by operation.
  llvm::DenseMap<Value, stable_hash> values;
  llvm::DenseMap<Operation *, stable_hash> operands, readers;
};

/// Numbers the operations of one block.
class BlockOrder {
public:
  BlockOrder(Block &block, const Colours &colours,
             const llvm::DenseMap<Block *, int64_t> &depths);

  std::vector<Operation *> run();
  /// Operations on the longest way through the block; those of a repeat count
  /// in each iteration.
  int64_t depth() const {
    return depths.empty() ? 0 : *llvm::max_element(depths);
  }

private:
  bool isBefore(unsigned a, unsigned b) const;
  void visitFrom(unsigned sink, std::vector<Operation *> &order);

  SmallVector<Operation *> ops;
  const Colours &colours;
  std::vector<SmallVector<unsigned, 4>> before;
  std::vector<int64_t> depths;
  std::vector<bool> isVisited;
};

} // namespace

static stable_hash colourOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return 0;
  SmallVector<stable_hash> parts = {
      tensor.getElementType().getIntOrFloatBitWidth()};
  parts.append(tensor.getShape().begin(), tensor.getShape().end());
  return stable_hash_combine(parts);
}

/// The argument of a repeat's body that stands for what it or its yield reads;
/// the iteration number has none.
static BlockArgument argumentOf(OpOperand &operand) {
  Operation *op = operand.getOwner();
  auto repeat = dyn_cast<RepeatOp>(op);
  if (isa<YieldOp>(op))
    repeat = cast<RepeatOp>(op->getParentOp());
  if (!repeat)
    return {};
  return repeat.getCarried()[operand.getOperandNumber()];
}

/// Carried values have no order.
stable_hash Colours::ofPlace(OpOperand &operand) const {
  if (BlockArgument argument = argumentOf(operand))
    return values.lookup(argument);
  return operand.getOperandNumber();
}

stable_hash Colours::ofOperands(Operation *op) const {
  SmallVector<stable_hash> parts;
  for (OpOperand &operand : op->getOpOperands())
    parts.push_back(
        stable_hash_combine(values.lookup(operand.get()), ofPlace(operand)));
  for (Region &region : op->getRegions())
    for (Operation &inner : region.front())
      parts.push_back(operands.lookup(&inner));
  llvm::sort(parts);
  parts.push_back(llvm::xxh3_64bits(op->getName().getStringRef()));
  return stable_hash_combine(parts);
}

void Colours::colourByOperands(Block &block) {
  for (BlockArgument argument : block.getArguments())
    values[argument] = colourOf(argument.getType());
  if (auto repeat = dyn_cast<RepeatOp>(block.getParentOp()))
    for (auto [argument, init] :
         llvm::zip_equal(repeat.getCarried(), repeat.getInits()))
      values[argument] = stable_hash_combine(values.lookup(init), 1);
  for (Operation &op : block) {
    for (Region &region : op.getRegions())
      colourByOperands(region.front());
    stable_hash colour = operands[&op] = ofOperands(&op);
    auto repeat = dyn_cast<RepeatOp>(op);
    for (OpResult result : op.getResults())
      values[result] = stable_hash_combine(
          colour, colourOf(result.getType()),
          repeat ? values.lookup(repeat.getCarried()[result.getResultNumber()])
                 : result.getResultNumber());
  }
}

void Colours::colourByReaders(Block &block) {
  for (Operation &op : llvm::reverse(block)) {
    SmallVector<stable_hash> parts;
    for (OpOperand &use : op.getUses())
      parts.push_back(
          stable_hash_combine(readers.lookup(use.getOwner()), ofPlace(use)));
    llvm::sort(parts);
    parts.push_back(operands.lookup(&op));
    readers[&op] = stable_hash_combine(parts);
    for (Region &region : op.getRegions())
      colourByReaders(region.front());
  }
}

BlockOrder::BlockOrder(Block &block, const Colours &colours,
                       const llvm::DenseMap<Block *, int64_t> &bodies)
    : colours(colours), before(dependencesIn(block)),
      isVisited(before.size(), false) {
  for (auto [op, earlier] : llvm::zip_equal(block, before)) {
    ops.push_back(&op);
    int64_t depth = 1;
    if (auto repeat = dyn_cast<RepeatOp>(op))
      depth = saturatingMultiply(bodies.lookup(&repeat.getBody().front()),
                                 int64_t(repeat.getCount()));
    int64_t deepest = 0;
    for (unsigned position : earlier)
      deepest = std::max(deepest, depths[position]);
    depths.push_back(saturatingAdd(deepest, depth));
  }
}

bool BlockOrder::isBefore(unsigned a, unsigned b) const {
  auto key = [&](unsigned position) {
    return std::tuple(depths[position], colours.of(ops[position]), position);
  };
  return key(a) < key(b);
}

/// Without recursion: ways may be as long as the program. A position is on the
/// stack with the number of those before it that were looked at.
void BlockOrder::visitFrom(unsigned sink, std::vector<Operation *> &order) {
  if (isVisited[sink])
    return;
  SmallVector<std::pair<unsigned, unsigned>> stack = {{sink, 0}};
  while (!stack.empty()) {
    auto &[position, looked] = stack.back();
    if (looked < before[position].size()) {
      unsigned earlier = before[position][looked++];
      if (!isVisited[earlier])
        stack.push_back({earlier, 0});
      continue;
    }
    isVisited[position] = true;
    order.push_back(ops[position]);
    stack.pop_back();
  }
}

std::vector<Operation *> BlockOrder::run() {
  auto comesFirst = [&](unsigned a, unsigned b) { return isBefore(a, b); };
  std::vector<bool> isRead(before.size(), false);
  for (auto [op, earlier] : llvm::zip_equal(ops, before)) {
    llvm::sort(earlier, comesFirst);
    // A yielded value is no operand of work.
    if (!op->hasTrait<OpTrait::IsTerminator>())
      for (unsigned position : earlier)
        isRead[position] = true;
  }
  SmallVector<unsigned> sinks;
  for (unsigned position = 0; position < ops.size(); ++position)
    if (!isRead[position])
      sinks.push_back(position);
  llvm::sort(sinks, comesFirst);
  std::vector<Operation *> order;
  for (unsigned sink : sinks)
    visitFrom(sink, order);
  return order;
}

ListOrder shd::canonicalOrder(ProgramOp program) {
  Colours colours(program);
  llvm::DenseMap<Block *, int64_t> depths;
  ListOrder ranks;
  auto rank = [&](Block &block) {
    BlockOrder order(block, colours, depths);
    depths[&block] = order.depth();
    for (auto [place, op] : llvm::enumerate(order.run()))
      if (!isa<DeclareOp, ConstantOp>(op))
        ranks[op] = place;
  };
  // Inner repeats first.
  program.walk([&](RepeatOp repeat) { rank(repeat.getBody().front()); });
  rank(program.getBody().front());
  return ranks;
}

namespace {

struct CanonicalOrderPass
    : shd::impl::ShdCanonicalOrderBase<CanonicalOrderPass> {
  void runOnOperation() override {
    ProgramOp program = getOperation();
    if (program.getPipeline())
      return;
    std::vector<int64_t> order = writeOrder(program, canonicalOrder(program),
                                            [](Operation *op) { return op; });
    if (llvm::is_sorted(order))
      return;
    moveInOrder(program, order);
    program->setAttr(kCanonicalOrder,
                     DenseI64ArrayAttr::get(&getContext(), order));
  }
};

/// True if each number below `size` is there once.
bool numbersEach(ArrayRef<int64_t> order, size_t size) {
  SmallVector<int64_t> sorted(order);
  llvm::sort(sorted);
  return llvm::equal(sorted, llvm::seq<int64_t>(0, size));
}

struct TextOrderPass : shd::impl::ShdTextOrderBase<TextOrderPass> {
  using ShdTextOrderBase::ShdTextOrderBase;
  void runOnOperation() override {
    ProgramOp program = getOperation();
    auto order = program->getAttrOfType<DenseI64ArrayAttr>(kCanonicalOrder);
    if (!order)
      return;
    if (!numbersEach(order, orderedOperations(program).size())) {
      program.emitError() << "'" << kCanonicalOrder
                          << "' is no order of the program's operations: "
                             "expected the number of each once";
      return signalPassFailure();
    }
    moveBack(program, order);
    program->removeAttr(kCanonicalOrder);
    std::unique_ptr<PlanningContext> context = createContext(program);
    if (!context)
      return signalPassFailure();
    preferText(*context, program,
               memoryLimit < 0 ? std::nullopt
                               : std::optional<int64_t>(memoryLimit));
  }
};

} // namespace
