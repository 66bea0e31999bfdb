//===- Catalogue.cpp - What --list-hardware prints ------------------------===//
//
// Figures are printed as the hardware files state them: three significant
// digits or as many as needed, with decimal prefixes.
//
//===----------------------------------------------------------------------===//

#include "Catalogue.h"
#include "shardc/Frontend/Frontend.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <fmt/format.h>

using namespace shardc;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Cells
//===----------------------------------------------------------------------===//

/// `4.59e14, "FLOP/s"` as "459 TFLOP/s"; six digits at most. Sizes that are
/// whole MiB and not whole MB get binary prefixes.
static std::string withUnit(double value, StringRef unit) {
  static constexpr std::pair<double, const char *> prefixes[] = {
      {1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}};
  constexpr double mebi = 1024 * 1024;
  if (unit == "B" && std::fmod(value, mebi) == 0 && std::fmod(value, 1e6) != 0)
    return fmt::format("{:.6g} MiB", value / mebi);
  for (auto [scale, prefix] : prefixes)
    if (value >= scale || scale == 1)
      return fmt::format("{:.6g} {}{}", value / scale, prefix, unit.str());
  llvm_unreachable("the last prefix takes every value");
}

static std::string orNone(std::optional<double> value, StringRef unit) {
  return value ? withUnit(*value, unit) : "-";
}

/// A peak that the machine states itself.
static std::string peakOf(const Machine &machine, StringRef type) {
  auto it = machine.flops.find(type.str());
  if (it == machine.flops.end())
    return "-";
  bool isFloat = type.contains('f');
  return withUnit(it->second, isFloat ? "FLOP/s" : "OP/s");
}

/// int8 and f8 share a peak where one is stated.
static std::string eightBitPeakOf(const Machine &machine) {
  return peakOf(machine, machine.flops.count("int8") ? "int8" : "f8e4m3");
}

static std::string shapeOf(llvm::ArrayRef<int64_t> shape) {
  if (shape.empty())
    return "-";
  return "[" +
         llvm::join(llvm::map_range(
                        shape, [](int64_t n) { return std::to_string(n); }),
                    ", ") +
         "]";
}

static StringRef kindOf(const Network &network) {
  switch (network.kind) {
  case Network::Kind::Torus:
    return "torus";
  case Network::Kind::Switch:
    return "switch";
  case Network::Kind::FullMesh:
    return "mesh";
  }
  llvm_unreachable("a kind of network");
}

/// "torus[x, y]".
static std::string signatureOf(const Network &network) {
  return kindOf(network).str() + "[" + llvm::join(network.members, ", ") + "]";
}

/// "45 GB/s", "50 GB/s per gpu".
static std::string bandwidthOf(const Network &network) {
  std::string result = withUnit(network.bandwidth, "B/s");
  if (!network.bandwidthPer.empty())
    result += " per " + network.bandwidthPer;
  return result;
}

static std::string networksOf(const Machine &machine) {
  auto describe = [](const Network &network) {
    return network.name + " " + signatureOf(network) + " " +
           bandwidthOf(network);
  };
  return llvm::join(llvm::map_range(machine.networks, describe), ", ");
}

static std::string priceOf(const Machine &machine) {
  return machine.usdPerHour ? fmt::format("{:g} USD/h", *machine.usdPerHour)
                            : "-";
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

using Row = std::vector<std::string>;

/// Columns two spaces apart, as wide as their widest cell.
static void printTable(llvm::raw_ostream &os, llvm::ArrayRef<Row> rows) {
  std::vector<size_t> widths(rows.front().size());
  for (const Row &row : rows)
    for (auto [width, cell] : llvm::zip_equal(widths, row))
      width = std::max(width, cell.size());
  for (const Row &row : rows) {
    std::string line;
    for (auto [width, cell] : llvm::zip_equal(widths, row))
      line += cell + std::string(width + 2 - cell.size(), ' ');
    os << StringRef(line).rtrim() << "\n";
  }
}

void shardc::printCatalogue(llvm::raw_ostream &os) {
  std::vector<Row> rows = {{"name", "max shape", "HBM", "HBM bandwidth", "bf16",
                            "int8 or f8", "price", "networks"}};
  for (const std::string &name : catalogueNames()) {
    Machine machine = *catalogueMachine(name);
    rows.push_back(
        {name, shapeOf(machine.maxShape), withUnit(machine.hbmCapacity, "B"),
         withUnit(machine.hbmBandwidth, "B/s"), peakOf(machine, "bf16"),
         eightBitPeakOf(machine), priceOf(machine), networksOf(machine)});
  }
  printTable(os, rows);
}

static std::string wrapOf(const Network &network) {
  switch (network.wrap) {
  case Network::WrapRule::None:
    return "none";
  case Network::WrapRule::All:
    return "all";
  case Network::WrapRule::Exactly:
    return fmt::format("{}", network.wrapParameter);
  case Network::WrapRule::MultipleOf:
    return fmt::format("multiple({})", network.wrapParameter);
  }
  llvm_unreachable("a rule of wrapping");
}

static void addNetwork(std::vector<Row> &rows, const Network &network) {
  rows.push_back({"network " + network.name, signatureOf(network)});
  bool isTorus = network.kind == Network::Kind::Torus;
  rows.push_back(
      {isTorus ? "  link.bandwidth" : "  bandwidth", bandwidthOf(network)});
  rows.push_back({"  latency", fmt::format("{:g} us", network.latency * 1e6)});
  if (isTorus)
    rows.push_back({"  wrap", wrapOf(network)});
  if (network.inNetworkReduction)
    rows.push_back({"  reduction", "true"});
  if (network.switchBandwidth > 0)
    rows.push_back(
        {"  switch.bandwidth", withUnit(network.switchBandwidth, "B/s")});
}

void shardc::printMachine(llvm::raw_ostream &os, const Machine &machine) {
  std::vector<Row> rows = {{"hardware", machine.name}};
  for (const auto &[type, rate] : machine.flops)
    rows.push_back({"flops." + type, peakOf(machine, type)});
  rows.push_back({"flops.vector", orNone(machine.vectorFlops, "FLOP/s")});
  rows.push_back({"hbm.capacity", withUnit(machine.hbmCapacity, "B")});
  rows.push_back({"hbm.bandwidth", withUnit(machine.hbmBandwidth, "B/s")});
  rows.push_back({"vmem.capacity", orNone(machine.vmemCapacity, "B")});
  rows.push_back({"vmem.bandwidth", orNone(machine.vmemBandwidth, "B/s")});
  rows.push_back({"host.bandwidth", orNone(machine.hostBandwidth, "B/s")});
  rows.push_back({"price", priceOf(machine)});
  rows.push_back({"shape.max", shapeOf(machine.maxShape)});
  for (const Network &network : machine.networks)
    addNetwork(rows, network);
  printTable(os, rows);
}
