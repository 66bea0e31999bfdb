//===- Dual.cpp - Prices of memory by exact solves ------------------------===//

#include "shardc/Solver/Dual.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

namespace shardc::solver {

std::vector<int64_t> excessUsage(const Model &model,
                                 llvm::ArrayRef<Label> labels) {
  const Network &network = model.getNetwork();
  std::vector<int64_t> change(network.slack.size() + 1, 0);
  auto use = [&](uint32_t begin, uint32_t end, int64_t bytes) {
    change[begin] += bytes;
    change[end] -= bytes;
  };
  for (uint32_t v = 0; v < model.size(); ++v) {
    const Node &node = network.nodes[model.nodeOf(v)];
    if (!node.usages.empty())
      for (const Usage &usage : node.usages[labels[v]])
        use(usage.begin, usage.end, usage.bytes);
  }
  for (const Model::Pair &pair : model.pairs()) {
    const Link &link = network.links[pair.link];
    for (const PairUsage &usage : link.usages)
      use(usage.begin, usage.end,
          usage.bytes[labels[pair.first] * link.table->columns +
                      labels[pair.second]]);
  }
  std::vector<int64_t> result(network.slack.size());
  int64_t sum = 0;
  for (size_t row = 0; row < result.size(); ++row) {
    sum += change[row];
    result[row] = sum - network.slack[row];
  }
  return result;
}

namespace {
using Vector = std::vector<double>;

/// An upper bound on the dual function: value + slope . (prices).
struct Cut {
  double value = 0; // at prices 0
  Vector slope;
};

double dot(const Vector &a, const Vector &b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += a[i] * b[i];
  return sum;
}

/// Maximises min over cuts - |prices - center|^2 / (2 step) over prices >= 0,
/// by moving weight between two cuts at a time.
class ProximalStep {
public:
  ProximalStep(const std::vector<Cut> &cuts, const Vector &center, double step)
      : cuts(cuts), center(center), step(step), weights(cuts.size(), 0) {}

  Vector solve() {
    weights.back() = 1;
    direction = cuts.back().slope;
    for (unsigned iteration = 0; iteration < kMaxIterations; ++iteration) {
      Vector point = pricesNow();
      size_t least = 0, most = cuts.size() - 1;
      Vector values;
      for (const Cut &cut : cuts)
        values.push_back(cut.value + dot(cut.slope, point));
      for (size_t k = 0; k < cuts.size(); ++k) {
        if (values[k] < values[least])
          least = k;
        if (weights[k] > 0 && (weights[most] == 0 || values[k] > values[most]))
          most = k;
      }
      double drop = values[most] - values[least];
      if (drop <= kTolerance * (1 + std::abs(values[least])))
        break;
      moveWeight(most, least);
    }
    return pricesNow();
  }

private:
  static constexpr unsigned kMaxIterations = 500, kBisections = 40;
  static constexpr double kTolerance = 1e-12;

  Vector pricesNow() const {
    Vector result(center.size());
    for (size_t r = 0; r < result.size(); ++r)
      result[r] = std::max(0.0, center[r] + step * direction[r]);
    return result;
  }

  /// Moves as much as makes the two cuts equal, or all of it.
  void moveWeight(size_t from, size_t to) {
    const Cut &high = cuts[from], &low = cuts[to];
    Vector change(center.size());
    for (size_t r = 0; r < change.size(); ++r)
      change[r] = low.slope[r] - high.slope[r];
    // Falls with the amount.
    auto difference = [&](double amount) {
      double sum = high.value - low.value;
      for (size_t r = 0; r < change.size(); ++r)
        sum -= change[r] *
               std::max(0.0,
                        center[r] + step * (direction[r] + amount * change[r]));
      return sum;
    };
    double amount = weights[from];
    if (difference(amount) < 0) {
      double enough = amount;
      amount = 0;
      for (unsigned i = 0; i < kBisections; ++i) {
        double middle = (amount + enough) / 2;
        (difference(middle) < 0 ? enough : amount) = middle;
      }
    }
    weights[from] -= amount;
    weights[to] += amount;
    for (size_t r = 0; r < change.size(); ++r)
      direction[r] += amount * change[r];
  }

  const std::vector<Cut> &cuts;
  const Vector &center;
  double step;
  Vector weights;
  Vector direction; // weighted sum of slopes
};

class Ascent {
public:
  Ascent(Model &model, Elimination &elimination, unsigned steps,
         const Observer &observe)
      : model(model), elimination(elimination), stepsLeft(steps),
        observe(observe) {}

  DualResult run(Prices start) {
    center = evaluateAt(start);
    best = {start, bound, 0};
    bool isFirst =
        llvm::all_of(start, [](int64_t price) { return price == 0; });
    if (!done() && isFirst)
      raiseWorstRow();
    else
      step = stepFor(cuts.back());
    if (!done())
      improve();
    best.steps = stepsDone;
    return best;
  }

private:
  bool done() const { return stopped || stepsLeft == 0; }

