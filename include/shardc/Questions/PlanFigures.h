//===- PlanFigures.h - What is compared between plans ---------*- C++ -*-===//

#ifndef SHARDC_QUESTIONS_PLANFIGURES_H
#define SHARDC_QUESTIONS_PLANFIGURES_H

#include "shardc/Report/Report.h"

namespace shardc {

/// More memory than any plan takes.
inline constexpr int64_t kNoMemoryLimit = int64_t(1) << 59;

/// The parts of a plan's time. For `upper` they are the times of everything,
/// for `scheduled` collectives count as far as they are exposed; so the parts
/// add up. For `lower` they are the times of everything and do not.
struct TimeParts {
  struct Collectives {
    std::string kind;
    std::vector<std::string> axes;
    Picoseconds time = 0;

    bool isLike(const Collectives &other) const {
      return kind == other.kind && axes == other.axes;
    }
  };
  /// Compute time of the operations, and how much longer HBM makes them take.
  Picoseconds compute = 0, hbm = 0;
  /// By kind and axes.
  std::vector<Collectives> collectives;

  Picoseconds allCollectives() const;
  /// The difference to `other`: only collectives that differ, the largest
  /// first.
  TimeParts minus(const TimeParts &other) const;
};

TimeParts partsOf(const Report &report);

/// The figures that are compared between plans.
struct PlanFigures {
  std::string status;
  bool fits = false;
  /// The objective's value, and its proven lower bound if there is one.
  Picoseconds value = 0;
  std::optional<Picoseconds> bound;
  Picoseconds upper = 0, scheduled = 0, lower = 0;
  TimeParts parts;
  int64_t peak = 0, allowed = 0;
  std::string peakName, peakLoc;

  int64_t excess() const { return peak - allowed; }
  /// It takes so little of the memory that with more it would be no other.
  bool isRoomy() const { return 2 * peak <= allowed; }
};

PlanFigures figuresOf(const Report &report);

} // namespace shardc

#endif // SHARDC_QUESTIONS_PLANFIGURES_H
