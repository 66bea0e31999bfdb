//===- ApplyOrder.cpp - shd-apply-order ------------------------*- C++ -*-===//

#include "shardc/Dialect/Shd/IR/WorkOrder.h"
#include "shardc/Dialect/Shd/Transforms/Passes.h"

using namespace mlir;

namespace shardc::shd {
#define GEN_PASS_DEF_SHDAPPLYORDER
#include "shardc/Dialect/Shd/Transforms/Passes.h.inc"

namespace {
struct ApplyOrderPass : impl::ShdApplyOrderBase<ApplyOrderPass> {
  void runOnOperation() override {
    ProgramOp program = getOperation();
    ArrayRef<int64_t> order = workOrderOf(program);
    if (!order.empty() && !isWorkOrder(program, order)) {
      program.emitError() << "'" << kWorkOrder
                          << "' is no order of the program's operations: "
                             "expected the number of each once, behind those "
                             "of what it reads";
      return signalPassFailure();
    }
    moveInOrder(program, order);
  }
};
} // namespace

} // namespace shardc::shd
