//===- Prices.h - Prices that an explicit program carries ------*- C++ -*-===//

#ifndef SHARDC_SCHEDULE_PRICES_H
#define SHARDC_SCHEDULE_PRICES_H

#include "shardc/Dialect/Shd/IR/Shd.h"

namespace shardc {

/// The price of one run of a fusion group, or of a part that is costed by
/// itself.
GroupCost groupPrice(shd::GroupCostAttr price);

/// The price of one run of a collective; nothing for a free one.
CollectiveCost collectivePrice(mlir::Operation *collective,
                               const CollectiveModel &model);

} // namespace shardc

#endif // SHARDC_SCHEDULE_PRICES_H
