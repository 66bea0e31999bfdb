//===- FasterBinding.h - Where else a mesh would better lie ---*- C++ -*-===//

#ifndef SHARDC_PIPELINES_FASTERBINDING_H
#define SHARDC_PIPELINES_FASTERBINDING_H

#include "mlir/IR/BuiltinOps.h"
#include "shardc/Report/Report.h"

namespace shardc {

/// Looks for a binding of the mesh, among those that a program can ask for,
/// under which the same plan takes a shorter step. `planned` is the module with
/// its plan before it is made explicit, `priced` the program after that, on
/// `model`, with its report. The time is that of the plan made explicit again
/// under the new binding; candidates are ranked by the prices of its
/// collectives as they are. Nothing if none of the best is faster and fits.
std::optional<Report::FasterBinding>
findFasterBinding(mlir::ModuleOp planned, shd::ProgramOp priced,
                  const CollectiveModel &model, const Report &report,
                  const ReportOptions &options);

} // namespace shardc

#endif // SHARDC_PIPELINES_FASTERBINDING_H
