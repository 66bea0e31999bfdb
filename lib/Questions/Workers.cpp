//===- Workers.cpp - Points, planned on several threads -------------------===//

#include "shardc/Questions/Workers.h"
#include "llvm/Support/raw_ostream.h"
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

using namespace shardc;

/// `shardc: 12 of 1000 points`, rewritten in place.
class Workers::Progress {
public:
  explicit Progress(bool enabled) : enabled(enabled) {}
  ~Progress() {
    if (shown)
      write("");
  }

  void begin(size_t count) { total += count; }

  void advance() {
    if (!enabled)
      return;
    std::lock_guard<std::mutex> lock(mutex);
    ++done;
    Clock::time_point now = Clock::now();
    if (now < next)
      return;
    next = now + std::chrono::milliseconds(200);
    shown = true;
    write("shardc: " + std::to_string(done) + " of " + std::to_string(total) +
          " points");
  }

private:
  using Clock = std::chrono::steady_clock;

  static void write(llvm::StringRef line) {
    llvm::errs() << "\r\033[K" << line;
    llvm::errs().flush();
  }

  bool enabled, shown = false;
  size_t done = 0, total = 0;
  /// The first line appears when it has taken a second.
  Clock::time_point next = Clock::now() + std::chrono::seconds(1);
  std::mutex mutex;
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
