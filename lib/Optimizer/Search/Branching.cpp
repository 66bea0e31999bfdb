//===- Branching.cpp - Branch and bound over label sets -------------------===//

#include "Branching.h"
#include "llvm/ADT/STLExtras.h"

using namespace shardc;
using solver::Label;

/// Branching ends where this part of all work closes less than that part of the
/// gap.
static constexpr double kBranchPart = 0.07, kLeastProgress = 0.05;

namespace {
/// Labels `from` to `to` of a variable, which are to be on different sides.
struct Branch {
  size_t variable = 0;
  Label from = 0, to = 0;
};
} // namespace

/// The first of the plans of the least weighted mean; null if there is none.
static const Candidate *leastMean(llvm::ArrayRef<const Candidate *> plans,
                                  const Rows &weights) {
  const Candidate *least = nullptr;
  for (const Candidate *plan : plans)
    if (!least ||
        weightedMean(weights, plan->rows) < weightedMean(weights, least->rows))
      least = plan;
  return least;
}

/// Where the times of two plans differ most.
static Branch between(const TimeRows &times, const Candidate &a,
                      const Candidate &b) {
  std::vector<double> differences =
      times.differences(a.assignment, b.assignment);
  for (auto [v, difference] : llvm::enumerate(differences))
    if (a.assignment[v] == b.assignment[v])
      difference = -1;
  size_t variable = llvm::max_element(differences) - differences.begin();
  auto [from, to] = std::minmax(a.assignment[variable], b.assignment[variable]);
  return {variable, from, to};
}

/// The variable of the most labels.
static Branch widest(const solver::LabelSets &labels) {
  auto count = [](const std::vector<bool> &flags) {
    return llvm::count(flags, true);
  };
  auto most = llvm::max_element(labels, [&](const auto &a, const auto &b) {
    return count(a) < count(b);
  });
  return {size_t(most - labels.begin()), 0, Label(most->size() - 1)};
}

std::optional<Region> shardc::split(Region &region, const PlanSolver &solver,
                                    const WeightBounds &weights) {
  std::vector<const Candidate *> plans =
      solver.candidates.within(region.labels);
  const Candidate *first = leastMean(plans, weights.weightsOf(region));
  const Candidate *second =
      first ? leastMean(plans, weighLongest(first->rows)) : nullptr;
  Branch branch = first == second ? widest(region.labels)
                                  : between(solver.times, *first, *second);
  // As many labels between the two on each side.
  std::vector<bool> &labels = region.labels[branch.variable];
  llvm::SmallVector<Label> open;
  for (Label label = branch.from; label <= branch.to; ++label)
    if (labels[label])
      open.push_back(label);
  if (open.size() < 2)
    return std::nullopt;
  Label middle = open[open.size() / 2];
  Region half = region;
  for (Label label = 0; label < labels.size(); ++label)
    (label < middle ? half.labels[branch.variable] : labels)[label] = false;
  return half;
}

static solver::Cost leastBound(llvm::ArrayRef<Region> regions) {
  solver::Cost least = solver::kMaxTotal;
  for (const Region &region : regions)
    least = std::min(least, region.bound);
  return least;
}

solver::Cost shardc::branchAndBound(Region root, PlanSolver &solver,
                                    WeightBounds &weights) {
  double lastWork = solver.work.remaining();
  double lastGap = double(solver.best() - root.bound);
  std::vector<Region> open = {std::move(root)};
  while (true) {
    auto next = llvm::min_element(open, [](const Region &a, const Region &b) {
      return a.bound < b.bound;
    });
    if (next == open.end() || next->bound >= solver.best())
      return solver.best();
    double gap = double(solver.best() - next->bound);
    if (solver.isNearlyClosed(*next) || solver.work.isSpent() ||
        solver.work.isTimeUp())
      return next->bound;
    if (lastWork - solver.work.remaining() > kBranchPart * solver.work.all()) {
      if (gap > (1 - kLeastProgress) * lastGap)
        return next->bound;
      lastWork = solver.work.remaining();
      lastGap = gap;
    }
    Region rest = std::move(*next);
    open.erase(next);
    std::optional<Region> half = split(rest, solver, weights);
    if (!half)
      continue; // its one plan was tried
    // The first half stands beside the second, the second beside open parts.
    solver::Cost sibling = rest.bound;
    for (Region *part : {&*half, &rest}) {
      part->outside = std::min(leastBound(open), sibling);
      sibling = solver::kMaxTotal;
      weights.raiseByOwn(*part);
      part->radius = 1;
      weights.raiseMany(*part, kPartWeights);
      open.push_back(std::move(*part));
    }
  }
}
