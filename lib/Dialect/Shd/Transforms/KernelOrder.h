//===- KernelOrder.h - A program in the order of its kernels --*- C++ -*-===//

#ifndef SHARDC_LIB_DIALECT_SHD_TRANSFORMS_KERNELORDER_H
#define SHARDC_LIB_DIALECT_SHD_TRANSFORMS_KERNELORDER_H

#include "shardc/Dialect/Shd/IR/Shd.h"

namespace shardc::shd {

/// Moves the operations of a program whose fusion groups are known to where
/// kernels run (ListOrder.h, kernelOrder), so that memory is counted in an
/// order in which plans can run. The parts of a pipeline's stages are told
/// apart by the text's order, and keep it.
class KernelOrder {
public:
  explicit KernelOrder(ProgramOp program);

  /// True if kernels forbid the text's order.
  static bool moves(ProgramOp program);
  /// Moves the operations back. The order of the plan (WorkOrder.h), which was
  /// one of the moved operations, becomes one of the text's.
  void restore();

private:
  ProgramOp program;
  /// By place: the number in the text of the operation there. Empty: the text
  /// had the order.
  std::vector<int64_t> numbers;
};

} // namespace shardc::shd

#endif // SHARDC_LIB_DIALECT_SHD_TRANSFORMS_KERNELORDER_H
