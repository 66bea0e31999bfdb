//===- SeedPlans.h - Plans that means and limits do not find --*- C++ -*-===//

#ifndef SHARDC_LIB_OPTIMIZER_SEARCH_SEEDPLANS_H
#define SHARDC_LIB_OPTIMIZER_SEARCH_SEEDPLANS_H

#include "WeightBounds.h"

namespace shardc {

/// Of the many plans of one bound, some leave less to overlap: tries plans
/// between the bound's weights and those of `upper`.
void tryMixedWeights(PlanSolver &solver, const WeightBounds &weights,
                     const Region &region);

/// A plan that fills the memory leaves none to overlap: tries plans that leave
/// as much as the incumbent lacks.
void tryWithRoom(PlanSolver &solver, const Region &region);

} // namespace shardc

#endif // SHARDC_LIB_OPTIMIZER_SEARCH_SEEDPLANS_H
