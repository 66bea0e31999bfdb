//===- PlanSolver.h - Candidates from problems of one sum -----*- C++ -*-===//
//
// The part of a search that solves problems of the network, counts their work
// and proposes the plans that it finds. The other parts say which problems.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_OPTIMIZER_SEARCH_PLANSOLVER_H
#define SHARDC_LIB_OPTIMIZER_SEARCH_PLANSOLVER_H

#include "Candidates.h"
#include "Region.h"

namespace shardc {

/// A solution with an assignment that fits.
bool isPlan(const solver::Solution &solution);

/// Leaves a variable no other label.
void keepOnly(std::vector<bool> &labels, solver::Label label);

/// Gaps of problems that are solved for their plan alone, in parts of the cost:
/// a tenth of a percent is less than what schedules add to any mean.
inline constexpr double kPlanTolerance = 1e-3;

class PlanSolver {
public:
  PlanSolver(const PlanNetwork &network, const EvaluatePlan &evaluate,
             const ObjectiveSearchOptions &options)
      : network(network), times(network), options(options),
        work(options.maxWork, options.deadline),
        candidates(network, times, evaluate, options, work) {}
  PlanSolver(const PlanSolver &) = delete;
  PlanSolver &operator=(const PlanSolver &) = delete;

  /// The outcome of solving a problem.
  struct Solved {
    solver::Solution solution;
    CandidatePool::Proposal proposal;
  };
  /// Solves a problem to a gap of `tolerance` from the known plans, and
  /// proposes its plan; nothing if it has sums out of range or time is up.
  std::optional<Solved> solve(PartialProblem &partial, double tolerance);
  /// The same, and polishes the plan if it is new.
  std::optional<Solved> solveAndPolish(PartialProblem &partial,
                                       double tolerance);
  /// Solves as `how` says within the deadline, and counts the work.
  solver::Solution solveCounted(const PartialProblem &partial,
                                solver::Options &how);

  /// Where something else is waited for, a plan may move data in vain: lays out
  /// values for the least `upper` with the operations of the plan as they are.
  void polish(const Candidate &candidate);
  /// All labels, but operations keep those of a plan unless they are touched.
  solver::LabelSets keepOperations(llvm::ArrayRef<solver::Label> plan,
                                   const std::vector<bool> &touched) const;

  /// Plans that take as long or longer are of no interest.
  Picoseconds best() const {
    return std::min(candidates.incumbent().value, options.cutoff);
  }
  /// From a region's bound to the incumbent, in values of the incumbent.
  double gapOf(const Region &region) const;
  /// So little is left that other plans are hardly worth their search.
  bool isNearlyClosed(const Region &region) const;
  void reportProgress(const Region &region) const;
  /// Most work that one problem took.
  double largestWork() const { return mostWork; }

  const PlanNetwork &network;
  const TimeRows times;
  const ObjectiveSearchOptions &options;
  WorkBudget work;
  CandidatePool candidates;

private:
  double mostWork = 0;
};

} // namespace shardc

#endif // SHARDC_LIB_OPTIMIZER_SEARCH_PLANSOLVER_H
