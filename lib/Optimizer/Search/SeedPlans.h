//===- SeedPlans.h - Plans that means and limits do not find --*- C++ -*-===//

#ifndef SHARDC_LIB_OPTIMIZER_SEARCH_SEEDPLANS_H
#define SHARDC_LIB_OPTIMIZER_SEARCH_SEEDPLANS_H

#include "WeightBounds.h"

namespace shardc {

/// Many plans share one bound, and some leave less to overlap: tries plans
/// between the bound's weights and those of `upper`.
void tryMixedWeights(PlanSolver &solver, const WeightBounds &weights,
                     const Region &region);

/// A plan that fills the memory leaves none to overlap: tries plans that leave
/// as much as the incumbent lacks.
void tryWithRoom(PlanSolver &solver, const Region &region);

/// Tries plans that store all weights in parts over all devices, as FSDP does
/// (Zhao et al., 2023): they differ from others in every weight at once.
void tryShardedWeights(PlanSolver &solver, const WeightBounds &weights,
                       const Region &region);

} // namespace shardc

#endif // SHARDC_LIB_OPTIMIZER_SEARCH_SEEDPLANS_H
