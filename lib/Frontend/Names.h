//===- Names.h - Lists of index names and near misses ----------*- C++ -*-===//
//
// Small helpers for names: ordered lists of index names, and the name that was
// probably meant where one is unknown.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_FRONTEND_NAMES_H
#define SHARDC_LIB_FRONTEND_NAMES_H

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>
#include <string>

namespace shardc {

/// Names of the dimensions of a tensor at one place, in order, distinct.
using IndexNames = llvm::SmallVector<mlir::StringAttr, 4>;
using IndexNamesRef = llvm::ArrayRef<mlir::StringAttr>;

inline bool contains(IndexNamesRef names, mlir::StringAttr name) {
  return llvm::is_contained(names, name);
}

/// Appends what `more` has and `names` lacks, in the order of `more`.
void addNames(IndexNames &names, IndexNamesRef more);

/// True if both hold the same names, in any order.
bool sameSet(IndexNamesRef a, IndexNamesRef b);

/// `[B, T, D]`.
std::string toString(IndexNamesRef names);

/// `1 index`, `2 indices`, `3 arguments`.
std::string counted(size_t count, llvm::StringRef noun);

/// The candidate that `name` is probably a misspelling of; the first of equally
/// near ones.
std::optional<std::string>
likelyName(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> candidates);

/// The element type that other frameworks call `name`.
std::optional<llvm::StringRef> likelyElementType(llvm::StringRef name);

} // namespace shardc

#endif // SHARDC_LIB_FRONTEND_NAMES_H
