//===- AttentionRingLoop.h - Steps of attention around a ring --*- C++ -*-===//
//
// The common part of attention and its gradient as loops: steps are operations
// on the keys that are here, and elementwise operations add up what they make.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_DIALECT_SPMD_TRANSFORMS_ATTENTIONRINGLOOP_H
#define SHARDC_LIB_DIALECT_SPMD_TRANSFORMS_ATTENTIONRINGLOOP_H

#include "RingLoop.h"
#include "mlir/IR/IRMapping.h"

namespace shardc::spmd {

class AttentionRingLoop : protected RingLoop {
protected:
  AttentionRingLoop(const Mesh &mesh, llvm::ArrayRef<AxisIndex> ring,
                    shd::AttentionOpInterface attention,
                    llvm::ArrayRef<mlir::Operation *> gathers);

  shd::IndexingAttr indexing();
  /// Chunks that are read in place of the whole keys and values.
  mlir::IRMapping here(mlir::ValueRange chunks) const;
  /// The operation of a step: with what a plan knows of the whole, on the keys
  /// of the device that is so many places further on, in a loop one more in
  /// each iteration.
  void makeStep(mlir::Operation *op, int64_t step, bool isInLoop);
  mlir::Value elementwise(shd::Function function,
                          llvm::ArrayRef<mlir::Value> values,
                          llvm::ArrayRef<mlir::ArrayAttr> indices,
                          mlir::ArrayAttr result, mlir::Type type);
  /// A value in the type in which the operation makes it.
  mlir::Value castTo(mlir::Type type, mlir::Value value,
                     mlir::ArrayAttr indices);
  /// Readers of a result read `value`.
  void replace(mlir::OpResult result, mlir::Value value);
  /// A pipeline's item that runs attention runs all that stands for it: what
  /// follows `before`, or all from the beginning of the block.
  void keepStage(mlir::Operation *before);

  shd::AttentionOpInterface attention;
  llvm::ArrayRef<mlir::Operation *> gathers;

private:
  void keep(mlir::Operation *op);

  /// The whole extent of the keys.
  int64_t keys = 0;
};

} // namespace shardc::spmd

#endif // SHARDC_LIB_DIALECT_SPMD_TRANSFORMS_ATTENTIONRINGLOOP_H
