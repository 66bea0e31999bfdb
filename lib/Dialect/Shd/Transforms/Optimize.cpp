//===- Optimize.cpp - shd-optimize -----------------------------*- C++ -*-===//
//
// The analysis is lib/Optimizer, the search lib/Solver; this pass only runs
// them and writes the decision into the program. Model: docs/Optimizer.md.
//
//===----------------------------------------------------------------------===//

#include "mlir/Pass/PassManager.h"
#include "shardc/Dialect/Shd/Transforms/Passes.h"
#include "shardc/Dialect/Shd/Transforms/PlanEvaluator.h"
#include "shardc/Optimizer/Network.h"
#include "shardc/Optimizer/SearchWatch.h"
#include "shardc/Solver/Solve.h"
#include <chrono>

using namespace mlir;

namespace shardc::shd {
#define GEN_PASS_DEF_SHDOPTIMIZE
#include "shardc/Dialect/Shd/Transforms/Passes.h.inc"

/// Entries of tables that a search may look at to be worth making once more.
static constexpr double kMaxRepeatedWork = 5e8;

namespace {

StringRef statusName(const solver::Solution &solution, bool fixed) {
  if (solution.status == solver::Status::Infeasible ||
      solution.status == solver::Status::Unknown)
    return "infeasible";
  if (fixed)
    return "fixed";
  return solution.status == solver::Status::Optimal ? "optimal" : "feasible";
}

/// Status, value and bounds of a plan.
struct PlanRecord {
  StringRef status;
  /// The time that the value and its bound are of.
  Objective of = Objective::Upper;
  std::optional<solver::Cost> value, bound;
  /// The value with a GiB more on each device.
  std::optional<solver::Cost> withMore;
  /// No plan takes less memory, in bytes.
  std::optional<int64_t> memoryBound;
};

struct OptimizePass : impl::ShdOptimizeBase<OptimizePass> {
  using ShdOptimizeBase::ShdOptimizeBase;

  void runOnOperation() override;

private:
  NetworkOptions networkOptions(const PlanningContext &context) const;
  LogicalResult solve(PlanningContext &context, PlanNetwork &network);
  std::optional<solver::Cost> valueWithMore(solver::Problem &problem,
                                            const solver::Solution &best,
                                            ModuleOp unplanned,
                                            solver::Deadline deadline);
  std::optional<solver::Cost> costWithin(int64_t capacity,
                                         solver::Problem &problem,
                                         const solver::Solution &known,
                                         solver::Deadline deadline) const;
  std::optional<solver::Cost> valueWithin(int64_t capacity, ModuleOp unplanned,
                                          solver::Deadline deadline) const;
  LogicalResult takePropagated(StringRef why);
  void record(const PlanRecord &plan);
  void recordSeconds(double seconds);
};

} // namespace

void OptimizePass::record(const PlanRecord &record) {
  Builder builder(&getContext());
  NamedAttrList plan;
  plan.set("status", builder.getStringAttr(record.status));
  if (record.value)
    plan.set("value_ps", builder.getI64IntegerAttr(*record.value));
  if (record.bound)
    plan.set("bound_ps", builder.getI64IntegerAttr(*record.bound));
  if (record.withMore)
    plan.set("more_memory_ps", builder.getI64IntegerAttr(*record.withMore));
  if (record.memoryBound)
    plan.set("memory_bound", builder.getI64IntegerAttr(*record.memoryBound));
  plan.set("objective", builder.getStringAttr(objectiveName(record.of)));
  getOperation()->setAttr(kPlan, plan.getDictionary(&getContext()));
}

/// How long the search took: only where that decides the plan, since the same
/// input must give the same report.
void OptimizePass::recordSeconds(double seconds) {
  NamedAttrList plan(getOperation()->getAttrOfType<DictionaryAttr>(kPlan));
  plan.set("search_s", Builder(&getContext()).getF64FloatAttr(seconds));
  getOperation()->setAttr(kPlan, plan.getDictionary(&getContext()));
}

/// Falls back to the plan of `--opt=propagate` where the search has none.
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
  PlanRecord propagated;
  propagated.status = "feasible";
  propagated.value = plan.getAs<IntegerAttr>("value_ps").getInt();
  record(propagated);
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
  options.measureResources = !fixed && objective != Objective::Upper;
  options.measureLinks = !fixed && objective == Objective::Scheduled;
  return options;
}

/// The value of the best plan with a GiB more on each device; nothing if that
/// is no less, or not known: a long search is not made twice.
std::optional<solver::Cost>
OptimizePass::valueWithMore(solver::Problem &problem,
                            const solver::Solution &best, ModuleOp unplanned,
                            solver::Deadline deadline) {
  std::optional<int64_t> capacity = problem.capacity;
  if (!capacity || *capacity >= solver::kMaxTotal - kMoreMemory ||
      best.work > kMaxRepeatedWork || deadline.expired())
    return std::nullopt;
  std::optional<solver::Cost> value =
      objective == Objective::Upper
          ? costWithin(*capacity + kMoreMemory, problem, best, deadline)
          : valueWithin(*capacity + kMoreMemory, unplanned, deadline);
  return value && *value < best.cost ? value : std::nullopt;
}

