//===- TestProgram.h - Programs on their way to a plan --------*- C++ -*-===//
//
// Imports a program and runs the planner's passes on it, for tests.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TEST_UNIT_OPTIMIZER_TESTPROGRAM_H
#define SHARDC_TEST_UNIT_OPTIMIZER_TESTPROGRAM_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "shardc/Dialect/Shd/Transforms/Passes.h"
#include "shardc/Frontend/Frontend.h"
#include "shardc/Optimizer/Context.h"
#include "shardc/Pipelines/Compilation.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

namespace shardc::test {

/// A `.shd` program in memory. `module()` is null if it has errors.
class TestProgram {
public:
  explicit TestProgram(llvm::StringRef text, const Overrides &overrides = {})
      : TestProgram(llvm::MemoryBuffer::getMemBufferCopy(text, "test.shd"),
                    overrides) {}

  /// A file of models/.
  static std::unique_ptr<TestProgram> ofModel(llvm::StringRef name) {
    auto buffer = llvm::MemoryBuffer::getFile(
        (SHARDC_MODELS_DIR "/" + name).str(), /*IsText=*/true);
    if (!buffer)
      return nullptr;
    return std::unique_ptr<TestProgram>(new TestProgram(std::move(*buffer)));
  }

  /// A module in the textual form of the shd dialect.
  static std::unique_ptr<TestProgram> ofModule(llvm::StringRef text) {
    return std::unique_ptr<TestProgram>(new TestProgram(ModuleText{text}));
  }

  mlir::ModuleOp module() {
    return program ? program->module.get() : mlir::ModuleOp();
  }
  /// What was reported so far, one message a line.
  const std::string &messages() const { return diagnostics; }

  /// With the text that it was read from.
  const Program &imported() const { return *program; }
  llvm::SourceMgr &sourceMgr() { return sources; }

  mlir::OwningOpRef<mlir::ModuleOp> clone() { return module().clone(); }

  /// Makes the step of a program that is trained; false after an error.
  bool makeStep() {
    if (!programOf(module()).getTraining())
      return true;
    Compilation compilation(clone());
    program->module = compilation.takeModule();
    return !compilation.isFailed();
  }

  /// Runs passes on the programs of `module` and verifies after each.
  bool run(mlir::ModuleOp module,
           llvm::function_ref<void(mlir::OpPassManager &)> build) {
    mlir::PassManager manager(&context);
    build(manager.nest<shd::ProgramOp>());
    return succeeded(manager.run(module));
  }

  static shd::ProgramOp programOf(mlir::ModuleOp module) {
    return *module.getOps<shd::ProgramOp>().begin();
  }

private:
  struct ModuleText {
    llvm::StringRef text;
  };

  TestProgram() : context(mlir::MLIRContext::Threading::DISABLED) {
    context.getDiagEngine().registerHandler([this](mlir::Diagnostic &message) {
      llvm::raw_string_ostream(diagnostics)
          << message.getLocation() << ": " << message << '\n';
      for (mlir::Diagnostic &note : message.getNotes())
        llvm::raw_string_ostream(diagnostics) << "note: " << note << '\n';
      return mlir::success();
    });
  }

  explicit TestProgram(ModuleText module) : TestProgram() {
    mlir::DialectRegistry registry;
    registry.insert<shd::ShdDialect>();
    registerCatalogue(registry);
    context.appendDialectRegistry(registry);
    auto parsed =
        mlir::parseSourceString<mlir::ModuleOp>(module.text, &context);
    if (!parsed)
      return;
    program.emplace();
    program->module = std::move(parsed);
  }

  explicit TestProgram(std::unique_ptr<llvm::MemoryBuffer> buffer,
                       const Overrides &overrides = {})
      : TestProgram() {
    auto *dialect = context.getOrLoadDialect<shd::ShdDialect>();
    sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
    program = importProgram(sources, &context, overrides);
    if (program)
      dialect->setMachineLoader(
          [this](shd::HardwareAttr) { return program->machine; });
  }

  mlir::MLIRContext context;
  llvm::SourceMgr sources;
  std::string diagnostics;
  std::optional<Program> program;
};

} // namespace shardc::test

#endif // SHARDC_TEST_UNIT_OPTIMIZER_TESTPROGRAM_H
