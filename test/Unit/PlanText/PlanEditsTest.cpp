//===- PlanEditsTest.cpp - Placements in a program's text -----------------===//

#include "PlanEdits.h"
#include "mlir/IR/MLIRContext.h"
#include "shardc/Frontend/Frontend.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;
using llvm::SMLoc;

namespace {

//===----------------------------------------------------------------------===//
// Index lists
//===----------------------------------------------------------------------===//

class Lists : public testing::Test {
protected:
  Lists() { context.getOrLoadDialect<ShdDialect>(); }

  /// `dims`: the axes of each dimension, separated by blanks.
  ShardingAttr pin(llvm::ArrayRef<llvm::StringRef> dims,
                   llvm::StringRef partial = "") {
    SmallVector<DimShardingAttr> attrs;
    for (llvm::StringRef dim : dims)
      attrs.push_back(DimShardingAttr::get(&context, names(dim), false));
    return ShardingAttr::get(&context, attrs, names(partial));
  }

  /// The list after the edits that write `pin` into it.
  std::string edited(llvm::StringRef list, ShardingAttr pin) {
    std::string text = ("x" + list + " = 0\n").str();
    llvm::SourceMgr sourceMgr;
    sourceMgr.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text),
                                 SMLoc());
    auto file = parseFile(sourceMgr, sourceMgr.getMainFileID(), &context);
    if (!file)
      return "does not parse";
    const auto &assign = llvm::cast<ast::AssignStmt>(*file->items.front());
    const ast::IndexList &indices = *assign.targets.front().indices;
    TextEdits edits;
    editList(edits, indices, pin);
    return edits.apply(indices.range);
  }

private:
  SmallVector<StringAttr> names(llvm::StringRef text) {
    SmallVector<llvm::StringRef> parts;
    text.split(parts, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    SmallVector<StringAttr> result;
    for (llvm::StringRef part : parts)
      result.push_back(StringAttr::get(&context, part));
    return result;
  }

  MLIRContext context;
};

TEST_F(Lists, EveryPrintedListIsClosed) {
  EXPECT_EQ(closedList({"B", "D"}, pin({"X", ""})), "[B@X, D]");
  EXPECT_EQ(closedList({"B", "D"}, pin({"", "X Y"})), "[B, D@(X, Y)]");
  EXPECT_EQ(closedList({"B", "D"}, pin({"", ""})), "[B@(), D]");
  // A partial sum does not close a list (docs/Language.md#9-sharding).
  EXPECT_EQ(closedList({"B", "D"}, pin({"", ""}, "X")), "[B@(), D]{+X}");
  EXPECT_EQ(closedList({"B"}, pin({"Z"}, "X Y")), "[B@Z]{+X, +Y}");
  EXPECT_EQ(closedList({}, pin({})), "[]");
  EXPECT_EQ(closedList({}, pin({}, "X")), "[]{+X}");
}

TEST_F(Lists, FillsInPlacements) {
  EXPECT_EQ(edited("[B,  D]", pin({"", "X"})), "[B,  D@X]");
  EXPECT_EQ(edited("[B /* rows */, D]", pin({"X Y", ""})),
            "[B@(X, Y) /* rows */, D]");
  EXPECT_EQ(edited("[B, D]", pin({"", ""})), "[B@(), D]");
  EXPECT_EQ(edited("[B@?, D]", pin({"", "X"})), "[B, D@X]");
  EXPECT_EQ(edited("[B@?, D]", pin({"X", ""})), "[B@X, D]");
  EXPECT_EQ(edited("[]", pin({}, "X")), "[]{+X}");
}

TEST_F(Lists, KeepsPlacementsThatSayTheSame) {
  EXPECT_EQ(edited("[B@( X ), D@()]", pin({"X", ""})), "[B@( X ), D@()]");
  EXPECT_EQ(edited("[B, D@()]", pin({"", ""})), "[B, D@()]");
  // The order of the axes of an index matters, that of partial sums does not.
  EXPECT_EQ(edited("[B@(X, Y)]", pin({"Y X"})), "[B@(Y, X)]");
  EXPECT_EQ(edited("[B@()]{+X, +Y}", pin({""}, "Y X")), "[B@()]{+X, +Y}");
}

TEST_F(Lists, PartialSums) {
  EXPECT_EQ(edited("[B@X]", pin({"X"}, "Y")), "[B@X]{+Y}");
  EXPECT_EQ(edited("[B@X]{+Y}", pin({"X"})), "[B@X]");
  EXPECT_EQ(edited("[B]{+Y}", pin({""}, "X")), "[B@()]{+X}");
}

} // namespace
