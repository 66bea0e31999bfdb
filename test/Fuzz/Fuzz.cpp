//===- Fuzz.cpp - What the fuzz targets share -----------------------------===//

#include "Fuzz.h"
#include "mlir/IR/Verifier.h"
#include "shardc/Dialect/Spmd/IR/Spmd.h"
#include "shardc/Optimizer/Context.h"
#include "shardc/Pipelines/FasterBinding.h"
#include "shardc/Pipelines/Pipelines.h"
#include "shardc/PlanText/PlanText.h"
#include "shardc/Report/Report.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include <cstdlib>

using namespace mlir;
using namespace shardc;

/// libLLVM is built without sanitizers: allocators that poison what they keep
/// in one library must not do it for code in the other. The rest is for speed.
extern "C" const char *__asan_default_options() {
  return "allow_user_poisoning=0:detect_stack_use_after_return=0:"
         "malloc_context_size=5";
}

void fuzz::require(bool holds, const llvm::Twine &law) {
  if (holds)
    return;
  llvm::errs() << "does not hold: " << law << "\n";
  std::abort();
}

fuzz::Quiet::Quiet()
    : context(MLIRContext::Threading::DISABLED),
      handler(&context, [this](Diagnostic &diagnostic) {
        errors += diagnostic.getSeverity() == DiagnosticSeverity::Error;
        require(!diagnostic.str().empty(), "a diagnostic says something");
      }) {
  context.printOpOnDiagnostic(false);
  context.loadDialect<shd::ShdDialect, spmd::SpmdDialect>();
}

void fuzz::setText(llvm::SourceMgr &sourceMgr, llvm::StringRef text) {
  sourceMgr.setIncludeDirs({"no-such-folder"});
  sourceMgr.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBufferCopy(text, "input.shd"), llvm::SMLoc());
}

LogicalResult
fuzz::runPasses(Quiet &quiet, ModuleOp module,
                llvm::function_ref<void(OpPassManager &)> addPasses) {
  unsigned before = quiet.errors;
  PassManager manager(&quiet.context);
  // A program that does not verify is a defect of the pass, not an error.
  manager.enableVerifier(false);
  addPasses(manager);
  if (failed(manager.run(module))) {
    require(quiet.errors != before, "a pass that fails emits an error");
    return failure();
  }
  require(succeeded(verify(module)), "what a pass leaves verifies");
  return success();
}

/// The report in all its forms, and what follows it.
static void report(ModuleOp module, ModuleOp planned,
                   const PlanOptions &options) {
  shd::ProgramOp program = *module.getOps<shd::ProgramOp>().begin();
  std::unique_ptr<PlanningContext> context = createContext(program);
  fuzz::require(context != nullptr, "a planned program has a machine");
  ScheduledProgram scheduled =
      scheduleProgram(program, context->model, options.memoryLimit);
  ReportOptions reportOptions{"input.shd", options.memoryLimit,
                              /*timeline=*/true};
  Report report =
      buildReport(program, context->model, scheduled, reportOptions);
  report.fasterBinding = findFasterBinding(planned, program, context->model,
                                           report, reportOptions);
  printText(llvm::nulls(), report, /*colour=*/false);
  printJson(llvm::nulls(), report);
  (void)checkFits(report, scheduled.memory.peakLoc);
}

void fuzz::compile(llvm::StringRef text, const PlanOptions &options) {
  Quiet quiet;
  llvm::SourceMgr sourceMgr;
  setText(sourceMgr, text);
  std::optional<Program> program =
      importProgram(sourceMgr, &quiet.context, /*overrides=*/{});
  require(program.has_value() == (quiet.errors == 0),
          "a program is imported unless there is an error");
  if (!program)
    return;
  ModuleOp module = *program->module;
  require(succeeded(verify(module)), "an imported program verifies");
  quiet.context.getLoadedDialect<shd::ShdDialect>()->setMachineLoader(
      [machine = program->machine](shd::HardwareAttr) { return machine; });
  if (failed(runPasses(quiet, module, [&](OpPassManager &manager) {
        buildPlanPipeline(manager, options);
      })))
    return;
  OwningOpRef<ModuleOp> planned = module.clone();
  printPlan(llvm::nulls(), *program, sourceMgr,
            *module.getOps<shd::ProgramOp>().begin(), /*overrides=*/{});
  require(succeeded(runPasses(quiet, module, buildLoweringPipeline)),
          "a plan can be made explicit");
  report(module, *planned, options);
  if (succeeded(runPasses(quiet, module, buildSpmdPipeline)))
    module->print(llvm::nulls());
}
