//===- Report.cpp - What a planned program costs --------------------------===//
//
// Totals are sums of the items' integer picoseconds, so that they do not depend
// on the order of addition and equal what the optimizer proves.
//
//===----------------------------------------------------------------------===//

#include "shardc/Report/Report.h"
#include "Collect.h"
#include "Experts.h"
#include "Names.h"
#include "shardc/Dialect/Shd/IR/Pipeline.h"
#include "shardc/Machine/Rates.h"
#include "shardc/Pipelines/Compilation.h"
#include "shardc/Report/Seconds.h"
#include "shardc/Report/Units.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

llvm::StringRef ReportItem::bound() const {
  if (const ReportCollective *moved = collective())
    return moved->cost.latencyBound() ? "latency" : "bandwidth";
  switch (compute()->cost.bound()) {
  case OpBound::Compute:
    return "compute";
  case OpBound::Hbm:
    return "hbm";
  case OpBound::Host:
    return "host";
  }
  llvm_unreachable("a bound of a group");
}

std::string shardc::functionsText(llvm::ArrayRef<std::string> prologue,
                                  llvm::StringRef function,
                                  llvm::ArrayRef<std::string> fused) {
  std::string text = llvm::join(prologue, ", ");
  text += (text.empty() ? "" : " + ") + function.str();
  if (!fused.empty())
    text += " + " + llvm::join(fused, ", ");
  return text;
}

std::string Report::chosenMesh() const {
  return meshSearch ? meshSearch->best.front().mesh : "";
}

std::string Report::Memory::reservedText() const {
  return sharesCapacity()
             ? " beside the " + formatBytes(double(reserved)) + " reserved"
             : "";
}

std::optional<std::string> Report::undivided() const {
  for (const ReportTensor &tensor : tensors)
    for (const ReportTensor::Dim &dim : tensor.dims)
      for (const Axis &axis : mesh)
        if (dim.size > axis.size && dim.size % axis.size != 0)
          return axis.name + " = " + std::to_string(axis.size) +
                 " does not divide " + dim.index + " = " +
                 std::to_string(dim.size);
  return std::nullopt;
}

llvm::StringRef Report::MeshSearch::statusOf(size_t i, double value) const {
  if (i == 0)
    return "chosen";
  if (best[i].plan)
    return "planned";
  return best[i].bound && *best[i].bound >= value ? "ruled out" : "open";
}

std::optional<double> Report::Given::saves() const {
  if (!value || !reoptimised)
    return std::nullopt;
  return toSeconds(wholePicoseconds(*value - *reoptimised));
}

std::optional<double> ReportCompute::intensity() const {
  return cost.hbmBytes > 0 ? std::optional(flops() / cost.hbmBytes)
                           : std::nullopt;
}

std::optional<double> ReportCompute::criticalIntensity() const {
  double seconds =
      cost.matrixFlops > 0 ? cost.matrixSeconds : cost.vectorSeconds;
  if (seconds == 0 || cost.hbmSeconds == 0)
    return std::nullopt;
  double flopRate = flops() / seconds,
         byteRate = cost.hbmBytes / cost.hbmSeconds;
  return flopRate / byteRate;
}

llvm::StringRef shardc::stringify(MemoryKind kind) {
  switch (kind) {
  case MemoryKind::Weight:
    return "weight";
  case MemoryKind::State:
    return "state";
  case MemoryKind::Input:
    return "input";
  case MemoryKind::Activation:
    return "activation";
  case MemoryKind::Buffer:
    return "communication buffer";
  case MemoryKind::Gradient:
    return "gradient";
  case MemoryKind::Optimizer:
    return "optimizer";
  case MemoryKind::Saved:
    return "saved";
  }
  llvm_unreachable("a kind of tensor in memory");
}

//===----------------------------------------------------------------------===//
// Time and traffic
//===----------------------------------------------------------------------===//

namespace {

/// Adds `count` runs of `each`.
void accumulate(Picoseconds &total, Picoseconds each, int64_t count = 1) {
  total = saturatingAdd(total, saturatingMultiply(each, count));
}

/// Adds up what a step takes.
class Totals {
public:
  Totals(const CollectiveModel &model, Report &report)
      : model(model), report(report), physical(model.numNetworks()) {
    for (const MeshAxis &axis : model.mesh().axes)
      network.push_back({axis.name});
  }

  void add(const ReportItem &item);
  void finish();

private:
  void addCompute(const ReportItem &item, const GroupCost &cost);
  void addHost(const HostCost &cost, int64_t count);
  void addCollective(const ReportItem &item, const ReportCollective &moved);
  void addTransfer(const ReportItem &item, const ReportCollective &moved);
  void addToNetwork(const ReportItem &item, const ReportCollective &moved);
  Picoseconds &boundTime(OpBound bound) {
    return bound == OpBound::Compute ? computeBound
           : bound == OpBound::Hbm   ? hbmBound
                                     : hostBound;
  }
  Picoseconds device() const {
    return saturatingAdd(saturatingAdd(computeBound, hbmBound), hostBound);
  }
  std::string boundOfStep(Picoseconds busiest) const;

