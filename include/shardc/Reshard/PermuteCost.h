//===- PermuteCost.h - Price of a permute between layouts -----*- C++ -*-===//

#ifndef SHARDC_RESHARD_PERMUTECOST_H
#define SHARDC_RESHARD_PERMUTECOST_H

#include "shardc/Cost/Collective.h"

namespace shardc {

/// The collective_permute from one layout to another that cuts the tensor into
/// the same parts; `localBytes` is one part.
CollectiveCost permuteCost(const CollectiveModel &model, const Layout &from,
                           const Layout &to, double localBytes);

} // namespace shardc

#endif // SHARDC_RESHARD_PERMUTECOST_H
