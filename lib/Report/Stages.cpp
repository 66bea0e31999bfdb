//===- Stages.cpp - The report of a pipeline ------------------------------===//
//
// The program that was planned is a stage that has everything; the report is
// that of all stages: docs/Training.md#pipelines.
//
//===----------------------------------------------------------------------===//

#include "Collect.h"
#include "shardc/Dialect/Shd/IR/Pipeline.h"
#include "shardc/Report/Seconds.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

int64_t Report::Stages::Stage::numLayers() const {
  int64_t sum = 0;
  for (int64_t chunk : layers)
    sum += chunk;
  return sum;
}

int64_t shardc::elementsOfAll(DeclareOp declare,
                              std::optional<PipelineAttr> pipeline) {
  int64_t elements = 1;
  for (int64_t extent : declare.getType().getShape())
    elements = saturatingMultiply(elements, extent);
  return pipeline && isStackedOverLayers(declare, *pipeline)
             ? saturatingMultiply(elements / pipeline->getHeld(),
                                  pipeline->getLayers())
             : elements;
}

/// Tensors of the layers are global over all stages; what a device holds is
/// that of the fullest one.
static void fillTensors(PipelineAttr pipeline, const StagePlan &stages,
                        Report &report) {
  double held = double(pipeline.getHeld());
  double layers = double(stages.stages[stages.fullest].numLayers());
  for (ReportTensor &tensor : report.tensors) {
    auto dim = llvm::find_if(tensor.dims, [&](const ReportTensor::Dim &each) {
      return each.index == pipeline.getIndex() &&
             each.size == pipeline.getHeld();
    });
    if (dim == tensor.dims.end())
      continue;
    dim->size = pipeline.getLayers();
    dim->axes.push_back(pipeline.getAxis().str());
    tensor.globalBytes *= double(pipeline.getLayers()) / held;
    tensor.localBytes *= layers / held;
    // Behind the name of the index; what is before it is not split.
    std::string index = pipeline.getIndex().str();
    for (std::string before : {"[", ", "})
      if (size_t at = tensor.sharding.find(before + index);
          at != std::string::npos) {
        tensor.sharding.insert(at + before.size() + index.size(),
                               "@" + pipeline.getAxis().str());
        break;
      }
  }
}

static void fillParameters(ProgramOp program, PipelineAttr pipeline,
                           Report &report) {
  report.parameters = report.trainedParameters = 0;
  for (auto declare : program.getBody().getOps<DeclareOp>()) {
    if (!declare.isParameter())
      continue;
    int64_t elements = elementsOfAll(declare, pipeline);
    report.parameters = saturatingAdd(report.parameters, elements);
    if (updateOf(declare))
      report.trainedParameters =
          saturatingAdd(report.trainedParameters, elements);
  }
}

/// What the slowest stage sends to its neighbours.
static void fillTransfers(const StagePlan &plan, Report &report) {
  Picoseconds time = 0;
  double sent = 0;
  for (const PipelineTransfer &transfer : plan.run.transfers)
    if (transfer.from == plan.slowest) {
      time = saturatingAdd(time, transfer.end - transfer.start);
      sent += plan.transferBytes;
    }
  for (auto &[axis, seconds] : report.time.network)
    if (axis == report.stages->axis)
      seconds += toSeconds(time);
  for (auto &[axis, bytes] : report.traffic.network)
    if (axis == report.stages->axis)
      bytes += sent;
  for (unsigned axis : plan.transferOccupies)
    report.time.physical[axis].second += toSeconds(time);
}

void shardc::fillStages(ProgramOp program, const StagePlan &plan,
                        Report &report) {
  PipelineAttr pipeline = *program.getPipeline();
  Report::Stages &stages = report.stages.emplace();
  stages.axis = pipeline.getAxis().str();
  stages.index = pipeline.getIndex().str();
  stages.order = toString(plan.order);
  stages.microbatches = plan.microbatches;
  stages.bubble = plan.run.bubble;
  stages.transferBytes = plan.transferBytes;
  stages.transfer = toSeconds(plan.transfer);
  stages.slowest = plan.slowest;
  stages.fullest = plan.fullest;
  double flops = 0;
  for (auto [stage, run] : llvm::zip_equal(plan.stages, plan.run.stages)) {
    Report::Stages::Stage &shown = stages.stages.emplace_back();
    shown.layers.assign(stage.layers.begin(), stage.layers.end());
    shown.time = toSeconds(run.busy + (run.updateEnd - run.updateStart));
    shown.memory = stage.memory.peak;
    shown.weights = stage.memory.atPeak(MemoryKind::Weight);
    shown.gradients = stage.memory.atPeak(MemoryKind::Gradient);
    shown.optimizer = stage.memory.atPeak(MemoryKind::Optimizer);
    shown.saved = stage.memory.atPeak(MemoryKind::Saved);
    shown.states = stage.memory.atPeak(MemoryKind::State);
    shown.updateStart = run.updateStart;
    shown.updateEnd = run.updateEnd;
    shown.kept = run.kept;
    stages.matrixSeconds += stage.meanSeconds / double(plan.stages.size());
    flops += stage.meanFlops / double(plan.stages.size());
  }
  for (const StagePlan::Tried &tried : plan.tried)
    stages.tried.push_back(
        {toString(tried.order), toSeconds(tried.step), tried.peak, tried.fits});
  for (const PipelineEvent &event : plan.run.events)
    stages.events.push_back({event.stage, toString(event.item.kind).str(),
                             event.item.microbatch, event.item.chunk,
                             event.start, event.end});
  for (const PipelineTransfer &transfer : plan.run.transfers)
    stages.transfers.push_back({transfer.from, transfer.to,
                                toString(transfer.item.kind).str(),
                                transfer.item.microbatch, transfer.item.chunk,
                                transfer.start, transfer.end});

  const PlannedStage &slowest = plan.stages[plan.slowest];
  Picoseconds device =
      slowest.forward + slowest.backward + slowest.recompute + slowest.update;
  report.time.lower = toSeconds(plan.lower);
  report.time.scheduled = toSeconds(plan.scheduled);
  report.time.upper = toSeconds(plan.upper);
  report.time.device = toSeconds(device);
  report.time.computeBound = toSeconds(slowest.computeBound);
  report.time.hbmBound = toSeconds(slowest.hbmBound);
  report.time.exposed = toSeconds(slowest.exposed);
  stages.pipeline = std::max(0.0, report.time.scheduled - report.time.device -
                                      report.time.exposed);
  report.flops.device = slowest.flops;
  report.flops.mean = flops;
  fillTransfers(plan, report);
  fillTensors(pipeline, plan, report);
  fillParameters(program, pipeline, report);
}

