//===- StepBuilder.h - A planned program for the scheduler -----*- C++ -*-===//

#ifndef SHARDC_LIB_SCHEDULE_STEPBUILDER_H
#define SHARDC_LIB_SCHEDULE_STEPBUILDER_H

#include "shardc/Cost/Schedule.h"
#include "shardc/Dialect/Shd/IR/Shd.h"

namespace shardc {

/// The step of a program whose plan is explicit and priced, and the operations
/// that its parts stand for.
struct PlannedStep {
  Step step;
  /// By group, the operation that carries its price.
  std::vector<mlir::Operation *> groups;
  std::vector<mlir::Operation *> collectives;
  /// By pair, the einsum.
  std::vector<mlir::Operation *> matmuls;
  /// By ring, the attention.
  std::vector<mlir::Operation *> rings;
  /// By body; null for the step itself.
  std::vector<shd::RepeatOp> repeats;
};

/// Each separately costed part of a fusion group is a group of the step, run
/// where its last operation stands.
PlannedStep buildStep(shd::ProgramOp program, const CollectiveModel &model);

} // namespace shardc

#endif // SHARDC_LIB_SCHEDULE_STEPBUILDER_H
