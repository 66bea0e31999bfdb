//===- ArithmeticTest.cpp - Sums of costs that are not allowed ------------===//

#include "shardc/Solver/Arithmetic.h"
#include "gtest/gtest.h"
#include <vector>

using namespace shardc::solver;

// Five messages that each take off what is not allowed: more than 64 bits hold.
TEST(ArithmeticTest, SumsStayWithinInfinity) {
  std::vector<Scaled> sums = {0, 0, 0, kInfinity},
                      row = {-kInfinity, kInfinity, 7, -kInfinity};
  for (int i = 0; i < 5; ++i)
    addSaturated(sums.data(), row.data(), sums.size());
  EXPECT_EQ(sums[0], -kInfinity);
  EXPECT_EQ(sums[1], kInfinity);
  EXPECT_EQ(sums[2], 35);
  EXPECT_EQ(sums[3], -kInfinity);
}
