//===- StagePrograms.cpp - The programs of a pipeline's stages ------------===//

#include "StagePrograms.h"
#include <map>

using namespace mlir;
using namespace shardc;

shd::RepeatOp shardc::microbatchesOf(spmd::ProgramOp program) {
  StringRef index = program.getStagesAttr().getIndex();
  shd::RepeatOp microbatches;
  program->walk([&](shd::RepeatOp repeat) {
    if (repeat.getIndex() == index)
      if (auto outer = dyn_cast<shd::RepeatOp>(repeat->getParentOp()))
        microbatches = outer;
  });
  return microbatches;
}

StagePrograms::StagePrograms(ArrayRef<spmd::ProgramOp> list) {
  std::map<int64_t, spmd::ProgramOp> byStage;
  for (spmd::ProgramOp program : list) {
    for (int64_t number : program.getStagesAttr().getNumbers())
      byStage[number] = program;
    for (shd::MeshAxisAttr axis : program.getMeshAttr().getAxes())
      if (axis.getStages())
        stages = axis.getSize();
    program->walk([&](Operation *op) {
      auto stage = op->getAttrOfType<shd::StageAttr>(shd::kStage);
      isTraining |= stage && stage.getPass() != shd::StagePass::Forward;
    });
  }
  for (auto &[number, program] : byStage) {
    programs.push_back(program);
    layers += program.getStagesAttr().getLayers();
    order = parsePipelineOrder(program.getStagesAttr().getOrder())
                .value_or(PipelineOrder());
  }
}

std::vector<PipelineItem> StagePrograms::itemsOf(int64_t stage) const {
  shd::RepeatOp microbatches = microbatchesOf(programs.front());
  return orderOf(order, stage, stages, microbatches.getCount(), isTraining);
}
