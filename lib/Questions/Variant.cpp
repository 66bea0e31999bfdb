//===- Variant.cpp - A program with something changed ---------------------===//

#include "shardc/Questions/Variant.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

std::vector<Operation *> shardc::operationsOf(ProgramOp program) {
  std::vector<Operation *> operations;
  program->walk<WalkOrder::PreOrder>(
      [&](Operation *op) { operations.push_back(op); });
  return operations;
}

ShardingAttr shardc::pinAt(ArrayRef<Operation *> operations, PinPlace place) {
  Operation *op = operations[place.op];
  if (place.operand)
    return getOperandPin(op, *place.operand);
  return op->getNumResults() == 1 ? getResultPin(onlyResult(op))
                                  : ShardingAttr();
}

void shardc::setPinAt(ArrayRef<Operation *> operations, PinPlace place,
                      ShardingAttr pin) {
  Operation *op = operations[place.op];
  if (place.operand)
    setOperandPin(op, *place.operand, pin);
  else
    setResultPin(onlyResult(op), pin);
}

/// The leader behind elementwise operations, or null.
static Operation *productOf(Value value) {
  Operation *maker = value.getDefiningOp();
  while (auto cost = dyn_cast_or_null<CostOpInterface>(maker)) {
    if (cost.getFusionKind() == FusionKind::Leader)
      return cost.runsInChunks() ? maker : nullptr;
    if (cost.getFusionKind() != FusionKind::Elementwise)
      return nullptr;
    maker = maker->getOperand(0).getDefiningOp();
  }
  return nullptr;
}

std::vector<UnfusedLoss>
shardc::unfusedLosses(llvm::ArrayRef<Operation *> operations) {
  std::vector<UnfusedLoss> losses;
  unsigned number = 0;
  for (Operation *op : operations) {
    auto loss = dyn_cast<CrossEntropyOp>(op);
    if (!loss || getPhase(op) != Phase::Forward)
      continue;
    if (loss.getRowChunks() != kAllChunks && productOf(loss.getLogits()))
      losses.push_back({op, number});
    ++number;
  }
  return losses;
}

int64_t shardc::numLabels(Operation *loss) {
  return cast<CrossEntropyOp>(loss).getLabels().getType().getNumElements();
}

Variant Variant::inChunks(llvm::ArrayRef<UnfusedLoss> losses, int64_t chunks) {
  Variant variant;
  for (const UnfusedLoss &loss : losses)
    variant.point.push_back(chunksSetting(loss.number, chunks));
  return variant;
}
