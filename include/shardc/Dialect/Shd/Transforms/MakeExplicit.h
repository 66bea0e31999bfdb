//===- MakeExplicit.h - A plan as an explicit program ---------*- C++ -*-===//
//
// The work of shd-insert-collectives and shd-annotate-cost, for those who plan
// a program many times.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHD_TRANSFORMS_MAKEEXPLICIT_H
#define SHARDC_DIALECT_SHD_TRANSFORMS_MAKEEXPLICIT_H

#include "shardc/Optimizer/Context.h"

namespace shardc::shd {

/// Turns the pins of a program into shardings and collectives; emits an error
/// where they contradict each other.
mlir::LogicalResult insertCollectives(PlanningContext &context,
                                      ProgramOp program);

/// Prices each fusion group of an explicit program; emits an error where it is
/// not explicit.
mlir::LogicalResult annotateCost(PlanningContext &context, ProgramOp program);

} // namespace shardc::shd

#endif // SHARDC_DIALECT_SHD_TRANSFORMS_MAKEEXPLICIT_H
