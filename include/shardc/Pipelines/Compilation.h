//===- Compilation.h - One program through all stages ---------*- C++ -*-===//
//
// The sequence of stages from an imported program to its schedule and to the
// program of one device. Reports, plan texts and questions about many plans
// are built on it; no one else runs the pipelines one after the other.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_PIPELINES_COMPILATION_H
#define SHARDC_PIPELINES_COMPILATION_H

#include "shardc/Frontend/ProgramText.h"
#include "shardc/Optimizer/Context.h"
#include "shardc/Optimizer/Options.h"
#include "shardc/Schedule/ScheduledProgram.h"
#include "shardc/Schedule/StagePlan.h"
#include "shardc/Solver/Solve.h"

namespace mlir {
class OpPassManager;
class PassManager;
} // namespace mlir

namespace shardc {

/// Imports a program (importProgram), and makes the whole step of one that is
/// trained; nothing after an error.
std::optional<Program> importStep(const ProgramText &text,
                                  mlir::MLIRContext *context,
                                  llvm::ArrayRef<Setting> settings = {});
std::optional<Program> importStep(llvm::SourceMgr &sourceMgr,
                                  mlir::MLIRContext *context,
                                  const Overrides &overrides);

struct CompileOptions {
  PlanOptions plan;
  /// Verify the module after each pass. Whoever compiles one program many times
  /// saves that: the import has verified it, and the passes are the same.
  bool verifyPasses = true;
  /// Called with each pass manager before it runs: timing, options of the
  /// command line.
  std::function<llvm::LogicalResult(mlir::PassManager &)> configure = {};
  /// The planned module, as bytecode, if it is known: then nothing is searched.
  std::shared_ptr<const std::string> knownPlan = nullptr;
  /// Ends the search soon after it becomes true.
  const std::atomic<bool> *interrupted = nullptr;
  /// Called as a search begins; what it returns is called with picoseconds of
  /// the objective until the search ends, and then destroyed.
  using Progress = std::function<void(const solver::SearchProgress &)>;
  std::function<Progress()> beginProgress = {};
};

/// A program and the stage that it has reached. Each stage is computed when it
/// is first asked for, after all before it; errors are emitted as diagnostics,
/// and a compilation that has failed stays failed. One module goes through the
/// stages: whoever needs an earlier one later clones it in time.
class Compilation {
public:
  enum class Stage {
    /// As written, before any sharding decision; a program that is trained is
    /// the whole step.
    Imported,
    /// Every value and use has a closed pin.
    Planned,
    /// Shardings in types, collectives and costs.
    Explicit,
    /// The program of one device.
    Spmd
  };

  /// Starts with a program that was imported; its machine is that of the
  /// module's context from here on.
  explicit Compilation(Program program, CompileOptions options = {});
  /// Starts with a module that has reached `stage`; the dialect of its context
  /// knows the machine.
  explicit Compilation(mlir::OwningOpRef<mlir::ModuleOp> module,
                       Stage stage = Stage::Imported,
                       CompileOptions options = {});

  /// The stage of a module that is read as text: explicit if it records a plan.
  static Stage stageOf(mlir::ModuleOp module);

  /// Imports a text; nothing after an error.
  static std::optional<Compilation> import(llvm::SourceMgr &sourceMgr,
                                           mlir::MLIRContext *context,
                                           const Overrides &overrides,
                                           CompileOptions options = {});

  Stage stage() const { return reached; }
  mlir::ModuleOp module() { return *imported.module; }
  /// Ends the compilation.
  mlir::OwningOpRef<mlir::ModuleOp> takeModule() {
    return std::move(imported.module);
  }
  /// The program of the module; null if it has none, as that of one device.
  shd::ProgramOp program();
  /// The imported program: files, machine and mesh. Empty if the compilation
  /// started with a module.
  const Program &source() const { return imported; }
  /// May be changed before the stage that reads them.
  CompileOptions &options() { return how; }
  /// True after an error, which was reported.
  bool isFailed() const { return hasFailed; }
  /// The imported program of which a training step was made; null if none was.
  mlir::ModuleOp forward() {
    return imported.forward ? *imported.forward : mlir::ModuleOp();
  }
  mlir::OwningOpRef<mlir::ModuleOp> clone() { return module().clone(); }

  /// Assigns fusion groups and decides nothing: enough to build the network of
  /// the search. Planning needs no such preparation.
  llvm::LogicalResult prepareNetwork();
  /// Decides every sharding.
  llvm::LogicalResult plan();
  /// Makes the plan explicit: collectives and costs.
  llvm::LogicalResult lower();
  /// The explicit plan in time and memory; null after an error.
  const ScheduledProgram *schedule();
  /// The scheduled program in pipeline stages; null if it has none, or after an
  /// error.
  const StagePlan *stages();
  /// The memory that the schedule may take; nothing: what the machine has.
  std::optional<int64_t> limitOfStage() const;
  /// The machine, mesh and reshard planner of the explicit plan; null before it
  /// is scheduled.
  PlanningContext *planning() { return context.get(); }
  /// Marks the collective matmuls of the schedule in the explicit plan, for
  /// convertToSpmd() and whoever else runs them in chunks.
  llvm::LogicalResult markRings();
  /// Makes the program of one device.
  llvm::LogicalResult convertToSpmd();

private:
  llvm::LogicalResult search();
  llvm::LogicalResult searchStages();
  void scheduleWithinLimit();
  llvm::LogicalResult
  run(llvm::function_ref<void(mlir::OpPassManager &)> buildPipeline);
  llvm::LogicalResult
  advance(Stage stage,
          llvm::function_ref<void(mlir::OpPassManager &)> buildPipeline);

  Program imported;
  CompileOptions how;
  Stage reached;
  bool hasFailed = false;
  std::unique_ptr<PlanningContext> context;
  std::optional<ScheduledProgram> scheduled;
  std::optional<StagePlan> inStages;
  /// Bytes that the program of a stage that has everything takes more than any
  /// stage does, and so may take more than there are; 0 where it fits.
  int64_t besideStage = 0;
};

} // namespace shardc

#endif // SHARDC_PIPELINES_COMPILATION_H
