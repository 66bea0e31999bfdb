//===- StepLayouts.h - How a step's operations are said to run -*- C++ -*-===//
//
// The `layout` and `copy` of a train block, in the attribute `shd.layouts` of
// the program: records of an operation's name (StepNames.h), how its results
// are made and stored, and how it reads its operands.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHD_TRANSFORMS_STEPLAYOUTS_H
#define SHARDC_DIALECT_SHD_TRANSFORMS_STEPLAYOUTS_H

#include "shardc/Dialect/Shd/IR/Shd.h"

namespace shardc::shd {

/// True if the program's layouts say which copies are made.
bool hasPlacedCopies(ProgramOp program);

/// Inserts the copies that the program's layouts name, each before its first
/// reader; they have been checked by shd-place.
void insertPlacedCopies(ProgramOp program);

} // namespace shardc::shd

#endif // SHARDC_DIALECT_SHD_TRANSFORMS_STEPLAYOUTS_H
