//===- Permute.cpp - Time of collective_permute ---------------------------===//
//
// Routes every message of a permutation: through tori by dimension-ordered
// shortest paths, counting what each directed link carries, and through
// switched levels by noting which are crossed
// (docs/CostModel.md#4-collectives). The innermost network is passed first.
//
//===----------------------------------------------------------------------===//

#include "shardc/Cost/Collective.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace shardc;

namespace shardc {

/// Permutations at the same time on one model.
class PermuteRouter {
public:
  PermuteRouter(const CollectiveModel &model, AxisSet axes);

  /// Mesh axes whose coordinates must all be visited: the permuted ones, and
  /// those along which other devices load the same torus links.
  ArrayRef<AxisIndex> visitedAxes() const { return visited; }
  /// Routes what one device receives from each of the sources.
  void route(ArrayRef<SmallVector<int64_t, 8>> sources,
             ArrayRef<int64_t> destination);
  CollectiveCost cost(double localBytes) const;

private:
  using Level = CollectiveModel::Level;
  /// One coordinate per physical axis.
  using Position = SmallVector<int64_t, 8>;

  void findVisitedAxes();
  Position position(ArrayRef<int64_t> coordinates) const;
  /// The member of a level from which each message that crosses it comes. One
  /// list per level, empty for tori.
  using Crossings = SmallVector<SmallVector<int64_t, 2>, 4>;
  void routeOne(ArrayRef<int64_t> source, ArrayRef<int64_t> destination,
                Crossings &crossings);
  uint32_t mostOnOneLink(const Level &level, ArrayRef<int64_t> members) const;
  int64_t walk(unsigned levelIndex, unsigned axisOfLevel, int64_t target,
               Position &at);
  uint32_t &load(const Position &at, unsigned physicalAxis, bool isUp);

  const CollectiveModel &model;
  AxisSet axes;
  SmallVector<AxisIndex, 4> visited;
  /// Messages on each link of a torus, by chip, physical axis and direction.
  std::vector<uint32_t> loads;
  /// Per level: messages on the most loaded link of a torus; of a switched
  /// level the most for one device that cross it, in a full mesh those of them
  /// from one member.
  SmallVector<uint32_t, 4> traffic;
  /// The most messages for one device.
  uint32_t received = 0;
  /// Per level: the physical axis of that link.
  SmallVector<unsigned, 4> busiest;
  /// Per physical axis: messages move along it.
  SmallVector<bool, 8> isUsed;
  /// Seconds that the longest path through tori takes, and once calibrated.
  double longestPath = 0, longestReached = 0;
};

} // namespace shardc

PermuteRouter::PermuteRouter(const CollectiveModel &model, AxisSet axes)
    : model(model), axes(axes), traffic(model.levels.size(), 0),
      busiest(model.levels.size(), 0), isUsed(model.thePhysical.size(), false) {
  findVisitedAxes();
}

void PermuteRouter::findVisitedAxes() {
  // Torus axes that messages take, and whatever lies below such a torus.
  SmallVector<bool, 8> isLoaded(model.thePhysical.size(), false);
  bool hasTorus = false;
  for (const Level &level : reverse(model.levels)) {
    for (unsigned index = 0; index < level.numPhysical; ++index) {
      unsigned physicalAxis = level.firstPhysical + index;
      bool isTaken = level.kind == Network::Kind::Torus &&
                     model.axisUnion(axes, physicalAxis).members > 1;
      isLoaded[physicalAxis] = isTaken || hasTorus;
    }
    hasTorus |= level.kind == Network::Kind::Torus &&
                model.levelMembers(level, axes) > 1;
  }
  if (is_contained(isLoaded, true))
    loads.resize(model.theMachine.numChips() * isLoaded.size() * 2);
  for (auto [axis, parts] : enumerate(model.theBinding.parts)) {
    bool sharesLinks = any_of(
        parts, [&](const AxisPart &part) { return isLoaded[part.physical]; });
    bool isPermuted = (axes & axisBit(axis)) != 0;
    if (model.theMesh.axes[axis].size > 1 && (isPermuted || sharesLinks))
      visited.push_back(axis);
  }
}

