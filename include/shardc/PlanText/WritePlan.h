//===- WritePlan.h - Plans as text that is read back ----------*- C++ -*-===//

#ifndef SHARDC_PLANTEXT_WRITEPLAN_H
#define SHARDC_PLANTEXT_WRITEPLAN_H

#include "shardc/Dialect/Shd/IR/Shd.h"
#include "shardc/Frontend/Frontend.h"

namespace shardc {

/// `--emit-plan`: prints the plan of `planned` as printPlan() does and reads it
/// back with `--opt=none`. Where that is another plan, statements say more; if
/// there is no more to say, an error says where the plans differ, and nothing
/// is printed. Plans are the same if they have the same operations and
/// collectives, of the same values and at the same prices, and stages with the
/// same layers, order, time and memory within `memoryLimit` (none: what the
/// machine has).
mlir::LogicalResult
writePlan(llvm::raw_ostream &os, const Program &program,
          llvm::SourceMgr &sourceMgr, shd::ProgramOp planned,
          const Overrides &overrides,
          std::optional<int64_t> memoryLimit = std::nullopt);

} // namespace shardc

#endif // SHARDC_PLANTEXT_WRITEPLAN_H
