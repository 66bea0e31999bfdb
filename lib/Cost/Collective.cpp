//===- Collective.cpp - Time of collectives on real networks --------------===//
//
// docs/CostModel.md#4-collectives. A group's collectives cost time in
// proportion to V, so each set of mesh axes is reduced to seconds per byte
// once. One network at a time contributes, from the fastest out; the slowest
// sets the time.
//
//   torus   one device receives through all its links: V / sum of W_i, where a
//           line counts N / (N - 1) W_one, and a part that shares its links
//           with s - 1 other groups a share of 1 / s
//   switch  what the members below one child lack comes through that child's
//           link: V (D - 1) / (D S w)
//
//===----------------------------------------------------------------------===//

#include "shardc/Cost/Collective.h"
#include "shardc/Machine/Rates.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace llvm;
using namespace shardc;

/// Meshes of up to so many axes have the terms of every axis set computed
/// ahead: 2^8 sets at most.
static constexpr unsigned kMaxListedAxes = 8;

StringRef shardc::stringify(CollectiveKind kind) {
  switch (kind) {
  case CollectiveKind::AllGather:
    return "all_gather";
  case CollectiveKind::AllSlice:
    return "all_slice";
  case CollectiveKind::AllToAll:
    return "all_to_all";
  case CollectiveKind::ReduceScatter:
    return "reduce_scatter";
  case CollectiveKind::AllReduce:
    return "all_reduce";
  case CollectiveKind::CollectivePermute:
    return "collective_permute";
  case CollectiveKind::ToHost:
    return "to_host";
  case CollectiveKind::FromHost:
    return "from_host";
  case CollectiveKind::HaloExchange:
    return "halo_exchange";
  case CollectiveKind::HaloReduce:
    return "halo_reduce";
  }
  llvm_unreachable("covered switch");
}

Picoseconds shardc::toPicoseconds(double seconds) {
  constexpr double kLargest = 1152921504606846976.0; // 2^60
  return std::llround(std::min(seconds * 1e12, kLargest));
}

