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

  /// The extent of the first input's sequence; 1 if no input has one.
  int64_t sequenceLength(shd::ProgramOp program) const;
};

} // namespace shardc

#endif // SHARDC_OPTIMIZER_INDEXCLASSES_H
