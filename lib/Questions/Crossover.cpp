//===- Crossover.cpp - Where the outcome changes --------------------------===//
//
// A geometric grid of samples, then rounds of bisection: each plans a value
// between every two known neighbours whose states differ. Values that turn out
// illegal have a state of their own, so that both ends of a run of them are
// found. Which values are planned depends on their states alone, so the result
// does not depend on the number of threads.
//
//===----------------------------------------------------------------------===//

#include "shardc/Questions/Crossover.h"
#include <map>

using namespace shardc;

/// As many legal values are all planned.
static constexpr int64_t kAllValues = 256;
/// Otherwise samples are this many a doubling.
static constexpr int64_t kPerOctave = 4;
/// After so many changes of the plan within one period of divisibility, others
/// in it are left: the plan depends on what divides the value, and changes all
/// the time.
static constexpr int kChangesPerPeriod = 8;
/// No more values are planned.
static constexpr size_t kMostPlanned = 10000;
/// Part of the time that is left for the next values: others follow.
static constexpr double kShareOfRound = 0.5;
/// A plan of so many operations takes seconds. Then samples are fewer, values
/// are looked for to this part of them, and only those where the whole step
/// changes: layouts of single tensors change all the time.
static constexpr size_t kManyOperations = 60;
static constexpr int64_t kFewValues = 16, kFewPerOctave = 1, kPartOfValue = 8;

namespace {

/// One search.
class CrossoverSearch {
public:
  CrossoverSearch(const CrossoverRange &range, const LegalValues &values,
                  TrialRunner &runner, Crossovers &result)
      : range(range), values(values), runner(runner), result(result) {}

  void run();

private:
  void plan(llvm::ArrayRef<int64_t> batch);
  std::vector<int64_t> nextRound() const;
  std::optional<int64_t> splitAt(int64_t a, int64_t b) const;
  std::map<int64_t, int> changesByPeriod() const;
  using Known = std::pair<const int64_t, PlanState>;
  void addChangesOfStep(const Known &before, const Known &at);
  void collect();

  const CrossoverRange &range;
  const LegalValues &values;
  TrialRunner &runner;
  Crossovers &result;
  std::map<int64_t, PlanState> states;
  /// Plans take seconds.
  bool isLarge = false;
  std::string firstError;
};

} // namespace

void CrossoverSearch::plan(llvm::ArrayRef<int64_t> batch) {
  std::vector<std::optional<PlanState>> planned(batch.size());
  std::vector<std::string> errors(batch.size());
  auto variantOf = [&](size_t i) { return Variant::at({range.at(batch[i])}); };
  auto take = [&](size_t i, Outcome outcome) {
    if (!outcome.isUntried)
      planned[i] = stateOf(outcome);
    errors[i] = std::move(outcome.error);
  };
  runner.plan(batch.size(), variantOf, take, kShareOfRound);
  for (auto [i, value] : llvm::enumerate(batch)) {
    if (!(planned[i] && planned[i]->legal) && firstError.empty())
      firstError = errors[i];
    if (planned[i])
      states.emplace(value, std::move(*planned[i]));
  }
}

/// A value between two neighbours that differ; nothing if none needs planning.
std::optional<int64_t> CrossoverSearch::splitAt(int64_t a, int64_t b) const {
  if (states.at(a) == states.at(b))
    return std::nullopt;
  return values.between(a, b);
}

/// True if there are other layouts or steps, or only one is legal.
static bool planDiffers(const PlanState &a, const PlanState &b) {
  return a.legal != b.legal || a.tensors != b.tensors || a.steps != b.steps;
}

/// For states that differ: true if the step has another bottleneck, only one
/// fits, or only bottlenecks of operations differ in the same plan.
static bool boundDiffers(const PlanState &a, const PlanState &b) {
  return a.legal && b.legal &&
         (a.bound != b.bound || a.fits != b.fits || !planDiffers(a, b));
}

