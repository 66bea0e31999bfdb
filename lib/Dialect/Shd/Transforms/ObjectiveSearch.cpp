//===- ObjectiveSearch.cpp - Plans for times that are no sums -------------===//

#include "ObjectiveSearch.h"
#include "mlir/Pass/PassManager.h"
#include "shardc/Dialect/Shd/Transforms/Passes.h"
#include "shardc/Schedule/ScheduledProgram.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

/// Weights add up to a power of two, at most this.
static constexpr int64_t kMaxUnit = 1024;
/// Plans that leave memory free, at most.
static constexpr unsigned kMaxRooms = 5;
/// What is left to gain from further weights is not worth it.
static constexpr double kConverged = 1e-3;
/// Entries of tables that may be looked at in all, and the seconds that a limit
/// must exceed for more; for room in memory; and for one problem, more if there
/// is more in all, the exact ones a part of what is left.
static constexpr double kUsualWork = 2.8e9, kUsualSeconds = 2,
                        kRoomWork = 2.5e8;
static constexpr double kSolveWork = 6e7, kMostSolveWork = 3e8,
                        kExactPart = 0.2, kQuickWork = 1e8;
/// By what is done in any case to a problem's entry; and to try a plan.
static constexpr double kEntryWork = 80, kTrialWork = 3e7;
/// To bound labels: whatever that brings, and exactly for so many times what
/// the solution took; and before limits, for a part of what is left.
static constexpr double kPruneWork = 3e7, kPruneFactor = 8;
static constexpr double kBoundsWork = 1.3e9, kBoundsPart = 0.6;
/// For small steps from the best plan, of all work: of `lower`, where they are
/// most of what finds plans, and of `scheduled`.
static constexpr double kLowerStepsPart = 0.25, kStepsPart = 0.1;
/// And of what limits have left.
static constexpr double kAgainPart = 0.8;
/// A step to a limit: by which part that is below the longest row, work for it,
/// and how many edges away variables may change at most.
static constexpr double kStepPart = 0.005, kStepWork = 6e7;
static constexpr unsigned kMostReach = 6;
/// For one limit, of the work that is left.
static constexpr double kLimitPart = 0.3;
/// A limit that would close less than this part of the gap is not tried; a plan
/// that closes more is reason to look for weights again, near the last ones.
static constexpr double kWorthLimit = 0.125, kMuchBetter = 0.25,
                        kNextRadius = 0.25;
/// Weights that are solved for whatever that takes, and those in a row that may
/// not help.
static constexpr unsigned kMinWeights = 2, kPatience = 4;
/// How much further from the last weights the next are looked for, if the last
/// helped, and how near if they did not.
static constexpr double kFurther = 2, kNearer = 0.25;
/// What all resources weigh together whatever the play says, the first time.
static constexpr double kEachWeighs = 0.05;
/// Labels are pruned once the gap is this part of what it was, at weights that
/// leave a gap of so many times the least.
static constexpr double kWorthPruning = 0.9, kUsefulGap = 1.3;
/// Gaps that are halved before the last picosecond is asked for, those that are
/// not nearly closed, and those that small steps are for, whatever work is
/// left.
static constexpr double kWorthHalving = 0.005, kNearlyClosed = 1e-3,
                        kWorthImproving = 0.01;
/// Branching ends where this part of all work closes less than that of the gap.
static constexpr double kBranchPart = 0.07, kLeastProgress = 0.05;
/// Values of plans that are worth to be tidied, and of those that small steps
/// start from, in that of the best.
static constexpr double kWorthTidying = 2, kWorthSteps = 1.25;
/// Gaps of solutions that are only tried, and of bounds at mixed weights.
static constexpr double kRoughGap = 1e-3, kFineGap = 1e-5;
/// Between the weights of the bound (0) and those of `upper` (1): for plans of
/// their own, and for small steps.
static constexpr double kSurrogates[] = {0.5, 0.125, 0.03};
static constexpr double kStepShares[] = {1, 0.125};

/// The largest unit at which sums of costs stay in range, with as much again
/// for chains.
static int64_t unitFor(const solver::Problem &problem) {
  solver::Wide most = solver::mostCost(problem);
  int64_t unit = kMaxUnit;
  while (unit > 1 && 2 * most * unit >= solver::kMaxTotal)
    unit /= 2;
  return unit;
}

