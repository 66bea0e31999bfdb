//===- Starts.cpp - Assignments that a search begins from -----------------===//

#include "Starts.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

namespace shardc::solver::search {

/// Passes between decodings, and sweeps over forests after each.
static constexpr unsigned kPasses = 5, kForests = 30;
/// How fast prices rise where too much memory is used.
static constexpr double kRise = 1.03, kLeastRise = 0.01;
static constexpr double kFullViolation = 1e-2; // of the capacity
static constexpr unsigned kRepairs = 400;

/// By how much prices are multiplied at most, about, in different starts.
static constexpr double kLeastSpread = 0.003, kMostSpread = 0.3;

/// Starts differ where prices are close to a change.
static void disturb(Prices &prices, Random &random) {
  double spread = random.logUniform(kLeastSpread, kMostSpread);
  for (double &price : prices)
    if (price > 0)
      price *= std::exp(spread * (2 * random.unit() - 1));
}

static double pricedValue(const Guide &guide, const Graph &graph,
                          const State &state) {
  double value = double(state.cost());
  for (uint32_t u = 0; u < graph.size(); ++u)
    value += guide.priced[graph.firstLabel[u] + state.labels()[u]];
  return value;
}

Start makeStart(const Graph &graph, const Guide &guide, const DualPoint &point,
                bool disturbed, uint64_t seed) {
  Random random(seed);
  Prices prices = point.prices;
  if (disturbed)
    disturb(prices, random);
  Sweeps sweeps(graph);
  sweeps.setPrices(prices);
  sweeps.messages = point.messages;
  for (unsigned pass = 0; pass < kPasses; ++pass) {
    sweeps.forward();
    sweeps.backward();
  }
  std::vector<double> priced = priceLabels(graph, prices);
  Walk walk(graph, guide, sweeps.decode(), seed);
  for (unsigned i = 0; i < kForests && walk.sweepPriced(priced); ++i)
    ;
  return {walk.state.labels(), pricedValue(guide, graph, walk.state)};
}

std::vector<Start> makeStarts(const Graph &graph, const Guide &guide,
                              const DualPoint &point, unsigned tries,
                              unsigned keep, uint64_t seed,
                              const Deadline &stop) {
  std::vector<Start> starts;
  for (unsigned k = 0; k < tries && !(k > 0 && stop.expired()); ++k)
    starts.push_back(makeStart(graph, guide, point, k > 0, seed + k));
  llvm::stable_sort(starts, [](const Start &a, const Start &b) {
    return a.priced < b.priced;
  });
  starts.erase(std::unique(starts.begin(), starts.end(),
                           [](const Start &a, const Start &b) {
                             return a.labels == b.labels;
                           }),
               starts.end());
  if (starts.size() > keep)
    starts.resize(keep);
  return starts;
}

bool repair(const Graph &graph, const Guide &guide, Walk &walk, double bound,
            int64_t limit, const Deadline &stop) {
  Prices prices = guide.prices;
  double sum = std::accumulate(prices.begin(), prices.end(), 0.0);
  // Where memory has no price yet, a little of what the plan costs for each
  // byte of the capacity.
  double typical = sum > 0 ? sum / double(prices.size())
                           : 1e-3 * std::max(1.0, std::abs(bound)) /
                                 std::max(1.0, double(limit)) /
                                 double(prices.size());
  double rise = 1;
  for (unsigned round = 0; round < kRepairs && !walk.state.fits(); ++round) {
    if (stop.expired())
      return false;
    for (size_t row = 0; row < prices.size(); ++row)
      if (int64_t excess = walk.state.usage().at(row); excess > 0)
        prices[row] = (1 + (kRise - 1) * rise) * prices[row] +
                      kLeastRise * rise * typical *
                          std::min(1.0, double(excess) /
                                            (kFullViolation * double(limit)));
    // A long ascent needs larger steps.
    rise *= 1.02;
    walk.sweepPriced(priceLabels(graph, prices));
  }
  return walk.state.fits();
}

} // namespace shardc::solver::search
