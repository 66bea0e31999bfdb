//===- PlanEvaluator.h - Schedules of a network's assignments -*- C++ -*-===//

#ifndef SHARDC_DIALECT_SHD_TRANSFORMS_PLANEVALUATOR_H
#define SHARDC_DIALECT_SHD_TRANSFORMS_PLANEVALUATOR_H

#include "shardc/Optimizer/ObjectiveSearch.h"

namespace shardc::shd {

/// Makes assignments of a program's network explicit on a copy and schedules
/// that, in the order of the text or in the best that is found: the callback of
/// searchObjective(). Of an assignment only its pins stay in the program, no
/// copies: the network's graph reads operands.
class PlanEvaluator {
public:
  PlanEvaluator(PlanningContext &context, ProgramOp program,
                const PlanNetwork &network,
                ChainOrders orders = ChainOrders::Any)
      : context(context), program(program), network(network), orders(orders) {}

  /// Nothing after an error.
  std::optional<EvaluatedPlan>
  operator()(llvm::ArrayRef<solver::Label> assignment) const;

private:
  PlanningContext &context;
  ProgramOp program;
  const PlanNetwork &network;
  ChainOrders orders;
};

} // namespace shardc::shd

#endif // SHARDC_DIALECT_SHD_TRANSFORMS_PLANEVALUATOR_H
