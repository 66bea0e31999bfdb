//===- Enumeration.cpp - Every plan that no row rules out -----------------===//
//
// Depth first, in the reverse of an elimination order, with the exact costs to
// go of each row and of the mean that bounds the region.
//
//===----------------------------------------------------------------------===//

#include "Enumeration.h"
#include "shardc/Solver/StateSearch.h"
#include "llvm/ADT/STLExtras.h"

using namespace shardc;
using solver::Label;
using solver::Scaled;
using Plan = std::vector<Label>;

/// Variables of all plans together that are scheduled, with the usual budget:
/// their lowering takes about a second.
static constexpr double kMostVariables = 8e4;
/// Table entries to find them, with the usual budget: more of them found few
/// more proofs.
static constexpr double kWork = 8e6;
/// The part of these for the costs to go.
static constexpr double kEliminationPart = 0.5;
/// Table entries for each variable of a plan of which it is asked whether it
/// fits.
static constexpr double kFitWork = 50;

namespace {
class Enumeration {
public:
  Enumeration(const Region &region, const PlanSolver &solver,
              const WeightBounds &weights, size_t most, double work)
      : solver(solver), weights(weights),
        labels(weights.labelsWithin(region, solver.best() - 1)), most(most),
        work(work), eliminationWork(kEliminationPart * work),
        boundWeights(weights.weightsOf(region)) {}

  std::optional<std::vector<Plan>> run();

private:
  /// A sum over the network that no plan in question exceeds.
  struct Mean {
    PartialProblem partial;
    solver::Network network;
    std::unique_ptr<solver::Guide> guide;
  };
  enum class Outcome { Open, Empty, TooLarge };

  Outcome prepare();
  Outcome addMean(const Rows &rows);
  bool descend(size_t left, llvm::ArrayRef<Scaled> rooms);
  bool addPlan();

  const PlanSolver &solver;
  const WeightBounds &weights;
  const solver::LabelSets labels;
  const size_t most;
  double work, eliminationWork;
  const Rows boundWeights;
  std::vector<std::unique_ptr<Mean>> means;
  /// What the best plans leave of each mean's limit.
  std::vector<Scaled> slack;
  std::vector<uint32_t> order;
  Plan chosen;
  std::vector<Plan> plans;
};
} // namespace

/// Labels are the same whatever the weights.
Enumeration::Outcome Enumeration::addMean(const Rows &rows) {
  auto mean = std::make_unique<Mean>();
  mean->partial = solver.times.combine(weights.integral(rows), labels,
                                       {.each = solver.best()});
  if (mean->partial.problem.check())
    return Outcome::TooLarge;
  mean->partial.problem.capacity.reset();
  mean->network = solver::buildNetwork(mean->partial.problem);
  if (mean->network.infeasible())
    return Outcome::Empty;
  solver::Model model(mean->network,
                      solver::Model::largestShift(mean->network));
  const solver::EliminationLimits limits;
  if (means.empty())
    order = solver::eliminationOrder(model, limits);
  solver::Elimination plan(model, order, limits);
  eliminationWork -= plan.work();
  if (!plan.isExact() || eliminationWork < 0)
    return Outcome::TooLarge;
  mean->guide = std::make_unique<solver::Guide>(model, plan, solver::Prices());
  solver::Cost upper = solver.best() * weights.unit() - mean->partial.constant;
  if (!mean->guide->model.tells(upper))
    return Outcome::TooLarge;
  solver::Int128 room =
      mean->guide->model.sumLimit(upper) - mean->guide->leastSum;
  if (room < 0)
    return Outcome::Empty;
  slack.push_back(Scaled(room));
  means.push_back(std::move(mean));
  return Outcome::Open;
}

/// The first mean decides which labels come first.
Enumeration::Outcome Enumeration::prepare() {
  if (solver::lacksLabels(labels))
    return Outcome::Empty;
  Outcome outcome = addMean(boundWeights);
  for (size_t row = 0; row < boundWeights.size() && outcome == Outcome::Open;
       ++row) {
    Rows alone(boundWeights.size(), 0);
    alone[row] = 1;
    outcome = addMean(alone);
  }
  return outcome;
}

/// False if there are too many plans.
bool Enumeration::addPlan() {
  const Mean &mean = *means.front();
  work -= kFitWork * double(chosen.size());
  Plan own;
  for (auto [node, label] : llvm::zip_equal(mean.network.nodes, chosen))
    own.push_back(node.labels[label]);
  Plan plan = mean.partial.expand(own);
  if (solver::evaluate(solver.network.problem, plan).fits)
    plans.push_back(std::move(plan));
  return plans.size() <= most;
}

/// Chooses the labels of the variables that are `left`; false if that leads too
/// far.
bool Enumeration::descend(size_t left, llvm::ArrayRef<Scaled> rooms) {
  if (left == 0)
    return addPlan();
  uint32_t variable = order[left - 1];
  std::vector<std::vector<Scaled>> increases(means.size());
  for (auto [mean, increase] : llvm::zip_equal(means, increases))
    mean->guide->elimination.increases(variable, chosen, increase);
  size_t numLabels = increases.front().size();
  work -= double(numLabels * means.size());
  if (work < 0)
    return false;
  auto all = llvm::seq<Label>(numLabels);
  Plan sorted(all.begin(), all.end());
  llvm::stable_sort(sorted, [&](Label a, Label b) {
    return increases.front()[a] < increases.front()[b];
  });
  std::vector<Scaled> next(rooms.size());
  for (Label label : sorted) {
    for (auto [room, before, increase] :
         llvm::zip_equal(next, rooms, increases))
      room = before - increase[label];
    if (*llvm::min_element(next) < 0)
      continue;
    chosen[variable] = label;
    if (!descend(left - 1, next))
      return false;
  }
  return true;
}

std::optional<std::vector<Plan>> Enumeration::run() {
  switch (prepare()) {
  case Outcome::Empty:
    return std::vector<Plan>();
  case Outcome::TooLarge:
    return std::nullopt;
  case Outcome::Open:
    break;
  }
  chosen.assign(order.size(), 0);
  if (!descend(order.size(), slack))
    return std::nullopt;
  return std::move(plans);
}

std::optional<std::vector<Plan>> shardc::plansBelow(const Region &region,
                                                    const PlanSolver &solver,
                                                    const WeightBounds &weights,
                                                    size_t most, double work) {
  return Enumeration(region, solver, weights, most, work).run();
}

/// Chains that are found on the way rule out plans that follow.
static bool isRuledOut(const PlanSolver &solver, const Plan &plan) {
  return llvm::any_of(solver.candidates.chains(), [&](const Chain &chain) {
    return solver.times.lengthOf(chain, plan) >= solver.best();
  });
}

void shardc::enumerate(Region &region, PlanSolver &solver,
                       const WeightBounds &weights) {
  if (region.bound >= solver.best() || solver.work.isTimeUp())
    return;
  auto most = size_t(solver.work.scaled(kMostVariables) /
                     double(std::max<size_t>(region.labels.size(), 1)));
  auto plans =
      plansBelow(region, solver, weights, most, solver.work.scaled(kWork));
  if (!plans)
    return;
  for (const Plan &plan : *plans) {
    if (solver.work.isTimeUp())
      return;
    if (!isRuledOut(solver, plan))
      solver.candidates.propose(plan);
  }
  region.bound = solver.best();
  solver.reportProgress(region);
}
