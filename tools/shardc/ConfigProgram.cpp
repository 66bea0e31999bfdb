//===- ConfigProgram.cpp - A program in place of a config -----------------===//

#include "ConfigProgram.h"
#include "DiagnosticPrinter.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/SourceMgr.h"

using namespace llvm;
using mlir::DiagnosticSeverity;

namespace shardc {

std::unique_ptr<MemoryBuffer>
programOfConfig(std::unique_ptr<MemoryBuffer> config,
                const import::ImportOptions &options) {
  import::ImportResult result =
      import::importConfig(config->getBuffer(), options);
  std::string name = options.file + " as a program";
  SourceMgr manager;
  const char *begin = config->getBufferStart();
  std::string file = config->getBufferIdentifier().str();
  manager.AddNewSourceBuffer(std::move(config), SMLoc());
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  DiagnosticPrinter printer(manager, &context);
  auto print = [&](const std::vector<import::ConfigMessage> &messages,
                   DiagnosticSeverity severity) {
    for (const import::ConfigMessage &message : messages) {
      auto [line, column] = manager.getLineAndColumn(
          SMLoc::getFromPointer(begin + message.offset));
      auto loc = mlir::FileLineColLoc::get(&context, file, line, column);
      auto diagnostic = context.getDiagEngine().emit(loc, severity);
      diagnostic << message.text;
      for (const std::string &note : message.notes)
        diagnostic.attachNote() << note;
    }
  };
  print(result.errors, DiagnosticSeverity::Error);
  print(result.warnings, DiagnosticSeverity::Warning);
  if (!result.program)
    return nullptr;
  return MemoryBuffer::getMemBufferCopy(*result.program, name);
}

} // namespace shardc
