//===- Search.cpp - The course of a large-scale search --------------------===//
//
// Goes by rounds of independent tasks: ascent of the bound beside walks from
// the best plans. What a round does is counted in additions, so that it does
// not depend on threads or on the speed of the machine; rounds grow until the
// time is over or nothing is left to decide.
//
//===----------------------------------------------------------------------===//

#include "shardc/Solver/Search.h"
#include "Carry.h"
#include "Core.h"
#include "Exchange.h"
#include "Order.h"
#include "Probe.h"
#include "Starts.h"
#include "Tasks.h"
#include "shardc/Solver/Contract.h"
#include "llvm/ADT/STLExtras.h"
#include <cassert>
#include <numeric>

namespace shardc::solver {

using namespace search;

/// Steps of the ascent before the first plan; fewer where they take more than
/// so many additions.
static constexpr unsigned kFirstSteps = 150;
static constexpr double kFirstWork = 4e8;
/// Lengths of its steps once the prices are nearly right, and the relative gain
/// without which it rests until the network changes.
static constexpr double kLateRate = 3e-3, kLeastRate = 1e-5;
static constexpr double kLeastGain = 1e-8;
/// Decodings that starts are chosen from, and starts that race.
static constexpr unsigned kTries = 8, kStarts = 3;
/// Temperatures of the race, relative to the cost of the best plan.
static constexpr double kTemperatures[] = {1e-2, 3e-4, 1e-5, 1e-6};
static constexpr double kCooling = 1e-3;
/// Heat of the walk beside the first ascent.
static constexpr double kBesideHeat = 1e-6;
/// Additions of a walk in the race: this many passes over all links, at least.
static constexpr double kRacePasses = 75, kLeastRaceWork = 2e6;
/// Rounds take longer and longer, and begin anew with a smaller network.
static constexpr double kGrowth = 1.25;
/// How much of what kinds of walks gained counts in the next round, and which
/// part of the gap is worth another turn.
static constexpr double kMemory = 0.5, kWorthwhile = 1e-3;
/// Labels are probed by so many tasks, which all together may take as long as
/// so many tasks of the round. One gives up when it has tried some and excluded
/// too few, until the gap has shrunk.
static constexpr uint32_t kProbes = 8;
static constexpr double kProbeTasks = 4, kProbeAgain = 0.7;
static constexpr size_t kProbedNodes = 200;
static constexpr size_t kTried = 100, kTriedForOne = 50;
/// The network is contracted again once this share of labels is excluded.
static constexpr double kContractAgain = 0.05;
/// How much of the time that is left exact elimination may take.
static constexpr double kCoreShare = 0.3;
/// Without a time limit: rounds that gain nothing before the search ends.
static constexpr unsigned kPatience = 8;
/// In this last part of the time the network is left as it is.
static constexpr double kLastShare = 0.05;
/// Sweeps that make messages anew for a contracted network.
static constexpr unsigned kFreshSweeps = 30;

namespace {
/// Kinds of walks: their moves, where they begin, and their heat relative to
/// the cost of the incumbent (of dives, for each node).
enum class Walker { Forests, Dives, Fresh };
struct Kind {
  Walker walker;
  double heat;
};
static constexpr Kind kKinds[] = {
    {Walker::Forests, 1e-6}, {Walker::Forests, 1e-4}, {Walker::Dives, 1e-2},
    {Walker::Fresh, 1e-3},   {Walker::Forests, 1e-5}, {Walker::Forests, 1e-3},
    {Walker::Fresh, 1e-4}};
static constexpr double kDiveCooling = 1e-2;

class LargeSearch {
public:
  LargeSearch(const Problem &problem, const SearchOptions &options)
      : problem(problem), options(options),
        stop(options.timeLimitSeconds, options.interrupted) {}

  SearchResult run() {
    network = buildNetwork(problem);
    contract(network, stop);
    if (network.infeasible()) {
      solution.status = Status::Infeasible;
      return solution;
    }
    if (rebuild()) {
      solveCore();
      firstPlan();
      race();
      while (!isClosed() && !stop.expired() && !isStale())
        round();
    }
    return finish();
  }

private:
  //===--------------------------------------------------------------------===//
  // State of the search
  //===--------------------------------------------------------------------===//

