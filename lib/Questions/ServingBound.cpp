//===- ServingBound.cpp - Times and prices that no plan beats -------------===//
//
// All chips together do the work of a phase's program at least once, at their
// peak, and read its weights and caches at least once. That takes no plan. An
// estimate takes the plan of least time without overlap of either phase, on
// meshes of few axes.
//
//===----------------------------------------------------------------------===//

#include "MeshPlanner.h"
#include "StepWork.h"
#include "shardc/Dialect/Shd/IR/Experts.h"
#include "shardc/Pipelines/Compilation.h"
#include "shardc/Questions/Serving.h"
#include "shardc/Report/Seconds.h"

using namespace mlir;
using namespace shardc;
using shd::ServingPhase;

namespace {
/// Work of a phase on all chips together.
struct PhaseWork {
  /// At the peaks of one chip.
  double seconds = 0;
  /// Bytes of weights and of the filled part of caches.
  double readBytes = 0;
  /// Bytes of weights and of whole caches.
  double capacityBytes = 0;
};
} // namespace

/// Seconds of the matrix FLOPs, without those of experts' empty slots.
static double matrixSeconds(shd::ProgramOp program, const Machine &machine) {
  double seconds = 0;
  program->walk([&](shd::CostOpInterface op) {
    OpWork work = wholeWork(op, machine);
    seconds += matrixSeconds(work, work.modelFlops.value_or(work.matrixFlops),
                             machine) *
               double(shd::executionCount(op));
  });
  return seconds;
}

static PhaseWork workOf(shd::ProgramOp program, const Machine &machine) {
  PhaseWork result;
  std::string context = shd::Serving::of(program)->context;
  bool hasExperts = false;
  double filled = 1;
  program->walk([&](Operation *op) {
    hasExperts |= isa<shd::ExpertsOpInterface>(op);
    filled = std::min(filled, shd::filledKeys(op));
  });
  // Experts may have empty slots, and no token at all.
  result.seconds = hasExperts ? 0 : matrixSeconds(program, machine);
  result.readBytes = hasExperts ? 0 : bytesOfWeightsRead(program, machine);
  for (auto declare : program.getBody().getOps<shd::DeclareOp>()) {
    bool isWeight = declare.getKind() == shd::TensorKind::Weight;
    bool isState = declare.getKind() == shd::TensorKind::State;
    double bytes = isWeight || isState ? bytesOf(declare.getResult()) : 0;
    result.capacityBytes += bytes;
    bool grows = llvm::is_contained(
        declare.getIndices().getAsValueRange<StringAttr>(), StringRef(context));
    if (isState)
      result.readBytes += grows ? bytes * filled : bytes;
  }
  return result;
}

std::optional<ServingBound>
shardc::boundServing(const ProgramText &text, const Point &point,
                     const ServingOptions &options) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  ScopedDiagnosticHandler silence(&context, [](Diagnostic &) {});
  ServingBound bound;
  double chipSeconds[2] = {};
  std::optional<double> usdPerChipSecond[2];
  for (ServingPhase phase : {ServingPhase::Prefill, ServingPhase::Decode}) {
    Point all = point;
    all.push_back(phaseSetting(phase));
    std::optional<Program> program = importStep(text, &context, all);
    if (!program || !program->machine)
      return std::nullopt;
    Compilation compilation(std::move(*program));
    const Machine &machine = *compilation.source().machine;
    shd::Serving serving = *shd::Serving::of(compilation.program());
    PhaseWork work = workOf(compilation.program(), machine);
    auto chips = double(machine.numChips());
    bool isPrefill = phase == ServingPhase::Prefill;
    // Prefill writes its caches, and need not read them.
    GroupCost read;
    addTraffic(machine, isPrefill ? 0 : work.readBytes, read);
    calibrate(machine, /*kernels=*/0, read);
    double seconds = std::max(work.seconds, read.deviceSeconds()) / chips;
    (isPrefill ? bound.firstSeconds : bound.tokenSeconds) = seconds;
    double share = isPrefill
                       ? 1 / double(serving.promptBatch)
                       : double(serving.generate) / double(serving.sequences);
    chipSeconds[size_t(phase)] = chips * share;
    if (machine.usdPerHour)
      usdPerChipSecond[size_t(phase)] = *machine.usdPerHour / 3600;
    auto capacity =
        double(options.plan.memoryLimit.value_or(machine.usableMemory()));
    bound.fits &= work.capacityBytes <= chips * capacity;
  }
  bound.hasPrice = usdPerChipSecond[0] && usdPerChipSecond[1];
  auto costOf = [&](ServingPhase phase) {
    double usd = bound.hasPrice ? *usdPerChipSecond[size_t(phase)] : 1;
    return chipSeconds[size_t(phase)] * usd;
  };
  bound.costOfFirst = costOf(ServingPhase::Prefill);
  bound.costOfToken = costOf(ServingPhase::Decode);
  return bound;
}

