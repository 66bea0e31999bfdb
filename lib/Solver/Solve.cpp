//===- Solve.cpp - The solver's sequence of steps -------------------------===//
//
// Contract; price memory; fix what the bound excludes and contract again; then
// search what is left. See optimizer.md section 3.
//
//===----------------------------------------------------------------------===//

#include "shardc/Solver/Solve.h"
#include "shardc/Solver/Contract.h"
#include "shardc/Solver/MessageAscent.h"
#include "shardc/Solver/StateSearch.h"
#include "llvm/ADT/STLExtras.h"
#include <cassert>
#include <cmath>

namespace shardc::solver {

namespace {
class Run {
public:
  Run(const Problem &problem, Deadline deadline)
      : problem(problem), deadline(deadline), network(buildNetwork(problem)) {}

  Solution solve() {
    bound = -kForbidden;
    priceAt.assign(problem.numPoints, 0);
    searched.assign(problem.numPoints, false);
    contract(network);
    for (unsigned round = 0; round < kMaxRounds && !closed; ++round)
      if (!runRound())
        break;
    return finish();
  }

private:
  static constexpr unsigned kMaxRounds = 40;
  /// Eliminations of the first ascent of prices, and of those after pruning.
  static constexpr unsigned kFirstDualSteps = 40, kDualSteps = 12;
  static constexpr unsigned kMinDualSteps = 6;
  /// Entries of elimination tables: of one exact run, of all runs of an ascent,
  /// and of one run with split buckets.
  static constexpr double kMaxExactWork = 2e9, kMaxDualWork = 1e10;
  static constexpr double kMaxEntries = 5e7;
  static constexpr double kMaxSplitWork = 3e7;
  /// Further guides are run while those before took less than this in all.
  static constexpr double kMaxGuideWork = 5e8;
  /// Scaled costs stay below this where messages add up over many sweeps.
  static constexpr Scaled kMessageLimit = Scaled(1) << 50;
  static constexpr unsigned kMaxRowSteps = 40;
  /// States of the first search, of the largest, and the factor between.
  static constexpr size_t kFirstWidth = 16, kMaxWidth = 1 << 18, kWiden = 4;
  /// Of all searches; some hundred million a second.
  static constexpr uint64_t kMaxWork = 400'000'000;
  /// A round pays if it removes this part of all labels.
  static constexpr double kWorthwhile = 0.03;
  /// Prices of further guides, in quarters of the best prices.
  static constexpr int64_t kMultiples[] = {2, 6, 12};

  //===--------------------------------------------------------------------===//
  // What is known
  //===--------------------------------------------------------------------===//

  bool hasPlan() const { return best.status == Status::Feasible; }
  std::optional<Cost> upper() const {
    return hasPlan() ? std::optional<Cost>(best.cost) : std::nullopt;
  }

  /// A bound on all assignments that cost less than the best plan.
  void raiseBound(Cost value) {
    bound = std::max(bound, value);
    closed |= hasPlan() && bound >= best.cost;
  }

  /// Nothing that costs less than the best plan is left.
  void exhaust() {
    bound = kForbidden;
    closed = true;
  }

  bool offer(const std::vector<Label> &assignment) {
    Evaluation now = evaluate(problem, assignment);
    if (!now.cost)
      return false;
    bool better = now.fits ? !hasPlan() || *now.cost < best.cost
                           : !hasPlan() && (best.assignment.empty() ||
                                            now.peak < best.peak);
    if (better) {
      best.assignment = assignment;
      best.cost = *now.cost;
      best.peak = now.peak;
      if (now.fits)
        best.status = Status::Feasible;
    }
    raiseBound(bound);
    return now.fits;
  }

  bool offer(const Model &model, llvm::ArrayRef<Label> labels) {
    return offer(recover(network, model.toNodes(labels)));
  }

  //===--------------------------------------------------------------------===//
  // Rounds
  //===--------------------------------------------------------------------===//

  /// Bounds, improves and prunes once; false if that leads no further.
  bool runRound() {
    if (network.infeasible()) {
      exhaust();
      return false;
    }
    Model model(network, Model::largestShift(network));
    EliminationLimits limits;
    Elimination elimination(model, eliminationOrder(model, limits), limits);
    if (elimination.isExact() && elimination.work() <= kMaxExactWork &&
        elimination.entries() <= kMaxEntries)
      return runExact(model, elimination);
    return runApproximate();
  }

  bool runExact(Model &model, Elimination &elimination) {
    Guides guides = makeGuides(model, elimination, ascend(model, elimination));
    return searchAndPrune(guides, [&] { return keptByMarginals(*guides[0]); });
  }

  /// Searches ever wider until something closes the gap or enough can go.
  bool
  searchAndPrune(const Guides &guides,
                 llvm::function_ref<std::vector<std::vector<bool>>()> kept) {
    while (!closed && canSearch()) {
      Cost before = upper().value_or(kForbidden);
      searchRows(guides);
      bool improved = hasPlan() && best.cost < before;
      if (!improved)
        width *= kWiden;
      if (!closed && hasPlan() && prune(guides[0]->model, kept())) {
        contract(network);
        return true;
      }
      if (improved)
        width *= kWiden;
    }
    return false;
  }