  /// The time of all collectives over the same mesh axes.
  struct Network {
    std::string axes;
    Picoseconds time = 0;
    double sent = 0;
  };
  Network &networkOf(const std::string &axes);

  const CollectiveModel &model;
  Report &report;
  Picoseconds compute = 0, hbm = 0, computeBound = 0, hbmBound = 0;
  Picoseconds hostBound = 0;
  Picoseconds collectives = 0;
  std::vector<Network> network;
  /// By network, the link to the host behind the physical axes.
  std::vector<Picoseconds> physical;
  bool usesLink = false;
};

void Totals::addCompute(const ReportItem &item, const GroupCost &cost) {
  accumulate(compute, toPicoseconds(cost.computeSeconds()), item.count);
  accumulate(hbm, toPicoseconds(cost.hbmSeconds), item.count);
  accumulate(boundTime(cost.bound()), item.total);
  if (cost.host)
    addHost(*cost.host, item.count);
  report.flops.device += cost.matrixFlops * double(item.count);
  report.flops.mean += item.compute()->meanMatrixFlops * double(item.count);
  report.traffic.hbm += cost.hbmBytes * double(item.count);
}

void Totals::addHost(const HostCost &cost, int64_t count) {
  if (!report.host)
    report.host.emplace();
  HostCost &all = report.host->step;
  double runs = double(count);
  all.outBytes += runs * cost.outBytes;
  all.inBytes += runs * cost.inBytes;
  all.memoryBytes += runs * cost.memoryBytes;
  all.outSeconds += runs * cost.outSeconds;
  all.inSeconds += runs * cost.inSeconds;
  all.memorySeconds += runs * cost.memorySeconds;
}

Totals::Network &Totals::networkOf(const std::string &axes) {
  for (Network &each : network)
    if (each.axes == axes)
      return each;
  return network.emplace_back(Network{axes});
}

void Totals::addCollective(const ReportItem &item,
                           const ReportCollective &moved) {
  if (item.total == 0 && moved.cost.wireBytes == 0)
    return;
  accumulate(collectives, item.total);
  if (isHostTransfer(moved.kind))
    addTransfer(item, moved);
  else
    addToNetwork(item, moved);
  for (unsigned axis : moved.cost.occupies)
    accumulate(physical[axis], item.total);
}

/// A transfer over the link to the host.
void Totals::addTransfer(const ReportItem &item,
                         const ReportCollective &moved) {
  usesLink = true;
  HostCost cost;
  double bytes = moved.cost.bytes;
  bool isOut = moved.kind == CollectiveKind::ToHost;
  (isOut ? cost.outBytes : cost.inBytes) = bytes;
  (isOut ? cost.outSeconds : cost.inSeconds) =
      bytes / *model.machine().hostBandwidth;
  if (const auto &rate = model.machine().hostMemoryBandwidth) {
    cost.memoryBytes = bytes;
    cost.memorySeconds = bytes / *rate;
  }
  addHost(cost, item.count);
}

void Totals::addToNetwork(const ReportItem &item,
                          const ReportCollective &moved) {
  Network &used = networkOf(llvm::join(moved.axes, ","));
  accumulate(used.time, item.total);
  used.sent += moved.cost.wireBytes * double(item.count);
}

void Totals::add(const ReportItem &item) {
  if (const ReportCollective *moved = item.collective())
    addCollective(item, *moved);
  else
    addCompute(item, item.compute()->cost);
}

/// docs/CostModel.md#5-the-time-of-a-step; ties go to the network, then to HBM.
std::string Totals::boundOfStep(Picoseconds busiest) const {
  if (busiest > 0 && busiest >= device()) {
    auto axes = llvm::ArrayRef(physical).take_front(model.physical().size());
    return llvm::is_contained(axes, busiest) ? "network" : "host";
  }
  if (hostBound > std::max(computeBound, hbmBound))
    return "host";
  return computeBound > hbmBound ? "compute" : "hbm";
}

void Totals::finish() {
  Picoseconds device = this->device();
  Picoseconds busiest = 0;
  for (Picoseconds time : physical)
    busiest = std::max(busiest, time);

  Report::Time &time = report.time;
  time.upper = toSeconds(saturatingAdd(device, collectives));
  time.compute = toSeconds(compute);
  time.hbm = toSeconds(hbm);
  time.device = toSeconds(device);
  time.computeBound = toSeconds(computeBound);
  time.hbmBound = toSeconds(hbmBound);
  time.hostBound = toSeconds(hostBound);
  time.collectives = toSeconds(collectives);
  for (const Network &used : network) {
    time.network.emplace_back(used.axes, toSeconds(used.time));
    report.traffic.network.emplace_back(used.axes, used.sent);
  }
  size_t numShown = usesLink ? physical.size() : model.physical().size();
  for (auto [i, total] :
       llvm::enumerate(llvm::ArrayRef(physical).take_front(numShown)))
    time.physical.emplace_back(model.networkName(i), toSeconds(total));
  time.bound = boundOfStep(busiest);
}

//===----------------------------------------------------------------------===//
// The schedule
//===----------------------------------------------------------------------===//

/// Fills in the schedule's figures of the report's items.
class ScheduleReader {
public:
  ScheduleReader(const ScheduledProgram &scheduled, const ItemIndex &index,
                 Report &report)
      : scheduled(scheduled), index(index), report(report) {}

