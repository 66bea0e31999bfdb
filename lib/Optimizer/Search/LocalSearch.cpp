//===- LocalSearch.cpp - Neighbours of good plans -------------------------===//

#include "LocalSearch.h"
#include "llvm/ADT/STLExtras.h"

using namespace shardc;
using solver::Label;
using solver::LabelSets;
using solver::Variable;

/// Steps start from plans that take at most so many times as long as the
/// incumbent.
static constexpr double kWorthSteps = 1.25;
/// Part of `upper` in the weights of steps, the rest being the weights that
/// bound the known plans best: what moves least first.
static constexpr double kUpperShares[] = {1, 0.125};
/// A step to a limit asks for plans whose longest row is this part shorter.
static constexpr double kStepPart = 0.005;
/// Work units (table entries) for one step to a limit, with the usual budget.
static constexpr double kStepWork = 6e7;
/// Edges between a variable and those that change with it, at most: further
/// ones reach a layer's other end.
static constexpr unsigned kMostReach = 6;
/// Part of the remaining work for wider neighbourhoods; branching has the rest.
static constexpr double kFurtherPart = 0.2;
/// Plans that are recombined, at most.
static constexpr size_t kParents = 12;
/// Part of all work for one recombination.
static constexpr double kRecombinePart = 0.05;
/// Gaps, in values of the incumbent, that wider neighbourhoods are not for.
static constexpr double kWorthImproving = 0.01;

//===----------------------------------------------------------------------===//
// Neighbourhoods
//===----------------------------------------------------------------------===//

/// The variables that collectives of a plan depend on, those of the longest
/// first.
std::vector<Variable> LocalSearch::longestFirst(const Candidate &plan) const {
  std::vector<double> taken = solver.times.collectiveTimes(plan.assignment);
  std::vector<Variable> variables;
  for (auto [variable, time] : llvm::enumerate(taken))
    if (time > 0)
      variables.push_back(variable);
  llvm::stable_sort(
      variables, [&](Variable a, Variable b) { return taken[a] > taken[b]; });
  return variables;
}

/// The variables at most so many edges from one.
std::vector<bool> LocalSearch::around(Variable variable, unsigned edges) const {
  const solver::Problem &problem = solver.network.problem;
  std::vector<bool> result(problem.variables.size(), false);
  result[variable] = true;
  for (unsigned i = 0; i < edges; ++i) {
    std::vector<bool> last = result;
    for (const solver::Edge &edge : problem.edges) {
      result[edge.first] = result[edge.first] || last[edge.second];
      result[edge.second] = result[edge.second] || last[edge.first];
    }
  }
  return result;
}

/// Labels of plans in which a variable keeps some resource busy for another
/// time; operations that it does not touch are as they are.
LabelSets LocalSearch::changing(Variable variable,
                                const std::vector<Label> &plan) const {
  LabelSets labels = solver.keepOperations(plan, around(variable, 1));
  std::vector<solver::Cost> now = solver.times.busyTimes(variable, plan);
  std::vector<Label> changed = plan;
  for (Label label = 0; label < labels[variable].size(); ++label) {
    changed[variable] = label;
    if (solver.times.busyTimes(variable, changed) == now)
      labels[variable][label] = false;
  }
  return labels;
}

