//===- LegalValuesTest.cpp - The values that a crossover looks at ---------===//

#include "shardc/Questions/LegalValues.h"
#include "FakeRunner.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "gtest/gtest.h"

using namespace shardc;
using namespace shardc::test;

using Values = std::vector<int64_t>;

TEST(LegalValues, Progressions) {
  // 7, 11, ..., 27 of [4, 30].
  LegalValues values(4, 30, 103, 4, 16);
  EXPECT_EQ(values.size(), 6);
  EXPECT_EQ(values.first(), 7);
  EXPECT_EQ(values.last(), 27);
  EXPECT_EQ(values.samples(6, 4), (Values{7, 11, 15, 19, 23, 27}));
  EXPECT_TRUE(LegalValues(8, 10, 103, 4, 16).empty());
  EXPECT_EQ(LegalValues(7, 7, 103, 4, 16).size(), 1);
  // Up to the largest number there is.
  EXPECT_EQ(LegalValues(1, INT64_MAX, 0, 10, 10).last(), 9223372036854775800);
}

TEST(LegalValues, BetweenIsRound) {
  LegalValues values(1, 1000, 0, 1, 64);
  // In [250, 750] the multiples of 64 are 256, ..., 704; 512 is nearest to 500.
  EXPECT_EQ(values.between(1, 1000), 512);
  // [103, 107] has 104 = 8 * 13, the roundest.
  EXPECT_EQ(values.between(102, 108), 104);
  EXPECT_EQ(values.between(102, 104), 103);
  EXPECT_EQ(values.between(102, 103), std::nullopt);
  // A period of many prime factors.
  EXPECT_EQ(LegalValues(1, 1 << 20, 0, 1, 1 << 11).between(1, 5000), 2048);
  LegalValues listed({1, 2, 4, 8});
  EXPECT_EQ(listed.between(1, 8), 4);
  EXPECT_EQ(listed.between(2, 4), std::nullopt);
}

TEST(LegalValues, EveryValueIsBetweenSomeTwo) {
  // Halving always ends, with every value visited.
  LegalValues values(5, 905, 5, 9, 36);
  std::vector<int64_t> visited{values.first(), values.last()};
  for (size_t i = 0; i < visited.size(); ++i) {
    llvm::sort(visited);
    for (size_t k = 0; k + 1 < visited.size(); ++k)
      if (auto value = values.between(visited[k], visited[k + 1]))
        visited.push_back(*value);
    llvm::sort(visited);
    visited.erase(llvm::unique(visited), visited.end());
  }
  EXPECT_EQ(int64_t(visited.size()), values.size());
}

namespace {
/// A program of which only the mesh and the dims matter here.
class LegalValuesTest : public testing::Test {
protected:
  LegalValues find(llvm::StringRef program, int64_t high,
                   FakePlanner::Function outcome, int64_t step = 1) {
    sourceMgr.AddNewSourceBuffer(
        llvm::MemoryBuffer::getMemBufferCopy(program, "a.shd"), llvm::SMLoc());
    auto text = readProgram(sourceMgr, &context, {});
    EXPECT_TRUE(text);
    FakeRunner runner(std::move(outcome));
    CrossoverRange range;
    range.name = "B";
    range.low = 1;
    range.high = high;
    range.step = step;
    return findLegalValues(*text, &context, range, runner);
  }

  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  llvm::SourceMgr sourceMgr;
};
} // namespace

TEST_F(LegalValuesTest, FindsTheDivisorOfMeshAxes) {
  // B on Y alone, so 6 divides it, although the period is 4 * 6 = 24.
  LegalValues values =
      find("mesh [X=4, Y=6]\ndim B = 60\n", 1 << 20,
           [](int64_t n) { return n % 6 == 0 ? boundBy("hbm") : illegal(); });
  EXPECT_EQ(values.getStep(), 6);
  EXPECT_EQ(values.first(), 6);
}

TEST_F(LegalValuesTest, FindsTheDivisorsOfDims) {
  // T = (B + 2) / 10 is whole where B = 8 (mod 10), and 4 divides it where
  // B = 38 (mod 40).
  LegalValues values =
      find("mesh [X=4]\ndim B = 38, T = (B + 2) / 10\n", 1 << 20,
           [](int64_t n) { return n % 40 == 38 ? boundBy("hbm") : illegal(); });
  EXPECT_EQ(values.getStep(), 40);
  EXPECT_EQ(values.first(), 38);
}

TEST_F(LegalValuesTest, TheWrittenValueNeedNotBeLegal) {
  LegalValues values =
      find("mesh [X=4, Y=6]\ndim B = 1\n", 1 << 20,
           [](int64_t n) { return n % 4 == 0 ? boundBy("hbm") : illegal(); });
  EXPECT_EQ(values.getStep(), 4);
  EXPECT_EQ(values.first(), 4);
}

TEST_F(LegalValuesTest, ShortRangesAreTested) {
  // The divisors of 60: no progression.
  LegalValues values = find("dim B = 1\n", 100, [](int64_t n) {
    return 60 % n == 0 ? boundBy("hbm") : illegal();
  });
  EXPECT_EQ(values.samples(1000, 4),
            (Values{1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60}));
}

TEST_F(LegalValuesTest, StepsOfTheRange) {
  // 1, 16, 31, ...: 3 divides the multiples of 6 and the step, but not 1.
  auto outcome = [](int64_t n) {
    return n % 6 == 0 ? boundBy("hbm") : illegal();
  };
  EXPECT_TRUE(find("mesh [X=6]\ndim B = 60\n", 1 << 20, outcome, 15).empty());
}

TEST_F(LegalValuesTest, StepsOfTheRangeThatAreLegal) {
  // 1, 6, 11, ..., 36, ...: 6 divides the second, and then each sixth.
  LegalValues values = find(
      "mesh [X=6]\ndim B = 60\n", 1 << 20,
      [](int64_t n) { return n % 6 == 0 ? boundBy("hbm") : illegal(); }, 5);
  EXPECT_EQ(values.first(), 6);
  EXPECT_EQ(values.getStep(), 30);
}
