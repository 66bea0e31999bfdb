//===- Detail.h - What runs of a plan and of its stages share --*- C++ -*-===//

#ifndef SHARDC_LIB_VERIFY_DETAIL_H
#define SHARDC_LIB_VERIFY_DETAIL_H

#include "shardc/Schedule/StagePlan.h"
#include "shardc/Verify/Verify.h"

namespace shardc::detail {

/// Reals from -1 to 1; integers that are mostly positions near the beginning.
/// Moments are not negative: a root is taken of Adam's second, and the number
/// of the step is one. Depends on the tensor's name and shape alone.
Tensor randomTensor(const DeclaredTensor &declared, uint64_t seed);

/// How both programs run: with the same random inputs.
RunOptions inputsOf(shd::ProgramOp whole, const VerifyOptions &options);

/// Compares what a program wrote with `result.run`, on the mesh of `result`:
/// each of the devices' results of that name. Fails, with an error, if there is
/// none.
mlir::LogicalResult compareResults(const RunResult &expected,
                                   Verification &result);

/// Runs all stages of a pipeline in the order of its schedule, and the
/// unsharded step with all layers.
mlir::FailureOr<Verification::Stages>
verifyStages(mlir::ModuleOp imported, mlir::ModuleOp planned,
             const StagePlan &plan, const VerifyOptions &options);

} // namespace shardc::detail

#endif // SHARDC_LIB_VERIFY_DETAIL_H
