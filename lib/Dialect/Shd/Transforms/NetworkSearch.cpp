//===- NetworkSearch.cpp - The best plan of a network ----------*- C++ -*-===//

#include "shardc/Dialect/Shd/Transforms/NetworkSearch.h"
#include "shardc/Cost/Schedule.h"
#include "shardc/Dialect/Shd/IR/Host.h"
#include "shardc/Dialect/Shd/IR/Serving.h"
#include "shardc/Dialect/Shd/Transforms/PlanEvaluator.h"
#include "shardc/Solver/Polish.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

/// Parts of a time limit and of a search's work for plans in the canonical
/// order: chains of one order are longer than those of all, and guide the
/// search over all orders better. The latter has the rest of the work, or at
/// least so much: one problem may take more than a part.
static constexpr double kTextPart = 0.5, kTextWork = 0.3, kAllOrdersWork = 0.5;
/// How many of the fastest plans of one search the next begins with.
static constexpr size_t kKeptPlans = 16, kQuickPlans = 4;
/// With more than the usual work, searches follow each other, each with so many
/// times the work of the one before: how a search goes depends on its work, and
/// alone a longer one may find less.
static constexpr double kMoreWork = 2;

solver::Solution
shardc::shd::solveUpper(const PlanNetwork &network,
                        const NetworkSearchOptions &options,
                        std::vector<std::vector<solver::Label>> starts) {
  solver::Options how;
  how.starts = std::move(starts);
  how.timeLimitSeconds = options.deadline.remaining();
  how.interrupted = options.deadline.interruption();
  if (options.maxUpperWork) {
    how.maxWork = *options.maxUpperWork;
    how.tolerance = options.upperTolerance;
  }
  if (options.objective == Objective::Upper) {
    how.effort = std::max(1.0, options.maxWork / kUsualSearchWork);
    how.cutoff = options.cutoff;
    how.progress = options.progress;
  }
  return solver::solve(network.problem, how);
}

namespace {
/// The search for `lower` or `scheduled`.
class TimeSearch {
public:
  TimeSearch(PlanningContext &context, ProgramOp program,
             const PlanNetwork &network, const NetworkSearchOptions &options,
             std::vector<std::vector<solver::Label>> starts)
      : context(context), program(program), network(network), options(options),
        starts(std::move(starts)) {}

  std::optional<solver::Solution> run(const solver::Solution &first);

private:
  using Assignment = std::vector<solver::Label>;

  struct Found {
    std::optional<solver::Solution> best;
    /// The fastest plans, the fastest first.
    std::vector<Assignment> plans;
  };

  Found search(const solver::Solution &first,
               const ObjectiveSearchOptions &how) const;
  Found searchInText(const solver::Solution &first) const;
  Found runOnce(const solver::Solution &first) const;
  ObjectiveSearchOptions optionsFor(ChainOrders orders) const;

  PlanningContext &context;
  ProgramOp program;
  const PlanNetwork &network;
  const NetworkSearchOptions &options;
  std::vector<Assignment> starts;
  double work = 0;
  solver::Cost bound = 0;
};
} // namespace

static bool sendsToHost(ProgramOp program) {
  return program
      ->walk([](UpdateOp update) {
        return copiesToHost(update) ? WalkResult::interrupt()
                                    : WalkResult::advance();
      })
      .wasInterrupted();
}

ObjectiveSearchOptions TimeSearch::optionsFor(ChainOrders orders) const {
  ObjectiveSearchOptions search;
  search.objective = options.objective;
  search.orders = orders;
  search.matmulsOverlap = context.machine().collectiveMatmul;
  // The network counts copies to the host and chunks of collective matmuls,
  // which slow nothing down, among the collectives; without the slowdown the
  // bound is weaker, but holds.
  if (!sendsToHost(program) && !context.machine().collectiveMatmul)
    search.slowdown = slowdownOf(context.machine());
  search.maxWork = work;
  search.bound = bound;
  search.isQuick = options.isQuick;
  search.cutoff = options.cutoff.value_or(search.cutoff);
  search.deadline = options.deadline;
  search.progress = options.progress;
  search.starts = starts;
  return search;
}

