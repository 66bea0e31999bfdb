//===- Source.cpp - From source ranges to MLIR locations ------------------===//
//
// Line tables of the source manager's buffers. llvm::SourceMgr's own columns
// are found by scanning the line, which is slow on files of one long line.
//
//===----------------------------------------------------------------------===//

#include "Source.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace shardc;

SourceFiles::SourceFiles(llvm::SourceMgr &sourceMgr, MLIRContext *context)
    : sourceMgr(sourceMgr), context(context),
      dropRest(context, [this](Diagnostic &diagnostic) {
        return success(isClosed() &&
                       diagnostic.getSeverity() == DiagnosticSeverity::Error);
      }) {}

std::pair<unsigned, unsigned>
SourceFiles::Buffer::lineAndColumn(llvm::SMLoc loc) const {
  size_t offset = loc.getPointer() - begin;
  auto next = llvm::upper_bound(lines, offset);
  return {static_cast<unsigned>(next - lines.begin()),
          static_cast<unsigned>(offset - *std::prev(next) + 1)};
}

const SourceFiles::Buffer *SourceFiles::find(llvm::SMLoc loc) {
  unsigned id = loc.isValid() ? sourceMgr.FindBufferContainingLoc(loc) : 0;
  if (!id)
    return nullptr;
  Buffer &buffer = buffers[id];
  if (!buffer.begin) {
    const llvm::MemoryBuffer *memory = sourceMgr.getMemoryBuffer(id);
    buffer.name = StringAttr::get(context, memory->getBufferIdentifier());
    buffer.begin = memory->getBufferStart();
    buffer.lines.push_back(0);
    llvm::StringRef text = memory->getBuffer();
    for (size_t end = text.find('\n'); end != llvm::StringRef::npos;
         end = text.find('\n', end + 1))
      buffer.lines.push_back(end + 1);
  }
  return &buffer;
}

std::pair<unsigned, unsigned> SourceFiles::lineAndColumn(llvm::SMLoc loc) {
  const Buffer *buffer = find(loc);
  return buffer ? buffer->lineAndColumn(loc) : std::pair(0u, 0u);
}

Location SourceFiles::location(llvm::SMLoc loc) {
  const Buffer *buffer = find(loc);
  if (!buffer)
    return UnknownLoc::get(context);
  auto [line, column] = buffer->lineAndColumn(loc);
  return FileLineColLoc::get(buffer->name, line, column);
}

Location SourceFiles::location(llvm::SMRange range) {
  const Buffer *buffer = find(range.Start);
  if (!buffer)
    return UnknownLoc::get(context);
  auto [line, column] = buffer->lineAndColumn(range.Start);
  auto [endLine, endColumn] = buffer->lineAndColumn(range.End);
  return FileLineColRange::get(buffer->name, line, column, endLine, endColumn);
}

void SourceFiles::countError(Location loc) {
  if (errors == maxErrors)
    emitError(loc) << "more than " << maxErrors
                   << " errors; the rest of the program is not checked";
  ++errors;
}

InFlightDiagnostic SourceFiles::errorAt(Location loc) {
  countError(loc);
  return emitError(loc);
}

InFlightDiagnostic SourceFiles::error(llvm::SMRange range) {
  return errorAt(location(range));
}

InFlightDiagnostic SourceFiles::error(llvm::SMLoc loc) {
  return errorAt(location(loc));
}

InFlightDiagnostic SourceFiles::warning(llvm::SMRange range) {
  return emitWarning(location(range));
}
