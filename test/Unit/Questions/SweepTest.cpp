//===- SweepTest.cpp - Grids and what is printed of them ------------------===//

#include "shardc/Questions/Sweep.h"
#include "FakeRunner.h"
#include "shardc/Frontend/Question.h"
#include "gtest/gtest.h"

using namespace shardc;
using namespace shardc::test;

static std::vector<Setting> axis(std::string name,
                                 llvm::ArrayRef<int64_t> values) {
  std::vector<Setting> result;
  for (int64_t value : values)
    result.push_back({Setting::Kind::Dim, name, value, nullptr, {}});
  return result;
}

TEST(Grid, TheLastAxisVariesFastest) {
  Grid grid({axis("B", {1, 2}), axis("X", {4, 5, 6})});
  EXPECT_EQ(grid.names(), (std::vector<std::string>{"B", "X"}));
  ASSERT_EQ(grid.size(), 6u);
  std::vector<std::pair<int64_t, int64_t>> points;
  for (size_t i = 0; i < grid.size(); ++i) {
    Point point = grid.at(i);
    points.emplace_back(point[0].number, point[1].number);
  }
  EXPECT_EQ(points, (std::vector<std::pair<int64_t, int64_t>>{
                        {1, 4}, {1, 5}, {1, 6}, {2, 4}, {2, 5}, {2, 6}}));
}

TEST(Grid, SizeDoesNotOverflow) {
  std::vector<int64_t> many(100'000, 1);
  Grid grid(
      {axis("A", many), axis("B", many), axis("C", many), axis("D", many)});
  EXPECT_EQ(grid.size(), size_t(kMaxPoints) + 1);
}

TEST(Sweep, RowsAreInTheOrderOfTheGrid) {
  for (unsigned jobs : {1, 3}) {
    FakeRunner runner(
        [](int64_t n) {
          return n == 3 ? illegal() : boundBy(n < 4 ? "hbm" : "compute");
        },
        jobs);
    auto rows = sweep(Grid({axis("B", {5, 3, 1})}), SweepFormat::Csv, runner);
    ASSERT_EQ(rows.size(), 3u);
    EXPECT_EQ(rows[0].outcome.report->time.bound, "compute");
    EXPECT_FALSE(rows[1].outcome.report);
    EXPECT_EQ(rows[2].outcome.report->time.bound, "hbm");
  }
}

static std::string csv(const SweepRow &row) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printSweepCsv(os, {"B"}, row);
  return text;
}

TEST(Sweep, CsvHasFullPrecisionAndQuotes) {
  SweepRow row;
  row.point = axis("B", {64});
  row.outcome = boundBy("hbm");
  // A double that fewer than 17 digits do not give back.
  row.outcome.report->time.scheduled = 0.1 + 0.2;
  row.outcome.error = "needs 1 GB, \"more\"";
  std::string text = csv(row);
  auto [heading, line] = llvm::StringRef(text).split('\n');
  EXPECT_TRUE(heading.starts_with("B,hardware.chips,time.scheduled_s,"));
  EXPECT_TRUE(heading.ends_with(",plan.gap,mesh,error"));
  EXPECT_TRUE(line.starts_with("64,1,0.30000000000000004,"));
  EXPECT_TRUE(line.ends_with(",\"needs 1 GB, \"\"more\"\"\"\n"));
  EXPECT_EQ(heading.count(','), line.count(',') - 1);
}

TEST(Sweep, CsvOfAnIllegalPointIsEmptyButForTheReason) {
  SweepRow row;
  row.point = axis("B", {65});
  row.outcome = illegal();
  std::string text = csv(row);
  auto [heading, line] = llvm::StringRef(text).split('\n');
  std::string expected =
      "65" + std::string(heading.count(','), ',') + "not divisible\n";
  EXPECT_EQ(line, expected);
}