/// What a row of weights gives of a plan's times.
static double meanUnder(ArrayRef<double> weights, ArrayRef<double> rows) {
  double sum = 0;
  for (auto [weight, row] : llvm::zip_equal(weights, rows))
    sum += weight * row;
  return sum;
}

static bool isIn(const solver::LabelSets &labels,
                 ArrayRef<solver::Label> assignment) {
  return llvm::all_of(
      llvm::zip_equal(labels, assignment),
      [](const auto &pair) { return std::get<0>(pair)[std::get<1>(pair)]; });
}

static void keepOnly(std::vector<bool> &labels, solver::Label label) {
  labels.assign(labels.size(), false);
  labels[label] = true;
}

static bool isPlan(const solver::Solution &solution) {
  return solution.status == solver::Status::Optimal ||
         solution.status == solver::Status::Feasible;
}

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

void ObjectiveSearch::tryPlan(const std::vector<solver::Label> &assignment) {
  if (isKnown(assignment))
    return;
  workLeft -= kTrialWork;
  applyAssignment(context, network, assignment);
  addTrial(*copyOf(program), assignment);
  removeCopies(program);
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
  ScheduledProgram scheduled = scheduleProgram(programOf(module), context.model,
                                               network.problem.capacity);
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
  if (network.problem.capacity)
    trial.missingBytes = scheduled.unlimitedPeak - *network.problem.capacity;
  for (const Chain &chain : chains)
    trial.rows.push_back(double(times.lengthOf(chain, trial.assignment)));
  trials.push_back(std::move(trial));
  if (objective == Objective::Scheduled)
    addChains(trials.back().assignment, /*withLoads=*/false);
  if (hasLoads)
    addChains(trials.back().assignment, /*withLoads=*/true);
}

/// More rows: the plan's longest chain, with each network.
void ObjectiveSearch::addChains(const std::vector<solver::Label> &assignment,
                                bool withLoads) {
  for (Chain &chain : times.longestChains(
           assignment, context.machine().collectiveMatmul, withLoads)) {
    if (llvm::is_contained(chains, chain))
      continue;
    for (Trial &trial : trials)
      trial.rows.push_back(double(times.lengthOf(chain, trial.assignment)));
    chains.push_back(std::move(chain));
  }
}

/// From now on chains wait for networks too.
void ObjectiveSearch::addLoads() {
  hasLoads = true;
  for (size_t i = 0; i < trials.size(); ++i)
    addChains(trials[i].assignment, /*withLoads=*/true);
}

/// The first of the best.
const ObjectiveSearch::Trial &ObjectiveSearch::best() const {
  return *llvm::min_element(trials, [](const Trial &a, const Trial &b) {
    return std::pair(a.value, a.upper) < std::pair(b.value, b.upper);
  });
}

//===----------------------------------------------------------------------===//
// Solving
//===----------------------------------------------------------------------===//

/// Solves within the deadline, and counts the work.
solver::Solution ObjectiveSearch::solveCounted(const PartialProblem &partial,
                                               solver::Options &how) {
  how.timeLimitSeconds = deadline.remaining();
  how.interrupted = deadline.interruption();
  solver::Solution solution = solver::solve(partial.problem, how);
  for (const solver::Table &table : partial.problem.tables)
    workLeft -= kEntryWork * table.costs.size();
  workLeft -= solution.work;
  return solution;
}

/// Solves a problem and tries its plan; nothing if that is not to be had.
std::optional<solver::Solution> ObjectiveSearch::solve(PartialProblem &partial,
                                                       double tolerance) {
  if (partial.problem.check() || deadline.expired())
    return std::nullopt;
  solver::Options how;
  how.tolerance = tolerance;
  double work = std::min(kMostSolveWork, kSolveWork * maxWork / kUsualWork);
  how.maxWork = tolerance > 0 ? work : std::max(work, kExactPart * workLeft);
  for (const Trial &trial : trials)
    if (auto start = partial.restrict(trial.assignment))
      how.starts.push_back(std::move(*start));
  solver::Solution solution = solveCounted(partial, how);
  mostWork = std::max(mostWork, solution.work);
  if (isPlan(solution))
    tryPlan(partial.expand(solution.assignment));
  return solution;
}

void ObjectiveSearch::tell(const Region &region) const {
  if (progress)
    progress({best().value, std::min(region.bound, best().value)});
}

