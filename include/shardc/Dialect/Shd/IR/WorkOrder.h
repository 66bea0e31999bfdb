//===- WorkOrder.h - The order in which a program runs --------*- C++ -*-===//
//
// Statements that do not depend on each other may run in any order: the plan
// chooses it (docs/CostModel.md#the-order-of-operations). A program keeps the
// order of its text until it is made explicit; the plan has the other one as an
// attribute.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHD_IR_WORKORDER_H
#define SHARDC_DIALECT_SHD_IR_WORKORDER_H

#include "shardc/Dialect/Shd/IR/Shd.h"

namespace shardc::shd {

/// On a program that is being planned: the order in which its operations stand,
/// in the numbers of the text.
inline constexpr llvm::StringLiteral kCanonicalOrder = "shd.canonical_order";

/// The operations that each operation of a block, by its position, stands
/// behind: those that make what it reads, and of two that touch the same
/// updated tensor, one of which updates it, the first.
std::vector<llvm::SmallVector<unsigned, 4>> dependencesIn(mlir::Block &block);

/// Operations of a program in the order in which they stand, copies aside: a
/// copy stands before the first operation that reads it or what it copies.
std::vector<mlir::Operation *> orderedOperations(ProgramOp program);

/// True if these are the numbers of orderedOperations(), each of them once, and
/// each operation is behind those that it depends on.
bool isWorkOrder(ProgramOp program, llvm::ArrayRef<int64_t> order);

/// Puts operations within their blocks into a work order; an empty one is that
/// in which they stand.
void moveInOrder(ProgramOp program, llvm::ArrayRef<int64_t> order);

/// Puts operations back where they stood before `order` moved them. The order
/// that a plan has chosen, or if it has none this one, is then said in the
/// numbers that they have there.
void moveBack(ProgramOp program, llvm::ArrayRef<int64_t> order);

/// The order that a plan has chosen (kWorkOrder); empty: that of the text.
llvm::ArrayRef<int64_t> workOrderOf(ProgramOp program);

} // namespace shardc::shd

#endif // SHARDC_DIALECT_SHD_IR_WORKORDER_H
