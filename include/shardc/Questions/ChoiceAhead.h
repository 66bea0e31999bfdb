//===- ChoiceAhead.h - A mesh choice beside another one -------*- C++ -*-===//

#ifndef SHARDC_QUESTIONS_CHOICEAHEAD_H
#define SHARDC_QUESTIONS_CHOICEAHEAD_H

#include "shardc/Frontend/Frontend.h"
#include "shardc/Questions/MeshChoice.h"
#include "llvm/Support/SourceMgr.h"
#include <future>
#include <optional>
#include <string>

namespace shardc {

/// The choice among the plans of a framework, made on a thread of its own while
/// the caller chooses among all plans of the same program.
class ChoiceAhead {
public:
  explicit ChoiceAhead(Framework framework) : framework(framework) {}
  ChoiceAhead(const ChoiceAhead &) = delete;

  /// Begins it for the program in the main buffer of `sourceMgr`, which it
  /// copies. `options` are those of the other choice; what interrupts that one
  /// ends this one as well. Once.
  void begin(const llvm::SourceMgr &sourceMgr, const Overrides &overrides,
             const MeshChoiceOptions &options);
  bool hasBegun() const { return begun.has_value(); }
  /// With which it began.
  const Overrides &overrides() const { return *begun; }
  /// Waits for the choice; nothing for the reason in `error`. Once.
  std::optional<MeshChoice> take(std::string &error);
  /// It has begun, and nobody has waited for it.
  bool isGoingOn() const { return made.valid(); }

private:
  /// A choice, or why there is none.
  using Made = std::pair<std::optional<MeshChoice>, std::string>;

  Framework framework;
  std::optional<Overrides> begun;
  std::future<Made> made;
};

} // namespace shardc

#endif // SHARDC_QUESTIONS_CHOICEAHEAD_H
