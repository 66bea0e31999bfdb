//===- Branching.h - Branch and bound over label sets ---------*- C++ -*-===//

#ifndef SHARDC_LIB_OPTIMIZER_SEARCH_BRANCHING_H
#define SHARDC_LIB_OPTIMIZER_SEARCH_BRANCHING_H

#include "WeightBounds.h"

namespace shardc {

/// Cuts about half of a region's plans out of it and returns them; nothing if
/// the region has one plan only. Halves separate two plans of which each is
/// good for another row, where these differ most.
std::optional<Region> split(Region &region, const PlanSolver &solver,
                            const WeightBounds &weights);

/// The bound of the region after branch and bound with the work that is left:
/// the part of the least bound is split first. Halves have bounds where limits
/// cannot tell their plans apart, and plans of their own to try.
solver::Cost branchAndBound(Region root, PlanSolver &solver,
                            WeightBounds &weights);

} // namespace shardc

#endif // SHARDC_LIB_OPTIMIZER_SEARCH_BRANCHING_H