  void fillTimes();
  void fillOverlap(const Machine &machine);
  void fillTimeline();

private:
  unsigned itemOf(const Timeline::Event &event) const {
    return index.lookup(event.isGroup ? scheduled.groups[event.index]
                                      : scheduled.collectives[event.index]);
  }
  /// Bodies of the schedule and the report's repeats are in the same order.
  static int repeatOf(unsigned body) { return int(body) - 1; }

  const ScheduledProgram &scheduled;
  const ItemIndex &index;
  Report &report;
};

void ScheduleReader::fillTimes() {
  const Schedule &schedule = scheduled.schedule;
  report.time.lower = toSeconds(schedule.lower);
  report.time.scheduled = toSeconds(schedule.scheduled);
  report.time.exposed = toSeconds(schedule.scheduled - schedule.device);
  for (auto [op, exposed] :
       llvm::zip_equal(scheduled.collectives, schedule.exposed))
    std::get<ReportCollective>(report.items[index.lookup(op)].detail).exposed =
        exposed;
}

void ScheduleReader::fillOverlap(const Machine &machine) {
  Report::Overlap &overlap = report.overlap;
  for (auto [body, how] : llvm::enumerate(scheduled.overlap))
    if (how > scheduled.unlimited[body])
      overlap.givenUp.push_back({repeatOf(body), how});
  overlap.memoryCosts = toSeconds(scheduled.memoryCosts);
  overlap.collectiveMatmul = machine.collectiveMatmul;
  overlap.matmuls = scheduled.matmuls.size();
  overlap.matmulsSave = toSeconds(scheduled.schedule.matmulsSave);
  for (const ScheduledProgram::Matmul &matmul : scheduled.matmuls) {
    Operation *collective = scheduled.collectives[matmul.collective];
    std::get<ReportCollective>(report.items[index.lookup(collective)].detail)
        .matmul =
        report.items[index.lookup(scheduled.groups[matmul.group])].name;
  }
  overlap.ringAttention = machine.ringAttention;
  overlap.rings = scheduled.rings.size();
  for (const ScheduledProgram::Ring &ring : scheduled.rings)
    overlap.gradientRings += isa<AttentionGradOp>(ring.op);
  for (const ScheduledProgram::Ring &ring : scheduled.rings)
    for (unsigned number : ring.collectives) {
      Operation *collective = scheduled.collectives[number];
      std::get<ReportCollective>(report.items[index.lookup(collective)].detail)
          .ringAttention =
          report.items[index.lookup(scheduled.groups[ring.group])].name;
    }
}

void ScheduleReader::fillTimeline() {
  const Timeline &timeline = scheduled.schedule.timeline;
  for (const Timeline::Section &shown : timeline.sections) {
    Report::Section section{
        repeatOf(shown.body), shown.iteration, shown.start, shown.end, {}};
    for (const Timeline::Event &event : timeline.events)
      if (event.start < shown.end && shown.start < event.end)
        section.events.push_back({itemOf(event), event.start, event.end});
    llvm::sort(section.events, [](const auto &a, const auto &b) {
      return std::tuple(a.start, a.item, a.end) <
             std::tuple(b.start, b.item, b.end);
    });
    report.timeline.push_back(std::move(section));
  }
}

//===----------------------------------------------------------------------===//
// Useful work
//===----------------------------------------------------------------------===//

using FlopsByType = std::map<std::string, double>;

/// Adds a product on global extents, once per run; what is recomputed is no
/// work of the model, nor are more slots of experts than tokens pick. What has
/// no slot is dropped, and no work either.
void addModelWork(Operation *op, const Machine &machine,
                  const ExpertRoutes &routes, FlopsByType &flops) {
  auto cost = dyn_cast<CostOpInterface>(op);
  if (!cost || getPhase(op) == Phase::Recompute)
    return;
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  OpWork work = cost.getWork(wholeExtents(rule), machine);
  if (work.matrixFlops == 0)
    return;
  const ExpertRoute *route = routes.find(op);
  flops[work.computeType] += work.modelFlops.value_or(work.matrixFlops) *
                             runsOfAllStages(op) /
                             (route ? std::max(1.0, route->factor()) : 1);
}

FlopsByType modelWork(ProgramOp program, const Machine &machine) {
  FlopsByType flops;
  ExpertRoutes routes(program);
  program->walk(
      [&](Operation *op) { addModelWork(op, machine, routes, flops); });
  return flops;
}

/// The part of it in the layers of a pipeline's stages.
FlopsByType modelWorkOfLayers(ProgramOp program, const Machine &machine) {
  FlopsByType flops;
  ExpertRoutes routes(program);
  PipelineAttr pipeline = *program.getPipeline();
  program->walk([&](Operation *op) {
    if (isInLayers(op, pipeline))
      addModelWork(op, machine, routes, flops);
  });
  return flops;
}

/// The same, with all of the scores of causal attention.
FlopsByType modelWorkFullAttention(ProgramOp program, const Machine &machine) {
  FlopsByType flops;
  ExpertRoutes routes(program);
  program->walk([&](Operation *op) {
    if (!isa<AttentionOp, AttentionGradOp>(op) || !op->hasAttr("causal"))
      return addModelWork(op, machine, routes, flops);
    Attribute causal = op->removeAttr("causal");
    addModelWork(op, machine, routes, flops);
    op->setAttr("causal", causal);
  });
  return flops;
}

/// Seconds that `flops` take one chip at the peaks of their types; nothing if a
/// peak is not stated.
std::optional<double> secondsAtPeak(const FlopsByType &flops,
                                    const Machine &machine) {
  double seconds = 0;
  for (const auto &[type, work] : flops) {
    std::optional<double> peak = machine.peak(type);
    if (!peak)
      return std::nullopt;
    seconds += work / *peak;
  }
  return seconds;
}

/// Seconds that no plan takes less than for `flops` on one chip: on a
/// calibrated machine, those of its most efficient kernels.
std::optional<double> leastSeconds(const FlopsByType &flops,
                                   const Machine &machine) {
  std::optional<double> seconds = secondsAtPeak(flops, machine);
  if (!seconds || !machine.isCalibrated)
    return seconds;
  const Calibration &measured = machine.calibration;
  double matmul = valueOr(measured.matmul, 1);
  double most = std::max(matmul, valueOr(measured.attention, matmul));
  return *seconds / (most * valueOr(measured.step, 1));
}

/// Above 1 of a time that the machine cannot have taken.
std::optional<double> utilization(const FlopsByType &work,
                                  const CollectiveModel &model, double step) {
  std::optional<double> ideal = secondsAtPeak(work, model.machine());
  if (!ideal)
    return std::nullopt;
  return *ideal / (double(model.mesh().numDevices()) * step);
}

/// Of the step that was planned, which is rounded to picoseconds.
std::optional<double> atMostAll(std::optional<double> part) {
  return part ? std::optional(std::min(1.0, *part)) : std::nullopt;
}

/// What a device's matrix units execute in a step, in seconds at their peak.
double executedSeconds(const Report &report) {
  if (report.stages)
    return report.stages->matrixSeconds;
  double executed = 0;
  for (const ReportItem &item : report.items)
    if (const ReportCompute *compute = item.compute())
      executed += compute->cost.matrixSeconds / compute->imbalance() *
                  double(item.count);
  return executed;
}

void fillFlops(ProgramOp program, const FlopsByType &work,
               const CollectiveModel &model, Report &report) {
  for (const auto &[type, flops] : work)
    report.flops.model += flops;
  double step = report.time.scheduled;
  if (step == 0)
    return;
  report.flops.mfu = atMostAll(utilization(work, model, step));
  report.flops.mfuFullAttention = atMostAll(utilization(
      modelWorkFullAttention(program, model.machine()), model, step));
  report.flops.hfu = std::min(1.0, executedSeconds(report) / step);
}

/// True if a value, or integers that are computed of it, are positions of a
/// gather.
bool indexesGather(Value value, llvm::SmallPtrSetImpl<Operation *> &seen) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (auto positions = dyn_cast<PositionsOpInterface>(user))
      if (readsAtPositions(user) &&
          llvm::is_contained(positions.getPositions(), use.get()))
        return true;
    if (!seen.insert(user).second)
      continue;
    for (Value result : user->getResults())
      if (getElementTypeOrSelf(result.getType()).isInteger() &&
          indexesGather(result, seen))
        return true;
  }
  return false;
}

