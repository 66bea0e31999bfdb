//===- TrialRunnerTest.cpp - Variants, planned on threads -----------------===//

#include "shardc/Questions/TrialRunner.h"
#include "FakeRunner.h"
#include <gtest/gtest.h>
#include <thread>

using namespace shardc;
using namespace shardc::test;

namespace {

/// The program with a dim set to 0, 1, ...
std::vector<Variant> variants(int64_t count) {
  std::vector<Variant> result;
  for (int64_t i = 0; i < count; ++i)
    result.push_back(Variant::at({{Setting::Kind::Dim, "B", i, nullptr, {}}}));
  return result;
}

Outcome numbered(int64_t number) {
  Outcome outcome;
  outcome.error = std::to_string(number);
  return outcome;
}

// Outcomes are in the order of the variants, whichever thread plans them.
TEST(TrialRunner, KeepsTheOrder) {
  for (unsigned jobs : {1, 2, 7}) {
    FakeRunner runner(numbered, jobs);
    std::vector<Outcome> outcomes = runner.plan(variants(50));
    ASSERT_EQ(outcomes.size(), 50u);
    for (auto [i, outcome] : llvm::enumerate(outcomes))
      EXPECT_EQ(outcome.error, std::to_string(i));
    EXPECT_EQ(runner.planned, 50);
  }
}

// No trial begins once the time is over; its outcome says so.
TEST(TrialRunner, EndsAtTheTimeLimit) {
  std::atomic<int> planned = 0;
  TrialOptions options;
  options.timeLimitSeconds = 0;
  TrialRunner runner(
      [&] { return std::make_unique<FakePlanner>(numbered, planned); },
      options);
  EXPECT_FALSE(runner.hasTime());
  std::vector<Outcome> outcomes = runner.plan(variants(3));
  ASSERT_EQ(outcomes.size(), 3u);
  EXPECT_FALSE(outcomes.front().report);
  EXPECT_TRUE(outcomes.front().isUntried);
  EXPECT_EQ(outcomes.front().error, "the time limit ended");
  EXPECT_EQ(planned, 0);
  EXPECT_FALSE(runner.isComplete());
}

// Of 4000 s for four trials that take none, the first has 4000 / 4, the second
// 4000 / 3, then 4000 / 2 and all; of half of the time half as much.
TEST(TrialRunner, SharesTheTime) {
  std::atomic<int> planned = 0;
  TrialOptions options;
  options.timeLimitSeconds = 4000;
  FakePlanner *planner = nullptr;
  TrialRunner runner(
      [&] {
        auto made = std::make_unique<FakePlanner>(numbered, planned);
        planner = made.get();
        return made;
      },
      options);
  runner.plan(variants(2), /*share=*/0.5);
  runner.plan(variants(4));
  const double expected[] = {1000, 2000, 1000, 4000 / 3., 2000, 4000};
  ASSERT_EQ(planner->seconds.size(), std::size(expected));
  for (auto [found, hand] : llvm::zip_equal(planner->seconds, expected))
    EXPECT_NEAR(found, hand, 0.02 * hand); // the machine may be slow
  EXPECT_TRUE(runner.isComplete());
}

// What a trial takes beyond its time (an import, a report) is not left for the
// next one.
TEST(TrialRunner, BeginsNoTrialThatWouldEndLate) {
  std::atomic<int> planned = 0;
  TrialOptions options;
  options.timeLimitSeconds = 0.8;
  TrialRunner runner(
      [&] {
        return std::make_unique<FakePlanner>(
            [](int64_t number) {
              std::this_thread::sleep_for(std::chrono::milliseconds(600));
              return numbered(number);
            },
            planned);
      },
      options);
  // Of 0.8 s the first of three has 0.27 s and takes 0.6 s: 0.33 s too long,
  // and 0.2 s are left.
  std::vector<Outcome> outcomes = runner.plan(variants(3));
  EXPECT_EQ(planned, 1);
  EXPECT_FALSE(outcomes[0].isUntried);
  EXPECT_TRUE(outcomes[1].isUntried && outcomes[2].isUntried);
}

// After Ctrl-C no trial begins, and one that is running and has no plan counts
// as untried.
TEST(TrialRunner, EndsWhenInterrupted) {
  std::atomic<int> planned = 0;
  std::atomic<bool> interrupted = false;
  TrialOptions options;
  options.interrupted = &interrupted;
  TrialRunner runner(
      [&] {
        return std::make_unique<FakePlanner>(
            [&](int64_t number) {
              interrupted = number == 1;
              return numbered(number);
            },
            planned);
      },
      options);
  std::vector<Outcome> outcomes = runner.plan(variants(4));
  EXPECT_EQ(planned, 2);
  EXPECT_FALSE(outcomes[0].isUntried);
  EXPECT_TRUE(outcomes[1].isUntried);
  EXPECT_EQ(outcomes[2].error, "interrupted");
  EXPECT_FALSE(runner.isComplete());
}

// A plan that a search falls back to at the end of its time is no answer.
TEST(TrialRunner, CountsPlansOfNoSearchAsUntried) {
  std::atomic<int> planned = 0;
  TrialOptions options;
  options.timeLimitSeconds = 1000;
  auto planOf = [](int64_t number) {
    Outcome outcome = boundBy("hbm");
    outcome.report->plan.noneInTime = number == 1;
    return outcome;
  };
  TrialRunner runner(
      [&] { return std::make_unique<FakePlanner>(planOf, planned); }, options);
  std::vector<Outcome> outcomes = runner.plan(variants(3));
  EXPECT_TRUE(outcomes[0].report && outcomes[2].report);
  EXPECT_FALSE(outcomes[1].report);
  EXPECT_TRUE(outcomes[1].isUntried);
  EXPECT_EQ(outcomes[1].error, "the time limit ended");
  EXPECT_FALSE(runner.isComplete());
}

// Where an interrupt comes before there is a plan, one trial has a moment more.
TEST(TrialRunner, ShowsOneAfterAnInterrupt) {
  std::atomic<int> planned = 0;
  std::atomic<bool> interrupted = true;
  TrialOptions options;
  options.interrupted = &interrupted;
  options.showsOne = true;
  FakePlanner *planner = nullptr;
  TrialRunner runner(
      [&] {
        auto made = std::make_unique<FakePlanner>(
            [](int64_t) { return boundBy("hbm"); }, planned);
        planner = made.get();
        return made;
      },
      options);
  std::vector<Outcome> outcomes = runner.plan(variants(3));
  EXPECT_TRUE(outcomes[0].report);
  EXPECT_FALSE(outcomes[0].isUntried);
  EXPECT_TRUE(outcomes[1].isUntried && outcomes[2].isUntried);
  EXPECT_EQ(planner->seconds, std::vector{kSecondsAfterInterrupt});
  EXPECT_FALSE(runner.isComplete());
}

} // namespace
