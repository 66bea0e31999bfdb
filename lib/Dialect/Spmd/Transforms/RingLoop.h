//===- RingLoop.h - Loops in which chunks travel around a ring -*- C++ -*-===//

#ifndef SHARDC_LIB_DIALECT_SPMD_TRANSFORMS_RINGLOOP_H
#define SHARDC_LIB_DIALECT_SPMD_TRANSFORMS_RINGLOOP_H

#include "mlir/IR/Builders.h"
#include "shardc/Dialect/Spmd/IR/Spmd.h"

namespace shardc::spmd {

/// Builds what loops over the places of a ring have in common, where `at`
/// stands.
class RingLoop {
public:
  RingLoop(const Mesh &mesh, llvm::ArrayRef<AxisIndex> axes,
           mlir::Operation *at);

protected:
  /// A loop over all places of the ring but one; the builder goes into its
  /// body.
  shd::RepeatOp addLoop(mlir::ValueRange inits, mlir::Block *&body);
  mlir::Value number(int64_t value);
  /// A tensor all of whose elements are `element`, a number of its type.
  mlir::Value fill(mlir::RankedTensorType type,
                   llvm::ArrayRef<llvm::StringRef> indices,
                   mlir::Attribute element);
  mlir::Value zeros(mlir::RankedTensorType type,
                    llvm::ArrayRef<llvm::StringRef> indices);
  /// Moves a chunk in place of `collective`, perhaps the other way round.
  mlir::Value shift(mlir::Value value, mlir::Operation *collective,
                    bool back = false);
  /// The shards of `like` as far as `op` has their indices, without the index
  /// that chunks divide evenly.
  void keepShards(mlir::Operation *op, mlir::Operation *like,
                  llvm::StringRef without);

  int64_t size;
  mlir::OpBuilder builder;
  mlir::Location loc;
  mlir::ArrayAttr axes;
};

/// Runs attention in steps between which the operands of `gathers` travel, and
/// erases these and it.
void buildAttentionRing(const Mesh &mesh, llvm::ArrayRef<AxisIndex> axes,
                        shd::AttentionOp attention,
                        llvm::ArrayRef<mlir::Operation *> gathers);

/// The same for its gradient, whose sums travel in place of `scatters`.
void buildAttentionGradRing(const Mesh &mesh, llvm::ArrayRef<AxisIndex> axes,
                            shd::AttentionGradOp gradient,
                            llvm::ArrayRef<mlir::Operation *> gathers,
                            llvm::ArrayRef<mlir::Operation *> scatters);

} // namespace shardc::spmd

#endif // SHARDC_LIB_DIALECT_SPMD_TRANSFORMS_RINGLOOP_H
