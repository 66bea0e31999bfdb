//===- Workers.cpp - Points, planned on several threads -------------------===//

#include "shardc/Questions/Workers.h"
#include "shardc/Terminal/ProgressLine.h"
#include <atomic>

using namespace shardc;

/// `1.2 s  12 of 1000 points`.
class Workers::Progress {
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

Workers::Workers(MakePlanner makePlanner, unsigned jobs, bool showProgress)
    : makePlanner(std::move(makePlanner)), planners(jobs),
      progress(std::make_unique<Progress>(showProgress)) {}

Workers::~Workers() = default;

PointPlanner &Workers::planner(unsigned worker) {
  if (!planners[worker])
    planners[worker] = makePlanner();
  return *planners[worker];
}

void Workers::run(size_t count,
                  llvm::function_ref<void(PointPlanner &, size_t)> work) {
  progress->begin(count);
  std::atomic<size_t> next = 0;
  auto runWorker = [&](unsigned worker) {
    for (size_t i = next++; i < count; i = next++) {
      work(planner(worker), i);
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
