//===- PlanExpr.h - Operations as expressions of the language --*- C++ -*-===//
//
// Prints one operation so that reading it back makes the same operation. Used
// where a statement is taken apart.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_PLANTEXT_PLANEXPR_H
#define SHARDC_LIB_PLANTEXT_PLANEXPR_H

#include "shardc/Dialect/Shd/IR/Shd.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <string>

namespace shardc {

/// The text of an operand where it is read.
struct OperandText {
  std::string text;
  /// True if `text` is a name, to be followed by its index list; false if it is
  /// a whole expression.
  bool isName = true;
};

using OperandNamer = llvm::function_ref<OperandText(mlir::OpOperand &)>;

/// The operation as the right side of a statement. A scatter is its update.
std::string printExpression(mlir::Operation *op, OperandNamer namer);

/// The index list of a gather's table or a scatter's destination, placed as
/// `pin` says; dimensions that positions read hold those.
std::string printGatheredList(mlir::Operation *op, shd::ShardingAttr pin,
                              OperandNamer namer);

/// True if the expression is a name or call, which stands anywhere in another
/// expression without changing what that means.
bool isCallShaped(mlir::Operation *op);

/// True if operands of the expression may be whole expressions: they are not
/// where a statement reads or writes at positions, or only moves a value.
bool takesExpressions(mlir::Operation *op);

/// True if the operation repeats its operands along an index that none of them
/// has, or orders their indices otherwise than they come. Inside an expression
/// it would not: the outermost operation does.
bool arrangesIndices(mlir::Operation *op);

/// True if an operation adds to what it writes into in place (`+=`).
bool addsInPlace(mlir::Operation *op);

/// True if a statement without an element type gives the result the type that
/// it has here.
bool hasNaturalType(mlir::Operation *op);

/// Index names of an operand as the operation calls them.
std::vector<std::string> operandIndices(mlir::OpOperand &operand);
/// Index names of the operation's result.
std::vector<std::string> resultIndices(mlir::Operation *op);

} // namespace shardc

#endif // SHARDC_LIB_PLANTEXT_PLANEXPR_H