  /// Solves at integer prices; leaves cut, value and bound.
  Vector evaluateAt(const Prices &prices) {
    ++stepsDone;
    if (stepsLeft > 0)
      --stepsLeft;
    model.setPrices(prices);
    Int128 sum = elimination.run(model);
    std::vector<Label> labels = elimination.decode();
    std::vector<int64_t> excess = excessUsage(model, labels);
    bound = model.boundFor(sum);
    value = static_cast<double>(sum + model.offset());
    Vector point(prices.begin(), prices.end());
    Cut cut;
    for (int64_t bytes : excess)
      cut.slope.push_back(std::ldexp(double(bytes), -int(kPriceBits)));
    cut.value = value - dot(cut.slope, point);
    cuts.push_back(std::move(cut));
    if (cuts.size() > kMaxCuts)
      cuts.erase(cuts.begin());
    if (best.prices.empty() || bound > best.bound)
      best = {prices, bound, 0};
    stopped |= observe(labels, bound);
    return point;
  }

  Prices toIntegers(const Vector &point) const {
    return roundPrices(model.getNetwork(), point);
  }

  /// Doubles the price of the row that is exceeded most until it fits, so that
  /// the bundle knows both sides.
  void raiseWorstRow() {
    const Vector &slope = cuts.back().slope;
    size_t worst = llvm::max_element(slope) - slope.begin();
    if (slope.empty() || slope[worst] <= 0) {
      step = stepFor(cuts.back());
      return;
    }
    double reference = std::max(std::abs(value), 1.0);
    double slack =
        std::ldexp(double(model.getNetwork().slack[worst]), -int(kPriceBits));
    double price = std::max(1.0, reference / (slack + slope[worst]) / 16);
    Vector point = center;
    double centerValue = value;
    while (!done() && price < kMaxPrice) {
      point[worst] = center[worst] + price;
      Vector tried = evaluateAt(toIntegers(point));
      if (value > centerValue) {
        centerValue = value;
        bestPoint = tried;
      }
      if (cuts.back().slope[worst] <= 0)
        break;
      price *= 4;
    }
    if (!bestPoint.empty())
      center = bestPoint;
    value = centerValue;
    step = price / std::max(1.0, norm(cuts.back().slope));
  }

  static double norm(const Vector &v) { return std::sqrt(dot(v, v)); }

  /// A step that changes prices by about a tenth of themselves.
  double stepFor(const Cut &cut) const {
    double size = norm(cut.slope);
    return size > 0
               ? std::max(std::ldexp(1.0, kPriceBits), 0.1 * norm(center)) /
                     size
               : 1.0;
  }

  double modelValue(const Vector &point) const {
    double least = std::numeric_limits<double>::infinity();
    for (const Cut &cut : cuts)
      least = std::min(least, cut.value + dot(cut.slope, point));
    return least;
  }

  void improve() {
    double centerValue = value;
    while (!done()) {
      Vector point = ProximalStep(cuts, center, step).solve();
      double predicted = modelValue(point) - centerValue;
      // Less than a thousandth of a cost unit, or below the rounding.
      double resolution = std::max(1e-3 * std::ldexp(1.0, model.getShift()),
                                   1e-12 * std::abs(centerValue));
      Prices prices = toIntegers(point);
      if (predicted <= resolution || prices == toIntegers(center)) {
        if (grown++ == kMaxGrowths)
          break;
        step *= 10;
        continue;
      }
      Vector tried = evaluateAt(prices);
      double gain = value - centerValue;
      if (gain >= 0.1 * predicted) {
        center = tried;
        centerValue = value;
        step *= gain >= 0.5 * predicted ? 2 : 1;
      } else {
        if (gain > 0) {
          center = tried;
          centerValue = value;
        }
        step *= 0.5;
      }
    }
  }

  static constexpr size_t kMaxCuts = 60;
  static constexpr double kMaxPrice = 1e17;
  static constexpr unsigned kMaxGrowths = 6;

  Model &model;
  Elimination &elimination;
  unsigned stepsLeft, stepsDone = 0;
  const Observer &observe;
  std::vector<Cut> cuts;
  Vector center, bestPoint;
  double value = 0; // dual function at the last prices, scaled
  double step = 1;
  Cost bound = 0;
  unsigned grown = 0;
  bool stopped = false;
  DualResult best;
};
} // namespace

DualResult ascendPrices(Model &model, Elimination &elimination, Prices start,
                        unsigned steps, const Observer &observe) {
  return Ascent(model, elimination, steps, observe).run(std::move(start));
}

} // namespace shardc::solver
