//===- LimitSearch.h - Limits on all rows together ------------*- C++ -*-===//
//
// A weighted mean is a weak bound where plans trade one row against another. So
// all rows are limited together: to the solver each is one more point of
// memory. Either no plan keeps a limit, which is a bound, or one is found that
// is worth scheduling.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_OPTIMIZER_SEARCH_LIMITSEARCH_H
#define SHARDC_LIB_OPTIMIZER_SEARCH_LIMITSEARCH_H

#include "WeightBounds.h"

namespace shardc {

class LimitSearch {
public:
  LimitSearch(PlanSolver &solver, WeightBounds &weights)
      : solver(solver), weights(weights) {}

  /// A plan of the region of which no row is above `limit`, if one is found; or
  /// the proof that there is none: Status::Infeasible.
  solver::Solution findWithin(const Region &region, Picoseconds limit,
                              double work);

  /// Halves the region's gap with limits, until no lower one is of interest.
  void narrow(Region &region);
  /// The same for plans alone, until no more than `leave` of the work is left.
  void findPlans(Region region, double leave) {
    narrow(region, leave, /*proves=*/false);
  }

private:
  /// The outcome of scheduling a plan within a limit.
  struct Scheduled {
    /// None if the plan was refused.
    std::optional<Picoseconds> longestRow;
    /// The plan, or how it was polished, has chains that were not known.
    bool addsRows = false;
  };
  void narrow(Region &region, double leave, bool proves);
  Scheduled schedule(const std::vector<solver::Label> &plan);
  std::optional<Picoseconds> nextLimit(const Region &region,
                                       Picoseconds horizon) const;

  PlanSolver &solver;
  WeightBounds &weights;
};

} // namespace shardc

#endif // SHARDC_LIB_OPTIMIZER_SEARCH_LIMITSEARCH_H