/// The network solved with another capacity, from what is known.
std::optional<solver::Cost>
OptimizePass::costWithin(int64_t capacity, solver::Problem &problem,
                         const solver::Solution &known,
                         solver::Deadline deadline) const {
  solver::Options options;
  options.starts.push_back(known.assignment);
  options.multipliers = known.multipliers;
  options.timeLimitSeconds = deadline.remaining();
  std::optional<int64_t> before = problem.capacity;
  problem.capacity = capacity;
  solver::Solution solution = solver::solve(problem, options);
  problem.capacity = before;
  return solution.cost;
}

/// Seconds of a time limit that may be spent on the worth of more memory.
static constexpr double kMoreSeconds = 5;

/// The program planned with another limit.
std::optional<solver::Cost>
OptimizePass::valueWithin(int64_t capacity, ModuleOp unplanned,
                          solver::Deadline deadline) const {
  ShdOptimizeOptions options;
  options.objective = objective;
  options.memoryLimit = capacity;
  if (timeLimit >= 0)
    options.timeLimit =
        std::min(deadline.remaining().value_or(0), kMoreSeconds);
  // Its diagnostics have been emitted for the program itself.
  ScopedDiagnosticHandler silent(unplanned.getContext(),
                                 [](Diagnostic &) { return success(); });
  PassManager manager(unplanned.getContext());
  manager.nest<ProgramOp>().addPass(createShdOptimize(options));
  if (failed(manager.run(unplanned)))
    return std::nullopt;
  auto plan = (*unplanned.getOps<ProgramOp>().begin())
                  ->getAttrOfType<DictionaryAttr>(kPlan);
  return plan.getAs<IntegerAttr>("value_ps").getInt();
}

LogicalResult OptimizePass::solve(PlanningContext &context,
                                  PlanNetwork &network) {
  ProgramOp program = getOperation();
  if (network.problem.check())
    return program.emitError("times or sizes of this program are too large to "
                             "be added up exactly: expected sums below 2^60 "
                             "picoseconds (13 days) and 2^60 bytes");
  // Fixed layouts leave nothing to search.
  const SearchWatch *watch = fixed ? nullptr : SearchWatch::of(&getContext());
  solver::Options options;
  if (!fixed && timeLimit >= 0)
    options.timeLimitSeconds = timeLimit;
  if (watch) {
    options.interrupted = watch->interrupted;
    if (objective == Objective::Upper)
      options.progress = watch->progress;
  }
  solver::Deadline deadline(options.timeLimitSeconds, options.interrupted);
  solver::Solution solution = solver::solve(network.problem, options);
  bool interrupted = options.interrupted && *options.interrupted;
  if (solution.status == solver::Status::Unknown && interrupted)
    return program.emitError("interrupted before a plan that fits was found");
  if (solution.assignment.empty() && !network.problem.variables.empty()) {
    if (solution.status == solver::Status::Unknown && !fixed)
      return takePropagated("the search found no plan within the time limit");
    return program.emitError("no plan has the annotated layouts");
  }
  bool fits = solution.status == solver::Status::Optimal ||
              solution.status == solver::Status::Feasible;
  OwningOpRef<ModuleOp> unplanned;
  if (fits && priceMemory && objective != Objective::Upper) {
    unplanned = ModuleOp::create(program.getLoc());
    unplanned->push_back(program->clone());
  }
  Objective minimised = Objective::Upper;
  if (fits && objective != Objective::Upper) {
    ObjectiveSearchOptions search;
    search.objective = objective;
    search.matmulsOverlap = context.machine().collectiveMatmul;
    search.maxWork = searchWorkFor(options.timeLimitSeconds);
    search.deadline = deadline;
    if (watch)
      search.progress = watch->progress;
    PlanEvaluator evaluate(context, program, network);
    // A plan that cannot be made explicit stays the one of the least `upper`.
    if (auto found = searchObjective(network, solution, evaluate, search)) {
      solution = std::move(*found);
      minimised = objective;
    }
  }
  applyAssignment(context, network, solution.assignment);
  PlanRecord plan;
  plan.status = statusName(solution, fixed);
  plan.value = solution.cost;
  if (fits) {
    plan.of = minimised;
    plan.bound = std::max<solver::Cost>(solution.bound, 0);
    if (priceMemory && !deadline.expired())
      plan.withMore =
          valueWithMore(network.problem, solution, unplanned.get(), deadline);
  } else {
    plan.memoryBound = solution.peakBound;
  }
  record(plan);
  return success();
}

void OptimizePass::runOnOperation() {
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
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
    return signalPassFailure();
  if (!fixed && timeLimit >= 0)
    recordSeconds(std::chrono::duration<double>(Clock::now() - start).count());
}

} // namespace shardc::shd