/// What fills the memory leaves none to overlap: plans that leave as much as
/// the best one lacks.
void ObjectiveSearch::tryWithRoom(const Region &region) {
  if (!network.problem.capacity)
    return;
  double leave = workLeft - kRoomWork;
  int64_t room = 0, step = 0;
  for (unsigned i = 0; i < kMaxRooms; ++i) {
    const Trial &fullest = best();
    if (fullest.memoryCosts == 0 || fullest.missingBytes <= 0 ||
        workLeft < leave || deadline.expired())
      return;
    step = i == 0 ? fullest.missingBytes : std::min(step, fullest.missingBytes);
    PartialProblem partial =
        times.combine({}, region.labels, {.each = fullest.value});
    *partial.problem.capacity -=
        std::min(room + step, *network.problem.capacity);
    std::optional<solver::Solution> solution = solve(partial, kRoughGap);
    if (solution && solution->status != solver::Status::Infeasible)
      room += step;
    else
      step /= 2;
  }
}

/// What is left, in values of the best plan.
double ObjectiveSearch::gapOf(const Region &region) const {
  return double(best().value - region.bound) / double(best().value);
}

/// What is left is hardly worth other plans.
bool ObjectiveSearch::isNearlyClosed(const Region &region) const {
  return gapOf(region) <= kNearlyClosed;
}

/// Of the many plans of one bound, some leave less to overlap.
void ObjectiveSearch::trySurrogates(const Region &region) {
  // Without chains, limits find such plans too.
  if (objective == Objective::Lower && mostWork > kQuickWork)
    return;
  for (double share : kSurrogates) {
    if (workLeft <= 0 || isNearlyClosed(region))
      return;
    PartialProblem partial = times.combine(
        mixed(region.labels, share), region.labels, {.each = best().value});
    solveAndTidy(partial, kRoughGap);
  }
}

/// Weights that bound known plans of these labels, and `share` of `upper`.
RowWeights ObjectiveSearch::mixed(const solver::LabelSets &labels,
                                  double share) const {
  Rows part(trials.front().rows.size(), 0);
  // Of the known plans alone: none is sought below a bound here.
  if (share < 1)
    part = bestWeights(Region{labels}, kAllPlans.plays).weights;
  for (double &weight : part)
    weight *= 1 - share;
  RowWeights result = integral(part); // what is left goes to the device
  result.collectives = std::llround(share * double(unit));
  return result;
}

/// Where something else is waited for, a plan may move in vain. With the
/// operations of the last plan as they are, values are laid out for the least
/// `upper`.
void ObjectiveSearch::tidyLast() {
  if (trials.back().value > kWorthTidying * double(best().value))
    return;
  const std::vector<solver::Label> &plan = trials.back().assignment;
  PartialProblem partial = times.combine(
      {}, labelsAround(plan, std::vector<bool>(plan.size(), false)), {});
  solve(partial, 0);
}

/// What is known already was tidied when it was new.
std::optional<solver::Solution>
ObjectiveSearch::solveAndTidy(PartialProblem &partial, double tolerance) {
  size_t known = trials.size();
  std::optional<solver::Solution> solution = solve(partial, tolerance);
  if (trials.size() > known)
    tidyLast();
  return solution;
}

/// The operations of a plan are as they are, but the `touched` ones.
solver::LabelSets
ObjectiveSearch::labelsAround(const std::vector<solver::Label> &plan,
                              const std::vector<bool> &touched) const {
  solver::LabelSets labels = times.allLabels();
  for (solver::Variable chunk : network.chunkVariable)
    if (!times.isFree(chunk) && !touched[chunk])
      keepOnly(labels[chunk], plan[chunk]);
  return labels;
}

/// A variable occupies some resource otherwise than in a plan, and what does
/// not touch it is as it is.
solver::LabelSets
ObjectiveSearch::labelsBeside(solver::Variable variable,
                              const std::vector<solver::Label> &plan) const {
  solver::LabelSets labels = labelsAround(plan, around(variable, 1));
  std::vector<solver::Cost> now = times.busyTimes(variable, plan);
  std::vector<solver::Label> changed = plan;
  for (solver::Label label = 0; label < labels[variable].size(); ++label) {
    changed[variable] = label;
    if (times.busyTimes(variable, changed) == now)
      labels[variable][label] = false;
  }
  return labels;
}

