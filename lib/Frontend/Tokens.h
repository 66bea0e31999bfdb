//===- Tokens.h - The tokens of one file ----------------------*- C++ -*-===//
//
// Lexes a buffer once into a compact array, and serves it to ANTLR's parser one
// statement at a time. ANTLR counts code points; here the lexer reads bytes, so
// that every index is a byte offset. Bytes above 127 occur only in comments and
// strings, whose text is taken from the buffer.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_FRONTEND_TOKENS_H
#define SHARDC_LIB_FRONTEND_TOKENS_H

#include "ShdParser.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/SMLoc.h"
#include <deque>
#include <vector>

namespace shardc {

/// The tokens of a buffer, the last of them the end of the file.
class TokenArray {
public:
  /// Brackets, braces and minus signs in a row may nest this deep.
  static constexpr unsigned maxDepth = 200;
  /// Type of a token that would nest deeper; no rule of the grammar takes it.
  static constexpr uint32_t tooDeep = 0xFFFE;
  static constexpr uint32_t endOfFile = 0xFFFF;
  /// Words and signs of one statement.
  static constexpr size_t maxStatement = 200000;

  struct Token {
    uint32_t type;
    uint32_t offset, length;
  };

  /// `text` must be valid UTF-8, less than 4 GiB, and outlive the array.
  explicit TokenArray(llvm::StringRef text);

  size_t size() const { return tokens.size(); }
  /// The type of token `index`; that of the end of the file beyond it.
  uint32_t type(size_t index) const {
    return index < tokens.size() ? tokens[index].type : endOfFile;
  }
  const Token &operator[](size_t index) const { return tokens[index]; }
  llvm::StringRef text(size_t index) const {
    return buffer.substr(tokens[index].offset, tokens[index].length);
  }
  llvm::SMRange range(size_t index) const;
  /// Whether only white space stands before the token on its line.
  bool startsLine(size_t index) const;
  /// Bytes from the start of the token's line.
  unsigned column(size_t index) const;
  llvm::StringRef getBuffer() const { return buffer; }
  /// True if the text ends in a statement that is longer than `maxStatement`;
  /// what follows has not been read.
  bool isCut() const { return cut; }

private:
  void lex();
  void markTooDeep();

  llvm::StringRef buffer;
  std::vector<Token> tokens;
  bool cut = false;
};

/// Input of ANTLR's parser: the tokens from the start of a statement, made on
/// demand and freed with the statement.
class StatementStream final : public antlr4::TokenStream {
public:
  /// Thrown when a statement is longer than TokenArray::maxStatement.
  struct TooLong {};

  explicit StatementStream(const TokenArray &tokens) : tokens(tokens) {}

  /// Frees the tokens made so far and starts a statement at token `index`.
  void start(size_t index);

  antlr4::Token *LT(ssize_t k) override;
  antlr4::Token *get(size_t index) const override { return make(index); }
  antlr4::TokenSource *getTokenSource() const override { return nullptr; }
  std::string getText(const antlr4::misc::Interval &interval) override;
  std::string getText() override { return tokens.getBuffer().str(); }
  std::string getText(antlr4::RuleContext *context) override;
  std::string getText(antlr4::Token *start, antlr4::Token *stop) override;

  void consume() override;
  size_t LA(ssize_t k) override;
  ssize_t mark() override { return 0; }
  void release(ssize_t) override {}
  size_t index() override { return position; }
  void seek(size_t index) override { position = index; }
  size_t size() override { return tokens.size(); }
  std::string getSourceName() const override { return {}; }

private:
  antlr4::Token *make(size_t index) const;

  const TokenArray &tokens;
  size_t first = 0;
  size_t position = 0;
  /// Tokens `first`, `first + 1`, ...: addresses must not change.
  mutable std::deque<antlr4::CommonToken> made;
};

} // namespace shardc

#endif // SHARDC_LIB_FRONTEND_TOKENS_H