std::optional<int64_t> tokensOfStep(ProgramOp program, const Report &report) {
  std::optional<int64_t> tokens;
  for (auto input : program.getBody().getOps<DeclareOp>()) {
    llvm::SmallPtrSet<Operation *, 16> seen;
    if (input.getKind() != TensorKind::Input ||
        !input.getType().getElementType().isInteger() ||
        !indexesGather(input.getResult(), seen))
      continue;
    auto tensor = llvm::find_if(report.tensors, [&](const ReportTensor &each) {
      return each.kind == "input" && each.name == input.getSym();
    });
    if (tensor == report.tensors.end())
      continue;
    int64_t elements = 1;
    for (const ReportTensor::Dim &dim : tensor->dims)
      elements = saturatingMultiply(elements, dim.size);
    tokens = std::max(tokens.value_or(0), elements);
  }
  return tokens;
}

/// The extent of the batch: of the index that the train block names, or that
/// every input has first. Nothing of a program whose inputs, all of real
/// numbers, may be anything.
std::optional<int64_t> examplesOfStep(ProgramOp program, const Report &report) {
  std::optional<TrainingAttr> training = program.getTraining();
  StringAttr named = training ? training->getBatch() : StringAttr();
  std::string batch = named ? named.str() : "";
  std::optional<int64_t> examples;
  auto inputs = program.getBody().getOps<DeclareOp>();
  if (llvm::none_of(inputs, [](DeclareOp declare) {
        return declare.getKind() == TensorKind::Input &&
               declare.getType().getElementType().isInteger();
      }))
    return std::nullopt;
  for (const ReportTensor &tensor : report.tensors) {
    if (tensor.kind != "input")
      continue;
    if (!named) {
      if (tensor.dims.empty() ||
          (!batch.empty() && tensor.dims.front().index != batch))
        return std::nullopt;
      batch = tensor.dims.front().index;
    }
    for (const ReportTensor::Dim &dim : tensor.dims)
      if (dim.index == batch)
        examples = dim.size;
  }
  return examples;
}

