//===- Optimize.cpp - shd-optimize -----------------------------*- C++ -*-===//
//
// The analysis is lib/Optimizer, the search lib/Solver; this pass only runs
// them and writes the decision into the program. Model: docs/Optimizer.md.
//
//===----------------------------------------------------------------------===//

#include "ObjectiveSearch.h"
#include "mlir/Pass/PassManager.h"
#include "shardc/Dialect/Shd/Transforms/Passes.h"
#include "shardc/Optimizer/Network.h"
#include "shardc/Solver/Solve.h"

using namespace mlir;

namespace shardc::shd {
#define GEN_PASS_DEF_SHDOPTIMIZE
#include "shardc/Dialect/Shd/Transforms/Passes.h.inc"

namespace {

StringRef objectiveName(Objective objective) {
  switch (objective) {
  case Objective::Upper:
    return "upper";
  case Objective::Scheduled:
    return "scheduled";
  case Objective::Lower:
    return "lower";
  }
  llvm_unreachable("unknown objective");
}

StringRef statusName(const solver::Solution &solution, bool fixed) {
  if (solution.status == solver::Status::Infeasible ||
      solution.status == solver::Status::Unknown)
    return "infeasible";
  if (fixed)
    return "fixed";
  return solution.status == solver::Status::Optimal ? "optimal" : "feasible";
}

struct OptimizePass : impl::ShdOptimizeBase<OptimizePass> {
  using ShdOptimizeBase::ShdOptimizeBase;

  void runOnOperation() override;

private:
  NetworkOptions networkOptions(const PlanningContext &context) const;
  LogicalResult solve(PlanningContext &context, PlanNetwork &network);
  std::optional<solver::Cost> costWithMore(solver::Problem &problem,
                                           const solver::Solution &solution,
                                           solver::Deadline deadline) const;
  LogicalResult takePropagated(StringRef why);
  void record(StringRef status, Objective of, std::optional<solver::Cost> value,
              std::optional<solver::Cost> bound,
              std::optional<solver::Cost> withMore = std::nullopt);
};

} // namespace

/// `of`: the time that value and bound are of.
void OptimizePass::record(StringRef status, Objective of,
                          std::optional<solver::Cost> value,
                          std::optional<solver::Cost> bound,
                          std::optional<solver::Cost> withMore) {
  Builder builder(&getContext());
  NamedAttrList plan;
  plan.set("status", builder.getStringAttr(status));
  if (value)
    plan.set("value_ps", builder.getI64IntegerAttr(*value));
  if (bound)
    plan.set("bound_ps", builder.getI64IntegerAttr(*bound));
  if (withMore)
    plan.set("more_memory_ps", builder.getI64IntegerAttr(*withMore));
  plan.set("objective", builder.getStringAttr(objectiveName(of)));
  getOperation()->setAttr(kPlan, plan.getDictionary(&getContext()));
}

/// What `--opt=propagate` gives, where the search gives nothing.
LogicalResult OptimizePass::takePropagated(StringRef why) {
  ProgramOp program = getOperation();
  program.emitWarning() << why << "; this is the propagated plan";
  OpPassManager manager(ProgramOp::getOperationName());
  manager.addPass(createShdPropagate());
  manager.addPass(createShdReplicateOpen());
  manager.addPass(createShdFusionGroups());
  ShdOptimizeOptions options;
  options.fixed = true;
  manager.addPass(createShdOptimize(options));
  if (failed(runPipeline(manager, program)))
    return failure();
  auto plan = program->getAttrOfType<DictionaryAttr>(kPlan);
  record("feasible", Objective::Upper,
         plan.getAs<IntegerAttr>("value_ps").getInt(), std::nullopt);
  return success();
}

NetworkOptions
OptimizePass::networkOptions(const PlanningContext &context) const {
  NetworkOptions options;
  options.fixed = fixed;
  if (!fixed)
    options.memoryLimit = memoryLimit >= 0
                              ? int64_t(memoryLimit)
                              : int64_t(context.machine().hbmCapacity);
  options.measureLinks = !fixed && objective == Objective::Scheduled;
  return options;
}

/// What the best plan that is found costs if each device has a GiB more;
/// nothing if that is no less.
std::optional<solver::Cost>
OptimizePass::costWithMore(solver::Problem &problem,
                           const solver::Solution &solution,
                           solver::Deadline deadline) const {
  std::optional<int64_t> capacity = problem.capacity;
  if (!capacity || *capacity >= solver::kMaxTotal - kMoreMemory ||
      deadline.expired())
    return std::nullopt;
  solver::Options options;
  options.starts.push_back(solution.assignment);
  options.timeLimitSeconds = deadline.remaining();
  problem.capacity = *capacity + kMoreMemory;
  solver::Solution more = solver::solve(problem, options);
  problem.capacity = capacity;
  return more.cost < solution.cost ? std::optional(more.cost) : std::nullopt;
}

LogicalResult OptimizePass::solve(PlanningContext &context,
                                  PlanNetwork &network) {
  ProgramOp program = getOperation();
  if (network.problem.check())
    return program.emitError("times or sizes of this program are too large to "
                             "be added up exactly: expected sums below 2^60 "
                             "picoseconds (13 days) and 2^60 bytes");
  solver::Options options;
  solver::Deadline deadline;
  if (timeLimit >= 0) {
    options.timeLimitSeconds = timeLimit;
    deadline = solver::Deadline(timeLimit);
  }
  solver::Solution solution = solver::solve(network.problem, options);
  if (solution.assignment.empty() && !network.problem.variables.empty()) {
    if (solution.status == solver::Status::Unknown && !fixed)
      return takePropagated("the search found no plan in its time");
    return program.emitError(
        "no plan has the layouts that the annotations ask for");
  }
  bool fits = solution.status == solver::Status::Optimal ||
              solution.status == solver::Status::Feasible;
  if (fits && objective != Objective::Upper)
    solution = ObjectiveSearch(context, program, network, objective,
                               networkOptions(context), deadline)
                   .run(solution);
  applyAssignment(context, network, solution.assignment);
  record(statusName(solution, fixed), fits ? objective : Objective::Upper,
         solution.cost, fits ? std::optional(solution.bound) : std::nullopt,
         fits && priceMemory && objective == Objective::Upper
             ? costWithMore(network.problem, solution, deadline)
             : std::nullopt);
  return success();
}

void OptimizePass::runOnOperation() {
  std::unique_ptr<PlanningContext> context = createContext(getOperation());
  if (!context || failed(checkFusionGroups(getOperation())))
    return signalPassFailure();
  std::variant<PlanNetwork, NoNetwork> built =
      buildNetwork(*context, getOperation(), networkOptions(*context));
  LogicalResult planned = failure();
  if (auto *network = std::get_if<PlanNetwork>(&built))
    planned = solve(*context, *network);
  else if (std::get<NoNetwork>(built) == NoNetwork::TooWide)
    planned = takePropagated("a mesh of so many axes has too many layouts to "
                             "search");
  else if (std::get<NoNetwork>(built) == NoNetwork::TooLarge)
    planned = takePropagated("a program of so many operations has too many "
                             "plans to search");
  if (failed(planned))
    signalPassFailure();
}

} // namespace shardc::shd
