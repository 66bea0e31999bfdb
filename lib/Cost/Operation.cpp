//===- Operation.cpp - Time of a fusion group on one device ---------------===//
//
// The roofline of one fusion group:
// docs/CostModel.md#2-one-operation-on-one-device, How to Scale Your Model
// chapter 1.
//
//===----------------------------------------------------------------------===//

#include "shardc/Cost/DealtPairs.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

using namespace llvm;
using namespace shardc;

void shardc::addWork(const Machine &machine, const OpWork &op,
                     GroupCost &group) {
  group.matrixFlops += op.matrixFlops;
  group.vectorFlops += op.vectorFlops;
  if (op.matrixFlops > 0) {
    std::optional<double> peak = machine.peak(op.computeType);
    assert(peak && "no peak for the compute type");
    group.matrixSeconds += op.matrixFlops / *peak;
    if (op.isAttention)
      group.attentionSeconds += op.matrixFlops / *peak;
  }
  if (machine.vectorFlops)
    group.vectorSeconds += op.vectorFlops / *machine.vectorFlops;
}

void shardc::addTraffic(const Machine &machine, double bytes,
                        GroupCost &group) {
  group.hbmBytes += bytes;
  group.hbmSeconds += bytes / machine.hbmBandwidth;
}

void shardc::addHostTraffic(const Machine &machine, const GroupTraffic &traffic,
                            GroupCost &group) {
  HostCost &host = group.host.emplace();
  double device = traffic.deviceReads + traffic.deviceWrites;
  double all =
      device + traffic.hostReads + traffic.hostWrites + traffic.scalarReads;
  if (machine.hostMemoryBandwidth) {
    host.outBytes = traffic.deviceReads;
    host.inBytes = traffic.deviceWrites;
    host.memoryBytes = all;
    host.memorySeconds = all / *machine.hostMemoryBandwidth;
    addTraffic(machine, device, group);
  } else {
    host.outBytes = traffic.hostWrites;
    host.inBytes = traffic.hostReads;
    addTraffic(machine, all, group);
  }
  assert(machine.hostBandwidth && "there is a link to the host");
  host.outSeconds = host.outBytes / *machine.hostBandwidth;
  host.inSeconds = host.inBytes / *machine.hostBandwidth;
}

void shardc::calibrate(const Machine &machine, double kernels,
                       GroupCost &group) {
  if (!machine.isCalibrated)
    return;
  const Calibration &measured = machine.calibration;
  CalibratedGroup &calibrated = group.calibrated.emplace();
  // Whole steps slow FLOPs down, by less power and other kernels, not HBM.
  double matmul = valueOr(measured.matmul, 1);
  calibrated.computeSeconds =
      std::max((group.matrixSeconds - group.attentionSeconds) / matmul +
                   group.attentionSeconds / valueOr(measured.attention, matmul),
               group.vectorSeconds) /
      valueOr(measured.step, 1);
  calibrated.hbmSeconds = group.hbmSeconds / valueOr(measured.hbm, 1);
  bool runs =
      group.matrixFlops > 0 || group.vectorFlops > 0 || group.hbmBytes > 0;
  calibrated.overheadSeconds = runs ? kernels * valueOr(measured.kernels, 1) *
                                          valueOr(measured.overhead, 0)
                                    : 0;
}

std::optional<std::string> shardc::missingPeak(const Machine &machine,
                                               StringRef computeType) {
  if (machine.peak(computeType))
    return std::nullopt;
  return ("flops." + computeType).str();
}

std::string shardc::computeType(const Machine &machine,
                                ArrayRef<StringRef> types) {
  // The least key wins: wide before narrow, then slow before fast.
  auto key = [&](StringRef type) {
    double peak =
        machine.peak(type).value_or(std::numeric_limits<double>::infinity());
    return std::tuple(-static_cast<int>(elementTypeBits(type)), peak);
  };
  const StringRef *best = std::min_element(
      types.begin(), types.end(),
      [&](StringRef lhs, StringRef rhs) { return key(lhs) < key(rhs); });
  return best == types.end() ? std::string() : best->str();
}

/// The keys of [begin, end) before each position up to `position`, as an area:
/// half of a query's own key counts.
static double keysBefore(double position, double begin, double end) {
  double inside = std::clamp(position, begin, end) - begin;
  double beyond = std::max(0.0, position - end);
  return inside * inside / 2 + beyond * (end - begin);
}

double shardc::maskedPairs(double first, double last, double begin, double end,
                           std::optional<int64_t> window) {
  double pairs = keysBefore(last, begin, end) - keysBefore(first, begin, end);
  if (window)
    pairs -= keysBefore(last - double(*window), begin, end) -
             keysBefore(first - double(*window), begin, end);
  return pairs;
}

double shardc::attentionPairs(double queries, double keys, bool causal,
                              std::optional<int64_t> window) {
  if (!causal && !window)
    return queries * keys;
  if (queries <= keys)
    return maskedPairs(keys - queries, keys, 0, keys, window);
  // Data say where more queries than keys stand.
  double keysPerQuery = keys / 2;
  if (window)
    keysPerQuery = std::min(keysPerQuery, static_cast<double>(*window));
  return queries * keysPerQuery;
}