void fillTokens(ProgramOp program, Report &report) {
  double seconds = report.time.scheduled;
  report.tokens = tokensOfStep(program, report);
  if (!report.tokens) {
    report.examples = examplesOfStep(program, report);
    if (report.examples && seconds > 0)
      report.examplesPerSecond = double(*report.examples) / seconds;
    return;
  }
  report.flops.perToken = report.flops.model / double(*report.tokens);
  if (seconds > 0)
    report.tokensPerSecond = double(*report.tokens) / seconds;
}

//===----------------------------------------------------------------------===//
// The machine
//===----------------------------------------------------------------------===//

void fillHardware(const FlopsByType &work, const CollectiveModel &model,
                  Report &report) {
  const Machine &machine = model.machine();
  Report::Hardware &hardware = report.hardware;
  hardware.name = machine.name;
  hardware.shape.assign(machine.shape.begin(), machine.shape.end());
  hardware.chips = machine.numChips();
  hardware.hbmBandwidth = machine.hbmBandwidth;
  llvm::SmallVector<double, 4> rates = bandwidthsPerChip(machine);
  for (auto [i, axis] : llvm::enumerate(model.physical()))
    hardware.levels.push_back({axis.name, machine.networks[axis.network].name,
                               axis.size, wraps(machine, i),
                               rates[axis.network]});
  double most = 0;
  for (const auto &[type, flops] : work) {
    if (flops <= most)
      continue;
    most = flops;
    hardware.computeType = type;
    hardware.peakFlops = machine.peak(type);
  }
}

void fillRooflines(const CollectiveModel &model, Report &report) {
  if (!report.hardware.peakFlops)
    return;
  auto add = [&](std::string over, double bandwidth, double bytes) {
    Report::Roofline roofline{std::move(over), std::nullopt,
                              *report.hardware.peakFlops / bandwidth};
    if (bytes > 0)
      roofline.intensity = report.flops.device / bytes;
    report.rooflines.push_back(std::move(roofline));
  };
  add("hbm", model.machine().hbmBandwidth, report.traffic.hbm);
  size_t numAxes = model.physical().size();
  for (auto [i, network] : llvm::enumerate(report.time.physical)) {
    if (i < numAxes) {
      double rate = model.bandwidth(i);
      add(network.first, rate, network.second * rate);
      continue;
    }
    const HostCost &step = report.host->step;
    add(network.first, *model.machine().hostBandwidth,
        i == numAxes ? step.outBytes : step.inBytes);
  }
}

void fillMesh(const CollectiveModel &model, Report &report) {
  const MeshBinding &binding = model.binding();
  for (auto [axis, parts] : llvm::zip_equal(model.mesh().axes, binding.parts)) {
    Report::Axis described;
    described.name = axis.name;
    described.size = axis.size;
    for (const AxisPart &part : parts) {
      const PhysicalAxis &physical = model.physical()[part.physical];
      described.on.push_back(physical.name);
      described.parts.push_back({part.size, part.stride, physical.size});
    }
    report.mesh.push_back(std::move(described));
  }
  report.idleChips = binding.idleChips;
}

void fillPrice(const Machine &machine, Report &report) {
  if (!machine.usdPerHour)
    return;
  double usd = double(machine.numChips()) * *machine.usdPerHour *
               report.time.scheduled / 3600;
  report.price.usd = usd;
  if (report.tokens)
    report.price.usdPerMillionTokens = usd / double(*report.tokens) * 1e6;
}

//===----------------------------------------------------------------------===//
// Memory and plan
//===----------------------------------------------------------------------===//

