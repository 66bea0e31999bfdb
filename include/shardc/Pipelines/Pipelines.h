//===- Pipelines.h - The way of a program through the compiler -*- C++ -*-===//

#ifndef SHARDC_PIPELINES_PIPELINES_H
#define SHARDC_PIPELINES_PIPELINES_H

#include "mlir/Pass/PassManager.h"
#include "shardc/Dialect/Shd/IR/Shd.h"
#include "shardc/Optimizer/Options.h"

namespace shardc {

/// Registers every pass and pipeline of shardc with MLIR's registry.
void registerAllPasses();

/// Decides every sharding: afterwards every value and use of the program has a
/// closed pin (`--emit-plan` prints them).
/// Makes a training step of a program that is trained, and leaves others as
/// they are.
void buildTrainingPipeline(mlir::OpPassManager &manager);

/// Makes prefill or a decode step of a program that is to become one, and
/// leaves others as they are.
void buildServingPipeline(mlir::OpPassManager &manager);

void buildPlanPipeline(mlir::OpPassManager &manager,
                       const PlanOptions &options);

/// The same without the search: afterwards the program can be given to
/// printProblem().
void buildUnsolvedPipeline(mlir::OpPassManager &manager);

/// `--emit-problem`: the network that `--opt=optimize` solves for the least
/// `upper` time, in the contest's format (lib/Contest). Emits an error and
/// prints nothing if there is none, or the format cannot express it.
mlir::LogicalResult printProblem(llvm::raw_ostream &os, shd::ProgramOp program,
                                 std::optional<int64_t> memoryLimit);

/// Makes the decided plan explicit: shardings in types, collectives, costs.
void buildLoweringPipeline(mlir::OpPassManager &manager);

/// Turns an explicit plan into the program of one device; what is marked as a
/// collective matmul (markRings) runs in chunks.
void buildSpmdPipeline(mlir::OpPassManager &manager,
                       llvm::ArrayRef<int64_t> layers = {},
                       llvm::StringRef order = {});

} // namespace shardc

#endif // SHARDC_PIPELINES_PIPELINES_H
