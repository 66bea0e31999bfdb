//===- DealtPairs.h - Attention over positions in zigzag order -*- C++ -*-===//

#ifndef SHARDC_COST_DEALTPAIRS_H
#define SHARDC_COST_DEALTPAIRS_H

#include "shardc/Cost/Operation.h"

namespace shardc {

/// The pairs of the device that computes most, under a causal mask where as
/// many queries as keys are in zigzag order, dealt to `parts`: the devices of
/// each index divide these, or have parts of one chunk. Without a window, whole
/// pairs of chunks have as many pairs on every device.
double dealtAttentionPairs(const AttentionExtents &extents, int64_t parts,
                           std::optional<int64_t> window);

} // namespace shardc

#endif // SHARDC_COST_DEALTPAIRS_H
