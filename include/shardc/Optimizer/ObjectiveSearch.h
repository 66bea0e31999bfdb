//===- ObjectiveSearch.h - Plan search under max-type objectives -*- C++
//-*-===//
//
// `lower` is the maximum of a few sums over the network: the busy time of the
// device and of each physical network. `scheduled` is at least that, and at
// least the length of any chain of work that waits for each other. The search
// minimises either, and proves a lower bound:
// docs/Optimizer.md#3-what-is-proven. It knows the network alone; the caller
// schedules the plans that it proposes.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_OPTIMIZER_OBJECTIVESEARCH_H
#define SHARDC_OPTIMIZER_OBJECTIVESEARCH_H

#include "shardc/Optimizer/Chains.h"
#include "shardc/Optimizer/Network.h"
#include "shardc/Optimizer/Options.h"
#include "shardc/Solver/Deadline.h"
#include "shardc/Solver/Solve.h"

namespace shardc {

/// The schedule of one assignment's plan; times in picoseconds.
struct EvaluatedPlan {
  /// How long the device is busy, then each physical network: what the
  /// network's ResourceTimes add up to.
  std::vector<Picoseconds> busy;
  /// The objectives; none is below any entry of `busy`.
  Picoseconds upper = 0, lower = 0, scheduled = 0;
  /// How much longer the step takes because memory is not unlimited.
  Picoseconds memoryCosts = 0;
  /// Bytes at the peak of the schedule that unlimited memory would allow.
  int64_t unlimitedPeak = 0;
};

/// Makes the plan of an assignment explicit and schedules it; nothing if that
/// cannot be done.
using EvaluatePlan = std::function<std::optional<EvaluatedPlan>(
    llvm::ArrayRef<solver::Label> assignment)>;

/// Work of a search without a time limit: table entries that solvers look at
/// (solver::Solution::work). Chosen so that the models on their own machines
/// take one to two seconds.
inline constexpr double kUsualSearchWork = 2.8e9;

/// The work that a time limit allows: a fixed amount, so that results do not
/// depend on the machine, and in proportion more where the limit is longer.
double searchWorkFor(std::optional<double> seconds);

struct ObjectiveSearchOptions {
  /// `lower` or `scheduled`.
  Objective objective = Objective::Scheduled;
  /// The bound of `scheduled` is one of these orders. Chains of the text's
  /// order are longer, and guide a search better.
  ChainOrders orders = ChainOrders::Any;
  /// Goes on until the bound is the value, while work is left: by limits, and
  /// by halves of the search space. Else a few plans are wanted, and no bound.
  bool proves = true;
  /// Plans that are known, besides the first.
  std::vector<std::vector<solver::Label>> starts = {};
  /// The machine runs collective matmuls: collectives next to einsums are on no
  /// chain.
  bool matmulsOverlap = false;
  /// The share of their time that hidden collectives cost compute
  /// (Step::slowdown).
  int64_t slowdown = 0;
  double maxWork = kUsualSearchWork;
  /// Picoseconds that all plans are known to take at least.
  solver::Cost bound = 0;
  /// Wanted is a good plan and some bound, soon: fewer weights, solved less
  /// closely, and no bounds of labels, which pay where many problems follow.
  bool isQuick = false;
  /// Only plans that take less are of interest: the bound says no more of
  /// others.
  Picoseconds cutoff = solver::kMaxTotal;
  solver::Deadline deadline = {};
  /// Called with picoseconds of the objective whenever something improved.
  std::function<void(const solver::SearchProgress &)> progress = {};

  /// Wanted is a bound of the starts, and no more plans.
  bool boundsOnly() const { return isQuick && proves; }
};

/// The best plan found from `first`, a plan that fits, with its time and a
/// proven bound (at most the cutoff); nothing if `evaluate` refuses `first`.
/// `network` minimises `upper` and has its resources measured; for `scheduled`
/// its links, too.
std::optional<solver::Solution>
searchObjective(const PlanNetwork &network, const solver::Solution &first,
                const EvaluatePlan &evaluate,
                const ObjectiveSearchOptions &options);

} // namespace shardc

#endif // SHARDC_OPTIMIZER_OBJECTIVESEARCH_H
