//===- ConfigProgram.cpp - A program in place of a config -----------------===//

#include "ConfigProgram.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace shardc {

std::unique_ptr<MemoryBuffer>
programOfConfig(std::unique_ptr<MemoryBuffer> config,
                const import::ImportOptions &options) {
  import::ImportResult result =
      import::importConfig(config->getBuffer(), options);
  std::string name = options.file + " as a program";
  SourceMgr manager;
  const char *begin = config->getBufferStart();
  manager.AddNewSourceBuffer(std::move(config), SMLoc());
  auto print = [&](const std::vector<import::ConfigMessage> &messages,
                   SourceMgr::DiagKind kind) {
    for (const import::ConfigMessage &message : messages)
      manager.PrintMessage(errs(),
                           SMLoc::getFromPointer(begin + message.offset), kind,
                           message.text);
  };
  print(result.errors, SourceMgr::DK_Error);
  print(result.warnings, SourceMgr::DK_Warning);
  if (!result.program)
    return nullptr;
  return MemoryBuffer::getMemBufferCopy(*result.program, name);
}

} // namespace shardc
