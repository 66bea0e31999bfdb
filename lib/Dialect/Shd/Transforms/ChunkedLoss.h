//===- ChunkedLoss.h - Losses whose backward pass runs in chunks ----------===//
//
// A loss with `chunks` and the products that make its operand. The backward
// pass runs them again chunk by chunk and differentiates each chunk, so that
// neither the product's result nor its gradient is ever there as a whole
// (docs/Training.md#losses-in-chunks).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHD_TRANSFORMS_CHUNKEDLOSS_H
#define SHARDC_DIALECT_SHD_TRANSFORMS_CHUNKEDLOSS_H

#include "shardc/Dialect/Shd/IR/Shd.h"
#include "llvm/ADT/DenseMap.h"

namespace shardc::shd {

struct ChunkedLoss {
  /// The products, what is between, and the loss: in program order. Nothing
  /// else reads what they make, the loss aside.
  llvm::SmallVector<mlir::Operation *> ops;
  /// An index of the labels that a loop runs along, in `count` parts.
  struct Cut {
    std::string index;
    int64_t count = 1;
    /// The dimension that has the index, of each value that has it.
    llvm::DenseMap<mlir::Value, unsigned> dims;
  };
  /// The outermost loop first.
  llvm::SmallVector<Cut, 1> cuts;
};

/// The chunks of the backward pass of `loss`; none where it runs whole: without
/// `chunks`, without a product behind elementwise operations, or if something
/// else reads what the product makes. With `all` the chunks are as few as keep
/// a device's logits within the bytes of the weight's f32 gradient.
std::optional<ChunkedLoss>
findChunkedLoss(ProgramOp program, mlir::Operation *loss, int64_t microbatches);

} // namespace shardc::shd

#endif // SHARDC_DIALECT_SHD_TRANSFORMS_CHUNKEDLOSS_H
