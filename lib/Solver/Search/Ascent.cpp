//===- Ascent.cpp - Prices of memory that raise the bound -----------------===//

#include "Ascent.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc::solver::search {

/// Rows are measured in this part of the capacity.
static constexpr double kUnits = 1e6;
/// Steps without this relative gain make them shorter.
static constexpr double kGain = 1e-6;
static constexpr unsigned kPatience = 25;
static constexpr double kShrink = 0.7;
/// Above this scale usage is averaged over fewer steps.
static constexpr double kFineScale = 0.02;
static constexpr double kCoarseAverage = 0.3, kFineAverage = 0.09;
/// Without a plan the bound is taken to be this far from the optimum.
static constexpr double kOptimism = 1.1;
static constexpr double kLeastGap = 1e-4;

Ascent::Ascent(const Graph &graph, int64_t limit)
    : graph(graph), sweeps(graph), unit(std::max(1.0, double(limit) / kUnits)),
      prices(graph.slack.size(), 0) {}

void Ascent::restart(const DualPoint &start, unsigned count,
                     const Deadline &stop) {
  prices = start.prices;
  sweeps.setPrices(prices);
  sweeps.messages = start.messages;
  excess.clear();
  double bound = 0;
  for (unsigned i = 0; i < count && !(i > 0 && stop.expired()); ++i) {
    sweeps.forward();
    bound = sweeps.backward();
  }
  bestPoint = {};
  stale = 0;
  keepIfBetter(bound);
}

void Ascent::keepIfBetter(double bound) {
  bound += double(graph.constant);
  for (size_t row = 0; row < prices.size(); ++row)
    bound -= prices[row] * double(graph.slack[row]);
  if (bound > bestPoint.bound)
    bestPoint = {prices, sweeps.messages, bound};
  if (bound > reference + kGain * std::abs(reference) ||
      reference == -std::numeric_limits<double>::infinity()) {
    reference = bound;
    stale = 0;
  } else {
    ++stale;
  }
}

void Ascent::averageUsage() {
  std::vector<int64_t> now = overflow(graph, sweeps.decode());
  bool first = excess.empty();
  excess.resize(now.size());
  double weight =
      first ? 1 : (scale > kFineScale ? kCoarseAverage : kFineAverage);
  for (size_t row = 0; row < now.size(); ++row)
    excess[row] += weight * (double(now[row]) / unit - excess[row]);
}

void Ascent::step(double target) {
  sweeps.setPrices(prices);
  sweeps.forward();
  keepIfBetter(sweeps.backward());
  averageUsage();
  if (stale >= kPatience) {
    scale = std::max(kShrink * scale, kLeastScale);
    prices = bestPoint.prices;
    sweeps.messages = bestPoint.messages;
    stale = 0;
  }
  double norm = 0;
  for (size_t row = 0; row < prices.size(); ++row)
    if (excess[row] > 0 || prices[row] > 0)
      norm += excess[row] * excess[row];
  if (norm == 0)
    return;
  double gap = std::max(kLeastGap * std::abs(target), target - bestPoint.bound);
  double length = scale * gap / norm / unit;
  for (size_t row = 0; row < prices.size(); ++row)
    prices[row] = std::max(0.0, prices[row] + length * excess[row]);
}

void Ascent::run(unsigned steps, std::optional<double> target,
                 const Deadline &stop) {
  for (unsigned i = 0; i < steps && !stop.expired(); ++i)
    step(target ? *target
         : bestPoint.bound == -std::numeric_limits<double>::infinity()
             ? 0
             : kOptimism * bestPoint.bound);
}

} // namespace shardc::solver::search
