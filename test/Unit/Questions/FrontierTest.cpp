//===- FrontierTest.cpp - Time against price ------------------------------===//

#include "shardc/Questions/Frontier.h"
#include "gtest/gtest.h"

using namespace shardc;

static SweepRow rowOf(double seconds, std::optional<double> usd,
                      bool fits = true) {
  SweepRow row;
  row.point.push_back({Setting::Kind::Dim, "B", 7, nullptr, {}});
  Report &report = row.outcome.report.emplace();
  report.time.scheduled = seconds;
  report.price.usd = usd;
  report.memory.fits = fits;
  return row;
}

/// Row 1 is as fast as row 2 and dearer, row 4 slower and dearer than row 0;
/// row 5 is row 3 again; rows 6 to 8 are no candidates.
static std::vector<SweepRow> someRows() {
  std::vector<SweepRow> rows;
  for (auto [seconds, usd] : {std::pair(4.0, 1.0),
                              {1.0, 9.0},
                              {1.0, 8.0},
                              {2.0, 3.0},
                              {5.0, 2.0},
                              {2.0, 3.0}})
    rows.push_back(rowOf(seconds, usd));
  rows.push_back(rowOf(0.1, 0.1, /*fits=*/false));
  rows.push_back(rowOf(0.1, std::nullopt));
  rows.emplace_back().outcome.error = "not divisible";
  return rows;
}

TEST(Frontier, LeavesOutWhatIsNoFasterAndNoCheaper) {
  Frontier frontier = findFrontier(someRows(), {});
  EXPECT_EQ(frontier.rows, (std::vector<size_t>{2, 3, 0}));
  EXPECT_EQ(frontier.beaten, 3u);
  EXPECT_EQ(frontier.unpriced, 1u);
  EXPECT_EQ(frontier.unfit, 2u);
  EXPECT_TRUE(frontier.has(3));
  EXPECT_FALSE(frontier.has(5));
  EXPECT_FALSE(frontier.has(6));
}

TEST(Frontier, TheCheapestWithinATime) {
  EXPECT_EQ(findFrontier(someRows(), {2.5, {}}).chosen, 3u);
  EXPECT_EQ(findFrontier(someRows(), {2.0, {}}).chosen, 3u);
  EXPECT_EQ(findFrontier(someRows(), {9.0, {}}).chosen, 0u);
}

TEST(Frontier, TheFastestForAPrice) {
  EXPECT_EQ(findFrontier(someRows(), {{}, 3.5}).chosen, 3u);
  EXPECT_EQ(findFrontier(someRows(), {{}, 100.0}).chosen, 2u);
}

TEST(Frontier, OfBothTargetsTheCheapest) {
  EXPECT_EQ(findFrontier(someRows(), {4.5, 3.5}).chosen, 0u);
  EXPECT_EQ(findFrontier(someRows(), {2.5, 3.5}).chosen, 3u);
}

/// Within 2.5 s for at most 2 USD: row 3 costs 1.5 times as much, row 0 takes
/// 1.6 times as long.
TEST(Frontier, TheNearestMiss) {
  std::vector<SweepRow> rows = someRows();
  Frontier frontier = findFrontier(rows, {2.5, 2.0});
  EXPECT_EQ(frontier.chosen, std::nullopt);
  EXPECT_EQ(frontier.nearest, 3u);
  EXPECT_EQ(missText(rows, frontier),
            "no point of the sweep does a step within 2.50 s for at most 2 "
            "USD; the nearest is B=7 with 2.00 s and 3 USD");
  // Too fast for any: the fastest; too cheap: the cheapest.
  EXPECT_EQ(findFrontier(rows, {0.5, {}}).nearest, 2u);
  EXPECT_EQ(findFrontier(rows, {{}, 0.5}).nearest, 0u);
}

TEST(Frontier, NothingToChooseFrom) {
  std::vector<SweepRow> rows = {rowOf(1, std::nullopt)};
  Frontier frontier = findFrontier(rows, {{}, 1.0});
  EXPECT_EQ(frontier.nearest, std::nullopt);
  EXPECT_EQ(missText(rows, frontier),
            "no point of the sweep does a step for at most 1 USD: none that "
            "fits has a price");
  rows = {rowOf(1, 1.0, /*fits=*/false)};
  EXPECT_EQ(missText(rows, findFrontier(rows, {1.0, {}})),
            "no point of the sweep does a step within 1.00 s: none fits in "
            "memory");
}
