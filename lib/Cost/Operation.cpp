//===- Operation.cpp - Time of a fusion group on one device ---------------===//
//
// The roofline of one fusion group:
// docs/CostModel.md#2-one-operation-on-one-device, How to Scale Your Model
// chapter 1.
//
//===----------------------------------------------------------------------===//

#include "shardc/Cost/Operation.h"
#include <algorithm>
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
  }
  if (machine.vectorFlops)
    group.vectorSeconds += op.vectorFlops / *machine.vectorFlops;
}

void shardc::addTraffic(const Machine &machine, double bytes,
                        GroupCost &group) {
  group.hbmBytes += bytes;
  group.hbmSeconds += bytes / machine.hbmBandwidth;
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

double shardc::attentionPairs(double queries, double keys, bool causal,
                              std::optional<int64_t> window) {
  if (keys == 0)
    return 0;
  double keysPerQuery = keys;
  if (causal || window)
    keysPerQuery *= std::max(0.5, 1 - queries / (2 * keys));
  if (window)
    keysPerQuery = std::min(keysPerQuery, static_cast<double>(*window));
  return queries * keysPerQuery;
}
