//===- Json.cpp - What verification found, for programs -------------------===//
//
// Schema shardc.verify/1. Keys may be added, never renamed.
//
//===----------------------------------------------------------------------===//

#include "shardc/Verify/Verify.h"
#include <cmath>
#include <nlohmann/json.hpp>

using namespace mlir;
using namespace shardc;
using Json = nlohmann::ordered_json;

/// NaN and infinities are no JSON.
static Json number(double value) {
  if (std::isfinite(value))
    return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

static Json mesh(const Mesh &mesh) {
  Json axes = Json::object();
  for (const MeshAxis &axis : mesh.axes)
    axes[axis.name] = axis.size;
  return axes;
}

static Json dims(const Verification &verification) {
  Json result = Json::object();
  for (const Verification::Dim &dim : verification.dims)
    result[dim.name] = {{"program", dim.full}, {"run", dim.extent}};
  return result;
}

static Json difference(const Devices &devices, const Difference &difference) {
  if (difference.size == 0)
    return nullptr;
  Json at = Json::object();
  for (auto [axis, coordinate] : llvm::zip_equal(
           devices.mesh().axes, devices.coordinates(difference.device)))
    at[axis.name] = coordinate;
  return {{"element", Json(std::vector<int64_t>(difference.element.begin(),
                                                difference.element.end()))},
          {"device", std::move(at)},
          {"expected", number(difference.expected)},
          {"found", number(difference.found)}};
}

static Json results(const Verification &verification) {
  Json list = Json::array();
  for (const Verification::Result &result : verification.results)
    list.push_back(
        {{"name", result.name},
         {"kind", result.kindName().str()},
         {"elements", result.elements},
         {"nan", result.notNumbers},
         {"largest_difference", number(result.largest.size)},
         {"at", difference(Devices(verification.mesh), result.largest)},
         {"differs", result.differs}});
  return list;
}

/// Bytes at the peak, by device.
static Json memoryOf(const Verification::Memory &memory) {
  return {{"predicted", memory.predicted},
          {"peak", std::vector<int64_t>(memory.measured.begin(),
                                        memory.measured.end())}};
}

static Json memory(const Verification &verification) {
  if (!verification.inOrder)
    return nullptr;
  Json result = memoryOf(*verification.inOrder);
  result["scheduled"] = memoryOf(*verification.asScheduled);
  return result;
}

/// FLOPs of each device, and those of the busiest one of each operation.
static Json flops(const Verification &verification) {
  if (!verification.flops)
    return nullptr;
  const Verification::Flops &flops = *verification.flops;
  return {{"predicted", flops.predicted},
          {"executed",
           std::vector<double>(flops.executed.begin(), flops.executed.end())}};
}

/// In program order; of a ring in place of a collective the kind is
/// `ring_shift`, and `in_chunks` the collective's.
static Json collectives(const Verification &verification) {
  Json list = Json::array();
  for (const RunResult::Executed &executed : verification.run.collectives) {
    Json axes = Json::array();
    for (StringRef axis : executed.op->getAttrOfType<ArrayAttr>("axes")
                              .getAsValueRange<StringAttr>())
      axes.push_back(axis.str());
    Json operand = nullptr;
    if (auto name = executed.op->getAttrOfType<StringAttr>(shd::kOperand))
      operand = name.str();
    int64_t messages = 0;
    for (int64_t sent : executed.traffic.messages)
      messages += sent;
    Json inChunks = nullptr;
    if (auto of = executed.op->getAttrOfType<StringAttr>(spmd::kRingOf))
      inChunks = of.str();
    list.push_back({{"kind", executed.op->getName().stripDialect().str()},
                    {"in_chunks", std::move(inChunks)},
                    {"axes", std::move(axes)},
                    {"operand", std::move(operand)},
                    {"runs", executed.runs},
                    {"messages", messages},
                    {"bytes_sent", double(executed.traffic.totalBits()) / 8}});
  }
  return list;
}

static Json first(const Verification &verification) {
  if (!verification.first)
    return nullptr;
  const Verification::First &first = *verification.first;
  return {{"kind", first.kind},
          {"name", first.name},
          {"at", difference(Devices(verification.mesh), first.difference)}};
}

static Json gradients(const Verification &verification) {
  if (!verification.gradients)
    return nullptr;
  const Verification::Gradients &found = *verification.gradients;
  Json wrong = Json::array();
  for (const auto &each : found.wrong)
    wrong.push_back({{"weight", each.weight},
                     {"difference", number(each.difference)},
                     {"derivative", number(each.derivative)}});
  return {{"directions", found.directions},
          {"not_finite", found.notFinite},
          {"largest_difference", number(found.largest)},
          {"loss", number(found.loss)},
          {"forward_loss",
           found.forwardLoss ? number(*found.forwardLoss) : Json(nullptr)},
          {"wrong", std::move(wrong)}};
}

static Json stages(const Verification &verification) {
  if (!verification.stages)
    return nullptr;
  const Verification::Stages &stages = *verification.stages;
  double largest = 0;
  for (const Verification::Result &result : stages.results)
    largest = std::max(largest, result.largest.size);
  Json memory = Json::array();
  for (auto [measured, predicted] :
       llvm::zip_first(stages.measured, stages.predicted))
    memory.push_back({{"predicted", predicted}, {"peak", measured}});
  return {{"stages", stages.number},
          {"microbatches", stages.microbatches},
          {"schedule", stages.order},
          {"layers", stages.layers},
          {"messages", stages.messages},
          {"results", stages.results.size()},
          {"largest_difference", number(largest)},
          {"memory", std::move(memory)},
          {"verified", stages.holds()}};
}

void shardc::printVerificationJson(raw_ostream &os,
                                   const Verification &verification,
                                   StringRef file) {
  bool isMeasured = verification.options.roundToDeclared;
  Json object;
  object["schema"] = "shardc.verify/1";
  object["file"] = file.str();
  object["rounding"] = isMeasured ? "declared" : "exact";
  object["seed"] = verification.options.seed;
  object["tolerance"] = kVerifyTolerance;
  object["verified"] = isMeasured ? Json(nullptr) : Json(verification.holds);
  object["devices"] = verification.mesh.numDevices();
  object["mesh"] = {{"program", mesh(verification.fullMesh)},
                    {"run", mesh(verification.mesh)}};
  object["one_stage"] = verification.isOneStage;
  object["stages"] = stages(verification);
  object["dims"] = dims(verification);
  object["operations"] = verification.operations;
  object["memory"] = memory(verification);
  object["flops"] = flops(verification);
  object["results"] = results(verification);
  object["gradients"] = gradients(verification);
  object["experts"] = verification.picks
                          ? Json{{"picks", verification.picks->picks},
                                 {"dropped", verification.picks->dropped}}
                          : Json(nullptr);
  object["collectives"] = collectives(verification);
  object["first_difference"] = first(verification);
  os << object.dump(/*indent=*/2, ' ', /*ensure_ascii=*/false,
                    nlohmann::json::error_handler_t::replace)
     << '\n';
}
