//===- Rounds.cpp - Bound, search, fix, contract, again -------------------===//

#include "Rounds.h"
#include "shardc/Solver/Contract.h"
#include "shardc/Solver/MessageAscent.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

namespace shardc::solver {

static constexpr unsigned kMaxRounds = 40;
/// Eliminations of the first ascent of prices, of those after pruning, and of
/// any ascent at least.
static constexpr unsigned kFirstDualSteps = 40, kDualSteps = 12;
static constexpr unsigned kMinDualSteps = 6;
/// Beyond these, elimination is not exact: entries that one run looks at, and
/// entries of all its messages.
static constexpr double kMaxExactWork = 2e9, kMaxExactEntries = 5e7;
/// Above this, messages prune what they can first.
static constexpr double kQuickExactWork = 3e7;
/// Unless elimination looks at the network's entries so often at most, as in a
/// long row of layers: a few sweeps of messages.
static constexpr double kNarrow = 100;
/// Entries that one run with split buckets looks at.
static constexpr double kMaxSplitWork = 3e7;
/// Further guides are run while those before took less than this in all.
static constexpr double kMaxGuideWork = 5e8;
/// Searches of one width, each with more rows than the one before.
static constexpr unsigned kMaxRowSteps = 40;
/// After so many of them, all rows.
static constexpr unsigned kFewRowSteps = 4;
/// States of the first search, and the factor to the next.
static constexpr size_t kFirstWidth = 16, kWiden = 4;
/// Larger networks are compared once messages have pruned them: before, little
/// is dominated.
static constexpr size_t kMaxCompared = 500'000;
/// The slack of a row at a high price, in costs of the best plan; and the most
/// guides of single rows.
static constexpr int64_t kHighPrice = 64;
static constexpr size_t kMaxRowGuides = 12;
/// Where any plan will do, states are merged that have nearly as much left:
/// first, in steps, and at the finest.
static constexpr unsigned kFirstShift = 6, kFinerBy = 3, kFinestShift = 12;
/// Prices of further guides, in quarters of the best prices.
static constexpr int64_t kMultiples[] = {2, 6, 12};

/// A cost that every assignment stays below.
static Cost costLimit(const Network &network) {
  Cost sum = network.constant + 1;
  for (const Node &node : network.nodes)
    if (!node.costs.empty())
      sum += *llvm::max_element(node.costs);
  for (const Link &link : network.links) {
    Cost most = 0;
    for (Cost cost : link.table->costs)
      if (cost != kForbidden)
        most = std::max(most, cost);
    sum += most;
  }
  return sum;
}

static size_t countEntries(const Network &network) {
  size_t entries = 0;
  for (const Link &link : network.links)
    if (link.alive)
      entries += link.table->costs.size();
  return entries;
}

Rounds::Rounds(const Problem &problem, const Effort &effort)
    : problem(problem), effort(effort),
      part{buildNetwork(problem), -kForbidden,
           std::vector<double>(problem.numPoints, 0),
           std::vector<bool>(problem.numPoints, effort.stopAtPlan)},
      incumbent(problem, std::min(costLimit(part.network), effort.cutoff),
                effort.progress),
      mergeShift(effort.stopAtPlan ? kFirstShift : 0), width(kFirstWidth),
      maxWidth(effort.searchWidth), workLeft(effort.searchWork),
      dualLeft(effort.dualWork) {}

Solution Rounds::run() {
  contract(part.network, effort.deadline,
           countEntries(part.network) > kMaxCompared ? Steps::WithoutDominance
                                                     : Steps::All);
  for (unsigned round = 0; round < kMaxRounds && dualLeft > 0 && !isDone();
       ++round)
    if (!runRound())
      break;
  branch();
  return incumbent.solution();
}

/// There is a plan, or only those below a cutoff are of interest.
bool Rounds::hasUpper() const {
  return incumbent.hasPlan() || effort.cutoff < kForbidden;
}

bool Rounds::isDone() const {
  return part.bound >= incumbent.upper() || isGoodEnough() ||
         effort.deadline.expired();
}

/// Whether the gap of all parts together is small enough.
bool Rounds::isGoodEnough() const {
  if (!incumbent.hasPlan())
    return false;
  double gap = double(incumbent.upper()) - double(incumbent.bound());
  return effort.stopAtPlan || incumbent.isClosed() ||
         gap <= effort.tolerance * double(incumbent.upper());
}

/// The parts together have the least of their bounds.
void Rounds::raiseBound(Cost bound) {
  part.bound = std::max(part.bound, bound);
  Cost least = std::min(part.bound, givenUp);
  if (!open.empty())
    least = std::min(least, open.back().bound);
  incumbent.raiseBound(least);
}

/// Bounds, improves and prunes once; false if that leads no further.
bool Rounds::runRound() {
  if (part.network.infeasible()) {
    closePart();
    return false;
  }
  Model model(part.network, Model::largestShift(part.network));
  EliminationLimits limits;
  Elimination elimination(model, eliminationOrder(model, limits), limits);
  bool fits = elimination.isExact() && elimination.work() <= kMaxExactWork &&
              elimination.entries() <= kMaxExactEntries;
  double quick =
      std::max(kQuickExactWork, kNarrow * double(countEntries(part.network)));
  if (fits && (elimination.work() <= quick || part.isPruned))
    return runExact(model, elimination);
  return runApproximate(/*thenExact=*/fits);
}

bool Rounds::runExact(Model &model, Elimination &elimination) {
  if (elimination.work() > kQuickExactWork && hasUpper() &&
      pruneFirst(model, elimination))
    return true;
  if (isDone())
    return false;
  Prices prices = ascend(model, elimination);
  if (isDone())
    return false;
  Guides guides = makeGuides(model, elimination, prices);
  const Elimination *forRows = effort.stopAtPlan ? &elimination : nullptr;
  if (searchAndPrune(
          guides, [&] { return keptByMarginals(*guides[0]); }, forRows))
    return true;
  if (!isDone())
    chooseSplit(*guides[0]);
  return false;
}

/// At the prices that are known: what is left may be much quicker.
bool Rounds::pruneFirst(const Model &model, const Elimination &plan) {
  Guide guide(model, plan, startPrices(model.getShift()));
  dualLeft -= 2 * plan.work();
  if (observe(guide.model, guide.elimination.decode(),
              guide.model.boundFor(guide.leastSum)))
    return false;
  return prune(guide.model, keptByMarginals(guide));
}

/// The same with messages for a bound and split buckets for costs to go; the
/// latter only if the next round cannot be exact.
bool Rounds::runApproximate(bool thenExact) {
  Model model(part.network, Model::largestShift(part.network, kMessageLimit));
  MessageResult dual = ascendByMessages(
      model, startPrices(model.getShift()), dualLeft,
      [&] { return incumbent.upper(); },
      [&](llvm::ArrayRef<Label> labels, Cost bound) {
        return observe(model, labels, bound);
      });
  dualLeft -= dual.work;
  if (dual.exhausted) {
    closePart();
    return false;
  }
  raiseBound(dual.bound);
  keepPrices(dual.prices, model.getShift());
  if (isDone())
    return false;
  if (prune(model, dual.remaining))
    return true;
  part.isPruned = thenExact;
  if (thenExact)
    return true;
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

//===----------------------------------------------------------------------===//
// Prices
//===----------------------------------------------------------------------===//

Prices Rounds::ascend(Model &model, Elimination &elimination) {
  double affordable = dualLeft / std::max(elimination.work(), 1.0);
  double wanted = hasPrices ? kDualSteps : kFirstDualSteps;
  DualResult dual = ascendPrices(
      model, elimination, startPrices(model.getShift()),
      std::max(std::min(affordable, wanted), double(kMinDualSteps)),
      [&](llvm::ArrayRef<Label> labels, Cost bound) {
        return observe(model, labels, bound);
      });
  dualLeft -= dual.steps * elimination.work();
  keepPrices(dual.prices, model.getShift());
  return dual.prices;
}

/// Prices of the last round, for the rows of this one.
Prices Rounds::startPrices(unsigned shift) const {
  return pricesAt(part.network, part.priceAt, shift);
}

void Rounds::keepPrices(const Prices &prices, unsigned shift) {
  storePrices(part.network, prices, shift, part.priceAt);
  if (!hasPrices && problem.capacity)
    incumbent.setMultipliers(part.priceAt);
  hasPrices = true;
}

/// Tells whether an ascent should stop.
bool Rounds::observe(const Model &model, llvm::ArrayRef<Label> labels,
                     Cost bound) {
  raiseBound(bound);
  incumbent.offer(recover(part.network, model.toNodes(labels)));
  return isDone();
}

//===----------------------------------------------------------------------===//
// Search
//===----------------------------------------------------------------------===//

/// The best prices, and multiples that tell apart what is nearly full. Without
/// prices, or where any plan will do, guides of rows may follow, which need
/// room above all costs.
Guides Rounds::makeGuides(const Model &model, const Elimination &plan,
                          const Prices &prices) {
  bool isFree = llvm::all_of(prices, [](int64_t price) { return price == 0; });
  Guides guides;
  if (isFree || effort.stopAtPlan) {
    Model low(part.network,
              Model::largestShift(part.network, kInfinity / kHighPrice / 8));
    guides.push_back(
        std::make_unique<Guide>(low, plan, startPrices(low.getShift())));
  } else {
    guides.push_back(std::make_unique<Guide>(model, plan, prices));
  }
  if (isFree && !effort.stopAtPlan)
    addRowGuides(plan, guides);
  if (isFree)
    return guides;
  const Guide &first = *guides.front();
  for (int64_t quarters : kMultiples) {
    if (plan.work() * guides.size() > kMaxGuideWork)
      break;
    Prices multiple;
    for (int64_t price : first.model.getPrices())
      multiple.push_back(price / 4 * quarters);
    guides.push_back(std::make_unique<Guide>(first.model, plan, multiple));
    dualLeft -= plan.work();
  }
  return guides;
}

/// The first search always runs; later ones if they should fit in what is left
/// of the work.
bool Rounds::canSearch() const {
  return width <= maxWidth && lastWork <= workLeft / kWiden;
}

/// A high price on each row that is searched or that the best labels exceed:
/// what the rest takes there at least.
void Rounds::addRowGuides(const Elimination &plan, Guides &guides) {
  const Guide &first = *guides.front();
  double limit = std::max(double(first.model.sumLimit(incumbent.upper())), 1.0);
  std::vector<int64_t> excess =
      excessUsage(first.model, first.elimination.decode());
  for (auto [row, over] : llvm::enumerate(excess)) {
    if (over <= 0 && !part.searched[part.network.rowPoints[row]])
      continue;
    if (plan.work() * guides.size() > kMaxGuideWork ||
        guides.size() > kMaxRowGuides)
      break;
    std::vector<double> prices(excess.size(), 0);
    double slack = std::max<double>(part.network.slack[row], 1);
    prices[row] = std::ldexp(kHighPrice * limit / slack, kPriceBits);
    guides.push_back(std::make_unique<Guide>(
        first.model, plan, roundPrices(part.network, prices)));
    dualLeft -= plan.work();
  }
}

/// Searches ever wider until something closes the gap or enough labels can go;
/// with guides of rows too once the first search, which may be all that is
/// needed, has failed.
bool Rounds::searchAndPrune(Guides &guides,
                            llvm::function_ref<LabelSets()> kept,
                            const Elimination *forRows) {
  while (!isDone() && canSearch()) {
    Cost before = incumbent.upper();
    searchRows(guides);
    bool improved = incumbent.upper() < before;
    if (!improved)
      width *= kWiden;
    if (!isDone() && hasUpper() && prune(guides[0]->model, kept()))
      return true;
    if (forRows && !isDone())
      addRowGuides(*std::exchange(forRows, nullptr), guides);
    if (improved)
      width *= kWiden;
  }
  return false;
}

/// Searches with the rows that were priced or exceeded so far, then with those
/// too that its result exceeds.
void Rounds::searchRows(const Guides &guides) {
  const Model &model = guides[0]->model;
  for (unsigned step = 0; step < kMaxRowSteps && !isDone(); ++step) {
    std::vector<uint32_t> rows;
    for (auto [row, point] : llvm::enumerate(part.network.rowPoints))
      if (part.searched[point] || model.getPrices()[row] > 0)
        rows.push_back(row);
    StateResult found =
        searchStates(guides, rows, incumbent.upper(),
                     {width, effort.searchWork, effort.deadline, mergeShift});
    workLeft -= std::min(workLeft, found.work);
    lastWork = found.work;
    raiseBound(found.bound);
    bool fits =
        found.labels &&
        incumbent.offer(recover(part.network, model.toNodes(*found.labels)));
    if (!found.labels || fits) {
      if (found.complete)
        closePart();
      return;
    }
    if (found.isMerged)
      mergeShift = mergeShift < kFinestShift ? mergeShift + kFinerBy : 0;
    if (step == kFewRowSteps)
      part.searched.assign(part.searched.size(), true);
    else if (!addExceeded(model, *found.labels))
      return;
  }
}

/// Adds the row that is exceeded most of each run of exceeded rows.
bool Rounds::addExceeded(const Model &model, llvm::ArrayRef<Label> labels) {
  std::vector<int64_t> excess = excessUsage(model, labels);
  bool any = false;
  for (uint32_t row = 0; row < excess.size(); ++row) {
    if (excess[row] <= 0)
      continue;
    uint32_t worst = row;
    for (; row < excess.size() && excess[row] > 0; ++row)
      if (excess[row] > excess[worst])
        worst = row;
    any |= !part.searched[part.network.rowPoints[worst]];
    part.searched[part.network.rowPoints[worst]] = true;
  }
  return any;
}

//===----------------------------------------------------------------------===//
// Fixing
//===----------------------------------------------------------------------===//

/// Labels that an assignment better than the best plan may use.
LabelSets Rounds::keptByMarginals(const Guide &guide) const {
  return guide.elimination.labelsWithin(
      guide.model.sumLimit(incumbent.upper()) - guide.leastSum);
}

/// Keeps only these labels and contracts, if enough go to start again.
bool Rounds::prune(const Model &model, const LabelSets &kept) {
  if (removedPart(kept) < kWorthwhilePart)
    return false;
  filterLabels(part.network, model, kept);
  contract(part.network, effort.deadline);
  return true;
}

//===----------------------------------------------------------------------===//
// Branching
//===----------------------------------------------------------------------===//

/// The price of a use of these rows; `sums` are prefix sums of the rows'
/// prices.
static double costOfUse(llvm::ArrayRef<double> sums, uint32_t begin,
                        uint32_t end, int64_t bytes) {
  return static_cast<double>(bytes) * (sums[end] - sums[begin]);
}

/// A lower bound on each label's price of memory, pairs included, at some
/// prices of rows.
static std::vector<double> pricedUsage(const Network &network,
                                       Variable variable,
                                       llvm::ArrayRef<double> prices) {
  const Node &node = network.nodes[variable];
  std::vector<double> sums(prices.size() + 1, 0);
  for (auto [row, price] : llvm::enumerate(prices))
    sums[row + 1] = sums[row] + price;
  std::vector<double> result(node.size(), 0);
  for (size_t label = 0; label < node.usages.size(); ++label)
    for (const Usage &usage : node.usages[label])
      result[label] += costOfUse(sums, usage.begin, usage.end, usage.bytes);
  for (LinkId id : node.links) {
    const Link &link = network.links[id];
    if (link.usages.empty())
      continue;
    std::vector<double> pairs(link.table->costs.size(), 0);
    for (const PairUsage &usage : link.usages)
      for (auto [sum, bytes] : llvm::zip_equal(pairs, usage.bytes))
        sum += costOfUse(sums, usage.begin, usage.end, bytes);
    for (auto [sum, cost] : llvm::zip_equal(pairs, link.table->costs))
      if (cost == kForbidden)
        sum = std::numeric_limits<double>::infinity();
    pairs = oriented(link, variable, pairs);
    size_t others = pairs.size() / node.size();
    for (size_t label = 0; label < node.size(); ++label)
      result[label] += *std::min_element(pairs.begin() + label * others,
                                         pairs.begin() + (label + 1) * others);
  }
  return result;
}

/// Prices at which to compare labels: those of the guide, or, if it has none,
/// of the rows that its best labels exceed.
static std::vector<double> splitPrices(const Guide &guide) {
  const Prices &own = guide.model.getPrices();
  std::vector<double> prices(own.begin(), own.end());
  if (llvm::any_of(own, [](int64_t price) { return price > 0; }))
    return prices;
  for (auto [price, over, slack] : llvm::zip_equal(
           prices, excessUsage(guide.model, guide.elimination.decode()),
           guide.model.getNetwork().slack))
    if (over > 0)
      price = 1 / std::max<double>(slack, 1);
  return prices;
}

/// Parts the labels that may still be used, of the node where they differ most
/// in what they pay for memory: there the relaxation mixes them.
void Rounds::chooseSplit(const Guide &guide) {
  LabelSets kept = keptByMarginals(guide);
  std::vector<double> prices = splitPrices(guide);
  double widest = 0;
  for (uint32_t v = 0; v < guide.model.size(); ++v) {
    Variable node = guide.model.nodeOf(v);
    std::vector<double> pays = pricedUsage(part.network, node, prices);
    double least = std::numeric_limits<double>::infinity(), most = 0;
    for (auto [label, price] : llvm::enumerate(pays))
      if (kept[v][label] && std::isfinite(price)) {
        least = std::min(least, price);
        most = std::max(most, price);
      }
    if (!(most - least > widest))
      continue;
    widest = most - least;
    split.emplace();
    split->node = node;
    for (auto [label, price] : llvm::enumerate(pays)) {
      bool isCheap = price <= least + widest / 2;
      split->half.push_back(kept[v][label] && isCheap);
      split->rest.push_back(kept[v][label] && !isCheap);
    }
  }
}

/// Best first, until the budget is used up.
void Rounds::branch() {
  maxWidth = std::min(effort.searchWidth, effort.branchWidth);
  while (split && dualLeft > 0 && workLeft > 0 && !effort.deadline.expired() &&
         !incumbent.isClosed() && !isGoodEnough()) {
    openHalves();
    do
      takeNextPart();
    while (!split && !open.empty() && !incumbent.isClosed() &&
           !isGoodEnough() && !effort.deadline.expired());
  }
}

void Rounds::openHalves() {
  for (const std::vector<bool> &labels : {split->half, split->rest}) {
    Part &half = open.emplace_back(part);
    filterLabels(half.network, split->node, labels);
  }
  split.reset();
  // Among equal bounds the part opened last goes first.
  llvm::stable_sort(
      open, [](const Part &a, const Part &b) { return a.bound > b.bound; });
}

/// Bounds the part of the least bound; it is closed, given up, or split next.
void Rounds::takeNextPart() {
  part = std::move(open.back());
  open.pop_back();
  width = kFirstWidth;
  lastWork = 0;
  contract(part.network, effort.deadline);
  while (!isDone() && runRound() && dualLeft > 0)
    ;
  if (!split && part.bound < incumbent.upper())
    givenUp = std::min(givenUp, part.bound);
  raiseBound(part.bound);
}

} // namespace shardc::solver
