//===- SearchWatch.h - Who watches a search, and may end it ---*- C++ -*-===//

#ifndef SHARDC_OPTIMIZER_SEARCHWATCH_H
#define SHARDC_OPTIMIZER_SEARCHWATCH_H

#include "mlir/IR/DialectInterface.h"
#include "shardc/Dialect/Shd/IR/Shd.h"
#include "shardc/Solver/Solve.h"

namespace shardc {

/// Whoever wants to follow the searches of a context adds it to the dialect.
class SearchWatch : public mlir::DialectInterface::Base<SearchWatch> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SearchWatch)

  explicit SearchWatch(mlir::Dialect *dialect) : Base(dialect) {}

  /// The context's, or null.
  static const SearchWatch *of(mlir::MLIRContext *context) {
    auto *dialect = context->getLoadedDialect<shd::ShdDialect>();
    return dialect ? dialect->getRegisteredInterface<SearchWatch>() : nullptr;
  }

  /// The context's watch, which it gets if it has none: a dialect keeps the
  /// first of its interfaces of one kind.
  static SearchWatch &attach(mlir::MLIRContext *context) {
    auto *dialect = context->getLoadedDialect<shd::ShdDialect>();
    if (auto *watch = dialect->getRegisteredInterface<SearchWatch>())
      return *watch;
    return dialect->addInterface<SearchWatch>();
  }

  /// Searches end soon after this becomes true.
  const std::atomic<bool> *interrupted = nullptr;
  /// Told of picoseconds of the objective.
  std::function<void(const solver::SearchProgress &)> progress;
};

} // namespace shardc

#endif // SHARDC_OPTIMIZER_SEARCHWATCH_H
