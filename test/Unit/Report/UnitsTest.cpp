//===- UnitsTest.cpp - Figures for people ---------------------------------===//

#include "shardc/Report/Units.h"
#include "gtest/gtest.h"

using namespace shardc;

namespace {

TEST(UnitsTest, timesHaveThreeDigitsAndAUnit) {
  struct {
    double seconds;
    const char *text;
  } cases[] = {{0, "0 s"},
               {1e-12, "1.00 ps"},
               {3.4883e-4, "349 us"},
               {1.2345e-3, "1.23 ms"},
               {2.5, "2.50 s"},
               {90, "1.50 min"},
               {7200, "2.00 h"},
               {172800, "2.00 d"},
               {5e-8, "50.0 ns"}};
  for (auto [seconds, text] : cases)
    EXPECT_EQ(formatTime(seconds), text);
}

TEST(UnitsTest, roundingMovesToTheNextUnit) {
  // 999.6 us is 1000 us to three digits, which is 1.00 ms.
  EXPECT_EQ(formatTime(999.6e-6), "1.00 ms");
  EXPECT_EQ(formatTime(999.4e-6), "999 us");
  EXPECT_EQ(formatBytes(9.996e3), "10.0 kB");
  EXPECT_EQ(formatScaled(999999), "1.00 M");
}

TEST(UnitsTest, bytesAreDecimal) {
  EXPECT_EQ(formatBytes(0), "0 B");
  EXPECT_EQ(formatBytes(512), "512 B");
  EXPECT_EQ(formatBytes(0.5), "0.50 B");
  EXPECT_EQ(formatBytes(16e9), "16.0 GB");
  // 2^30 bytes are 1.0737 GB.
  EXPECT_EQ(formatBytes(1073741824), "1.07 GB");
}

TEST(UnitsTest, ratesAndCounts) {
  EXPECT_EQ(formatRate(1.97e14, "FLOP/s"), "197 TFLOP/s");
  EXPECT_EQ(formatRate(8.2e11, "B/s"), "820 GB/s");
  EXPECT_EQ(formatCount(999), "999");
  EXPECT_EQ(formatCount(70553706496), "70.6 billion");
  EXPECT_EQ(formatCount(1500), "1.50 thousand");
  EXPECT_EQ(formatDigits(70553706496), "70,553,706,496");
  EXPECT_EQ(formatDigits(999), "999");
  EXPECT_EQ(formatDigits(1000), "1,000");
  EXPECT_EQ(formatDigits(-1000), "-1,000");
  EXPECT_EQ(formatDigits(-100), "-100");
}

TEST(UnitsTest, percentages) {
  EXPECT_EQ(formatPercent(0), "0 %");
  EXPECT_EQ(formatPercent(1e-6), "<0.1 %");
  EXPECT_EQ(formatPercent(0.4541), "45.4 %");
  EXPECT_EQ(formatPercent(1), "100.0 %");
}

TEST(UnitsTest, parsesBytes) {
  EXPECT_EQ(parseBytes("512"), 512);
  EXPECT_EQ(parseBytes("512 B"), 512);
  EXPECT_EQ(parseBytes("80GB"), 80000000000);
  EXPECT_EQ(parseBytes(" 80 G "), 80000000000);
  EXPECT_EQ(parseBytes("1.5 kB"), 1500);
  EXPECT_EQ(parseBytes("16GiB"), 17179869184);
  EXPECT_EQ(parseBytes("1Ki"), 1024);
  EXPECT_EQ(parseBytes("1e9"), 1000000000);
  EXPECT_EQ(parseBytes("1.5E+3 kB"), 1500000);
}

TEST(UnitsTest, refusesWhatIsNoSize) {
  for (const char *text : {"", "GB", "-1", "1e", "1 X", "1 iB", "1 GGB",
                           "99999999 PB", "1..5", "1 GB/s"})
    EXPECT_EQ(parseBytes(text), std::nullopt) << text;
}

TEST(UnitsTest, parsesTimesAndPrices) {
  EXPECT_EQ(parseSeconds("1.5"), 1.5);
  EXPECT_EQ(parseSeconds(" 2 s "), 2);
  EXPECT_EQ(parseSeconds("350ms"), 0.35);
  EXPECT_EQ(parseSeconds("1e3 us"), 1e-3);
  EXPECT_EQ(parseSeconds("8 ns"), 8e-9);
  for (const char *wrong :
       {"", "s", "-1", "0", "1 h", "1e400", "nan", "inf", "1 USD", "1 s s"})
    EXPECT_EQ(parseSeconds(wrong), std::nullopt) << wrong;
  EXPECT_EQ(parseUsd("0.25"), 0.25);
  EXPECT_EQ(parseUsd("0.25 USD"), 0.25);
  for (const char *wrong : {"3 EUR", "", "0", "-1 USD", "2 s"})
    EXPECT_EQ(parseUsd(wrong), std::nullopt) << wrong;
}

TEST(UnitsTest, countsAndPrices) {
  EXPECT_EQ(plural(1, "mesh", "meshes"), "1 mesh");
  EXPECT_EQ(plural(0, "mesh", "meshes"), "0 meshes");
  EXPECT_EQ(plural(1200, "chip"), "1,200 chips");
  EXPECT_EQ(formatUsd(5.2112e-6), "5.21e-06 USD");
  EXPECT_EQ(formatUsd(19.2), "19.2 USD");
  EXPECT_EQ(formatUsd(12345), "12.3 k USD");
}

} // namespace
