//===- Stage.cpp - shd-stage -----------------------------------*- C++ -*-===//
//
// The program of a pipeline becomes that of one stage: its repeat runs the
// layers that a stage holds, and stacked tensors have as many parts.
//
//===----------------------------------------------------------------------===//

#include "shardc/Dialect/Shd/IR/Pipeline.h"
#include "shardc/Dialect/Shd/Transforms/Passes.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace shardc::shd {
#define GEN_PASS_DEF_SHDSTAGE
#include "shardc/Dialect/Shd/Transforms/Passes.h.inc"

namespace {

class Staging {
public:
  Staging(ProgramOp program, PipelineAttr pipeline)
      : program(program), pipeline(pipeline) {}

  LogicalResult run();

private:
  RepeatOp findRepeat();
  LogicalResult checkIteration(RepeatOp repeat) const;
  LogicalResult checkOutside(RepeatOp repeat) const;
  SmallVector<DeclareOp> stackedOver(RepeatOp repeat) const;

  ProgramOp program;
  PipelineAttr pipeline;
};

/// The pipeline's repeat; null after an error.
RepeatOp Staging::findRepeat() {
  RepeatOp found;
  WalkResult result = program->walk([&](RepeatOp repeat) {
    if (repeat.getIndex() != pipeline.getIndex())
      return WalkResult::advance();
    if (found || repeat->getParentOp() != program) {
      repeat.emitError() << "another repeat over '" << pipeline.getIndex()
                         << "' than that of the pipeline; give it an index of "
                            "its own";
      return WalkResult::interrupt();
    }
    found = repeat;
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return {};
  if (!found)
    program.emitError() << "no repeat over '" << pipeline.getIndex()
                        << "', which the pipeline runs in stages";
  return found;
}

/// A stage does not know the numbers of its layers: they select parts only.
LogicalResult Staging::checkIteration(RepeatOp repeat) const {
  for (OpOperand &use : repeat.getIteration().getUses()) {
    Operation *user = use.getOwner();
    if (isa<PartOp, UpdateOp>(user))
      continue;
    return user->emitError()
           << "reads the number of the layer '" << pipeline.getIndex()
           << "', which differs from stage to stage; in a pipeline it may only "
              "select the layer's own weights and states";
  }
  return success();
}

/// A stage has of what stands before the layers only what they carry. Weights
/// of all layers together would add up their gradients over the stages.
LogicalResult Staging::checkOutside(RepeatOp repeat) const {
  WalkResult result = repeat.getBody().walk([&](Operation *op) {
    for (Value operand : op->getOperands()) {
      Operation *maker = operand.getDefiningOp();
      if (!maker || repeat->isAncestor(maker) || isa<ConstantOp>(maker))
        continue;
      auto declare = dyn_cast<DeclareOp>(maker);
      bool isOwn = declare && isa<PartOp, UpdateOp>(op);
      if (isOwn || (declare && declare.getKind() != TensorKind::Weight))
        continue;
      auto name = declare ? declare.getSym() : getResultName(operand);
      op->emitError() << "reads '" << name << "', which "
                      << (declare ? "the layers of all stages would share"
                                  : "only the first stage has")
                      << "; in a pipeline layers have weights of their own and "
                         "carry the rest from one to the next";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// The tensors with a part for each layer, in program order.
SmallVector<DeclareOp> Staging::stackedOver(RepeatOp repeat) const {
  llvm::SetVector<DeclareOp> found;
  for (OpOperand &use : repeat.getIteration().getUses()) {
    Value whole = use.getOwner()->getOperand(0);
    if (auto update = dyn_cast<UpdateOp>(use.getOwner()))
      whole = update.getState();
    if (auto declare = whole.getDefiningOp<DeclareOp>())
      found.insert(declare);
  }
  return found.takeVector();
}

LogicalResult Staging::run() {
  std::optional<int64_t> stages = numStages(program);
  if (!stages)
    return program.emitError() << "the mesh has no axis '" << pipeline.getAxis()
                               << "' for the stages";
  RepeatOp repeat = findRepeat();
  if (!repeat)
    return failure();
  if (*stages > pipeline.getLayers())
    return repeat.emitError()
           << "'" << pipeline.getIndex() << "' has " << pipeline.getLayers()
           << " layers, fewer than the " << *stages << " stages of '"
           << pipeline.getAxis() << "'";
  if (repeat.getInits().empty())
    return repeat.emitError()
           << "the layers '" << pipeline.getIndex()
           << "' hand nothing from one stage of the pipeline to the next";
  if (failed(checkIteration(repeat)) || failed(checkOutside(repeat)))
    return failure();
  int64_t held = llvm::divideCeil(pipeline.getLayers(), *stages);
  repeat.setCount(held);
  for (DeclareOp declare : stackedOver(repeat)) {
    SmallVector<int64_t> shape(declare.getType().getShape());
    shape.front() = held;
    declare.getResult().setType(declare.getType().clone(shape));
  }
  program.setPipelineAttr(PipelineAttr::get(
      program.getContext(), pipeline.getAxis(), pipeline.getIndex(),
      pipeline.getLayers(), held, pipeline.getOrder()));
  return success();
}

struct StagePass : impl::ShdStageBase<StagePass> {
  using ShdStageBase::ShdStageBase;
  void runOnOperation() override {
    ProgramOp program = getOperation();
    std::optional<PipelineAttr> pipeline = program.getPipeline();
    if (pipeline && pipeline->getHeld() == 0 &&
        failed(Staging(program, *pipeline).run()))
      signalPassFailure();
  }
};

} // namespace
} // namespace shardc::shd
