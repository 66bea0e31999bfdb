//===- FusionGroups.cpp - shd-fusion-groups --------------------*- C++ -*-===//

#include "WriteOrder.h"
#include "shardc/Dialect/Shd/IR/WorkOrder.h"
#include "shardc/Dialect/Shd/Transforms/Passes.h"
#include "shardc/Optimizer/Graph.h"

using namespace mlir;

namespace shardc::shd {
#define GEN_PASS_DEF_SHDFUSIONGROUPS
#include "shardc/Dialect/Shd/Transforms/Passes.h.inc"

namespace {
struct FusionGroupsPass : impl::ShdFusionGroupsBase<FusionGroupsPass> {
  void runOnOperation() override {
    ProgramOp program = getOperation();
    assignFusionGroups(program);
    // The parts of a pipeline's stages are told apart by the text's order.
    if (program.getPipeline())
      return;
    if (std::optional<ListOrder> ranks = kernelOrder(program))
      moveInOrder(program, writeOrder(program, *ranks,
                                      [](Operation *op) { return op; }));
  }
};
} // namespace
} // namespace shardc::shd
