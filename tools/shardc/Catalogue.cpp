//===- Catalogue.cpp - Tables of the hardware catalogue -------------------===//
//
// Figures are printed as the hardware files state them: as many digits as
// needed, with decimal prefixes. Intensities follow from them, to four digits.
//
//===----------------------------------------------------------------------===//

#include "Catalogue.h"
#include "shardc/Frontend/Frontend.h"
#include "shardc/Machine/Rates.h"
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

StringRef shardc::kindOf(const Network &network) {
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

static std::string intensityOf(std::optional<double> flopsPerByte) {
  if (!flopsPerByte)
    return "-";
  return *flopsPerByte < 1000 ? fmt::format("{:.4g}", *flopsPerByte)
                              : fmt::format("{:.0f}", *flopsPerByte);
}

Machine shardc::inLargestShape(Machine machine) {
  size_t levels = 0;
  for (const Network &network : machine.networks)
    levels += network.members.size();
  machine.shape.assign(levels - machine.maxShape.size(), 1);
  llvm::append_range(machine.shape, machine.maxShape);
  return machine;
}

/// "ici torus[x, y] 45 GB/s (2189 FLOP/B)".
static std::string networksOf(const Machine &machine) {
  Machine shaped = inLargestShape(machine);
  std::vector<std::string> networks;
  for (auto [index, network] : llvm::enumerate(machine.networks))
    networks.push_back(network.name + " " + signatureOf(network) + " " +
                       bandwidthOf(network) + " (" +
                       intensityOf(networkIntensity(shaped, "bf16", index)) +
                       " FLOP/B)");
  return llvm::join(networks, ", ");
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
                            "int8 or f8", "FLOP/B", "price", "networks"}};
  for (const std::string &name : catalogueNames()) {
    Machine machine = *catalogueMachine(name);
    rows.push_back(
        {name, shapeOf(machine.maxShape), withUnit(machine.hbmCapacity, "B"),
         withUnit(machine.hbmBandwidth, "B/s"), peakOf(machine, "bf16"),
         eightBitPeakOf(machine), intensityOf(hbmIntensity(machine, "bf16")),
         priceOf(machine), networksOf(machine)});
  }
  printTable(os, rows);
  os << "\nFLOP/B: intensity from which on HBM, or a network, keeps up with "
        "bf16 work of one chip; networks\nin the largest shape, a torus along "
        "one wrapped axis. --list-hardware=NAME: all figures and sources\n";
}

