//===- KernelOrder.cpp - A program in the order of its kernels *- C++ -*-===//

#include "KernelOrder.h"
#include "WriteOrder.h"
#include "shardc/Dialect/Shd/IR/WorkOrder.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

bool KernelOrder::moves(ProgramOp program) {
  return !program.getPipeline() && kernelOrder(program).has_value();
}

KernelOrder::KernelOrder(ProgramOp program) : program(program) {
  if (program.getPipeline())
    return;
  if (std::optional<ListOrder> ranks = kernelOrder(program))
    numbers = writeOrder(program, *ranks, [](Operation *op) { return op; });
  moveInOrder(program, numbers);
}

void KernelOrder::restore() { moveBack(program, numbers); }
