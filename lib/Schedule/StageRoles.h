//===- StageRoles.h - Which stage has which operation ----------*- C++ -*-===//

#ifndef SHARDC_LIB_SCHEDULE_STAGEROLES_H
#define SHARDC_LIB_SCHEDULE_STAGEROLES_H

#include "shardc/Dialect/Shd/IR/Shd.h"
#include "llvm/ADT/DenseSet.h"

namespace shardc {

/// The first stage and the last one have more than layers.
shd::StageRoles rolesOfStage(unsigned stage, int64_t stages);
/// The first chunk has what the first stage has, the last one what the last
/// has.
shd::StageRoles rolesOfChunk(unsigned stage, int64_t stages, unsigned chunk,
                             unsigned chunks);

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
  shd::StageRoles rolesOf(mlir::Operation *op) const;
  shd::StageRoles rolesOf(mlir::Value value) const;
  shd::StagePass passOf(mlir::Operation *op) const;
  shd::RepeatOp backward() const { return backwardRepeat; }
  /// Weights that the first and the last stage have.
  llvm::SmallVector<shd::DeclareOp> sharedWeights() const;

  /// True if each stage that runs an operation makes a summand of its result.
  bool isPartial(mlir::Operation *op) const;

private:
  /// The stages that have a value outside the microbatches.
  struct Share {
    shd::StageRoles roles = shd::kAllRoles;
    bool isPartial = false;
  };
  using Operations = llvm::DenseSet<mlir::Operation *>;

  void findRepeats();
  mlir::Operation *topLevel(mlir::Operation *op) const;
  void addBackwardSlice(Operations &needed) const;
  void findNeeded();
  Operations forwardSliceOf(shd::RepeatOp repeat) const;
  void findRecomputed();
  shd::StageRoles rolesOfReaders(mlir::Value value) const;
  bool canCopy(mlir::Operation *op, shd::TensorKind kind) const;
  bool isMadeOf(mlir::Operation *op, shd::TensorKind kind) const;
  shd::StageRoles rolesOfUse(mlir::OpOperand &use) const;
  void findCopied();
  void findSpread();
  void findOutside();
  shd::StageRoles rolesOfOperands(mlir::Operation *op) const;
  shd::StageRoles rolesOfUpdate(shd::RepeatOp repeat) const;
  shd::StageRoles rolesOfUpdated(shd::UpdateOp update) const;
  Share shareOf(mlir::Value value) const;
  Share shareOf(mlir::Operation *op) const;

  shd::ProgramOp program;
  shd::PipelineAttr pipeline;
  shd::RepeatOp microbatchRepeat, forwardRepeat, backwardRepeat;
  /// Operations of the microbatch that the forward repeat needs; those that
  /// need the backward repeat, with what they alone read; and the first of the
  /// backward pass.
  Operations feedsForward, behindBackward;
  /// Those in the body of the backward repeat that what it yields needs, and
  /// those of the microbatch that the backward repeat needs.
  Operations givesGradient;
  mlir::Operation *firstBackward = nullptr;
  /// Those of the microbatch that all stages with a use of them run alike.
  llvm::DenseMap<mlir::Operation *, shd::StageRoles> copied;
  /// Those of the microbatch that make a summand on the first and on the last
  /// stage.
  Operations spread;
  /// By operation outside the microbatches.
  llvm::DenseMap<mlir::Operation *, Share> outside;
};

} // namespace shardc

#endif // SHARDC_LIB_SCHEDULE_STAGEROLES_H
