//===- MessageAscent.h - Prices of memory by message passing --*- C++ -*-===//
//
// For networks whose elimination tables do not fit: maximises the Lagrangian
// bound with one sweep of messages per step and steps in proportion to the
// prices (docs/Solver.md#prices-and-bound). Bounds are exact.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SOLVER_MESSAGEASCENT_H
#define SHARDC_SOLVER_MESSAGEASCENT_H

#include "shardc/Solver/Deadline.h"
#include "shardc/Solver/Dual.h"
#include "shardc/Solver/MessagePassing.h"

namespace shardc::solver {

struct MessageResult {
  Prices prices;
  Messages messages;
  Cost bound = -kForbidden;
  /// Labels that an assignment below the limit may use, by variable.
  LabelSets remaining;
  /// No assignment is below the limit.
  bool exhausted = false;
  /// Table entries looked at.
  double work = 0;
};

/// Scaled costs stay below this, since messages add up over many sweeps.
inline constexpr Scaled kMessageLimit = Scaled(1) << 50;

/// The limit that prunes labels: asked for whenever it may have improved.
using UpperBound = std::function<Cost()>;

/// Ascends from `start`, looking at some `maxWork` table entries (but some
/// sweeps always run) until the deadline; `observe`, if there is one, sees
/// decoded labels every few sweeps.
MessageResult ascendByMessages(Model &model, Prices start, double maxWork,
                               const UpperBound &upper, const Observer &observe,
                               const Deadline &deadline = {});

} // namespace shardc::solver

#endif // SHARDC_SOLVER_MESSAGEASCENT_H
