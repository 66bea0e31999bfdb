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
#include "shardc/Dialect/Shd/IR/Pipeline.h"
#include "shardc/Pipelines/Pipelines.h"
#include "shardc/Shrink/Shrink.h"
#include "shardc/Verify/RunSize.h"
#include <numeric>

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

/// A pipeline that is small enough to run.
struct SmallPipeline {
  PipelineOrder order;
  int64_t stages = 1, microbatches = 1;
  /// Of each virtual stage.
  SmallVector<int64_t> layers;

  int64_t numLayers() const {
    return std::accumulate(layers.begin(), layers.end(), int64_t(0));
  }
};
} // namespace

/// As many microbatches as fill the stages and one more, if the order can run
/// them.
static int64_t fewMicrobatches(const StagePlan &plan, int64_t stages,
                               int64_t layers) {
  for (int64_t number = std::min(plan.microbatches, stages + 1);
       number < plan.microbatches; ++number)
    if (whyIllegal(plan.order, stages, number, layers).empty())
      return number;
  return plan.microbatches;
}

static SmallPipeline shrinkPipeline(const StagePlan &plan, bool shrink,
                                    MostRun most) {
  SmallPipeline small;
  small.order = plan.order;
  auto all = int64_t(plan.stages.size());
  small.stages = shrink ? std::min(all, most.stages) : all;
  int64_t least = plan.stages.front().layers.front();
  for (const PlannedStage &stage : plan.stages)
    for (int64_t held : stage.layers)
      least = std::min(least, held);
  for (int64_t chunk = 0; chunk < plan.order.chunks; ++chunk)
    for (int64_t stage = 0; stage < small.stages; ++stage) {
      // The first ones, and the last one.
      int64_t from = stage + 1 == small.stages ? all - 1 : stage;
      int64_t held = plan.stages[from].layers[chunk];
      small.layers.push_back(shrink ? std::min(held - least + 1, most.layers)
                                    : held);
    }
  small.microbatches =
      shrink ? fewMicrobatches(plan, small.stages, small.numLayers())
             : plan.microbatches;
  return small;
}

static LogicalResult splitStages(ModuleOp module, const SmallPipeline &small) {
  markStages(*module.getOps<shd::ProgramOp>().begin());
  PassManager manager(module.getContext());
  buildSpmdPipeline(manager, small.layers, toString(small.order));
  return manager.run(module);
}

/// Runs a pipeline of `most`.
static FailureOr<Verification::Stages> run(ModuleOp imported, ModuleOp planned,
                                           const StagePlan &plan,
                                           const VerifyOptions &options,
                                           MostRun most) {
  OwningOpRef<ModuleOp> wholeModule = imported.clone();
  OwningOpRef<ModuleOp> module = planned.clone();
  auto whole = *wholeModule->getOps<shd::ProgramOp>().begin();
  auto stage = *module->getOps<shd::ProgramOp>().begin();
  SmallPipeline small = shrinkPipeline(plan, options.shrink, most);
  if (options.shrink) {
    ShrinkOptions shrink;
    shrink.least[plan.microbatches] = small.microbatches;
    Shrinking shrinking = chooseShrinking(stage, shrink);
    applyShrinking(stage, shrinking);
    applyShrinking(whole, shrinking);
    if (shrinking.count(plan.microbatches) != small.microbatches)
      return stage.emitError("the microbatches of the pipeline cannot be made "
                             "few enough to run");
  }
  shd::holdStages(stage, small.stages);
  shd::holdLayers(whole, small.numLayers());
  if (failed(splitStages(*module, small)))
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
  Verification::Stages stages;
  stages.number = small.stages;
  stages.mesh = result.mesh;
  stages.microbatches = small.microbatches;
  stages.order = toString(small.order);
  stages.layers = small.layers;
  stages.messages = result.run.messages;
  stages.results = std::move(result.results);
  stages.holds = result.holds;
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
