//===- Prices.h - Prices that an explicit program carries ------*- C++ -*-===//

#ifndef SHARDC_SCHEDULE_PRICES_H
#define SHARDC_SCHEDULE_PRICES_H

#include "shardc/Dialect/Shd/IR/Shd.h"

namespace shardc {

/// Of one run of a fusion group, or of the part of it that is costed by itself.
GroupCost groupPrice(shd::GroupCostAttr price);

/// Of one run of a collective; nothing for one that is free.
CollectiveCost collectivePrice(mlir::Operation *collective,
                               const CollectiveModel &model);

} // namespace shardc

#endif // SHARDC_SCHEDULE_PRICES_H
