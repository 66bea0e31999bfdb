//===- CalibratedPrices.cpp - Calibrated terms in attributes --------------===//

#include "shardc/Dialect/Shd/IR/CalibratedPrices.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

DenseF64ArrayAttr shardc::shd::calibratedAttr(MLIRContext *context,
                                              const CollectiveCost &cost) {
  if (!cost.calibrated)
    return {};
  return DenseF64ArrayAttr::get(context, {cost.calibrated->fixedSeconds,
                                          cost.calibrated->bandwidthSeconds,
                                          cost.calibrated->rampSeconds});
}

DenseF64ArrayAttr shardc::shd::calibratedAttr(MLIRContext *context,
                                              const GroupCost &cost) {
  if (!cost.calibrated)
    return {};
  return DenseF64ArrayAttr::get(context, {cost.calibrated->computeSeconds,
                                          cost.calibrated->hbmSeconds,
                                          cost.calibrated->overheadSeconds});
}

DenseF64ArrayAttr shardc::shd::hostAttr(MLIRContext *context,
                                        const GroupCost &cost) {
  if (!cost.host)
    return {};
  const HostCost &host = *cost.host;
  return DenseF64ArrayAttr::get(context, {host.outBytes, host.inBytes,
                                          host.memoryBytes, host.outSeconds,
                                          host.inSeconds, host.memorySeconds});
}

std::optional<HostCost> shardc::shd::hostCost(DenseF64ArrayAttr attr) {
  if (!attr)
    return std::nullopt;
  ArrayRef<double> terms = attr.asArrayRef();
  return HostCost{terms[0], terms[1], terms[2], terms[3], terms[4], terms[5]};
}

std::optional<CalibratedCollective>
shardc::shd::calibratedCollective(DenseF64ArrayAttr attr) {
  if (!attr)
    return std::nullopt;
  ArrayRef<double> terms = attr.asArrayRef();
  return CalibratedCollective{terms[0], terms[1], terms[2]};
}

std::optional<CalibratedGroup>
shardc::shd::calibratedGroup(DenseF64ArrayAttr attr) {
  if (!attr)
    return std::nullopt;
  ArrayRef<double> terms = attr.asArrayRef();
  return CalibratedGroup{terms[0], terms[1], terms[2]};
}
