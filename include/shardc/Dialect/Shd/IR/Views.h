//===- Views.h - Values in the buffers of declared tensors ----*- C++ -*-===//
//
// Splits and merges of an input or a weight take no memory where every device
// has the same elements of them as of the tensor: they lie in its buffer, which
// stays as long as one of them is read.
// docs/CostModel.md#6-memory-of-one-device.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHD_IR_VIEWS_H
#define SHARDC_DIALECT_SHD_IR_VIEWS_H

#include "shardc/Dialect/Shd/IR/Shd.h"

namespace shardc::shd {

/// The operand of an operation that costs nothing of which the result is a
/// reshape, with its elements in row-major order; or null.
mlir::OpOperand *viewedOperand(mlir::Operation *op);

/// True of a tensor, or a part of it, whose buffer values may lie in: an input,
/// a weight, or a state that the program does not update. In a device's
/// program, too.
bool keepsViews(mlir::Value tensor);

/// True if a value of one type lies in the buffer of a part, of rank `rank`, of
/// a tensor of another; both types are global.
bool liesIn(const Mesh &mesh, mlir::Type value, mlir::Type tensor,
            int64_t rank);

} // namespace shardc::shd

#endif // SHARDC_DIALECT_SHD_IR_VIEWS_H
