//===- TrialRunner.cpp - Variants of a program, planned -------------------===//

#include "shardc/Questions/TrialRunner.h"
#include "shardc/Terminal/ProgressLine.h"
#include <atomic>

using namespace shardc;

/// Where many trials share the time, each has so many seconds: with less, a
/// search finds no plan worth showing.
static constexpr double kLeastSeconds = 0.25;

/// `1.2 s  12 of 1000 points`.
class TrialRunner::Progress {
public:
  explicit Progress(bool enabled) : line(enabled) {}

  void begin(size_t count) {
    total += count;
    show();
  }
  void advance() {
    ++done;
    show();
  }

private:
  void show() {
    line.show(std::to_string(done) + " of " + std::to_string(total) +
              " points");
  }

  std::atomic<size_t> done = 0, total = 0;
  ProgressLine line;
};

TrialRunner::TrialRunner(MakePlanner makePlanner, TrialOptions options)
    : makePlanner(std::move(makePlanner)), planners(options.jobs),
      progress(std::make_unique<Progress>(options.showProgress)),
      limit(options.timeLimitSeconds, options.interrupted),
      showsOne(options.showsOne), start(std::move(options.start)) {}

TrialRunner::~TrialRunner() = default;

TrialPlanner &TrialRunner::planner(unsigned worker) {
  if (!planners[worker])
    planners[worker] = makePlanner();
  return *planners[worker];
}

void TrialRunner::run(size_t count,
                      llvm::function_ref<void(TrialPlanner &, size_t)> work) {
  runWorkers(count,
             [&](unsigned worker, size_t i) { work(planner(worker), i); });
}

void TrialRunner::runAlone(size_t count,
                           llvm::function_ref<void(size_t)> work) {
  runWorkers(count, [&](unsigned, size_t i) { work(i); });
}

void TrialRunner::runWorkers(size_t count,
                             llvm::function_ref<void(unsigned, size_t)> work) {
  progress->begin(count);
  std::atomic<size_t> next = 0;
  auto runWorker = [&](unsigned worker) {
    for (size_t i = next++; i < count; i = next++) {
      work(worker, i);
      progress->advance();
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::min(planners.size(), count); ++i)
    threads.emplace_back(runWorker, i);
  runWorker(0);
  for (std::thread &thread : threads)
    thread.join();
}

void TrialRunner::leaveUntried(Outcome &outcome) {
  ++numUntried;
  outcome.isUntried = true;
  outcome.report.reset();
  outcome.error = isInterrupted() ? "interrupted" : "the time limit ended";
  outcome.loc.clear();
}

/// False of what is no answer because the time ended.
static bool isPlan(const Outcome &outcome) {
  return outcome.report && !outcome.report->plan.noneInTime;
}

/// A trial that an interrupt leaves without a plan: tried all the same, with
/// little time, if there would be nothing to show.
Outcome TrialRunner::tryLast(TrialPlanner &planner, Variant variant) {
  Outcome outcome;
  if (showsOne && isInterrupted() && !hasPlan && !hasTriedLast.exchange(true)) {
    variant.ignoresInterrupt = true;
    variant.timeLimitSeconds = kSecondsAfterInterrupt;
    if (variant.start.empty())
      variant.start = start;
    outcome = planner.plan(variant);
  }
  if (isPlan(outcome))
    hasPlan = true;
  else
    leaveUntried(outcome);
  return outcome;
}

/// Imports and reports go on when the time of a search has ended: what earlier
/// trials took for that is taken off the time of later ones.
Outcome TrialRunner::tryWithin(TrialPlanner &planner, Variant variant,
                               std::optional<double> seconds) {
  if (!hasTime() || (seconds && *limit.remaining() < overrun))
    return tryLast(planner, std::move(variant));
  double left = limit.remaining().value_or(0);
  if (seconds)
    variant.timeLimitSeconds = std::max(
        0.0, std::min(std::max(*seconds, kLeastSeconds), left - overrun));
  Outcome outcome = planner.plan(variant);
  if (isPlan(outcome))
    hasPlan = true;
  else if (outcome.report || !hasTime())
    return tryLast(planner, std::move(variant));
  if (!seconds)
    return outcome;
  double late = left - *limit.remaining() - *variant.timeLimitSeconds;
  for (double known = overrun; late > known;)
    if (overrun.compare_exchange_weak(known, late))
      break;
  return outcome;
}

void TrialRunner::plan(size_t count,
                       llvm::function_ref<Variant(size_t)> variantOf,
                       llvm::function_ref<void(size_t, Outcome)> take,
                       double share) {
  solver::Deadline end = limit.part(share);
  run(count, [&](TrialPlanner &planner, size_t i) {
    std::optional<double> seconds = end.remaining();
    if (size_t begun = std::min(count - i, planners.size()); seconds)
      *seconds *= double(begun) / double(count - i);
    take(i, tryWithin(planner, variantOf(i), seconds));
  });
}

std::vector<Outcome> TrialRunner::plan(llvm::ArrayRef<Variant> variants,
                                       double share) {
  std::vector<Outcome> outcomes(variants.size());
  plan(
      variants.size(), [&](size_t i) { return variants[i]; },
      [&](size_t i, Outcome outcome) { outcomes[i] = std::move(outcome); },
      share);
  return outcomes;
}

Outcome TrialRunner::plan(const Variant &variant, double share) {
  return std::move(plan(llvm::ArrayRef(variant), share).front());
}