  bool hasPlan() const { return !solution.assignment.empty(); }
  bool isClosed() const {
    return infeasible ||
           (hasPlan() && solution.hasBound && solution.bound >= solution.cost);
  }
  /// Between the best plan, if there is one, and the bound.
  double gap() const {
    return hasPlan() ? double(solution.cost) - double(solution.bound) : 0;
  }
  bool isDone() const { return isClosed() || stop.expired(); }
  /// Too little time is left for anything new to pay.
  bool isNearlyOver() const {
    return options.timeLimitSeconds &&
           *stop.remaining() < kLastShare * *options.timeLimitSeconds;
  }
  bool isStale() const {
    return !options.timeLimitSeconds && idleRounds >= kPatience;
  }

  void report() {
    if (!options.progress)
      return;
    SearchProgress progress;
    if (hasPlan())
      progress.cost = solution.cost;
    if (solution.hasBound)
      progress.bound = solution.bound;
    options.progress(progress);
  }

  /// Plans are evaluated from the problem alone.
  void offer(const Labels &labels) {
    std::vector<Label> assignment = recoverLabels(network, *graph, labels);
    Evaluation evaluation = evaluate(problem, assignment);
    if (!evaluation.cost || !evaluation.fits ||
        (hasPlan() && *evaluation.cost >= solution.cost))
      return;
    solution.assignment = std::move(assignment);
    bestLabels = labels;
    solution.cost = *evaluation.cost;
    solution.peak = evaluation.peak;
    report();
  }
  void offer(const Plan &plan) {
    if (!plan.labels.empty())
      offer(plan.labels);
  }

  void raiseBound(Cost bound) {
    if (!hasPlan() && bound > mostCost(problem)) {
      infeasible = true;
      return;
    }
    if (solution.hasBound && bound <= solution.bound)
      return;
    // Excluded labels cost more than the best plan.
    solution.bound = hasPlan() ? std::min(bound, solution.cost) : bound;
    solution.hasBound = true;
    report();
  }

  //===--------------------------------------------------------------------===//
  // Networks
  //===--------------------------------------------------------------------===//

  /// The graph of what is left of the network; false if nothing is, in which
  /// case that is the best plan.
  bool rebuild() {
    graph = buildGraph(network);
    if (!graph)
      return false;
    if (graph->size() == 0) {
      offer(Labels());
      raiseBound(hasPlan() ? std::min(solution.cost, graph->constant)
                           : graph->constant);
      return false;
    }
    passWork = double(workOfPass(*graph));
    roundWork = std::min(roundWork, 2 * raceWork());
    ascent.emplace(*graph, *problem.capacity);
    resting = false;
    excluded.assign(graph->costs.size(), false);
    beginProbes();
    return true;
  }

  /// Removes what no better plan uses, and contracts again if that is much.
  void prune() {
    Prover prover(*graph, ascent->best());
    Proof proof =
        prover.run(hasPlan() ? std::optional(solution.cost) : std::nullopt);
    raiseBound(proof.bound);
    provenPoint = ascent->best().bound;
    if (isDone() || !hasPlan() || isNearlyOver())
      return;
    exclude(proof.excluded);
    probeLabels(prover);
    double share =
        double(llvm::count(excluded, true)) / double(graph->costs.size());
    if (share < kContractAgain || isNearlyOver())
      return;
    contractWithout(std::vector(excluded));
    if (isDone())
      return;
    solveCore();
  }

  void exclude(const std::vector<bool> &labels) {
    for (size_t label = 0; label < excluded.size(); ++label)
      excluded[label] = excluded[label] || labels[label];
  }

  void beginProbes() {
    nextProbe.resize(kProbes);
    std::iota(nextProbe.begin(), nextProbe.end(), 0);
    probedGap = std::numeric_limits<double>::infinity();
  }

  /// Tries labels alone: each task every kProbes-th node, from where it ended.
  void probeLabels(const Prover &prover) {
    if (gap() < kProbeAgain * probedGap)
      beginProbes();
    probedGap = std::min(probedGap, gap());
    std::vector<std::vector<bool>> found(kProbes, excluded);
    std::vector<std::function<void()>> tasks;
    for (uint32_t k = 0; k < kProbes; ++k)
      tasks.push_back([&, k] { probe(prover, nextProbe[k], found[k]); });
    runTasks(tasks, options.jobs);
    for (const std::vector<bool> &labels : found)
      exclude(labels);
  }

