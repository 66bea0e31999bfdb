//===- CatalogueJson.cpp - The hardware catalogue for programs ------------===//
//
// Schema shardc.hardware/1 of docs/CommandLine.md#the-json-of---list-hardware.
//
//===----------------------------------------------------------------------===//

#include "Catalogue.h"
#include "shardc/Frontend/Frontend.h"
#include "shardc/Machine/Rates.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <nlohmann/json.hpp>

using namespace shardc;
using llvm::StringRef;
using Json = nlohmann::ordered_json;

static Json orNull(std::optional<double> value) {
  return value ? Json(*value) : Json(nullptr);
}

static Json orNull(const MaybeFigure &figure) {
  return figure ? Json(figure->value) : Json(nullptr);
}

static Json calibrationJson(const NetworkCalibration &measured) {
  Json json;
  json["base_s"] = orNull(measured.base);
  json["latency_s"] = orNull(measured.latency);
  json["bandwidth"] = orNull(measured.bandwidth);
  json["ramp_s_per_sqrt_byte"] = orNull(measured.ramp);
  json["reduction_min"] = orNull(measured.reductionMin);
  return json;
}

static Json calibrationJson(const Calibration &measured) {
  Json json;
  json["matmul"] = orNull(measured.matmul);
  json["attention"] = orNull(measured.attention);
  json["hbm"] = orNull(measured.hbm);
  json["overhead_s"] = orNull(measured.overhead);
  json["kernels"] = orNull(measured.kernels);
  json["step"] = orNull(measured.step);
  json["overlap"] = orNull(measured.overlap);
  json["like"] = measured.like.empty() ? Json(nullptr) : Json(measured.like);
  return json;
}

static Json networkJson(const Network &network) {
  bool isTorus = network.kind == Network::Kind::Torus;
  Json json;
  json["name"] = network.name;
  json["kind"] = kindOf(network).str();
  json["members"] =
      std::vector<std::string>(network.members.begin(), network.members.end());
  json["bandwidth"] = network.bandwidth;
  json["per"] =
      network.bandwidthPer.empty() ? Json(nullptr) : Json(network.bandwidthPer);
  json["latency_s"] = network.latency;
  json["wrap"] = isTorus ? Json(wrapOf(network)) : Json(nullptr);
  json["reduction"] = network.inNetworkReduction;
  json["switch_bandwidth"] = network.switchBandwidth > 0
                                 ? Json(network.switchBandwidth)
                                 : Json(nullptr);
  json["calibration"] = calibrationJson(network.calibration);
  return json;
}

/// An intensity for each stated peak.
static Json
intensityJson(const Machine &machine,
              llvm::function_ref<std::optional<double>(StringRef)> intensity) {
  Json json = Json::object();
  for (const auto &[type, rate] : machine.flops)
    json[type] = orNull(intensity(type));
  return json;
}

static Json intensitiesJson(const Machine &machine) {
  Json networks = Json::object();
  Machine shaped = inLargestShape(machine);
  for (auto [index, network] : llvm::enumerate(machine.networks))
    networks[network.name] =
        intensityJson(machine, [&, index = index](StringRef type) {
          return networkIntensity(shaped, type, index);
        });
  Json json;
  json["hbm"] = intensityJson(
      machine, [&](StringRef type) { return hbmIntensity(machine, type); });
  json["networks"] = std::move(networks);
  return json;
}

static Json machineJson(const Machine &machine, const CatalogueNotes &notes) {
  Json networks = Json::array();
  for (const Network &network : machine.networks)
    networks.push_back(networkJson(network));
  Json json;
  json["name"] = machine.name;
  json["about"] = llvm::join(notes.about, "\n");
  json["max_shape"] = machine.maxShape.empty()
                          ? Json(nullptr)
                          : Json(std::vector<int64_t>(machine.maxShape.begin(),
                                                      machine.maxShape.end()));
  json["flops"] = machine.flops;
  json["vector_flops"] = orNull(machine.vectorFlops);
  json["hbm"] = {{"capacity", machine.hbmCapacity},
                 {"bandwidth", machine.hbmBandwidth},
                 {"reserved", machine.hbmReserved}};
  json["vmem"] = {{"capacity", orNull(machine.vmemCapacity)},
                  {"bandwidth", orNull(machine.vmemBandwidth)}};
  json["host_bandwidth"] = orNull(machine.hostBandwidth);
  json["host_capacity"] = orNull(machine.hostCapacity);
  json["host_memory_bandwidth"] = orNull(machine.hostMemoryBandwidth);
  json["usd_per_hour"] = orNull(machine.usdPerHour);
  json["collective_matmul"] = machine.collectiveMatmul;
  json["ring_attention"] = machine.ringAttention;
  json["calibration"] = calibrationJson(machine.calibration);
  json["networks"] = std::move(networks);
  json["critical_intensity"] = intensitiesJson(machine);
  json["sources"] = notes.sources;
  return json;
}

void shardc::printCatalogueJson(llvm::raw_ostream &os,
                                llvm::ArrayRef<std::string> names) {
  Json machines = Json::array();
  for (const std::string &name : names)
    machines.push_back(
        machineJson(*catalogueMachine(name), *catalogueNotes(name)));
  Json object;
  object["schema"] = "shardc.hardware/1";
  object["machines"] = std::move(machines);
  os << object.dump(/*indent=*/2, ' ', /*ensure_ascii=*/false,
                    nlohmann::json::error_handler_t::replace)
     << '\n';
}
