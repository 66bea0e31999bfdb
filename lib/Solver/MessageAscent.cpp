//===- MessageAscent.cpp - Prices of memory by message passing ------------===//

#include "shardc/Solver/MessageAscent.h"
#include "TreeDescent.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include <cmath>

namespace shardc::solver {

/// Table entries looked at by all sweeps together; at least kMinSteps sweeps.
static constexpr double kMaxEntries = 3e9;
static constexpr unsigned kMinSteps = 40, kMaxSteps = 300;
/// Sweeps before the first step of prices, and after the last.
static constexpr unsigned kWarmSweeps = 10, kLastSweeps = 10;
/// Steps between two decoded assignments.
static constexpr unsigned kDecodeEvery = 5;
/// Weight of the newest usage in the average while steps are long, and later.
static constexpr double kCoarseWeight = 0.3, kFineWeight = 0.09;
static constexpr double kFine = 0.02;
/// Factor of the length of steps after so many without a gain.
static constexpr double kShorten = 0.7, kShortest = 1e-4;
static constexpr unsigned kPatience = 10;
static constexpr double kGain = 1e-6;
/// Steps aim this far above the best bound while there is no plan, and at least
/// this part of the aim above the bound.
static constexpr double kAim = 1.1, kLeastAim = 1e-4;
/// How prices are raised where labels do not fit: by a factor, and so that the
/// excess costs this part of the bound more.
static constexpr double kRaise = 1.1, kRaiseBy = 0.01;
static constexpr unsigned kMaxRepairs = 10;
/// Small trees at each price, and what part of a sweep they may look at.
static constexpr unsigned kTrees = 200;
static constexpr double kTreeSweeps = 0.5;
/// Part of all labels.
static constexpr double kWorthContracting = 0.5;
static constexpr double kMaxPrice = 1e17;

namespace {
class MessageAscent {
public:
  MessageAscent(Model &model, const Prices &start, double maxWork,
                const UpperBound &upper, const Observer &observe,
                const Deadline &deadline)
      : model(model), upper(upper), observe(observe), deadline(deadline),
        prices(start.begin(), start.end()), means(start.size(), 0),
        passing(model), descent(model) {
    // Two passes in both directions, and prices for both orientations.
    for (const Model::Pair &pair : model.pairs()) {
      size_t usages = model.getNetwork().links[pair.link].usages.size();
      entries += (4.0 + 2.0 * usages) * pair.table->costs.size();
    }
    steps = std::clamp(std::min(maxWork, kMaxEntries) / entries,
                       double(kMinSteps), double(kMaxSteps));
    model.setPrices(rounded(prices));
    passing.updateCosts();
  }

  MessageResult run() {
    for (unsigned i = 0; i < kWarmSweeps && !stopped; ++i)
      sweep(i + 1 == kWarmSweeps);
    keepBest();
    lastGain = best.bound;
    for (unsigned i = 0; i < steps && !stopped; ++i) {
      step();
      sweep(i % kDecodeEvery == 0);
      keepBest();
      stopped |= deadline.expired();
      adapt();
      if (i % kDecodeEvery == 0 && isWorthContracting())
        break;
    }
    finish();
    return std::move(best);
  }

private:
  /// Messages carry what is paid from node to node, and sums of parts of which
  /// some are negative may not stop at infinity.
  Prices rounded(llvm::ArrayRef<double> exact) const {
    return roundPrices(model.getNetwork(), exact, kMessageLimit);
  }

  void sweep(bool decode) {
    best.work += entries;
    passing.setLimit(model.sumLimit(upper()));
    passing.sweep();
    if (passing.isExhausted()) {
      best.exhausted = true;
      stopped = true;
      return;
    }
    if (!decode || !observe)
      return;
    std::vector<Label> labels = passing.decode();
    descent.improve(labels);
    stopped |= observe(labels, model.boundFor(passing.bound()));
    // Seldom, for it takes long and most of it is done by the first.
    if (!stopped && llvm::has_single_bit(++decoded))
      repair(std::move(labels));
  }

