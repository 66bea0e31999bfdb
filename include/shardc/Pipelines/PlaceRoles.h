//===- PlaceRoles.h - Roles of mesh axes as pins --------------*- C++ -*-===//

#ifndef SHARDC_PIPELINES_PLACEROLES_H
#define SHARDC_PIPELINES_PLACEROLES_H

#include "shardc/Dialect/Shd/IR/Shd.h"
#include "shardc/Frontend/AxisRoles.h"

namespace shardc {

/// Pins the operands of the operations of a training step, and the tensors that
/// it declares, so that each axis has its role in all of the step. Pins that
/// are there stay. An error where an axis does not divide what its role splits.
llvm::LogicalResult placeRoles(shd::ProgramOp step, const AxisRoles &roles);

} // namespace shardc

#endif // SHARDC_PIPELINES_PLACEROLES_H
