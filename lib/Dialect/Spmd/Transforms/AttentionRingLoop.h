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
  /// Ways around the ring that chunks go: one, or two for their halves.
  unsigned numWays() const { return halved.empty() ? 1 : 2; }
  /// Those of the operand that a gather makes.
  mlir::ArrayAttr indicesOf(mlir::Operation *gather);
  /// The part of a value with these indices that goes one way: all, or a half.
  mlir::Value partOf(mlir::Value value, mlir::ArrayAttr indices, unsigned way);
  /// Cuts attention's operands, but for what travels, into the parts of the
  /// ways, where the builder stands.
  void cutOperands();
  /// The part of one way of an operand that does not travel.
  mlir::Value ownPart(unsigned operand, unsigned way) const {
    return parts[way][operand];
  }
  /// The whole of the parts of all ways.
  mlir::Value join(llvm::ArrayRef<mlir::Value> parts, mlir::ArrayAttr indices);
  mlir::RankedTensorType typeOfPart(mlir::Type whole, mlir::ArrayAttr indices);
  /// The operands of attention in a step of one way, with chunks in place of
  /// the whole keys and values.
  mlir::IRMapping here(mlir::ValueRange chunks, unsigned way) const;
  /// The operation of a step: with what a plan knows of the whole, on the keys
  /// of the device that is so many places further on the way, in a loop one
  /// more in each iteration.
  void makeStep(mlir::Operation *op, int64_t step, bool isInLoop, unsigned way);
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
  std::optional<int64_t> halvedDim(mlir::ArrayAttr indices) const;

  /// The index of which each way has a half; empty: there is one way.
  llvm::StringRef halved;
  /// By way and operand.
  llvm::SmallVector<llvm::SmallVector<mlir::Value, 6>, 2> parts;
  /// The whole extent of the keys.
  int64_t keys = 0;
};

} // namespace shardc::spmd

#endif // SHARDC_LIB_DIALECT_SPMD_TRANSFORMS_ATTENTIONRINGLOOP_H
