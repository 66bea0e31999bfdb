//===- Pipelines.cpp - The way of a program through the compiler ----------===//

#include "shardc/Pipelines/Pipelines.h"
#include "mlir/Pass/PassRegistry.h"
#include "shardc/Conversion/Passes.h"
#include "shardc/Dialect/Shd/Transforms/Passes.h"
#include "shardc/Dialect/Spmd/Transforms/Passes.h"

using namespace mlir;
using namespace shardc;

void shardc::buildPlanPipeline(OpPassManager &manager,
                               const PlanOptions &options) {
  OpPassManager &program = manager.nest<shd::ProgramOp>();
  bool fixed = options.mode != OptMode::Optimize;
  if (!fixed)
    program.addPass(shd::createShdCanonicalOrder());
  program.addPass(shd::createShdOrderIndices());
  if (options.mode == OptMode::Propagate)
    program.addPass(shd::createShdPropagate());
  if (fixed)
    program.addPass(shd::createShdReplicateOpen());
  program.addPass(shd::createShdFusionGroups());
  shd::ShdOptimizeOptions optimize;
  optimize.fixed = fixed;
  if (!fixed)
    optimize.objective = options.objective;
  optimize.memoryLimit = options.memoryLimit.value_or(-1);
  optimize.timeLimit = options.timeLimitSeconds.value_or(-1);
  optimize.priceMemory = options.priceMemory;
  optimize.effort = options.effort;
  program.addPass(shd::createShdOptimize(optimize));
  program.addPass(shd::createShdTextOrder({optimize.memoryLimit}));
}

void shardc::buildTrainingPipeline(OpPassManager &manager) {
  OpPassManager &program = manager.nest<shd::ProgramOp>();
  program.addPass(shd::createShdStage());
  program.addPass(shd::createShdDifferentiate());
  program.addPass(shd::createShdMicrobatch());
  program.addPass(shd::createShdAddOptimizer());
  program.addPass(shd::createShdPlace());
}

void shardc::buildServingPipeline(OpPassManager &manager) {
  manager.addNestedPass<shd::ProgramOp>(shd::createShdServe());
}

void shardc::buildUnsolvedPipeline(OpPassManager &manager) {
  manager.addNestedPass<shd::ProgramOp>(shd::createShdFusionGroups());
}

void shardc::buildLoweringPipeline(OpPassManager &manager) {
  OpPassManager &program = manager.nest<shd::ProgramOp>();
  program.addPass(shd::createShdApplyOrder());
  program.addPass(shd::createShdInsertCollectives());
  program.addPass(shd::createShdSettleOrders());
  program.addPass(shd::createShdAnnotateCost());
}

void shardc::buildSpmdPipeline(OpPassManager &manager, ArrayRef<int64_t> layers,
                               StringRef order) {
  manager.addPass(createConvertShdToSpmd());
  manager.addNestedPass<spmd::ProgramOp>(spmd::createSpmdDecomposeMatmuls());
  if (layers.empty())
    return;
  spmd::SpmdSplitStagesOptions split;
  llvm::append_range(split.layers, layers);
  split.order = order;
  manager.addPass(spmd::createSpmdSplitStages(split));
}

namespace {
struct PlanPipelineOptions : PassPipelineOptions<PlanPipelineOptions> {
  Option<OptMode> mode{
      *this, "opt", llvm::cl::desc("How to plan"),
      llvm::cl::init(OptMode::Optimize),
      llvm::cl::values(
          clEnumValN(OptMode::None, "none", "exactly what is annotated"),
          clEnumValN(OptMode::Propagate, "propagate", "spread annotations"),
          clEnumValN(OptMode::Optimize, "optimize", "search"))};
};
} // namespace

void shardc::registerAllPasses() {
  registerConversionPasses();
  shd::registerShdPasses();
  spmd::registerSpmdPasses();
  PassPipelineRegistration<PlanPipelineOptions>(
      "shd-plan",
      "Decide every sharding, then make collectives and costs "
      "explicit",
      [](OpPassManager &manager, const PlanPipelineOptions &options) {
        PlanOptions plan;
        plan.mode = options.mode;
        buildPlanPipeline(manager, plan);
        buildLoweringPipeline(manager);
      });
}