  void probe(const Prover &prover, uint32_t &next, std::vector<bool> &found) {
    Probe probe(prover, kProbedNodes);
    double budget = kProbeTasks * roundWork / kProbes;
    while (next < graph->size() && double(probe.work) < budget &&
           !stop.expired()) {
      probe.run(next, solution.cost, found, stop);
      next += kProbes;
      if (probe.tried >= kTried && probe.excluded * kTriedForOne < probe.tried)
        next = graph->size();
    }
  }

  /// No plan is better than the best, or there is none at all.
  void excludeAll() {
    if (hasPlan())
      raiseBound(solution.cost);
    else
      infeasible = true;
  }

  void contractWithout(const std::vector<bool> &excluded) {
    Naming from(network, *graph);
    Graph before = std::move(*graph);
    DualPoint point = ascent->best();
    std::vector<int64_t> tightness = overflow(before, bestLabels);
    for (uint32_t u = 0; u < before.size(); ++u) {
      std::vector<bool> keep(before.labels(u));
      for (uint32_t i = 0; i < keep.size(); ++i)
        keep[i] = !excluded[before.firstLabel[u] + i];
      filterLabels(network, before.ids[u], keep);
    }
    contract(network, stop);
    if (network.infeasible()) {
      excludeAll();
      return;
    }
    if (!rebuild())
      return;
    provenPoint = -std::numeric_limits<double>::infinity();
    ascent->restart(
        carry(before, from, point, tightness, *graph, Naming(network, *graph)),
        kFreshSweeps, stop);
    makeGuide();
    bestLabels = incumbent();
  }

  //===--------------------------------------------------------------------===//
  // Rounds
  //===--------------------------------------------------------------------===//

  /// Exact elimination, where the network is small enough to try; once for each
  /// network.
  void solveCore() {
    if (isDone() || graph->costs.size() > options.exactLabels)
      return;
    Options core;
    if (std::optional<double> left = stop.remaining())
      core.timeLimitSeconds = kCoreShare * *left;
    core.interrupted = options.interrupted;
    Solution found = solve(coreProblem(network, *graph), core);
    if (found.status == Status::Infeasible) {
      excludeAll();
      return;
    }
    if (found.assignment.empty())
      return;
    offer(Labels(found.assignment.begin(), found.assignment.end()));
    if (found.status != Status::Unknown)
      raiseBound(found.bound + graph->constant);
  }

  double raceWork() const {
    return std::max(kRacePasses * passWork, kLeastRaceWork);
  }

  unsigned stepsFor(double work) const {
    return static_cast<unsigned>(std::clamp(work / (2 * passWork), 20.0, 1e6));
  }

  void makeGuide() { guide.emplace(*graph, ascent->best().prices); }

  /// Plans of the point's starts, repaired.
  void repairStarts(unsigned tries, unsigned keep) {
    makeGuide();
    starts = makeStarts(*graph, *guide, ascent->best(), tries, keep,
                        options.seed + 100 * rounds, stop);
    std::vector<Plan> plans(starts.size());
    std::vector<std::function<void()>> tasks;
    for (size_t k = 0; k < starts.size(); ++k)
      tasks.push_back([this, k, &plans] {
        Walk walk(*graph, *guide, starts[k].labels, options.seed + k);
        repair(*graph, *guide, walk, ascent->best().bound, *problem.capacity,
               stop);
        starts[k].labels = walk.state.labels();
        plans[k] = std::move(walk.best);
      });
    runTasks(tasks, options.jobs);
    for (const Plan &plan : plans)
      offer(plan);
  }

  void firstPlan() {
    if (isDone())
      return;
    unsigned done = std::min(kFirstSteps, stepsFor(kFirstWork));
    ascent->run(done, stop);
    while (true) {
      raiseBound(prove(*graph, ascent->best()).bound);
      if (isDone())
        return;
      repairStarts(1, 1);
      if (done == Ascent::kFirstSteps || isDone())
        return;
      unsigned steps = std::min(done, Ascent::kFirstSteps - done);
      goOn(steps);
      done += steps;
    }
  }

  /// Ascent beside a walk from the best plan that takes as long.
  void goOn(unsigned steps) {
    Plan found;
    runTasks({[&] { ascent->run(steps, stop); },
              [&] {
                if (!hasPlan())
                  return;
                Walk walk(*graph, *guide, bestLabels, options.seed);
                double hot = kBesideHeat * scaleOfCosts();
                walk.anneal(hot, hot * kCooling, uint64_t(2 * passWork * steps),
                            stop);
                found = std::move(walk.best);
              }},
             options.jobs);
    offer(found);
  }

