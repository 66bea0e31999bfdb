//===- Json.cpp - The report for programs ---------------------------------===//
//
// Schema shardc.cost/1 of docs/CommandLine.md#the-json-report, keys in its
// order. Unknown figures are null.
//
//===----------------------------------------------------------------------===//

#include "shardc/Optimizer/Options.h"
#include "shardc/Report/Report.h"
#include "shardc/Report/Seconds.h"
#include <cmath>
#include <nlohmann/json.hpp>

using namespace shardc;
using Json = nlohmann::ordered_json;

namespace {

/// Whole numbers are written as such while doubles represent them exactly.
Json number(double value) {
  constexpr double kExact = 9007199254740992.0; // 2^53
  if (!std::isfinite(value))
    return nullptr;
  if (value == std::floor(value) && std::abs(value) < kExact)
    return int64_t(value);
  return value;
}

Json number(std::optional<double> value) {
  return value ? number(*value) : Json(nullptr);
}

Json byName(const std::vector<std::pair<std::string, double>> &values) {
  Json object = Json::object();
  for (const auto &[name, value] : values)
    object[name] = number(value);
  return object;
}

Json strings(const std::vector<std::string> &values) { return Json(values); }

Json hardware(const Report::Hardware &hardware) {
  return {{"name", hardware.name},
          {"shape", Json(hardware.shape)},
          {"chips", hardware.chips}};
}

Json levels(const Report::Hardware &hardware) {
  Json levels = Json::array();
  for (const Report::Hardware::Level &level : hardware.levels)
    levels.push_back({{"name", level.name},
                      {"network", level.network},
                      {"size", level.size},
                      {"wraps", level.wraps},
                      {"bandwidth", number(level.bandwidth)}});
  return levels;
}

Json meshSearch(const Report::MeshSearch &search) {
  Json best = Json::array();
  for (const Report::MeshSearch::Candidate &mesh : search.best) {
    Json plan = nullptr;
    if (mesh.plan)
      plan = {{"status", mesh.plan->status},
              {"value_s", number(mesh.plan->value)},
              {"scheduled_s", number(mesh.plan->scheduled)},
              {"gap", number(mesh.plan->gap)},
              {"memory", mesh.plan->peak},
              {"fits", mesh.plan->fits}};
    best.push_back({{"mesh", mesh.mesh},
                    {"plan", std::move(plan)},
                    {"bound_s", number(mesh.bound)}});
  }
  Json frontier = Json::array();
  for (const Report::MeshSearch::Tradeoff &each : search.frontier)
    frontier.push_back({{"mesh", each.mesh},
                        {"microbatches", each.microbatches},
                        {"remat", each.remat},
                        {"scheduled_s", number(each.scheduled)},
                        {"memory", each.memory}});
  return {{"meshes", search.meshes},
          {"ruled_out", search.ruledOut},
          {"open", search.open},
          {"impossible", search.impossible},
          {"others_bound_s", number(search.boundOfOthers)},
          {"cut", search.isCut},
          {"note", search.note.empty() ? Json(nullptr) : Json(search.note)},
          {"frontier", std::move(frontier)},
          {"best", std::move(best)}};
}

/// How many devices share the axes of each role; those that are `mostly` of one
/// count there.
Json degrees(const Report &report) {
  int64_t data = 1, context = 1, tensor = 1, pipeline = 1, experts = 1;
  for (const Report::Axis &axis : report.mesh) {
    llvm::StringRef role = axis.role;
    role.consume_front("mostly ");
    if (role == "data")
      data *= axis.size;
    else if (role == "context")
      context *= axis.size;
    else if (role.starts_with("tensor"))
      tensor *= axis.size;
    else if (role == "pipeline")
      pipeline *= axis.size;
    if (axis.splitsExperts)
      experts *= axis.size;
  }
  return {{"data", data},
          {"context", context},
          {"tensor", tensor},
          {"pipeline", pipeline},
          {"experts", experts}};
}

Json mesh(const Report &report) {
  Json axes = Json::array();
  for (const Report::Axis &axis : report.mesh) {
    Json parts = Json::array();
    for (const Report::Axis::Part &part : axis.parts)
      parts.push_back({{"size", part.size}, {"stride", part.stride}});
    axes.push_back(
        {{"name", axis.name},
         {"size", axis.size},
         {"on", strings(axis.on)},
         {"parts", std::move(parts)},
         {"role", axis.role},
         {"zero", axis.zero.empty() ? Json(nullptr) : Json(axis.zero)},
         {"splits_experts", axis.splitsExperts},
         {"keys", axis.keys.empty() ? Json(nullptr) : Json(axis.keys)}});
  }
  Json object;
  object["axes"] = std::move(axes);
  object["degrees"] = degrees(report);
  Json zigzag = Json::array();
  for (const auto &[index, parts] : report.zigzag)
    zigzag.push_back({{"index", index}, {"parts", parts}});
  object["zigzag"] = std::move(zigzag);
  object["idle_chips"] = report.idleChips;
  object["faster"] = nullptr;
  if (const auto &faster = report.fasterBinding)
    object["faster"] = {{"mesh", faster->mesh},
                        {"scheduled_s", number(faster->scheduled)}};
  object["search"] =
      report.meshSearch ? meshSearch(*report.meshSearch) : Json(nullptr);
  return object;
}

Json time(const Report::Time &time) {
  return {{"lower_s", number(time.lower)},
          {"scheduled_s", number(time.scheduled)},
          {"upper_s", number(time.upper)},
          {"compute_s", number(time.compute)},
          {"hbm_s", number(time.hbm)},
          {"network_s", byName(time.network)},
          {"physical_s", byName(time.physical)},
          {"bound", time.bound},
          {"device_s", number(time.device)},
          {"collectives_s", number(time.collectives)},
          {"exposed_s", number(time.exposed)}};
}

/// Of a calibrated machine.
Json calibration(const Report::Calibration &calibration) {
  auto figureJson = [](const Report::Calibration::Figure &figure) -> Json {
    return {{"name", figure.name},
            {"value", number(figure.value)},
            {"provenance", stringify(figure.provenance).str()},
            {"machine",
             figure.machine.empty() ? Json(nullptr) : Json(figure.machine)}};
  };
  Json figures = Json::array();
  for (const Report::Calibration::Figure &figure : calibration.figures)
    figures.push_back(figureJson(figure));
  const Report::Calibration::Figure *worst = calibration.worst();
  Json object;
  object["roofline"] = {{"lower_s", number(calibration.roofline.lower)},
                        {"scheduled_s", number(calibration.roofline.scheduled)},
                        {"upper_s", number(calibration.roofline.upper)}};
  object["worst"] = worst ? figureJson(*worst) : Json(nullptr);
  object["figures"] = std::move(figures);
  return object;
}

/// Sums to the time of the step as scheduled.
Json phases(const Report &report) {
  const Report::Training &training = *report.training;
  return {
      {"forward", number(training.forward)},
      {"backward", number(training.backward)},
      {"recompute", number(training.recompute)},
      {"update", number(training.update)},
      {"pipeline", report.stages ? number(report.stages->pipeline) : Json(0)},
      {"exposed", number(report.time.exposed)}};
}

constexpr double kSecondsPerDay = 86400;

Json measured(const Report &report) {
  if (!report.measured)
    return nullptr;
  const Report::Measured &measured = *report.measured;
  Json object;
  object["step_s"] = number(measured.step);
  object["mfu"] = number(measured.mfu);
  object["mfu_full_attention"] = number(measured.mfuFullAttention);
  object["hfu"] = number(measured.hfu);
  object["tokens_per_s"] = number(measured.tokensPerSecond);
  object["days"] = measured.seconds ? number(*measured.seconds / kSecondsPerDay)
                                    : Json(nullptr);
  object["usd"] = number(measured.usd);
  object["examples_per_s"] = number(measured.examplesPerSecond);
  return object;
}

Json training(const Report &report) {
  if (!report.training)
    return nullptr;
  const Report::Training &training = *report.training;
  Json object;
  object["microbatches"] = training.microbatches;
  if (const auto &batch = report.batchSearch)
    object["batch"] = {
        {"dim", batch->dim},
        {"size", batch->size},
        {"per_chip", number(batch->perChip)},
        {"too_large", batch->tooLarge ? Json(*batch->tooLarge) : Json(nullptr)},
        {"fits", batch->fits},
        {"tried", batch->tried},
        {"cut", batch->isCut}};
  object["remat"] = training.remat;
  object["every"] = training.every > 0 ? Json(training.every) : Json(nullptr);
  object["offload"] = training.offload;
  if (!training.offloaded.empty())
    object["offloaded"] = training.offloaded;
  object["update"] = training.isFused ? "fused" : "auto";
  object["reduce"] = training.reduce;
  object["schedule"] = report.stages ? Json(report.stages->order) : nullptr;
  object["stages"] = report.stages ? report.stages->stages.size() : 1;
  if (report.stages) {
    Json layers = Json::array();
    for (const auto &stage : report.stages->stages)
      layers.push_back(stage.numLayers());
    object["layers"] = std::move(layers);
    object["bubble"] = number(report.stages->bubble);
  } else {
    object["layers"] = nullptr;
    object["bubble"] = 0;
  }
  object["tokens_per_s"] = number(report.tokensPerSecond);
  object["tokens"] = number(training.tokens);
  object["days"] = training.seconds ? number(*training.seconds / kSecondsPerDay)
                                    : Json(nullptr);
  object["usd"] = number(training.usd);
  return object;
}

/// What each stage takes and has at its peak.
Json stages(const Report &report) {
  const Report::Stages &stages = *report.stages;
  Json list = Json::array();
  for (const Report::Stages::Stage &stage : stages.stages) {
    Json memory = {
        {"peak", stage.memory},         {"weights", stage.weights},
        {"gradients", stage.gradients}, {"optimizer", stage.optimizer},
        {"saved", stage.saved},         {"states", stage.states}};
    Json object;
    object["layers"] = stage.layers;
    object["time_s"] = number(stage.time);
    object["in_flight"] = stage.kept;
    object["memory"] = std::move(memory);
    if (!report.timeline.empty()) {
      object["events"] = Json::array();
      object["transfers"] = Json::array();
      object["update"] = {{"start_s", number(toSeconds(stage.updateStart))},
                          {"end_s", number(toSeconds(stage.updateEnd))}};
    }
    list.push_back(std::move(object));
  }
  if (report.timeline.empty())
    return list;
  for (const Report::Stages::Transfer &transfer : stages.transfers)
    list[transfer.from]["transfers"].push_back(
        {{"to", transfer.to},
         {"kind", transfer.kind},
         {"microbatch", transfer.microbatch},
         {"chunk", transfer.chunk},
         {"start_s", number(toSeconds(transfer.start))},
         {"end_s", number(toSeconds(transfer.end))}});
  for (const Report::Stages::Event &event : stages.events)
    list[event.stage]["events"].push_back(
        {{"kind", event.kind},
         {"microbatch", event.microbatch},
         {"chunk", event.chunk},
         {"start_s", number(toSeconds(event.start))},
         {"end_s", number(toSeconds(event.end))}});
  return list;
}

/// What all stages have in common.
Json pipeline(const Report::Stages &stages) {
  return {{"axis", stages.axis},
          {"stages", stages.stages.size()},
          {"microbatches", stages.microbatches},
          {"schedule", stages.order},
          {"bubble", number(stages.bubble)},
          {"transfer_bytes", number(stages.transferBytes)},
          {"transfer_s", number(stages.transfer)}};
}

/// Schedules of the pipeline that were tried, the chosen one first.
Json schedules(const Report::Stages &stages) {
  Json list = Json::array();
  for (const Report::Stages::Tried &tried : stages.tried)
    list.push_back({{"schedule", tried.order},
                    {"scheduled_s", number(tried.step)},
                    {"memory", tried.memory},
                    {"fits", tried.fits}});
  return list;
}

Json variants(const Report::StepSearch &search) {
  Json list = Json::array();
  for (const Report::StepSearch::Variant &variant : search.variants)
    list.push_back(
        {{"microbatches", variant.microbatches},
         {"schedule", nullptr},
         {"remat", variant.remat},
         {"offload", variant.offload},
         {"update", variant.isFused ? "fused" : "auto"},
         {"scheduled_s", number(variant.scheduled)},
         {"memory", variant.memory ? Json(*variant.memory) : Json(nullptr)},
         {"gap", number(variant.gap)},
         {"status", variant.status}});
  return list;
}

/// The same after a search of meshes, stages and steps.
Json variants(const Report &report) {
  if (!report.meshSearch || !report.meshSearch->ofRecipes)
    return report.stepSearch ? variants(*report.stepSearch) : Json(nullptr);
  const Report::MeshSearch &search = *report.meshSearch;
  Json list = Json::array();
  for (const auto &[i, each] : llvm::enumerate(search.best)) {
    const Report::MeshSearch::Candidate::Recipe &step = *each.recipe;
    Json object = {{"mesh", each.mesh}, {"stages", step.stages}};
    object["microbatches"] =
        each.plan ? Json(step.microbatches) : Json(nullptr);
    object["schedule"] =
        step.schedule.empty() ? Json(nullptr) : Json(step.schedule);
    object["remat"] = each.plan ? Json(step.remat) : Json(nullptr);
    object["scheduled_s"] =
        each.plan ? number(each.plan->scheduled) : Json(nullptr);
    object["memory"] = each.plan ? Json(each.plan->peak) : Json(nullptr);
    object["mfu"] = number(step.mfu);
    object["bubble"] = number(step.bubble);
    object["gap"] = each.plan ? number(each.plan->gap) : Json(nullptr);
    object["status"] = search.statusOf(i, report.plan.value);
    list.push_back(std::move(object));
  }
  return list;
}

Json repeatName(const Report &report, int repeat) {
  return repeat < 0 ? Json(nullptr) : Json(report.repeats[repeat].index);
}

Json overlap(const Report &report) {
  Json givenUp = Json::array();
  for (const Report::Overlap::GivenUp &body : report.overlap.givenUp) {
    Json object;
    object["repeat"] = repeatName(report, body.repeat);
    object["instead"] = body.instead == Overlap::Ahead ? "ahead" : "serial";
    givenUp.push_back(std::move(object));
  }
  Json matmul = {{"on", report.overlap.collectiveMatmul},
                 {"pairs", report.overlap.matmuls},
                 {"saves_s", number(report.overlap.matmulsSave)}};
  Json object;
  object["given_up"] = std::move(givenUp);
  object["memory_costs_s"] = number(report.overlap.memoryCosts);
  object["collective_matmul"] = std::move(matmul);
  object["ring_attention"] = {{"on", report.overlap.ringAttention},
                              {"rings", report.overlap.rings}};
  return object;
}

Json rooflines(const Report &report) {
  Json list = Json::array();
  for (const Report::Roofline &roofline : report.rooflines)
    list.push_back({{"over", roofline.over},
                    {"intensity", number(roofline.intensity)},
                    {"critical", number(roofline.critical)}});
  return list;
}

/// Sections of the step, and for each what ran on which stream.
Json timeline(const Report &report) {
  Json sections = Json::array();
  for (const Report::Section &section : report.timeline) {
    Json events = Json::array();
    for (const Report::Section::Event &event : section.events)
      events.push_back({{"op", event.item},
                        {"start_s", number(toSeconds(event.start))},
                        {"end_s", number(toSeconds(event.end))}});
    Json object;
    object["repeat"] = repeatName(report, section.repeat);
    object["iteration"] = section.iteration;
    object["start_s"] = number(toSeconds(section.start));
    object["end_s"] = number(toSeconds(section.end));
    object["events"] = std::move(events);
    sections.push_back(std::move(object));
  }
  return sections;
}

Json flops(const Report::Flops &flops) {
  return {{"device", number(flops.device)},
          {"model", number(flops.model)},
          {"mfu", number(flops.mfu)},
          {"mfu_full_attention", number(flops.mfuFullAttention)},
          {"hfu", number(flops.hfu)},
          {"per_token", number(flops.perToken)},
          {"device_mean", number(flops.mean)},
          {"imbalance", number(flops.imbalance())}};
}

Json memory(const Report &report) {
  const Report::Memory &memory = report.memory;
  Json object = {
      {"peak", memory.peak},           {"capacity", memory.capacity},
      {"fits", memory.fits},           {"weights", memory.weights},
      {"gradients", memory.gradients}, {"optimizer", memory.optimizer},
      {"saved", memory.saved},         {"states", memory.states},
      {"inputs", memory.inputs},       {"activations", memory.activations},
      {"buffers", memory.buffers},     {"reserved", memory.reserved}};
  object["limit"] = memory.limit ? Json(*memory.limit) : Json(nullptr);
  object["at"] = {{"name", memory.peakName}, {"loc", memory.peakLoc}};
  Json live = Json::array();
  for (const LiveTensor &tensor : memory.live)
    live.push_back({{"name", tensor.name},
                    {"kind", stringify(tensor.kind).str()},
                    {"sharding", tensor.sharding},
                    {"bytes", tensor.bytes}});
  object["live"] = std::move(live);
  if (!report.timeline.empty()) {
    Json spans = Json::array();
    for (const Report::Memory::Span &span : memory.spans)
      spans.push_back({{"name", span.tensor.name},
                       {"kind", stringify(span.tensor.kind).str()},
                       {"sharding", span.tensor.sharding},
                       {"bytes", span.tensor.bytes},
                       {"first", span.first},
                       {"last", span.last}});
    object["spans"] = std::move(spans);
  }
  object["more"] = nullptr;
  if (memory.withMore)
    object["more"] = {
        {"bytes", kMoreMemory},
        {"value_s", number(*memory.withMore)},
        {"saves_s", number(report.plan.value - *memory.withMore)}};
  return object;
}

/// Figures of a device, in a step.
Json host(const Report::Host &host) {
  const HostCost &step = host.step;
  Json object = {{"memory", host.memory},
                 {"fits", host.fits()},
                 {"out_bytes", number(step.outBytes)},
                 {"in_bytes", number(step.inBytes)},
                 {"memory_bytes", number(step.memoryBytes)},
                 {"out_s", number(step.outSeconds)},
                 {"in_s", number(step.inSeconds)},
                 {"memory_s", number(step.memorySeconds)}};
  object["capacity"] = host.capacity ? Json(*host.capacity) : Json(nullptr);
  return object;
}

Json shortfall(const Report &report) {
  if (!report.shortfall)
    return nullptr;
  Json ways = Json::array();
  for (const Report::WayOut &way : report.shortfall->waysOut)
    ways.push_back({{"kind", way.kind},
                    {"change", way.change},
                    {"fits", way.fits},
                    {"status", way.status},
                    {"peak", way.peak},
                    {"allowed", way.allowed},
                    {"scheduled_s", number(way.scheduled)}});
  const auto &least = report.shortfall->leastLimit;
  Json object;
  object["bytes"] = report.memory.peak - report.memory.allowed();
  object["limit"] = report.memory.peak;
  object["limit_bound"] = least ? Json(*least) : Json(nullptr);
  object["ways_out"] = std::move(ways);
  return object;
}

Json plan(const Report::Plan &plan) {
  return {{"status", plan.status},          {"objective", plan.objective},
          {"value_s", number(plan.value)},  {"bound_s", number(plan.bound)},
          {"gap", number(plan.gap)},        {"searched", plan.searched},
          {"search_s", number(plan.search)}};
}

/// The time of a given plan, and what a new search gains.
Json given(const Report &report) {
  if (!report.given)
    return nullptr;
  const Report::Given &given = *report.given;
  Json object;
  object["file"] = given.file;
  object["as"] = given.as;
  object["value_s"] = number(given.value);
  object["reoptimised_s"] = number(given.reoptimised);
  object["saves_s"] = number(given.saves());
  return object;
}

Json notes(const Report &report) {
  Json notes = Json::array();
  for (const Report::Note &note : report.notes)
    notes.push_back({{"kind", note.kind},
                     {"what", note.text},
                     {"loc", note.loc},
                     {"cost_s", number(toSeconds(note.cost))},
                     {"saves_s", number(toSeconds(note.saves))}});
  return notes;
}

Json tensor(const ReportTensor &tensor) {
  Json dims = Json::array();
  for (const ReportTensor::Dim &dim : tensor.dims)
    dims.push_back({{"index", dim.index},
                    {"size", dim.size},
                    {"axes", strings(dim.axes)}});
  Json object;
  object["name"] = tensor.name;
  object["kind"] = tensor.kind;
  if (!tensor.of.empty())
    object["of"] = tensor.of;
  object["dtype"] = tensor.dtype;
  object["dims"] = std::move(dims);
  object["partial"] = strings(tensor.partial);
  object["global_bytes"] = number(tensor.globalBytes);
  object["local_bytes"] = number(tensor.localBytes);
  object["loc"] = tensor.loc;
  object["sharding"] = tensor.sharding;
  if (tensor.isOnHost)
    object["host"] = true;
  return object;
}

void addCompute(Json &object, const ReportItem &item,
                const ReportCompute &compute) {
  const GroupCost &cost = compute.cost;
  object["flops"] = number(compute.flops());
  object["hbm_bytes"] = number(cost.hbmBytes);
  object["compute_s"] = number(cost.computeSeconds());
  object["hbm_s"] = number(cost.hbmSeconds);
  object["time_s"] = number(item.seconds);
  object["bound"] = item.bound().str();
  object["intensity"] = number(compute.intensity());
  object["sharding"] = compute.sharding;
  object["function"] = compute.function;
  object["fused"] = strings(compute.fused);
  object["prologue"] = strings(compute.prologue);
  object["vector_flops"] = number(cost.vectorFlops);
  object["critical_intensity"] = number(compute.criticalIntensity());
  object["imbalance"] = number(compute.imbalance());
  if (cost.calibrated)
    object["calibrated"] = {
        {"compute_s", number(cost.calibrated->computeSeconds)},
        {"hbm_s", number(cost.calibrated->hbmSeconds)},
        {"overhead_s", number(cost.calibrated->overheadSeconds)}};
}

void addCollective(Json &object, const ReportItem &item,
                   const ReportCollective &moved) {
  const CollectiveCost &cost = moved.cost;
  object["bytes"] = number(cost.bytes);
  object["wire_bytes"] = number(cost.wireBytes);
  object["latency_s"] = number(cost.latencySeconds);
  object["bandwidth_s"] = number(cost.bandwidthSeconds);
  object["time_s"] = number(item.seconds);
  object["bound"] = item.bound().str();
  object["from"] = moved.from;
  object["to"] = moved.to;
  // The mean over all runs, which differ: figures are of one run.
  object["exposed_s"] =
      number(double(moved.exposed) / double(item.count) / 1e12);
  object["reason"] = moved.reason;
  object["exposed_total_s"] = number(toSeconds(moved.exposed));
  object["collective_matmul"] =
      moved.matmul.empty() ? Json(nullptr) : Json(moved.matmul);
  object["ring_attention"] =
      moved.ringAttention.empty() ? Json(nullptr) : Json(moved.ringAttention);
  object["network"] =
      moved.network.empty() ? Json(nullptr) : Json(moved.network);
  if (cost.calibrated)
    object["calibrated"] = {
        {"fixed_s", number(cost.calibrated->fixedSeconds)},
        {"bandwidth_s", number(cost.calibrated->bandwidthSeconds)},
        {"ramp_s", number(cost.calibrated->rampSeconds)}};
}

/// In use while an operation runs: all bytes, and those of each kind.
Json memoryByKind(const MemoryByKind &memory) {
  int64_t all = 0;
  for (int64_t bytes : memory)
    all += bytes;
  Json object = {{"bytes", all}};
  for (unsigned kind = 0; kind < kNumMemoryKinds; ++kind)
    if (memory[kind])
      object[stringify(MemoryKind(kind)).str()] = memory[kind];
  return object;
}

Json operation(const ReportItem &item, bool trains) {
  Json object;
  object["name"] = item.name;
  object["kind"] = item.kind;
  if (trains)
    object["phase"] = shd::stringifyPhase(item.phase).str();
  const ReportCollective *moved = item.collective();
  if (moved) {
    object["axes"] = strings(moved->axes);
    object["operand"] = moved->operand;
  }
  object["loc"] = item.loc;
  object["count"] = item.count;
  if (moved)
    addCollective(object, item, *moved);
  else
    addCompute(object, item, *item.compute());
  if (item.memory)
    object["memory"] = memoryByKind(*item.memory);
  return object;
}

Json experts(const Report &report) {
  if (!report.experts)
    return nullptr;
  const Report::Experts &experts = *report.experts;
  return {{"total", experts.total},
          {"per_token", experts.perToken},
          {"capacity_factor", number(experts.capacityFactor)},
          {"executed_to_model_flops", number(experts.executedToModel)},
          {"touched", number(experts.touched)},
          {"touched_per_device", number(experts.touchedPerDevice)}};
}

} // namespace

