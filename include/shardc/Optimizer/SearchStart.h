//===- SearchStart.h - A plan that a search begins with -------*- C++ -*-===//

#ifndef SHARDC_OPTIMIZER_SEARCHSTART_H
#define SHARDC_OPTIMIZER_SEARCHSTART_H

#include "mlir/IR/DialectInterface.h"
#include "shardc/Dialect/Shd/IR/Shd.h"
#include "shardc/Solver/Solve.h"

namespace shardc {

/// Hands the plan of one search of a context to a later one of the same program
/// with more effort, which then finds none that is slower.
class SearchStart : public mlir::DialectInterface::Base<SearchStart> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SearchStart)

  explicit SearchStart(mlir::Dialect *dialect) : Base(dialect) {}

  /// The context's, or null.
  static SearchStart *of(mlir::MLIRContext *context) {
    auto *dialect = context->getLoadedDialect<shd::ShdDialect>();
    return dialect ? dialect->getRegisteredInterface<SearchStart>() : nullptr;
  }

  /// Labels of the network's variables: those to begin with (empty: none), and
  /// those that the last search chose (empty: it had no network of its own).
  std::vector<solver::Label> start, found;
};

} // namespace shardc

#endif // SHARDC_OPTIMIZER_SEARCHSTART_H
