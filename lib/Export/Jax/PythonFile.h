//===- PythonFile.h - What the parts of an exported file share --*- C++ -*-===//
//
// Private to lib/Export/Jax: names, sizes, element types and helper functions
// of the Python file that is being written.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_EXPORT_JAX_PYTHONFILE_H
#define SHARDC_LIB_EXPORT_JAX_PYTHONFILE_H

#include "shardc/Dialect/Shd/IR/Shd.h"
#include "llvm/ADT/StringSet.h"
#include <set>
#include <string>
#include <vector>

namespace shardc::jax {

/// `pieces` one after the other.
template <typename... Pieces> std::string cat(const Pieces &...pieces) {
  std::string text;
  llvm::raw_string_ostream os(text);
  (os << ... << pieces);
  return text;
}

/// `a, b, c`
std::string commas(llvm::ArrayRef<std::string> items);
/// `(a, b)`, `(a,)`, `()`
std::string pythonTuple(llvm::ArrayRef<std::string> items);
/// `"name"`
std::string quoted(llvm::StringRef name);
/// The shortest text that reads back as the same real number.
std::string number(const llvm::APFloat &value);
/// `expression` in parentheses if an operator in it would bind less than what
/// follows: a method call or an index.
std::string atom(const std::string &expression);

/// Makes identifiers that differ from each other and from Python's words.
class PythonNames {
public:
  PythonNames();
  std::string make(llvm::StringRef wanted);
  void reserve(llvm::StringRef name) { used.insert(name); }

private:
  llvm::StringSet<> used;
};

/// The indices of the program and other numbers that its small form changes.
class SizeTable {
public:
  struct Entry {
    std::string name;
    int64_t full = 1, small = 1;
  };

  /// The key of an index in the table; `D_2` if an index of the name has
  /// another extent elsewhere.
  std::string key(llvm::StringRef name, int64_t full, int64_t small);
  /// `size["D"]`: how the file writes what the table has.
  std::string size(llvm::StringRef name, int64_t full, int64_t small);
  /// A number that is no extent: itself if both forms have the same.
  std::string number(llvm::StringRef name, int64_t full, int64_t small);

  llvm::ArrayRef<Entry> entries() const { return table; }

private:
  std::vector<Entry> table;
};

/// The file so far.
struct PythonFile {
  Mesh mesh;
  SizeTable sizes;
  /// The name in the file of each input, weight and state.
  llvm::StringMap<std::string> parameters;
  /// Names of the module: functions of it may not use them for values.
  PythonNames names;
  /// Chunks of layers on each stage of a pipeline, and whether some have fewer
  /// layers than others.
  int64_t chunks = 1;
  bool isUneven = false;
  /// The operation of the small program that stands for one of the full one.
  llvm::DenseMap<mlir::Operation *, mlir::Operation *> small;
  /// Element types of the language that the file mentions.
  std::set<std::string> types;
  /// Helper functions that it calls.
  std::set<std::string> helpers;

  /// The name of an element type in the file.
  std::string type(mlir::Type element);
  /// A helper function's name, which is then defined.
  llvm::StringRef helper(llvm::StringRef name) {
    helpers.insert(name.str());
    return name;
  }
  /// The axes of each dimension, as Python's text.
  llvm::SmallVector<std::string> partitionedDims(mlir::Type global) const;
  /// `P("X", None)`.
  std::string partitionSpec(mlir::Type global) const;
  /// `"X", "Y"`
  std::string axisNames(llvm::ArrayRef<AxisIndex> axes) const;
  /// `"X"` or `("X", "Y")`
  std::string axisTuple(llvm::ArrayRef<AxisIndex> axes) const;
};

/// The definitions of the helper functions that a file uses, with all that they
/// use themselves.
std::string helperDefinitions(const std::set<std::string> &helpers);
void reserveHelperNames(PythonNames &names);

} // namespace shardc::jax

#endif // SHARDC_LIB_EXPORT_JAX_PYTHONFILE_H
