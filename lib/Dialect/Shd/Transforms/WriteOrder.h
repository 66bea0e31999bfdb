//===- WriteOrder.h - The order of all operations -------------*- C++ -*-===//

#ifndef SHARDC_LIB_DIALECT_SHD_TRANSFORMS_WRITEORDER_H
#define SHARDC_LIB_DIALECT_SHD_TRANSFORMS_WRITEORDER_H

#include "shardc/Schedule/ListOrder.h"

namespace shardc::shd {

/// The order (WorkOrder.h) in which kernels and repeats have their ranks, those
/// of the operations that `rankedAs` gives. Declarations stand before all
/// others, but for parts of buffers that work has to update first. Another
/// operation that costs nothing stands before the first that reads it; one that
/// nothing reads (an update, an output) as soon as it can.
std::vector<int64_t>
writeOrder(ProgramOp program, const ListOrder &ranks,
           llvm::function_ref<mlir::Operation *(mlir::Operation *)> rankedAs);

} // namespace shardc::shd

#endif // SHARDC_LIB_DIALECT_SHD_TRANSFORMS_WRITEORDER_H
