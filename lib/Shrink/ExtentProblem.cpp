//===- ExtentProblem.cpp - Small extents that relate as large ones --------===//
//
// A depth-first search in ascending order, counts before. All that bounds an
// extent from below are smaller extents, and a combination's parts are smaller
// than its whole, so the least value is right for every extent but the parts of
// combinations; only these are tried with several.
//
//===----------------------------------------------------------------------===//

#include "ExtentProblem.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace shardc;

/// Values tried for one part of a combination, and steps of one search.
static constexpr unsigned kMaxCandidates = 32;
static constexpr unsigned kMaxSteps = 1 << 16;

void ShrinkableExtent::divideBy(int64_t divisor) {
  int64_t factor = divisor / std::gcd(step, divisor);
  // Nothing that large is admitted.
  if (llvm::MulOverflow(step, factor, step))
    step = most = 0;
  step = std::max<int64_t>(step, 1);
}

void ShrinkableExtent::fixTo(int64_t value) {
  least = std::max(least, value);
  most = std::min(most, value);
}

namespace {
/// Which preferences hold.
struct Preferences {
  enum class Order : uint8_t {
    None,
    /// Extents that neither a combination nor a fixed value determines.
    AmongFree,
    All,
  };
  Order order = Order::All;
  bool twoPerShard = true;
  bool uneven = true;
};

class ExtentSearch {
public:
  ExtentSearch(const ExtentProblem &problem, Preferences preferences,
               std::vector<int64_t> &values)
      : problem(problem), preferences(preferences), values(values),
        isPart(problem.extents.size()), isWhole(problem.extents.size()) {
    for (const ExtentCombination &combination : problem.combinations) {
      isWhole[combination.whole] = true;
      for (unsigned part : combination.parts)
        isPart[part] = true;
    }
  }

  /// Assigns `members`, which stand in searchOrder and relate to no other
  /// extent (but by order); false if nothing was found, `values` being
  /// undefined then.
  bool run(llvm::ArrayRef<unsigned> members) { return assign(members, 1); }

private:
  bool assign(llvm::ArrayRef<unsigned> members, int64_t largest);
  bool isOrdered(unsigned extent) const;
  int64_t lowerBound(unsigned extent, int64_t largest) const;
  bool isCountsValue(unsigned extent, int64_t value) const;
  std::optional<int64_t> firstFrom(unsigned extent, int64_t bound) const;
  int64_t combine(const ExtentCombination &combination) const;
  std::optional<int64_t> combined(unsigned extent, int64_t bound) const;

  const ExtentProblem &problem;
  Preferences preferences;
  std::vector<int64_t> &values;
  std::vector<bool> isPart, isWhole;
  unsigned steps = 0;
};
} // namespace

bool ExtentSearch::isOrdered(unsigned extent) const {
  if (problem.extents[extent].isCount ||
      preferences.order == Preferences::Order::None)
    return false;
  return preferences.order == Preferences::Order::All ||
         (!isWhole[extent] && !problem.extents[extent].isFixed());
}

int64_t ExtentSearch::lowerBound(unsigned extent, int64_t largest) const {
  const ShrinkableExtent &limits = problem.extents[extent];
  int64_t bound = limits.least;
  if (preferences.twoPerShard && !limits.isFixed())
    bound = std::max(bound, limits.preferred);
  if (isOrdered(extent))
    bound = std::max(bound, largest + 1);
  for (const ExtentDistance &distance : problem.distances)
    if (distance.larger == extent)
      bound = std::max(bound, values[distance.smaller] + distance.least);
  return bound;
}

/// True if a count has `value` and the extent can be told from it by a larger
/// one.
bool ExtentSearch::isCountsValue(unsigned extent, int64_t value) const {
  if (preferences.order != Preferences::Order::All ||
      problem.extents[extent].isCount || value >= problem.extents[extent].most)
    return false;
  return llvm::any_of(llvm::enumerate(problem.extents), [&](const auto &other) {
    return other.value().isCount && values[other.index()] == value;
  });
}

/// The least value from `bound` on that the extent may take.
std::optional<int64_t> ExtentSearch::firstFrom(unsigned extent,
                                               int64_t bound) const {
  const ShrinkableExtent &limits = problem.extents[extent];
  auto mustBeUneven = [&](int64_t value) {
    return preferences.uneven && llvm::any_of(limits.uneven, [&](int64_t size) {
             return value % size == 0;
           });
  };
  // Then so is every multiple of the step.
  if (mustBeUneven(limits.step))
    return std::nullopt;
  for (int64_t value = llvm::divideCeil(bound, limits.step) * limits.step;
       value <= limits.most; value += limits.step)
    if (!mustBeUneven(value) && !isCountsValue(extent, value))
      return value;
  return std::nullopt;
}

