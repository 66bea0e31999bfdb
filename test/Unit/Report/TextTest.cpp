//===- TextTest.cpp - The report for people -------------------------------===//

#include "PlannedPrograms.h"
#include "gtest/gtest.h"

using namespace shardc;
using namespace shardc::test;

namespace {

std::string toText(const Report &report, bool colour = false) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printText(os, report, colour);
  return text;
}

void expectWellFormed(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> lines;
  text.split(lines, '\n');
  for (llvm::StringRef line : lines) {
    EXPECT_LE(line.size(), 120u) << line.str();
    EXPECT_FALSE(line.ends_with(" ")) << line.str();
    EXPECT_EQ(line.find('\033'), llvm::StringRef::npos) << line.str();
  }
}

TEST(TextTest, linesAreAtMost120Wide) {
  PlannedProgram planned(kFeedForward), repeated(kRepeated);
  ASSERT_TRUE(planned && repeated);
  Report report = planned.report();
  expectWellFormed(toText(report));
  expectWellFormed(toText(repeated.report()));
  // Long names shrink.
  std::string name(300, 'n');
  report.file = report.hardware.name = name;
  report.memory.peakName = report.memory.peakLoc = name;
  for (ReportTensor &tensor : report.tensors) {
    tensor.name = name;
    tensor.sharding = "[" + name + "]";
  }
  for (ReportItem &item : report.items)
    item.name = item.loc = name;
  expectWellFormed(toText(report));
}

TEST(TextTest, colourOnlyWhereAsked) {
  PlannedProgram planned(kFeedForward);
  ASSERT_TRUE(bool(planned));
  Report report = planned.report();
  std::string coloured = toText(report, /*colour=*/true), plain;
  EXPECT_NE(coloured.find("\033[1m"), std::string::npos);
  // Without the escapes it is the same text.
  for (size_t i = 0; i < coloured.size(); ++i)
    if (coloured[i] == '\033')
      i = coloured.find('m', i);
    else
      plain += coloured[i];
  EXPECT_EQ(plain, toText(report));
}

TEST(TextTest, saysFirstWhatDoesNotFit) {
  PlannedProgram planned(kFeedForward);
  ASSERT_TRUE(bool(planned));
  MemoryProfile memory{
      {},  20000000000,       0,
      "H", planned.unknown(), {{"Win", MemoryKind::Weight, 12, "[D@X, F@Y]"}}};
  std::string text = toText(planned.report(memory));
  EXPECT_EQ(text.find("does not fit: needs 20.0 GB per device, 4.00 GB more "
                      "than it has\n"),
            0u);
  EXPECT_NE(text.find("Largest tensors at the peak"), std::string::npos);
}

TEST(TextTest, repeatsAreGroupedUnderTheirSum) {
  PlannedProgram planned(kRepeated);
  ASSERT_TRUE(bool(planned));
  std::string text = toText(planned.report());
  size_t heading = text.find("  repeat L x 3 ");
  ASSERT_NE(heading, std::string::npos);
  // 3 x 8192 FLOP; 3 x 2688 B; 18.009834 us, all of the step.
  std::string line = text.substr(heading, text.find('\n', heading) - heading);
  for (const char *figure : {"24.6 k", "8.06 kB", "18.0 us", "100.0 %"})
    EXPECT_NE(line.find(figure), std::string::npos) << line;
  EXPECT_NE(text.find("\n    y "), std::string::npos);
}

} // namespace
