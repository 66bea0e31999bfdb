//===- LegalValues.cpp - The values that a crossover looks at -------------===//
//
// An extent that is affine in a dim n is divisible by k where n = r (mod k /
// g); the values that satisfy all such conditions are one residue class. Its
// modulus divides the program's period; a legal value and a test for each prime
// of the period find it.
//
//===----------------------------------------------------------------------===//

#include "shardc/Questions/LegalValues.h"
#include <cmath>
#include <numeric>

using namespace shardc;

/// Shorter ranges are tested value by value.
static constexpr int64_t kShortRange = 1024;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// The least value of at least `n` that differs from `anchor` by a multiple of
/// `step`; it may not fit 64 bits, hence the type.
static __int128 atOrAfter(__int128 n, int64_t anchor, int64_t step) {
  __int128 rest = (n - anchor) % step;
  if (rest < 0)
    rest += step;
  return rest == 0 ? n : n + (step - rest);
}

static llvm::SmallVector<int64_t> primeFactors(int64_t number) {
  llvm::SmallVector<int64_t> primes;
  for (int64_t p = 2; p <= number / p; ++p)
    for (; number % p == 0; number /= p)
      primes.push_back(p);
  if (number > 1)
    primes.push_back(number);
  return primes;
}

LegalValues::LegalValues(int64_t from, int64_t to, int64_t anchor, int64_t step,
                         int64_t period)
    : anchor(anchor), step(step) {
  steps.clear();
  steps.push_back(period);
  llvm::SmallVector<int64_t> primes = primeFactors(period / step);
  for (int64_t prime : llvm::reverse(primes))
    steps.push_back(steps.back() / prime);
  __int128 first = atOrAfter(from, anchor, step);
  if (first > to)
    return;
  low = int64_t(first);
  high = to - (to - low) % step;
}

int64_t LegalValues::size() const {
  if (!listed.empty())
    return listed.size();
  return high < low ? 0 : (high - low) / step + 1;
}

std::optional<int64_t> LegalValues::roundest(int64_t a, int64_t b,
                                             int64_t target) const {
  for (int64_t each : steps) {
    __int128 above = atOrAfter(target, anchor, each);
    __int128 below = above - each;
    bool hasAbove = above >= a && above <= b;
    bool hasBelow = below >= a && below <= b;
    if (hasBelow && (!hasAbove || target - below < above - target))
      return int64_t(below);
    if (hasAbove)
      return int64_t(above);
  }
  return std::nullopt;
}

std::optional<int64_t> LegalValues::between(int64_t a, int64_t b) const {
  if (!listed.empty()) {
    auto from = llvm::upper_bound(listed, a), to = llvm::lower_bound(listed, b);
    if (from == to)
      return std::nullopt;
    return from[(to - from) / 2];
  }
  int64_t width = b - a, middle = a + width / 2;
  if (auto value = roundest(a + width / 4, b - width / 4, middle))
    if (*value != a && *value != b)
      return value;
  return roundest(a + 1, b - 1, middle);
}

std::vector<int64_t> LegalValues::samples(int64_t most,
                                          int64_t perOctave) const {
  std::vector<int64_t> result;
  if (size() <= most) {
    if (!listed.empty())
      return listed;
    for (int64_t i = 0; i < size(); ++i)
      result.push_back(low + i * step);
    return result;
  }
  double factor = std::exp2(1 / double(perOctave)), half = std::sqrt(factor);
  auto clamp = [&](double value) {
    return value >= double(last()) ? last() : int64_t(value);
  };
  result.push_back(first());
  double target = double(first());
  for (target *= factor; target < double(last()); target *= factor) {
    std::optional<int64_t> value;
    if (listed.empty())
      value =
          roundest(clamp(target / half), clamp(target * half), clamp(target));
    else if (auto it = llvm::lower_bound(listed, clamp(target));
             it != listed.end())
      value = *it;
    if (value && *value > result.back())
      result.push_back(*value);
  }
  if (last() > result.back())
    result.push_back(last());
  return result;
}

//===----------------------------------------------------------------------===//
// Legality
//===----------------------------------------------------------------------===//

namespace {
/// Tests values of one range.
class Prober {
public:
  Prober(const CrossoverRange &range, TrialRunner &runner)
      : range(range), runner(runner) {}

