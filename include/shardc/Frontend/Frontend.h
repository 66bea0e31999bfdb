//===- Frontend.h - From .shd text to the shd dialect ---------*- C++ -*-===//
//
// Parse, check, import (docs/Language.md). The only library with ANTLR in it.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_FRONTEND_FRONTEND_H
#define SHARDC_FRONTEND_FRONTEND_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "shardc/Dialect/Shd/IR/Serving.h"
#include "shardc/Frontend/Ast.h"
#include "shardc/Frontend/AxisRoles.h"
#include "shardc/Machine/Machine.h"

namespace shardc {

/// The outer choices of a training step or of a pipeline, in place of those of
/// the program.
struct StepForm {
  /// Of the whole batch; 0: the compiler chooses.
  std::optional<int64_t> microbatches;
  /// `auto`, `none` or `full`; takes the place of a `save` list, too.
  std::optional<std::string> remat;
  /// With `remat`: values that are recomputed all the same, as shd.training
  /// names them.
  std::vector<std::string> recomputed;
  /// The order of a pipeline's stages, as a `train` block writes it, or `auto`.
  std::optional<std::string> schedule;
  /// `none`, `optimizer` or `auto`.
  std::optional<std::string> offload;
  /// `update = fused`, whatever the program says.
  bool isFused = false;

  bool operator==(const StepForm &other) const = default;
};

/// The training of a program with other outer choices.
shd::TrainingAttr withStep(shd::TrainingAttr attr, const StepForm &form);
/// The schedule of a pipeline with another order.
shd::PipelineAttr withOrder(shd::PipelineAttr attr, llvm::StringRef order);

/// Texts of `--hardware`, `--mesh` and `--dim`, in the language's own syntax.
struct Overrides {
  std::optional<std::string> hardware; // "tpu_v5p[8, 8, 16]"
  std::optional<std::string> mesh;     // "[X=8, Y=8 on y]" or "auto"
  std::vector<std::string> dims;       // "B=64"
  /// Axes need not divide the extents that they split (`--allow-padding`).
  bool allowPadding = false;
  /// Times are the machine's calibrated ones (`--calibrated`).
  bool calibrated = false;
  /// An axis with pipeline stages of the layers, where the program places no
  /// repeat: as if it said `repeat L@pp`. May be empty.
  std::string stages = {};
  /// Outer choices that were made for a training step.
  std::optional<StepForm> step = {};
  /// Roles of the mesh axes in a training step.
  std::optional<AxisRoles> roles = {};
  /// The phase that a program with a `serve` block is planned as (`--phase`).
  std::optional<shd::ServingPhase> phase = {};
};

/// Parses the texts; false after errors in their syntax, which are reported in
/// buffers that `sourceMgr` gets for them.
bool checkOverrides(llvm::SourceMgr &sourceMgr, mlir::MLIRContext *context,
                    const Overrides &overrides);

/// A program, checked and imported.
struct Program {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// The program as it is written, if a training step was made of it.
  mlir::OwningOpRef<mlir::ModuleOp> forward = {};
  /// Main file first, then imported ones.
  std::vector<std::unique_ptr<ast::File>> files;
  /// The machine with its shape; nothing if the program names none.
  std::optional<Machine> machine;
  Mesh mesh;
  MeshBinding binding;
  /// Set by `mesh auto`, and by a program without a mesh. `mesh` is then that
  /// of one device: axes with the given names, of size 1.
  struct AutoMesh {
    std::vector<std::string> names;
    /// `mesh auto`, or else where the machine is named.
    llvm::SMRange where;
  };
  /// Nothing if the program says which mesh it is, or there is one chip.
  std::optional<AutoMesh> autoMesh;
  /// Set by `batch = auto`, unless an option or a setting says how large the
  /// batch is.
  struct AutoBatch {
    /// The dim that is to be chosen.
    std::string dim;
    llvm::SMRange where;
  };
  std::optional<AutoBatch> autoBatch;
};

/// Parses the main file of `sourceMgr`. Syntax errors are emitted as MLIR
/// diagnostics (all of them); null if there were any. Never throws.
std::unique_ptr<ast::File> parseFile(llvm::SourceMgr &sourceMgr,
                                     unsigned bufferId,
                                     mlir::MLIRContext *context);

/// Parses, follows imports, checks, and builds the `shd` module, as written.
/// Every independent error is emitted as a diagnostic; nothing if there was
/// any.
std::optional<Program> importProgram(llvm::SourceMgr &sourceMgr,
                                     mlir::MLIRContext *context,
                                     const Overrides &overrides);

/// The catalogue: names of the embedded hardware files, sorted.
std::vector<std::string> catalogueNames();
/// The names of the catalogue that `name` is probably meant to be: `'a' or
/// 'b'`.
std::string likelyHardware(llvm::StringRef name);
/// A machine of the catalogue without a shape, or nothing if the name is not in
/// it.
std::optional<Machine> catalogueMachine(llvm::StringRef name);
/// Lets passes over modules that are read as text find the machines that they
/// name in the catalogue.
void registerCatalogue(mlir::DialectRegistry &registry);

} // namespace shardc

#endif // SHARDC_FRONTEND_FRONTEND_H