/// The variables that collectives of a plan depend on, those of the longest
/// first.
std::vector<solver::Variable>
ObjectiveSearch::longestFirst(const Trial &plan) const {
  std::vector<double> taken = times.collectiveTimes(plan.assignment);
  std::vector<solver::Variable> variables;
  for (auto [variable, time] : llvm::enumerate(taken))
    if (time > 0)
      variables.push_back(variable);
  llvm::stable_sort(variables, [&](solver::Variable a, solver::Variable b) {
    return taken[a] > taken[b];
  });
  return variables;
}

/// Of more trials than were known, the last is better.
bool ObjectiveSearch::hasBetter(size_t known, const Trial &than) const {
  return trials.size() > known && trials.back().value < than.value;
}

/// Plans with one variable changed, its neighbours as that wants them, until
/// one is better; false if no more work than `leave` is left.
bool ObjectiveSearch::stepByWeights(const Trial &start, double leave) {
  std::vector<solver::Variable> variables = longestFirst(start);
  for (double share : kStepShares) {
    RowWeights weights = mixed(times.allLabels(), share);
    for (solver::Variable variable : variables) {
      if (workLeft < leave || deadline.expired())
        return false;
      solver::LabelSets labels = labelsBeside(variable, start.assignment);
      if (solver::lacksLabels(labels))
        continue;
      size_t known = trials.size();
      PartialProblem partial =
          times.combine(weights, labels, {.each = start.value});
      solve(partial, kRoughGap);
      if (hasBetter(known, start))
        return true;
    }
  }
  return true;
}

/// The variables so many edges from one.
std::vector<bool> ObjectiveSearch::around(solver::Variable variable,
                                          unsigned reach) const {
  std::vector<bool> result(network.problem.variables.size(), false);
  result[variable] = true;
  for (unsigned i = 0; i < reach; ++i) {
    std::vector<bool> last = result;
    for (const solver::Edge &edge : network.problem.edges) {
      result[edge.first] = result[edge.first] || last[edge.second];
      result[edge.second] = result[edge.second] || last[edge.first];
    }
  }
  return result;
}

/// Plans with some variables changed, of which no row is above a limit, until
/// one is better; false if no more work than `leave` is left.
bool ObjectiveSearch::stepToLimit(const Trial &start, double leave) {
  auto longest = Picoseconds(*llvm::max_element(start.rows));
  auto limit = Picoseconds((1 - kStepPart) * double(longest));
  std::vector<double> prices;
  for (solver::Variable variable : longestFirst(start)) {
    if (workLeft < leave || deadline.expired())
      return false;
    Region near{times.allLabels()};
    for (auto [labels, label, isNear] : llvm::zip_equal(
             near.labels, start.assignment, around(variable, reach)))
      if (!isNear)
        keepOnly(labels, label);
    size_t known = trials.size();
    solver::Solution found =
        findWithin(near, limit, kStepWork * maxWork / kUsualWork, prices);
    if (isPlan(found))
      tryPlan(found.assignment);
    if (hasBetter(known, start))
      return true;
  }
  return true;
}

/// No weights may have the best plan as the least, and schedules wait for more
/// than rows know of: plans are improved by small steps too, always the best
/// from which none was made.
void ObjectiveSearch::improve(const Region &region, double work) {
  double leave = workLeft - work;
  while (true) {
    const Trial *start = nullptr;
    for (const Trial &trial : trials)
      if (!improved.count(trial.value) &&
          trial.value <= kWorthSteps * double(best().value) &&
          (!start || trial.value < start->value))
        start = &trial;
    if (!start)
      return;
    Trial from = *start;
    size_t known = trials.size();
    if (objective == Objective::Scheduled && !stepByWeights(from, leave))
      return;
    if (!hasBetter(known, from) && !stepToLimit(from, leave))
      return;
    improved.insert(from.value);
    tell(region);
  }
}

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

RowWeights ObjectiveSearch::integral(const Rows &weights) const {
  RowWeights result;
  result.collectives = 0;
  int64_t left = unit;
  size_t numNetworks = weights.size() - 1 - chains.size();
  for (auto [row, weight] : llvm::enumerate(llvm::drop_begin(weights))) {
    int64_t rounded =
        std::min<int64_t>(left, std::llround(weight * double(unit)));
    left -= rounded;
    if (row < numNetworks) {
      result.networks.push_back(rounded);
      continue;
    }
    const Chain &chain = chains[row - numNetworks];
    if (rounded == 0)
      continue;
    for (auto [link, runs] : chain.links)
      result.chain.links[link] += runs * rounded;
    for (auto [load, times] : chain.loads)
      result.chain.loads[load] += times * rounded;
  }
  result.device = left;
  return result;
}

