//===- StepNotes.h - What a training step does in vain --------*- C++ -*-===//
//
// Notes of `--lint` on a training step (docs/CommandLine.md#lint), read off the
// plan's report: nothing is planned for them.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_QUESTIONS_STEPNOTES_H
#define SHARDC_QUESTIONS_STEPNOTES_H

#include "shardc/Report/Report.h"

namespace shardc {

struct StepNote {
  /// `recomputed`, `reduced-often` or `whole-state`.
  std::string kind;
  std::string text;
  /// Empty where a note is of several places.
  std::string loc;
  /// Time of a step that goes into it, as far as it takes any; bytes of a
  /// device that avoiding it takes, or frees if negative.
  Picoseconds cost = 0;
  double bytes = 0;
};

/// Those that take most time first. Values that run again and gradients that
/// are reduced in each microbatch are left out where what avoids it has no room
/// beside the plan.
std::vector<StepNote> findStepNotes(const Report &report);

} // namespace shardc

#endif // SHARDC_QUESTIONS_STEPNOTES_H