std::string shardc::wrapOf(const Network &network) {
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

namespace {
/// The rows of one machine: field, figure, source.
class MachineRows {
public:
  MachineRows(const Machine &machine, const CatalogueNotes &notes)
      : machine(machine), notes(notes) {}

  std::vector<Row> rows();

private:
  void addPeaks();
  void addMemory();
  void addNetwork(const Network &network);
  void addCalibration();
  void addCalibration(const Network &network);
  void addIntensities();
  /// A figure of the calibration, in the unit of its field, if there is one.
  void addMeasured(const std::string &network, StringRef field,
                   const MaybeFigure &figure, double perUnit, StringRef unit);
  void add(StringRef field, std::string figure) {
    table.push_back(
        {field.str(), std::move(figure), notes.source(field).str()});
  }
  /// Intensities for each stated peak: `figure(type)`.
  void
  addIntensity(StringRef what, StringRef note,
               llvm::function_ref<std::optional<double>(StringRef)> figure);

  const Machine &machine;
  const CatalogueNotes &notes;
  std::vector<Row> table;
};
} // namespace

void MachineRows::addPeaks() {
  for (const auto &[type, rate] : machine.flops)
    add("flops." + type, peakOf(machine, type));
  add("flops.vector", orNone(machine.vectorFlops, "FLOP/s"));
}

void MachineRows::addMemory() {
  add("hbm.capacity", withUnit(machine.hbmCapacity, "B"));
  if (machine.hbmReserved > 0)
    add("hbm.reserved", withUnit(machine.hbmReserved, "B"));
  add("hbm.bandwidth", withUnit(machine.hbmBandwidth, "B/s"));
  add("vmem.capacity", orNone(machine.vmemCapacity, "B"));
  add("vmem.bandwidth", orNone(machine.vmemBandwidth, "B/s"));
  add("host.bandwidth", orNone(machine.hostBandwidth, "B/s"));
  if (machine.hostCapacity)
    add("host.capacity", withUnit(*machine.hostCapacity, "B"));
  if (machine.hostMemoryBandwidth)
    add("host.memory.bandwidth", withUnit(*machine.hostMemoryBandwidth, "B/s"));
}

void MachineRows::addNetwork(const Network &network) {
  table.push_back({"network " + network.name, signatureOf(network), ""});
  auto addField = [&](const char *field, std::string figure) {
    table.push_back({std::string("  ") + field, std::move(figure),
                     notes.source(network.name + "." + field).str()});
  };
  bool isTorus = network.kind == Network::Kind::Torus;
  addField(isTorus ? "link.bandwidth" : "bandwidth", bandwidthOf(network));
  addField("latency", fmt::format("{:g} us", network.latency * 1e6));
  if (isTorus)
    addField("wrap", wrapOf(network));
  if (network.inNetworkReduction)
    addField("reduction", "true");
  if (network.switchBandwidth > 0)
    addField("switch.bandwidth", withUnit(network.switchBandwidth, "B/s"));
}

void MachineRows::addMeasured(const std::string &network, StringRef field,
                              const MaybeFigure &figure, double perUnit,
                              StringRef unit) {
  if (!figure)
    return;
  std::string name = network + field.str();
  table.push_back({"  " + name,
                   fmt::format("{:g}{}", figure->value * perUnit, unit.str()),
                   notes.source("calibration." + name).str()});
}

void MachineRows::addCalibration(const Network &network) {
  const NetworkCalibration &measured = network.calibration;
  std::string name = network.name + ".";
  addMeasured(name, "base", measured.base, 1e6, " us");
  addMeasured(name, "latency", measured.latency, 1e6, " us");
  addMeasured(name, "bandwidth", measured.bandwidth, 1, "");
  // Of 1 MB, whose root is 1000 bytes.
  addMeasured(name, "ramp", measured.ramp, 1e9, " us");
  addMeasured(name, "reduction.min", measured.reductionMin, 1, "");
}

void MachineRows::addCalibration() {
  const Calibration &measured = machine.calibration;
  table.push_back({"calibration", "with --calibrated", ""});
  size_t before = table.size();
  addMeasured("", "matmul", measured.matmul, 1, "");
  addMeasured("", "attention", measured.attention, 1, "");
  addMeasured("", "hbm", measured.hbm, 1, "");
  addMeasured("", "overhead", measured.overhead, 1e6, " us");
  addMeasured("", "kernels", measured.kernels, 1, "");
  addMeasured("", "step", measured.step, 1, "");
  addMeasured("", "overlap", measured.overlap, 1, "");
  if (!measured.like.empty())
    table.push_back(
        {"  like", measured.like, notes.source("calibration.like").str()});
  for (const Network &network : machine.networks)
    addCalibration(network);
  if (table.size() == before)
    table.pop_back();
}

void MachineRows::addIntensity(
    StringRef what, StringRef note,
    llvm::function_ref<std::optional<double>(StringRef)> figure) {
  std::vector<std::string> figures;
  for (const auto &[type, rate] : machine.flops)
    figures.push_back(type + " " + intensityOf(figure(type)));
  table.push_back({("  " + what).str(), llvm::join(figures, ", "), note.str()});
}

void MachineRows::addIntensities() {
  table.push_back({"critical intensity", "FLOP/B", ""});
  addIntensity("hbm", "flops / hbm.bandwidth",
               [&](StringRef type) { return hbmIntensity(machine, type); });
  Machine shaped = inLargestShape(machine);
  double below = 1;
  for (auto [index, network] : llvm::enumerate(machine.networks)) {
    bool isTorus = network.kind == Network::Kind::Torus;
    auto figure = [&, index = index](StringRef type) {
      return networkIntensity(shaped, type, index);
    };
    addIntensity(network.name,
                 isTorus ? "of what a chip sends along one wrapped axis, both "
                           "ways"
                         : "of what a chip sends",
                 figure);
    if (index > 0 && !isTorus && network.bandwidthPer != "chip" && below > 1)
      addIntensity(
          "", fmt::format("where {:g} chips below share what they send", below),
          [&](StringRef type) -> std::optional<double> {
            std::optional<double> alone = figure(type);
            return alone ? std::optional(*alone / below) : std::nullopt;
          });
    for (const PhysicalAxis &axis : physicalAxes(shaped))
      if (axis.network == index)
        below *= double(axis.size);
  }
}

std::vector<Row> MachineRows::rows() {
  table = {{"hardware", machine.name, ""}};
  addPeaks();
  addMemory();
  add("price", priceOf(machine));
  add("shape.max", shapeOf(machine.maxShape));
  for (const Network &network : machine.networks)
    addNetwork(network);
  addCalibration();
  addIntensities();
  return std::move(table);
}

void shardc::printMachine(llvm::raw_ostream &os, const Machine &machine,
                          const CatalogueNotes &notes) {
  for (const std::string &line : notes.about)
    os << line << "\n";
  os << "\n";
  printTable(os, MachineRows(machine, notes).rows());
}
