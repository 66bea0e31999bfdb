//===- OrderTest.cpp - Zigzag order ---------------------------------------===//

#include "shardc/Dialect/Shd/IR/Order.h"
#include "shardc/Cost/DealtPairs.h"
#include "gtest/gtest.h"

using namespace shardc;
using llvm::SmallVector;
using shd::PositionOrder;

namespace {

TEST(OrderTest, dealsChunksFromBothEnds) {
  // 8 chunks of 2 to 4 parts: 0 and 7, 1 and 6, 2 and 5, 3 and 4.
  PositionOrder order(16, 4);
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < 16; ++i)
    positions.push_back(order.positionAt(i));
  EXPECT_EQ(positions, (std::vector<int64_t>{0, 1, 14, 15, 2, 3, 12, 13, 4, 5,
                                             10, 11, 6, 7, 8, 9}));
  for (int64_t i = 0; i < 16; ++i)
    EXPECT_EQ(order.storedAt(order.positionAt(i)), i);
  // The last position is row 2m - 1 of the first part, m = 2.
  EXPECT_EQ(order.storedAt(15), 3);
}

TEST(OrderTest, onePartStaysInOrder) {
  PositionOrder order(7, 1);
  EXPECT_EQ(order.positionAt(5), 5);
  EXPECT_EQ(order.storedAt(5), 5);
}

/// Keys at or before queries, `window` of them, stored in `part` of `parts`
/// each.
int64_t pairsOf(const PositionOrder &order, int64_t extent, int64_t queryPart,
                int64_t queryParts, int64_t keyPart, int64_t keyParts,
                int64_t window) {
  int64_t pairs = 0, queries = extent / queryParts, keys = extent / keyParts;
  for (int64_t q = queryPart * queries; q < (queryPart + 1) * queries; ++q)
    for (int64_t k = keyPart * keys; k < (keyPart + 1) * keys; ++k) {
      // Twice, so that half of the first and of the last key counts.
      int64_t back = order.positionAt(q) - order.positionAt(k);
      pairs += back < 0 || back > window     ? 0
               : back == 0 || back == window ? 1
                                             : 2;
    }
  return pairs;
}

/// Queries over some of three axes and keys over some others: dealt to all
/// devices, each computes as many pairs.
TEST(OrderTest, balancesDisjointSubsetsOfThreeAxes) {
  for (int64_t a = 2; a <= 6; ++a)
    for (int64_t b = 2; b <= 6; ++b)
      for (int64_t c : {2, 3}) {
        int64_t sizes[] = {a, b, c}, parts = a * b * c, extent = 2 * parts;
        PositionOrder order(extent, parts);
        for (int queryAxes = 0; queryAxes < 8; ++queryAxes)
          for (int keyAxes = 0; keyAxes < 8; ++keyAxes) {
            if (queryAxes & keyAxes)
              continue;
            int64_t queryParts = 1, keyParts = 1;
            for (int axis = 0; axis < 3; ++axis) {
              queryParts *= queryAxes >> axis & 1 ? sizes[axis] : 1;
              keyParts *= keyAxes >> axis & 1 ? sizes[axis] : 1;
            }
            int64_t mean = extent * extent / (queryParts * keyParts);
            for (int64_t q = 0; q < queryParts; ++q)
              for (int64_t k = 0; k < keyParts; ++k)
                ASSERT_EQ(pairsOf(order, extent, q, queryParts, k, keyParts,
                                  /*window=*/extent),
                          mean)
                    << a << " " << b << " " << c;
          }
      }
}

/// What the price says is the most that any device computes.
TEST(OrderTest, pricesTheBusiestDevice) {
  constexpr int64_t extent = 64;
  for (int64_t parts : {2, 4, 8})
    for (int64_t queryParts = 1; queryParts <= 32; queryParts *= 2)
      for (int64_t keyParts = 1; keyParts <= 32; keyParts *= 2) {
        PositionOrder order(extent, parts);
        for (int64_t window : {1, 3, 16, 40, 64}) {
          int64_t most = 0;
          for (int64_t q = 0; q < queryParts; ++q)
            for (int64_t k = 0; k < keyParts; ++k)
              most = std::max(most, pairsOf(order, extent, q, queryParts, k,
                                            keyParts, window));
          AttentionExtents extents{double(extent), double(extent / queryParts),
                                   double(extent), double(extent / keyParts)};
          EXPECT_EQ(dealtAttentionPairs(extents, parts, window),
                    double(most) / 2)
              << parts << " " << queryParts << " " << keyParts << " " << window;
        }
      }
}

/// The rows before each stretch of consecutive positions of a part, whatever
/// the number of its chunks.
TEST(OrderTest, haloPositionsComeBeforeStretches) {
  // Chunks of 2: 0, 7, 1, 6 | 2, 5, 3, 4 of two devices, 4 of four.
  PositionOrder order(16, 4);
  using Positions = SmallVector<int64_t>;
  // 0..3 and 12..15.
  EXPECT_EQ(order.haloPositions(0, 8, 2), Positions({-2, -1, 10, 11}));
  // 4..11, of which the second half needs no rows of others.
  EXPECT_EQ(order.haloPositions(8, 16, 2), Positions({2, 3, -2, -1}));
  // 2, 3 and 12, 13.
  EXPECT_EQ(order.haloPositions(4, 8, 1), Positions({1, 11}));
  EXPECT_EQ(PositionOrder(16, 1).haloPositions(8, 16, 2), Positions({6, 7}));
}

TEST(OrderTest, stretchesAreConsecutivePositions) {
  PositionOrder order(16, 4);
  auto stretches = order.stretches(1, 7);
  ASSERT_EQ(stretches.size(), 4u);
  EXPECT_EQ(stretches[0].begin, 1);
  EXPECT_EQ(stretches[0].end, 2);
  EXPECT_EQ(stretches[1].begin, 14);
  EXPECT_EQ(stretches[1].end, 16);
  EXPECT_EQ(stretches[2].begin, 2);
  EXPECT_EQ(stretches[2].end, 4);
  EXPECT_EQ(stretches[3].begin, 12);
  EXPECT_EQ(stretches[3].end, 13);
}

} // namespace