/// Where the device at mesh `coordinates` is.
PermuteRouter::Position
PermuteRouter::position(ArrayRef<int64_t> coordinates) const {
  Position result(model.thePhysical.size(), 0);
  for (AxisIndex axis : visited) {
    int64_t left = coordinates[axis];
    for (const AxisPart &part : reverse(model.theBinding.parts[axis])) {
      result[part.physical] += left % part.size * part.stride;
      left /= part.size;
    }
  }
  return result;
}

uint32_t &PermuteRouter::load(const Position &at, unsigned physicalAxis,
                              bool isUp) {
  size_t chip = 0;
  for (auto [coordinate, axis] : zip_equal(at, model.thePhysical))
    chip = chip * axis.size + coordinate;
  return loads[(chip * at.size() + physicalAxis) * 2 + isUp];
}

/// Moves a message along one torus axis; returns the hops.
int64_t PermuteRouter::walk(unsigned levelIndex, unsigned axisOfLevel,
                            int64_t target, Position &at) {
  const Level &level = model.levels[levelIndex];
  unsigned physicalAxis = level.firstPhysical + axisOfLevel;
  int64_t size = model.thePhysical[physicalAxis].size;
  int64_t &coordinate = at[physicalAxis];
  bool isUp = coordinate < target;
  int64_t hops = std::abs(target - coordinate);
  if (level.wraps[axisOfLevel] && (isUp ? 2 * hops > size : 2 * hops >= size)) {
    isUp = !isUp;
    hops = size - hops;
  }
  if (coordinate == target)
    return 0;
  isUsed[physicalAxis] = true;
  while (coordinate != target) {
    uint32_t &messages = load(at, physicalAxis, isUp);
    if (++messages > traffic[levelIndex]) {
      traffic[levelIndex] = messages;
      busiest[levelIndex] = physicalAxis;
    }
    coordinate = (coordinate + (isUp ? 1 : size - 1)) % size;
  }
  return hops;
}

void PermuteRouter::route(ArrayRef<SmallVector<int64_t, 8>> sources,
                          ArrayRef<int64_t> destination) {
  Crossings crossings(model.levels.size());
  uint32_t messages = 0;
  for (ArrayRef<int64_t> source : sources) {
    if (source == destination)
      continue;
    ++messages;
    routeOne(source, destination, crossings);
  }
  received = std::max(received, messages);
  for (auto [level, most, members] :
       zip_equal(model.levels, traffic, crossings))
    most = std::max(most, mostOnOneLink(level, members));
}

/// Messages for one device that share a link of a level, given the member of
/// the level that each comes from. Members of a full mesh have a link to each
/// other; a switch has one link to each of its members.
uint32_t PermuteRouter::mostOnOneLink(const Level &level,
                                      ArrayRef<int64_t> members) const {
  if (level.kind != Network::Kind::FullMesh)
    return members.size();
  uint32_t most = 0;
  for (int64_t member : members)
    most = std::max<uint32_t>(most, llvm::count(members, member));
  return most;
}

void PermuteRouter::routeOne(ArrayRef<int64_t> source,
                             ArrayRef<int64_t> destination,
                             Crossings &crossings) {
  Position at = position(source);
  Position to = position(destination);
  double path = 0, reached = 0;
  for (auto [levelIndex, level] : enumerate(model.levels)) {
    for (unsigned index = 0; index < level.numPhysical; ++index) {
      unsigned physicalAxis = level.firstPhysical + index;
      if (level.kind == Network::Kind::Torus) {
        int64_t hops = walk(levelIndex, index, to[physicalAxis], at);
        path += level.latency * hops;
        reached += level.stepLatency * hops;
      } else if (at[physicalAxis] != to[physicalAxis]) {
        crossings[levelIndex].push_back(at[physicalAxis]);
      }
    }
    // Links of slower networks belong to everything below them together.
    for (unsigned index = 0; index < level.numPhysical; ++index)
      at[level.firstPhysical + index] = 0;
  }
  longestPath = std::max(longestPath, path);
  longestReached = std::max(longestReached, reached);
}

