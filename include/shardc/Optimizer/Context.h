//===- Context.h - What planning a program needs --------------*- C++ -*-===//
//
// The machine, the mesh bound to it and the reshard planner of one program.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_OPTIMIZER_CONTEXT_H
#define SHARDC_OPTIMIZER_CONTEXT_H

#include "shardc/Dialect/Shd/IR/Shd.h"
#include "shardc/Reshard/Reshard.h"

namespace shardc {

struct PlanningContext {
  PlanningContext(CollectiveModel collectives, bool allowPadding)
      : model(std::move(collectives)), planner(model),
        allowPadding(allowPadding) {}

  const Mesh &mesh() const { return model.mesh(); }
  const Machine &machine() const { return model.machine(); }

  CollectiveModel model;
  ReshardPlanner planner;
  bool allowPadding;
};

/// Loads the program's machine and binds its mesh; emits an error and returns
/// null if the program names no machine or it cannot be bound.
std::unique_ptr<PlanningContext> createContext(shd::ProgramOp program);

} // namespace shardc

#endif // SHARDC_OPTIMIZER_CONTEXT_H
