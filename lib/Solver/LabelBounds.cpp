//===- LabelBounds.cpp - What assignments with a label cost ---------------===//

#include "shardc/Solver/LabelBounds.h"
#include "shardc/Solver/Contract.h"
#include "shardc/Solver/Elimination.h"
#include "shardc/Solver/MessageAscent.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

namespace shardc::solver {

/// Additions of an elimination that is worth its time whatever is left.
static constexpr double kSmallWork = 1e7;
/// Additions that an elimination and its way back do in a second, at least.
static constexpr double kWorkPerSecond = 1e8;
/// Where no exact elimination has looked.
static constexpr Cost kNothingKnown = -kForbidden;

bool lacksLabels(const LabelSets &labels) {
  return llvm::any_of(labels, [](const std::vector<bool> &flags) {
    return !llvm::is_contained(flags, true);
  });
}

LabelSets labelsBelow(const LabelBounds &bounds, Cost limit) {
  LabelSets result;
  for (const std::vector<Cost> &costs : bounds) {
    std::vector<bool> &flags = result.emplace_back();
    for (Cost cost : costs)
      flags.push_back(cost < limit);
  }
  return result;
}

/// Labels of merged nodes have the bounds of the labels that they follow from;
/// labels of nodes that had one label, the bound of all assignments.
static void recoverBounds(const Network &network, Cost ofAll,
                          LabelBounds &bounds) {
  for (const Recovery &step : llvm::reverse(network.recoveries)) {
    assert(step.parents.size() <= 1 && "a step that does not keep all");
    std::vector<Cost> &own = bounds[step.node];
    llvm::fill(own, kForbidden);
    for (auto [position, label] : llvm::enumerate(step.best)) {
      Cost bound = ofAll;
      if (!step.parents.empty())
        bound = bounds[step.parents[0]][step.parentLabels[0][position]];
      own[label] = std::min(own[label], bound);
    }
  }
}

/// Labels that are not left have none.
static void forbidRemoved(const Network &network, LabelBounds &bounds) {
  for (auto [costs, node] : llvm::zip_equal(bounds, network.nodes)) {
    std::vector<Cost> left(costs.size(), kForbidden);
    if (node.alive && !network.infeasible())
      for (Label label : node.labels)
        left[label] = costs[label];
    costs = std::move(left);
  }
}

namespace {
class LabelBounding {
public:
  LabelBounding(const Problem &problem, Cost limit,
                std::vector<double> multipliers, BoundWork &left,
                const Deadline &deadline)
      : limit(limit), multipliers(std::move(multipliers)), left(left),
        deadline(deadline), network(buildNetwork(problem)) {
    this->multipliers.resize(problem.numPoints, 0);
    for (const VariableData &variable : problem.variables)
      bounds.emplace_back(variable.costs.size(), kNothingKnown);
  }

  LabelBounds run() {
    contract(network, deadline, Steps::KeepingAll);
    bool again = true;
    while (again && !network.infeasible()) {
      Model model(network, Model::largestShift(network, kMessageLimit));
      EliminationLimits limits;
      Elimination elimination(model, eliminationOrder(model, limits), limits);
      double affordable =
          std::min(std::max(kSmallWork, left.elimination / 2), workInTime());
      bool isExact = elimination.isExact() && elimination.work() <= affordable;
      if (isExact)
        boundByElimination(model, elimination);
      again = !isExact && left.messages > 0 && excludeByMessages(model);
    }
    forbidRemoved(network, bounds);
    if (!network.infeasible())
      recoverBounds(network, least, bounds);
    return std::move(bounds);
  }

private:
  /// An elimination does not end before it is done.
  double workInTime() const {
    if (deadline.expired())
      return 0;
    std::optional<double> seconds = deadline.remaining();
    return seconds ? *seconds * kWorkPerSecond
                   : std::numeric_limits<double>::infinity();
  }

  Prices pricesOf(const Model &model) const {
    return pricesAt(network, multipliers, model.getShift());
  }

  /// The least cost of an assignment with each label. Sums saturate at
  /// infinity.
  void boundByElimination(Model &model, Elimination &elimination) {
    left.elimination -= 2 * elimination.work();
    model.setPrices(pricesOf(model));
    Int128 sum = elimination.run(model);
    least = model.boundFor(sum);
    LabelSets kept;
    for (auto [v, excesses] : llvm::enumerate(elimination.minMarginals())) {
      Variable variable = model.nodeOf(v);
      std::vector<bool> &flags = kept.emplace_back();
      for (auto [label, excess] :
           llvm::zip_equal(network.nodes[variable].labels, excesses)) {
        Cost &bound = bounds[variable][label];
        bound = model.boundFor(excess < kInfinity ? sum + excess
                                                  : Int128(kInfinity));
        flags.push_back(bound < limit);
      }
    }
    network.noLabel |= least >= limit || lacksLabels(kept);
    if (!network.infeasible())
      filterLabels(network, model, kept);
  }

  /// False if that leads no further.
  bool excludeByMessages(Model &model) {
    MessageResult found = ascendByMessages(
        model, pricesOf(model), left.messages, [&] { return limit; }, nullptr,
        deadline);
    left.messages -= found.work;
    network.noLabel |= found.exhausted;
    if (network.infeasible())
      return false;
    storePrices(network, found.prices, model.getShift(), multipliers);
    filterLabels(network, model, found.remaining);
    contract(network, deadline, Steps::KeepingAll);
    return removedPart(found.remaining) >= kWorthwhilePart &&
           left.messages > 0 && !deadline.expired();
  }

  Cost limit;
  std::vector<double> multipliers;
  BoundWork &left;
  const Deadline &deadline;
  Network network;
  LabelBounds bounds;
  /// Lower bound of all assignments.
  Cost least = kNothingKnown;
};
} // namespace

LabelBounds boundLabels(const Problem &problem, Cost limit,
                        std::vector<double> multipliers, BoundWork &left,
                        const Deadline &deadline) {
  return LabelBounding(problem, limit, std::move(multipliers), left, deadline)
      .run();
}

} // namespace shardc::solver