TimeSearch::Found TimeSearch::search(const solver::Solution &first,
                                     const ObjectiveSearchOptions &how) const {
  PlanEvaluator evaluate(context, program, network, how.orders);
  std::vector<std::pair<Picoseconds, Assignment>> plans;
  Found found;
  found.best = searchObjective(
      network, first,
      [&](ArrayRef<solver::Label> plan) {
        std::optional<EvaluatedPlan> evaluated = evaluate(plan);
        if (evaluated)
          plans.push_back(
              {objectiveTime(*evaluated, how.objective), plan.vec()});
        return evaluated;
      },
      how);
  llvm::sort(plans);
  size_t most = options.isQuick ? kQuickPlans : kKeptPlans;
  plans.resize(std::min(plans.size(), most));
  for (auto &[time, plan] : plans)
    found.plans.push_back(std::move(plan));
  return found;
}

/// A search that keeps the canonical order. Its bound is none of other orders.
TimeSearch::Found
TimeSearch::searchInText(const solver::Solution &first) const {
  ObjectiveSearchOptions how = optionsFor(ChainOrders::Text);
  how.proves = false;
  how.maxWork *= kTextWork;
  how.cutoff = solver::kMaxTotal;
  how.deadline = options.deadline.part(kTextPart);
  if (options.progress)
    how.progress = [&](const solver::SearchProgress &progress) {
      options.progress({progress.cost, std::nullopt});
    };
  return search(first, how);
}

TimeSearch::Found TimeSearch::runOnce(const solver::Solution &first) const {
  ObjectiveSearchOptions how = optionsFor(ChainOrders::Any);
  if (options.objective == Objective::Scheduled &&
      !options.deadline.expired()) {
    Found inText = searchInText(first);
    llvm::append_range(how.starts, inText.plans);
    double spent = inText.best ? inText.best->work - first.work : 0;
    how.maxWork = std::max(kAllOrdersWork * work, work - spent);
  }
  return search(first, how);
}

std::optional<solver::Solution> TimeSearch::run(const solver::Solution &first) {
  work = std::min(options.maxWork, kUsualSearchWork);
  Found found = runOnce(first);
  std::optional<solver::Solution> best = std::move(found.best);
  double left = options.maxWork - work;
  while (best && best->bound < best->cost && kMoreWork * work <= left &&
         !options.deadline.expired()) {
    work *= kMoreWork;
    left -= work;
    starts = std::move(found.plans);
    starts.insert(starts.begin(), best->assignment);
    bound = best->bound;
    found = runOnce(first);
    // One that is cut short may not have come to its starts.
    if (found.best && found.best->cost <= best->cost)
      best = std::move(found.best);
  }
  return best;
}

/// Takes less memory where that takes no longer. Of a phase of serving it
/// might: where caches lie decides what moves from prefill to decode.
static void polishPlan(PlanningContext &context, ProgramOp program,
                       const PlanNetwork &network, SearchedPlan &found) {
  if (Serving::of(program))
    return;
  std::vector<solver::Label> polished = found.solution.assignment;
  solver::polishChains(network.problem, polished);
  if (polished == found.solution.assignment)
    return;
  if (found.of != Objective::Upper) {
    std::optional<EvaluatedPlan> times =
        PlanEvaluator(context, program, network)(polished);
    if (!times || objectiveTime(*times, found.of) > found.solution.cost)
      return;
    found.solution.cost = objectiveTime(*times, found.of);
  }
  found.solution.assignment = std::move(polished);
}

SearchedPlan
shardc::shd::searchNetwork(PlanningContext &context, ProgramOp program,
                           const PlanNetwork &network,
                           const NetworkSearchOptions &options,
                           std::vector<std::vector<solver::Label>> starts) {
  SearchedPlan found{solveUpper(network, options, starts)};
  if (!found.fits())
    return found;
  // A plan that cannot be made explicit stays the one of the least `upper`.
  if (options.objective != Objective::Upper)
    if (auto better =
            TimeSearch(context, program, network, options, std::move(starts))
                .run(found.solution)) {
      found.solution = std::move(*better);
      found.of = options.objective;
    }
  if (!options.deadline.expired())
    polishPlan(context, program, network, found);
  return found;
}
