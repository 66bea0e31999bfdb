//===- Stages.cpp - A pipeline's stages against the unsharded step --------===//
//
// The plan of a stage that has everything is split into its stages, which run
// in the order of the schedule. The unsharded step has the layers of all
// stages.
//
//===----------------------------------------------------------------------===//

#include "Detail.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "shardc/Cost/PipelineSchedule.h"
#include "shardc/Dialect/Shd/IR/Pipeline.h"
#include "shardc/Pipelines/Pipelines.h"
#include "shardc/Schedule/PipelineShape.h"
#include "shardc/Shrink/Shrink.h"
#include "shardc/Verify/RunSize.h"

using namespace mlir;
using namespace shardc;

namespace {
/// Stages, and layers of a chunk, that are run at most.
struct MostRun {
  int64_t stages, layers;
};
/// A first stage, a last one and two between them, with chunks that differ; for
/// larger programs fewer.
constexpr MostRun kMostRun[] = {{4, 3}, {3, 2}, {2, 1}};
} // namespace

static LogicalResult splitStages(ModuleOp module, const PipelineShape &small) {
  markStages(*module.getOps<shd::ProgramOp>().begin());
  PassManager manager(module.getContext());
  buildSpmdPipeline(manager, small.layers, toString(small.order));
  return manager.run(module);
}

/// The memory of each stage, in program order. What travels around rings counts
/// as gathered.
static LogicalResult measureMemory(shd::ProgramOp planned,
                                   const PipelineShape &small,
                                   const VerifyOptions &options,
                                   Verification::Stages &stages) {
  if (!options.schedule)
    return success();
  for (const MemoryProfile &memory : profileStages(planned, small))
    stages.predicted.push_back(memory.peak);
  OwningOpRef<ModuleOp> module = planned->getParentOfType<ModuleOp>().clone();
  module->walk([](Operation *op) { op->removeAttr(shd::kRing); });
  if (failed(splitStages(*module, small)))
    return failure();
  SmallVector<spmd::ProgramOp> programs(module->getOps<spmd::ProgramOp>());
  auto measured = measureStages(programs);
  if (failed(measured))
    return failure();
  stages.measured = measured->value_or(std::vector<int64_t>());
  return success();
}

/// Runs a pipeline of `most`. Extents that keep their order may make it too
/// large to run.
static FailureOr<Verification::Stages>
run(ModuleOp imported, ModuleOp planned, const StagePlan &plan,
    const VerifyOptions &options, MostRun most, bool keepsOrder = true) {
  OwningOpRef<ModuleOp> wholeModule = imported.clone();
  OwningOpRef<ModuleOp> module = planned.clone();
  auto whole = *wholeModule->getOps<shd::ProgramOp>().begin();
  auto stage = *module->getOps<shd::ProgramOp>().begin();
  PipelineShape small = options.shrink
                            ? shrunkShape(plan, most.stages, most.layers)
                            : shapeOf(plan);
  if (options.shrink) {
    ShrinkOptions shrink;
    shrink.keepsOrder = keepsOrder;
    shrink.least[plan.microbatches] = small.microbatches;
    Shrinking shrinking = chooseShrinking(stage, shrink);
    applyShrinking(stage, shrinking);
    applyShrinking(whole, shrinking);
    // More than wanted where an index of the same extent is split.
    small.microbatches = shrinking.count(plan.microbatches);
    if (std::string why = whyIllegal(small.order, small.stages,
                                     small.microbatches, small.numLayers());
        !why.empty())
      return stage.emitError("the small form of the pipeline cannot run: ")
             << why;
  }
  shd::holdStages(stage, small.stages);
  shd::holdLayers(whole, small.numLayers());
  if (options.shrink && keepsOrder && !isRunnable(whole, /*devices=*/1))
    return run(imported, planned, plan, options, most, /*keepsOrder=*/false);
  Verification::Stages stages;
  if (failed(measureMemory(stage, small, options, stages)) ||
      failed(splitStages(*module, small)))
    return failure();
  SmallVector<spmd::ProgramOp> programs(module->getOps<spmd::ProgramOp>());
  Verification result;
  result.options = options;
  result.mesh = spmd::meshOf(programs.front());
  for (auto [axis, attr] : llvm::zip_equal(
           result.mesh.axes, programs.front().getMeshAttr().getAxes()))
    if (attr.getStages())
      axis.size = 1;
  RunOptions run = shardc::detail::inputsOf(whole, options);
  if (failed(checkRunSize(whole, /*devices=*/1)))
    return failure();
  FailureOr<RunResult> expected = interpret(whole, run);
  if (failed(expected))
    return failure();
  FailureOr<RunResult> found = interpretStages(programs, run);
  if (failed(found))
    return failure();
  result.run = std::move(*found);
  if (failed(shardc::detail::compareResults(*expected, result)))
    return failure();
  stages.number = small.stages;
  stages.mesh = result.mesh;
  stages.microbatches = small.microbatches;
  stages.order = toString(small.order);
  stages.layers = small.layers;
  stages.messages = result.run.messages;
  stages.results = std::move(result.results);
  stages.agree = result.holds;
  return stages;
}

FailureOr<Verification::Stages>
shardc::detail::verifyStages(ModuleOp imported, ModuleOp planned,
                             const StagePlan &plan,
                             const VerifyOptions &options) {
  ArrayRef<MostRun> sizes = kMostRun;
  for (MostRun most : options.shrink ? sizes.drop_back() : sizes.take_back(0)) {
    // Too large, if it fails: the last size says so.
    ScopedDiagnosticHandler quiet(imported.getContext(),
                                  [](Diagnostic &) { return success(); });
    FailureOr<Verification::Stages> stages =
        ::run(imported, planned, plan, options, most);
    if (succeeded(stages))
      return stages;
  }
  return ::run(imported, planned, plan, options, sizes.back());
}
