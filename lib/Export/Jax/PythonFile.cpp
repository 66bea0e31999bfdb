//===- PythonFile.cpp - Names, sizes and types of an exported file --------===//

#include "PythonFile.h"
#include "shardc/Dialect/Shd/IR/Explicit.h"
#include "shardc/Dialect/Spmd/IR/Spmd.h"
#include "llvm/ADT/StringExtras.h"
#include <charconv>

using namespace mlir;
using namespace shardc;
using namespace shardc::jax;

std::string jax::commas(ArrayRef<std::string> items) {
  return llvm::join(items, ", ");
}

std::string jax::pythonTuple(ArrayRef<std::string> items) {
  return cat("(", commas(items), items.size() == 1 ? ",)" : ")");
}

std::string jax::quoted(StringRef name) { return cat('"', name, '"'); }

std::string jax::number(const llvm::APFloat &value) {
  if (value.isInfinity())
    return value.isNegative() ? "-jnp.inf" : "jnp.inf";
  llvm::APFloat exact = value;
  bool losesInfo = false;
  exact.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven,
                &losesInfo);
  char text[32];
  char *end =
      std::to_chars(std::begin(text), std::end(text), exact.convertToDouble())
          .ptr;
  StringRef digits(text, end - text);
  bool isReal = digits.find_first_of(".en") != StringRef::npos;
  return isReal ? digits.str() : cat(digits, ".0");
}

std::string jax::atom(const std::string &expression) {
  int depth = 0;
  bool compound = StringRef(expression).starts_with("-");
  for (char c : expression) {
    depth += c == '(' || c == '[' || c == '{';
    depth -= c == ')' || c == ']' || c == '}';
    compound |= c == ' ' && depth == 0;
  }
  return compound ? cat("(", expression, ")") : expression;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

static constexpr StringLiteral kKeywords[] = {
    "False",  "None",   "True",    "and",      "as",       "assert",   "async",
    "await",  "break",  "class",   "continue", "def",      "del",      "elif",
    "else",   "except", "finally", "for",      "from",     "global",   "if",
    "import", "in",     "is",      "lambda",   "nonlocal", "not",      "or",
    "pass",   "raise",  "return",  "try",      "while",    "with",     "yield",
    "match",  "case",   "bool",    "range",    "len",      "print",    "zip",
    "tuple",  "dict",   "abs",     "max",      "min",      "float",    "int",
    "list",   "set",    "open",    "sum",      "slice",    "enumerate"};

PythonNames::PythonNames() {
  for (StringRef keyword : kKeywords)
    used.insert(keyword);
}

std::string PythonNames::make(StringRef wanted) {
  std::string base;
  for (char c : wanted)
    base += llvm::isAlnum(c) ? c : '_';
  if (base.empty() || llvm::isDigit(base.front()))
    base = "v" + base;
  std::string name = base;
  for (unsigned number = 2; !used.insert(name).second; ++number)
    name = cat(base, "_", number);
  return name;
}

std::string SizeTable::key(StringRef name, int64_t full, int64_t small) {
  std::string key = name.str();
  for (unsigned number = 2;; ++number) {
    auto known = llvm::find_if(
        table, [&](const Entry &entry) { return entry.name == key; });
    if (known == table.end())
      break;
    if (known->full == full && known->small == small)
      return key;
    key = cat(name, "_", number);
  }
  table.push_back({key, full, small});
  return key;
}

std::string SizeTable::size(StringRef name, int64_t full, int64_t small) {
  return cat("size[", quoted(key(name, full, small)), "]");
}

std::string SizeTable::number(StringRef name, int64_t full, int64_t small) {
  if (full == small)
    return std::to_string(full);
  return size(name, full, small);
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

std::string PythonFile::type(Type element) {
  StringRef name = shd::typeName(element);
  if (name == "bool")
    return "bool";
  types.insert(name.str());
  return name.str();
}

std::string PythonFile::axisNames(ArrayRef<AxisIndex> axes) const {
  return commas(llvm::map_to_vector(
      axes, [&](AxisIndex axis) { return quoted(mesh.axes[axis].name); }));
}

std::string PythonFile::axisTuple(ArrayRef<AxisIndex> axes) const {
  if (axes.size() == 1)
    return axisNames(axes);
  return cat("(", axisNames(axes), ")");
}

SmallVector<std::string> PythonFile::partitionedDims(Type global) const {
  Layout layout = shd::explicitLayout(mesh, global);
  return llvm::map_to_vector(layout.dims, [&](const AxisList &axes) {
    return axes.empty() ? std::string("None") : axisTuple(axes);
  });
}

std::string PythonFile::partitionSpec(Type global) const {
  return cat("P(", commas(partitionedDims(global)), ")");
}
