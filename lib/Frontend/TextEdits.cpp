//===- TextEdits.cpp - Changes to a program's text ------------------------===//

#include "shardc/Frontend/TextEdits.h"
#include "llvm/ADT/STLExtras.h"
#include <cassert>
#include <tuple>

using namespace shardc;
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
  assert(range.Start.getPointer() <= range.End.getPointer() &&
         "a range that ends before it starts");
  return StringRef(range.Start.getPointer(),
                   range.End.getPointer() - range.Start.getPointer());
}

SMRange shardc::rangeOf(StringRef text) {
  return {llvm::SMLoc::getFromPointer(text.begin()),
          llvm::SMLoc::getFromPointer(text.end())};
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

StringRef shardc::withoutComment(StringRef text) {
  if (text.starts_with("//"))
    return text.drop_until([](char c) { return c == '\n'; });
  if (text.starts_with("/*"))
    return text.drop_front(std::min(text.find("*/", 2), text.size() - 2) + 2);
  return text;
}

const char *shardc::skipSpace(const char *loc, const char *end) {
  StringRef text(loc, std::max<ptrdiff_t>(end - loc, 0)), last;
  do {
    last = text;
    text = withoutComment(text.ltrim(" \t\n\r"));
  } while (text.size() < last.size());
  return text.data();
}

std::vector<std::string> shardc::commentsIn(SMRange range) {
  std::vector<std::string> comments;
  StringRef text = textOf(range);
  while (!text.empty()) {
    StringRef rest = withoutComment(text);
    if (rest.size() < text.size())
      comments.push_back(text.drop_back(rest.size()).rtrim().str());
    text = rest.size() < text.size() ? rest : text.drop_front();
  }
  return comments;
}