  /// Raises prices where too much is used until labels fit.
  void repair(std::vector<Label> labels) {
    Prices now = model.getPrices();
    std::vector<double> raised(now.begin(), now.end());
    double bound = double(model.boundFor(passing.bound()));
    double unit = std::ldexp(std::max(std::abs(bound), 1.0),
                             model.getShift() + kPriceBits);
    for (unsigned i = 0; i < kMaxRepairs && !stopped; ++i) {
      std::vector<int64_t> excess = excessUsage(model, labels);
      bool fits = true;
      for (auto [row, over] : llvm::enumerate(excess)) {
        if (over <= 0)
          continue;
        fits = false;
        raised[row] = kRaise * raised[row] + kRaiseBy * unit / over;
      }
      if (fits)
        break;
      model.setPrices(rounded(raised));
      descent.improve(labels);
      stopped |= observe(labels, best.bound);
    }
    refine(labels, now);
    model.setPrices(std::move(now));
  }

  /// From labels that fit to cheaper ones, at ever lower prices.
  void refine(std::vector<Label> &labels, const Prices &now) {
    auto fits = [&](llvm::ArrayRef<Label> some) {
      return llvm::all_of(excessUsage(model, some),
                          [](int64_t over) { return over <= 0; });
    };
    if (stopped || !fits(labels))
      return;
    Int128 least = model.unpricedSum(labels);
    for (int64_t quarters : {4, 3, 2, 1, 0}) {
      Prices part;
      for (int64_t price : now)
        part.push_back(price / 4 * quarters);
      model.setPrices(std::move(part));
      descent.improveLocally(labels, kTrees, kTreeSweeps * entries,
                             [&](llvm::ArrayRef<Label> changed) {
                               Int128 sum = model.unpricedSum(changed);
                               if (sum >= least || !fits(changed))
                                 return false;
                               least = sum;
                               return true;
                             });
    }
    stopped |= observe(labels, best.bound);
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

  /// A subgradient step along averaged usage (docs/Solver.md#prices-and-bound).
  void step() {
    std::vector<int64_t> excess = excessUsage(model, passing.leastLabels());
    double weight = length > kFine ? kCoarseWeight : kFineWeight;
    if (!hasMeans)
      weight = 1;
    hasMeans = true;
    double squares = 0;
    for (auto [mean, now, price] : llvm::zip_equal(means, excess, prices)) {
      mean += weight * (double(now) - mean);
      if (mean > 0 || price > 0)
        squares += mean * mean;
    }
    if (squares == 0)
      return;
    double scale = std::ldexp(1.0, model.getShift() + kPriceBits);
    double now = double(model.boundFor(passing.bound()));
    double aim =
        std::min(double(upper()), kAim * std::max(double(best.bound), 1.0));
    double size =
        length * scale * std::max(kLeastAim * aim, aim - now) / squares;
    for (auto [price, mean] : llvm::zip_equal(prices, means))
      price = std::clamp(price + size * mean, 0.0, kMaxPrice);
    model.setPrices(rounded(prices));
    passing.updateCosts();
  }

  /// So many labels went that what is left is easier in a smaller network.
  bool isWorthContracting() const {
    size_t left = 0, all = 0;
    for (const std::vector<bool> &labels : passing.remaining()) {
      all += labels.size();
      left += llvm::count(labels, true);
    }
    return left < kWorthContracting * all;
  }

  /// Shortens steps that lead nowhere, and goes back to the best prices.
  void adapt() {
    if (double(best.bound) >
        double(lastGain) + kGain * std::abs(double(lastGain))) {
      lastGain = best.bound;
      idle = 0;
    } else if (++idle >= kPatience) {
      idle = 0;
      length = std::max(kShorten * length, kShortest);
      prices.assign(best.prices.begin(), best.prices.end());
      passing.restore(bestMessages);
      model.setPrices(best.prices);
      passing.updateCosts();
    }
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
  const Deadline &deadline;
  std::vector<double> prices, means;
  MessagePassing passing;
  TreeDescent descent;
  Messages bestMessages;
  MessageResult best;
  double entries = 1; // that one sweep looks at
  double steps = 0;
  double length = 1; // of steps
  Cost lastGain = 0;
  unsigned idle = 0, decoded = 0;
  bool stopped = false, hasMeans = false;
};
} // namespace

MessageResult ascendByMessages(Model &model, Prices start, double maxWork,
                               const UpperBound &upper, const Observer &observe,
                               const Deadline &deadline) {
  return MessageAscent(model, start, maxWork, upper, observe, deadline).run();
}

} // namespace shardc::solver