/// The weights that count most of `taken`, none of them further from `center`
/// than `radius`.
static std::vector<double> heaviest(ArrayRef<double> taken,
                                    ArrayRef<double> center, double radius) {
  std::vector<double> weights;
  double left = 1;
  for (double each : center) {
    weights.push_back(std::max(each - radius, 0.0));
    left -= weights.back();
  }
  auto all = llvm::seq<unsigned>(taken.size());
  SmallVector<unsigned> rows(all.begin(), all.end());
  llvm::stable_sort(
      rows, [&](unsigned a, unsigned b) { return taken[a] > taken[b]; });
  for (unsigned row : rows) {
    double more = std::min(left, center[row] + radius - weights[row]);
    weights[row] += more;
    left -= more;
  }
  return weights;
}

/// Weights near the region's at which its known plans bound best: the mixed
/// strategy of who weighs, in the game against who picks a plan. By fictitious
/// play.
ObjectiveSearch::Play ObjectiveSearch::bestWeights(const Region &region,
                                                   unsigned plays) const {
  SmallVector<const Trial *> plans;
  for (const Trial &trial : trials)
    if (isIn(region.labels, trial.assignment))
      plans.push_back(&trial);
  if (plans.empty())
    plans.push_back(&best());
  Rows center = weightsOf(region);
  // How much each row was weighed, what the plans that were picked take in
  // each row, and what each plan takes in the rows as they were weighed.
  Rows weighed(center.size(), 0), taken(center.size(), 0);
  std::vector<double> sums(plans.size(), 0);
  Play best{Rows(center.size(), 0), -1};
  for (unsigned play = 1; play <= plays; ++play) {
    Rows weights = heaviest(taken, center, region.radius);
    for (auto [sum, weight] : llvm::zip_equal(weighed, weights))
      sum += weight;
    for (auto [sum, plan] : llvm::zip_equal(sums, plans))
      sum += meanUnder(weights, plan->rows);
    size_t answer = llvm::min_element(sums) - sums.begin();
    for (auto [sum, each] : llvm::zip_equal(taken, plans[answer]->rows))
      sum += each;
    double mean = sums[answer] / play;
    if (mean <= best.mean)
      continue;
    best.mean = mean;
    for (auto [weight, sum] : llvm::zip_equal(best.weights, weighed))
      weight = sum / play;
  }
  return best;
}

/// Those of its bound; at first of all resources alike. Chains that came later
/// weigh nothing.
ObjectiveSearch::Rows ObjectiveSearch::weightsOf(const Region &region) const {
  Rows weights = region.weights;
  size_t size = trials.front().rows.size(), resources = size - chains.size();
  if (weights.empty())
    weights.assign(resources, 1 / double(resources));
  weights.resize(size, 0);
  return weights;
}

/// The weighted mean. A plan of which one row takes longer than the best is no
/// better.
PartialProblem ObjectiveSearch::meanOf(const Region &region,
                                       const Rows &weights) const {
  return times.combine(integral(weights), region.labels,
                       {.each = best().value, .weighed = best().value * unit});
}

/// Solves for the least weighted mean.
void ObjectiveSearch::raiseBound(Region &region, const Rows &weights,
                                 double tolerance) {
  PartialProblem partial = meanOf(region, weights);
  std::optional<solver::Solution> solution = solveAndTidy(partial, tolerance);
  if (!solution)
    return;
  solver::Cost proven = (solution->bound + unit - 1) / unit;
  if (solution->status == solver::Status::Infeasible)
    proven = best().value;
  if (proven > region.bound) {
    region.bound = proven;
    region.weights = weights;
  }
  tell(region);
  prune(region, partial, proven, solution->multipliers, solution->work);
}

/// Plans better than the best have a lower mean under any weights, of which
/// `proven` is the least.
void ObjectiveSearch::prune(Region &region, const PartialProblem &partial,
                            solver::Cost proven,
                            const std::vector<double> &multipliers,
                            double work) {
  double gap = double(best().value) - double(proven);
  if (gap > kUsefulGap * double(best().value - region.bound))
    return;
  if (gap <= 0 || gap > kWorthPruning * region.gap)
    return;
  region.gap = gap;
  boundLabels(region, partial, multipliers, kPruneFactor * work);
}

