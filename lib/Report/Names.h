//===- Names.h - Names and notation of a planned program -------*- C++ -*-===//
//
// How the report's parts call operations, values, shardings and places.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_REPORT_NAMES_H
#define SHARDC_LIB_REPORT_NAMES_H

#include "shardc/Optimizer/Names.h"
#include "shardc/Report/Report.h"
#include <string>
#include <vector>

namespace shardc {

/// The operand that a collective moves and the axes it runs over.
mlir::Value collectiveInput(mlir::Operation *op);
std::vector<std::string> collectiveAxes(mlir::Operation *op);

/// `einsum`, `all_gather`: the operation's name without the dialect.
llvm::StringRef mnemonic(mlir::Operation *op);
/// `relu`, `softmax`, `sum`, or the mnemonic.
llvm::StringRef functionName(mlir::Operation *op);

/// The name of the statement that an operation is part of, or of the tensor
/// that it declares; its mnemonic if nothing names it.
std::string nameOf(mlir::Operation *op);

/// Index names of an operand as its user calls them; those of the value if the
/// user has none.
std::vector<std::string> operandIndexNames(mlir::OpOperand &operand);

/// Names of the indices of what a collective moves.
std::vector<std::string> collectiveIndices(mlir::Operation *op);

/// `a`, `a and b`, `a, b and c`.
std::string joinWords(llvm::ArrayRef<std::string> words);

} // namespace shardc

#endif // SHARDC_LIB_REPORT_NAMES_H