  /// Ascent as one of a round's tasks, unless it is at its end.
  void addAscent(std::vector<std::function<void()>> &tasks, double work) {
    if (resting)
      return;
    unsigned steps = stepsFor(work);
    ascent->plan(steps, hasPlan() ? kLateRate : Ascent::kFirstRate, kLeastRate);
    tasks.push_back([this, steps] {
      double before = ascent->best().bound;
      ascent->run(steps, stop);
      resting = hasPlan() &&
                ascent->best().bound - before < kLeastGain * std::abs(before);
    });
  }

  void takeOver(llvm::ArrayRef<Plan> plans) {
    for (const Plan &plan : plans)
      offer(plan);
    for (const Plan &plan : plans)
      exchange(plan);
  }

  /// The better of each pair's parts, by both plans in turn.
  void exchange(const Plan &plan) {
    if (plan.labels.empty() || bestLabels.empty())
      return;
    const Labels best = bestLabels;
    for (const auto &[from, other] :
         {std::pair(&best, &plan.labels), std::pair(&plan.labels, &best)}) {
      State state(*graph, *from);
      if (takeBetterParts(*graph, state, *other))
        offer(state.labels());
    }
  }

  double scaleOfCosts() const {
    return std::max(1.0, hasPlan() ? double(solution.cost)
                                   : std::abs(ascent->best().bound));
  }

  /// Short walks from each start at each temperature.
  void race() {
    if (isDone())
      return;
    repairStarts(kTries, kStarts);
    prune();
    if (isDone())
      return;
    repairStarts(kTries, kStarts);
    double work = raceWork();
    std::vector<Plan> plans(starts.size() * std::size(kTemperatures));
    std::vector<std::function<void()>> tasks;
    addAscent(tasks, 3 * work);
    for (size_t k = 0; k < plans.size(); ++k)
      tasks.push_back([&, k] {
        auto [start, temperature] =
            std::div(int64_t(k), int64_t(std::size(kTemperatures)));
        Walk walk(*graph, *guide, starts[start].labels, options.seed + k);
        double hot = kTemperatures[temperature] * scaleOfCosts();
        walk.anneal(hot, hot * kCooling, uint64_t(work), stop);
        plans[k] = std::move(walk.best);
      });
    runTasks(tasks, options.jobs);
    takeOver(plans);
    roundWork = 2 * work;
    prune();
  }

  /// The best plan in the graph. Where contraction kept another label that is
  /// as good: the one of least cost beside the labels that are left.
  Labels incumbent() {
    Labels labels(graph->size(), 0);
    std::vector<bool> known(graph->size());
    for (uint32_t u = 0; u < graph->size(); ++u) {
      const std::vector<Label> &kept = network.nodes[graph->ids[u]].labels;
      auto found = llvm::lower_bound(kept, solution.assignment[graph->ids[u]]);
      known[u] =
          found != kept.end() && *found == solution.assignment[graph->ids[u]];
      if (known[u])
        labels[u] = found - kept.begin();
    }
    for (uint32_t u = 0; u < graph->size(); ++u)
      if (!known[u]) {
        labels[u] = leastLabel(u, labels, known);
        known[u] = true;
      }
    return labels;
  }

  uint32_t leastLabel(uint32_t node, const Labels &labels,
                      const std::vector<bool> &known) const {
    uint32_t first = graph->firstLabel[node], size = graph->labels(node);
    std::vector<double> costs(size);
    for (uint32_t i = 0; i < size; ++i)
      costs[i] = double(graph->costs[first + i]) + guide->priced[first + i];
    for (const Arc &arc : graph->arcsOf(node))
      if (known[arc.other]) {
        const int64_t *column = graph->exactColumn(arc, labels[arc.other]);
        for (uint32_t i = 0; i < size; ++i)
          costs[i] += double(column[i]);
      }
    return std::min_element(costs.begin(), costs.end()) - costs.begin();
  }

