//===- Fuzz.cpp - What the fuzz targets share -----------------------------===//

#include "Fuzz.h"
#include "mlir/IR/Verifier.h"
#include "shardc/Dialect/Spmd/IR/Spmd.h"
#include "shardc/PlanText/PlanText.h"
#include "shardc/Questions/FasterBinding.h"
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

/// Runs a stage of a compilation as runPasses() does passes.
static LogicalResult runStage(fuzz::Quiet &quiet, Compilation &compilation,
                              LogicalResult (Compilation::*stage)()) {
  unsigned before = quiet.errors;
  if (failed((compilation.*stage)())) {
    fuzz::require(quiet.errors != before, "a stage that fails emits an error");
    return failure();
  }
  fuzz::require(succeeded(verify(compilation.module())),
                "what a stage leaves verifies");
  return success();
}

/// The report in all its forms, and what follows it.
static void report(Compilation &compilation, ModuleOp planned) {
  ReportOptions options{"input.shd", std::nullopt, /*timeline=*/true};
  std::optional<Report> report = buildReport(compilation, options);
  fuzz::require(report.has_value(), "a planned program has a machine");
  report->fasterBinding = findFasterBinding(planned, compilation, *report);
  printText(llvm::nulls(), *report, /*colour=*/false);
  printJson(llvm::nulls(), *report);
  (void)checkFits(*report, compilation.schedule()->memory.peakLoc);
}

void fuzz::compile(llvm::StringRef text, const PlanOptions &options) {
  Quiet quiet;
  llvm::SourceMgr sourceMgr;
  setText(sourceMgr, text);
  CompileOptions how{options};
  // A program that does not verify is a defect of the pass, not an error.
  how.verifyPasses = false;
  std::optional<Compilation> compilation = Compilation::import(
      sourceMgr, &quiet.context, /*overrides=*/{}, std::move(how));
  require(compilation.has_value() == (quiet.errors == 0),
          "a program is imported unless there is an error");
  if (!compilation)
    return;
  require(succeeded(verify(compilation->module())),
          "an imported program verifies");
  if (failed(runStage(quiet, *compilation, &Compilation::plan)))
    return;
  OwningOpRef<ModuleOp> planned = compilation->clone();
  printPlan(llvm::nulls(), compilation->source(), sourceMgr,
            compilation->program(), /*overrides=*/{});
  require(succeeded(runStage(quiet, *compilation, &Compilation::lower)),
          "a plan can be made explicit");
  report(*compilation, *planned);
  if (succeeded(runStage(quiet, *compilation, &Compilation::convertToSpmd)))
    compilation->module()->print(llvm::nulls());
}
