//===- MemoryCurveTest.cpp - Limits of a memory curve ---------------------===//

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
