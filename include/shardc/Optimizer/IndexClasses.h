//===- IndexClasses.h - Batch, sequences and the rest ---------*- C++ -*-===//

#ifndef SHARDC_OPTIMIZER_INDEXCLASSES_H
#define SHARDC_OPTIMIZER_INDEXCLASSES_H

#include "shardc/Dialect/Shd/IR/Shd.h"
#include "llvm/ADT/StringSet.h"

namespace shardc {

/// Names of the indices of the batch and of sequences: the first index of an
/// input is the batch, or the one that the program trains over; the others of
/// integer inputs, and those that attention runs along, are sequences.
struct IndexClasses {
  llvm::StringSet<> batch, sequence;

  explicit IndexClasses(shd::ProgramOp program);
};

} // namespace shardc

#endif // SHARDC_OPTIMIZER_INDEXCLASSES_H
