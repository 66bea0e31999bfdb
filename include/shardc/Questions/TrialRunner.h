//===- TrialRunner.h - Variants of a program, planned ---------*- C++ -*-===//
//
// All questions about many plans are made of trials: variants of a program in,
// what comes of planning each out, in the same order. A runner has threads, a
// line on the terminal and a time limit for all trials together. What it
// returns does not depend on the number of threads.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_QUESTIONS_TRIALRUNNER_H
#define SHARDC_QUESTIONS_TRIALRUNNER_H

#include "shardc/Questions/Variant.h"
#include "shardc/Report/Report.h"
#include "shardc/Solver/Deadline.h"

namespace shardc {

/// The result of planning a variant.
struct Outcome {
  /// Nothing if the variant is not legal, or its trial never began.
  std::optional<Report> report = {};
  /// The time ended before its trial began, or before it had a plan.
  bool isUntried = false;
  /// Why the variant is not legal or does not fit in memory, and the place in
  /// the program (`ffn.shd:7:8`); empty if neither.
  std::string error = {}, loc = {};
  /// Layouts of the plan, at the places that the variant watches.
  std::vector<Layout> layouts = {};
  /// The planned module as bytecode, if the variant keeps it.
  std::shared_ptr<const std::string> plan = {};
  /// The search took little effort.
  bool isQuick = false;
  /// The plan as the search knows it, for Variant::start.
  std::vector<solver::Label> labels = {};
};

/// Plans variants, on one thread.
class TrialPlanner {
public:
  virtual ~TrialPlanner() = default;
  virtual Outcome plan(const Variant &variant) = 0;
  /// True if the program can be imported at the point: all that makes a point
  /// illegal but what planning finds.
  virtual bool isLegal(const Point &point) = 0;
};

/// Seconds in which something is planned that can be shown, where an interrupt
/// came before there was a plan.
inline constexpr double kSecondsAfterInterrupt = 0.2;

struct TrialOptions {
  /// Threads, each with a planner of its own.
  unsigned jobs = 1;
  /// Tell on standard error how far the trials are, once they take long.
  bool showProgress = false;
  /// From the making of the runner; plan() ends its trials by then, and begins
  /// none that would end later.
  std::optional<double> timeLimitSeconds = {};
  /// The same once it becomes true.
  const std::atomic<bool> *interrupted = nullptr;
  /// If no trial has a plan then, the first that is left has a moment all the
  /// same, beginning with this plan of the program as it is written.
  bool showsOne = false;
  std::vector<solver::Label> start = {};
};

class TrialRunner {
public:
  using MakePlanner = std::function<std::unique_ptr<TrialPlanner>()>;

  explicit TrialRunner(MakePlanner makePlanner, TrialOptions options = {});
  ~TrialRunner();

  /// Plans each variant by itself; outcomes are in the order of the variants.
  /// They share the time that is left, or the part `share` of it where more
  /// trials follow.
  std::vector<Outcome> plan(llvm::ArrayRef<Variant> variants, double share = 1);
  Outcome plan(const Variant &variant, double share = 1);
  /// The same for variants and outcomes that are not kept together; `take` is
  /// called on any thread.
  void plan(size_t count, llvm::function_ref<Variant(size_t)> variantOf,
            llvm::function_ref<void(size_t, Outcome)> take, double share = 1);

  /// Calls `work` for 0, 1, ... `count` - 1, on any thread and in any order,
  /// whatever the time: for work that is more or less than to plan a variant.
  void run(size_t count, llvm::function_ref<void(TrialPlanner &, size_t)> work);

  /// The same for work that needs no planner of the runner.
  void runAlone(size_t count, llvm::function_ref<void(size_t)> work);

  bool hasTime() const { return !limit.expired(); }
  /// No trial was left out, and no search interrupted.
  bool isComplete() const { return numUntried == 0 && !isInterrupted(); }
  const solver::Deadline &deadline() const { return limit; }
  bool isInterrupted() const {
    return limit.interruption() && limit.interruption()->load();
  }

private:
  class Progress;
  void runWorkers(size_t count,
                  llvm::function_ref<void(unsigned, size_t)> work);
  TrialPlanner &planner(unsigned worker);
  Outcome tryWithin(TrialPlanner &planner, Variant variant,
                    std::optional<double> seconds);
  Outcome tryLast(TrialPlanner &planner, Variant variant);
  void leaveUntried(Outcome &outcome);

  MakePlanner makePlanner;
  /// One a thread, made when first needed.
  std::vector<std::unique_ptr<TrialPlanner>> planners;
  std::unique_ptr<Progress> progress;
  solver::Deadline limit;
  std::atomic<size_t> numUntried = 0;
  bool showsOne;
  std::vector<solver::Label> start;
  std::atomic<bool> hasPlan = false, hasTriedLast = false;
  /// The most seconds for which a trial went on after the end of its time.
  std::atomic<double> overrun = 0;
};

} // namespace shardc

#endif // SHARDC_QUESTIONS_TRIALRUNNER_H