void fillMemory(const MemoryProfile &profile, const Machine &machine,
                const ReportOptions &options, Report &report) {
  Report::Memory &memory = report.memory;
  memory.peak = profile.peak;
  memory.capacity = int64_t(machine.hbmCapacity);
  memory.reserved = memory.capacity - machine.usableMemory();
  memory.limit = options.memoryLimit;
  memory.fits =
      memory.peak <= memory.allowed() && (!report.host || report.host->fits());
  memory.weights = profile.atPeak(MemoryKind::Weight);
  memory.gradients = profile.atPeak(MemoryKind::Gradient);
  memory.optimizer = profile.atPeak(MemoryKind::Optimizer);
  memory.saved = profile.atPeak(MemoryKind::Saved);
  memory.states = profile.atPeak(MemoryKind::State);
  memory.inputs = profile.atPeak(MemoryKind::Input);
  memory.activations = profile.atPeak(MemoryKind::Activation);
  memory.buffers = profile.atPeak(MemoryKind::Buffer);
  memory.peakName = profile.peakName;
  memory.peakLoc = locationText(profile.peakLoc);
  memory.live = profile.live;
}

/// Tensors on the host, before what operations do with them.
void fillHost(const Machine &machine, Report &report) {
  for (const ReportTensor &tensor : report.tensors)
    if (tensor.isOnHost) {
      Report::Host &host = report.host ? *report.host : report.host.emplace();
      host.memory = saturatingAdd(host.memory, int64_t(tensor.localBytes));
    }
  if (report.host && machine.hostCapacity)
    report.host->capacity = int64_t(*machine.hostCapacity);
}

/// Spans of one tensor that follow each other become one.
void mergeSpans(std::vector<Report::Memory::Span> &spans) {
  using Span = Report::Memory::Span;
  auto key = [](const Span &span) {
    const LiveTensor &tensor = span.tensor;
    return std::tie(tensor.name, tensor.kind, tensor.sharding, tensor.bytes);
  };
  llvm::sort(spans, [&](const Span &a, const Span &b) {
    return std::tuple_cat(key(a), std::tie(a.first, a.last)) <
           std::tuple_cat(key(b), std::tie(b.first, b.last));
  });
  std::vector<Span> merged;
  for (const Span &span : spans)
    if (!merged.empty() && key(merged.back()) == key(span) &&
        merged.back().last + 1 == span.first)
      merged.back().last = span.last;
    else
      merged.push_back(span);
  llvm::sort(merged, [&](const Span &a, const Span &b) {
    return std::tuple_cat(std::tuple(a.first, -a.tensor.bytes, a.last),
                          key(a)) <
           std::tuple_cat(std::tuple(b.first, -b.tensor.bytes, b.last), key(b));
  });
  spans = std::move(merged);
}

/// The memory in use while each item runs, and the tensors there.
void fillMemoryOverTime(const MemoryProfile &profile, const ItemIndex &index,
                        const Mesh &mesh, Report &report) {
  constexpr unsigned none = -1;
  std::vector<unsigned> pointOf(report.items.size(), none);
  for (auto [op, point] : profile.points)
    if (auto it = index.find(op); it != index.end()) {
      report.items[it->second].memory = profile.usageByKind[point];
      pointOf[it->second] = point;
    }
  for (const MemorySpan &span : profile.spans) {
    auto has = [&](unsigned item) {
      return pointOf[item] != none && span.first <= pointOf[item] &&
             pointOf[item] <= span.last;
    };
    for (unsigned item = 0; item < pointOf.size(); ++item) {
      if (!has(item))
        continue;
      unsigned first = item;
      while (item + 1 < pointOf.size() && has(item + 1))
        ++item;
      report.memory.spans.push_back({describe(span, mesh), first, item});
    }
  }
  mergeSpans(report.memory.spans);
}

void fillWords(ProgramOp program, const Mesh &mesh, const StagePlan *stages,
               Report &report) {
  PlanWords words = planInWords(program, mesh, stages);
  report.words = std::move(words.text);
  report.zigzag = std::move(words.zigzag);
  for (auto [axis, role] : llvm::zip_equal(report.mesh, words.roles)) {
    axis.role = std::move(role.role);
    axis.zero = std::move(role.zero);
    axis.splitsExperts = role.splitsExperts;
    axis.keys = std::move(role.keys);
  }
}

/// A program without a record of its planning had nothing left to plan.
void fillPlan(ProgramOp program, Report &report) {
  Report::Plan &plan = report.plan;
  plan = {.status = "fixed",
          .objective = "upper",
          .value = report.time.upper,
          .bound = report.time.upper,
          .gap = 0};
  auto record = program->getAttrOfType<DictionaryAttr>(kPlan);
  if (!record)
    return;
  if (auto status = record.getAs<StringAttr>("status"))
    plan.status = status.str();
  auto searched = record.getAs<StringAttr>("searched");
  if (searched)
    plan.searched = searched.str();
  else if (plan.status != "fixed")
    plan.searched = "all";
  plan.isPropagated = searched && plan.status == "fixed";
  plan.noneInTime = record.contains("none_in_time");
  if ((plan.status == "feasible" || plan.isPropagated) && !report.memory.fits)
    plan.status = "infeasible";
  if (plan.noneInTime && !report.memory.fits)
    plan.status = "unknown";
  if (auto objective = record.getAs<StringAttr>("objective"))
    plan.objective = objective.str();
  if (auto seconds = record.getAs<FloatAttr>("search_s"))
    plan.search = seconds.getValueAsDouble();
  auto value = record.getAs<IntegerAttr>("value_ps");
  auto bound = record.getAs<IntegerAttr>("bound_ps");
  if (value)
    plan.value = toSeconds(value.getInt());
  if (auto more = record.getAs<IntegerAttr>("more_memory_ps"))
    report.memory.withMore = toSeconds(more.getInt());
  if (!value || !bound) {
    plan.bound = plan.gap = std::nullopt;
    return;
  }
  plan.bound = toSeconds(bound.getInt());
  int64_t excess = value.getInt() - bound.getInt();
  if (excess != 0 && bound.getInt() == 0)
    plan.gap = std::nullopt;
  else
    plan.gap = excess == 0 ? 0 : double(excess) / double(bound.getInt());
}

