//===- PlanText.h - A plan written into the program -----------*- C++ -*-===//
//
// `--emit-plan` (docs/CommandLine.md#what-to-print): the program's own text
// with every `@` filled in, so that reading it back with `--opt=none` gives the
// same plan at the same cost.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_PLANTEXT_PLANTEXT_H
#define SHARDC_PLANTEXT_PLANTEXT_H

#include "shardc/Dialect/Shd/IR/Shd.h"
#include "shardc/Frontend/Frontend.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace shardc {

/// Operations whose statements say of each operation how it runs: a statement
/// for each, and one more where the result is stored otherwise than it is made.
using ExplicitOps = llvm::SmallPtrSet<mlir::Operation *, 4>;

/// Prints the source of `program` (in the buffers of `sourceMgr`) with the plan
/// of `planned`: its module after the planning pipeline and before the lowering
/// one. Comments, order and formatting stay. Intermediate results between which
/// and their users something moves become statements of their own, copies too;
/// a layer whose calls are sharded differently is copied per plan; imported
/// files and `overrides` are written into the text.
void printPlan(llvm::raw_ostream &os, const Program &program,
               llvm::SourceMgr &sourceMgr, shd::ProgramOp planned,
               const Overrides &overrides, const ExplicitOps &explicitOps = {});

} // namespace shardc

#endif // SHARDC_PLANTEXT_PLANTEXT_H