  /// Prices of the last round, for the rows of this one.
  Prices startPrices(unsigned shift) const {
    Prices start;
    for (uint32_t point : network.rowPoints)
      start.push_back(std::ldexp(priceAt[point], shift));
    return start;
  }

  void keepPrices(const Prices &prices, unsigned shift) {
    for (auto [point, price] : llvm::zip_equal(network.rowPoints, prices))
      priceAt[point] = std::ldexp(static_cast<double>(price), -int(shift));
    if (!hasPrices && problem.capacity)
      best.multipliers = priceAt;
    hasPrices = true;
  }

  Prices ascend(Model &model, Elimination &elimination) {
    double affordable = kMaxDualWork / std::max(elimination.work(), 1.0);
    double wanted = hasPrices ? kDualSteps : kFirstDualSteps;
    DualResult dual = ascendPrices(
        model, elimination, startPrices(model.getShift()),
        std::max(std::min(affordable, wanted), double(kMinDualSteps)),
        [&](llvm::ArrayRef<Label> labels, Cost value) {
          return observe(model, labels, value);
        });
    keepPrices(dual.prices, model.getShift());
    return dual.prices;
  }

  /// Tells whether an ascent should stop.
  bool observe(const Model &model, llvm::ArrayRef<Label> labels, Cost value) {
    raiseBound(value);
    offer(model, labels);
    return closed || deadline.expired();
  }

  /// The same with messages for a bound and split buckets for costs to go.
  bool runApproximate() {
    Model model(network, Model::largestShift(network, kMessageLimit));
    MessageResult dual = ascendByMessages(
        model, startPrices(model.getShift()),
        [&] { return upper().value_or(costLimit()); },
        [&](llvm::ArrayRef<Label> labels, Cost value) {
          return observe(model, labels, value);
        });
    if (dual.exhausted) {
      exhaust();
      return false;
    }
    raiseBound(dual.bound);
    keepPrices(dual.prices, model.getShift());
    if (closed)
      return false;
    if (prune(model, dual.remaining)) {
      contract(network);
      return true;
    }
    EliminationLimits limits;
    std::vector<uint32_t> order = eliminationOrder(model, limits);
    Elimination plan(model, order, limits);
    while (plan.work() > kMaxSplitWork && limits.bucketEntries > 1) {
      limits.bucketEntries /= kWiden;
      plan = Elimination(model, order, limits);
    }
    Guides guides;
    guides.push_back(
        std::make_unique<Guide>(model, plan, dual.prices, &dual.messages));
    return searchAndPrune(guides, [&] { return dual.remaining; });
  }

  /// The first search always runs; later ones if they should fit in what is
  /// left of the work.
  bool canSearch() const {
    return width <= kMaxWidth && !deadline.expired() &&
           lastWork <= workLeft / kWiden;
  }

  /// The best prices, and multiples that tell apart what is nearly full.
  static Guides makeGuides(const Model &model, const Elimination &plan,
                           const Prices &prices) {
    Guides guides;
    guides.push_back(std::make_unique<Guide>(model, plan, prices));
    if (llvm::all_of(prices, [](int64_t price) { return price == 0; }))
      return guides;
    for (int64_t quarters : kMultiples) {
      if (plan.work() * guides.size() > kMaxGuideWork)
        break;
      Prices multiple;
      for (int64_t price : prices)
        multiple.push_back(price / 4 * quarters);
      guides.push_back(std::make_unique<Guide>(model, plan, multiple));
    }
    return guides;
  }

  /// A cost that every assignment of the network stays below.
  Cost costLimit() const {
    Cost sum = network.constant + 1;
    for (const Node &node : network.nodes)
      if (node.alive)
        sum += *llvm::max_element(node.costs);
    for (const Link &link : network.links) {
      Cost most = 0;
      if (link.alive)
        for (Cost cost : link.table->costs)
          if (cost != kForbidden)
            most = std::max(most, cost);
      sum += most;
    }
    return sum;
  }

  /// Searches with the rows that were priced or exceeded so far, then with
  /// those too that its result exceeds.
  void searchRows(const Guides &guides) {
    const Model &model = guides[0]->model;
    for (unsigned step = 0; step < kMaxRowSteps && !closed; ++step) {
      std::vector<uint32_t> rows;
      for (auto [row, point] : llvm::enumerate(network.rowPoints))
        if (searched[point] || model.getPrices()[row] > 0)
          rows.push_back(row);
      StateResult found =
          searchStates(guides, rows, upper().value_or(costLimit()),
                       {width, kMaxWork, deadline});
      workLeft -= std::min(workLeft, found.work);
      lastWork = found.work;
      raiseBound(found.bound);
      if (!found.labels || offer(model, *found.labels)) {
        if (found.complete)
          exhaust();
        return;
      }
      if (!addExceeded(model, *found.labels))
        return;
    }
  }

