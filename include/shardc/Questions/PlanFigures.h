//===- PlanFigures.h - What is compared between plans ---------*- C++ -*-===//

#ifndef SHARDC_QUESTIONS_PLANFIGURES_H
#define SHARDC_QUESTIONS_PLANFIGURES_H

#include "shardc/Report/Report.h"

namespace shardc {

/// More memory than any plan takes.
inline constexpr int64_t kNoMemoryLimit = int64_t(1) << 59;

/// What the time of a plan is made of: of `upper` what everything takes, of
/// `scheduled` of the collectives only what is exposed, so that the parts add
/// up to it. `lower` is not their sum: they are what everything takes.
struct TimeParts {
  struct Collectives {
    std::string kind;
    std::vector<std::string> axes;
    Picoseconds time = 0;

    bool isLike(const Collectives &other) const {
      return kind == other.kind && axes == other.axes;
    }
  };
  /// What the operations compute, and how much longer HBM makes them take.
  Picoseconds compute = 0, hbm = 0;
  /// By kind and axes.
  std::vector<Collectives> collectives;

  Picoseconds allCollectives() const;
  /// What is left when `other` is taken off: of the collectives those that make
  /// a difference, the largest first.
  TimeParts minus(const TimeParts &other) const;
};

TimeParts partsOf(const Report &report);

/// What is compared between plans.
struct PlanFigures {
  std::string status;
  bool fits = false;
  /// Of the objective; what is proven, if anything is.
  Picoseconds value = 0;
  std::optional<Picoseconds> bound;
  Picoseconds upper = 0, scheduled = 0, lower = 0;
  TimeParts parts;
  int64_t peak = 0, allowed = 0;
  std::string peakName, peakLoc;

  int64_t excess() const { return peak - allowed; }
};

PlanFigures figuresOf(const Report &report);

} // namespace shardc

#endif // SHARDC_QUESTIONS_PLANFIGURES_H
