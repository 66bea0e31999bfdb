//===- LayerRuns.h - Statements that repeat -------------------*- C++ -*-===//
//
// Finds the layers that a program has written out (RollLayers.h).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_FRONTEND_LAYERRUNS_H
#define SHARDC_LIB_FRONTEND_LAYERRUNS_H

#include "shardc/Frontend/Ast.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"
#include <optional>
#include <vector>

namespace shardc {

/// The definition of a tensor: a declaration, or a name that a line assigns.
struct TensorDefinition {
  static constexpr size_t none = -1;
  /// Index into Lines::declarations.
  size_t declaration = none;
  /// Index into Lines::lines, and of the reference in that line.
  size_t line = none, reference = none;

  bool isDeclared() const { return declaration != none; }
  bool isAssigned() const { return line != none; }
  bool operator==(const TensorDefinition &) const = default;
};

/// A name of a tensor in the text.
struct TensorReference {
  llvm::StringRef text;
  bool reads = false, writes = false;
  /// The definition that it reads.
  TensorDefinition definition = {};
};

/// An assignment, a repeat or an output of the file.
struct Line {
  const ast::Item *item;
  std::vector<TensorReference> references;
  bool callsLayer = false;
  /// Lines of one number have the same text but for the names of tensors.
  unsigned alike = 0;

  const ast::AssignStmt *assign() const {
    return llvm::dyn_cast<ast::AssignStmt>(item);
  }
};

/// The lines of a file and what they read.
struct Lines {
  Lines(const ast::File &file, llvm::StringRef text);

  /// Inputs, weights and states of the file.
  std::vector<const ast::TensorDecl *> declarations;
  llvm::StringMap<size_t> declared;
  /// Outputs stand last: they have the last values.
  std::vector<Line> lines;
  /// Lines that read or write each declared tensor, one for each reference.
  std::vector<size_t> uses;
  /// Names of tensors, wherever they stand.
  llvm::StringSet<> names;
  llvm::StringSet<> outputs;
  /// Words in settings, and in layers of the file.
  llvm::StringSet<> settings, layers;
  /// A setting names tensors by a pattern.
  bool hasPattern = false;

private:
  void dropDims();
  void resolve();
  void compare();
};

/// Layers that are written one after another.
struct LayerRun {
  size_t first = 0, period = 0, count = 0;

  size_t end() const { return first + period * count; }
  size_t line(size_t layer, size_t offset) const {
    return first + layer * period + offset;
  }
  /// Statements that a repeat saves.
  size_t saved() const { return period * (count - 1); }
};

/// Runs of alike lines, those that save most first; not more than are worth a
/// try.
std::vector<LayerRun> findRuns(const Lines &lines);

/// A run as the body of a repeat.
struct RolledRun {
  LayerRun run;
  /// The names of the first layer's references, by line and reference.
  std::vector<std::vector<std::string>> names;
  /// Weights and states of each layer, by those of the first.
  std::vector<std::vector<size_t>> owned;
  /// New names, in later lines, of values that the repeat carries.
  llvm::StringMap<std::string> renamed;
  /// Names of the body, by their names without the layer's number.
  llvm::StringMap<std::string> shorter;
};

/// Nothing if the layers are no iterations: an iteration reads what all have,
/// its own, and what the one before it carries over.
std::optional<RolledRun> rollRun(const Lines &lines, const LayerRun &run,
                                 bool shortensNames);

} // namespace shardc

#endif // SHARDC_LIB_FRONTEND_LAYERRUNS_H
