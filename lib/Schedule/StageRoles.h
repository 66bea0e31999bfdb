//===- StageRoles.h - Which stage has which operation ----------*- C++ -*-===//

#ifndef SHARDC_LIB_SCHEDULE_STAGEROLES_H
#define SHARDC_LIB_SCHEDULE_STAGEROLES_H

#include "shardc/Dialect/Shd/IR/Shd.h"
#include "llvm/ADT/DenseSet.h"

namespace shardc {

/// Stages that have an operation or a tensor: the first one (what stands before
/// the pipeline's repeat), all (the layers), the last one (what stands behind).
enum StageRole : uint8_t {
  NoRole = 0,
  FirstRole = 1,
  LayerRole = 2,
  LastRole = 4
};
using StageRoles = uint8_t;
constexpr StageRoles kAllRoles = FirstRole | LayerRole | LastRole;

/// When in a step a stage runs an operation. B makes the gradients that the
/// stage before waits for, W those of weights.
enum class StagePass : uint8_t { Forward, Backward, Weights, Update };

/// The roles of one explicit program of a pipeline. A repeat's operations
/// belong to all stages; others to the first stage if the forward repeat needs
/// what they make, or they need what the backward repeat makes, and else to the
/// last one.
class StageMap {
public:
  explicit StageMap(shd::ProgramOp program);

  shd::RepeatOp microbatches() const { return microbatchRepeat; }
  shd::RepeatOp forward() const { return forwardRepeat; }
  bool isLayers(shd::RepeatOp repeat) const {
    return repeat && repeat.getIndex() == pipeline.getIndex();
  }
  StageRoles rolesOf(mlir::Operation *op) const;
  StageRoles rolesOf(mlir::Value value) const;
  StagePass passOf(mlir::Operation *op) const;
  shd::RepeatOp backward() const { return backwardRepeat; }
  /// Weights that the first and the last stage have.
  llvm::SmallVector<shd::DeclareOp> sharedWeights() const;

private:
  using Operations = llvm::DenseSet<mlir::Operation *>;

  void findRepeats();
  mlir::Operation *topLevel(mlir::Operation *op) const;
  void closeBackward(Operations &needed) const;
  void findNeeded();
  void findBehind();
  StageRoles rolesOfUpdate(mlir::Operation *op) const;

  shd::ProgramOp program;
  shd::PipelineAttr pipeline;
  shd::RepeatOp microbatchRepeat, forwardRepeat, backwardRepeat;
  /// Operations of the microbatch that the forward repeat needs, that need the
  /// backward repeat; and the first of the backward pass.
  Operations feedsForward, behindBackward;
  /// Those in the body of the backward repeat that what it yields needs, and
  /// those of the microbatch that the backward repeat needs.
  Operations givesGradient;
  mlir::Operation *firstBackward = nullptr;
};

} // namespace shardc

#endif // SHARDC_LIB_SCHEDULE_STAGEROLES_H
