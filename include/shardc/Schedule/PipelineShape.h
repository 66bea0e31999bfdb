//===- PipelineShape.h - Which stages a pipeline has ----------*- C++ -*-===//

#ifndef SHARDC_SCHEDULE_PIPELINESHAPE_H
#define SHARDC_SCHEDULE_PIPELINESHAPE_H

#include "shardc/Schedule/StagePlan.h"

namespace shardc {

/// The numbers and the schedule that decide which operations the stages of a
/// pipeline run, and in which order.
struct PipelineShape {
  PipelineOrder order;
  int64_t stages = 1, microbatches = 1;
  /// As `layersOf` lists them.
  llvm::SmallVector<int64_t> layers;

  int64_t numLayers() const;
};
PipelineShape shapeOf(const StagePlan &plan);

/// A pipeline of the first stages and the last one, at most `stages`, with as
/// many microbatches as fill them and one more. The chunk of the fewest layers
/// has one, others as many more as they had, up to `layers`.
PipelineShape shrunkShape(const StagePlan &plan, int64_t stages,
                          int64_t layers);

/// Memory of each stage of an explicit program, which has everything, in
/// program order.
std::vector<MemoryProfile> profileStages(shd::ProgramOp program,
                                         const PipelineShape &shape);

} // namespace shardc

#endif // SHARDC_SCHEDULE_PIPELINESHAPE_H