void shardc::printJson(llvm::raw_ostream &os, const Report &report) {
  Json object;
  object["schema"] = "shardc.cost/1";
  object["file"] = report.file;
  object["hardware"] = hardware(report.hardware);
  object["mesh"] = mesh(report);
  object["time"] = time(report.time);
  if (report.training)
    object["time"]["phases_s"] = phases(report);
  if (report.calibration)
    object["calibration"] = calibration(*report.calibration);
  object["flops"] = flops(report.flops);
  object["price"] = {
      {"usd", number(report.price.usd)},
      {"usd_per_million_tokens", number(report.price.usdPerMillionTokens)}};
  object["memory"] = memory(report);
  if (report.host)
    object["host"] = host(*report.host);
  object["traffic"] = {{"hbm", number(report.traffic.hbm)},
                       {"network", byName(report.traffic.network)}};
  object["plan"] = plan(report.plan);
  object["words"] = report.words;
  object["parameters"] = {
      {"total", report.parameters},
      {"active", report.activeParameters},
      {"active_without_embedding", report.activeWithoutEmbedding},
      {"trained", report.trainedParameters}};
  object["experts"] = experts(report);
  object["training"] = training(report);
  if (report.stages) {
    object["pipeline"] = pipeline(*report.stages);
    object["stages"] = stages(report);
    object["schedules"] = schedules(*report.stages);
  }
  object["measured"] = measured(report);
  if (Json list = variants(report); !list.is_null())
    object["variants"] = std::move(list);
  object["tokens"] = report.tokens ? Json(*report.tokens) : Json(nullptr);
  object["tokens_per_s"] = number(report.tokensPerSecond);
  auto perChip = [&](auto figure) {
    return figure ? number(double(*figure) / double(report.hardware.chips))
                  : Json(nullptr);
  };
  object["tokens_per_chip"] = perChip(report.tokens);
  object["tokens_per_s_per_chip"] = perChip(report.tokensPerSecond);
  object["examples"] = report.examples ? Json(*report.examples) : Json(nullptr);
  object["examples_per_s"] = number(report.examplesPerSecond);
  object["overlap"] = overlap(report);
  object["rooflines"] = rooflines(report);
  object["physical"] = levels(report.hardware);
  object["shortfall"] = shortfall(report);
  object["lint"] = notes(report);
  object["given"] = given(report);
  Json tensors = Json::array(), operations = Json::array();
  for (const ReportTensor &each : report.tensors)
    tensors.push_back(tensor(each));
  for (const ReportItem &item : report.items)
    operations.push_back(operation(item, report.training.has_value()));
  object["tensors"] = std::move(tensors);
  object["ops"] = std::move(operations);
  if (!report.timeline.empty())
    object["timeline"] = timeline(report);
  os << object.dump(/*indent=*/2, ' ', /*ensure_ascii=*/false,
                    nlohmann::json::error_handler_t::replace)
     << '\n';
}
