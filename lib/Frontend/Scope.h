//===- Scope.h - What the names of tensors mean ----------------*- C++ -*-===//
//
// Names of tensors at one point of the program: file level, a repeat's body, a
// layer call. A layer sees the file's weights and states and nothing else of
// its callers (docs/Language.md#10-layers-repetition-imports).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_FRONTEND_SCOPE_H
#define SHARDC_LIB_FRONTEND_SCOPE_H

#include "Names.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/SMLoc.h"
#include <vector>

namespace shardc {

/// The latest value of a name.
struct Binding {
  enum class Kind { Input, Weight, State, Local };

  Kind kind = Kind::Local;
  /// Null after an error: uses are then silent.
  mlir::Value value;
  /// Names of the declaration or left side that made the value.
  IndexNames indices;
  /// Where the name was declared or first assigned.
  llvm::SMRange where;
  /// Declared at file level: what layers see of it, if it is resident.
  bool fileLevel = false;
  /// Carried by the repeat whose body this scope is.
  bool carried = false;

  /// States and carried values keep their type when they are assigned.
  bool keepsType() const { return kind == Kind::State || carried; }
};

class Scope {
public:
  enum class Kind { File, Repeat, Layer };
  Scope(Kind kind, Scope *parent) : kind(kind), parent(parent) {}

  /// The binding that `name` means here, or null.
  Binding *find(llvm::StringRef name) {
    bool crossed = false;
    for (Scope *scope = this; scope; scope = scope->parent) {
      auto it = scope->bindings.find(name);
      if (it != scope->bindings.end() && (!crossed || isShared(it->second)))
        return &it->second;
      crossed |= scope->kind == Kind::Layer;
    }
    return nullptr;
  }
  /// The binding of this scope itself.
  Binding &local(llvm::StringRef name) { return bindings[name]; }
  bool hasLocal(llvm::StringRef name) const { return bindings.contains(name); }

  /// Every name visible here, sorted within each scope.
  std::vector<llvm::StringRef> visibleNames() const {
    std::vector<llvm::StringRef> names;
    bool crossed = false;
    for (const Scope *scope = this; scope; scope = scope->parent) {
      size_t begin = names.size();
      for (const auto &entry : scope->bindings)
        if (!crossed || isShared(entry.second))
          names.push_back(entry.first());
      std::sort(names.begin() + begin, names.end());
      crossed |= scope->kind == Kind::Layer;
    }
    return names;
  }

private:
  static bool isShared(const Binding &binding) {
    return binding.fileLevel && (binding.kind == Binding::Kind::Weight ||
                                 binding.kind == Binding::Kind::State);
  }

  Kind kind;
  Scope *parent;
  llvm::StringMap<Binding> bindings;
};

} // namespace shardc

#endif // SHARDC_LIB_FRONTEND_SCOPE_H
