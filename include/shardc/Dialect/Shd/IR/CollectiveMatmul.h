//===- CollectiveMatmul.h - Matmuls that run around a ring ----*- C++ -*-===//
//
// A matmul may run in chunks while a collective beside it moves chunks from
// device to device: an all_gather of an operand, or a reduce_scatter of the
// result. What can run so is decided here alone, for the cost model as for the
// lowering, on global types as on local ones.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHD_IR_COLLECTIVEMATMUL_H
#define SHARDC_DIALECT_SHD_IR_COLLECTIVEMATMUL_H

#include "shardc/Dialect/Shd/IR/Shd.h"

namespace shardc::shd {

/// A collective of the shd dialect or of one built on it, and the global types
/// between which it moves its operand.
struct Movement {
  mlir::Operation *op = nullptr;
  CollectiveKind kind = CollectiveKind::AllGather;
  mlir::RankedTensorType from, to;
};
Movement movementOf(mlir::Operation *collective);

/// How a matmul and a collective run in as many chunks as there are devices on
/// a ring.
struct CollectiveMatmul {
  /// An operation that is computed chunk by chunk, and the one of its indices
  /// that the chunks divide.
  struct Part {
    mlir::Operation *op = nullptr;
    mlir::StringAttr index;
  };

  /// The ring, the major axis first: chunk i of the tensor that moves belongs
  /// to device i.
  AxisList axes;
  /// The matmul and, up to a reduce_scatter, the elementwise operations behind
  /// it, in program order.
  llvm::SmallVector<Part, 2> parts;
};

/// True for an operation that leads its fusion group and runs in chunks: beside
/// the right collective it may run as a collective matmul.
bool mayBecomeRing(mlir::Operation *op);

/// The number of the operand of `matmul` that is the collective's result;
/// nothing if none is, or more than one.
std::optional<unsigned> movedOperand(mlir::Operation *matmul,
                                     mlir::Operation *collective);

/// Nothing if the two cannot run as one. They can if all axes of the collective
/// join or split one dimension, which they divide evenly, and
/// - the collective is an all_gather, one operand of the matmul is its result,
///   and whoever else reads that comes later; or
/// - it is a reduce_scatter of the matmul's result or of what elementwise
///   operations of its fusion group make of it, which nobody else reads, and
///   none of them broadcasts along that dimension.
std::optional<CollectiveMatmul>
matchCollectiveMatmul(const Mesh &mesh, ShardingRuleOpInterface matmul,
                      const Movement &moved);

} // namespace shardc::shd

#endif // SHARDC_DIALECT_SHD_IR_COLLECTIVEMATMUL_H
