//===- ProgramText.h - A program that is imported many times --*- C++ -*-===//
//
// The syntax of a program and its overrides, parsed once, and what a point of a
// sweep sets. Texts are read by as many threads at a time as one likes, each
// with an MLIR context of its own.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_FRONTEND_PROGRAMTEXT_H
#define SHARDC_FRONTEND_PROGRAMTEXT_H

#include "shardc/Frontend/Frontend.h"
#include "shardc/Machine/Meshes.h"

namespace shardc {

/// The files of a program and the texts of its overrides.
struct ProgramText {
  /// Holds the buffers that the syntax points into.
  llvm::SourceMgr *sourceMgr = nullptr;
  /// Main file first, then imported ones, and the buffer of each.
  std::vector<std::unique_ptr<ast::File>> files;
  std::vector<unsigned> buffers;
  /// Null where nothing is overridden.
  std::unique_ptr<ast::HardwareDecl> hardware;
  std::unique_ptr<ast::MeshDecl> mesh;
  std::vector<ast::DimDef> dims;
  bool allowPadding = false;
  bool calibrated = false;
  std::optional<StepForm> step;
  std::optional<AxisRoles> roles;
  std::optional<shd::ServingPhase> phase;
  /// Overrides::stages.
  std::string stages = {};

  /// True if the program is trained.
  bool hasTrainBlock() const;
  /// True if the layers of a repeat lie on an axis.
  bool hasPipeline() const;
  /// The `serve` block; null if there is none.
  const ast::ServeBlock *serveBlock() const;
  /// The machine that the block names for a phase; null if it names none.
  const ast::PhaseMachine *machineOf(shd::ServingPhase phase) const;
  /// The declaration that holds: the override, or the first in the files; null
  /// if there is none.
  const ast::HardwareDecl *hardwareDecl() const;
  const ast::MeshDecl *meshDecl() const;
};

/// One name with the value that takes the place of the program's and of the
/// overrides'.
struct Setting {
  enum class Kind { Dim, Axis, Hardware, Mesh, Step, Roles, Phase, Chunks };
  Kind kind = Kind::Dim;
  /// `hardware` for a machine, `mesh` for a mesh; `microbatches`, `remat`,
  /// `schedule` or `step` for a training step or a pipeline.
  std::string name;
  /// Extent of a dim, size of a mesh axis.
  int64_t number = 0;
  std::shared_ptr<const ast::HardwareDecl> machine;
  /// Where the value is written; what an error about it points at.
  llvm::SMRange where;
  std::shared_ptr<const ast::MeshDecl> mesh = nullptr;
  /// The mesh's axis with pipeline stages of the layers, where the program
  /// places no repeat; may be empty.
  std::string stages = {};
  /// The choices of a training step that it makes.
  StepForm step = {};
  /// Roles of the axes in a training step.
  AxisRoles roles = {};
  /// The phase of serving that the program becomes: its extents are set.
  shd::ServingPhase phase = shd::ServingPhase::Decode;
  /// The loss that runs in `number` chunks, counted among the program's.
  unsigned loss = 0;

  /// `64`, `tpu_v5e[4, 4]`.
  std::string valueText() const;
};

/// A mesh in place of the program's, `where` it is declared.
Setting meshSetting(const BoundMesh &mesh, llvm::SMRange where);
/// All choices of a training step.
Setting stepSetting(StepForm form);
/// Roles of the mesh axes in a training step.
Setting rolesSetting(AxisRoles roles);
/// Chunks of a loss, counted among the program's.
Setting chunksSetting(unsigned loss, int64_t chunks);
/// A phase of a program with a `serve` block.
Setting phaseSetting(shd::ServingPhase phase);

/// Parses the main file of `sourceMgr`, what it imports, and the overrides.
/// Syntax errors are emitted as diagnostics; nothing if there was any.
std::optional<ProgramText> readProgram(llvm::SourceMgr &sourceMgr,
                                       mlir::MLIRContext *context,
                                       const Overrides &overrides);

/// Checks the program with its settings and builds the `shd` module, which has
/// no `files`. Every independent error is emitted as a diagnostic of `context`;
/// nothing if there was any.
std::optional<Program> importProgram(const ProgramText &text,
                                     mlir::MLIRContext *context,
                                     llvm::ArrayRef<Setting> settings = {});

/// True if the dims, the machine and the mesh, without any tensor, are legal
/// with the settings: much cheaper than an import. Emits nothing.
bool checkSettings(const ProgramText &text, mlir::MLIRContext *context,
                   llvm::ArrayRef<Setting> settings);

} // namespace shardc

#endif // SHARDC_FRONTEND_PROGRAMTEXT_H
