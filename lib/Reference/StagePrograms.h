//===- StagePrograms.h - The programs of a pipeline's stages ---*- C++ -*-===//

#ifndef SHARDC_LIB_REFERENCE_STAGEPROGRAMS_H
#define SHARDC_LIB_REFERENCE_STAGEPROGRAMS_H

#include "shardc/Cost/PipelineSchedule.h"
#include "shardc/Dialect/Spmd/IR/Spmd.h"

namespace shardc {

/// The repeat over microbatches; null if there is none.
shd::RepeatOp microbatchesOf(spmd::ProgramOp program);

/// The programs that spmd-split-stages made of one.
struct StagePrograms {
  explicit StagePrograms(llvm::ArrayRef<spmd::ProgramOp> programs);

  /// The items of a stage, in their order.
  std::vector<PipelineItem> itemsOf(int64_t stage) const;

  /// By virtual stage, as a microbatch visits them.
  std::vector<spmd::ProgramOp> programs;
  int64_t stages = 1, layers = 0;
  PipelineOrder order;
  bool isTraining = false;
};

} // namespace shardc

#endif // SHARDC_LIB_REFERENCE_STAGEPROGRAMS_H
