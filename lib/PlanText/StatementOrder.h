//===- StatementOrder.h - Statements in the order of a plan ----*- C++ -*-===//

#ifndef SHARDC_LIB_PLANTEXT_STATEMENTORDER_H
#define SHARDC_LIB_PLANTEXT_STATEMENTORDER_H

#include "shardc/Dialect/Shd/IR/Shd.h"
#include "llvm/Support/SourceMgr.h"
#include <optional>
#include <string>

namespace shardc {

/// The main file of `sourceMgr`, of which `program` was read, with the
/// statements of each block in the order in which the program's operations are
/// `running`, and copies behind what they copy; nothing if that is the order in
/// which they stand. Declarations stay where they are, and so do comments on
/// lines of their own. Whether names still mean the same is the caller's to
/// check.
std::optional<std::string>
inRunningOrder(llvm::SourceMgr &sourceMgr, shd::ProgramOp program,
               llvm::ArrayRef<mlir::Operation *> running,
               llvm::ArrayRef<mlir::Operation *> copies);

} // namespace shardc

#endif // SHARDC_LIB_PLANTEXT_STATEMENTORDER_H
