//===- Suspects.h - What a plan seems to do in vain -----------*- C++ -*-===//
//
// Patterns in a program whose plan is explicit that often mean lost time:
// docs/CommandLine.md#lint. Found without planning anything; each with what
// it takes, and with the shardings under which it might go away.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_REPORT_SUSPECTS_H
#define SHARDC_REPORT_SUSPECTS_H

#include "shardc/Optimizer/Context.h"
#include "shardc/Report/Report.h"

namespace shardc {

struct Suspect {
  enum class Kind {
    GatheredThenSliced,
    ReducedThenSliced,
    GatheredTwice,
    IdleAxis,
    ReplicatedWork,
    LatencyBound,
    Padding,
  };
  /// A layout in place of what the program says at an operation.
  struct Pin {
    mlir::Operation *op = nullptr;
    /// The operand that it places; nothing: the result.
    std::optional<unsigned> operand;
    Layout layout;
  };
  /// The tensor once more, in another layout, for several of its readers.
  struct Copy {
    mlir::Operation *of = nullptr;
    Layout layout;
    std::vector<mlir::OpOperand *> readers;
  };

  Kind kind = Kind::IdleAxis;
  std::string text, loc;
  /// Its time, all runs of a step together.
  Picoseconds cost = 0;
  /// How much less everything takes, one after the other, without it: the rest
  /// of the plan as it is, what remains priced again.
  Picoseconds saves = 0;
  /// How much shorter the step is, as scheduled, where that is known.
  std::optional<Picoseconds> scheduledSaves;
  /// Changes that may avoid it, each by itself: all pins of an entry together,
  /// or a copy of a declared tensor.
  std::vector<std::vector<Pin>> pins;
  std::optional<Copy> copy;
  /// The axis that does nothing; the index that is padded, and to what.
  std::string name;
  int64_t padded = 0;
};

/// `gathered-then-sliced`, ...
llvm::StringRef stringify(Suspect::Kind kind);

/// Suspects that take at least `least` of the step, or no time of their own, in
/// program order. Leaves the program as it was.
std::vector<Suspect> findSuspects(shd::ProgramOp program,
                                  PlanningContext &context,
                                  const Report &report, double least);

/// The suspects that the report mentions: of an optimal plan only those that
/// its search could not avoid, and none that is not worth a hundredth of the
/// step.
std::vector<Report::Note> findNotes(shd::ProgramOp program,
                                    PlanningContext &context,
                                    const Report &report);

} // namespace shardc

#endif // SHARDC_REPORT_SUSPECTS_H
