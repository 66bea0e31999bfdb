//===- NetworkSearch.h - The best plan of a network -----------*- C++ -*-===//

#ifndef SHARDC_DIALECT_SHD_TRANSFORMS_NETWORKSEARCH_H
#define SHARDC_DIALECT_SHD_TRANSFORMS_NETWORKSEARCH_H

#include "shardc/Optimizer/ObjectiveSearch.h"

namespace shardc::shd {

struct NetworkSearchOptions {
  Objective objective = Objective::Scheduled;
  /// Work of the search for `lower` or `scheduled`, and of the one for `upper`
  /// (none: until that is proven).
  double maxWork = kUsualSearchWork;
  std::optional<double> maxUpperWork;
  /// Gap of the least `upper` that is as good as none where its work is
  /// limited.
  double upperTolerance = 1e-3;
  /// ObjectiveSearchOptions::isQuick.
  bool isQuick = false;
  /// Only plans that take less are of interest.
  std::optional<solver::Cost> cutoff;
  solver::Deadline deadline = {};
  /// Told of picoseconds of the objective.
  std::function<void(const solver::SearchProgress &)> progress = {};
};

/// The outcome of a search.
struct SearchedPlan {
  solver::Solution solution;
  /// The time that its cost and its bound are of: `upper` where the plan could
  /// not be scheduled or none fits.
  Objective of = Objective::Upper;

  /// It has an assignment that fits in memory.
  bool fits() const {
    return solution.status == solver::Status::Optimal ||
           solution.status == solver::Status::Feasible;
  }
};

/// The plan of the least `upper`, with which every search begins.
solver::Solution solveUpper(const PlanNetwork &network,
                            const NetworkSearchOptions &options,
                            std::vector<std::vector<solver::Label>> starts);

/// Searches the plans of a network from `starts`. The program's pins change on
/// the way.
SearchedPlan searchNetwork(PlanningContext &context, ProgramOp program,
                           const PlanNetwork &network,
                           const NetworkSearchOptions &options,
                           std::vector<std::vector<solver::Label>> starts = {});

} // namespace shardc::shd

#endif // SHARDC_DIALECT_SHD_TRANSFORMS_NETWORKSEARCH_H
