//===- ProgramSource.h - A program read in buffers of its own -*- C++ -*-===//

#ifndef SHARDC_QUESTIONS_PROGRAMSOURCE_H
#define SHARDC_QUESTIONS_PROGRAMSOURCE_H

#include "shardc/Frontend/ProgramText.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

namespace shardc {

/// The program in the main buffer of another source manager, with overrides,
/// parsed in buffers of its own.
struct ProgramSource {
  ProgramSource(const llvm::SourceMgr &original, mlir::MLIRContext *context,
                const Overrides &overrides) {
    const llvm::MemoryBuffer *main =
        original.getMemoryBuffer(original.getMainFileID());
    sourceMgr.setIncludeDirs(original.getIncludeDirs());
    sourceMgr.AddNewSourceBuffer(
        llvm::MemoryBuffer::getMemBuffer(main->getMemBufferRef()), {});
    text = readProgram(sourceMgr, context, overrides);
  }

  llvm::SourceMgr sourceMgr;
  /// Nothing after an error in the syntax.
  std::optional<ProgramText> text;
};

} // namespace shardc

#endif // SHARDC_QUESTIONS_PROGRAMSOURCE_H
