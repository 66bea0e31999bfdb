//===- Ascent.cpp - Prices of memory that raise the bound -----------------===//

#include "Ascent.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

namespace shardc::solver::search {

/// How much of the last direction each step keeps.
static constexpr double kMomentum = 0.9;
/// The first increase of a price of zero, as a fraction of the scale.
static constexpr double kLeastPrice = 1e-3;
/// Sweeps without prices, whose bound gives the scale.
static constexpr unsigned kFreeSweeps = 40;
/// Where that bound says nothing: this part of how far labels' costs differ.
static constexpr double kSpread = 0.01;

Ascent::Ascent(const Graph &graph, int64_t limit)
    : graph(graph), sweeps(graph), limit(std::max(1.0, double(limit))),
      prices(graph.slack.size(), 0), excess(graph.slack.size(), 0) {
  plan(kFirstSteps, kFirstRate, kLastRate);
}

void Ascent::restart(const DualPoint &start, unsigned count,
                     const Deadline &stop) {
  prices = start.prices;
  sweeps.setPrices(prices);
  sweeps.messages = start.messages;
  scale = start.scale;
  llvm::fill(excess, 0);
  double bound = 0;
  for (unsigned i = 0; i < count && !(i > 0 && stop.expired()); ++i)
    bound = sweep();
  bestPoint = {};
  keepIfBetter(bound);
}

double Ascent::sweep() {
  sweeps.forward();
  return sweeps.backward();
}

void Ascent::keepIfBetter(double bound) {
  bound += double(graph.constant);
  for (size_t row = 0; row < prices.size(); ++row)
    bound -= prices[row] * double(graph.slack[row]);
  if (bound > bestPoint.bound)
    bestPoint = {prices, sweeps.messages, bound, scale};
}

void Ascent::findScale(const Deadline &stop) {
  double bound = 0, spread = 0;
  for (unsigned i = 0; i < kFreeSweeps && !(i > 0 && stop.expired()); ++i)
    bound = sweep();
  for (uint32_t u = 0; u < graph.size(); ++u)
    spread += double(
        *std::max_element(graph.costs.begin() + graph.firstLabel[u],
                          graph.costs.begin() + graph.firstLabel[u + 1]));
  scale = std::max({std::abs(bound + double(graph.constant)), kSpread * spread,
                    1.0}) /
          limit;
  keepIfBetter(bound);
}

void Ascent::plan(unsigned steps, double from, double to) {
  rate = from;
  leastRate = to;
  cooling = std::pow(to / from, 1.0 / std::max(1u, steps));
  llvm::fill(excess, 0);
  if (scale == 0)
    return;
  prices = bestPoint.prices;
  sweeps.setPrices(prices);
  sweeps.messages = bestPoint.messages;
}

void Ascent::step() {
  std::vector<int64_t> now = overflow(graph, sweeps.decode());
  double sum = 0;
  size_t count = 0;
  for (size_t row = 0; row < prices.size(); ++row) {
    excess[row] =
        kMomentum * excess[row] + (1 - kMomentum) * double(now[row]) / limit;
    if (prices[row] > 0 || excess[row] > 0) {
      sum += excess[row] * excess[row];
      ++count;
    }
  }
  if (sum > 0) {
    double length = rate / std::sqrt(sum / double(count));
    for (size_t row = 0; row < prices.size(); ++row)
      prices[row] =
          std::max(0.0, prices[row] + length * excess[row] *
                                          (prices[row] + kLeastPrice * scale));
    sweeps.setPrices(prices);
  }
  keepIfBetter(sweep());
  rate = std::max(rate * cooling, leastRate);
}

void Ascent::run(unsigned steps, const Deadline &stop) {
  if (scale == 0)
    findScale(stop);
  for (unsigned i = 0; i < steps && !stop.expired(); ++i)
    step();
}

} // namespace shardc::solver::search
