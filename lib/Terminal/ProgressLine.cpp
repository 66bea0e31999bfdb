//===- ProgressLine.cpp - How far something is, on a terminal -------------===//

#include "shardc/Terminal/ProgressLine.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <fmt/format.h>

using namespace shardc;

static constexpr std::chrono::milliseconds kFirst(500), kNext(200);

ProgressLine::ProgressLine(bool enabled) {
  if (enabled)
    writer = std::thread([this] { run(); });
}

ProgressLine::~ProgressLine() {
  if (!writer.joinable())
    return;
  {
    std::lock_guard<std::mutex> lock(mutex);
    isOver = true;
  }
  ended.notify_one();
  writer.join();
}

bool ProgressLine::isWanted() { return llvm::errs().is_displayed(); }

void ProgressLine::show(std::string what) {
  std::lock_guard<std::mutex> lock(mutex);
  text = std::move(what);
}

void ProgressLine::show(const std::optional<std::string> &best,
                        const std::optional<std::string> &bound,
                        std::optional<double> gap) {
  std::string known;
  if (best)
    known += "  best " + *best;
  if (bound)
    known += "  bound " + *bound;
  if (gap)
    known += fmt::format("  gap {:.4f} %", 100 * *gap);
  show(known.empty() ? known : known.substr(2));
}

void ProgressLine::run() {
  constexpr const char *kErase = "\r\033[K";
  auto start = std::chrono::steady_clock::now();
  std::unique_lock<std::mutex> lock(mutex);
  auto isEnd = [this] { return isOver; };
  if (ended.wait_for(lock, kFirst, isEnd))
    return;
  do {
    std::chrono::duration<double> passed =
        std::chrono::steady_clock::now() - start;
    llvm::errs() << kErase << fmt::format("{:.1f} s  {}", passed.count(), text);
    llvm::errs().flush();
  } while (!ended.wait_for(lock, kNext, isEnd));
  llvm::errs() << kErase;
  llvm::errs().flush();
}
