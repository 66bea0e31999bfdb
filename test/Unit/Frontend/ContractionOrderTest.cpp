//===- ContractionOrderTest.cpp - In which order to multiply --------------===//

#include "ContractionOrder.h"
#include "gtest/gtest.h"
#include <limits>
#include <random>

using namespace shardc;

namespace {
using Steps = llvm::SmallVector<ContractionStep>;

/// FLOPs of one step: the product of the extents of all indices, twice if it
/// sums; `outside` has what others need.
double flopsOf(IndexBits a, IndexBits b, IndexBits outside,
               llvm::ArrayRef<int64_t> extents) {
  double flops = ((a | b) & ~outside) != 0 ? 2 : 1;
  for (unsigned i = 0; i < extents.size(); ++i)
    if ((a | b) >> i & 1)
      flops *= extents[i];
  return flops;
}

/// The least FLOPs over all orders, by trying every pair at every step.
double leastFlops(std::vector<IndexBits> factors,
                  llvm::ArrayRef<int64_t> extents, IndexBits needed) {
  if (factors.size() == 1)
    return 0;
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < factors.size(); ++i)
    for (size_t k = i + 1; k < factors.size(); ++k) {
      std::vector<IndexBits> rest;
      IndexBits outside = needed;
      for (size_t m = 0; m < factors.size(); ++m)
        if (m != i && m != k) {
          rest.push_back(factors[m]);
          outside |= factors[m];
        }
      double flops = flopsOf(factors[i], factors[k], outside, extents);
      rest.push_back((factors[i] | factors[k]) & outside);
      least = std::min(least, flops + leastFlops(rest, extents, needed));
    }
  return least;
}

/// FLOPs of given steps, which must use every factor once.
double flopsOfSteps(llvm::ArrayRef<IndexBits> factors, const Steps &steps,
                    llvm::ArrayRef<int64_t> extents, IndexBits needed) {
  std::vector<IndexBits> values(factors.begin(), factors.end());
  std::vector<bool> used(factors.size() + steps.size());
  double total = 0;
  for (auto [a, b] : steps) {
    EXPECT_FALSE(used[a] || used[b] || a == b);
    used[a] = used[b] = true;
    IndexBits outside = needed;
    for (size_t i = 0; i < values.size(); ++i)
      if (!used[i])
        outside |= values[i];
    total += flopsOf(values[a], values[b], outside, extents);
    values.push_back((values[a] | values[b]) & outside);
  }
  EXPECT_EQ(steps.size() + 1, factors.size());
  return total;
}
} // namespace

TEST(ContractionOrder, ChainOfMatrices) {
  // A[i, j] B[j, k] C[k, m] with i = 8, j = 16, k = 32, m = 4, i and m needed:
  // (A B) C is 2*8*16*32 + 2*8*32*4 = 10240, A (B C) 2*16*32*4 + 2*8*16*4 =
  // 5120.
  Steps steps =
      contractionOrder({0b0011, 0b0110, 0b1100}, {8, 16, 32, 4}, 0b1001);
  EXPECT_EQ(steps, (Steps{{1, 2}, {0, 3}}));
}

TEST(ContractionOrder, TiesGoToTheLeft) {
  EXPECT_EQ(contractionOrder({1, 1, 1, 1}, {4}, 1),
            (Steps{{0, 1}, {4, 2}, {5, 3}}));
}

TEST(ContractionOrder, OneFactorHasNoSteps) {
  EXPECT_TRUE(contractionOrder({1}, {4}, 0).empty());
}

TEST(ContractionOrder, LeastOfAllOrders) {
  std::mt19937 random(1);
  for (unsigned round = 0; round < 200; ++round) {
    unsigned numFactors = 2 + random() % 4, numIndices = 1 + random() % 5;
    std::vector<int64_t> extents;
    for (unsigned i = 0; i < numIndices; ++i)
      extents.push_back(1 + random() % 9);
    std::vector<IndexBits> factors;
    IndexBits all = 0;
    for (unsigned i = 0; i < numFactors; ++i) {
      factors.push_back(random() % (1u << numIndices));
      all |= factors.back();
    }
    IndexBits needed = random() & all;
    Steps steps = contractionOrder(factors, extents, needed);
    EXPECT_EQ(flopsOfSteps(factors, steps, extents, needed),
              leastFlops(factors, extents, needed));
  }
}

TEST(ContractionOrder, LongProducts) {
  // 40 factors: the cheapest step each time; 200: from left to right.
  for (unsigned n : {40u, 200u}) {
    std::vector<IndexBits> factors(n, 1);
    Steps steps = contractionOrder(factors, {4}, 1);
    ASSERT_EQ(steps.size(), n - 1);
    EXPECT_EQ(steps[0], ContractionStep(0, 1));
    EXPECT_EQ(steps[1], ContractionStep(n, 2));
    EXPECT_EQ(steps[n - 2], ContractionStep(2 * n - 3, n - 1));
  }
}
