//===- ComparePlans.h - Whether two programs are one plan -----*- C++ -*-===//

#ifndef SHARDC_LIB_PLANTEXT_COMPAREPLANS_H
#define SHARDC_LIB_PLANTEXT_COMPAREPLANS_H

#include "shardc/Dialect/Shd/IR/Shd.h"

namespace shardc {

/// The first operation that only one of two plans has. `in` is in the first
/// plan if there is one, and `other`, the next of its kind in the other plan
/// that the first lacks, may be null.
struct PlanDifference {
  mlir::Operation *in = nullptr, *other = nullptr;
};

/// Compares two plans that have been made explicit: operations and collectives
/// with their shardings and prices, and of which values they are. Neither names
/// nor the order of operations that do not depend on each other count, nor what
/// costs nothing: values without operands, and statements that move nothing.
/// Nothing if the plans are the same.
std::optional<PlanDifference> comparePlans(shd::ProgramOp first,
                                           shd::ProgramOp second);

} // namespace shardc

#endif // SHARDC_LIB_PLANTEXT_COMPAREPLANS_H
