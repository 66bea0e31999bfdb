//===- Optimize.cpp - shd-optimize -----------------------------*- C++ -*-===//
//
// The analysis is lib/Optimizer, the search lib/Solver; this pass only runs
// them and writes the decision into the program. Model: docs/Optimizer.md.
//
//===----------------------------------------------------------------------===//

#include "KernelOrder.h"
#include "mlir/Pass/PassManager.h"
#include "shardc/Dialect/Shd/IR/WorkOrder.h"
#include "shardc/Dialect/Shd/Transforms/ChooseOrder.h"
#include "shardc/Dialect/Shd/Transforms/DeviceBound.h"
#include "shardc/Dialect/Shd/Transforms/MergedSearch.h"
#include "shardc/Dialect/Shd/Transforms/Passes.h"
#include "shardc/Dialect/Shd/Transforms/StepLayouts.h"
#include "shardc/Optimizer/SearchStart.h"
#include "shardc/Optimizer/SearchWatch.h"
#include "shardc/Solver/Solve.h"
#include "llvm/ADT/ScopeExit.h"
#include <chrono>

using namespace mlir;

namespace shardc::shd {
#define GEN_PASS_DEF_SHDOPTIMIZE
#include "shardc/Dialect/Shd/Transforms/Passes.h.inc"

/// Entries of tables that a search may look at to be worth making once more.
static constexpr double kMaxRepeatedWork = 5e8;

/// Entries of tables that a search with less than all effort looks at for the
/// least `upper`, or with little, and a gap that will do.
static constexpr double kUpperWork = 3e8, kQuickUpperWork = 1e8,
                        kUpperTolerance = 1e-2;

static constexpr const char *kNoPlanInTime =
    "the search found no plan within the time limit";
static constexpr const char *kTooLarge =
    "times or sizes of this program are too large to be added up exactly: "
    "expected sums below 2^60 picoseconds (13 days) and 2^60 bytes";

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
  /// Of all plans, if not all were searched.
  std::optional<StringRef> searched = std::nullopt;
  /// The time ended before the search had a plan that fits.
  bool noneInTime = false;
};

const PlanRecord kNotSearched = {.status = "fixed", .searched = "nothing"};

struct OptimizePass : impl::ShdOptimizeBase<OptimizePass> {
  using ShdOptimizeBase::ShdOptimizeBase;

  void runOnOperation() override;

private:
  NetworkOptions networkOptions(const PlanningContext &context) const;
  NetworkSearchOptions searchOptions();
  LogicalResult solve(PlanningContext &context, PlanNetwork &network);
  SearchedPlan search(PlanningContext &context, const PlanNetwork &network);
  bool fitsAsItRuns(PlanningContext &context, const PlanNetwork &network,
                    const SearchedPlan &found);
  LogicalResult solveMerged(PlanningContext &context);
  LogicalResult take(PlanningContext &context, const PlanNetwork &network,
                     const SearchedPlan &found, PlanRecord plan);
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
  std::optional<OrderedPlan> recordOrder(PlanningContext &context,
                                         std::optional<int64_t> capacity);
  LogicalResult takePropagated(StringRef why, PlanRecord propagated);
  LogicalResult takeNoneInTime();
  void record(const PlanRecord &plan);
  void recordSeconds(double seconds);

