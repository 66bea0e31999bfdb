//===- PlanEdits.h - Placements in a program's text -------------*- C++ -*-===//
//
// The notation that plans are written in, and its places in a program's text.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_PLANTEXT_PLANEDITS_H
#define SHARDC_LIB_PLANTEXT_PLANEDITS_H

#include "shardc/Dialect/Shd/IR/Shd.h"
#include "shardc/Frontend/Ast.h"
#include "shardc/Frontend/TextEdits.h"
#include <string>

namespace shardc {

/// `@X`, `@(X, Y)`, `@()`.
std::string placementText(shd::DimShardingAttr dim);

/// `[B@X, D]{+Y}`: the list with one `@` at least, so that it is closed; `[]`
/// and `[]{+Y}` without indices. Open dimensions count as not sharded.
std::string closedList(llvm::ArrayRef<std::string> indices,
                       shd::ShardingAttr pin);

/// Fills in the placements of a list that the program has.
void editList(TextEdits &edits, const ast::IndexList &list,
              shd::ShardingAttr pin);

} // namespace shardc

#endif // SHARDC_LIB_PLANTEXT_PLANEDITS_H
