//===- TestSource.h - Source text and its diagnostics ----------*- C++ -*-===//
//
// A source manager with the texts of one test, which keeps what is reported.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TEST_UNIT_FRONTEND_TESTSOURCE_H
#define SHARDC_TEST_UNIT_FRONTEND_TESTSOURCE_H

#include "Source.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace shardc {

class TestSource {
public:
  TestSource()
      : context(mlir::MLIRContext::Threading::DISABLED),
        handler(&context,
                [this](mlir::Diagnostic &diagnostic) { keep(diagnostic); }),
        files(sourceMgr, &context) {}

  /// Adds a buffer; returns its id.
  unsigned add(llvm::StringRef name, llvm::StringRef text) {
    return sourceMgr.AddNewSourceBuffer(
        llvm::MemoryBuffer::getMemBufferCopy(text, name), llvm::SMLoc());
  }

  /// The place of the first occurrence of `part` in a buffer.
  llvm::SMRange find(unsigned id, llvm::StringRef part) {
    llvm::StringRef text = sourceMgr.getMemoryBuffer(id)->getBuffer();
    const char *begin = text.data() + text.find(part);
    return {llvm::SMLoc::getFromPointer(begin),
            llvm::SMLoc::getFromPointer(begin + part.size())};
  }

  mlir::MLIRContext context;
  llvm::SourceMgr sourceMgr;
  /// "1:5: message", notes after " | ".
  std::vector<std::string> errors;
  mlir::ScopedDiagnosticHandler handler;
  SourceFiles files;

private:
  static std::string describe(mlir::Diagnostic &diagnostic) {
    std::string result;
    llvm::raw_string_ostream os(result);
    if (auto loc = mlir::dyn_cast<mlir::FileLineColRange>(
            mlir::LocationAttr(diagnostic.getLocation())))
      os << loc.getStartLine() << ":" << loc.getStartColumn() << ": ";
    os << diagnostic;
    return result;
  }
  void keep(mlir::Diagnostic &diagnostic) {
    std::string error = describe(diagnostic);
    for (mlir::Diagnostic &note : diagnostic.getNotes())
      error += " | " + describe(note);
    errors.push_back(error);
  }
};

} // namespace shardc

#endif // SHARDC_TEST_UNIT_FRONTEND_TESTSOURCE_H
