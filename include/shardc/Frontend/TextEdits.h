//===- TextEdits.h - Changes to a program's text ---------------*- C++ -*-===//
//
// Replacements and insertions in a source buffer, which leave everything else
// as its author wrote it.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_FRONTEND_TEXTEDITS_H
#define SHARDC_FRONTEND_TEXTEDITS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/SMLoc.h"
#include <string>
#include <vector>

namespace shardc {

/// Changes to one buffer. Two changes do not overlap; insertions at one place
/// stand in the order in which they were added, before what is replaced there.
class TextEdits {
public:
  void replace(llvm::SMRange range, llvm::StringRef text);
  void insert(llvm::SMLoc at, llvm::StringRef text);
  void erase(llvm::SMRange range) { replace(range, ""); }
  /// Erases the range and blanks before it; its whole line, if nothing but a
  /// comment is behind it. The buffer starts at `bufferStart`.
  void eraseLine(llvm::SMRange range, const char *bufferStart);

  /// The text of `range` with the changes inside it, those at its ends too.
  std::string apply(llvm::SMRange range) const;

private:
  struct Edit {
    const char *begin, *end;
    std::string text;
  };
  std::vector<Edit> edits;
};

/// The white space before the first token of the line of `loc`, which lies in a
/// buffer that starts at `bufferStart`.
llvm::StringRef indentOf(llvm::SMLoc loc, const char *bufferStart);

/// The text of a range, as it stands in the buffer, and back.
llvm::StringRef textOf(llvm::SMRange range);
llvm::SMRange rangeOf(llvm::StringRef text);

/// The text behind a comment that it begins with; all of it if there is none.
llvm::StringRef withoutComment(llvm::StringRef text);

/// The first character at or after `loc` (and before `end`) that is neither
/// white space nor in a comment; `end` if there is none.
const char *skipSpace(const char *loc, const char *end);

/// The comments in `range`, each as it was written.
std::vector<std::string> commentsIn(llvm::SMRange range);

} // namespace shardc

#endif // SHARDC_FRONTEND_TEXTEDITS_H
