//===- Names.h - The user's names of values -------------------*- C++ -*-===//

#ifndef SHARDC_OPTIMIZER_NAMES_H
#define SHARDC_OPTIMIZER_NAMES_H

#include "shardc/Dialect/Shd/IR/Shd.h"

namespace shardc {

/// The value behind collectives and copies: what an operation, a declaration or
/// a repeat made.
mlir::Value rootValue(mlir::Value value);

/// Name of a value in reports (a carried value has its initial value's).
std::string valueName(mlir::Value value);

/// True if the program has a name for the tensor that the operation declares or
/// makes, and with it a place for an `@`.
bool isNamedTensor(mlir::Operation *op);

/// Names of the value's indices, as its maker calls them.
llvm::SmallVector<std::string, 4> indexNames(mlir::Value value);

/// `[B@X, D]{+Y}`. Dimensions without a name are called `_`.
std::string notation(const Mesh &mesh, const Layout &layout,
                     llvm::ArrayRef<std::string> names);

} // namespace shardc

#endif // SHARDC_OPTIMIZER_NAMES_H
