//===- ChoiceAhead.cpp - A mesh choice beside another one -----------------===//

#include "shardc/Questions/ChoiceAhead.h"

using namespace shardc;

/// How often a wait looks for Ctrl-C.
static constexpr std::chrono::milliseconds kLook(50);

/// The thread ends before the members that it uses.
ChoiceAhead::~ChoiceAhead() {
  isStopped = true;
  if (choice.valid())
    choice.wait();
}

void ChoiceAhead::begin(const llvm::SourceMgr &sourceMgr,
                        const Overrides &overrides,
                        const MeshChoiceOptions &options) {
  interrupted = options.interrupted;
  MeshChoiceOptions how = options;
  how.framework = framework;
  how.showProgress = false;
  how.interrupted = &isStopped;
  how.ahead = nullptr;
  llvm::MemoryBufferRef main =
      *sourceMgr.getMemoryBuffer(sourceMgr.getMainFileID());
  auto run = [this, how, overrides, dirs = sourceMgr.getIncludeDirs(),
              text = main.getBuffer().str(),
              name = main.getBufferIdentifier().str()] {
    llvm::SourceMgr own;
    own.setIncludeDirs(dirs);
    own.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(text, name), {});
    return chooseMesh(own, overrides, how, whyNot);
  };
  choice = std::async(std::launch::async, std::move(run));
}

std::optional<MeshChoice> ChoiceAhead::take(std::string &error) {
  while (choice.wait_for(kLook) != std::future_status::ready)
    if (interrupted && *interrupted)
      isStopped = true;
  std::optional<MeshChoice> result = choice.get();
  error = whyNot;
  return result;
}
