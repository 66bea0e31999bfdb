//===- PlanEdits.cpp - Changes to a program's text ------------------------===//

#include "PlanEdits.h"
#include "llvm/ADT/STLExtras.h"

using namespace shardc;
using namespace shardc::shd;
using llvm::SMRange;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Edits
//===----------------------------------------------------------------------===//

void TextEdits::replace(SMRange range, StringRef text) {
  edits.push_back(
      {range.Start.getPointer(), range.End.getPointer(), text.str()});
}

void TextEdits::insert(llvm::SMLoc at, StringRef text) {
  edits.push_back({at.getPointer(), at.getPointer(), text.str()});
}

void TextEdits::eraseLine(SMRange range, const char *bufferStart) {
  auto isBlank = [](char c) { return c == ' ' || c == '\t'; };
  const char *begin = range.Start.getPointer(), *end = range.End.getPointer();
  while (begin > bufferStart && isBlank(begin[-1]))
    --begin;
  while (isBlank(*end) || *end == '\r')
    ++end;
  bool isLast = *end == '\n' || *end == '\0' || (*end == '/' && end[1] == '/');
  if (isLast && begin > bufferStart && begin[-1] == '\n')
    --begin;
  erase({llvm::SMLoc::getFromPointer(begin), range.End});
}

std::string TextEdits::apply(SMRange range) const {
  const char *begin = range.Start.getPointer();
  const char *end = range.End.getPointer();
  std::vector<const Edit *> inside;
  for (const Edit &edit : edits)
    if (edit.begin >= begin && edit.end <= end)
      inside.push_back(&edit);
  llvm::sort(inside, [](const Edit *a, const Edit *b) {
    bool aReplaces = a->begin != a->end, bReplaces = b->begin != b->end;
    return std::tie(a->begin, aReplaces, a) < std::tie(b->begin, bReplaces, b);
  });
  std::string result;
  const char *at = begin;
  for (const Edit *edit : inside) {
    assert(edit->begin >= at && "changes overlap");
    result.append(at, edit->begin);
    result += edit->text;
    at = edit->end;
  }
  result.append(at, end);
  return result;
}

//===----------------------------------------------------------------------===//
// Source text
//===----------------------------------------------------------------------===//

StringRef shardc::textOf(SMRange range) {
  return StringRef(range.Start.getPointer(),
                   range.End.getPointer() - range.Start.getPointer());
}

StringRef shardc::indentOf(llvm::SMLoc loc, const char *bufferStart) {
  const char *line = loc.getPointer();
  while (line > bufferStart && line[-1] != '\n')
    --line;
  const char *end = line;
  while (end < loc.getPointer() && (*end == ' ' || *end == '\t'))
    ++end;
  return StringRef(line, end - line);
}

/// The end of the comment that starts at `at`; null if none does.
static const char *commentEnd(const char *at, const char *end) {
  if (end - at < 2 || at[0] != '/' || (at[1] != '/' && at[1] != '*'))
    return nullptr;
  StringRef rest(at, end - at);
  if (at[1] == '/')
    return at + std::min(rest.find('\n'), rest.size());
  size_t close = rest.find("*/", 2);
  return close == StringRef::npos ? end : at + close + 2;
}

const char *shardc::skipSpace(const char *loc, const char *end) {
  while (loc < end) {
    if (const char *after = commentEnd(loc, end))
      loc = after;
    else if (*loc == ' ' || *loc == '\t' || *loc == '\n' || *loc == '\r')
      ++loc;
    else
      break;
  }
  return loc;
}

std::vector<std::string> shardc::commentsIn(SMRange range) {
  std::vector<std::string> comments;
  const char *end = range.End.getPointer();
  for (const char *at = range.Start.getPointer(); at < end;) {
    const char *after = commentEnd(at, end);
    if (!after) {
      ++at;
      continue;
    }
    comments.push_back(StringRef(at, after - at).rtrim().str());
    at = after;
  }
  return comments;
}

//===----------------------------------------------------------------------===//
// Index lists
//===----------------------------------------------------------------------===//

std::string shardc::placementText(DimShardingAttr dim) {
  std::string axes;
  for (mlir::StringAttr axis : dim.getAxes())
    axes += (axes.empty() ? "" : ", ") + axis.str();
  return dim.getAxes().size() == 1 ? "@" + axes : "@(" + axes + ")";
}

static std::string partialText(ShardingAttr pin) {
  std::string axes;
  for (mlir::StringAttr axis : pin.getPartial())
    axes += (axes.empty() ? "+" : ", +") + axis.str();
  return axes.empty() ? "" : "{" + axes + "}";
}

/// True if no index has an axis, so that an empty placement has to close the
/// list.
static bool needsClosing(ShardingAttr pin) {
  return llvm::all_of(
      pin.getDims(), [](DimShardingAttr dim) { return dim.getAxes().empty(); });
}

std::string shardc::closedList(llvm::ArrayRef<std::string> indices,
                               ShardingAttr pin) {
  std::string text;
  bool close = needsClosing(pin);
  for (auto [i, index, dim] : llvm::enumerate(indices, pin.getDims())) {
    text += (i ? ", " : "") + index;
    if (!dim.getAxes().empty() || (close && i == 0))
      text += placementText(dim);
  }
  return "[" + text + "]" + partialText(pin);
}

/// True if the placement already says what `dim` says.
static bool agrees(const ast::Placement &placement, DimShardingAttr dim) {
  return !placement.open &&
         llvm::equal(placement.axes, dim.getAxes(),
                     [](const ast::Name &name, mlir::StringAttr axis) {
                       return axis.getValue() == name.text;
                     });
}

static void editPartial(TextEdits &edits, const ast::IndexList &list,
                        ShardingAttr pin) {
  std::string text = partialText(pin);
  if (!list.partial) {
    if (!text.empty())
      edits.insert(list.range.End, text);
    return;
  }
  // The order of the axes of a partial sum says nothing.
  bool same = list.partial->axes.size() == pin.getPartial().size() &&
              llvm::all_of(list.partial->axes, [&](const ast::Name &name) {
                return llvm::any_of(pin.getPartial(), [&](mlir::StringAttr a) {
                  return a.getValue() == name.text;
                });
              });
  if (!same)
    edits.replace(list.partial->range, text);
}

void shardc::editList(TextEdits &edits, const ast::IndexList &list,
                      ShardingAttr pin) {
  // The remaining placements of the list may close it already.
  bool close =
      needsClosing(pin) &&
      llvm::none_of(llvm::zip(list.indices, pin.getDims()), [](auto pair) {
        const auto &[index, dim] = pair;
        return index.placement && agrees(*index.placement, dim);
      });
  for (auto [i, index, dim] : llvm::enumerate(list.indices, pin.getDims())) {
    std::string text;
    if (!dim.getAxes().empty() || (close && i == 0))
      text = placementText(dim);
    if (!index.placement) {
      if (!text.empty())
        edits.insert(index.range.End, text);
    } else if (!agrees(*index.placement, dim)) {
      edits.replace(index.placement->range, text);
    }
  }
  editPartial(edits, list, pin);
}
