//===- MemoryCurve.h - The time of a step against memory ------*- C++ -*-===//
//
// `--memory-curve` (docs/CommandLine.md): the program planned with more and
// less memory than a device has.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_QUESTIONS_MEMORYCURVE_H
#define SHARDC_QUESTIONS_MEMORYCURVE_H

#include "shardc/Questions/PlanFigures.h"
#include "shardc/Questions/TrialRunner.h"

namespace shardc {

struct MemoryCurve {
  struct Point {
    /// Bytes per device that the plan may use.
    int64_t limit = 0;
    PlanFigures plan;
  };
  std::string file, objective;
  /// The limit of the machine or of `--memory-limit`; its point is among
  /// `points`.
  int64_t allowed = 0;
  /// The limit ascends.
  std::vector<Point> points;
  /// The plan if memory had no limit; nothing if the time ended before.
  std::optional<PlanFigures> unlimited;
  /// All limits were planned, and no search interrupted.
  bool complete = true;

  const Point &atAllowed() const;
};

/// Limits between which the time of a step changes: from `least` to `most`,
/// evenly spaced on a logarithmic scale, each rounded up to three digits; and
/// `allowed`, with and without kMoreMemory more. Ascending, each once.
std::vector<int64_t> curveLimits(int64_t least, int64_t most, int64_t allowed);

/// More memory makes no step slower, nor a bound larger, though searches may
/// differ: each point takes the plan of another that fits in its memory if that
/// is faster, and the bound of one with more if that is larger.
void makeMonotone(MemoryCurve &curve);

/// Nothing if the program has no plan however much memory there is.
std::optional<MemoryCurve> findMemoryCurve(TrialRunner &runner);

void printMemoryCurve(llvm::raw_ostream &os, const MemoryCurve &curve,
                      bool colour);
/// Schema shardc.memory-curve/1 of docs/CommandLine.md.
void printMemoryCurveJson(llvm::raw_ostream &os, const MemoryCurve &curve);

} // namespace shardc

#endif // SHARDC_QUESTIONS_MEMORYCURVE_H