/// For states that differ: true if all of the step does.
static bool stepDiffers(const PlanState &a, const PlanState &b) {
  return a.legal != b.legal || a.bound != b.bound || a.fits != b.fits ||
         a.parallelism != b.parallelism;
}

/// How many changes of the plan are known in each period of values.
std::map<int64_t, int> CrossoverSearch::changesByPeriod() const {
  std::map<int64_t, int> changes;
  for (auto it = states.begin(); std::next(it) != states.end(); ++it) {
    auto next = std::next(it);
    if (planDiffers(it->second, next->second) &&
        !values.between(it->first, next->first))
      ++changes[it->first / values.getPeriod()];
  }
  return changes;
}

std::vector<int64_t> CrossoverSearch::nextRound() const {
  std::map<int64_t, int> changes = changesByPeriod();
  int64_t period = values.getPeriod();
  std::vector<int64_t> round;
  for (auto it = states.begin(); std::next(it) != states.end(); ++it) {
    auto next = std::next(it);
    int64_t a = it->first, b = next->first;
    auto value = splitAt(a, b);
    if (isLarge &&
        (b - a <= a / kPartOfValue || !stepDiffers(it->second, next->second)))
      continue;
    if (value && (b - a >= period || changes[a / period] < kChangesPerPeriod ||
                  boundDiffers(it->second, next->second)))
      round.push_back(*value);
  }
  return round;
}

/// Adds the changes of the whole step between values that are near.
void CrossoverSearch::addChangesOfStep(const Known &before, const Known &at) {
  for (Change &change :
       changesBetween(before.first, before.second, at.first, at.second))
    if (change.what != "plan" && change.what != "op.bound")
      result.changes.push_back(std::move(change));
}

/// Compares each legal value with the one before.
void CrossoverSearch::collect() {
  std::vector<const PlanState *> legal;
  for (const auto &each : states)
    if (each.second.legal)
      legal.push_back(&each.second);
  result.planned = states.size();
  result.values = values.size();
  result.complete = result.planned == result.values;
  result.alternates = alternates(legal);
  const Known *last = nullptr;
  bool resolved = true;
  int64_t previous = 0;
  for (const auto &each : states) {
    if (last && (result.alternates ? values.between(previous, each.first)
                                   : splitAt(previous, each.first)))
      resolved = false;
    previous = each.first;
    if (!each.second.legal)
      continue;
    if (!last) {
      result.first = each.first;
      result.firstState = each.second;
    } else if (!resolved) {
      if (!result.unresolved.empty() &&
          result.unresolved.back().second == last->first)
        result.unresolved.back().second = each.first;
      else
        result.unresolved.push_back({last->first, each.first});
      if (isLarge)
        addChangesOfStep(*last, each);
    } else {
      llvm::append_range(
          result.changes,
          changesBetween(last->first, last->second, each.first, each.second));
    }
    result.last = each.first;
    last = &each;
    resolved = true;
  }
}

void CrossoverSearch::run() {
  std::vector<int64_t> round = values.samples(kAllValues, kPerOctave);
  if (!round.empty())
    plan({round.back()});
  if (states.empty()) { // no value is legal, or no time is left
    round.clear();
  } else {
    isLarge = !values.isList() &&
              states.at(round.back()).ops.size() >= kManyOperations;
    if (isLarge)
      round = values.samples(kFewValues, kFewPerOctave);
    llvm::erase(round, states.begin()->first);
  }
  while (!round.empty() && states.size() + round.size() <= kMostPlanned) {
    plan(round);
    if (!runner.isComplete())
      break;
    round = nextRound();
  }
  collect();
  if (!result.first)
    result.error = firstError;
}

Crossovers shardc::findCrossovers(const CrossoverRange &range,
                                  const LegalValues &values,
                                  TrialRunner &runner) {
  Crossovers result;
  result.name = range.name;
  result.low = range.low;
  result.high = range.high;
  if (values.empty())
    return result;
  CrossoverSearch(range, values, runner, result).run();
  return result;
}
