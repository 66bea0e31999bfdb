//===- ChoiceAhead.h - A mesh choice beside another one -------*- C++ -*-===//

#ifndef SHARDC_QUESTIONS_CHOICEAHEAD_H
#define SHARDC_QUESTIONS_CHOICEAHEAD_H

#include "shardc/Frontend/Frontend.h"
#include "shardc/Questions/MeshChoice.h"
#include "llvm/Support/SourceMgr.h"
#include <future>

namespace shardc {

/// The choice among the plans of a framework, made on a thread of its own while
/// the caller chooses among all plans of the same program.
class ChoiceAhead {
public:
  explicit ChoiceAhead(Framework framework) : framework(framework) {}
  /// Ends the search, if it is still going on.
  ~ChoiceAhead();

  /// Begins it for the program in the main buffer of `sourceMgr`, which it
  /// copies. `options` are those of the other choice.
  void begin(const llvm::SourceMgr &sourceMgr, const Overrides &overrides,
             const MeshChoiceOptions &options);
  bool hasBegun() const { return choice.valid(); }
  /// Waits for the choice; nothing for the reason in `error`. Once.
  std::optional<MeshChoice> take(std::string &error);

private:
  Framework framework;
  /// Of the other choice.
  const std::atomic<bool> *interrupted = nullptr;
  std::atomic<bool> isStopped = false;
  std::string whyNot;
  std::future<std::optional<MeshChoice>> choice;
};

} // namespace shardc

#endif // SHARDC_QUESTIONS_CHOICEAHEAD_H
