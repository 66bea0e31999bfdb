//===- SeedPlans.cpp - Plans that means and limits do not find ------------===//

#include "SeedPlans.h"
#include "shardc/Dialect/Shd/IR/Shd.h"
#include "llvm/ADT/STLExtras.h"

using namespace shardc;

/// Part of `upper` in weights between those of the bound (0) and of `upper`
/// (1).
static constexpr double kUpperShares[] = {0.5, 0.125, 0.03};
/// The same of plans whose weights are all in parts.
static constexpr double kShardedShares[] = {1, 0.125};
/// Work units (table entries) that a problem may have taken for `lower` to try
/// mixed weights, too: without chains, limits find such plans as well.
static constexpr double kQuickWork = 1e8;
/// Plans that leave memory free, at most.
static constexpr unsigned kMaxRooms = 5;
/// Work units (table entries) for all of them.
static constexpr double kRoomWork = 2.5e8;

void shardc::tryMixedWeights(PlanSolver &solver, const WeightBounds &weights,
                             const Region &region) {
  if (solver.options.objective == Objective::Lower &&
      solver.largestWork() > kQuickWork)
    return;
  for (double share : kUpperShares) {
    if (solver.work.isSpent() || solver.work.isTimeUp() ||
        solver.isNearlyClosed(region))
      return;
    PartialProblem partial =
        solver.times.combine(weights.mixWithUpper(region.labels, share),
                             region.labels, {.each = solver.best()});
    solver.solveAndPolish(partial, kPlanTolerance);
  }
}

void shardc::tryWithRoom(PlanSolver &solver, const Region &region) {
  std::optional<int64_t> capacity = solver.network.problem.capacity;
  if (!capacity)
    return;
  double leave = solver.work.remaining() - kRoomWork;
  int64_t room = 0, step = 0;
  for (unsigned i = 0; i < kMaxRooms; ++i) {
    const Candidate &fullest = solver.candidates.incumbent();
    if (fullest.memoryCosts == 0 || fullest.missingBytes <= 0 ||
        solver.work.remaining() < leave || solver.work.isTimeUp())
      return;
    step = i == 0 ? fullest.missingBytes : std::min(step, fullest.missingBytes);
    PartialProblem partial =
        solver.times.combine({}, region.labels, {.each = fullest.value});
    *partial.problem.capacity -= std::min(room + step, *capacity);
    std::optional<PlanSolver::Solved> solved =
        solver.solve(partial, kPlanTolerance);
    if (solved && solved->solution.status != solver::Status::Infeasible)
      room += step;
    else
      step /= 2;
  }
}

/// The label's bytes on a device, then the dimensions that are split.
static std::pair<double, size_t>
sizeOf(const Mesh &mesh, shd::DeclareOp declare, const Layout &layout) {
  double bytes = shd::tensorShape(declare.getType()).localBytes(mesh, layout);
  size_t split = llvm::count_if(
      layout.dims, [](const AxisList &axes) { return !axes.empty(); });
  return {bytes, split};
}

/// Labels of plans that store each weight in as few bytes as any plan does, and
/// in parts of as few dimensions.
static solver::LabelSets leastWeights(const PlanNetwork &network,
                                      solver::LabelSets labels) {
  for (const auto &[value, at] :
       llvm::zip_equal(network.graph.values, network.values)) {
    auto declare = value.value.getDefiningOp<shd::DeclareOp>();
    if (!declare || declare.getKind() != shd::TensorKind::Weight || !at.own)
      continue;
    Mesh mesh =
        shd::toMesh(declare->getParentOfType<shd::ProgramOp>().getMeshAttr());
    std::vector<bool> &kept = labels[at.variable];
    auto sizeOfLabel = [&](size_t label) {
      return sizeOf(mesh, declare, at.layouts[at.labels[label].layout]);
    };
    std::optional<std::pair<double, size_t>> least;
    for (size_t label = 0; label < kept.size(); ++label)
      if (kept[label] && (!least || sizeOfLabel(label) < *least))
        least = sizeOfLabel(label);
    for (size_t label = 0; label < kept.size(); ++label)
      kept[label] = kept[label] && sizeOfLabel(label) == *least;
  }
  return labels;
}

void shardc::tryShardedWeights(PlanSolver &solver, const WeightBounds &weights,
                               const Region &region) {
  solver::LabelSets labels = leastWeights(solver.network, region.labels);
  for (double share : kShardedShares) {
    if (solver.work.isSpent() || solver.work.isTimeUp() ||
        solver.isNearlyClosed(region))
      return;
    PartialProblem partial =
        solver.times.combine(weights.mixWithUpper(labels, share), labels, {});
    solver.solveAndPolish(partial, kPlanTolerance);
  }
}
