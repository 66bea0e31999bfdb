//===- LabelsBelow.cpp - What cheaper assignments may use -----------------===//

#include "shardc/Solver/LabelsBelow.h"
#include "shardc/Solver/Contract.h"
#include "shardc/Solver/Elimination.h"
#include "shardc/Solver/MessageAscent.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc::solver {

/// Additions of an elimination that is worth its time.
static constexpr double kMaxExactWork = 1e7;

bool lacksLabels(const LabelSets &labels) {
  return llvm::any_of(labels, [](const std::vector<bool> &flags) {
    return !llvm::is_contained(flags, true);
  });
}

/// Those that are left, and of nodes that were merged those that go with them.
static LabelSets labelsLeft(const Problem &problem, const Network &network) {
  LabelSets result;
  for (const VariableData &variable : problem.variables)
    result.emplace_back(variable.costs.size(), false);
  if (network.infeasible())
    return result;
  for (auto [flags, node] : llvm::zip_equal(result, network.nodes))
    if (node.alive)
      for (Label label : node.labels)
        flags[label] = true;
  for (const Recovery &step : llvm::reverse(network.recoveries)) {
    assert(step.parents.size() <= 1 && "a step that does not keep all");
    for (auto [position, own] : llvm::enumerate(step.best))
      if (step.parents.empty() ||
          result[step.parents[0]][step.parentLabels[0][position]])
        result[step.node][own] = true;
  }
  return result;
}

namespace {
/// What one round leaves, by the model's variables.
struct Left {
  LabelSets labels;
  bool exhausted = false;
};
} // namespace

/// By exact elimination: what the best assignment with each label costs.
static Left leftByElimination(const Model &model, Elimination &elimination,
                              Cost limit) {
  Int128 room = model.sumLimit(limit) - elimination.run(model);
  return {elimination.labelsWithin(room), /*exhausted=*/room < 0};
}

LabelSets labelsBelow(const Problem &problem, Cost limit,
                      std::vector<double> multipliers, double &workLeft,
                      const Deadline &deadline) {
  multipliers.resize(problem.numPoints, 0);
  Network network = buildNetwork(problem);
  contract(network, deadline, Steps::KeepingAll);
  for (bool again = true; again && !network.infeasible();) {
    Model model(network, Model::largestShift(network, kMessageLimit));
    Prices prices = pricesAt(network, multipliers, model.getShift());
    EliminationLimits limits;
    Elimination elimination(model, eliminationOrder(model, limits), limits);
    Left left;
    if (elimination.isExact() && elimination.work() <= kMaxExactWork) {
      workLeft -= 2 * elimination.work();
      model.setPrices(std::move(prices));
      left = leftByElimination(model, elimination, limit);
      again = false;
    } else {
      MessageResult found = ascendByMessages(
          model, std::move(prices), workLeft, [&] { return limit; }, nullptr);
      workLeft -= found.work;
      if (!found.exhausted)
        storePrices(network, found.prices, model.getShift(), multipliers);
      left = {std::move(found.remaining), found.exhausted};
    }
    network.noLabel |= left.exhausted;
    if (network.infeasible())
      break;
    filterLabels(network, model, left.labels);
    contract(network, deadline, Steps::KeepingAll);
    again &= removedPart(left.labels) >= kWorthwhilePart && workLeft > 0 &&
             !deadline.expired();
  }
  return labelsLeft(problem, network);
}

} // namespace shardc::solver
