//===- TextEditsTest.cpp - Changes to a program's text --------------------===//

#include "shardc/Frontend/TextEdits.h"
#include "gtest/gtest.h"

using namespace shardc;
using llvm::SMRange;

namespace {

/// The first place of `part`.
SMRange part(llvm::StringRef text, llvm::StringRef part) {
  return rangeOf(text.substr(text.find(part), part.size()));
}

TEST(TextEdits, KeepsWhatIsNotChanged) {
  llvm::StringRef text = "a = b // why\nc = d\n";
  TextEdits edits;
  edits.replace(part(text, "d"), "e[X]");
  edits.insert(part(text, " = b").Start, "[B]");
  EXPECT_EQ(edits.apply(rangeOf(text)), "a[B] = b // why\nc = e[X]\n");
}

TEST(TextEdits, InsertionsStandInOrderBeforeAReplacement) {
  llvm::StringRef text = "x y";
  TextEdits edits;
  edits.replace(part(text, "y"), "z");
  edits.insert(part(text, "y").Start, "1 ");
  edits.insert(part(text, "y").Start, "2 ");
  edits.insert(part(text, "y").End, " end");
  EXPECT_EQ(edits.apply(rangeOf(text)), "x 1 2 z end");
}

TEST(TextEdits, AppliesToPartsOfTheBuffer) {
  llvm::StringRef text = "layer f { a } layer g { a }";
  TextEdits edits;
  edits.replace(part(text, "f"), "h");
  EXPECT_EQ(edits.apply(part(text, "layer f { a }")), "layer h { a }");
  EXPECT_EQ(edits.apply(part(text, "layer g { a }")), "layer g { a }");
}

TEST(SourceText, Indentation) {
  llvm::StringRef text = "a\n  \tb = c\n";
  EXPECT_EQ(indentOf(part(text, "b").Start, text.begin()), "  \t");
  EXPECT_EQ(indentOf(part(text, "c").Start, text.begin()), "  \t");
  EXPECT_EQ(indentOf(part(text, "a").Start, text.begin()), "");
}

TEST(SourceText, SkipsSpaceAndComments) {
  llvm::StringRef text = "x // one )\n /* ) */ ) y";
  const char *at = skipSpace(text.begin() + 1, text.end());
  EXPECT_EQ(llvm::StringRef(at, text.end() - at), ") y");
  EXPECT_EQ(skipSpace(text.end(), text.end()), text.end());
  EXPECT_EQ(skipSpace(text.end(), text.begin()), text.end());
  // Both kinds may end with the text.
  llvm::StringRef line = "// a", block = "/* a";
  EXPECT_EQ(skipSpace(line.begin(), line.end()), line.end());
  EXPECT_EQ(skipSpace(block.begin(), block.end()), block.end());
}

TEST(SourceText, FindsComments) {
  llvm::StringRef text = "a / b // c \n+ /* d\n * e */ f";
  EXPECT_EQ(commentsIn(rangeOf(text)),
            (std::vector<std::string>{"// c", "/* d\n * e */"}));
}

/// A comment that the range cuts off ends with it.
TEST(SourceText, CutsCommentsOff) {
  llvm::StringRef text = "a // b\n/* c */";
  EXPECT_EQ(commentsIn(rangeOf(text.drop_back(2))),
            (std::vector<std::string>{"// b", "/* c"}));
}

TEST(SourceText, LeavesTheTextBehindAComment) {
  EXPECT_EQ(withoutComment("// a\nb"), "\nb");
  EXPECT_EQ(withoutComment("/*/ a */ b"), " b");
  EXPECT_EQ(withoutComment("a // b"), "a // b");
  EXPECT_EQ(withoutComment("/*"), "");
}

} // namespace
