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

/// Part of a time limit for plans in the canonical order, and how many of
/// these the search over all orders begins with: chains of one order are longer
/// than those of all, and guide it better.
static constexpr double kTextPart = 0.5;
static constexpr size_t kKeptPlans = 16, kQuickPlans = 4;
/// Part of a search's work for the search over all orders.
static constexpr double kAllOrdersPart = 0.5;
/// With more than the usual work, searches follow each other, each with so many
/// times the work of the one before: how a search goes depends on its work, and
/// alone a longer one may find less.
static constexpr double kMoreWork = 2;

/// The plan of the least `upper`, with which every search begins.
static solver::Solution
solveUpper(const PlanNetwork &network, const NetworkSearchOptions &options,
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

  std::vector<Assignment> findInText(const solver::Solution &first) const;
  std::optional<solver::Solution> runOnce(const solver::Solution &first) const;
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

/// The fastest plans that a search finds which keeps the canonical order. Its
/// bound is none of other orders.
std::vector<TimeSearch::Assignment>
TimeSearch::findInText(const solver::Solution &first) const {
  ObjectiveSearchOptions search = optionsFor(ChainOrders::Text);
  search.proves = false;
  search.cutoff = solver::kMaxTotal;
  search.deadline = options.deadline.part(kTextPart);
  if (options.progress)
    search.progress = [&](const solver::SearchProgress &progress) {
      options.progress({progress.cost, std::nullopt});
    };
  PlanEvaluator evaluate(context, program, network, ChainOrders::Text);
  std::vector<std::pair<Picoseconds, Assignment>> plans;
  searchObjective(
      network, first,
      [&](ArrayRef<solver::Label> plan) {
        std::optional<EvaluatedPlan> evaluated = evaluate(plan);
        if (evaluated)
          plans.push_back({evaluated->scheduled, plan.vec()});
        return evaluated;
      },
      search);
  llvm::sort(plans);
  size_t most = options.isQuick ? kQuickPlans : kKeptPlans;
  plans.resize(std::min(plans.size(), most));
  std::vector<Assignment> kept;
  for (auto &[time, plan] : plans)
    kept.push_back(std::move(plan));
  return kept;
}

std::optional<solver::Solution>
TimeSearch::runOnce(const solver::Solution &first) const {
  ObjectiveSearchOptions search = optionsFor(ChainOrders::Any);
  if (options.objective == Objective::Scheduled &&
      !options.deadline.expired()) {
    std::vector<Assignment> found = findInText(first);
    search.starts.insert(search.starts.begin(), found.begin(), found.end());
    search.maxWork *= kAllOrdersPart;
  }
  return searchObjective(network, first,
                         PlanEvaluator(context, program, network), search);
}

std::optional<solver::Solution> TimeSearch::run(const solver::Solution &first) {
  work = std::min(options.maxWork, kUsualSearchWork);
  std::optional<solver::Solution> best = runOnce(first);
  double left = options.maxWork - work;
  while (best && best->bound < best->cost && kMoreWork * work <= left &&
         !options.deadline.expired()) {
    work *= kMoreWork;
    left -= work;
    starts = {best->assignment};
    bound = best->bound;
    std::optional<solver::Solution> next = runOnce(first);
    // One that is cut short may not have come to its starts.
    if (next && next->cost <= best->cost)
      best = std::move(next);
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
