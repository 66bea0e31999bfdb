//===- Build.cpp - Machines from hardware descriptions --------------------===//
//
// Which fields a hardware file may have, of what quantity, and which it must
// have: docs/Language.md#11-describing-a-machine.
//
//===----------------------------------------------------------------------===//

#include "shardc/Machine/Machine.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace llvm;
using namespace shardc;

using Quantity = HardwareField::Quantity;
using MaybeError = std::optional<MachineError>;

/// Torus axes and switched levels that one machine may have: those of a set of
/// physical axes.
static constexpr size_t kMaxLevels = 64;

/// Of a peak: what reaches less is a mistake.
static constexpr double kLeastEfficiency = 1e-3;

/// A misspelt name further away than this gets a list instead of a guess.
static constexpr unsigned kMaxMisspelling = 4;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

static StringRef describe(Quantity quantity) {
  switch (quantity) {
  case Quantity::None:
    return "a plain number";
  case Quantity::FlopsPerSecond:
    return "a rate in FLOP/s";
  case Quantity::Bytes:
    return "a size in B";
  case Quantity::BytesPerSecond:
    return "a bandwidth in B/s";
  case Quantity::Seconds:
    return "a time in s";
  case Quantity::UsdPerHour:
    return "a price in USD/h";
  }
  llvm_unreachable("covered switch");
}

static std::string describeValue(const HardwareField &field) {
  if (!field.word.empty())
    return "'" + field.word + "'";
  if (!field.list.empty())
    return "a list";
  return describe(field.quantity).str();
}

static MachineError unexpected(const HardwareField &field,
                               const Twine &expected) {
  return {field.where,
          ("field '" + field.name + "' expects " + expected + ", found " +
           describeValue(field))
              .str(),
          ""};
}

/// The figures of a quantity that prices stay finite and exact with: far beyond
/// any machine on both sides, and sizes below 2^60 B, which sums count up to.
struct Range {
  double least, most;
  StringRef unit;
};

static Range rangeOf(Quantity quantity) {
  switch (quantity) {
  case Quantity::None:
    break;
  case Quantity::FlopsPerSecond:
    return {1, 1e24, "FLOP/s"};
  case Quantity::Bytes:
    return {1, 1e18, "B"};
  case Quantity::BytesPerSecond:
    return {1, 1e24, "B/s"};
  case Quantity::Seconds:
    return {0, 1e3, "s"};
  case Quantity::UsdPerHour:
    return {0, 1e12, "USD/h"};
  }
  llvm_unreachable("a plain number has no range");
}

static std::string withUnit(double number, StringRef unit) {
  std::string text;
  raw_string_ostream os(text);
  os << llvm::format("%g ", number) << unit;
  return text;
}

static MaybeError readQuantity(const HardwareField &field, Quantity expected,
                               double &value) {
  if (!field.word.empty() || !field.list.empty() || field.quantity != expected)
    return unexpected(field, describe(expected));
  Range range = rangeOf(expected);
  if (!(field.number >= range.least && field.number <= range.most))
    return MachineError{field.where,
                        "field '" + field.name + "' expects " +
                            withUnit(range.least, range.unit) + " to " +
                            withUnit(range.most, range.unit) + ", found " +
                            withUnit(field.number, range.unit),
                        ""};
  value = field.number;
  return std::nullopt;
}

static MaybeError readQuantity(const HardwareField &field, Quantity expected,
                               std::optional<double> &value) {
  return readQuantity(field, expected, value.emplace());
}

static MaybeError readFlag(const HardwareField &field, bool &value) {
  if (field.word != "true" && field.word != "false")
    return unexpected(field, "'true' or 'false'");
  value = field.word == "true";
  return std::nullopt;
}

static MaybeError readExtents(const HardwareField &field,
                              SmallVectorImpl<int64_t> &value) {
  if (field.list.empty() || !field.word.empty())
    return unexpected(field, "a list of extents, such as [16, 16]");
  if (any_of(field.list, [](int64_t extent) { return extent < 1; }))
    return MachineError{field.where,
                        "field '" + field.name + "' has an extent below 1", ""};
  value.assign(field.list.begin(), field.list.end());
  return std::nullopt;
}

