//===- OuterChoice.h - Other values of an outer choice ---------*- C++ -*-===//

#ifndef SHARDC_LIB_QUESTIONS_OUTERCHOICE_H
#define SHARDC_LIB_QUESTIONS_OUTERCHOICE_H

#include "shardc/Questions/Explain.h"

namespace shardc {

/// A choice outside of the plan: `microbatches`, `remat`, `schedule`, or the
/// axis of a pipeline's stages.
class OuterChoice {
public:
  OuterChoice(const ProgramText &text, Program &program, llvm::StringRef name,
              TrialRunner &runner);

  /// The program makes this choice.
  bool exists() const { return kind != Kind::None; }
  /// Plans the program with every other value, the other choices as open as the
  /// program leaves them. `written` is its plan as it is.
  std::vector<ChoiceValue> run(const Outcome &written);

private:
  enum class Kind { None, Microbatches, Remat, Schedule, Stages };
  struct Candidate {
    std::string value;
    Point point;
  };

  Point pointOf(StepForm form) const;
  std::string chosenValue(const Report &report) const;
  std::vector<Candidate> candidates(const Report &report) const;
  std::vector<Candidate> otherMicrobatches() const;
  std::vector<Candidate> otherSchedules(const Report &report) const;
  std::vector<Candidate> otherStages() const;

  const Mesh &mesh;
  mutable shd::ProgramOp program;
  Kind kind = Kind::None;
  /// Choices that the compiler has made of the program.
  std::optional<StepForm> made;
  std::string name;
  TrialRunner &runner;
};

} // namespace shardc

#endif // SHARDC_LIB_QUESTIONS_OUTERCHOICE_H