int64_t ExtentSearch::combine(const ExtentCombination &combination) const {
  int64_t result = combination.kind == ExtentCombination::Kind::Product
                       ? 1
                       : combination.ones;
  // Parts do not exceed the original ones, nor does the result.
  for (unsigned part : combination.parts)
    result = combination.kind == ExtentCombination::Kind::Product
                 ? result * values[part]
                 : result + values[part];
  return result;
}

/// The value that combinations give a whole, if it is one that it may take.
std::optional<int64_t> ExtentSearch::combined(unsigned extent,
                                              int64_t bound) const {
  std::optional<int64_t> value;
  for (const ExtentCombination &combination : problem.combinations) {
    if (combination.whole != extent)
      continue;
    int64_t result = combine(combination);
    if (value && *value != result)
      return std::nullopt;
    value = result;
  }
  if (*value < bound || firstFrom(extent, *value) != value)
    return std::nullopt;
  return value;
}

bool ExtentSearch::assign(llvm::ArrayRef<unsigned> members, int64_t largest) {
  if (members.empty())
    return true;
  unsigned extent = members.front();
  int64_t bound = lowerBound(extent, largest);
  auto tryValue = [&](std::optional<int64_t> value) {
    if (!value || ++steps > kMaxSteps)
      return false;
    values[extent] = *value;
    return assign(members.drop_front(),
                  isOrdered(extent) ? std::max(largest, *value) : largest);
  };
  if (isWhole[extent])
    return tryValue(combined(extent, bound));
  unsigned candidates = isPart[extent] ? kMaxCandidates : 1;
  for (unsigned i = 0; i < candidates && steps <= kMaxSteps; ++i) {
    std::optional<int64_t> value = firstFrom(extent, bound);
    if (!value)
      return false;
    if (tryValue(value))
      return true;
    bound = *value + 1;
  }
  return false;
}

/// Extents that combinations and distances relate, each list in ascending
/// order.
static std::vector<std::vector<unsigned>>
components(const ExtentProblem &problem) {
  std::vector<unsigned> leader(problem.extents.size());
  std::iota(leader.begin(), leader.end(), 0);
  auto find = [&](unsigned extent) {
    while (leader[extent] != extent)
      extent = leader[extent];
    return extent;
  };
  auto join = [&](unsigned a, unsigned b) {
    a = find(a);
    b = find(b);
    leader[std::max(a, b)] = std::min(a, b);
  };
  for (const ExtentCombination &combination : problem.combinations)
    for (unsigned part : combination.parts)
      join(combination.whole, part);
  for (const ExtentDistance &distance : problem.distances)
    join(distance.smaller, distance.larger);
  std::vector<std::vector<unsigned>> lists(problem.extents.size());
  for (unsigned extent = 0; extent < problem.extents.size(); ++extent)
    lists[find(extent)].push_back(extent);
  llvm::erase_if(lists, [](const auto &list) { return list.empty(); });
  return lists;
}

/// Counts first, so that others can differ from them; wholes after their parts.
static std::vector<unsigned> searchOrder(const ExtentProblem &problem) {
  auto isBounded = [&](unsigned extent) {
    return llvm::any_of(problem.combinations,
                        [&](const ExtentCombination &combination) {
                          return combination.whole == extent;
                        }) ||
           llvm::any_of(problem.distances, [&](const ExtentDistance &distance) {
             return distance.larger == extent;
           });
  };
  std::vector<unsigned> first, rest;
  for (unsigned extent = 0; extent < problem.extents.size(); ++extent) {
    bool isFirst = problem.extents[extent].isCount && !isBounded(extent);
    (isFirst ? first : rest).push_back(extent);
  }
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

ShrunkExtents shardc::solve(const ExtentProblem &problem) {
  using Order = Preferences::Order;
  ShrunkExtents result;
  result.values.resize(problem.extents.size());
  std::vector<unsigned> all = searchOrder(problem);
  for (Preferences preferences : {Preferences{Order::All, true, true},
                                  Preferences{Order::All, false, true},
                                  Preferences{Order::AmongFree, true, true},
                                  Preferences{Order::AmongFree, false, true}})
    if (problem.prefersOrder &&
        ExtentSearch(problem, preferences, result.values).run(all))
      return result;
  // Without order, only combinations and distances relate extents.
  for (const std::vector<unsigned> &component : components(problem)) {
    bool isSolved =
        llvm::any_of(llvm::ArrayRef<Preferences>{{Order::None, true, true},
                                                 {Order::None, false, true},
                                                 {Order::None, false, false}},
                     [&](Preferences preferences) {
                       return ExtentSearch(problem, preferences, result.values)
                           .run(component);
                     });
    if (isSolved)
      continue;
    for (unsigned extent : component) {
      const ShrinkableExtent &limits = problem.extents[extent];
      result.values[extent] = limits.original;
      if (!limits.admits(limits.original))
        result.unmetAxes |= limits.axes;
    }
  }
  return result;
}