  /// Adds the row that is exceeded most of each run of exceeded rows.
  bool addExceeded(const Model &model, llvm::ArrayRef<Label> labels) {
    std::vector<int64_t> excess = excessUsage(model, labels);
    bool any = false;
    for (uint32_t row = 0; row < excess.size(); ++row) {
      if (excess[row] <= 0)
        continue;
      uint32_t worst = row;
      for (; row < excess.size() && excess[row] > 0; ++row)
        if (excess[row] > excess[worst])
          worst = row;
      any |= !searched[network.rowPoints[worst]];
      searched[network.rowPoints[worst]] = true;
    }
    return any;
  }

  /// Labels that an assignment better than the best plan may use.
  std::vector<std::vector<bool>> keptByMarginals(const Guide &guide) const {
    Int128 room = guide.model.sumLimit(best.cost) - guide.leastSum;
    std::vector<std::vector<bool>> result;
    for (llvm::ArrayRef<Scaled> marginals : guide.elimination.minMarginals()) {
      result.emplace_back();
      for (Scaled excess : marginals)
        result.back().push_back(excess < kInfinity && excess <= room);
    }
    return result;
  }

  /// Keeps only these labels if enough go to start again.
  bool prune(const Model &model, const std::vector<std::vector<bool>> &keep) {
    size_t labels = 0, removed = 0;
    for (const std::vector<bool> &flags : keep)
      for (bool flag : flags) {
        ++labels;
        removed += !flag;
      }
    if (removed < kWorthwhile * labels)
      return false;
    for (uint32_t v = 0; v < model.size(); ++v)
      filterLabels(network, model.nodeOf(v), keep[v]);
    return true;
  }

  Solution finish() {
    if (hasPlan()) {
      best.bound = std::min(bound, best.cost);
      if (best.bound == best.cost)
        best.status = Status::Optimal;
      return best;
    }
    best.bound = bound;
    if (closed)
      best.status = Status::Infeasible;
    return best;
  }

  const Problem &problem;
  Deadline deadline;
  Network network;
  Solution best;
  Cost bound = 0;
  size_t width = kFirstWidth;
  uint64_t workLeft = kMaxWork, lastWork = 0;
  std::vector<double> priceAt; // of the last round, per byte at each point
  bool hasPrices = false;
  std::vector<bool> searched; // points whose rows every search tracks
  bool closed = false;
};
} // namespace

//===----------------------------------------------------------------------===//
// Least peak
//===----------------------------------------------------------------------===//

/// The problem in which only what is forbidden and memory matter.
static Problem withoutCosts(const Problem &problem) {
  Problem result = problem;
  auto clear = [](std::vector<Cost> &costs) {
    for (Cost &cost : costs)
      if (cost != kForbidden)
        cost = 0;
  };
  for (VariableData &variable : result.variables)
    clear(variable.costs);
  for (Table &table : result.tables)
    clear(table.costs);
  return result;
}

static bool isPlan(const Solution &solution) {
  return solution.status == Status::Optimal ||
         solution.status == Status::Feasible;
}

/// Bisects the capacity for the least at which some assignment fits; that
/// assignment, or nothing if all are forbidden.
static std::vector<Label> leastPeak(const Problem &problem, Deadline deadline) {
  static constexpr unsigned kMaxSteps = 48;
  Problem relaxed = withoutCosts(problem);
  relaxed.capacity.reset();
  Solution best = Run(relaxed, deadline).solve();
  if (!isPlan(best))
    return {};
  int64_t tooLow = *problem.capacity;
  for (unsigned step = 0; step < kMaxSteps && best.peak - tooLow > 1; ++step) {
    relaxed.capacity = tooLow + (best.peak - tooLow) / 2;
    Solution now = Run(relaxed, deadline).solve();
    if (isPlan(now))
      best = std::move(now);
    else
      tooLow = *relaxed.capacity;
  }
  return std::move(best.assignment);
}

/// Without a plan: the assignment that exceeds the capacity least, which may
/// turn out to fit after all.
static void showLeastPeak(const Problem &problem, Deadline deadline,
                          Solution &solution) {
  std::vector<Label> assignment = leastPeak(problem, deadline);
  if (assignment.empty())
    return;
  Evaluation now = evaluate(problem, assignment);
  solution.assignment = std::move(assignment);
  solution.cost = *now.cost;
  solution.peak = now.peak;
}

Solution solve(const Problem &problem, const Options &options) {
  assert(!problem.check() && "the problem was not checked");
  Deadline deadline;
  if (options.timeLimitSeconds)
    deadline = Deadline(*options.timeLimitSeconds);
  Solution solution = Run(problem, deadline).solve();
  if (!isPlan(solution) && problem.capacity)
    showLeastPeak(problem, deadline, solution);
  return solution;
}

} // namespace shardc::solver
