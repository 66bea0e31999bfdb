//===- Rates.cpp - What a machine's networks give one chip ----------------===//

#include "shardc/Machine/Rates.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

using namespace llvm;
using namespace shardc;

/// Chips below one of what the network's bandwidth is quoted per.
static int64_t chipsPerQuotedUnit(const Machine &machine,
                                  ArrayRef<PhysicalAxis> physical,
                                  const Network &network, int64_t chipsBelow) {
  if (network.bandwidthPer.empty())
    return chipsBelow;
  auto joins = [&](const Network &other) {
    return is_contained(other.members, network.bandwidthPer);
  };
  const auto *unit = find_if(machine.networks, joins);
  if (unit == machine.networks.end())
    return 1; // `chip`
  unsigned unitNetwork = unit - machine.networks.begin();
  int64_t chips = 1;
  for (const PhysicalAxis &axis : physical)
    if (axis.network < unitNetwork)
      chips *= axis.size;
  return chips;
}

SmallVector<double, 4> shardc::bandwidthsPerChip(const Machine &machine) {
  SmallVector<PhysicalAxis, 4> physical = physicalAxes(machine);
  SmallVector<double, 4> rates;
  int64_t chipsBelow = 1;
  double egressLimit = std::numeric_limits<double>::infinity();
  for (auto [index, network] : enumerate(machine.networks)) {
    int64_t members = 1;
    bool isInShape = false;
    for (const PhysicalAxis &axis : physical) {
      if (axis.network != index)
        continue;
      isInShape = true;
      members *= axis.size;
    }
    if (!isInShape)
      break;
    double rate = network.bandwidth / chipsBelow;
    if (network.kind != Network::Kind::Torus) {
      rate = network.bandwidth /
             chipsPerQuotedUnit(machine, physical, network, chipsBelow);
      if (network.switchBandwidth > 0)
        rate = std::min(rate, network.switchBandwidth /
                                  (double(members) * chipsBelow));
    }
    if (network.kind == Network::Kind::Switch) {
      rate = std::min(rate, egressLimit);
      // Traffic leaves a node through the same NIC at every level.
      if (index > 0)
        egressLimit = rate;
    }
    rates.push_back(rate);
    chipsBelow *= members;
  }
  return rates;
}

int64_t shardc::largestExtent(const Machine &machine, unsigned physical) {
  size_t fromInnermost = machine.shape.size() - physical;
  int64_t extent = machine.shape[physical];
  if (fromInnermost > machine.maxShape.size())
    return extent;
  return std::max(extent,
                  machine.maxShape[machine.maxShape.size() - fromInnermost]);
}

std::optional<double> shardc::hbmIntensity(const Machine &machine,
                                           StringRef type) {
  std::optional<double> peak = machine.peak(type);
  if (!peak)
    return std::nullopt;
  return *peak / machine.hbmBandwidth;
}

std::optional<double> shardc::networkIntensity(const Machine &machine,
                                               StringRef type,
                                               unsigned network) {
  SmallVector<double, 4> rates = bandwidthsPerChip(machine);
  std::optional<double> peak = machine.peak(type);
  if (!peak || network >= rates.size())
    return std::nullopt;
  bool isTorus = machine.networks[network].kind == Network::Kind::Torus;
  return *peak / (isTorus ? 2 * rates[network] : rates[network]);
}
