//===- Pipeline.cpp - Facts of programs that run in stages ----------------===//

#include "shardc/Dialect/Shd/IR/Pipeline.h"
#include "mlir/IR/Builders.h"
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

int64_t shd::writtenMicrobatches(ProgramOp program) {
  if (std::optional<TrainingAttr> training = program.getTraining())
    return training->getMicrobatches();
  auto written = program->getAttrOfType<IntegerAttr>(kMicrobatches);
  return written ? written.getInt() : 0;
}

double shd::shareOfReads(Value value) {
  auto part = value.getDefiningOp<PartOp>();
  auto buffer =
      part ? part.getSource().getDefiningOp<DeclareOp>() : DeclareOp();
  if (!buffer || buffer.getKind() != TensorKind::Gradient)
    return 1;
  for (auto repeat = part->getParentOfType<RepeatOp>(); repeat;
       repeat = repeat->getParentOfType<RepeatOp>())
    if (repeat.getIndex() == kMicrobatchIndex)
      return double(repeat.getCount() - 1) / double(repeat.getCount());
  return 1;
}

void shd::setMicrobatches(ProgramOp program, int64_t microbatches) {
  if (microbatches == 0) {
    program->removeAttr(kMicrobatches);
    return;
  }
  program->setAttr(kMicrobatches,
                   Builder(program).getI64IntegerAttr(microbatches));
}

bool shd::isInferencePipeline(ProgramOp program) {
  return program.getPipeline() && !program.getTraining();
}

std::optional<unsigned> shd::layersDim(ArrayAttr indices, int64_t stacked,
                                       StringRef index) {
  for (auto [dim, name] :
       llvm::enumerate(indices.getAsValueRange<StringAttr>()))
    if (int64_t(dim) < stacked && name == index)
      return dim;
  return std::nullopt;
}

bool shd::isStackedOverLayers(DeclareOp declare, PipelineAttr pipeline) {
  return layersDim(declare.getIndices(), declare.getStacked(),
                   pipeline.getIndex())
      .has_value();
}

PipelineRepeats shd::pipelineRepeats(Operation *program, StringRef index) {
  PipelineRepeats found;
  program->walk([&](RepeatOp repeat) {
    auto outer = dyn_cast<RepeatOp>(repeat->getParentOp());
    if (!outer || repeat.getIndex() != index)
      return;
    found.microbatches = outer;
    (repeat.getReverse() ? found.backward : found.forward) = repeat;
  });
  return found;
}

void shd::holdLayers(ProgramOp program, int64_t layers) {
  PipelineAttr pipeline = *program.getPipeline();
  program->walk([&](Operation *op) {
    if (auto repeat = dyn_cast<RepeatOp>(op);
        repeat && repeat.getIndex() == pipeline.getIndex())
      repeat.setCount(layers);
    auto declare = dyn_cast<DeclareOp>(op);
    if (!declare || !isStackedOverLayers(declare, pipeline))
      return;
    SmallVector<int64_t> shape(declare.getType().getShape());
    shape[*layersDim(declare.getIndices(), declare.getStacked(),
                     pipeline.getIndex())] = layers;
    declare.getResult().setType(declare.getType().clone(shape));
  });
}

void shd::holdStages(ProgramOp program, int64_t stages) {
  SmallVector<MeshAxisAttr> axes;
  for (MeshAxisAttr axis : program.getMeshAttr().getAxes())
    axes.push_back(axis.getStages()
                       ? MeshAxisAttr::get(program.getContext(), axis.getName(),
                                           stages, axis.getOn(), true)
                       : axis);
  program.setMeshAttr(MeshAttr::get(program.getContext(), axes));
}

static StageAttr stageOf(Operation *op) {
  return op ? op->getAttrOfType<StageAttr>(kStage) : StageAttr();
}

StageRoles shd::markedRoles(Operation *op) {
  StageAttr stage = stageOf(op);
  return stage ? stage.getRoles() : kAllRoles;
}

bool shd::isMarkedPartial(Operation *op) {
  StageAttr stage = stageOf(op);
  return stage && stage.getPartial();
}
bool shd::isMarkedPartial(Value value) {
  return isMarkedPartial(value.getDefiningOp());
}

StageRoles shd::ownerOf(Value value) {
  StageRoles roles = markedRoles(value.getDefiningOp());
  return (roles & FirstRole) ? FirstRole : roles;
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
