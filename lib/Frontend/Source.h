//===- Source.h - From source ranges to MLIR locations ---------*- C++ -*-===//
//
// Shared by the parser and the importer: where a piece of source text is, and
// how an error about it is reported.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_FRONTEND_SOURCE_H
#define SHARDC_LIB_FRONTEND_SOURCE_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/SMLoc.h"
#include <vector>

namespace llvm {
class SourceMgr;
} // namespace llvm

namespace shardc {

/// Maps ranges of the buffers of a source manager to MLIR locations. Lines and
/// columns count from 1, columns in bytes. A lookup is a binary search, however
/// long the lines are.
class SourceFiles {
public:
  SourceFiles(llvm::SourceMgr &sourceMgr, mlir::MLIRContext *context);
  SourceFiles(const SourceFiles &) = delete;
  SourceFiles &operator=(const SourceFiles &) = delete;

  llvm::SourceMgr &getSourceMgr() { return sourceMgr; }
  mlir::MLIRContext *getContext() { return context; }

  /// Line and column of a position, from 1; (0, 0) if it is in no buffer.
  std::pair<unsigned, unsigned> lineAndColumn(llvm::SMLoc loc);

  /// A FileLineColLoc; unknown if the position is in no buffer.
  mlir::Location location(llvm::SMLoc loc);
  /// A FileLineColRange; unknown if the range is in no buffer.
  mlir::Location location(llvm::SMRange range);

  /// Errors that are shown; one more says so, and the rest is not.
  static constexpr unsigned maxErrors = 100;

  /// An error at the start of `range`; counted.
  mlir::InFlightDiagnostic error(llvm::SMRange range);
  mlir::InFlightDiagnostic error(llvm::SMLoc loc);
  mlir::InFlightDiagnostic warning(llvm::SMRange range);
  /// Counts an error that others report.
  void countError(llvm::SMRange range) { countError(location(range)); }

  /// Errors reported through this object.
  unsigned numErrors() const { return errors; }
  bool hadError() const { return errors != 0; }
  /// No further error is shown: nothing else needs to be checked.
  bool isClosed() const { return errors > maxErrors; }
  void close() { errors = std::max(errors, maxErrors + 1); }

private:
  struct Buffer {
    mlir::StringAttr name;
    const char *begin = nullptr;
    /// Offsets of the first byte of each line.
    std::vector<size_t> lines;
    std::pair<unsigned, unsigned> lineAndColumn(llvm::SMLoc loc) const;
  };
  /// The buffer that `loc` is in, or null.
  const Buffer *find(llvm::SMLoc loc);
  mlir::InFlightDiagnostic errorAt(mlir::Location loc);
  void countError(mlir::Location loc);

  llvm::SourceMgr &sourceMgr;
  mlir::MLIRContext *context;
  llvm::DenseMap<unsigned, Buffer> buffers;
  unsigned errors = 0;
  mlir::ScopedDiagnosticHandler dropRest;
};

/// The range of a whole declaration or expression from its first and last part.
inline llvm::SMRange join(llvm::SMRange first, llvm::SMRange last) {
  return llvm::SMRange(first.Start, last.End);
}

} // namespace shardc

#endif // SHARDC_LIB_FRONTEND_SOURCE_H
