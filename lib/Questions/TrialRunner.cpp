//===- TrialRunner.cpp - Variants of a program, planned -------------------===//

#include "shardc/Questions/TrialRunner.h"
#include "shardc/Terminal/ProgressLine.h"
#include <atomic>

using namespace shardc;

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
      limit(options.timeLimitSeconds, options.interrupted) {}

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

std::vector<Outcome> TrialRunner::plan(llvm::ArrayRef<Variant> variants) {
  std::vector<Outcome> outcomes(variants.size());
  run(variants.size(), [&](TrialPlanner &planner, size_t i) {
    if (hasTime())
      outcomes[i] = planner.plan(variants[i]);
  });
  return outcomes;
}

Outcome TrialRunner::plan(const Variant &variant) {
  return std::move(plan(llvm::ArrayRef(variant)).front());
}