namespace {
/// Positions [first, last) of one device.
struct Stretch {
  double first, last;
};
} // namespace

/// The positions of each device, of whole pairs of chunks or of one chunk.
static std::vector<llvm::SmallVector<Stretch, 2>>
dealtStretches(double whole, double local, int64_t parts) {
  auto shards = static_cast<int64_t>(std::ceil(whole / local));
  bool isOfPairs = parts % shards == 0;
  double length = isOfPairs ? local / 2 : local;
  std::vector<llvm::SmallVector<Stretch, 2>> devices;
  for (int64_t device = 0; device < shards; ++device) {
    double first = double(device) * length, last = first + length;
    devices.push_back({{first, last}});
    if (isOfPairs)
      devices.back().push_back({whole - last, whole - first});
  }
  return devices;
}

/// A window hides from most queries what most devices have, so that each pair
/// of devices is its own case.
static double dealtWindowPairs(const AttentionExtents &extents, int64_t parts,
                               int64_t window) {
  auto keysOf = dealtStretches(extents.globalKeys, extents.localKeys, parts);
  double most = 0;
  for (const auto &queries :
       dealtStretches(extents.globalQueries, extents.localQueries, parts))
    for (const auto &keys : keysOf) {
      double pairs = 0;
      for (const Stretch &query : queries)
        for (const Stretch &key : keys)
          pairs +=
              maskedPairs(query.first, query.last, key.first, key.last, window);
      most = std::max(most, pairs);
    }
  return most;
}

double shardc::dealtAttentionPairs(const AttentionExtents &extents,
                                   int64_t parts,
                                   std::optional<int64_t> window) {
  if (window && double(*window) < extents.globalKeys)
    return dealtWindowPairs(extents, parts, *window);
  double queryParts = std::ceil(extents.globalQueries / extents.localQueries);
  double keyParts = std::ceil(extents.globalKeys / extents.localKeys);
  auto isWhole = [&](double shards) {
    return parts % static_cast<int64_t>(shards) == 0;
  };
  if (isWhole(queryParts) && isWhole(keyParts))
    return extents.globalQueries * extents.globalKeys /
           (2 * queryParts * keyParts);
  // Parts of one chunk are consecutive positions. Beside whole pairs of chunks
  // of the other index, one of them sees all.
  bool isMixed = isWhole(queryParts) != isWhole(keyParts);
  if (isMixed && queryParts > 1 && keyParts > 1)
    return extents.localQueries * extents.localKeys;
  return busiestAttentionPairs(extents, /*causal=*/true,
                               /*window=*/std::nullopt);
}

/// Cuts `stretch`, nominally of `extent` positions, along the axes.
static void cut(Stretch stretch, int64_t extent, llvm::ArrayRef<int64_t> axes,
                llvm::SmallVectorImpl<Stretch> &parts) {
  if (stretch.first >= stretch.last)
    return;
  if (axes.empty())
    return parts.push_back(stretch);
  int64_t size = llvm::divideCeil(extent, axes.front());
  for (int64_t i = 0; i < axes.front(); ++i) {
    double first = stretch.first + double(i * size);
    cut({first, std::min(first + double(size), stretch.last)}, size,
        axes.drop_front(), parts);
  }
}

/// The parts of positions of which one may see most: later queries see more,
/// but padding may leave the last part few.
static llvm::SmallVector<Stretch, 4>
partsOf(double whole, double local, llvm::ArrayRef<int64_t> cuts, bool isLast) {
  llvm::SmallVector<Stretch, 4> parts;
  double product = llvm::accumulate(cuts, 1.0, std::multiplies<>());
  if (cuts.size() > 1 && product * local > whole) {
    cut({0, whole}, int64_t(whole), cuts, parts);
    return parts;
  }
  double count = std::ceil(whole / local);
  for (double part = isLast ? std::max(0.0, count - 2) : 0; part < count;
       ++part)
    parts.push_back({part * local, std::min((part + 1) * local, whole)});
  return parts;
}

double shardc::busiestAttentionPairs(const AttentionExtents &extents,
                                     bool causal,
                                     std::optional<int64_t> window) {
  double queries = extents.globalQueries, keys = extents.globalKeys;
  double localQueries = std::min(queries, extents.localQueries);
  double localKeys = std::min(keys, extents.localKeys);
  if (queries == 0 || keys == 0)
    return 0;
  if ((!causal && !window) || queries > keys)
    return attentionPairs(queries, keys, causal, window) *
           (localQueries / queries) * (localKeys / keys);
  // Earlier keys are seen more, but within a window the parts that lie side by
  // side see most.
  bool isAligned = window && localKeys < keys;
  llvm::SmallVector<Stretch, 4> keyParts{{0, localKeys}};
  if (isAligned)
    keyParts = partsOf(keys, localKeys, extents.keyCuts, /*isLast=*/false);
  double before = keys - queries, most = 0;
  for (Stretch query : partsOf(queries, localQueries, extents.queryCuts,
                               /*isLast=*/!isAligned))
    for (Stretch key : keyParts)
      most =
          std::max(most, maskedPairs(before + query.first, before + query.last,
                                     key.first, key.last, window));
  return most;
}