  /// The best plan of a walk from the best plan so far, or from a new start.
  Plan walk(const Kind &kind, const DualPoint &point, uint64_t seed) {
    bool fresh = kind.walker == Walker::Fresh || !hasPlan();
    Walk walk(
        *graph, *guide,
        fresh
            ? makeStart(*graph, *guide, point, /*disturbed=*/true, seed).labels
            : bestLabels,
        seed);
    if (!walk.state.fits())
      repair(*graph, *guide, walk, point.bound, *problem.capacity, stop);
    double hot = kind.heat * scaleOfCosts();
    if (kind.walker == Walker::Dives)
      walk.diveRegions(hot / double(graph->size()),
                       hot * kDiveCooling / double(graph->size()),
                       uint64_t(roundWork), stop);
    else
      walk.anneal(hot, hot * kCooling, uint64_t(roundWork), stop);
    return std::move(walk.best);
  }

  /// Walks beside ascent, four tasks: two of the kind that has gained most of
  /// late, the others of all kinds in turn.
  void round() {
    Cost before = solution.cost;
    makeGuide();
    std::vector<size_t> kinds;
    if (const double *most = llvm::max_element(earned);
        *most > kWorthwhile * gap())
      kinds.assign(2, most - earned.begin());
    while (kinds.size() < (resting ? 4 : 3))
      kinds.push_back(turn++ % std::size(kKinds));
    std::vector<Plan> plans(kinds.size());
    std::vector<std::function<void()>> tasks;
    DualPoint point = ascent->best();
    addAscent(tasks, roundWork);
    for (size_t k = 0; k < kinds.size(); ++k)
      tasks.push_back([&, k] {
        plans[k] = walk(kKinds[kinds[k]], point,
                        options.seed + 1000 * (rounds + 1) + k);
      });
    runTasks(tasks, options.jobs);
    for (double &earning : earned)
      earning *= kMemory;
    for (auto [kind, plan] : llvm::zip_equal(kinds, plans))
      if (hasPlan() && !plan.labels.empty())
        earned[kind] +=
            std::max<double>(0, double(before - graph->constant - plan.cost));
    takeOver(plans);
    prune();
    idleRounds = solution.cost == before ? idleRounds + 1 : 0;
    roundWork *= kGrowth;
    ++rounds;
  }

  SearchResult finish() {
    if (graph && graph->size() && !isClosed() &&
        ascent->best().bound > provenPoint)
      raiseBound(prove(*graph, ascent->best()).bound);
    if (infeasible) {
      solution.status = Status::Infeasible;
    } else if (isClosed()) {
      solution.status = Status::Optimal;
      solution.bound = solution.cost;
    } else if (hasPlan()) {
      solution.status = Status::Feasible;
    }
    return std::move(solution);
  }

  const Problem &problem;
  const SearchOptions &options;
  Deadline stop;
  Network network;
  std::optional<Graph> graph;
  std::optional<Ascent> ascent;
  std::optional<Guide> guide;
  std::vector<Start> starts;
  SearchResult solution;
  /// The best plan in the graph, or as near to it as the graph allows.
  Labels bestLabels;
  bool infeasible = false;
  bool resting = false; // the ascent
  /// Labels of the graph that no better plan uses; each probe's next node, and
  /// the gap when they began.
  std::vector<bool> excluded;
  std::vector<uint32_t> nextProbe;
  double probedGap = 0;
  /// The ascent's bound that has been proven.
  double provenPoint = -std::numeric_limits<double>::infinity();
  double passWork = 0, roundWork = 0;
  unsigned rounds = 0, idleRounds = 0;
  /// Recent gains of each kind of walk, and whose turn it is.
  std::array<double, std::size(kKinds)> earned = {};
  size_t turn = 0;
};
} // namespace

Wide wallAbove(Wide most) {
  Wide wall = 2;
  while (wall <= 2 * most)
    wall *= 2;
  return wall;
}

bool fitsLargeSearch(Wide most, size_t edges) {
  // Prices and messages of larger costs would lose too much in floating point.
  constexpr Wide largest = Wide(1) << 48;
  constexpr Wide limit = std::numeric_limits<int64_t>::max();
  return most < largest && wallAbove(most) <= limit / (Wide(edges) + 1);
}

SearchResult searchLarge(const Problem &problem, const SearchOptions &options) {
  assert(problem.edgeUsages.empty() && "memory of pairs is not supported");
  std::vector<Variable> order = orderByTime(problem);
  SearchResult result = LargeSearch(reordered(problem, order), options).run();
  if (result.assignment.empty())
    return result;
  std::vector<Label> assignment(order.size());
  for (auto [variable, label] : llvm::zip_equal(order, result.assignment))
    assignment[variable] = label;
  result.assignment = std::move(assignment);
  return result;
}

} // namespace shardc::solver
