//===- StagePlan.cpp - A planned program in pipeline stages ---------------===//
//
// One plan serves all stages: that of the program in which a stage has
// everything (shd-stage). What a stage does in a pass is that program with the
// time of all else set to zero and as many layers as it holds.
//
//===----------------------------------------------------------------------===//

#include "shardc/Schedule/StagePlan.h"
#include "StageMemories.h"
#include "StepBuilder.h"
#include "shardc/Cost/Saturating.h"
#include "shardc/Dialect/Shd/IR/Explicit.h"
#include "shardc/Dialect/Shd/IR/Pipeline.h"
#include "shardc/Optimizer/GroupCosts.h"
#include "shardc/Schedule/Prices.h"
#include <map>

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

/// Chunks of layers on a stage that are tried.
static constexpr int64_t kMostChunks = 16;

int64_t PlannedStage::numLayers() const {
  int64_t sum = 0;
  for (int64_t chunk : layers)
    sum += chunk;
  return sum;
}

llvm::SmallVector<int64_t> shardc::layersOf(const StagePlan &plan) {
  llvm::SmallVector<int64_t> layers;
  for (int64_t chunk = 0; chunk < plan.order.chunks; ++chunk)
    for (const PlannedStage &stage : plan.stages)
      layers.push_back(stage.layers[chunk]);
  return layers;
}

namespace {

/// The times of one schedule.
struct Times {
  Picoseconds lower = 0, scheduled = 0, upper = 0, device = 0;
};

/// What part of a pass takes: of the stages with these roles, with so many
/// layers.
struct Share {
  StagePass pass = StagePass::Forward;
  StageRoles roles = kAllRoles;
  int64_t layers = 0;

  auto operator<=>(const Share &) const = default;
};

class StagePlanner {
public:
  StagePlanner(ProgramOp program, const CollectiveModel &model,
               const ScheduledProgram &scheduled, int64_t memoryLimit);

  std::optional<StagePlan> plan();

private:
  using Measure = Picoseconds Times::*;
  std::vector<PipelineOrder> orders();
  bool checkOrder(PipelineOrder order) const;
  StageRoles rolesOf(unsigned stage) const {
    return rolesOfStage(stage, stages);
  }

  const Times &timesOf(Share share);
  void findTransfers();
  PipelineWork workOf(StageRoles roles, int64_t layers, Measure measure);
  Pipeline pipelineOf(const StagePlan &plan, Measure measure);
  Picoseconds sharedReduction();

  void divideLayers(StagePlan &plan);
  StagePlan planOrder(PipelineOrder order);
  void fillMemory(StagePlan &plan);
  void fillTimes(StagePlan &plan);