  /// From the pass's start.
  solver::Deadline deadline;
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
  if (record.searched)
    plan.set("searched", builder.getStringAttr(*record.searched));
  if (record.noneInTime)
    plan.set("none_in_time", builder.getUnitAttr());
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
LogicalResult OptimizePass::takePropagated(StringRef why,
                                           PlanRecord propagated) {
  ProgramOp program = getOperation();
  program.emitWarning() << why << "; this is the propagated plan";
  program->removeAttr(kLayouts);
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
  propagated.value = plan.getAs<IntegerAttr>("value_ps").getInt();
  record(propagated);
  return success();
}

/// No plan that fits is known at the deadline.
LogicalResult OptimizePass::takeNoneInTime() {
  const std::atomic<bool> *interrupted = deadline.interruption();
  if (interrupted && *interrupted)
    return getOperation().emitError(
        "interrupted before a plan that fits was found");
  return takePropagated(
      kNoPlanInTime,
      {.status = "feasible", .searched = "nothing", .noneInTime = true});
}

NetworkOptions
OptimizePass::networkOptions(const PlanningContext &context) const {
  NetworkOptions options;
  options.fixed = fixed;
  if (!fixed)
    options.memoryLimit = memoryLimit >= 0 ? int64_t(memoryLimit)
                                           : context.machine().usableMemory();
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

NetworkSearchOptions OptimizePass::searchOptions() {
  NetworkSearchOptions options;
  options.objective = fixed ? Objective::Upper : Objective(objective);
  // Fixed layouts leave nothing to search.
  if (fixed)
    return options;
  options.maxWork =
      effort * searchWorkFor(timeLimit >= 0 ? std::optional<double>(timeLimit)
                                            : std::nullopt);
  options.isQuick = effort <= kQuickEffort;
  if (effort < 1) {
    options.maxUpperWork = options.isQuick ? kQuickUpperWork : kUpperWork;
    options.upperTolerance = kUpperTolerance;
  }
  if (const SearchWatch *watch = SearchWatch::of(&getContext()))
    options.progress = watch->progress;
  options.deadline = deadline;
  return options;
}

/// The plan that the search begins with, if it is one of this network.
static std::vector<std::vector<solver::Label>>
startsOf(const PlanNetwork &network, const SearchStart *memory) {
  const std::vector<solver::VariableData> &variables =
      network.problem.variables;
  bool isPlan =
      memory && memory->start.size() == variables.size() &&
      llvm::all_of(llvm::zip(memory->start, variables), [](const auto &pair) {
        const auto &[label, variable] = pair;
        return label < variable.costs.size();
      });
  // Nothing else asks whether a start is allowed.
  if (!isPlan || !solver::evaluate(network.problem, memory->start).cost)
    return {};
  return {memory->start};
}

/// Writes a plan that was found into the program.
LogicalResult OptimizePass::take(PlanningContext &context,
                                 const PlanNetwork &network,
                                 const SearchedPlan &found, PlanRecord plan) {
  applyAssignment(context, network, found.solution.assignment);
  plan.status = statusName(found.solution, fixed);
  plan.value = found.solution.cost;
  if (fixed && hasPlacedCopies(getOperation())) {
    // The network has no copies where layouts are fixed: a bound of it would
    // count their collectives for each reader.
    insertPlacedCopies(getOperation());
    plan.value = plan.bound = std::nullopt;
  }
  getOperation()->removeAttr(kLayouts);
  // The best of some plans is not known to be that of all.
  if (plan.searched && found.fits())
    plan.status = "feasible";
  plan.of = found.of;
  std::optional<int64_t> capacity = network.problem.capacity;
  std::optional<OrderedPlan> ordered = recordOrder(context, capacity);
  // The network counts memory in the canonical order; the plan's own may
  // need less.
  if (!found.fits() && ordered && capacity &&
      ordered->scheduled.memory.peak <= *capacity) {
    plan.status = "feasible";
    plan.bound = plan.memoryBound = std::nullopt;
    plan.noneInTime = false;
    plan.of = Objective(objective);
    plan.value = objectiveTime(ordered->scheduled.schedule, plan.of);
  }
  record(plan);
  return success();
}

/// The order of the plan, where that is not the text's.
std::optional<OrderedPlan>
OptimizePass::recordOrder(PlanningContext &context,
                          std::optional<int64_t> capacity) {
  std::optional<OrderedPlan> plan =
      fixed ? scheduleInText(context, getOperation(), capacity)
            : chooseOrder(context, getOperation(), capacity);
  if (plan && !plan->order.empty())
    getOperation()->setAttr(kWorkOrder,
                            DenseI64ArrayAttr::get(&getContext(), plan->order));
  return plan;
}

SearchedPlan OptimizePass::search(PlanningContext &context,
                                  const PlanNetwork &network) {
  SearchStart *memory = fixed ? nullptr : SearchStart::of(&getContext());
  SearchedPlan found =
      searchNetwork(context, getOperation(), network, searchOptions(),
                    startsOf(network, memory));
  if (memory)
    memory->found = found.solution.assignment;
  return found;
}

/// False for a plan that fits in the canonical order alone, or not at all.
bool OptimizePass::fitsAsItRuns(PlanningContext &context,
                                const PlanNetwork &network,
                                const SearchedPlan &found) {
  std::optional<int64_t> capacity = network.problem.capacity;
  if (!found.fits() || !capacity)
    return found.fits();
  applyAssignment(context, network, found.solution.assignment);
  std::optional<OrderedPlan> ordered =
      chooseOrder(context, getOperation(), capacity);
  removeCopies(getOperation());
  return !ordered || ordered->scheduled.memory.peak <= *capacity;
}

LogicalResult OptimizePass::solve(PlanningContext &context,
                                  PlanNetwork &network) {
  ProgramOp program = getOperation();
  if (network.problem.check())
    return program.emitError(kTooLarge);
  NetworkSearchOptions options = searchOptions();
  OwningOpRef<ModuleOp> unplanned;
  if (priceMemory && options.objective != Objective::Upper) {
    unplanned = ModuleOp::create(program.getLoc());
    unplanned->push_back(program->clone());
  }
  OwningOpRef<ModuleOp> unsearched = ModuleOp::create(program.getLoc());
  if (!fixed)
    unsearched->push_back(program->clone());
  SearchedPlan found = search(context, network);
  // The network counts memory in the canonical order, in which kernels may
  // not allow the plan to run: then again in an order in which they do.
  std::optional<KernelOrder> order;
  auto restore = llvm::make_scope_exit([&] {
    if (order)
      order->restore();
  });
  if (!fixed && !options.deadline.expired() &&
      !fitsAsItRuns(context, network, found) && KernelOrder::moves(program)) {
    // Without the pins of plans that were tried.
    auto copy = *unsearched->getOps<ProgramOp>().begin();
    program->setAttrs(copy->getAttrDictionary());
    program.getBody().takeBody(copy.getBody());
    order.emplace(program);
    NetworkOptions how = networkOptions(context);
    how.deadline = deadline;
    std::variant<PlanNetwork, NoNetwork> built =
        buildNetwork(context, program, how);
    auto *moved = std::get_if<PlanNetwork>(&built);
    if (!moved || moved->problem.check())
      return takeNoneInTime();
    network = std::move(*moved);
    found = search(context, network);
  }
  const solver::Solution &solution = found.solution;
  const std::atomic<bool> *interrupted = options.deadline.interruption();
  if (solution.status == solver::Status::Unknown && interrupted && *interrupted)
    return takeNoneInTime();
  // A part of a plan that was left out takes so long on some resource at least.
  if (network.beyond &&
      (!found.fits() ||
       solution.cost >=
           *network.beyond / solver::Cost(network.resources.size() + 1)))
    return program.emitError(kTooLarge);
  if (solution.assignment.empty() && !network.problem.variables.empty()) {
    if (solution.status == solver::Status::Unknown && !fixed)
      return takeNoneInTime();
    return program.emitError("no plan has the annotated layouts");
  }
  PlanRecord plan;
  if (found.fits()) {
    plan.bound = std::max<solver::Cost>(solution.bound, 0);
    if (priceMemory && !options.deadline.expired())
      plan.withMore = valueWithMore(network.problem, solution, unplanned.get(),
                                    options.deadline);
  } else {
    plan.memoryBound = solution.peakBound;
    plan.noneInTime = solution.status == solver::Status::Unknown &&
                      options.deadline.expired();
  }
  return take(context, network, found, std::move(plan));
}

/// A plan on a mesh of too many axes to search all layouts.
LogicalResult OptimizePass::solveMerged(PlanningContext &context) {
  NetworkOptions options = networkOptions(context);
  NetworkSearchOptions search = searchOptions();
  std::optional<solver::Cost> bound;
  if (std::optional<double> seconds = boundByWork(getOperation(), search))
    bound = solver::Cost(*seconds * 1e12);
  std::optional<MergedPlan> merged =
      searchMergedAxes(context, getOperation(), options, search, bound);
  if (!merged && search.deadline.expired())
    return takeNoneInTime();
  if (!merged)
    return takePropagated(
        "a mesh of so many axes has too many layouts to search", kNotSearched);
  options.choice = &merged->choice;
  std::variant<PlanNetwork, NoNetwork> built =
      buildNetwork(context, getOperation(), options);
  PlanRecord plan;
  plan.searched = "around merged axes";
  if (merged->found.fits() && bound && *bound <= merged->found.solution.cost)
    plan.bound = bound;
  return take(context, std::get<PlanNetwork>(built), merged->found,
              std::move(plan));
}

void OptimizePass::runOnOperation() {
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
  std::unique_ptr<PlanningContext> context = createContext(getOperation());
  if (!context || failed(checkFusionGroups(getOperation())))
    return signalPassFailure();
  if (!fixed) {
    const SearchWatch *watch = SearchWatch::of(&getContext());
    deadline = solver::Deadline(
        timeLimit >= 0 ? std::optional<double>(timeLimit) : std::nullopt,
        watch ? watch->interrupted : nullptr);
  }
  NetworkOptions how = networkOptions(*context);
  how.deadline = deadline;
  std::variant<PlanNetwork, NoNetwork> built =
      buildNetwork(*context, getOperation(), how);
  LogicalResult planned = failure();
  if (auto *network = std::get_if<PlanNetwork>(&built))
    planned = solve(*context, *network);
  else if (std::get<NoNetwork>(built) == NoNetwork::TooWide)
    planned = solveMerged(*context);
  else if (std::get<NoNetwork>(built) == NoNetwork::TooLarge)
    planned = takePropagated("a program of so many operations has too many "
                             "plans to search",
                             kNotSearched);
  else if (std::get<NoNetwork>(built) == NoNetwork::NoTime)
    planned = takeNoneInTime();
  if (failed(planned))
    return signalPassFailure();
  if (!fixed && timeLimit >= 0)
    recordSeconds(std::chrono::duration<double>(Clock::now() - start).count());
}

} // namespace shardc::shd