/// The plan's peak is of least memory; of a fixed plan, nothing else is to be
/// had.
void fillShortfall(ProgramOp program, Report &report) {
  if (report.memory.peak <= report.memory.allowed())
    return;
  Report::Shortfall &shortfall = report.shortfall.emplace();
  auto record = program->getAttrOfType<DictionaryAttr>(kPlan);
  auto bound = record ? record.getAs<IntegerAttr>("memory_bound") : nullptr;
  if (report.plan.status == "fixed")
    shortfall.leastLimit = report.memory.peak;
  // The search's bound is that of a stage that has everything.
  else if (bound && bound.getInt() > 0 && !report.stages)
    shortfall.leastLimit = std::min(bound.getInt(), report.memory.peak);
}

//===----------------------------------------------------------------------===//
// Training
//===----------------------------------------------------------------------===//

/// USD of so long on the whole machine.
std::optional<double> priceOf(double seconds, const Machine &machine) {
  if (!machine.usdPerHour)
    return std::nullopt;
  return double(machine.numChips()) * *machine.usdPerHour * seconds / 3600;
}

/// Values that the program names.
std::vector<std::string> recomputedNames(TrainingAttr training) {
  std::vector<std::string> names;
  for (StringAttr name : training.getRecomputed())
    names.push_back(name.str());
  return names;
}

void fillTraining(ProgramOp program, const Machine &machine, Report &report) {
  std::optional<TrainingAttr> attr = program.getTraining();
  if (!attr)
    return;
  Report::Training &training = report.training.emplace();
  training.microbatches = std::max<int64_t>(1, attr->getMicrobatches());
  training.remat =
      attr->getSave() ? "save" : stringifyRemat(attr->getRemat()).str();
  if (std::vector<std::string> names = recomputedNames(*attr);
      !names.empty() && !attr->getSave())
    training.remat = recomputeLabel(names);
  training.every = attr->getEvery();
  // A choice that is open has not been made.
  training.offload = stringifyOffload(
      attr->getOffload() == Offload::Auto ? Offload::None : attr->getOffload());
  if (DictionaryAttr names = attr->getOffloaded())
    for (NamedAttribute name : names)
      training.offloaded.push_back(name.getName().str());
  training.isFused = attr->getFused();
  training.reduce =
      typeName(attr->getReduce() ? attr->getReduce() : attr->getGradients());
  training.tokens = attr->getTokens().getValueAsDouble();
  if (report.tokensPerSecond) {
    training.seconds = training.tokens / *report.tokensPerSecond;
    training.usd = priceOf(*training.seconds, machine);
  }
  Picoseconds phases[4] = {};
  for (const ReportItem &item : report.items)
    if (item.compute())
      accumulate(phases[unsigned(item.phase)], item.total);
  training.forward = toSeconds(phases[unsigned(Phase::Forward)]);
  training.backward = toSeconds(phases[unsigned(Phase::Backward)]);
  training.recompute = toSeconds(phases[unsigned(Phase::Recompute)]);
  training.update = toSeconds(phases[unsigned(Phase::Update)]);
}

void fillMeasured(ProgramOp program, const FlopsByType &work,
                  const CollectiveModel &model, double step, Report &report) {
  Report::Measured &measured = report.measured.emplace();
  measured.step = step;
  measured.mfu = utilization(work, model, step);
  measured.mfuFullAttention = utilization(
      modelWorkFullAttention(program, model.machine()), model, step);
  measured.hfu = executedSeconds(report) / step;
  if (report.examples)
    measured.examplesPerSecond = double(*report.examples) / step;
  if (!report.tokens)
    return;
  measured.tokensPerSecond = double(*report.tokens) / step;
  if (!report.training)
    return;
  measured.seconds = report.training->tokens / *measured.tokensPerSecond;
  measured.usd = priceOf(*measured.seconds, model.machine());
}

} // namespace

std::string shardc::recomputeLabel(ArrayRef<std::string> names) {
  // A statement may make several values.
  std::map<std::string, int> counts;
  for (StringRef name : names)
    if (StringRef statement = name.take_front(name.find('#'));
        !statement.empty())
      ++counts[statement.str()];
  constexpr size_t kMostNames = 6;
  if (counts.size() > kMostNames)
    return "recompute " + std::to_string(names.size()) + " values";
  SmallVector<std::string> shown;
  for (const auto &[name, count] : counts)
    shown.push_back(count == 1 ? name
                               : name + " (" + std::to_string(count) + ")");
  return "recompute " + llvm::join(shown, ", ");
}

