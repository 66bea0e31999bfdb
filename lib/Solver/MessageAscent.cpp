//===- MessageAscent.cpp - Prices of memory by message passing ------------===//

#include "shardc/Solver/MessageAscent.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

namespace shardc::solver {

/// Table entries looked at by all sweeps together; at least kMinSteps sweeps.
static constexpr double kMaxEntries = 3e9;
static constexpr unsigned kMinSteps = 40, kMaxSteps = 300;
/// Sweeps before the first step of prices, and after the last.
static constexpr unsigned kWarmSweeps = 20, kLastSweeps = 10;
/// Steps between two decoded assignments.
static constexpr unsigned kDecodeEvery = 5;
static constexpr double kFirstRate = 0.1, kLastRate = 1e-4;
static constexpr double kMomentum = 0.9, kLeastShare = 1e-3;
static constexpr double kMaxPrice = 1e17;

namespace {
class MessageAscent {
public:
  MessageAscent(Model &model, Prices start, double maxWork,
                const UpperBound &upper, const Observer &observe)
      : model(model), upper(upper), observe(observe),
        prices(start.begin(), start.end()), momentum(start.size(), 0),
        passing(model) {
    for (const Model::Pair &pair : model.pairs())
      entries += 4.0 * pair.table->costs.size();
    steps = std::clamp(std::min(maxWork, kMaxEntries) / entries,
                       double(kMinSteps), double(kMaxSteps));
    model.setPrices(std::move(start));
    passing.updateCosts();
  }

  MessageResult run() {
    for (unsigned i = 0; i < kWarmSweeps && !stopped; ++i)
      sweep(i + 1 == kWarmSweeps);
    keepBest();
    unit = priceUnit();
    for (unsigned i = 0; i < steps && !stopped && unit > 0; ++i) {
      step(kFirstRate * std::pow(kLastRate / kFirstRate, double(i) / steps));
      sweep(i % kDecodeEvery == 0);
      keepBest();
    }
    finish();
    return std::move(best);
  }

private:
  void sweep(bool decode) {
    best.work += entries;
    passing.setLimit(model.sumLimit(upper()));
    passing.sweep();
    if (passing.isExhausted()) {
      best.exhausted = true;
      stopped = true;
      return;
    }
    if (decode)
      stopped |= observe(passing.decode(), model.boundFor(passing.bound()));
  }

  void keepBest() {
    if (best.exhausted)
      return;
    Cost bound = model.boundFor(passing.bound());
    if (!best.prices.empty() && bound <= best.bound)
      return;
    best.bound = bound;
    best.prices = model.getPrices();
    bestMessages = passing.messages();
  }

  /// Scaled cost per byte that prices are measured in; 0 without memory.
  double priceUnit() const {
    int64_t most = 0;
    for (int64_t slack : model.getNetwork().slack)
      most = std::max(most, slack);
    double size = std::abs(double(passing.bound() + model.offset()));
    return prices.empty() ? 0
                          : std::max(size, 1.0) / std::max(double(most), 1.0);
  }

  void step(double rate) {
    std::vector<int64_t> excess = excessUsage(model, passing.leastLabels());
    double squares = 0;
    size_t count = 0;
    for (size_t row = 0; row < prices.size(); ++row) {
      momentum[row] =
          kMomentum * momentum[row] + (1 - kMomentum) * double(excess[row]);
      if (prices[row] > 0 || momentum[row] > 0) {
        squares += momentum[row] * momentum[row];
        ++count;
      }
    }
    if (squares == 0)
      return;
    double scale = rate * unit / std::sqrt(squares / count);
    Prices rounded;
    for (size_t row = 0; row < prices.size(); ++row) {
      double share = prices[row] / unit + kLeastShare;
      prices[row] = std::clamp(prices[row] + scale * share * momentum[row], 0.0,
                               kMaxPrice);
      rounded.push_back(std::llround(prices[row]));
    }
    model.setPrices(std::move(rounded));
    passing.updateCosts();
  }

  /// Back to the best prices, to improve messages and prune there.
  void finish() {
    if (!best.exhausted && !stopped) {
      model.setPrices(best.prices);
      passing.updateCosts();
      for (unsigned i = 0; i < kLastSweeps && !stopped; ++i)
        sweep(i + 1 == kLastSweeps);
      if (!best.exhausted) {
        best.bound = std::max(best.bound, model.boundFor(passing.bound()));
        bestMessages = passing.messages();
      }
    }
    best.messages = std::move(bestMessages);
    best.remaining = passing.remaining();
  }

  Model &model;
  const UpperBound &upper;
  const Observer &observe;
  std::vector<double> prices, momentum;
  MessagePassing passing;
  Messages bestMessages;
  MessageResult best;
  double entries = 1; // that one sweep looks at
  double steps = 0, unit = 0;
  bool stopped = false;
};
} // namespace

MessageResult ascendByMessages(Model &model, Prices start, double maxWork,
                               const UpperBound &upper,
                               const Observer &observe) {
  return MessageAscent(model, std::move(start), maxWork, upper, observe).run();
}

} // namespace shardc::solver
