//===- Context.h - What planning a program needs --------------*- C++ -*-===//
//
// The machine, the mesh bound to it and the reshard planner of one program.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_OPTIMIZER_CONTEXT_H
#define SHARDC_OPTIMIZER_CONTEXT_H

#include "mlir/IR/DialectInterface.h"
#include "shardc/Dialect/Shd/IR/Shd.h"
#include "shardc/Reshard/Reshard.h"

namespace shardc {

struct PlanningContext {
  PlanningContext(CollectiveModel collectives, bool allowPadding,
                  std::shared_ptr<ReshardTables> tables = nullptr)
      : model(std::move(collectives)), planner(model, std::move(tables)),
        allowPadding(allowPadding) {}

  const Mesh &mesh() const { return model.mesh(); }
  const Machine &machine() const { return model.machine(); }

  CollectiveModel model;
  ReshardPlanner planner;
  bool allowPadding;
};

/// Makes the contexts of programs on the same machine and mesh share tables.
/// Who plans many of them, on one thread, adds it to the dialect, and empties
/// it when the machine or the mesh changes.
class SharedTables : public mlir::DialectInterface::Base<SharedTables> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SharedTables)

  explicit SharedTables(mlir::Dialect *dialect) : Base(dialect) {}

  std::shared_ptr<ReshardTables> reshard;
};

/// Loads the program's machine and binds its mesh; emits an error and returns
/// null if the program names no machine or it cannot be bound.
std::unique_ptr<PlanningContext> createContext(shd::ProgramOp program);

} // namespace shardc

#endif // SHARDC_OPTIMIZER_CONTEXT_H