/// Raises the bounds of labels to what these weights give, with so much work.
void ObjectiveSearch::boundLabels(Region &region, const PartialProblem &partial,
                                  const std::vector<double> &multipliers,
                                  double work) {
  solver::Cost limit = (best().value - 1) * unit + 1;
  solver::BoundWork left{.messages = kPruneWork, .elimination = work};
  partial.raise(
      region.labelBounds,
      solver::boundLabels(partial.problem, limit, multipliers, left, deadline),
      unit);
  workLeft -= kPruneWork + work - left.sum();
  region.labels = labelsWithin(region, best().value - 1);
  if (solver::lacksLabels(region.labels))
    region.bound = best().value;
}

/// With a part of all weights for the resources, in equal shares: a plan of the
/// least mean does not take at random what costs nothing.
ObjectiveSearch::Rows ObjectiveSearch::blended(Rows weights,
                                               double part) const {
  size_t resources = weights.size() - chains.size();
  for (auto [row, weight] : llvm::enumerate(weights))
    weight =
        (1 - part) * weight + (row < resources ? part / double(resources) : 0);
  return weights;
}

/// Weights far from any tried are good for the known plans alone: those that
/// did not help are looked for nearer.
void ObjectiveSearch::raiseBounds(Region &region, const Effort &effort) {
  unsigned idle = 0;
  for (unsigned i = 0; i < effort.weights && region.bound < best().value; ++i) {
    if (workLeft <= effort.leave * maxWork && i >= kMinWeights)
      return;
    Play play = bestWeights(region, effort.plays);
    if (play.mean <= region.bound * (1 + kConverged) && region.bound > 0)
      return;
    solver::Cost last = region.bound;
    raiseBound(region,
               i == 0 ? play.weights : blended(play.weights, kEachWeighs / i),
               kFineGap);
    bool helped = region.bound > last;
    idle = helped ? 0 : idle + 1;
    if (idle == kPatience)
      return;
    region.radius = helped ? std::min(kFurther * region.radius, 1.0)
                           : kNearer * region.radius;
  }
}

/// Plans that traded one row for another may be forbidden by now: what is left
/// is bound by the longest row of the best.
void ObjectiveSearch::raiseByLongest(Region &region) {
  if (region.bound >= best().value || workLeft <= 0)
    return;
  const Rows &rows = best().rows;
  Rows longest(rows.size(), 0);
  longest[llvm::max_element(rows) - rows.begin()] = 1;
  raiseBound(region, longest, 0);
}

//===----------------------------------------------------------------------===//
// Limits
//===----------------------------------------------------------------------===//

solver::LabelSets ObjectiveSearch::labelsWithin(const Region &region,
                                                Picoseconds limit) const {
  solver::LabelSets result = region.labels;
  for (auto [flags, bounds] : llvm::zip(result, region.labelBounds))
    for (auto [label, bound] : llvm::enumerate(bounds))
      if (bound > limit)
        flags[label] = false;
  return result;
}

/// A plan of which no row is above `limit`, if one is found; or the proof that
/// there is none: Status::Infeasible. `prices` of memory and rows are where it
/// starts, and where it ended.
solver::Solution ObjectiveSearch::findWithin(const Region &region,
                                             Picoseconds limit, double work,
                                             std::vector<double> &prices) {
  solver::Solution none;
  none.status = solver::Status::Infeasible;
  solver::LabelSets labels = labelsWithin(region, limit);
  if (solver::lacksLabels(labels))
    return none;
  PartialProblem partial =
      times.limitRows(integral(weightsOf(region)), labels, chains,
                      {.each = limit, .weighed = limit * unit});
  if (partial.problem.check())
    return {};
  solver::Options how;
  how.anyBelowCutoff = true;
  how.cutoff = limit * unit + 1;
  how.maxWork = work;
  prices.resize(partial.problem.numPoints, 0);
  how.multipliers = prices;
  solver::Solution solution = solveCounted(partial, how);
  if (!solution.multipliers.empty())
    prices = solution.multipliers;
  // What does not fit is no plan.
  if (isPlan(solution))
    solution.assignment = partial.expand(solution.assignment);
  else
    solution.assignment.clear();
  return solution;
}

