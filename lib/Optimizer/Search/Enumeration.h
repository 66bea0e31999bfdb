//===- Enumeration.h - Every plan that no row rules out -------*- C++ -*-===//
//
// Schedules wait for more than rows know of, so that bounds may stay below the
// best plan whatever the weights. Where few plans are left below the incumbent,
// each of them is scheduled: that proves it.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_OPTIMIZER_SEARCH_ENUMERATION_H
#define SHARDC_LIB_OPTIMIZER_SEARCH_ENUMERATION_H

#include "WeightBounds.h"

namespace shardc {

/// The region's plans that fit of which no row takes as long as the incumbent,
/// the least means about first; nothing if these are more than `most`, or
/// finding them takes more than `work` table entries.
std::optional<std::vector<std::vector<solver::Label>>>
plansBelow(const Region &region, const PlanSolver &solver,
           const WeightBounds &weights, size_t most, double work);

/// Schedules these plans of the region, if they are few: its bound is the
/// incumbent then.
void enumerate(Region &region, PlanSolver &solver, const WeightBounds &weights);

} // namespace shardc

#endif // SHARDC_LIB_OPTIMIZER_SEARCH_ENUMERATION_H
