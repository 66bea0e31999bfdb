//===- Anneal.cpp - Large neighbourhoods that keep memory feasible --------===//

#include "Anneal.h"
#include "Exchange.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

namespace shardc::solver::search {

/// Rows at which blocks may begin.
static constexpr size_t kSampledRows = 256;
/// Blocks of most moves, and of some.
static constexpr uint32_t kSmallest = 2, kSmall = 41;
static constexpr double kLargeChance = 0.2, kLargeFrom = 40, kLargeTo = 4000;
/// Blocks above this size grow by all neighbours, smaller ones by a few.
static constexpr size_t kLargeBlock = 60;
static constexpr uint32_t kFewNeighbours = 12;
/// How much memory's price counts among the costs inside a block.
static constexpr double kPriceShares[] = {0, 0, 0.3, 0.6, 0.9, 1};
/// How often a block that does not fit is solved again.
static constexpr unsigned kBumps = 3;

/// Regions of a dive; which part of their nodes each round fixes; how much of
/// memory's price counts, at first and again where the result does not fit.
static constexpr double kRegionFrom = 30, kRegionTo = 5000;
static constexpr double kFractionFrom = 0.03, kFractionTo = 0.3;
static constexpr double kMostRegionPrice = 1;
static constexpr double kShareGrowth = 1.6, kShareStep = 0.1;
static constexpr unsigned kDives = 3;
/// A region's nodes for each move that follows its dive.
static constexpr size_t kNodesPerMove = 20;

Guide::Guide(const Graph &graph, const Prices &prices)
    : prices(prices), priced(priceLabels(graph, prices)) {
  size_t count = std::min(graph.slack.size(), kSampledRows);
  for (size_t k = 0; k < count; ++k)
    rows.push_back(k * graph.slack.size() / count);
  alive.resize(rows.size());
  for (uint32_t u = 0; u < graph.size(); ++u) {
    std::vector<bool> seen(rows.size(), false);
    for (uint32_t label = graph.firstLabel[u]; label < graph.firstLabel[u + 1];
         ++label)
      for (const Usage &usage : graph.usagesOf(label)) {
        auto begin = llvm::lower_bound(rows, usage.begin) - rows.begin();
        for (size_t k = begin; k < rows.size() && rows[k] < usage.end; ++k)
          seen[k] = true;
      }
    for (size_t k = 0; k < rows.size(); ++k)
      if (seen[k])
        alive[k].push_back(u);
  }
}

Walk::Walk(const Graph &graph, const Guide &guide, Labels start, uint64_t seed)
    : state(graph, std::move(start)), graph(graph), guide(guide), random(seed),
      forest(graph) {
  keepIfBest();
}

void Walk::keepIfBest() {
  if (state.fits() && state.cost() < best.cost && state.cost() < graph.wall)
    best = {state.labels(), state.cost()};
}

void Walk::chooseBlock() {
  size_t size = random.chance(kLargeChance)
                    ? size_t(random.logUniform(kLargeFrom, kLargeTo))
                    : kSmallest + random.below(kSmall - kSmallest + 1);
  Forest::Order order = Forest::Order::Random;
  uint32_t fanout = kFewNeighbours;
  if (size > kLargeBlock) {
    order = static_cast<Forest::Order>(random.below(3));
    fanout = ~0u;
  }
  forest.clear();
  if (guide.rows.empty() || random.chance(0.5)) {
    forest.grow(random.below(graph.size()), size, order, fanout, random);
    return;
  }
  // Trees from nodes that use memory at one time, which may trade it.
  uint32_t at = random.below(guide.rows.size());
  if (random.chance(0.5)) {
    int64_t tightest = state.usage().at(guide.rows[at]);
    for (int k = 1; k < 8; ++k) {
      uint32_t other = random.below(guide.rows.size());
      int64_t value = state.usage().at(guide.rows[other]);
      if (value > tightest) {
        tightest = value;
        at = other;
      }
    }
  }
  const std::vector<uint32_t> &seeds = guide.alive[at];
  if (seeds.empty()) {
    forest.grow(random.below(graph.size()), size, order, fanout, random);
    return;
  }
  uint32_t trees = 2 + random.below(5);
  for (uint32_t k = 1; k <= trees; ++k)
    forest.grow(seeds[random.below(seeds.size())], size * k / trees, order,
                fanout, random);
}

void Walk::setTargets(double temperature) {
  double share = kPriceShares[random.below(std::size(kPriceShares))];
  double noise = random.chance(0.5) ? 2 * temperature * random.unit() : 0;
  if (share == 0 && noise == 0)
    return;
  for (size_t k = 0; k < forest.nodes().size(); ++k) {
    uint32_t node = forest.nodes()[k], size = graph.labels(node);
    float *target = forest.target(k);
    const double *priced = guide.priced.data() + graph.firstLabel[node];
    if (share > 0)
      for (uint32_t i = 0; i < size; ++i)
        target[i] += static_cast<float>(share * priced[i]);
    if (noise > 0)
      for (uint32_t i = 0; i < size; ++i)
        target[i] += static_cast<float>(noise * random.unit());
  }
}

bool Walk::applyIfFits() {
  int64_t before = state.overflow();
  llvm::ArrayRef<uint32_t> nodes = forest.nodes();
  for (size_t k = 0; k < nodes.size(); ++k)
    if (uint32_t old = state.labels()[nodes[k]]; old != forest.label(k))
      state.changeUsage(nodes[k], old, forest.label(k));
  if (state.overflow() > std::max<int64_t>(before - 1, 0))
    return false;
  for (size_t k = 0; k < nodes.size(); ++k)
    if (state.labels()[nodes[k]] != forest.label(k))
      state.changeLabel(nodes[k], forest.label(k));
  return true;
}

/// The block used too much at the row that is worst now: its labels there cost
/// more from now on.
void Walk::bump() {
  uint32_t row = state.usage().argmax();
  llvm::ArrayRef<uint32_t> nodes = forest.nodes();
  auto bytesAt = [&](uint32_t label) {
    int64_t bytes = 0;
    for (const Usage &usage : graph.usagesOf(label))
      if (usage.begin <= row && row < usage.end)
        bytes += usage.bytes;
    return bytes;
  };
  // Undoes what applyIfFits() tried, and sums up what it gained.
  int64_t increase = 0;
  for (size_t k = 0; k < nodes.size(); ++k) {
    uint32_t old = state.labels()[nodes[k]], now = forest.label(k);
    if (old == now)
      continue;
    state.changeUsage(nodes[k], now, old);
    uint32_t first = graph.firstLabel[nodes[k]];
    increase += bytesAt(first + now) - bytesAt(first + old);
  }
  if (increase <= 0)
    return;
  double gain = forest.targetGain(state);
  double price =
      std::max(gain, 1.0) / double(increase) * (0.4 + 0.7 * random.unit());
  for (size_t k = 0; k < nodes.size(); ++k) {
    uint32_t first = graph.firstLabel[nodes[k]];
    float *target = forest.target(k);
    for (uint32_t i = 0; i < graph.labels(nodes[k]); ++i)
      if (int64_t bytes = bytesAt(first + i))
        target[i] += static_cast<float>(price * double(bytes));
  }
}

bool Walk::tryMove(double temperature) {
  chooseBlock();
  return moveBlock(temperature);
}

bool Walk::moveBlock(double temperature) {
  if (forest.nodes().empty())
    return false;
  forest.load(state);
  setTargets(temperature);
  double allowed = -temperature * std::log(random.positive());
  for (unsigned attempt = 0;; ++attempt) {
    forest.solve();
    int64_t change = forest.change(state);
    if (double(change) > allowed)
      return false;
    if (applyIfFits())
      return true;
    bump();
    if (attempt == kBumps)
      return false;
  }
}

void Walk::anneal(double hot, double cold, uint64_t work,
                  const Deadline &stop) {
  uint64_t begin = forest.work + state.work;
  for (uint64_t step = 0;; ++step, ++steps) {
    uint64_t done = forest.work + state.work - begin;
    if (done >= work || (step % 64 == 0 && stop.expired()))
      return;
    double temperature =
        hot * std::pow(cold / hot, double(done) / double(work));
    if (tryMove(temperature)) {
      ++accepted;
      keepIfBest();
    }
  }
}

/// A random node, half the time one with many neighbours.
uint32_t Walk::chooseRoot() {
  if (graph.arcs.empty() || random.chance(0.5))
    return random.below(graph.size());
  return graph.arcs[random.below(graph.arcs.size())].other;
}

void Walk::diveOnce(Dive &dive, double temperature) {
  size_t largest = std::min<size_t>(graph.size(), kRegionTo);
  dive.chooseRegion(
      chooseRoot(),
      size_t(random.logUniform(std::min<double>(kRegionFrom, double(largest)),
                               double(largest))));
  double share = kMostRegionPrice * random.unit();
  double fraction = random.logUniform(kFractionFrom, kFractionTo);
  double allowed = -temperature * std::log(random.positive());
  const Labels before = state.labels();
  int64_t cost = state.cost();
  bool fitted = state.fits();
  for (unsigned attempt = 0; attempt < kDives; ++attempt) {
    dive.run(state, guide.priced, share, fraction);
    for (size_t k = 0; k < dive.nodes().size(); ++k)
      state.change(dive.nodes()[k], dive.label(k));
    for (size_t k = 0; k < dive.nodes().size() / kNodesPerMove; ++k) {
      forest.clear();
      forest.grow(dive.nodes()[random.below(dive.nodes().size())],
                  kSmallest + random.below(kSmall), Forest::Order::Random,
                  kFewNeighbours, random);
      moveBlock(0);
    }
    bool fits = state.fits();
    if ((fits || !fitted) && double(state.cost() - cost) <= allowed) {
      if (fits && fitted)
        takeBetterParts(graph, state, before);
      ++accepted;
      keepIfBest();
      return;
    }
    const Labels after = state.labels();
    for (uint32_t u = 0; u < graph.size(); ++u)
      state.change(u, before[u]);
    if (fitted && takeBetterParts(graph, state, after)) {
      ++accepted;
      keepIfBest();
      return;
    }
    if (fits)
      return;
    share = kShareGrowth * share + kShareStep;
  }
}

void Walk::diveRegions(double hot, double cold, uint64_t work,
                       const Deadline &stop) {
  Dive dive(graph);
  auto done = [&] { return forest.work + state.work + dive.work; };
  for (uint64_t begin = done(); done() - begin < work && !stop.expired();
       ++steps)
    diveOnce(dive,
             hot * std::pow(cold / hot, double(done() - begin) / double(work)));
}

bool Walk::sweepPriced(const std::vector<double> &priced) {
  forest.clear();
  std::vector<uint32_t> seeds(graph.size());
  std::iota(seeds.begin(), seeds.end(), 0);
  for (size_t k = seeds.size(); k > 1; --k)
    std::swap(seeds[k - 1], seeds[random.below(k)]);
  for (uint32_t seed : seeds)
    forest.grow(seed, graph.size(), Forest::Order::Depth, ~0u, random);
  forest.load(state);
  for (size_t k = 0; k < forest.nodes().size(); ++k) {
    uint32_t node = forest.nodes()[k];
    float *target = forest.target(k);
    for (uint32_t i = 0; i < graph.labels(node); ++i)
      target[i] += static_cast<float>(priced[graph.firstLabel[node] + i]);
  }
  forest.solve();
  bool changed = false;
  for (size_t k = 0; k < forest.nodes().size(); ++k) {
    uint32_t node = forest.nodes()[k];
    changed |= state.labels()[node] != forest.label(k);
    state.change(node, forest.label(k));
  }
  keepIfBest();
  return changed;
}

} // namespace shardc::solver::search
