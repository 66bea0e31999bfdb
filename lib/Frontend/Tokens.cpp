//===- Tokens.cpp - The tokens of one file --------------------------------===//
//
// Lexing, the check of nesting that protects the recursive parser, and the
// token stream of one statement.
//
//===----------------------------------------------------------------------===//

#include "Tokens.h"
#include "ShdLexer.h"
#include "llvm/ADT/SmallVector.h"

using namespace shardc;
using grammar::ShdLexer;
using grammar::ShdParser;

namespace {

/// A buffer as ANTLR's lexer sees it: one character a byte.
class ByteStream final : public antlr4::CharStream {
public:
  explicit ByteStream(llvm::StringRef text) : text(text) {}

  void consume() override { ++position; }
  size_t LA(ssize_t k) override {
    size_t at = position + k - (k > 0);
    if (at >= text.size())
      return EOF;
    unsigned char c = text[at];
    // DEL is as little a part of the language, and the lexer's tables end at
    // 127.
    return c < 128 ? c : 127;
  }
  ssize_t mark() override { return 0; }
  void release(ssize_t) override {}
  size_t index() override { return position; }
  void seek(size_t index) override { position = index; }
  size_t size() override { return text.size(); }
  std::string getSourceName() const override { return {}; }
  std::string getText(const antlr4::misc::Interval &interval) override {
    return text.slice(interval.a, interval.b + 1).str();
  }
  std::string toString() const override { return text.str(); }

private:
  llvm::StringRef text;
  size_t position = 0;
};

/// Whether the token cannot occur in the middle of a long statement.
bool separatesStatements(size_t type) {
  return type == ShdParser::ASSIGN || type == ShdParser::ACCUMULATE ||
         type == ShdParser::LBRACE || type == ShdParser::RBRACE ||
         type <= ShdParser::SERVE;
}

} // namespace

//===----------------------------------------------------------------------===//
// TokenArray
//===----------------------------------------------------------------------===//

TokenArray::TokenArray(llvm::StringRef text) : buffer(text) {
  lex();
  markTooDeep();
}

void TokenArray::lex() {
  size_t begin = buffer.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  ByteStream input(buffer.drop_front(begin));
  ShdLexer lexer(&input);
  lexer.removeErrorListeners();
  size_t lastSeparator = 0;
  while (true) {
    std::unique_ptr<antlr4::Token> token = lexer.nextToken();
    if (token->getType() == antlr4::Token::EOF)
      break;
    size_t offset = token->getStartIndex(), stop = token->getStopIndex();
    tokens.push_back({static_cast<uint32_t>(token->getType()),
                      static_cast<uint32_t>(begin + offset),
                      static_cast<uint32_t>(stop + 1 - offset)});
    // The rest of the file is inside the comment.
    if (token->getType() == ShdLexer::OPEN_COMMENT)
      break;
    // Two statements have one of these between them.
    if (separatesStatements(token->getType()))
      lastSeparator = tokens.size();
    else if (tokens.size() - lastSeparator > 2 * maxStatement) {
      cut = true;
      break;
    }
  }
  tokens.push_back({endOfFile, static_cast<uint32_t>(buffer.size()), 0});
}

void TokenArray::markTooDeep() {
  // Levels that each open bracket stands for: itself and the minus signs
  // directly before it.
  llvm::SmallVector<unsigned> open;
  unsigned depth = 0, minuses = 0;
  for (Token &token : tokens) {
    switch (token.type) {
    case ShdParser::MINUS:
      ++minuses;
      break;
    case ShdParser::LPAREN:
    case ShdParser::LBRACKET:
    case ShdParser::LBRACE:
      open.push_back(minuses + 1);
      depth += open.back();
      minuses = 0;
      break;
    case ShdParser::RPAREN:
    case ShdParser::RBRACKET:
    case ShdParser::RBRACE:
      if (!open.empty())
        depth -= open.pop_back_val();
      minuses = 0;
      break;
    default:
      minuses = 0;
    }
    if (depth + minuses > maxDepth) {
      token.type = tooDeep;
      open.clear();
      depth = minuses = 0;
    }
  }
}

llvm::SMRange TokenArray::range(size_t index) const {
  const Token &token = tokens[index];
  const char *begin = buffer.data() + token.offset;
  return {llvm::SMLoc::getFromPointer(begin),
          llvm::SMLoc::getFromPointer(begin + token.length)};
}

bool TokenArray::startsLine(size_t index) const {
  if (index == 0)
    return true;
  const Token &before = tokens[index - 1];
  size_t end = before.offset + before.length;
  return buffer.slice(end, tokens[index].offset).contains('\n');
}

unsigned TokenArray::column(size_t index) const {
  size_t offset = tokens[index].offset;
  size_t newline = buffer.take_front(offset).rfind('\n');
  return newline == llvm::StringRef::npos ? offset : offset - newline - 1;
}

//===----------------------------------------------------------------------===//
// StatementStream
//===----------------------------------------------------------------------===//

void StatementStream::start(size_t index) {
  made.clear();
  first = position = index;
}

antlr4::Token *StatementStream::make(size_t index) const {
  index = std::min(index, tokens.size() - 1);
  if (index < first)
    return nullptr;
  while (made.size() <= index - first) {
    size_t next = first + made.size();
    const TokenArray::Token &token = tokens[next];
    size_t type = token.type == TokenArray::endOfFile
                      ? static_cast<size_t>(antlr4::Token::EOF)
                      : token.type;
    antlr4::CommonToken &result = made.emplace_back(type);
    result.setTokenIndex(next);
    result.setStartIndex(token.offset);
    result.setStopIndex(token.offset + token.length - 1);
  }
  return &made[index - first];
}

antlr4::Token *StatementStream::LT(ssize_t k) {
  if (k < 0)
    return position < static_cast<size_t>(-k) ? nullptr : make(position + k);
  return make(position + k - 1);
}

void StatementStream::consume() {
  if (position - first >= TokenArray::maxStatement)
    throw TooLong();
  if (position + 1 < tokens.size())
    ++position;
}

size_t StatementStream::LA(ssize_t k) {
  uint32_t type = tokens.type(position + k - (k > 0));
  return type == TokenArray::endOfFile ? static_cast<size_t>(EOF) : type;
}

std::string StatementStream::getText(const antlr4::misc::Interval &interval) {
  return getText(make(interval.a), make(interval.b));
}

std::string StatementStream::getText(antlr4::RuleContext *context) {
  return getText(context->getSourceInterval());
}

std::string StatementStream::getText(antlr4::Token *start,
                                     antlr4::Token *stop) {
  return tokens.getBuffer()
      .slice(start->getStartIndex(), stop->getStopIndex() + 1)
      .str();
}