//===----------------------------------------------------------------------===//
// Estimates
//===----------------------------------------------------------------------===//

/// Meshes of more axes take long, and are rarely much better.
static constexpr unsigned kEstimatedAxes = 2;

static double bytesOfStates(const Program &program) {
  double bytes = 0;
  (*program.module).walk([&](shd::DeclareOp declare) {
    if (declare.getKind() == shd::TensorKind::State)
      bytes += bytesOf(declare);
  });
  return bytes;
}

/// Seconds of a phase on the best binding of a family; nothing if it has no
/// plan that fits.
static std::optional<double> secondsOn(const MeshFamily &family,
                                       MeshPlanner &planner, Point point,
                                       ServingPhase phase) {
  point.push_back(phaseSetting(phase));
  MeshTask task;
  task.family = &family;
  task.bindings = family.bindings;
  MeshBound found = planner.bound(point, task, {});
  if (!found.cost)
    return std::nullopt;
  return toSeconds(*found.cost);
}

std::optional<ServingBound>
shardc::estimateServing(const ProgramText &text, const Point &point,
                        const ServingOptions &options,
                        const ServingBound &bound) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  ScopedDiagnosticHandler silence(&context, [](Diagnostic &) {});
  Point all = point;
  all.push_back(phaseSetting(ServingPhase::Decode));
  std::optional<Program> probe = importStep(text, &context, all);
  if (!probe || !probe->autoMesh)
    return std::nullopt;
  if (shd::Serving::of(*probe->module->getOps<shd::ProgramOp>().begin())
          ->separate)
    return std::nullopt;
  const Machine &machine = *probe->machine;
  // Prefill has the memory that decode's caches leave.
  PlanOptions ofPrefill = options.plan;
  ofPrefill.memoryLimit =
      options.plan.memoryLimit.value_or(machine.usableMemory()) -
      int64_t(bytesOfStates(*probe) / double(machine.numChips()));
  MeshPlanner prefill(text, ofPrefill, options.file),
      decode(text, options.plan, options.file);
  std::optional<ServingBound> best;
  auto rank = [&](const ServingBound &estimate) {
    return std::pair(!estimate.keeps(options.targets), estimate.cost());
  };
  for (const MeshFamily &family : enumerateMeshes(machine, meshNames(*probe))) {
    if (family.wideAxes() > kEstimatedAxes)
      continue;
    std::optional<double> token =
        secondsOn(family, decode, point, ServingPhase::Decode);
    std::optional<double> first =
        token ? secondsOn(family, prefill, point, ServingPhase::Prefill)
              : std::nullopt;
    if (!first)
      continue;
    ServingBound estimate = bound;
    estimate.firstSeconds = std::max(bound.firstSeconds, *first);
    estimate.tokenSeconds = std::max(bound.tokenSeconds, *token);
    if (!best || rank(estimate) < rank(*best))
      best = estimate;
  }
  return best;
}
