//===- ObjectiveSearch.cpp - Plans for times that are no sums -------------===//

#include "ObjectiveSearch.h"
#include "mlir/Pass/PassManager.h"
#include "shardc/Dialect/Shd/Transforms/Passes.h"
#include "shardc/Report/ScheduledProgram.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

/// Weights are integers that add up to this.
static constexpr int64_t kUnit = 1024;
/// Networks solved for a bound, at most.
static constexpr unsigned kMaxBounds = 12;
/// Plans that leave memory free, at most.
static constexpr unsigned kMaxRooms = 5;
/// What is left to gain from further weights is not worth it.
static constexpr double kConverged = 1e-3;
/// Networks solved in all: so many that their tables have this many entries,
/// but some at least.
static constexpr double kMaxEntries = 8e6;
static constexpr double kMinNetworks = 3, kMaxNetworks = 30;
/// Gaps of solutions that are only tried, and of bounds at mixed weights.
static constexpr double kRoughGap = 1e-3, kFineGap = 1e-5;
/// Between the weights of the bound (0) and those of `upper` (1).
static constexpr double kSurrogates[] = {0.5, 0.125};
/// Rounds of fictitious play for the next weights.
static constexpr unsigned kPlays = 20000;

namespace {
/// How many networks like this one may be solved.
unsigned affordable(const solver::Problem &problem) {
  double entries = 1;
  for (const solver::Table &table : problem.tables)
    entries += table.costs.size();
  return unsigned(
      std::clamp(kMaxEntries / entries, kMinNetworks, kMaxNetworks));
}

/// What a row of weights gives of a plan's times.
double meanUnder(ArrayRef<double> weights, ArrayRef<double> rows) {
  double sum = 0;
  for (auto [weight, row] : llvm::zip_equal(weights, rows))
    sum += weight * row;
  return sum;
}
} // namespace

static OwningOpRef<ModuleOp> copyOf(ProgramOp program) {
  OwningOpRef<ModuleOp> copy = ModuleOp::create(program.getLoc());
  copy->push_back(program->clone());
  return copy;
}

static ProgramOp programOf(ModuleOp module) {
  return *module.getOps<ProgramOp>().begin();
}

bool ObjectiveSearch::isKnown(const std::vector<solver::Label> &plan) const {
  return llvm::any_of(
      trials, [&](const Trial &trial) { return trial.assignment == plan; });
}

/// Makes the plan that `module` was given explicit, and schedules it.
void ObjectiveSearch::addTrial(ModuleOp module,
                               std::vector<solver::Label> assignment) {
  PassManager manager(module.getContext());
  OpPassManager &nested = manager.nest<ProgramOp>();
  nested.addPass(createShdInsertCollectives());
  nested.addPass(createShdAnnotateCost());
  if (failed(manager.run(module)))
    return;
  ScheduledProgram scheduled =
      scheduleProgram(programOf(module), context.model, memoryLimit);
  const Schedule &schedule = scheduled.schedule;
  Trial trial;
  trial.assignment = std::move(assignment);
  trial.rows.push_back(double(schedule.device));
  trial.rows.insert(trial.rows.end(), schedule.busy.begin(),
                    schedule.busy.end());
  trial.value =
      objective == Objective::Lower ? schedule.lower : schedule.scheduled;
  trial.upper = schedule.upper;
  trial.memoryCosts = scheduled.memoryCosts;
  if (memoryLimit)
    trial.missingBytes = scheduled.unlimitedPeak - *memoryLimit;
  for (const Chain &chain : chains)
    trial.rows.push_back(
        double(lengthOf(chain, network.links, trial.assignment)));
  trials.push_back(std::move(trial));
  if (objective == Objective::Scheduled)
    addChain(trials.back().assignment);
}

/// One more row: the plan's longest chain.
void ObjectiveSearch::addChain(const std::vector<solver::Label> &assignment) {
  Chain chain = longestChain(network.graph, network.links, assignment,
                             context.machine().collectiveMatmul);
  if (llvm::is_contained(chains, chain))
    return;
  for (Trial &trial : trials)
    trial.rows.push_back(
        double(lengthOf(chain, network.links, trial.assignment)));
  chains.push_back(std::move(chain));
}

/// The first of the best.
const ObjectiveSearch::Trial &ObjectiveSearch::best() const {
  return *llvm::min_element(trials, [](const Trial &a, const Trial &b) {
    return std::pair(a.value, a.upper) < std::pair(b.value, b.upper);
  });
}

Weights ObjectiveSearch::integral(const Rows &weights) const {
  Weights result;
  result.collectives = 0;
  int64_t left = kUnit;
  size_t numNetworks = weights.size() - 1 - chains.size();
  for (auto [row, weight] : llvm::enumerate(llvm::drop_begin(weights))) {
    int64_t rounded = std::min<int64_t>(left, std::llround(weight * kUnit));
    left -= rounded;
    if (row < numNetworks) {
      result.networks.push_back(rounded);
      continue;
    }
    if (rounded > 0)
      for (auto [link, runs] : chains[row - numNetworks])
        result.chain[link] += runs * rounded;
  }
  result.device = left;
  return result;
}