Report shardc::buildReport(ProgramOp program, const CollectiveModel &model,
                           const ScheduledProgram &scheduled,
                           const ReportOptions &options) {
  Report report;
  report.file = options.file;
  fillMesh(model, report);
  collectTensors(program, model.mesh(), report);
  fillHost(model.machine(), report);
  collectExperts(program, ExpertRoutes(program), model.mesh(), report);
  ItemIndex index = collectItems(program, model, report);

  Totals totals(model, report);
  for (const ReportItem &item : report.items)
    totals.add(item);
  totals.finish();
  ScheduleReader schedule(scheduled, index, report);
  schedule.fillTimes();
  if (options.stages)
    fillStages(program, *options.stages, report);
  schedule.fillOverlap(model.machine());
  if (options.timeline)
    schedule.fillTimeline();

  FlopsByType work = modelWork(program, model.machine());
  fillHardware(work, model, report);
  fillFlops(program, work, model, report);
  fillRooflines(model, report);
  fillTokens(program, report);
  fillPrice(model.machine(), report);
  const MemoryProfile &memory =
      options.stages ? options.stages->worstMemory() : scheduled.memory;
  fillMemory(memory, model.machine(), options, report);
  if (options.timeline)
    fillMemoryOverTime(memory, index, model.mesh(), report);
  fillPlan(program, report);
  fillTraining(program, model.machine(), report);
  if (options.stages)
    fillStagePlan(program, *options.stages, leastSeconds(work, model.machine()),
                  leastSeconds(modelWorkOfLayers(program, model.machine()),
                               model.machine()),
                  report);
  if (options.measuredStep)
    fillMeasured(program, work, model, *options.measuredStep, report);
  fillWords(program, model.mesh(), options.stages, report);
  fillShortfall(program, report);
  fillCalibration(model, report);
  return report;
}

std::optional<Report> shardc::buildReport(Compilation &compilation,
                                          ReportOptions options) {
  const ScheduledProgram *scheduled = compilation.schedule();
  if (!scheduled)
    return std::nullopt;
  options.memoryLimit = compilation.options().plan.memoryLimit;
  if (compilation.program().getPipeline()) {
    options.stages = compilation.stages();
    if (!options.stages)
      return std::nullopt;
  }
  Report report =
      buildReport(compilation.program(), compilation.planning()->model,
                  *scheduled, options);
  if (report.calibration)
    fillRooflineTimes(compilation, report);
  return report;
}

std::string shardc::leastLimitText(const Report &report) {
  int64_t peak = report.memory.peak;
  std::string text = "the smallest --memory-limit that works is " +
                     std::to_string(peak) + " (" + formatBytes(double(peak)) +
                     ")";
  if (report.plan.status == "fixed")
    return text + ", which this plan takes";
  const std::optional<int64_t> &least = report.shortfall->leastLimit;
  if (!least)
    return "a --memory-limit of " + std::to_string(peak) + " (" +
           formatBytes(double(peak)) +
           ") works; of smaller ones nothing is proven";
  if (*least == peak)
    return text + ": proven, in the canonical order no plan takes less";
  return text + " or less, down to " + std::to_string(*least) +
         ": proven, in the canonical order no plan takes less than that, " +
         formatPercent(double(peak - *least) / double(peak)) + " below";
}

llvm::LogicalResult shardc::checkFits(const Report &report, Location peakLoc) {
  const Report::Memory &memory = report.memory;
  if (report.fits())
    return success();
  if (memory.fits)
    return emitError(peakLoc, "no plan was found that fits in memory");
  if (memory.peak <= memory.allowed() && report.host)
    return emitError(peakLoc)
           << "the plan does not fit in the host's memory: what the host keeps "
              "takes "
           << formatBytes(double(report.host->memory))
           << " for every device, more than the "
           << formatBytes(double(report.host->capacity.value_or(0)))
           << " of `host.capacity`";
  int64_t allowed = memory.allowed();
  InFlightDiagnostic error = emitError(peakLoc);
  error << "the plan does not fit in memory: '" << memory.peakName << "' needs "
        << formatBytes(double(memory.peak)) << " on every device, "
        << formatBytes(double(memory.peak - allowed)) << " more than "
        << (memory.limit ? "the limit of " : "the ")
        << formatBytes(double(allowed))
        << (memory.limit ? "" : " of a " + report.hardware.name)
        << memory.reservedText();
  constexpr size_t kLargest = 5;
  for (const LiveTensor &tensor :
       llvm::ArrayRef(memory.live).take_front(kLargest))
    error.attachNote() << stringify(tensor.kind) << " '" << tensor.name << "' "
                       << tensor.sharding << " takes "
                       << formatBytes(double(tensor.bytes)) << " there";
  if (report.shortfall)
    error.attachNote() << leastLimitText(report);
  return failure();
}
