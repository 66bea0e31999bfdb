//===- Options.h - How to plan --------------------------------*- C++ -*-===//

#ifndef SHARDC_OPTIMIZER_OPTIONS_H
#define SHARDC_OPTIMIZER_OPTIONS_H

#include "llvm/Support/ErrorHandling.h"
#include <cstdint>
#include <optional>

namespace shardc {

/// `--opt`: exactly what is annotated, spread what is annotated, or search.
enum class OptMode { None, Propagate, Optimize };

/// `--objective`: the time to minimise
/// (docs/CostModel.md#5-the-time-of-a-step).
enum class Objective { Upper, Scheduled, Lower };

/// The time that the objective minimises, of anything with the fields `upper`,
/// `scheduled` and `lower`.
template <typename Times>
auto objectiveTime(const Times &times, Objective objective) {
  switch (objective) {
  case Objective::Upper:
    return times.upper;
  case Objective::Scheduled:
    return times.scheduled;
  case Objective::Lower:
    return times.lower;
  }
  llvm_unreachable("unknown objective");
}

/// As `--objective` calls it.
inline const char *objectiveName(Objective objective) {
  switch (objective) {
  case Objective::Upper:
    return "upper";
  case Objective::Scheduled:
    return "scheduled";
  case Objective::Lower:
    return "lower";
  }
  return "";
}

/// The memory, in bytes per device, that is priced: what a step would gain from
/// so much more.
inline constexpr int64_t kMoreMemory = int64_t(1) << 30;

/// An effort for plans that are compared with others, and one for the best of
/// them (docs/Optimizer.md#plans-to-compare).
inline constexpr double kQuickEffort = 0.05, kFinalEffort = 0.2;

struct PlanOptions {
  OptMode mode = OptMode::Optimize;
  Objective objective = Objective::Scheduled;
  std::optional<double> timeLimitSeconds;
  /// Bytes per device; the machine's HBM capacity if absent.
  std::optional<int64_t> memoryLimit;
  /// Solve again with kMoreMemory more, where `upper` is minimised.
  bool priceMemory = false;
  /// Part of the usual work of a search. Below one, the least `upper` is known
  /// within a percent, too.
  double effort = 1;

  bool isQuick() const { return effort < 1; }
};

} // namespace shardc

#endif // SHARDC_OPTIMIZER_OPTIONS_H
