//===- Pipeline.cpp - Facts of programs that run in stages ----------------===//

#include "shardc/Dialect/Shd/IR/Pipeline.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

std::optional<int64_t> shd::numStages(ProgramOp program) {
  std::optional<PipelineAttr> pipeline = program.getPipeline();
  if (pipeline && program.getMesh())
    for (MeshAxisAttr axis : program.getMesh()->getAxes())
      if (axis.getName() == pipeline->getAxis())
        return axis.getSize();
  return std::nullopt;
}

std::optional<PipelineOrder> shd::writtenOrder(PipelineAttr pipeline) {
  return parsePipelineOrder(pipeline.getOrder());
}

bool shd::isStackedOverLayers(DeclareOp declare, PipelineAttr pipeline) {
  return declare.getStacked() > 0 &&
         cast<StringAttr>(declare.getIndices()[0]) == pipeline.getIndex();
}

bool shd::isInLayers(Operation *op, PipelineAttr pipeline) {
  for (auto repeat = op->getParentOfType<RepeatOp>(); repeat;
       repeat = repeat->getParentOfType<RepeatOp>())
    if (repeat.getIndex() == pipeline.getIndex())
      return true;
  return false;
}

double shd::runsOfAllStages(Operation *op) {
  double runs = double(executionCount(op));
  auto program = op->getParentOfType<ProgramOp>();
  std::optional<PipelineAttr> pipeline = program.getPipeline();
  if (!pipeline || pipeline->getHeld() == 0)
    return runs;
  return isInLayers(op, *pipeline) ? runs * double(pipeline->getLayers()) /
                                         double(pipeline->getHeld())
                                   : runs;
}

int64_t shd::keptByFirstStage(PipelineAttr pipeline, int64_t stages,
                              int64_t microbatches) {
  PipelineOrder order = writtenOrder(pipeline).value_or(PipelineOrder());
  // An order that cannot run is an error of its own, later.
  if (!whyIllegal(order, stages, microbatches, pipeline.getLayers()).empty())
    order = PipelineOrder();
  SmallVector<PipelineKept> one(order.chunks, PipelineKept{1, 1});
  int64_t chunks = peakKept(orderOf(order, /*stage=*/0, stages, microbatches,
                                    /*isTraining=*/true),
                            one);
  return llvm::divideCeil(chunks, order.chunks);
}
