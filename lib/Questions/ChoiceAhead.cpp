//===- ChoiceAhead.cpp - A mesh choice beside another one -----------------===//

#include "shardc/Questions/ChoiceAhead.h"

using namespace shardc;

void ChoiceAhead::begin(const llvm::SourceMgr &sourceMgr,
                        const Overrides &overrides,
                        const MeshChoiceOptions &options) {
  assert(!hasBegun() && "begins once");
  begun = overrides;
  MeshChoiceOptions how = options;
  how.framework = framework;
  how.showProgress = false;
  how.ahead = nullptr;
  llvm::MemoryBufferRef main =
      *sourceMgr.getMemoryBuffer(sourceMgr.getMainFileID());
  auto run = [how, overrides, dirs = sourceMgr.getIncludeDirs(),
              text = main.getBuffer().str(),
              name = main.getBufferIdentifier().str()] {
    llvm::SourceMgr own;
    own.setIncludeDirs(dirs);
    own.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(text, name), {});
    Made result;
    result.first = chooseMesh(own, overrides, how, result.second);
    return result;
  };
  made = std::async(std::launch::async, std::move(run));
}

std::optional<MeshChoice> ChoiceAhead::take(std::string &error) {
  Made result = made.get();
  error = std::move(result.second);
  return std::move(result.first);
}