CollectiveCost PermuteRouter::cost(double localBytes) const {
  CollectiveCost cost;
  if (none_of(traffic, [](uint32_t messages) { return messages > 0; }))
    return cost;
  cost.bytes = received * localBytes;
  cost.wireBytes = cost.bytes;
  cost.latencySeconds = longestPath;
  CalibratedCollective calibrated{longestReached, 0, 0};
  double base = 0, ramp = 0;
  double longest = longestPath;
  auto takeSlower = [&](const Level &level, double seconds,
                        unsigned physicalAxis) {
    calibrated.bandwidthSeconds =
        std::max(calibrated.bandwidthSeconds, seconds / level.reached);
    if (seconds > cost.bandwidthSeconds) {
      cost.bandwidthSeconds = seconds;
      cost.slowest = physicalBit(physicalAxis);
    }
  };
  for (auto [physicalAxis, isTaken] : enumerate(isUsed))
    if (isTaken)
      cost.longest |= physicalBit(physicalAxis);
  std::optional<unsigned> outermost;
  for (auto [index, level] : enumerate(model.levels)) {
    if (traffic[index] == 0)
      continue;
    base = std::max(base, level.base);
    ramp = std::max(ramp, level.ramp);
    if (level.kind == Network::Kind::Torus) {
      double link = model.theMachine.networks[level.network].bandwidth;
      takeSlower(level, traffic[index] * localBytes / link, busiest[index]);
      continue;
    }
    takeSlower(level,
               traffic[index] * localBytes / (level.rate / level.meshLinks),
               level.firstPhysical);
    unsigned steps = Log2_64_Ceil(model.levelMembers(level, axes));
    double rounds = level.latency * steps;
    cost.latencySeconds += rounds;
    calibrated.fixedSeconds += level.stepLatency * steps;
    if (rounds > longest) {
      longest = rounds;
      cost.longest = physicalBit(level.firstPhysical);
    }
    if (index == 0)
      model.occupySwitches(0, cost.occupies);
    else
      outermost = index;
  }
  if (model.theMachine.isCalibrated) {
    calibrated.fixedSeconds += base;
    calibrated.rampSeconds = ramp * std::sqrt(cost.wireBytes);
    cost.calibrated = calibrated;
  }
  if (outermost)
    model.occupySwitches(*outermost, cost.occupies);
  for (auto [physicalAxis, isTaken] : enumerate(isUsed))
    if (isTaken)
      cost.occupies.push_back(physicalAxis);
  llvm::sort(cost.occupies);
  return cost;
}

CollectiveCost CollectiveModel::permuteCost(ArrayRef<AxisIndex> axes,
                                            double localBytes,
                                            PermuteSource source) const {
  return permuteCost(axes, localBytes, ArrayRef(source));
}

CollectiveCost
CollectiveModel::permuteCost(ArrayRef<AxisIndex> axes, double localBytes,
                             ArrayRef<PermuteSource> sources) const {
  if (isRelaxed) {
    // Some device sends its part over some link.
    double fastest = 0, reached = 0;
    double base = std::numeric_limits<double>::infinity(), ramp = base;
    for (const Level &level : levels) {
      fastest = std::max(fastest, level.rate);
      reached = std::max(reached, level.rate * level.reached);
      base = std::min(base, level.base);
      ramp = std::min(ramp, level.ramp);
    }
    CollectiveCost least;
    least.bytes = least.wireBytes = localBytes;
    least.bandwidthSeconds = localBytes / fastest;
    if (theMachine.isCalibrated)
      least.calibrated = {base, localBytes / reached,
                          ramp * std::sqrt(localBytes)};
    return least;
  }
  PermuteRouter router(*this, axisSet(axes));
  SmallVector<int64_t, 8> destination(theMesh.size(), 0);
  SmallVector<SmallVector<int64_t, 8>, 2> from(sources.size());
  // Counts through the visited coordinates, the last axis fastest.
  for (bool isDone = false; !isDone;) {
    for (auto [source, each] : zip_equal(sources, from)) {
      each = destination;
      source(destination, each);
    }
    router.route(from, destination);
    isDone = true;
    for (AxisIndex axis : reverse(router.visitedAxes())) {
      if (++destination[axis] < theMesh.axes[axis].size) {
        isDone = false;
        break;
      }
      destination[axis] = 0;
    }
  }
  return router.cost(localBytes);
}
