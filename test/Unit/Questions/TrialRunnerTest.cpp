//===- TrialRunnerTest.cpp - Variants, planned on threads -----------------===//

#include "shardc/Questions/TrialRunner.h"
#include "FakeRunner.h"
#include <gtest/gtest.h>

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

// No trial begins once the time is over; its outcome has neither a report nor
// an error.
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
  EXPECT_EQ(outcomes.front().error, "");
  EXPECT_EQ(planned, 0);
}

} // namespace
