//===- Dims.h - Extents of indices -----------------------------*- C++ -*-===//
//
// The dims of a file, layer call or block: integer arithmetic over names that
// may be defined in any order (docs/Language.md#4-dimensions). Nothing here
// recurses on the length of a definition or of a chain of definitions.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_FRONTEND_DIMS_H
#define SHARDC_LIB_FRONTEND_DIMS_H

#include "Source.h"
#include "shardc/Frontend/Ast.h"
#include "llvm/ADT/StringMap.h"
#include <optional>

namespace shardc {

/// Names with their extents. Names that it lacks are looked up in `parent`.
class DimScope {
public:
  DimScope(SourceFiles &files, DimScope *parent)
      : files(files), parent(parent) {}

  /// Adds a definition, evaluated when it is first used. An error if this scope
  /// has the name already.
  void define(const ast::DimDef &def);
  /// Gives a name a known extent; `none` and failed ones have no extent.
  void bind(llvm::StringRef name, std::optional<int64_t> extent,
            llvm::SMRange where, bool isNone = false);
  /// Takes the definition of `name` from an override instead; false if this
  /// scope does not define it.
  bool replace(const ast::DimDef &def);

  /// True if this scope or one around it has the name.
  bool has(llvm::StringRef name) const { return find(name) != nullptr; }
  /// True if `name` is a layer's `dim` parameter whose argument was `none`.
  bool isNone(llvm::StringRef name) const;
  /// Where the name is defined.
  llvm::SMRange definition(llvm::StringRef name) const;
  /// The extent of `name`. Reports an unknown name or a faulty definition
  /// (once) and then has no value.
  std::optional<int64_t> extent(llvm::StringRef name, llvm::SMRange use);
  /// The value of an expression, which need not be an extent.
  std::optional<int64_t> evaluate(const ast::DimExpr &expr);
  /// Evaluates every definition of this scope, in the order of definition.
  void evaluateAll();

private:
  struct Entry {
    const ast::DimExpr *value = nullptr;
    llvm::SMRange where;
    enum class State { New, Active, Done, Failed, None } state = State::New;
    int64_t extent = 0;
  };

  const Entry *find(llvm::StringRef name) const;
  /// Evaluates the definition of `name` and all that it needs.
  void resolve(llvm::StringRef name);
  void finish(llvm::StringRef name, Entry &entry);
  void reportCycle(llvm::ArrayRef<llvm::StringRef> active,
                   llvm::StringRef again);
  std::optional<int64_t> apply(const ast::DimExpr &expr,
                               llvm::ArrayRef<int64_t> operands);
  void reportUnknown(llvm::StringRef name, llvm::SMRange use);
  std::vector<llvm::StringRef> names() const;

  SourceFiles &files;
  DimScope *parent;
  llvm::StringMap<Entry> entries;
  /// Names in the order of definition.
  std::vector<llvm::StringRef> order;
};

/// `a op b` for the dims operators; no value (and the reason) if the quotient
/// is not exact or the result does not fit 64 bits.
std::optional<int64_t> dimArithmetic(ast::DimExpr::Kind kind, int64_t a,
                                     int64_t b, std::string &why);
/// `min`, `max` or `ceildiv` of its arguments, as above.
std::optional<int64_t> dimFunction(llvm::StringRef name,
                                   llvm::ArrayRef<int64_t> arguments,
                                   std::string &why);

} // namespace shardc

#endif // SHARDC_LIB_FRONTEND_DIMS_H
