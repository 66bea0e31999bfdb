//===- Optimize.cpp - shd-optimize -----------------------------*- C++ -*-===//
//
// The analysis is lib/Optimizer, the search lib/Solver; this pass only runs
// them and writes the decision into the program. Model: docs/Optimizer.md.
//
//===----------------------------------------------------------------------===//

#include "shardc/Dialect/Shd/Transforms/Passes.h"
#include "shardc/Optimizer/Network.h"
#include "shardc/Solver/Solve.h"

using namespace mlir;

namespace shardc::shd {
#define GEN_PASS_DEF_SHDOPTIMIZE
#include "shardc/Dialect/Shd/Transforms/Passes.h.inc"

namespace {

StringRef statusName(const solver::Solution &solution, bool fixed, bool fits) {
  if (!fits)
    return "infeasible";
  if (fixed)
    return "fixed";
  return solution.status == solver::Status::Optimal ? "optimal" : "feasible";
}

struct OptimizePass : impl::ShdOptimizeBase<OptimizePass> {
  using ShdOptimizeBase::ShdOptimizeBase;

  void runOnOperation() override {
    ProgramOp program = getOperation();
    std::unique_ptr<PlanningContext> context = createContext(program);
    if (!context)
      return signalPassFailure();
    NetworkOptions networkOptions;
    networkOptions.fixed = fixed;
    if (!fixed)
      networkOptions.memoryLimit =
          memoryLimit >= 0 ? int64_t(memoryLimit)
                           : int64_t(context->machine().hbmCapacity);
    std::optional<PlanNetwork> network =
        buildNetwork(*context, program, networkOptions);
    if (!network)
      return signalPassFailure();
    if (auto error = network->problem.check()) {
      program.emitError() << "internal error: " << *error;
      return signalPassFailure();
    }
    solver::Options options;
    if (timeLimit >= 0)
      options.timeLimitSeconds = timeLimit;
    solver::Solution solution = solver::solve(network->problem, options);
    if (solution.assignment.empty() && !network->problem.variables.empty()) {
      program.emitError("no plan has the layouts that the annotations ask for");
      return signalPassFailure();
    }
    applyAssignment(*context, *network, solution.assignment);
    bool fits = solution.status == solver::Status::Optimal ||
                solution.status == solver::Status::Feasible;
    Builder builder(&getContext());
    program->setAttr(
        kPlan,
        builder.getDictionaryAttr(
            {builder.getNamedAttr("status", builder.getStringAttr(statusName(
                                                solution, fixed, fits))),
             builder.getNamedAttr("value_ps",
                                  builder.getI64IntegerAttr(solution.cost)),
             builder.getNamedAttr("bound_ps",
                                  builder.getI64IntegerAttr(solution.bound)),
             builder.getNamedAttr("objective",
                                  builder.getStringAttr("upper"))}));
  }
};

} // namespace
} // namespace shardc::shd
