//===- DiagnosticPrinter.cpp - Diagnostics as people see them -------------===//

#include "DiagnosticPrinter.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Unicode.h"
#include "llvm/Support/WithColor.h"

using namespace shardc;
using llvm::raw_ostream;
using llvm::StringRef;

/// Bytes of a line that are shown, half of them on each side of the caret.
static constexpr size_t kShown = 160;

DiagnosticPrinter::DiagnosticPrinter(llvm::SourceMgr &sourceMgr,
                                     mlir::MLIRContext *context)
    : ScopedDiagnosticHandler(context), sourceMgr(sourceMgr) {
  setHandler([this](mlir::Diagnostic &diagnostic) {
    shown = mlir::LocationAttr();
    print(diagnostic.getLocation(), diagnostic.getSeverity(), diagnostic.str());
    for (mlir::Diagnostic &note : diagnostic.getNotes())
      print(note.getLocation(), note.getSeverity(), note.str());
  });
}

static raw_ostream &severityLabel(raw_ostream &os,
                                  mlir::DiagnosticSeverity severity) {
  switch (severity) {
  case mlir::DiagnosticSeverity::Note:
    return llvm::WithColor::note(os);
  case mlir::DiagnosticSeverity::Warning:
    return llvm::WithColor::warning(os);
  case mlir::DiagnosticSeverity::Error:
    return llvm::WithColor::error(os);
  case mlir::DiagnosticSeverity::Remark:
    return llvm::WithColor::remark(os);
  }
  llvm_unreachable("unknown severity");
}

unsigned DiagnosticPrinter::bufferOf(mlir::FileLineColLoc loc) const {
  for (unsigned id = 1; id <= sourceMgr.getNumBuffers(); ++id)
    if (sourceMgr.getMemoryBuffer(id)->getBufferIdentifier() ==
        loc.getFilename().getValue())
      return id;
  return 0;
}

void DiagnosticPrinter::print(mlir::Location loc,
                              mlir::DiagnosticSeverity severity,
                              const llvm::Twine &message) {
  raw_ostream &os = llvm::errs();
  auto place = loc->findInstanceOf<mlir::FileLineColLoc>();
  unsigned buffer = place ? bufferOf(place) : 0;
  if (buffer)
    sourceMgr.PrintIncludeStack(sourceMgr.getParentIncludeLoc(buffer), os);
  if (place)
    llvm::WithColor(os, raw_ostream::SAVEDCOLOR, /*Bold=*/true)
        << place.getFilename().getValue() << ':' << place.getLine() << ':'
        << place.getColumn() << ": ";
  severityLabel(os, severity);
  llvm::WithColor(os, raw_ostream::SAVEDCOLOR, /*Bold=*/true) << message;
  os << '\n';
  // Notes on the place above speak of the line that stands there.
  if (buffer && place != shown)
    printLine(buffer, place);
  shown = place;
}

/// True if `byte` is inside of a character of several bytes.
static bool continuesCharacter(char byte) { return (byte & 0xC0) == 0x80; }

/// The part of `text` that is as wide as what stands before the caret, in
/// blanks.
static std::string blanksFor(StringRef text) {
  std::string blanks;
  while (!text.empty()) {
    StringRef part = text.take_until([](char c) { return c == '\t'; });
    int width = llvm::sys::unicode::columnWidthUTF8(part);
    blanks.append(width < 0 ? part.size() : size_t(width), ' ');
    text = text.drop_front(part.size());
    if (text.consume_front("\t"))
      blanks += '\t';
  }
  return blanks;
}

void DiagnosticPrinter::printLine(unsigned id, mlir::FileLineColLoc loc) {
  const llvm::MemoryBuffer *buffer = sourceMgr.getMemoryBuffer(id);
  llvm::SMLoc start =
      sourceMgr.FindLocForLineAndColumn(id, loc.getLine(), /*ColNo=*/1);
  if (!start.isValid())
    return;
  StringRef line(start.getPointer(),
                 buffer->getBufferEnd() - start.getPointer());
  line = line.take_until([](char c) { return c == '\n' || c == '\r'; });
  size_t caret = std::min<size_t>(loc.getColumn() - 1, line.size());
  size_t begin = 0, end = line.size();
  if (line.size() > kShown) {
    begin = caret > kShown / 2 ? caret - kShown / 2 : 0;
    end = std::min(line.size(), begin + kShown);
  }
  while (begin > 0 && continuesCharacter(line[begin]))
    --begin;
  while (end < line.size() && continuesCharacter(line[end]))
    ++end;
  StringRef before = begin > 0 ? "..." : "";
  llvm::errs() << before << line.slice(begin, end)
               << (end < line.size() ? "..." : "") << '\n'
               << std::string(before.size(), ' ')
               << blanksFor(line.slice(begin, caret));
  llvm::WithColor(llvm::errs(), raw_ostream::GREEN, /*Bold=*/true) << '^';
  llvm::errs() << '\n';
}