static MaybeError readWrap(const HardwareField &field, Network &network) {
  if (field.word == "none" || field.word == "all") {
    network.wrap =
        field.word == "all" ? Network::WrapRule::All : Network::WrapRule::None;
    return std::nullopt;
  }
  bool isMultiple = field.word == "multiple" && field.list.size() == 1;
  bool isNumber = field.word.empty() && field.list.empty() &&
                  field.quantity == Quantity::None;
  if (!isMultiple && !isNumber)
    return unexpected(field, "an axis size, 'multiple(N)', 'all' or 'none'");
  double parameter = isMultiple ? field.list[0] : field.number;
  if (!(parameter >= 1 && parameter <= INT32_MAX) ||
      parameter != std::floor(parameter))
    return MachineError{field.where,
                        "field 'wrap' must have an integer of at least 1", ""};
  network.wrap =
      isMultiple ? Network::WrapRule::MultipleOf : Network::WrapRule::Exactly;
  network.wrapParameter = static_cast<int64_t>(parameter);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Tables of fields
//===----------------------------------------------------------------------===//

namespace {
template <typename T> struct FieldSpec {
  StringRef name;
  MaybeError (*read)(const HardwareField &field, T &subject);
};
} // namespace

static constexpr FieldSpec<Machine> kMachineFields[] = {
    {"flops.vector",
     [](const HardwareField &field, Machine &machine) {
       return readQuantity(field, Quantity::FlopsPerSecond,
                           machine.vectorFlops);
     }},
    {"hbm.capacity",
     [](const HardwareField &field, Machine &machine) {
       return readQuantity(field, Quantity::Bytes, machine.hbmCapacity);
     }},
    {"hbm.reserved",
     [](const HardwareField &field, Machine &machine) {
       bool isNothing = field.quantity == Quantity::Bytes && field.number == 0;
       machine.hbmReserved = 0;
       return isNothing
                  ? MaybeError()
                  : readQuantity(field, Quantity::Bytes, machine.hbmReserved);
     }},
    {"hbm.bandwidth",
     [](const HardwareField &field, Machine &machine) {
       return readQuantity(field, Quantity::BytesPerSecond,
                           machine.hbmBandwidth);
     }},
    {"vmem.capacity",
     [](const HardwareField &field, Machine &machine) {
       return readQuantity(field, Quantity::Bytes, machine.vmemCapacity);
     }},
    {"vmem.bandwidth",
     [](const HardwareField &field, Machine &machine) {
       return readQuantity(field, Quantity::BytesPerSecond,
                           machine.vmemBandwidth);
     }},
    {"host.bandwidth",
     [](const HardwareField &field, Machine &machine) {
       return readQuantity(field, Quantity::BytesPerSecond,
                           machine.hostBandwidth);
     }},
    {"host.capacity",
     [](const HardwareField &field, Machine &machine) {
       return readQuantity(field, Quantity::Bytes, machine.hostCapacity);
     }},
    {"host.memory.bandwidth",
     [](const HardwareField &field, Machine &machine) {
       return readQuantity(field, Quantity::BytesPerSecond,
                           machine.hostMemoryBandwidth);
     }},
    {"price",
     [](const HardwareField &field, Machine &machine) {
       return readQuantity(field, Quantity::UsdPerHour, machine.usdPerHour);
     }},
    {"shape.max",
     [](const HardwareField &field, Machine &machine) {
       return readExtents(field, machine.maxShape);
     }},
    {"overlap.collective_matmul",
     [](const HardwareField &field, Machine &machine) {
       return readFlag(field, machine.collectiveMatmul);
     }},
    {"overlap.ring_attention",
     [](const HardwareField &field, Machine &machine) {
       return readFlag(field, machine.ringAttention);
     }},
};

static MaybeError readLatency(const HardwareField &field, Network &network) {
  return readQuantity(field, Quantity::Seconds, network.latency);
}

static MaybeError readBandwidth(const HardwareField &field, Network &network) {
  return readQuantity(field, Quantity::BytesPerSecond, network.bandwidth);
}

static constexpr FieldSpec<Network> kTorusFields[] = {
    {"link.bandwidth", readBandwidth},
    {"latency", readLatency},
    {"wrap", readWrap},
};

static constexpr FieldSpec<Network> kSwitchFields[] = {
    {"bandwidth", readBandwidth},
    {"latency", readLatency},
    {"per",
     [](const HardwareField &field, Network &network) -> MaybeError {
       if (field.word.empty() || !field.list.empty())
         return unexpected(field, "what the bandwidth is quoted per, such as "
                                  "'gpu' or 'chip'");
       network.bandwidthPer = field.word;
       return std::nullopt;
     }},
    {"reduction",
     [](const HardwareField &field, Network &network) {
       return readFlag(field, network.inNetworkReduction);
     }},
    {"switch.bandwidth",
     [](const HardwareField &field, Network &network) {
       return readQuantity(field, Quantity::BytesPerSecond,
                           network.switchBandwidth);
     }},
};

//===----------------------------------------------------------------------===//
// Calibrations
//===----------------------------------------------------------------------===//

namespace {
/// The figures of a calibration, and the machine on which they were measured.
template <typename T> struct Measured {
  T &calibration;
  std::string machine;

  MaybeError set(MaybeFigure &figure, double value) {
    figure = CalibratedFigure{value, machine};
    return std::nullopt;
  }
};
using MeasuredChip = Measured<Calibration>;
using MeasuredNetwork = Measured<NetworkCalibration>;
} // namespace

/// A fraction, mostly of a peak: above 0, at most 1.
static MaybeError readEfficiency(const HardwareField &field, double &value) {
  if (!field.word.empty() || !field.list.empty() ||
      field.quantity != Quantity::None)
    return unexpected(field, "a plain number");
  if (!(field.number >= kLeastEfficiency && field.number <= 1))
    return MachineError{field.where,
                        "field '" + field.name + "' expects a fraction, " +
                            withUnit(kLeastEfficiency, "to 1, found ") +
                            StringRef(withUnit(field.number, "")).rtrim().str(),
                        ""};
  value = field.number;
  return std::nullopt;
}

template <typename T, MaybeFigure T::*Member>
static MaybeError readEfficiencyOf(const HardwareField &field,
                                   Measured<T> &subject) {
  double value = 0;
  if (MaybeError error = readEfficiency(field, value))
    return error;
  return subject.set(subject.calibration.*Member, value);
}

template <typename T, MaybeFigure T::*Member>
static MaybeError readSecondsOf(const HardwareField &field,
                                Measured<T> &subject) {
  double value = 0;
  if (MaybeError error = readQuantity(field, Quantity::Seconds, value))
    return error;
  return subject.set(subject.calibration.*Member, value);
}

static MaybeError readKernels(const HardwareField &field,
                              MeasuredChip &subject) {
  if (!field.word.empty() || !field.list.empty() ||
      field.quantity != Quantity::None)
    return unexpected(field, "a number of kernels");
  if (!(field.number >= 1 && field.number <= INT32_MAX))
    return MachineError{field.where,
                        "field 'kernels' expects at least 1, found " +
                            StringRef(withUnit(field.number, "")).rtrim().str(),
                        ""};
  return subject.set(subject.calibration.kernels, field.number);
}

/// Bytes at which `ramp` states a network's ramp.
static constexpr double kRampBytes = 1e6;

static MaybeError readRamp(const HardwareField &field,
                           MeasuredNetwork &subject) {
  double value = 0;
  if (MaybeError error = readQuantity(field, Quantity::Seconds, value))
    return error;
  return subject.set(subject.calibration.ramp, value / std::sqrt(kRampBytes));
}

static MaybeError readReductionMin(const HardwareField &field,
                                   MeasuredNetwork &subject) {
  if (!field.word.empty() || !field.list.empty() ||
      field.quantity != Quantity::None)
    return unexpected(field, "a number of members");
  if (!(field.number >= 2 && field.number <= INT32_MAX) ||
      field.number != std::floor(field.number))
    return MachineError{field.where,
                        "field 'reduction.min' must have an integer of at "
                        "least 2",
                        ""};
  return subject.set(subject.calibration.reductionMin, field.number);
}

static constexpr FieldSpec<MeasuredChip> kChipCalibrationFields[] = {
    {"matmul", readEfficiencyOf<Calibration, &Calibration::matmul>},
    {"attention", readEfficiencyOf<Calibration, &Calibration::attention>},
    {"hbm", readEfficiencyOf<Calibration, &Calibration::hbm>},
    {"overhead", readSecondsOf<Calibration, &Calibration::overhead>},
    {"kernels", readKernels},
    {"step", readEfficiencyOf<Calibration, &Calibration::step>},
    {"overlap", readEfficiencyOf<Calibration, &Calibration::overlap>},
    {"like",
     [](const HardwareField &field, MeasuredChip &subject) -> MaybeError {
       if (field.word.empty() || !field.list.empty())
         return unexpected(field, "the name of a machine of the catalogue");
       subject.calibration.like = field.word;
       return std::nullopt;
     }},
};

static constexpr FieldSpec<MeasuredNetwork> kNetworkCalibrationFields[] = {
    {"base", readSecondsOf<NetworkCalibration, &NetworkCalibration::base>},
    {"latency",
     readSecondsOf<NetworkCalibration, &NetworkCalibration::latency>},
    {"bandwidth",
     readEfficiencyOf<NetworkCalibration, &NetworkCalibration::bandwidth>},
    {"ramp", readRamp},
    // Only switches add.
    {"reduction.min", readReductionMin},
};

static std::string guessNote(StringRef name, ArrayRef<StringRef> candidates,
                             StringRef listed) {
  StringRef nearest = nearestName(name, candidates, kMaxMisspelling);
  if (!nearest.empty())
    return ("did you mean '" + nearest + "'?").str();
  std::string note;
  raw_string_ostream os(note);
  os << listed << ' ';
  interleaveComma(candidates, os, [&](StringRef candidate) {
    os << '\'' << candidate << '\'';
  });
  return note;
}

/// Reads `field` by the table that has its name; an error if none has.
template <typename T>
static MaybeError readByTable(const HardwareField &field,
                              ArrayRef<FieldSpec<T>> table, T &subject,
                              const Twine &subjectName,
                              ArrayRef<StringRef> otherNames = {}) {
  for (const FieldSpec<T> &spec : table)
    if (spec.name == field.name)
      return spec.read(field, subject);
  SmallVector<StringRef, 12> names(otherNames);
  for (const FieldSpec<T> &spec : table)
    names.push_back(spec.name);
  return MachineError{
      field.where,
      ("unknown field '" + field.name + "' of " + subjectName).str(),
      guessNote(field.name, names, "its fields are")};
}

static MaybeError checkUnique(ArrayRef<HardwareField> fields) {
  StringSet<> seen;
  for (const HardwareField &field : fields)
    if (!seen.insert(field.name).second)
      return MachineError{field.where,
                          "field '" + field.name + "' is given twice", ""};
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Machine
//===----------------------------------------------------------------------===//

static MaybeError readMachineField(const HardwareField &field,
                                   Machine &machine) {
  StringRef type = field.name;
  if (type.consume_front("flops.") && elementTypeBits(type) != 0 &&
      type != "bool" && type != "f8e8m0")
    return readQuantity(field, Quantity::FlopsPerSecond,
                        machine.flops[type.str()]);
  static constexpr StringRef kPeaks[] = {
      "flops.bf16", "flops.f16", "flops.f8e4m3", "flops.int8", "flops.f4e2m1"};
  return readByTable<Machine>(field, kMachineFields, machine,
                              "hardware '" + machine.name + "'", kPeaks);
}

static MaybeError checkMachine(const HardwareDescription &description,
                               const Machine &machine) {
  auto lacks = [&](StringRef what) {
    return MachineError{
        description.where,
        ("hardware '" + description.name + "' lacks " + what).str(), ""};
  };
  if (machine.flops.empty())
    return lacks("a peak, such as 'flops.bf16'");
  if (machine.hbmCapacity == 0)
    return lacks("'hbm.capacity'");
  if (machine.hbmBandwidth == 0)
    return lacks("'hbm.bandwidth'");
  return std::nullopt;
}

/// Where a field stands; the description itself if it is inherited.
static unsigned whereIs(StringRef name,
                        const HardwareDescription &description) {
  const auto field =
      find_if(description.fields,
              [&](const HardwareField &each) { return each.name == name; });
  return field == description.fields.end() ? description.where : field->where;
}

static MaybeError checkReserved(const HardwareDescription &description,
                                const Machine &machine) {
  if (machine.usableMemory() > 0)
    return std::nullopt;
  return MachineError{whereIs("hbm.reserved", description),
                      "'hbm.reserved', " + withUnit(machine.hbmReserved, "B") +
                          ", leaves nothing of 'hbm.capacity', " +
                          withUnit(machine.hbmCapacity, "B"),
                      ""};
}

/// `shape.max` speaks of whole networks, the fastest ones.
static MaybeError checkMaxShape(const HardwareDescription &description,
                                const Machine &machine) {
  size_t count = 0;
  for (const Network &network : machine.networks)
    if (count < machine.maxShape.size())
      count += network.members.size();
  if (count == machine.maxShape.size())
    return std::nullopt;
  return MachineError{
      whereIs("shape.max", description),
      "field 'shape.max' has " + std::to_string(machine.maxShape.size()) +
          " extents, which do not match the networks of '" + machine.name + "'",
      "it has one per torus axis and per switch, the fastest "
      "network's last"};
}

//===----------------------------------------------------------------------===//
// Networks
//===----------------------------------------------------------------------===//

/// A new network of the kind that the description names.
static MachineOr<Network> makeNetwork(const HardwareNetwork &description) {
  Network network;
  network.name = description.name;
  network.members = description.members;
  StringRef kind = description.kind;
  if (kind == "torus")
    network.kind = Network::Kind::Torus;
  else if (kind == "switch")
    network.kind = Network::Kind::Switch;
  else if (kind == "mesh")
    network.kind = Network::Kind::FullMesh;
  else
    return MachineError{
        description.where, "network '" + description.name + "' has no kind",
        "write 'torus[x, y]', 'switch[node]' or 'mesh[gpu]' after its name"};
  if (network.kind == Network::Kind::Torus && network.members.empty())
    return MachineError{description.where,
                        "torus '" + description.name +
                            "' has no names for its axes",
                        "write 'torus[x, y]'"};
  if (network.kind != Network::Kind::Torus && network.members.size() != 1)
    return MachineError{description.where,
                        ("network '" + description.name +
                         "' expects one name of what it joins, found " +
                         Twine(network.members.size()))
                            .str(),
                        ("write '" + kind + "[node]'").str()};
  return network;
}

static MaybeError readNetworkFields(const HardwareNetwork &description,
                                    Network &network) {
  if (MaybeError error = checkUnique(description.fields))
    return error;
  bool isTorus = network.kind == Network::Kind::Torus;
  ArrayRef<FieldSpec<Network>> table = kSwitchFields;
  if (isTorus)
    table = kTorusFields;
  std::string subject =
      (isTorus ? "torus '" : "network '") + network.name + "'";
  for (const HardwareField &field : description.fields)
    if (MaybeError error = readByTable(field, table, network, subject))
      return error;
  if (network.bandwidth == 0)
    return MachineError{description.where,
                        subject + " lacks '" +
                            (isTorus ? "link.bandwidth" : "bandwidth") + "'",
                        ""};
  return std::nullopt;
}

/// Adds or overrides one network.
static MaybeError applyNetwork(const HardwareNetwork &description,
                               const Machine *base, Machine &machine) {
  Network *existing = find_if(machine.networks, [&](const Network &network) {
    return network.name == description.name;
  });
  bool isKnown = existing != machine.networks.end();
  if (!description.kind.empty()) {
    MachineOr<Network> network = makeNetwork(description);
    if (auto *error = std::get_if<MachineError>(&network))
      return *error;
    if (isKnown) {
      *existing = std::get<Network>(network);
    } else {
      machine.networks.push_back(std::get<Network>(network));
      existing = &machine.networks.back();
    }
  } else if (!isKnown) {
    if (!base)
      return std::get<MachineError>(makeNetwork(description));
    SmallVector<StringRef, 4> names;
    for (const Network &network : base->networks)
      names.push_back(network.name);
    return MachineError{
        description.where,
        "unknown network '" + description.name + "' of '" + machine.name + "'",
        names.empty() ? ""
                      : guessNote(description.name, names, "its networks are")};
  }
  return readNetworkFields(description, *existing);
}

static unsigned whereOf(const HardwareDescription &description,
                        StringRef network) {
  for (const HardwareNetwork &candidate : description.networks)
    if (candidate.name == network)
      return candidate.where;
  return description.where;
}

/// Checks that hold between networks: names of levels, and `per`.
static MaybeError checkNetworks(const HardwareDescription &description,
                                Machine &machine) {
  SmallVector<StringRef, 6> units = {"chip"};
  StringSet<> members;
  size_t levels = 0;
  for (Network &network : machine.networks) {
    unsigned where = whereOf(description, network.name);
    levels += network.members.size();
    if (levels > kMaxLevels)
      return MachineError{where,
                          "the networks of '" + machine.name +
                              "' have more than " + std::to_string(kMaxLevels) +
                              " axes and levels",
                          ""};
    for (const std::string &member : network.members)
      if (!members.insert(member).second)
        return MachineError{where,
                            "network '" + network.name + "' joins '" + member +
                                "', which another network joins already",
                            ""};
    if (network.kind != Network::Kind::Torus &&
        network.bandwidthPer == network.members[0])
      network.bandwidthPer.clear();
    if (!network.bandwidthPer.empty() &&
        !is_contained(units, network.bandwidthPer))
      return MachineError{
          where,
          "network '" + network.name + "' has its bandwidth per '" +
              network.bandwidthPer + "', which no faster network joins",
          guessNote(network.bandwidthPer, units, "it may be per")};
    append_range(units, network.members);
  }
  return std::nullopt;
}

static MaybeError checkNetworksUnique(ArrayRef<HardwareNetwork> networks) {
  StringSet<> seen;
  for (const HardwareNetwork &network : networks)
    if (!seen.insert(network.name).second)
      return MachineError{network.where,
                          "network '" + network.name + "' is given twice", ""};
  return std::nullopt;
}

/// The figures of one network of a calibration.
static MaybeError readNetworkCalibration(const HardwareNetwork &description,
                                         Machine &machine) {
  if (!description.kind.empty())
    return MachineError{description.where,
                        "network '" + description.name +
                            "' of a calibration has a kind",
                        "its kind stands where the machine describes it"};
  Network *network = find_if(machine.networks, [&](const Network &each) {
    return each.name == description.name;
  });
  if (network == machine.networks.end()) {
    SmallVector<StringRef, 4> names;
    for (const Network &each : machine.networks)
      names.push_back(each.name);
    return MachineError{description.where,
                        "unknown network '" + description.name + "' of '" +
                            machine.name + "'",
                        guessNote(description.name, names, "its networks are")};
  }
  if (MaybeError error = checkUnique(description.fields))
    return error;
  ArrayRef<FieldSpec<MeasuredNetwork>> table = kNetworkCalibrationFields;
  if (network->kind == Network::Kind::Torus)
    table = table.drop_back();
  MeasuredNetwork subject{network->calibration, machine.name};
  for (const HardwareField &field : description.fields)
    if (MaybeError error =
            readByTable(field, table, subject,
                        "a calibration of network '" + network->name + "'"))
      return error;
  return std::nullopt;
}

static MaybeError applyCalibration(const HardwareDescription &description,
                                   Machine &machine) {
  if (description.calibrations.empty())
    return std::nullopt;
  if (description.calibrations.size() > 1)
    return MachineError{description.calibrations[1].where,
                        "'calibration' is given twice", ""};
  const HardwareCalibration &calibration = description.calibrations.front();
  if (MaybeError error = checkUnique(calibration.fields))
    return error;
  MeasuredChip subject{machine.calibration, machine.name};
  for (const HardwareField &field : calibration.fields)
    if (MaybeError error = readByTable<MeasuredChip>(
            field, kChipCalibrationFields, subject, "a calibration"))
      return error;
  if (MaybeError error = checkNetworksUnique(calibration.networks))
    return error;
  for (const HardwareNetwork &network : calibration.networks)
    if (MaybeError error = readNetworkCalibration(network, machine))
      return error;
  return std::nullopt;
}

static MaybeError applyDescription(const HardwareDescription &description,
                                   const Machine *base, Machine &machine) {
  if (MaybeError error = checkUnique(description.fields))
    return error;
  for (const HardwareField &field : description.fields)
    if (MaybeError error = readMachineField(field, machine))
      return error;
  if (MaybeError error = checkMachine(description, machine))
    return error;
  if (MaybeError error = checkReserved(description, machine))
    return error;
  if (MaybeError error = checkNetworksUnique(description.networks))
    return error;
  for (const HardwareNetwork &network : description.networks)
    if (MaybeError error = applyNetwork(network, base, machine))
      return error;
  if (MaybeError error = checkNetworks(description, machine))
    return error;
  if (MaybeError error = applyCalibration(description, machine))
    return error;
  return checkMaxShape(description, machine);
}

MachineOr<Machine> shardc::buildMachine(const HardwareDescription &description,
                                        const Machine *base) {
  Machine machine = base ? *base : Machine();
  machine.name = description.name;
  machine.shape.clear();
  if (MaybeError error = applyDescription(description, base, machine))
    return *error;
  return machine;
}
