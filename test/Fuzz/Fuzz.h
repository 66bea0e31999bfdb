//===- Fuzz.h - What the fuzz targets share -------------------*- C++ -*-===//
//
// Each target reads any text and must end with a result or with an error that
// it emits. A law that does not hold ends the process, as a crash does.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TEST_FUZZ_FUZZ_H
#define SHARDC_TEST_FUZZ_FUZZ_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "shardc/Frontend/Frontend.h"
#include "shardc/Optimizer/Options.h"

namespace shardc::fuzz {

/// Ends the process if `holds` is false.
void require(bool holds, const llvm::Twine &law);

/// A context of its own for each input, which counts errors and shows nothing.
struct Quiet {
  Quiet();

  mlir::MLIRContext context;
  unsigned errors = 0;
  mlir::ScopedDiagnosticHandler handler;
};

/// Makes `text` the main buffer. What it imports by relative paths is not
/// found.
void setText(llvm::SourceMgr &sourceMgr, llvm::StringRef text);

/// Adds the passes, runs them, and verifies the outcome. Failure if a pass
/// failed, for which it must have emitted an error.
llvm::LogicalResult
runPasses(Quiet &quiet, mlir::ModuleOp module,
          llvm::function_ref<void(mlir::OpPassManager &)> addPasses);

/// Takes a program all the way and makes every output of it.
void compile(llvm::StringRef text, const PlanOptions &options);

} // namespace shardc::fuzz

#endif // SHARDC_TEST_FUZZ_FUZZ_H
