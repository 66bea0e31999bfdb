//===- DiagnosticPrinter.h - Diagnostics as people see them ----*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_DIAGNOSTICPRINTER_H
#define SHARDC_TOOLS_SHARDC_DIAGNOSTICPRINTER_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/SourceMgr.h"

namespace shardc {

/// Prints the diagnostics of a context to standard error, each with its source
/// line and a caret, once for notes on one place. Long lines are clipped around
/// the caret, and carets stand right below text that is not ASCII.
class DiagnosticPrinter : public mlir::ScopedDiagnosticHandler {
public:
  DiagnosticPrinter(llvm::SourceMgr &sourceMgr, mlir::MLIRContext *context);

private:
  void print(mlir::Location loc, mlir::DiagnosticSeverity severity,
             const llvm::Twine &message);
  /// The buffer that a location is in; 0 if there is none.
  unsigned bufferOf(mlir::FileLineColLoc loc) const;
  void printLine(unsigned buffer, mlir::FileLineColLoc loc);

  llvm::SourceMgr &sourceMgr;
  /// The last place whose line the current diagnostic has printed, or null.
  mlir::LocationAttr shown;
};

} // namespace shardc

#endif // SHARDC_TOOLS_SHARDC_DIAGNOSTICPRINTER_H
