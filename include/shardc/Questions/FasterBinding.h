//===- FasterBinding.h - Where else a mesh would better lie ---*- C++ -*-===//

#ifndef SHARDC_QUESTIONS_FASTERBINDING_H
#define SHARDC_QUESTIONS_FASTERBINDING_H

#include "shardc/Pipelines/Compilation.h"
#include "shardc/Report/Report.h"

namespace shardc {

/// Looks for a binding of the mesh, among those that a program can ask for,
/// under which the same plan takes a shorter step. `planned` is the module with
/// its plan before it is made explicit, `compilation` has scheduled it, and
/// `report` is of that. The time is that of the plan made explicit again under
/// the new binding; candidates are ranked by the prices of its collectives as
/// they are. Nothing if none of the best is faster and fits.
std::optional<Report::FasterBinding> findFasterBinding(mlir::ModuleOp planned,
                                                       Compilation &compilation,
                                                       const Report &report);

} // namespace shardc

#endif // SHARDC_QUESTIONS_FASTERBINDING_H