CollectiveCost CollectiveCost::timesBytes(double factor) const {
  CollectiveCost result = *this;
  result.bytes *= factor;
  result.wireBytes *= factor;
  result.bandwidthSeconds *= factor;
  if (calibrated) {
    result.calibrated->bandwidthSeconds *= factor;
    result.calibrated->rampSeconds *= std::sqrt(factor);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Levels of the machine
//===----------------------------------------------------------------------===//

CollectiveModel::CollectiveModel(Machine machine, Mesh mesh,
                                 MeshBinding binding)
    : theMachine(std::move(machine)), theMesh(std::move(mesh)),
      theBinding(std::move(binding)), thePhysical(physicalAxes(theMachine)) {
  assert(theBinding.parts.size() == theMesh.size() && "mesh not bound");
  for (auto [network, rate] : enumerate(bandwidthsPerChip(theMachine)))
    levels.push_back(makeLevel(network, rate));
  if (theMesh.size() <= kMaxListedAxes)
    for (AxisSet axes = 0; axes < AxisSet(1) << theMesh.size(); ++axes)
      groups.push_back(groupTerms(axes));
}

CollectiveModel CollectiveModel::optimistic(Machine machine, Mesh mesh,
                                            ArrayRef<MeshBinding> bindings) {
  assert(mesh.size() <= kMaxListedAxes && "groups are listed");
  CollectiveModel best(machine, mesh, bindings.front());
  best.isRelaxed = true;
  for (const MeshBinding &binding : bindings) {
    CollectiveModel other(machine, mesh, binding);
    for (auto [terms, more] : zip_equal(best.groups, other.groups))
      terms.takeLeast(more);
  }
  return best;
}

/// The least of each term: a sum of them is no more than that of any binding.
void CollectiveModel::GroupTerms::takeLeast(const GroupTerms &other) {
  gather.value = std::min(gather.value, other.gather.value);
  allReduce.value = std::min(allReduce.value, other.allReduce.value);
  allToAll.value = std::min(allToAll.value, other.allToAll.value);
  latency = std::min(latency, other.latency);
  reachedGather = std::min(reachedGather, other.reachedGather);
  reachedAllReduce = std::min(reachedAllReduce, other.reachedAllReduce);
  reachedAllToAll = std::min(reachedAllToAll, other.reachedAllToAll);
  base = std::min(base, other.base);
  steps = std::min(steps, other.steps);
  ramp = std::min(ramp, other.ramp);
  occupies.clear();
}

bool CollectiveModel::hasTwoWays(AxisIndex axis) const {
  if (theMesh.axes[axis].size <= 2)
    return false;
  if (isRelaxed)
    return any_of(seq<unsigned>(0, thePhysical.size()), [&](unsigned physical) {
      return wraps(theMachine, physical);
    });
  const SmallVector<AxisPart, 2> &parts = theBinding.parts[axis];
  return parts.size() == 1 && wraps(theMachine, parts.front().physical) &&
         parts.front().size == thePhysical[parts.front().physical].size;
}

CollectiveModel::Level CollectiveModel::makeLevel(unsigned networkIndex,
                                                  double rate) const {
  const Network &network = theMachine.networks[networkIndex];
  Level level;
  level.kind = network.kind;
  level.network = networkIndex;
  level.firstPhysical = find_if(thePhysical,
                                [&](const PhysicalAxis &axis) {
                                  return axis.network == networkIndex;
                                }) -
                        thePhysical.begin();
  level.numPhysical = network.members.size();
  level.rate = rate;
  level.latency = network.latency;
  level.inNetworkReduction = network.inNetworkReduction;
  const NetworkCalibration &measured = network.calibration;
  level.base = valueOr(measured.base, 0);
  level.stepLatency = valueOr(measured.latency, network.latency);
  level.reached = valueOr(measured.bandwidth, 1);
  level.ramp = valueOr(measured.ramp, 0);
  level.reductionMin = valueOr(measured.reductionMin, level.reductionMin);
  if (network.kind == Network::Kind::Torus)
    for (unsigned index = 0; index < level.numPhysical; ++index)
      level.wraps.push_back(wraps(theMachine, level.firstPhysical + index));
  if (network.kind == Network::Kind::FullMesh)
    level.meshLinks = std::max<int64_t>(
        1, largestExtent(theMachine, level.firstPhysical) - 1);
  return level;
}

unsigned CollectiveModel::levelOf(unsigned physical) const {
  const auto *level = find_if(levels, [&](const Level &level) {
    return physical >= level.firstPhysical &&
           physical - level.firstPhysical < level.numPhysical;
  });
  assert(level != levels.end() && "a physical axis of another machine");
  return level - levels.begin();
}

double CollectiveModel::bandwidth(unsigned physical) const {
  const Level &level = levels[levelOf(physical)];
  bool isRing = level.kind == Network::Kind::Torus &&
                level.wraps[physical - level.firstPhysical];
  return isRing ? 2 * level.rate : level.rate;
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

static bool contains(AxisSet axes, AxisIndex axis) {
  return (axes & axisBit(axis)) != 0;
}

CollectiveModel::AxisUnion
CollectiveModel::axisUnion(AxisSet axes, unsigned physicalAxis) const {
  AxisUnion result;
  for (auto [axis, parts] : enumerate(theBinding.parts)) {
    if (!contains(axes, axis))
      continue;
    for (const AxisPart &part : parts) {
      if (part.physical != physicalAxis)
        continue;
      result.members *= part.size;
      result.span = std::max(result.span, part.size * part.stride);
      result.reach += (part.size - 1) * part.stride;
    }
  }
  return result;
}

int64_t CollectiveModel::levelMembers(const Level &level, AxisSet axes) const {
  int64_t members = 1;
  for (unsigned index = 0; index < level.numPhysical; ++index)
    members *= axisUnion(axes, level.firstPhysical + index).members;
  return members;
}

/// The calibrated terms of docs/CostModel.md#9-calibrated-times: levels share
/// one base and one ramp, the largest, and add their latencies.
void CollectiveModel::addReached(const Level &level, const LevelTerms &own,
                                 GroupTerms &terms) {
  auto include = [&](double &term, double value) {
    term = std::max(term, value / level.reached);
  };
  include(terms.reachedGather, own.gather);
  include(terms.reachedAllReduce, own.reachedAllReduce);
  include(terms.reachedAllToAll, own.allToAll);
  terms.base = std::max(terms.base, level.base);
  terms.ramp = std::max(terms.ramp, level.ramp);
  terms.steps += level.stepLatency * own.steps;
}

/// The all_to_all on one level, the last of the terms' exchanges.
void CollectiveModel::addExchange(const Level &level,
                                  const GroupTerms::Term &own,
                                  GroupTerms &terms) {
  static_cast<GroupTerms::Term &>(terms.exchanges.back()) = own;
  terms.exchanges.back().reached = own.value / level.reached;
  terms.allToAll.include(own.value, own.network);
}

/// The torus row of docs/CostModel.md#4-collectives' first table; `below` are
/// the group's members in one member of the torus.
void CollectiveModel::addTorus(const Level &level, AxisSet axes, int64_t below,
                               GroupTerms &terms) const {
  double members = levelMembers(level, axes);
  double inbound = 0;
  GroupTerms::Term slowestAxis;
  PhysicalSet all = 0;
  double hops = 0;
  for (unsigned index = 0; index < level.numPhysical; ++index) {
    unsigned physicalAxis = level.firstPhysical + index;
    AxisUnion part = axisUnion(axes, physicalAxis);
    if (part.members == 1)
      continue;
    bool isRing =
        level.wraps[index] && part.span == thePhysical[physicalAxis].size;
    double oneWay = level.rate / part.sharing();
    double bandwidth = isRing ? 2 * oneWay : oneWay;
    inbound += isRing ? bandwidth : members / (members - 1) * bandwidth;
    slowestAxis.include(part.members / bandwidth, physicalBit(physicalAxis));
    all |= physicalBit(physicalAxis);
    hops += isRing ? (part.members / 2) * part.sharing() : part.reach;
    terms.occupies.push_back(physicalAxis);
  }
  LevelTerms own;
  own.gather = 1 / (below * inbound);
  own.allReduce = own.reachedAllReduce = 2 * own.gather;
  own.allToAll = slowestAxis.value / (4.0 * terms.members);
  own.steps = hops;
  terms.gather.include(own.gather, all);
  terms.allReduce.include(own.allReduce, all);
  addExchange(level, {own.allToAll, slowestAxis.network}, terms);
  terms.latency += level.latency * hops;
  terms.longest.include(level.latency * hops, all);
  addReached(level, own, terms);
}

/// One level of docs/CostModel.md#4-collectives' second table; `below` is its
/// S_i.
void CollectiveModel::addSwitch(const Level &level, AxisSet axes, int64_t below,
                                GroupTerms &terms) const {
  int64_t members = levelMembers(level, axes);
  double rate = level.rate;
  if (level.kind == Network::Kind::FullMesh)
    rate *= static_cast<double>(members - 1) / level.meshLinks;
  double groupRate = below * rate;
  double all = terms.members;
  PhysicalSet network = physicalBit(level.firstPhysical);
  LevelTerms own;
  own.gather = (members - 1) / (members * groupRate);
  own.allReduce = level.inNetworkReduction ? 1 / groupRate : 2 * own.gather;
  own.reachedAllReduce =
      members >= level.reductionMin ? 1 / groupRate : own.allReduce;
  own.allToAll = (all - below) / (all * all * rate);
  own.steps = Log2_64_Ceil(members);
  double rounds = level.latency * own.steps;
  terms.gather.include(own.gather, network);
  terms.allReduce.include(own.allReduce, network);
  addExchange(level, {own.allToAll, network}, terms);
  terms.latency += rounds;
  terms.longest.include(rounds, network);
  addReached(level, own, terms);
}

void CollectiveModel::occupySwitches(
    unsigned outermost, SmallVectorImpl<unsigned> &occupies) const {
  if (outermost == 0)
    occupies.push_back(levels[0].firstPhysical);
  for (unsigned index = 1; index <= outermost; ++index)
    if (levels[index].kind != Network::Kind::Torus)
      occupies.push_back(levels[index].firstPhysical);
}

CollectiveModel::GroupTerms CollectiveModel::groupTerms(AxisSet axes) const {
  GroupTerms terms;
  terms.members = theMesh.groupSize(axes);
  int64_t below = 1;
  std::optional<unsigned> outermost;
  for (auto [index, level] : enumerate(levels)) {
    int64_t members = levelMembers(level, axes);
    if (members == 1)
      continue;
    terms.exchanges.emplace_back().level = index;
    terms.exchanges.back().below = below;
    if (level.kind == Network::Kind::Torus) {
      addTorus(level, axes, below, terms);
    } else {
      addSwitch(level, axes, below, terms);
      if (index == 0)
        occupySwitches(0, terms.occupies);
      else
        outermost = index;
    }
    below *= members;
  }
  if (outermost)
    occupySwitches(*outermost, terms.occupies);
  llvm::sort(terms.occupies);
  return terms;
}

const CollectiveModel::GroupTerms &
CollectiveModel::termsOf(AxisSet axes,
                         std::optional<GroupTerms> &computed) const {
  return groups.empty() ? computed.emplace(groupTerms(axes)) : groups[axes];
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

CollectiveCost CollectiveModel::cost(CollectiveKind kind,
                                     ArrayRef<AxisIndex> axes,
                                     double bytes) const {
  assert(kind != CollectiveKind::CollectivePermute && !isOfHalo(kind) &&
         "see permuteCost");
  CollectiveCost cost;
  std::optional<GroupTerms> computed;
  const GroupTerms &terms = termsOf(axisSet(axes), computed);
  if (kind == CollectiveKind::AllSlice || terms.members == 1)
    return cost;
  double members = terms.members;
  double sent = bytes * (members - 1) / members;
  cost.bytes = bytes;
  cost.occupies = terms.occupies;
  cost.longest = terms.longest.network;
  cost.latencySeconds = terms.latency;
  auto setTerms = [&](const GroupTerms::Term &term, double reached) {
    cost.bandwidthSeconds = bytes * term.value;
    cost.slowest = term.network;
    if (theMachine.isCalibrated)
      cost.calibrated = {terms.base + terms.steps, bytes * reached,
                         terms.ramp * std::sqrt(cost.wireBytes)};
  };
  switch (kind) {
  case CollectiveKind::AllGather:
  case CollectiveKind::ReduceScatter:
    cost.wireBytes = sent;
    setTerms(terms.gather, terms.reachedGather);
    return cost;
  case CollectiveKind::AllReduce:
    cost.wireBytes = 2 * sent;
    cost.latencySeconds = 2 * terms.latency;
    setTerms(terms.allReduce, terms.reachedAllReduce);
    return cost;
  case CollectiveKind::AllToAll:
    cost.wireBytes = sent / members;
    setTerms(terms.allToAll, terms.reachedAllToAll);
    return cost;
  case CollectiveKind::AllSlice:
  case CollectiveKind::CollectivePermute:
  case CollectiveKind::ToHost:
  case CollectiveKind::FromHost:
  case CollectiveKind::HaloExchange:
  case CollectiveKind::HaloReduce:
    break;
  }
  llvm_unreachable("handled above");
}

/// True if the devices of a group below one member of a level have whole blocks
/// of experts. The minor parts of their index that lie below are together
/// there; all parts before them cut the index, and must not cut a block.
bool CollectiveModel::haveWholeBlocks(unsigned level, AxisSet group,
                                      ArrayRef<AxisIndex> experts,
                                      int64_t blocks) const {
  int64_t parts = 1;
  bool isAbove = false;
  for (AxisIndex axis : reverse(experts))
    for (const AxisPart &part : reverse(theBinding.parts[axis])) {
      if (part.size == 1)
        continue;
      isAbove |= !contains(group, axis) || levelOf(part.physical) >= level;
      parts *= isAbove ? part.size : 1;
    }
  return blocks % parts == 0;
}

CollectiveCost CollectiveModel::slotsCost(ArrayRef<AxisIndex> axes,
                                          double bytes,
                                          ArrayRef<AxisIndex> experts,
                                          const RoutedBlocks &blocks) const {
  CollectiveCost result = cost(CollectiveKind::AllToAll, axes, bytes);
  std::optional<GroupTerms> computed;
  AxisSet group = axisSet(axes);
  const GroupTerms &terms = termsOf(group, computed);
  if (isRelaxed) {
    result.bandwidthSeconds *= blocks.share;
    if (result.calibrated) {
      result.calibrated->bandwidthSeconds *= blocks.share;
      result.calibrated->rampSeconds *= std::sqrt(blocks.share);
    }
    return result;
  }
  GroupTerms::Term slowest;
  double reached = 0;
  // Copies are made in groups of so many devices.
  double copying = double(terms.members);
  for (const GroupTerms::Exchange &level : terms.exchanges) {
    double share = 1;
    if (haveWholeBlocks(level.level, group, experts, blocks.count)) {
      share = blocks.share;
      copying = std::min(copying, double(level.below));
    }
    slowest.include(share * level.value, level.network);
    reached = std::max(reached, share * level.reached);
  }
  double members = double(terms.members);
  result.bandwidthSeconds = bytes * slowest.value;
  result.slowest = slowest.network;
  result.wireBytes =
      bytes / members *
      (blocks.share * (members - copying) / members + (copying - 1) / copying);
  if (result.calibrated) {
    result.calibrated->bandwidthSeconds = bytes * reached;
    // Fanning out ramps up beside the rest.
    result.calibrated->rampSeconds =
        std::min(result.calibrated->rampSeconds,
                 terms.ramp * std::sqrt(result.wireBytes));
  }
  return result;
}

StringRef CollectiveModel::networkName(unsigned network) const {
  if (network < thePhysical.size())
    return thePhysical[network].name;
  return network == thePhysical.size() ? "host.out" : "host.in";
}

/// The host's memory moves the bytes once.
CollectiveCost CollectiveModel::hostCost(CollectiveKind kind,
                                         double localBytes) const {
  assert(isHostTransfer(kind) && theMachine.hostBandwidth);
  double rate = *theMachine.hostBandwidth;
  if (theMachine.hostMemoryBandwidth)
    rate = std::min(rate, *theMachine.hostMemoryBandwidth);
  CollectiveCost cost;
  cost.bytes = cost.wireBytes = localBytes;
  cost.bandwidthSeconds = localBytes / rate;
  unsigned network =
      thePhysical.size() + (kind == CollectiveKind::FromHost ? 1 : 0);
  cost.occupies.push_back(network);
  cost.slowest = cost.longest = physicalBit(network);
  return cost;
}
