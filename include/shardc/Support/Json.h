//===- Json.h - JSON files of any origin ----------------------*- C++ -*-===//

#ifndef SHARDC_SUPPORT_JSON_H
#define SHARDC_SUPPORT_JSON_H

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace shardc {

/// Arrays and objects nest at most so deep: LLVM's parser recurses without a
/// limit of its own.
inline constexpr unsigned kMaxJsonDepth = 256;

/// `llvm::json::parse`, with a `ParseError` where a text nests too deep.
inline llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text) {
  unsigned depth = 0;
  bool inString = false;
  if (!llvm::json::isUTF8(text))
    return llvm::json::parse(text);
  for (size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    if (inString && c == '\\')
      ++at;
    else if (c == '"')
      inString = !inString;
    else if (!inString && (c == ']' || c == '}'))
      depth -= depth > 0;
    else if (!inString && (c == '[' || c == '{') && ++depth > kMaxJsonDepth)
      return llvm::make_error<llvm::json::ParseError>(
          "Arrays and objects nest deeper than 256 levels", 1, at, at);
  }
  return llvm::json::parse(text);
}

} // namespace shardc

#endif // SHARDC_SUPPORT_JSON_H