/// A step takes at least so many times as long as one microbatch's work in one
/// layer. Stages may hold any numbers of layers.
static int64_t leastLayersInTurn(ProgramOp program, const StagePlan &plan) {
  auto stages = int64_t(plan.stages.size());
  int64_t layers = program.getPipeline()->getLayers();
  int64_t microbatches = plan.microbatches;
  int64_t fullest = llvm::divideCeil(layers, stages);
  int64_t least = microbatches * fullest;
  std::optional<PipelineOrder> order = writtenOrder(*program.getPipeline());
  if (!program.getTraining()) {
    // A microbatch passes the other stages before and behind the fullest one,
    // or at least a layer of each of them where stages have several chunks.
    bool mayHaveChunks = whyIllegal({PipelineOrder::Interleaved, 2}, stages,
                                    microbatches, layers)
                             .empty();
    return least + (mayHaveChunks ? stages - 1 : layers - fullest);
  }
  // Orders with gradients of weights apart can fill all of the bubble.
  bool isApart = !order || order->kind == PipelineOrder::ZeroBubble ||
                 order->kind == PipelineOrder::ZeroBubble2;
  if (isApart)
    return least;
  // A stage has its work between that of the stages before it, forward and
  // back: of all their layers, or of a layer of one chunk. So each can hold so
  // many layers, and together they hold all.
  auto canHoldAll = [&](int64_t limit) {
    int64_t before = 0, held = 0;
    for (int64_t stage = 0; stage < stages; ++stage) {
      int64_t mine = std::max<int64_t>(0, (limit - before) / microbatches);
      held += mine;
      before += order->kind == PipelineOrder::Interleaved ? 1 : mine;
    }
    return held >= layers;
  };
  while (!canHoldAll(least))
    ++least;
  return least;
}

void shardc::fillStagePlan(ProgramOp program, const StagePlan &stages,
                           std::optional<double> idealSeconds,
                           std::optional<double> secondsOfLayers,
                           Report &report) {
  Report::Plan &plan = report.plan;
  if (program->hasAttr(kPlan)) {
    // The search proves a bound of the stage that has everything. No plan of
    // the pipeline is faster than the model's work on all chips, nor than the
    // work of layers that run one after the other.
    if (plan.status != "infeasible" || report.memory.fits)
      plan.status = "feasible";
    if (!report.memory.fits)
      plan.status = plan.noneInTime ? "unknown" : "infeasible";
    plan.value = plan.objective == "lower"   ? report.time.lower
                 : plan.objective == "upper" ? report.time.upper
                                             : report.time.scheduled;
    plan.bound = plan.gap = std::nullopt;
    if (idealSeconds && *idealSeconds > 0) {
      double devices = 1;
      for (const Report::Axis &axis : report.mesh)
        devices *= double(axis.size);
      plan.bound = *idealSeconds / devices;
      if (secondsOfLayers) {
        double ofAll =
            *secondsOfLayers * double(stages.stages.size()) / devices;
        double runs = double(program.getPipeline()->getLayers()) *
                      double(stages.microbatches);
        plan.bound =
            std::max(*plan.bound,
                     ofAll / runs * double(leastLayersInTurn(program, stages)));
      }
      plan.gap = std::max(0.0, plan.value / *plan.bound - 1);
    }
  } else {
    plan.value = *(plan.bound = report.time.upper);
  }
  report.memory.withMore = std::nullopt;
  if (!report.training)
    return;
  const PlannedStage &slowest = stages.stages[stages.slowest];
  report.training->forward = toSeconds(slowest.forward);
  report.training->backward = toSeconds(slowest.backward);
  report.training->recompute = toSeconds(slowest.recompute);
  report.training->update = toSeconds(slowest.update);
}
