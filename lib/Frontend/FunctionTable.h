//===- FunctionTable.h - The language's functions --------------*- C++ -*-===//
//
// Names, brackets and parameters of the functions
// (docs/Language.md#8-functions).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_FRONTEND_FUNCTIONTABLE_H
#define SHARDC_LIB_FRONTEND_FUNCTIONTABLE_H

#include "shardc/Dialect/Shd/IR/Shd.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <vector>

namespace shardc {

enum class FunctionKind : uint8_t {
  Elementwise,
  Reduction,
  Normalization,
  Attention,
  Rope,
  CrossEntropy,
  TopK,
  Dispatch,
  Combine,
  Split,
  Merge,
  Slice,
  Concat,
};

/// The form of a function's brackets.
enum class BracketKind : uint8_t { None, Names, Group, Range };

struct FunctionParameter {
  llvm::StringRef name;
  bool required = true;
};

struct FunctionInfo {
  llvm::StringRef name;
  FunctionKind kind;
  /// The shd::Function, shd::Reduction or shd::Normalization.
  uint32_t code = 0;
  BracketKind brackets = BracketKind::None;
  unsigned minBrackets = 0, maxBrackets = 0;
  llvm::ArrayRef<FunctionParameter> parameters;
  /// How it is written, for notes.
  llvm::StringRef usage;
};

/// The function of a name, or null.
const FunctionInfo *findFunction(llvm::StringRef name);
/// Names of all functions, in the order of the table.
std::vector<llvm::StringRef> functionNames();

} // namespace shardc

#endif // SHARDC_LIB_FRONTEND_FUNCTIONTABLE_H