  /// Which of the values are legal.
  std::vector<int64_t> filter(llvm::ArrayRef<int64_t> values);
  bool isLegal(int64_t value) { return !filter(value).empty(); }
  /// A legal value, likely to be one if its distance to 0 or to `written` is a
  /// multiple of `period`.
  std::optional<int64_t> findAnchor(int64_t period,
                                    std::optional<int64_t> written);
  int64_t findStep(int64_t anchor, int64_t period);

private:
  const CrossoverRange &range;
  TrialRunner &runner;
};
} // namespace

std::vector<int64_t> Prober::filter(llvm::ArrayRef<int64_t> values) {
  std::vector<char> legal(values.size());
  runner.run(values.size(), [&](TrialPlanner &planner, size_t i) {
    legal[i] = planner.isLegal({range.at(values[i])});
  });
  std::vector<int64_t> result;
  for (auto [value, isLegal] : llvm::zip_equal(values, legal))
    if (isLegal)
      result.push_back(value);
  return result;
}

std::optional<int64_t> Prober::findAnchor(int64_t period,
                                          std::optional<int64_t> written) {
  if (written && isLegal(*written))
    return *written;
  LegalValues multiples(range.low, range.high, 0, period, period);
  LegalValues all(range.low, range.high, 0, 1, period);
  for (const LegalValues &values : {multiples, all}) {
    std::vector<int64_t> legal = filter(values.samples(64, 4));
    if (!legal.empty())
      return legal[legal.size() / 2];
  }
  return std::nullopt;
}

/// Takes out of the period each prime that legal values do not need.
int64_t Prober::findStep(int64_t anchor, int64_t period) {
  int64_t step = period;
  for (int64_t prime : primeFactors(period)) {
    // Values that need the smaller step: a low one, a high one, and those on
    // both sides of the anchor.
    int64_t smaller = step / prime;
    LegalValues shifted(range.low, range.high, anchor + smaller, step, step);
    llvm::SmallVector<int64_t> tests;
    if (!shifted.empty())
      tests = {shifted.first(), shifted.last()};
    if (anchor > smaller)
      tests.push_back(anchor - smaller);
    if (anchor <= INT64_MAX - smaller)
      tests.push_back(anchor + smaller);
    if (!filter(tests).empty())
      step = smaller;
  }
  return step;
}

/// The values of the range itself, if they are few or are to be tested singly.
static std::vector<int64_t> valuesOf(const CrossoverRange &range) {
  if (!range.listed.empty())
    return range.listed;
  std::vector<int64_t> values;
  for (int64_t n = range.low;; n += range.step) {
    values.push_back(n);
    if (n > range.high - range.step)
      return values;
  }
}

/// Every `step`-th value from `anchor`, of those that the range has.
static LegalValues intersect(const CrossoverRange &range, int64_t anchor,
                             int64_t step, int64_t period) {
  if (range.step == 1)
    return LegalValues(range.low, range.high, anchor, step, period);
  int64_t common = std::gcd(range.step, step);
  // Too large a step for a second value is as good as any larger one.
  auto multiply = [](int64_t a, int64_t b) {
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
  };
  for (int64_t i = 0, n = range.low; i < step / common; ++i) {
    if ((n - anchor) % step == 0) {
      int64_t both = multiply(range.step, step / common);
      int64_t round = multiply(both, period / step);
      return LegalValues(n, range.high, n, both,
                         round % both == 0 ? round : both);
    }
    if (n > range.high - range.step)
      break;
    n += range.step;
  }
  return LegalValues();
}

LegalValues shardc::findLegalValues(const ProgramText &program,
                                    mlir::MLIRContext *context,
                                    const CrossoverRange &range,
                                    TrialRunner &runner) {
  Prober prober(range, runner);
  bool isShort = (range.high - range.low) / range.step < kShortRange;
  if (isShort || !range.listed.empty())
    return LegalValues(prober.filter(valuesOf(range)));
  if (range.kind == Setting::Kind::Axis) {
    // Few sizes of an axis can be bound to the machine.
    std::vector<int64_t> values = valuesOf(range);
    llvm::erase_if(values, [&](int64_t n) {
      return !checkSettings(program, context, {range.at(n)});
    });
    return LegalValues(
        int64_t(values.size()) <= kShortRange ? prober.filter(values) : values);
  }
  int64_t period = divisibilityPeriod(program, context);
  std::optional<int64_t> anchor =
      prober.findAnchor(period, writtenExtent(program, context, range.name));
  if (!anchor)
    return LegalValues();
  int64_t step = prober.findStep(*anchor, period);
  return intersect(range, *anchor, step, period);
}