  ProgramOp program;
  const CollectiveModel &model;
  const ScheduledProgram &scheduled;
  int64_t memoryLimit;
  PipelineAttr pipeline;
  int64_t stages, count = 1;
  bool isTraining;
  StageMap map;
  PlannedStep planned;
  StageMemories memories;
  std::map<Share, Times> known;
  double transferBytes = 0;
  Picoseconds transfer = 0;
  CollectiveCost transferCost;
};

StagePlanner::StagePlanner(ProgramOp program, const CollectiveModel &model,
                           const ScheduledProgram &scheduled,
                           int64_t memoryLimit)
    : program(program), model(model), scheduled(scheduled),
      memoryLimit(memoryLimit), pipeline(*program.getPipeline()),
      stages(*numStages(program)),
      isTraining(program.getTraining().has_value()), map(program),
      planned(buildStep(program, model)), memories(program, map, model.mesh()) {
  if (RepeatOp repeat = map.microbatches())
    count = repeat.getCount();
  findTransfers();
}

//===----------------------------------------------------------------------===//
// Times
//===----------------------------------------------------------------------===//

const Times &StagePlanner::timesOf(Share share) {
  auto [entry, isNew] = known.try_emplace(share);
  if (!isNew)
    return entry->second;
  Step step = planned.step;
  auto isShared = [&](Operation *op) {
    return map.passOf(op) == share.pass && (map.rolesOf(op) & share.roles);
  };
  for (auto [group, op] : llvm::zip_equal(step.groups, planned.groups))
    if (!isShared(op))
      group.time = 0;
  for (auto [collective, op] :
       llvm::zip_equal(step.collectives, planned.collectives))
    if (!isShared(op))
      collective.time = 0;
  for (auto [body, repeat] : llvm::zip_equal(step.bodies, planned.repeats))
    if (repeat && repeat == map.microbatches())
      body.count = 1;
    else if (map.isLayers(repeat))
      body.count = share.layers;
  Schedule schedule = shardc::schedule(step, scheduled.overlap);
  entry->second = {schedule.lower, schedule.scheduled, schedule.upper,
                   schedule.device};
  return entry->second;
}

PipelineWork StagePlanner::workOf(StageRoles roles, int64_t layers,
                                  Measure measure) {
  return {timesOf({StagePass::Forward, roles, layers}).*measure,
          timesOf({StagePass::Backward, roles, layers}).*measure,
          timesOf({StagePass::Weights, roles, layers}).*measure};
}

/// Each device of a stage sends its part of the carried values to the one of
/// the next stage with the same other coordinates.
void StagePlanner::findTransfers() {
  std::optional<AxisIndex> axis = model.mesh().find(pipeline.getAxis());
  if (!map.forward() || stages == 1 || !axis)
    return;
  for (Value carried : map.forward().getCarried())
    transferBytes += double(localBytes(model.mesh(), carried));
  auto fromStageBefore = [&](ArrayRef<int64_t> destination,
                             MutableArrayRef<int64_t> source) {
    llvm::copy(destination, source.begin());
    source[*axis] = (source[*axis] + stages - 1) % stages;
  };
  transferCost = model.permuteCost(*axis, transferBytes, fromStageBefore);
  transfer = toPicoseconds(transferCost.seconds());
}

/// The gradients of weights that are on the first and on the last stage are
/// added up: each sends its own to the other one.
Picoseconds StagePlanner::sharedReduction() {
  double bytes = 0;
  for (DeclareOp weight : map.sharedWeights())
    for (auto gradient : program.getBody().getOps<DeclareOp>())
      if (gradient.getKind() == TensorKind::Gradient &&
          gradient.getOf() == weight.getSym())
        bytes += double(localBytes(model.mesh(), gradient.getResult()));
  std::optional<AxisIndex> axis = model.mesh().find(pipeline.getAxis());
  if (bytes == 0 || stages == 1 || !axis)
    return 0;
  auto fromOtherEnd = [&](ArrayRef<int64_t> destination,
                          MutableArrayRef<int64_t> source) {
    llvm::copy(destination, source.begin());
    if (source[*axis] == 0 || source[*axis] + 1 == stages)
      source[*axis] = stages - 1 - source[*axis];
  };
  return toPicoseconds(model.permuteCost(*axis, bytes, fromOtherEnd).seconds());
}

Pipeline StagePlanner::pipelineOf(const StagePlan &plan, Measure measure) {
  Pipeline result;
  result.order = plan.order;
  result.microbatches = count;
  result.isTraining = isTraining;
  result.forwardTransfer = result.backwardTransfer = transfer;
  std::optional<TrainingAttr> training = program.getTraining();
  Picoseconds shared = sharedReduction();
  // Inference waits for the last stage: its step is a batch from its first item
  // to its last one.
  result.stagesWait = shared > 0 || !training || training->getClip();
  for (auto [number, stage] : llvm::enumerate(plan.stages)) {
    PipelineStage &work = result.stages.emplace_back();
    unsigned chunks = stage.layers.size();
    for (auto [chunk, layers] : llvm::enumerate(stage.layers))
      work.chunks.push_back(
          workOf(rolesOfChunk(number, stages, chunk, chunks), layers, measure));
    if (number == 0 || int64_t(number) + 1 == stages)
      work.reduce = shared;
    work.update =
        timesOf({StagePass::Update, rolesOf(number), stage.numLayers()}).*
        measure;
  }
  return result;
}

/// Each stage gets as many layers as make the slowest one fastest, or as many
/// as any other where that is asked for.
void StagePlanner::divideLayers(StagePlan &plan) {
  int64_t chunks = plan.order.chunks;
  if (program->hasAttr(kEqualLayers) &&
      pipeline.getLayers() % (stages * chunks) == 0) {
    SmallVector<int64_t, 1> equal(chunks,
                                  pipeline.getLayers() / (stages * chunks));
    for (int64_t stage = 0; stage < stages; ++stage)
      plan.stages.push_back({equal, {{}, 0, 0, "", program.getLoc(), {}}});
    return;
  }
  int64_t held = pipeline.getHeld();
  auto total = [&](StageRoles roles) {
    return workOf(roles, held, &Times::scheduled).total();
  };
  Picoseconds layers = total(LayerRole);
  PipelineLayers work;
  work.layers = pipeline.getLayers();
  work.layer = layers / held;
  work.prologue =
      std::max<Picoseconds>(0, total(LayerRole | FirstRole) - layers);
  work.epilogue =
      std::max<Picoseconds>(0, total(LayerRole | LastRole) - layers);
  for (auto &ofStage : layersOfStages(work, stages, chunks))
    plan.stages.push_back({ofStage, {{}, 0, 0, "", program.getLoc(), {}}});
}

void StagePlanner::fillMemory(StagePlan &plan) {
  std::vector<MemoryProfile> profiles =
      memories.profile(shapeOf(plan), scheduled.issues);
  for (auto [number, profile] : llvm::enumerate(profiles)) {
    plan.stages[number].memory = std::move(profile);
    if (plan.stages[number].memory.peak > plan.worstMemory().peak)
      plan.fullest = number;
  }
}

//===----------------------------------------------------------------------===//
// The order
//===----------------------------------------------------------------------===//

bool StagePlanner::checkOrder(PipelineOrder order) const {
  return whyIllegal(order, stages, count, pipeline.getLayers()).empty();
}

/// Those that can run and that the program leaves open.
std::vector<PipelineOrder> StagePlanner::orders() {
  if (std::optional<PipelineOrder> written = writtenOrder(pipeline)) {
    std::string why = whyIllegal(*written, stages, count, pipeline.getLayers());
    if (why.empty())
      return {*written};
    Operation *at = map.forward() ? map.forward().getOperation() : program;
    at->emitError() << why;
    return {};
  }
  std::vector<PipelineOrder> all = {{PipelineOrder::OneFOneB},
                                    {PipelineOrder::GPipe},
                                    {PipelineOrder::OneFOneB2},
                                    {PipelineOrder::ZeroBubble},
                                    {PipelineOrder::ZeroBubble2}};
  // Forward passes alone run in one order, whatever the backward passes do.
  if (!isTraining)
    all = {{PipelineOrder::GPipe}};
  for (int64_t chunks = 2; chunks <= kMostChunks; ++chunks)
    all.push_back({PipelineOrder::Interleaved, chunks});
  if (stages == 1)
    all.resize(1);
  llvm::erase_if(all, [&](PipelineOrder order) { return !checkOrder(order); });
  return all;
}

StagePlan StagePlanner::planOrder(PipelineOrder order) {
  StagePlan plan;
  plan.order = order;
  plan.microbatches = count;
  plan.transferBytes = transferBytes;
  plan.transfer = transfer;
  plan.transferOccupies = transferCost.occupies;
  divideLayers(plan);
  plan.scheduled = simulate(pipelineOf(plan, &Times::scheduled)).step;
  return plan;
}

/// What the report says of the chosen order.
void StagePlanner::fillTimes(StagePlan &plan) {
  Pipeline timed = pipelineOf(plan, &Times::scheduled);
  plan.run = simulate(timed, /*withEvents=*/true);
  plan.lower =
      std::min(plan.scheduled, simulate(pipelineOf(plan, &Times::lower)).step);
  plan.upper =
      std::max(plan.scheduled, simulate(pipelineOf(plan, &Times::upper)).step);
  for (auto [number, stage] : llvm::enumerate(timed.stages))
    if (stage.perMicrobatch() > timed.stages[plan.slowest].perMicrobatch())
      plan.slowest = number;
  for (auto [number, stage] : llvm::enumerate(plan.stages)) {
    StageRoles roles = rolesOf(number);
    auto isHere = [&](Operation *op) { return map.rolesOf(op) & roles; };
    for (auto [group, op] :
         llvm::zip_equal(planned.step.groups, planned.groups)) {
      if (!isHere(op))
        continue;
      int64_t runs = executionCount(op);
      if (isInLayers(op, pipeline))
        runs = saturatingMultiply(runs / pipeline.getHeld(), stage.numLayers());
      GroupCost cost = groupPrice(op->getAttrOfType<GroupCostAttr>(kGroupCost));
      DeviceFlops flops = deviceFlops(model.mesh(), op);
      double share = flops.mean > 0 ? flops.mean / flops.busiest : 1;
      stage.flops += cost.matrixFlops * double(runs);
      stage.meanFlops += cost.matrixFlops * share * double(runs);
      stage.meanSeconds += cost.matrixSeconds * share * double(runs);
      Picoseconds time = saturatingMultiply(group.time, runs);
      Picoseconds &bound = cost.bound() == OpBound::Compute ? stage.computeBound
                                                            : stage.hbmBound;
      bound = saturatingAdd(bound, time);
      Picoseconds &sum = getPhase(op) == Phase::Recompute  ? stage.recompute
                         : getPhase(op) == Phase::Backward ? stage.backward
                         : getPhase(op) == Phase::Update   ? stage.update
                                                           : stage.forward;
      sum = saturatingAdd(sum, time);
    }
    const PipelineStage &work = timed.stages[number];
    Picoseconds all = saturatingAdd(
        saturatingMultiply(work.perMicrobatch(), count), work.update);
    stage.exposed =
        std::max<Picoseconds>(0, all - stage.forward - stage.backward -
                                     stage.recompute - stage.update);
  }
}

std::optional<StagePlan> StagePlanner::plan() {
  std::vector<PipelineOrder> all = orders();
  if (all.empty())
    return std::nullopt;
  std::vector<StagePlan> plans;
  for (PipelineOrder order : all) {
    plans.push_back(planOrder(order));
    fillMemory(plans.back());
  }
  auto fits = [&](const StagePlan &plan) {
    return plan.worstMemory().peak <= memoryLimit;
  };
  llvm::stable_sort(plans, [&](const StagePlan &a, const StagePlan &b) {
    auto key = [&](const StagePlan &plan) {
      return std::tuple(!fits(plan), fits(plan) ? 0 : plan.worstMemory().peak,
                        plan.scheduled);
    };
    return key(a) < key(b);
  });
  StagePlan best = plans.front();
  for (const StagePlan &plan : plans)
    best.tried.push_back(
        {plan.order, plan.scheduled, plan.worstMemory().peak, fits(plan)});
  fillTimes(best);
  return best;
}

} // namespace

std::optional<StagePlan>
shardc::planStages(ProgramOp program, const CollectiveModel &model,
                   const ScheduledProgram &scheduled,
                   std::optional<int64_t> memoryLimit) {
  return StagePlanner(program, model, scheduled,
                      memoryLimit.value_or(model.machine().usableMemory()))
      .plan();
}