/// Solves the network with other weights; nothing if that is not to be had.
std::optional<solver::Solution> ObjectiveSearch::solveWith(Weights weights,
                                                           double tolerance) {
  if (deadline.expired() || networksLeft == 0)
    return std::nullopt;
  --networksLeft;
  options.weights = std::move(weights);
  OwningOpRef<ModuleOp> copy = copyOf(programOf(*unplanned));
  std::variant<PlanNetwork, NoNetwork> built =
      buildNetwork(context, programOf(*copy), options);
  auto *weighed = std::get_if<PlanNetwork>(&built);
  if (!weighed || weighed->problem.check())
    return std::nullopt;
  solver::Options how;
  how.tolerance = tolerance;
  how.timeLimitSeconds = deadline.remaining();
  how.interrupted = deadline.interruption();
  for (const Trial &trial : trials)
    how.starts.push_back(trial.assignment);
  solver::Solution solution = solver::solve(weighed->problem, how);
  bool fits = solution.status == solver::Status::Optimal ||
              solution.status == solver::Status::Feasible;
  if (fits && !isKnown(solution.assignment)) {
    applyAssignment(context, *weighed, solution.assignment);
    addTrial(*copy, solution.assignment);
  }
  if (progress)
    progress({best().value, bound});
  return solution;
}

/// Solves for the least weighted mean.
void ObjectiveSearch::raiseBound(const Rows &weights) {
  Weights rounded = integral(weights);
  bool isPure = llvm::any_of(
      weights, [](double weight) { return weight > 1 - 0.5 / kUnit; });
  // A plan of which one row takes longer than the best is no better.
  rounded.limit = best().value;
  std::optional<solver::Solution> solution =
      solveWith(std::move(rounded), isPure ? 0 : kFineGap);
  if (!solution)
    return;
  solver::Cost proven = (solution->bound + kUnit - 1) / kUnit;
  if (solution->status == solver::Status::Infeasible)
    proven = best().value;
  proven = std::min<solver::Cost>(proven, best().value);
  if (proven <= bound)
    return;
  bound = proven;
  boundWeights = weights;
}

/// Weights at which the known plans bound best: the mixed strategy of who
/// weighs, in the game against who picks a plan. By fictitious play.
ObjectiveSearch::Play ObjectiveSearch::bestWeights() const {
  size_t size = trials.front().rows.size();
  Rows counts(size, 0), taken(size, 0);
  Play best{Rows(size, 0), -1};
  for (unsigned play = 1; play <= kPlays; ++play) {
    size_t row = llvm::max_element(taken) - taken.begin();
    counts[row] += 1;
    const Trial &answer =
        *llvm::min_element(trials, [&](const Trial &a, const Trial &b) {
          return meanUnder(counts, a.rows) < meanUnder(counts, b.rows);
        });
    for (auto [sum, each] : llvm::zip_equal(taken, answer.rows))
      sum += each;
    double mean = meanUnder(counts, answer.rows) / play;
    if (mean <= best.mean)
      continue;
    best.mean = mean;
    for (auto [weight, count] : llvm::zip_equal(best.weights, counts))
      weight = count / play;
  }
  return best;
}

/// Weights far from any tried are good for the known plans alone: halfway to
/// those of the bound, if they did not help.
void ObjectiveSearch::raiseBounds() {
  bool isCareful = false;
  for (unsigned i = 0; i < kMaxBounds && bound < best().value; ++i) {
    Play play = bestWeights();
    if (play.mean <= bound * (1 + kConverged) && bound > 0)
      return;
    boundWeights.resize(play.weights.size(), 0);
    if (isCareful)
      for (auto [weight, other] : llvm::zip_equal(play.weights, boundWeights))
        weight = (weight + other) / 2;
    solver::Cost last = bound;
    size_t known = trials.size();
    raiseBound(play.weights);
    bool helped = bound > last;
    if (!helped && trials.size() == known && !isCareful)
      return;
    isCareful = !helped;
  }
}

/// What fills the memory leaves none to overlap: plans that leave as much as
/// the best one lacks.
void ObjectiveSearch::tryWithRoom() {
  int64_t room = 0, step = 0;
  for (unsigned i = 0; i < kMaxRooms && memoryLimit; ++i) {
    const Trial &fullest = best();
    if (fullest.memoryCosts == 0 || fullest.missingBytes <= 0)
      return;
    step = i == 0 ? fullest.missingBytes : std::min(step, fullest.missingBytes);
    options.memoryLimit = *memoryLimit - std::min(room + step, *memoryLimit);
    std::optional<solver::Solution> solution = solveWith(Weights(), kRoughGap);
    options.memoryLimit = memoryLimit;
    if (solution && solution->status != solver::Status::Infeasible)
      room += step;
    else
      step /= 2;
  }
}

/// Of the many plans of one bound, some leave less to overlap.
void ObjectiveSearch::trySurrogates(const Rows &weights) {
  for (double share : kSurrogates) {
    Rows part;
    for (double weight : weights)
      part.push_back(weight * (1 - share));
    Weights mixed = integral(part); // what is left goes to the device
    mixed.collectives = std::llround(share * kUnit);
    mixed.limit = best().value;
    solveWith(std::move(mixed), kRoughGap);
  }
}

solver::Solution ObjectiveSearch::run(const solver::Solution &first) {
  unplanned = copyOf(program);
  applyAssignment(context, network, first.assignment);
  addTrial(*copyOf(program), first.assignment);
  removeCopies(program);
  solver::Solution result = first;
  if (trials.empty())
    return result;
  networksLeft = affordable(network.problem);
  tryWithRoom();
  raiseBounds();
  // Plans that traded one row for another may be forbidden by now: what is left
  // is bound by the longest row of the best.
  const Rows &rows = best().rows;
  Rows longest(rows.size(), 0);
  longest[llvm::max_element(rows) - rows.begin()] = 1;
  if (bound < best().value)
    raiseBound(longest);
  if (bound < best().value)
    trySurrogates(bestWeights().weights);
  result.assignment = best().assignment;
  result.cost = best().value;
  result.bound = std::min<solver::Cost>(bound, result.cost);
  result.status = result.bound == result.cost ? solver::Status::Optimal
                                              : solver::Status::Feasible;
  return result;
}
