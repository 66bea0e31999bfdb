//===- QuestionTest.cpp - The texts of --sweep and --crossover ------------===//

#include "shardc/Frontend/Question.h"
#include "TestSource.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"

using namespace shardc;

namespace {
/// Questions about one program.
class QuestionText : public testing::Test {
protected:
  void SetUp() override {
    source.add("a.shd", "hardware tpu_v5e[4, 4]\n"
                        "mesh [X=4, in=4]\n"
                        "dim B = 60, D = B / 3, T = ceildiv(D % 5, 2)\n");
    program = readProgram(source.sourceMgr, &source.context, overrides);
    ASSERT_TRUE(program);
  }

  /// The values of a sweep: `B=64 B=128`, or the errors.
  std::string sweep(llvm::StringRef text) {
    source.errors.clear();
    auto values = readSweep(*program, &source.context, text);
    EXPECT_EQ(values.has_value(), source.errors.empty());
    if (!values)
      return llvm::join(source.errors, "; ");
    std::vector<std::string> words;
    for (const Setting &value : *values)
      words.push_back(value.name + "=" + value.valueText());
    return llvm::join(words, " ");
  }

  std::string crossover(llvm::StringRef text) {
    source.errors.clear();
    auto range = readCrossover(*program, &source.context, text);
    if (!range)
      return llvm::join(source.errors, "; ");
    if (!range->listed.empty())
      return range->name + " of " + std::to_string(range->listed.size());
    return range->name + " " + std::to_string(range->low) + " " +
           std::to_string(range->high) + " + " + std::to_string(range->step);
  }

  TestSource source;
  Overrides overrides;
  std::optional<ProgramText> program;
};
} // namespace

TEST_F(QuestionText, Lists) {
  EXPECT_EQ(sweep("B in 64, 1_024, 0x10, 64"), "B=64 B=1024 B=16 B=64");
  EXPECT_EQ(sweep(" X in 2 "), "X=2");
}

TEST_F(QuestionText, Ranges) {
  EXPECT_EQ(sweep("B in 64..256 * 2"), "B=64 B=128 B=256");
  EXPECT_EQ(sweep("B in 3..100 * 5"), "B=3 B=15 B=75");
  EXPECT_EQ(sweep("B in 64..200 + 64"), "B=64 B=128 B=192");
  EXPECT_EQ(sweep("B in 5 .. 5+1"), "B=5");
  // The largest integers do not overflow.
  EXPECT_EQ(sweep("B in 4000000000000000000..9223372036854775807 * 2"),
            "B=4000000000000000000 B=8000000000000000000");
  EXPECT_EQ(sweep("B in 9223372036854775806..9223372036854775807 + 1"),
            "B=9223372036854775806 B=9223372036854775807");
}

TEST_F(QuestionText, Kinds) {
  using Kind = Setting::Kind;
  auto kindOf = [&](llvm::StringRef text) {
    return readSweep(*program, &source.context, text)->front().kind;
  };
  EXPECT_EQ(kindOf("B in 1"), Kind::Dim);
  EXPECT_EQ(kindOf("X in 1"), Kind::Axis);
  // A word that is special only in its place.
  EXPECT_EQ(kindOf("in in 1"), Kind::Axis);
  EXPECT_EQ(kindOf("hardware in h100[8]"), Kind::Hardware);
}

TEST_F(QuestionText, Machines) {
  EXPECT_EQ(sweep("hardware in tpu_v5e[4, 4], h100[ 2 * B,8 ] ,tpu_v5e"),
            "hardware=tpu_v5e[4, 4] hardware=h100[ 2 * B,8 ] hardware=tpu_v5e");
  EXPECT_EQ(sweep("hardware in tpu_v5e[4, 4] {\n  flops.bf16 = 1 TFLOP/s }"),
            "hardware=tpu_v5e[4, 4] { flops.bf16 = 1 TFLOP/s }");
}

TEST_F(QuestionText, Crossovers) {
  EXPECT_EQ(crossover("B in 1..1048576"), "B 1 1048576 + 1");
  EXPECT_EQ(crossover("X in 2..2"), "X 2 2 + 1");
  EXPECT_EQ(crossover("B in 16..1048576 + 16"), "B 16 1048576 + 16");
  EXPECT_EQ(crossover("B in 16..64 * 2"), "B of 3");
  EXPECT_EQ(crossover("B in 64, 16, 64"), "B of 2");
  EXPECT_EQ(crossover("hardware in h100"),
            "1:1: --crossover expects a dim or a mesh axis, found 'hardware'");
  EXPECT_EQ(crossover("B in 8..2"),
            "1:6: expected an ascending range, found 8..2");
  EXPECT_EQ(crossover("B in 0..2"),
            "1:6: expected a value of 'B' of at least 1, found 0");
}

TEST_F(QuestionText, Errors) {
  EXPECT_EQ(sweep("C in 1"),
            "1:1: the program has no dim and no mesh axis 'C'");
  EXPECT_EQ(sweep("B in"),
            "1:5: expected an integer before the end of the text");
  EXPECT_EQ(sweep("B in 1 2"),
            "1:8: expected ',', '..' or the end of the text before '2'");
  EXPECT_EQ(sweep("B in 1..9 - 2"), "1:11: unexpected '-'");
  EXPECT_EQ(sweep("B in 1.5"), "1:6: expected an integer before '1.5'");
  EXPECT_EQ(sweep("B in 99999999999999999999"),
            "1:6: integer does not fit in 64 bits");
}

TEST_F(QuestionText, Period) {
  // The mesh axes 4 and 4; divisors 3, 5 and 2.
  EXPECT_EQ(divisibilityPeriod(*program, &source.context), 4 * 4 * 3 * 5 * 2);
  EXPECT_EQ(writtenExtent(*program, &source.context, "B"), 60);
  EXPECT_TRUE(source.errors.empty());
}
