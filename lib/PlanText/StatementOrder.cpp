//===- StatementOrder.cpp - Statements in the order of a plan -------------===//
//
// A statement makes several operations, and a plan may run others between them:
// statements are in the order in which the last of their operations run, and so
// are repeats. Each takes the place of another one, with the comment behind it
// on its line.
//
//===----------------------------------------------------------------------===//

#include "StatementOrder.h"
#include "PlanEdits.h"
#include "shardc/Dialect/Shd/IR/WorkOrder.h"
#include "shardc/Frontend/Frontend.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace shardc;

/// The assignments and repeats of one block.
using Statements = std::vector<const ast::Item *>;

static Statements statementsOf(ArrayRef<ast::ItemPtr> items) {
  Statements statements;
  for (const ast::ItemPtr &item : items)
    if (isa<ast::AssignStmt, ast::RepeatStmt>(*item))
      statements.push_back(item.get());
  return statements;
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
  for (auto [number, statement] : llvm::enumerate(statements))
    if (place && place >= statement->range.Start.getPointer() &&
        place < statement->range.End.getPointer())
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

namespace {
/// Writes the blocks of a program in the order in which they run.
class OrderedText {
public:
  OrderedText(StringRef text, StringRef file, ArrayRef<Operation *> running,
              ArrayRef<Operation *> copies)
      : text(text), places(text, file), running(running), copies(copies) {}

  /// The text of a range, with these items of it in their order.
  std::string of(llvm::SMRange range, ArrayRef<ast::ItemPtr> items) const;

private:
  std::string of(const ast::Item &statement) const;

  StringRef text;
  Places places;
  ArrayRef<Operation *> running, copies;
};
} // namespace

std::string OrderedText::of(const ast::Item &statement) const {
  llvm::SMRange range = withComment(statement.range, text);
  auto *repeat = dyn_cast<ast::RepeatStmt>(&statement);
  return repeat ? of(range, repeat->body) : textOf(range).str();
}

/// Statements that have ranks take each other's places.
std::string OrderedText::of(llvm::SMRange range,
                            ArrayRef<ast::ItemPtr> items) const {
  Statements statements = statementsOf(items);
  std::vector<unsigned> ranks = ranksOf(statements, places, running, copies);
  SmallVector<unsigned> free;
  for (unsigned i = 0; i < statements.size(); ++i)
    if (ranks[i] > 0)
      free.push_back(i);
  SmallVector<unsigned> sorted = free;
  llvm::stable_sort(
      sorted, [&](unsigned a, unsigned b) { return ranks[a] < ranks[b]; });
  TextEdits edits;
  for (auto [place, moved] : llvm::zip_equal(free, sorted))
    edits.replace(withComment(statements[place]->range, text),
                  of(*statements[moved]));
  return edits.apply(range);
}

std::optional<std::string>
shardc::inRunningOrder(llvm::SourceMgr &sourceMgr, shd::ProgramOp program,
                       ArrayRef<Operation *> running,
                       ArrayRef<Operation *> copies) {
  const llvm::MemoryBuffer &buffer =
      *sourceMgr.getMemoryBuffer(sourceMgr.getMainFileID());
  auto file =
      parseFile(sourceMgr, sourceMgr.getMainFileID(), program.getContext());
  if (!file)
    return std::nullopt;
  StringRef text = buffer.getBuffer();
  OrderedText ordered(text, buffer.getBufferIdentifier(), running, copies);
  std::string result = ordered.of(rangeOf(text), file->items);
  return result == text ? std::nullopt : std::optional(std::move(result));
}
