//===- StatementOrder.cpp - Statements in the order of a plan -------------===//
//
// A statement makes several operations, and a plan may run others between them:
// statements are in the order in which the last of their operations run. Each
// takes the place of another one, with the comment behind it on its line.
//
//===----------------------------------------------------------------------===//

#include "StatementOrder.h"
#include "PlanEdits.h"
#include "shardc/Dialect/Shd/IR/WorkOrder.h"
#include "shardc/Frontend/Frontend.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace shardc;

/// The statements of one block, repeats aside.
using Statements = std::vector<llvm::SMRange>;

/// Those of a list and of the repeats in it, each list before those in it.
static void collectBlocks(ArrayRef<ast::ItemPtr> items,
                          std::vector<Statements> &blocks) {
  size_t own = blocks.size();
  blocks.emplace_back();
  for (const ast::ItemPtr &item : items)
    if (isa<ast::AssignStmt>(*item))
      blocks[own].push_back(item->range);
    else if (auto *repeat = dyn_cast<ast::RepeatStmt>(item.get()))
      collectBlocks(repeat->body, blocks);
}

/// Empty after an error.
static std::vector<Statements> blocksOf(llvm::SourceMgr &sourceMgr,
                                        MLIRContext *context) {
  std::vector<Statements> blocks;
  if (auto file = parseFile(sourceMgr, sourceMgr.getMainFileID(), context))
    collectBlocks(file->items, blocks);
  return blocks;
}

/// Where the text says what a location is of: the call, of what stands in a
/// layer.
static FileLineColLoc placeOf(Location loc) {
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return placeOf(call.getCaller());
  if (auto name = dyn_cast<NameLoc>(loc))
    return placeOf(name.getChildLoc());
  if (auto fused = dyn_cast<FusedLoc>(loc))
    return placeOf(fused.getLocations().front());
  return dyn_cast<FileLineColLoc>(loc);
}

namespace {
/// Where the work of a program stands in its text.
class Places {
public:
  Places(StringRef text, StringRef file) : lines{text.begin()}, file(file) {
    for (const char &c : text)
      if (c == '\n')
        lines.push_back(&c + 1);
  }

  /// Null for what is no work of the text.
  const char *of(Operation *op) const {
    FileLineColLoc place = isa_and_nonnull<shd::CostOpInterface>(op)
                               ? placeOf(op->getLoc())
                               : FileLineColLoc();
    if (!place || place.getFilename() != file || place.getLine() < 1 ||
        place.getLine() > lines.size())
      return nullptr;
    return lines[place.getLine() - 1] + place.getColumn() - 1;
  }

private:
  SmallVector<const char *> lines;
  StringRef file;
};
} // namespace

static std::optional<size_t> statementAt(const Statements &statements,
                                         const char *place) {
  for (auto [number, range] : llvm::enumerate(statements))
    if (place && place >= range.Start.getPointer() &&
        place < range.End.getPointer())
      return number;
  return std::nullopt;
}

/// When each statement runs, by the last of its operations; 0 without any.
static std::vector<unsigned> ranksOf(const Statements &statements,
                                     const Places &places,
                                     ArrayRef<Operation *> running,
                                     ArrayRef<Operation *> copies) {
  std::vector<unsigned> ranks(statements.size(), 0);
  for (auto [number, op] : llvm::enumerate(running))
    if (auto statement = statementAt(statements, places.of(op)))
      ranks[*statement] = number + 1;
  // A copy stays behind what it copies.
  for (Operation *copy : copies) {
    auto statement = statementAt(statements, places.of(copy));
    auto source =
        statementAt(statements, places.of(copy->getOperand(0).getDefiningOp()));
    if (statement && source)
      ranks[*statement] = ranks[*source];
  }
  return ranks;
}

/// With a comment behind it on its last line.
static llvm::SMRange withComment(llvm::SMRange range, StringRef text) {
  StringRef line =
      StringRef(range.End.getPointer(), text.end() - range.End.getPointer())
          .take_until([](char c) { return c == '\n'; });
  if (!line.ltrim().starts_with("//"))
    return range;
  return {range.Start, llvm::SMLoc::getFromPointer(line.rtrim().end())};
}

/// Puts statements that have ranks in their order.
static void moveStatements(const Statements &statements,
                           ArrayRef<unsigned> ranks, StringRef text,
                           TextEdits &edits) {
  SmallVector<unsigned> places;
  for (unsigned i = 0; i < statements.size(); ++i)
    if (ranks[i] > 0)
      places.push_back(i);
  SmallVector<unsigned> sorted = places;
  llvm::stable_sort(
      sorted, [&](unsigned a, unsigned b) { return ranks[a] < ranks[b]; });
  for (auto [place, moved] : llvm::zip_equal(places, sorted))
    if (place != moved)
      edits.replace(withComment(statements[place], text),
                    textOf(withComment(statements[moved], text)));
}

std::optional<std::string>
shardc::inRunningOrder(llvm::SourceMgr &sourceMgr, shd::ProgramOp program,
                       ArrayRef<Operation *> running,
                       ArrayRef<Operation *> copies) {
  const llvm::MemoryBuffer &buffer =
      *sourceMgr.getMemoryBuffer(sourceMgr.getMainFileID());
  StringRef text = buffer.getBuffer();
  Places places(text, buffer.getBufferIdentifier());
  TextEdits edits;
  for (const Statements &block : blocksOf(sourceMgr, program.getContext()))
    moveStatements(block, ranksOf(block, places, running, copies), text, edits);
  std::string result = edits.apply(rangeOf(text));
  return result == text ? std::nullopt : std::optional(std::move(result));
}
