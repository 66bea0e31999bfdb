//===- SourceTest.cpp - Lines and columns ---------------------------------===//
//
// Positions in buffers as MLIR locations.
//
//===----------------------------------------------------------------------===//

#include "TestSource.h"
#include "gtest/gtest.h"

using namespace shardc;
using Position = std::pair<unsigned, unsigned>;

TEST(SourceFiles, CountsBytesFromOne) {
  TestSource source;
  // The second line's 'x' follows five characters, three of which take two,
  // three and four bytes: 2 + 2 + 3 + 4 = 11 bytes.
  unsigned id = source.add("a.shd", "ab\r\n//é漢😀x\n\nend");
  auto at = [&](llvm::StringRef part) {
    return source.files.lineAndColumn(source.find(id, part).Start);
  };
  EXPECT_EQ(at("ab"), Position(1, 1));
  EXPECT_EQ(at("b"), Position(1, 2));
  EXPECT_EQ(at("\r"), Position(1, 3));
  EXPECT_EQ(at("\n"), Position(1, 4));
  EXPECT_EQ(at("//"), Position(2, 1));
  EXPECT_EQ(at("x"), Position(2, 12));
  EXPECT_EQ(at("\nend"), Position(3, 1));
  EXPECT_EQ(at("d"), Position(4, 3));
  EXPECT_EQ(source.files.lineAndColumn(source.find(id, "d").End),
            Position(4, 4));
}

TEST(SourceFiles, TellsBuffersApart) {
  TestSource source;
  source.add("a.shd", "one\ntwo");
  unsigned b = source.add("b.shd", "\nthree");
  auto loc = mlir::cast<mlir::FileLineColRange>(
      mlir::LocationAttr(source.files.location(source.find(b, "hre"))));
  EXPECT_EQ(loc.getFilename().getValue(), "b.shd");
  EXPECT_EQ(loc.getStartLine(), 2u);
  EXPECT_EQ(loc.getStartColumn(), 2u);
  EXPECT_EQ(loc.getEndLine(), 2u);
  EXPECT_EQ(loc.getEndColumn(), 5u);
}

TEST(SourceFiles, NowhereIsUnknown) {
  TestSource source;
  source.add("a.shd", "one");
  EXPECT_TRUE(mlir::isa<mlir::UnknownLoc>(
      mlir::LocationAttr(source.files.location(llvm::SMRange()))));
  EXPECT_EQ(source.files.lineAndColumn(llvm::SMLoc()), Position(0, 0));
}

TEST(SourceFiles, CountsErrorsOnly) {
  TestSource source;
  unsigned id = source.add("a.shd", "one two");
  EXPECT_FALSE(source.files.hadError());
  source.files.warning(source.find(id, "one")) << "careful";
  EXPECT_FALSE(source.files.hadError());
  source.files.error(source.find(id, "two")) << "wrong";
  EXPECT_EQ(source.files.numErrors(), 1u);
  EXPECT_EQ(source.errors,
            (std::vector<std::string>{"1:1: careful", "1:5: wrong"}));
}

TEST(SourceFiles, IsFastOnOneLongLine) {
  TestSource source;
  std::string text(10'000'000, 'a');
  unsigned id = source.add("a.shd", text);
  const char *begin = source.sourceMgr.getMemoryBuffer(id)->getBufferStart();
  // A scan of the line for each would read 10^12 bytes.
  for (unsigned i = 0; i < 200'000; ++i)
    ASSERT_EQ(
        source.files.lineAndColumn(llvm::SMLoc::getFromPointer(begin + 50 * i)),
        Position(1, 50 * i + 1));
}