/// Labels of plans in which only variables around one differ.
LabelSets LocalSearch::near(Variable variable,
                            const std::vector<Label> &plan) const {
  LabelSets result = solver.times.allLabels();
  for (auto [labels, label, isNear] :
       llvm::zip_equal(result, plan, around(variable, reach)))
    if (!isNear)
      keepOnly(labels, label);
  return result;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// Plans with one variable changed, its neighbours as that wants them under
/// some weights, until one is better.
LocalSearch::Steps LocalSearch::stepByWeights(const Candidate &start,
                                              double leave) {
  std::vector<Variable> variables = longestFirst(start);
  for (double share : kUpperShares) {
    RowWeights mixed = weights.mixWithUpper(solver.times.allLabels(), share);
    for (Variable variable : variables) {
      if (solver.work.remaining() < leave || solver.work.isTimeUp())
        return Steps::OutOfWork;
      LabelSets labels = changing(variable, start.assignment);
      if (solver::lacksLabels(labels))
        continue;
      PartialProblem partial =
          solver.times.combine(mixed, labels, {.each = start.value});
      std::optional<PlanSolver::Solved> solved =
          solver.solve(partial, kPlanTolerance);
      if (solved && solved->proposal.improvesOn(start.value))
        return Steps::Improved;
    }
  }
  return Steps::Exhausted;
}

/// Plans with the variables around one changed, of which no row is above a
/// limit just below the longest, until one is better.
LocalSearch::Steps LocalSearch::stepToLimit(const Candidate &start,
                                            double leave) {
  auto limit = Picoseconds((1 - kStepPart) * double(start.longestRow()));
  for (Variable variable : longestFirst(start)) {
    if (solver.work.remaining() < leave || solver.work.isTimeUp())
      return Steps::OutOfWork;
    Region region{near(variable, start.assignment)};
    solver::Solution found =
        limits.findWithin(region, limit, solver.work.scaled(kStepWork));
    if (isPlan(found) &&
        solver.candidates.propose(found.assignment).improvesOn(start.value))
      return Steps::Improved;
  }
  return Steps::Exhausted;
}

/// The best plan whose neighbours were not tried, if it is good enough.
const Candidate *LocalSearch::nextStart() const {
  const Candidate *start = nullptr;
  for (const Candidate &candidate : solver.candidates.all())
    if (!exhausted.count(candidate.value) &&
        candidate.value <= kWorthSteps * double(solver.best()) &&
        (!start || candidate.value < start->value))
      start = &candidate;
  return start;
}

void LocalSearch::improve(const Region &region, double work) {
  double leave = solver.work.remaining() - work;
  while (const Candidate *next = nextStart()) {
    // Chains that steps find are no rows of where they started.
    Candidate start = *next;
    Steps steps = Steps::Exhausted;
    if (solver.options.objective == Objective::Scheduled)
      steps = stepByWeights(start, leave);
    if (steps == Steps::Exhausted)
      steps = stepToLimit(start, leave);
    if (steps == Steps::OutOfWork)
      return;
    exhausted.insert(start.value);
    solver.reportProgress(region);
  }
}

void LocalSearch::recombine(const Region &region) {
  if (solver.gapOf(region) <= kWorthImproving)
    return;
  std::vector<const Candidate *> parents;
  for (const Candidate &candidate : solver.candidates.all())
    if (candidate.value <= kWorthSteps * double(solver.best()))
      parents.push_back(&candidate);
  llvm::stable_sort(parents, [](const Candidate *a, const Candidate *b) {
    return a->value < b->value;
  });
  parents.resize(std::min(parents.size(), kParents));
  Region part = region;
  for (auto [variable, labels] : llvm::enumerate(part.labels)) {
    std::vector<bool> used(labels.size(), false);
    for (const Candidate *parent : parents)
      used[parent->assignment[variable]] = true;
    labels = std::move(used);
  }
  part.outside = std::min(region.bound, region.outside);
  limits.findPlans(std::move(part), solver.work.remaining() -
                                        kRecombinePart * solver.work.all());
}

bool LocalSearch::improveFurther(const Region &region) {
  if (solver.gapOf(region) <= kWorthImproving)
    return false;
  Picoseconds before = solver.best();
  double leave = (1 - kFurtherPart) * solver.work.remaining();
  while (solver.work.remaining() > leave && !solver.work.isTimeUp()) {
    improve(region, solver.work.remaining() - leave);
    if (solver.best() < before)
      return true;
    if (solver.work.remaining() <= leave || reach == kMostReach)
      return false;
    ++reach;
    exhausted.clear();
  }
  return false;
}
