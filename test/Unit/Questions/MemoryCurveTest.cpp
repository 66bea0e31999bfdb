//===- MemoryCurveTest.cpp - Memory curves --------------------------------===//

#include "shardc/Questions/MemoryCurve.h"
#include "shardc/Optimizer/Options.h"
#include "gtest/gtest.h"

using namespace shardc;

TEST(CurveLimits, AreEvenlySpacedAndRoundedUp) {
  // 1000 * 2^(k / 4) for k = 1 to 12, and 5000 with and without 1 GiB more.
  EXPECT_EQ(curveLimits(1000, 8000, 5000),
            (std::vector<int64_t>{1000, 1190, 1420, 1690, 2000, 2380, 2830,
                                  3370, 4000, 4760, 5000, 5660, 6730, 8000,
                                  5000 + kMoreMemory}));
}

TEST(CurveLimits, OfPlansThatAllTakeTheSame) {
  EXPECT_EQ(curveLimits(5000, 5000, 5000),
            (std::vector<int64_t>{5000, 5000 + kMoreMemory}));
  // Nothing in memory at all.
  EXPECT_EQ(curveLimits(0, 0, 16),
            (std::vector<int64_t>{0, 16, 16 + kMoreMemory}));
}

/// A point whose plan takes all of its limit, or does not fit.
static MemoryCurve::Point point(int64_t limit, Picoseconds value,
                                Picoseconds bound, bool fits = true) {
  PlanFigures plan;
  plan.fits = fits;
  plan.value = value;
  plan.bound = bound;
  plan.allowed = plan.peak = limit;
  plan.status = "feasible";
  return {limit, plan};
}

TEST(MemoryCurve, TakesPlansOfMoreMemoryThatTakeLess) {
  MemoryCurve curve;
  // The plan of the search at 40 takes 25; that of the search at 50, 45.
  curve.points = {point(20, 120, 60), point(30, 110, 95), point(40, 90, 60),
                  point(50, 80, 60)};
  curve.points[2].plan.peak = 25;
  curve.points[3].plan.peak = 45;
  curve.unlimited = point(60, 80, 60).plan;
  makeMonotone(curve);
  const Picoseconds values[] = {120, 90, 90, 80};
  for (int i : {0, 1, 2, 3})
    EXPECT_EQ(curve.points[i].plan.value, values[i]);
  EXPECT_EQ(curve.points[1].plan.peak, 25);
  EXPECT_EQ(curve.points[1].plan.allowed, 30);
  // The bound of 95 was one of another order: that of more memory is left.
  EXPECT_EQ(curve.points[1].plan.bound, 60);
  EXPECT_EQ(curve.points[1].plan.status, "feasible");
}

TEST(MemoryCurve, IsMonotone) {
  MemoryCurve curve;
  // The search at 20 found a better plan than those at 30 and 40, and none fits
  // in what it found for 10. Of 30 more is proven than of 20.
  curve.points = {point(10, 100, 60, /*fits=*/false), point(20, 90, 60),
                  point(30, 95, 70), point(40, 92, 65)};
  curve.unlimited = point(50, 80, 80).plan;
  curve.unlimited->status = "optimal";
  makeMonotone(curve);
  EXPECT_FALSE(curve.points[0].plan.fits);
  for (int i : {1, 2, 3}) {
    EXPECT_EQ(curve.points[i].plan.value, 90);
    EXPECT_EQ(curve.points[i].plan.peak, 20);
    EXPECT_EQ(curve.points[i].plan.allowed, curve.points[i].limit);
    // No plan is faster than the best without a limit.
    EXPECT_EQ(curve.points[i].plan.bound, 80);
    EXPECT_EQ(curve.points[i].plan.status, "feasible");
  }
  EXPECT_EQ(curve.unlimited->value, 80);
}

TEST(MemoryCurve, ProvesWithLessWhatHoldsWithMore) {
  MemoryCurve curve;
  curve.points = {point(10, 80, 60)};
  curve.unlimited = point(20, 80, 80).plan;
  makeMonotone(curve);
  EXPECT_EQ(curve.points[0].plan.status, "optimal");
}
