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
