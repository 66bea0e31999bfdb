//===- Prices.cpp - Prices that an explicit program carries ---------------===//

#include "shardc/Schedule/Prices.h"
#include "shardc/Dialect/Shd/IR/CalibratedPrices.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

GroupCost shardc::groupPrice(GroupCostAttr price) {
  GroupCost cost;
  cost.matrixFlops = price.getFlops();
  cost.vectorFlops = price.getVectorFlops();
  cost.hbmBytes = price.getHbmBytes();
  cost.matrixSeconds = price.getMatrixS();
  cost.vectorSeconds = price.getVectorS();
  cost.hbmSeconds = price.getHbmS();
  cost.calibrated = calibratedGroup(price.getCalibratedS());
  cost.host = hostCost(price.getHost());
  return cost;
}

CollectiveCost shardc::collectivePrice(Operation *collective,
                                       const CollectiveModel &model) {
  CollectiveCost cost;
  auto price = collective->getAttrOfType<CollectiveCostAttr>("cost");
  if (!price)
    return cost;
  cost.bytes = price.getBytes();
  cost.wireBytes = price.getWireBytes();
  cost.bandwidthSeconds = price.getBandwidthS();
  cost.latencySeconds = price.getLatencyS();
  cost.calibrated = calibratedCollective(price.getCalibratedS());
  auto indicesOf = [&](ArrayRef<StringAttr> names) {
    SmallVector<unsigned, 4> indices;
    for (StringAttr name : names)
      for (unsigned i = 0; i < model.numNetworks(); ++i)
        if (model.networkName(i) == name.getValue())
          indices.push_back(i);
    return indices;
  };
  cost.occupies = indicesOf(price.getNetworks());
  // The network that sets the time, whichever its term.
  ArrayRef<StringAttr> boundBy = price.getBoundBy();
  for (unsigned i : indicesOf(boundBy.empty() ? price.getNetworks() : boundBy))
    cost.slowest = cost.longest |= physicalBit(i);
  return cost;
}
