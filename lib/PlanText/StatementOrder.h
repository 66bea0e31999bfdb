//===- StatementOrder.h - Statements in the order of a plan ----*- C++ -*-===//

#ifndef SHARDC_LIB_PLANTEXT_STATEMENTORDER_H
#define SHARDC_LIB_PLANTEXT_STATEMENTORDER_H

#include "shardc/Dialect/Shd/IR/Shd.h"
#include "llvm/Support/SourceMgr.h"
#include <optional>
#include <string>

namespace shardc {

/// The text of a plan with the statements of each block in the order in which
/// the plan runs them (WorkOrder.h); nothing if that is the order in which they
/// stand. `planned` was read from the main file of `sourceMgr`, and `text` is
/// to have the same statements. Declarations stay where they are, and so do
/// comments on lines of their own. Whether names still mean the same is the
/// caller's to check.
std::optional<std::string> inRunningOrder(llvm::StringRef text,
                                          shd::ProgramOp planned,
                                          llvm::SourceMgr &sourceMgr);

} // namespace shardc

#endif // SHARDC_LIB_PLANTEXT_STATEMENTORDER_H
