//===- ExplainTest.cpp - Differences between plans ------------------------===//

#include "shardc/Questions/Explain.h"
#include "gtest/gtest.h"

using namespace shardc;

static TimeParts::Collectives moved(std::string kind, std::string axis,
                                    Picoseconds time) {
  return {std::move(kind), {std::move(axis)}, time};
}

TEST(TimeParts, MinusMatchesCollectivesByKindAndAxes) {
  TimeParts a{
      10, 3, {moved("all_gather", "X", 5), moved("all_reduce", "X", 7)}};
  TimeParts b{4,
              3,
              {moved("all_gather", "Y", 9), moved("all_reduce", "X", 7),
               moved("all_gather", "X", 2)}};
  TimeParts difference = a.minus(b);
  EXPECT_EQ(difference.compute, 6);
  EXPECT_EQ(difference.hbm, 0);
  // Equal entries are left out, the largest change comes first.
  ASSERT_EQ(difference.collectives.size(), 2u);
  EXPECT_TRUE(difference.collectives[0].isLike(moved("all_gather", "Y", 0)));
  EXPECT_EQ(difference.collectives[0].time, -9);
  EXPECT_TRUE(difference.collectives[1].isLike(moved("all_gather", "X", 0)));
  EXPECT_EQ(difference.collectives[1].time, 3);
  EXPECT_EQ(difference.allCollectives(), -6);
}

static PlanFigures planOf(Picoseconds value, bool fits = true) {
  PlanFigures plan;
  plan.value = value;
  plan.fits = fits;
  return plan;
}

TEST(Explanation, PinsBindIfTheyCostTimeOrAllPlans) {
  Explanation explanation;
  explanation.plan = planOf(100);
  for (PlanFigures without : {planOf(100), planOf(90), planOf(80, false)})
    explanation.pins.push_back({"W[D@X]", "tensor", "", without, {}});
  explanation.pins.push_back({"W[D@Y]", "tensor", "", std::nullopt, {}});
  auto binding = explanation.bindingPins();
  ASSERT_EQ(binding.size(), 1u);
  EXPECT_EQ(binding[0], &explanation.pins[1]);
  // Where nothing fits, what would make a plan fit, at any price.
  explanation.plan.fits = false;
  EXPECT_EQ(explanation.bindingPins().size(), 2u);
}

TEST(Explanation, MemoryShareIsOfTheDifference) {
  Explanation explanation;
  explanation.plan = planOf(100);
  explanation.unlimited = planOf(90);
  Alternative alternative;
  alternative.plan = planOf(130);
  alternative.unlimited = 105;
  // 30 more; without a limit 15 more.
  EXPECT_EQ(explanation.memoryShare(alternative), 15);
  alternative.unlimited.reset();
  EXPECT_EQ(explanation.memoryShare(alternative), std::nullopt);
}
