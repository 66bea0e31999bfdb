//===- LocalSearch.h - Neighbours of good plans ---------------*- C++ -*-===//
//
// No weights may have the best plan as the least, and schedules wait for more
// than rows know of. So plans are improved by small steps, too.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_OPTIMIZER_SEARCH_LOCALSEARCH_H
#define SHARDC_LIB_OPTIMIZER_SEARCH_LOCALSEARCH_H

#include "LimitSearch.h"

namespace shardc {

class LocalSearch {
public:
  LocalSearch(PlanSolver &solver, WeightBounds &weights, LimitSearch &limits)
      : solver(solver), weights(weights), limits(limits) {}

  /// Improves the best plan whose neighbours were not tried, again and again,
  /// with so much work.
  void improve(const Region &region, double work);
  /// The same in ever wider neighbourhoods, with a part of what limits have
  /// left; true if the incumbent is better, so that lower limits are of
  /// interest.
  bool improveFurther(const Region &region);
  /// Searches what the fastest plans are made of: each variable keeps the
  /// labels that some of them gives it.
  void recombine(const Region &region);

private:
  /// How the steps from one plan ended.
  enum class Steps {
    Improved,  // with a better plan
    Exhausted, // no neighbour is better
    OutOfWork, // before all neighbours were tried
  };
  Steps stepByWeights(const Candidate &start, double leave);
  Steps stepToLimit(const Candidate &start, double leave);

  const Candidate *nextStart() const;
  std::vector<solver::Variable> longestFirst(const Candidate &plan) const;
  std::vector<bool> around(solver::Variable variable, unsigned edges) const;
  solver::LabelSets changing(solver::Variable variable,
                             const std::vector<solver::Label> &plan) const;
  solver::LabelSets near(solver::Variable variable,
                         const std::vector<solver::Label> &plan) const;

  PlanSolver &solver;
  WeightBounds &weights;
  LimitSearch &limits;
  /// Values of the plans whose neighbours were tried.
  std::set<Picoseconds> exhausted;
  /// How many edges away steps to limits may change variables.
  unsigned reach = 3;
};

} // namespace shardc

#endif // SHARDC_LIB_OPTIMIZER_SEARCH_LOCALSEARCH_H