/// The longest row of a plan, once it was tried; nothing if it has no schedule.
std::optional<Picoseconds>
ObjectiveSearch::longestRow(const std::vector<solver::Label> &plan) {
  size_t known = trials.size();
  tryPlan(plan);
  if (trials.size() > known)
    tidyLast();
  auto trial = llvm::find_if(
      trials, [&](const Trial &each) { return each.assignment == plan; });
  if (trial == trials.end())
    return std::nullopt;
  return Picoseconds(*llvm::max_element(trial->rows));
}

/// Halves the gap with limits: either no plan is below one, which is a bound,
/// or one is found that all rows together do not rule out. It is better than
/// the best, or it has a chain that is longer than the limit: one more row.
/// What is neither is as far as rows can tell. Ends early, true, once there is
/// a much better plan.
bool ObjectiveSearch::narrow(Region &region) {
  if (region.bound >= best().value || workLeft <= 0)
    return false;
  if (!isNearlyClosed(region)) {
    PartialProblem mean = meanOf(region, weightsOf(region));
    if (!mean.problem.check())
      boundLabels(region, mean, {},
                  std::min(kBoundsWork, kBoundsPart * workLeft));
  }
  Picoseconds reach = best().value;
  double enough =
      double(best().value) - kMuchBetter * double(best().value - region.bound);
  while (region.bound < best().value && workLeft > 0 && !deadline.expired()) {
    double gap = double(best().value - region.bound);
    Picoseconds most = std::min(best().value, reach) - 1;
    if (most < region.bound ||
        (reach < best().value &&
         double(most - region.bound) < kWorthLimit * gap))
      return false;
    Picoseconds limit = gapOf(region) <= kWorthHalving
                            ? most
                            : region.bound + (most - region.bound) / 2;
    solver::Solution found =
        findWithin(region, limit, kLimitPart * workLeft, prices);
    if (found.status == solver::Status::Infeasible) {
      region.bound = limit + 1;
      tell(region);
      continue;
    }
    reach = std::min(reach, best().value);
    if (found.status == solver::Status::Unknown) {
      reach = limit;
      continue;
    }
    size_t known = chains.size();
    std::optional<Picoseconds> longest = longestRow(found.assignment);
    tell(region);
    if (double(best().value) < enough)
      return true;
    if (longest && *longest > limit && chains.size() > known)
      continue;
    if (objective == Objective::Scheduled && !hasLoads) {
      addLoads();
    } else {
      reach = longest ? std::min(limit, *longest) : limit;
    }
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Branching
//===----------------------------------------------------------------------===//

/// Half of a region, which keeps the rest; nothing if it has one plan only.
/// Halves part two plans of which each is good for another row, where these
/// differ most.
std::optional<ObjectiveSearch::Region>
ObjectiveSearch::takeHalf(Region &region) const {
  auto least = [&](const Rows &weights) -> const Trial * {
    const Trial *found = nullptr;
    for (const Trial &trial : trials)
      if (isIn(region.labels, trial.assignment) &&
          (!found ||
           meanUnder(weights, trial.rows) < meanUnder(weights, found->rows)))
        found = &trial;
    return found;
  };
  const Trial *first = least(weightsOf(region)), *second = nullptr;
  if (first) {
    Rows longest(first->rows.size(), 0);
    longest[llvm::max_element(first->rows) - first->rows.begin()] = 1;
    second = least(longest);
  }
  size_t variable = 0;
  solver::Label from = 0, to = 0;
  if (second && second != first) {
    std::vector<double> differences =
        times.differences(first->assignment, second->assignment);
    for (auto [v, difference] : llvm::enumerate(differences))
      if (first->assignment[v] == second->assignment[v])
        difference = -1;
    variable = llvm::max_element(differences) - differences.begin();
    std::tie(from, to) =
        std::minmax(first->assignment[variable], second->assignment[variable]);
  } else {
    auto count = [](const std::vector<bool> &labels) {
      return llvm::count(labels, true);
    };
    variable = llvm::max_element(region.labels,
                                 [&](const auto &a, const auto &b) {
                                   return count(a) < count(b);
                                 }) -
               region.labels.begin();
    to = region.labels[variable].size() - 1;
  }
  // As many labels between the two on each side.
  std::vector<bool> &labels = region.labels[variable];
  SmallVector<solver::Label> between;
  for (solver::Label label = from; label <= to; ++label)
    if (labels[label])
      between.push_back(label);
  if (between.size() < 2)
    return std::nullopt;
  solver::Label middle = between[between.size() / 2];
  Region half = region;
  for (solver::Label label = 0; label < labels.size(); ++label)
    (label < middle ? half.labels[variable] : labels)[label] = false;
  return half;
}

/// Best first: the region of the least bound is parted. What limits cannot tell
/// apart, halves can, and each has plans of its own to try.
solver::Cost ObjectiveSearch::branch(Region root) {
  double lastWork = workLeft, lastGap = double(best().value - root.bound);
  std::vector<Region> open = {std::move(root)};
  while (true) {
    auto next = llvm::min_element(open, [](const Region &a, const Region &b) {
      return a.bound < b.bound;
    });
    solver::Cost bound =
        next == open.end() ? best().value : std::min(best().value, next->bound);
    double gap = double(best().value - bound);
    if (gap <= kNearlyClosed * double(best().value) || workLeft <= 0 ||
        deadline.expired())
      return bound;
    if (lastWork - workLeft > kBranchPart * maxWork) {
      if (gap > (1 - kLeastProgress) * lastGap)
        return bound;
      lastWork = workLeft;
      lastGap = gap;
    }
    Region rest = std::move(*next);
    open.erase(next);
    std::optional<Region> half = takeHalf(rest);
    if (!half)
      continue; // its one plan was tried
    for (Region *part : {&*half, &rest}) {
      raiseBound(*part, weightsOf(*part), kFineGap);
      part->radius = 1;
      raiseBounds(*part, kPartOfPlans);
      open.push_back(std::move(*part));
    }
  }
}

/// What weights have as the least plan may be far from the best for `lower`:
/// other weights are worth more once there is a better one.
void ObjectiveSearch::improveFirst(Region &region) {
  raiseBounds(region, kOneWeights);
  if (isNearlyClosed(region))
    return;
  Picoseconds before = best().value;
  improve(region, kLowerStepsPart * maxWork);
  if (best().value < before)
    raiseBound(region, weightsOf(region), kFineGap);
}

/// Where limits lead no further, plans may, in ever wider steps; true if lower
/// limits are of interest then.
bool ObjectiveSearch::improveAgain(const Region &region) {
  if (gapOf(region) <= kWorthImproving)
    return false;
  Picoseconds before = best().value;
  double leave = (1 - kAgainPart) * workLeft;
  while (workLeft > leave && !deadline.expired()) {
    improve(region, workLeft - leave);
    if (best().value < before)
      return true;
    if (workLeft <= leave || reach == kMostReach)
      return false;
    ++reach;
    improved.clear();
  }
  return false;
}

double ObjectiveSearch::workFor(std::optional<double> seconds) {
  return kUsualWork * std::max(1.0, seconds.value_or(0) / kUsualSeconds);
}

solver::Solution ObjectiveSearch::run(const solver::Solution &first) {
  solver::Solution result = first;
  unit = unitFor(network.problem);
  workLeft = maxWork;
  tryPlan(first.assignment);
  if (trials.empty())
    return result;
  Region all{times.allLabels()};
  for (const std::vector<bool> &labels : all.labels)
    all.labelBounds.emplace_back(labels.size(), 0);
  tidyLast();
  // The longest row takes no less than the mean of all resources.
  solver::Cost resources = trials.front().rows.size() - chains.size();
  all.bound = std::max<solver::Cost>(first.bound, 0) / resources;
  PartialProblem mean = meanOf(all, bestWeights(all, kAllPlans.plays).weights);
  if (!mean.problem.check())
    boundLabels(all, mean, {}, 0);
  if (objective == Objective::Lower)
    improveFirst(all);
  raiseBounds(all, kAllPlans);
  trySurrogates(all);
  tryWithRoom(all);
  raiseByLongest(all);
  if (objective == Objective::Scheduled && all.bound < best().value)
    improve(all, kStepsPart * maxWork);
  do
    while (narrow(all)) {
      all.radius = kNextRadius;
      raiseBounds(all, kAllPlans);
      raiseByLongest(all);
    }
  while (improveAgain(all));
  solver::Cost bound = branch(std::move(all));
  result.work += maxWork - workLeft;
  result.assignment = best().assignment;
  result.cost = best().value;
  result.bound = std::min(bound, result.cost);
  result.status = result.bound == result.cost ? solver::Status::Optimal
                                              : solver::Status::Feasible;
  return result;
}
