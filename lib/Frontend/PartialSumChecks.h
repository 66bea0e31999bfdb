//===- PartialSumChecks.h - `{+X}` that nothing can make -------*- C++ -*-===//

#ifndef SHARDC_LIB_FRONTEND_PARTIALSUMCHECKS_H
#define SHARDC_LIB_FRONTEND_PARTIALSUMCHECKS_H

#include "Source.h"
#include "shardc/Dialect/Shd/IR/Shd.h"

namespace shardc {

/// Reports every place of an imported program that asks for a partial sum
/// which no plan can have. `buffers` are those of the program's files.
void checkPartialSums(SourceFiles &files, llvm::ArrayRef<unsigned> buffers,
                      const Mesh &mesh, shd::ProgramOp program);

} // namespace shardc

#endif // SHARDC_LIB_FRONTEND_PARTIALSUMCHECKS_H
