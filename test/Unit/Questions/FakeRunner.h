//===- FakeRunner.h - Outcomes that a function makes up -------*- C++ -*-===//
//
// Stands in for the compiler: what a point comes to is a function of its first
// value.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TEST_UNIT_QUESTIONS_FAKERUNNER_H
#define SHARDC_TEST_UNIT_QUESTIONS_FAKERUNNER_H

#include "shardc/Questions/TrialRunner.h"
#include <atomic>

namespace shardc::test {

/// The outcome of a point where only what bounds the step is of interest.
inline Outcome boundBy(const char *bound) {
  Outcome outcome;
  outcome.report.emplace();
  outcome.report->time.bound = bound;
  return outcome;
}

inline Outcome illegal() {
  return {.error = "not divisible", .loc = "a.shd:1:1"};
}

class FakePlanner : public TrialPlanner {
public:
  using Function = std::function<Outcome(int64_t)>;

  FakePlanner(Function function, std::atomic<int> &planned)
      : function(std::move(function)), planned(planned) {}

  Outcome plan(const Variant &variant) override {
    ++planned;
    seconds.push_back(variant.timeLimitSeconds.value_or(0));
    return function(variant.point.front().number);
  }
  bool isLegal(const Point &point) override {
    return function(point.front().number).report.has_value();
  }

  /// The time limits of the trials.
  std::vector<double> seconds;

private:
  Function function;
  std::atomic<int> &planned;
};

/// A runner whose planners are `function`; `planned` counts the points.
class FakeRunner : public TrialRunner {
public:
  explicit FakeRunner(FakePlanner::Function function, unsigned jobs = 1)
      : TrialRunner(
            [this, function] {
              return std::make_unique<FakePlanner>(function, planned);
            },
            {jobs, /*showProgress=*/false}) {}

  std::atomic<int> planned = 0;
};

} // namespace shardc::test

#endif // SHARDC_TEST_UNIT_QUESTIONS_FAKERUNNER_H
