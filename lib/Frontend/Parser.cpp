//===- Parser.cpp - From .shd text to the AST -----------------------------===//
//
// Walks the items of a file and calls one rule of the grammar for each, first
// with ANTLR's fast SLL prediction and, where that fails, with full LL. What
// fails twice is reported, once, and the walk goes on at the next statement.
// Bodies of layers and repeats are items again and are walked with a stack.
//
//===----------------------------------------------------------------------===//

#include "AstBuilder.h"
#include "Names.h"
#include "Parse.h"
#include "Tokens.h"
#include "shardc/Frontend/Frontend.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include <set>

using namespace shardc;
using grammar::ShdParser;
using llvm::StringRef;

namespace {

//===----------------------------------------------------------------------===//
// Syntax errors
//===----------------------------------------------------------------------===//

/// Types of tokens.
using TokenSet = std::set<uint32_t>;

/// Where a rule failed, and what could have stood there.
struct SyntaxError {
  size_t token = 0;
  TokenSet expected;
  /// The rule being parsed; for a name, the one that it belongs to.
  size_t rule = 0;
};

/// Thrown out of the generated parser at the first error of a statement.
struct StatementFailed {};

/// Stops at the first error instead of repairing it.
class StopAtFirstError final : public antlr4::ANTLRErrorStrategy {
public:
  const SyntaxError &getError() const { return error; }

  void reset(antlr4::Parser *) override {}
  antlr4::Token *recoverInline(antlr4::Parser *parser) override {
    fail(parser, parser->getCurrentToken(), toSet(parser->getExpectedTokens()));
  }
  void recover(antlr4::Parser *, std::exception_ptr) override {
    throw StatementFailed();
  }
  void sync(antlr4::Parser *) override {}
  bool inErrorRecoveryMode(antlr4::Parser *) override { return false; }
  void reportMatch(antlr4::Parser *) override {}
  void reportError(antlr4::Parser *parser,
                   const antlr4::RecognitionException &e) override {
    antlr4::Token *offending = e.getOffendingToken();
    auto *dead = dynamic_cast<const antlr4::NoViableAltException *>(&e);
    bool ahead = dead && dead->getStartToken() != offending;
    fail(parser, offending,
         ahead ? expectedAt(*parser, *dead)
               : toSet(parser->getExpectedTokens()));
  }

private:
  static TokenSet toSet(const antlr4::misc::IntervalSet &intervals) {
    TokenSet result;
    for (ssize_t type : intervals.toList()) {
      if (type > 0)
        result.insert(type);
      else if (static_cast<size_t>(type) == antlr4::Token::EOF)
        result.insert(TokenArray::endOfFile);
    }
    return result;
  }

  /// Tokens that could stand where a prediction failed several tokens ahead.
  static TokenSet expectedAt(antlr4::Parser &parser,
                             const antlr4::NoViableAltException &e) {
    TokenSet result;
    if (antlr4::atn::ATNConfigSet *dead = e.getDeadEndConfigs())
      for (const auto &config : dead->configs)
        result.merge(toSet(parser.getATN().nextTokens(config->state)));
    return result;
  }

  [[noreturn]] void fail(antlr4::Parser *parser, antlr4::Token *token,
                         TokenSet expected) {
    error.token = token->getTokenIndex();
    error.expected = std::move(expected);
    antlr4::RuleContext *rule = parser->getContext();
    if (rule->getRuleIndex() == ShdParser::RuleName && rule->parent)
      rule = static_cast<antlr4::RuleContext *>(rule->parent);
    error.rule = rule->getRuleIndex();
    throw StatementFailed();
  }

  SyntaxError error;
};

bool isName(uint32_t type) {
  switch (type) {
  case ShdParser::ID:
  case ShdParser::ON:
  case ShdParser::AUTO:
  case ShdParser::SAVE:
  case ShdParser::NETWORK:
  case ShdParser::CALIBRATION:
  case ShdParser::TORUS:
  case ShdParser::SWITCH:
  case ShdParser::IN:
  case ShdParser::ORDER:
  case ShdParser::MICROBATCHES:
  case ShdParser::SCHEDULE:
    return true;
  default:
    return false;
  }
}

/// Words that begin a declaration or block and occur nowhere else; `mesh` and
/// `dim` also occur inside declarations.
bool isItemKeyword(uint32_t type) {
  switch (type) {
  case ShdParser::IMPORT:
  case ShdParser::HARDWARE:
  case ShdParser::INPUT:
  case ShdParser::WEIGHT:
  case ShdParser::STATE:
  case ShdParser::OUTPUT:
  case ShdParser::LAYER:
  case ShdParser::TRAIN:
  case ShdParser::SERVE:
  case ShdParser::REPEAT:
    return true;
  default:
    return false;
  }
}

/// Whether an item that begins with `type` can be left out without making
/// errors of what follows it.
bool mayBeLeftOut(uint32_t type) {
  return isName(type) || type == ShdParser::INPUT ||
         type == ShdParser::WEIGHT || type == ShdParser::STATE ||
         type == ShdParser::OUTPUT;
}

bool isReservedWord(uint32_t type) {
  return (type >= ShdParser::IMPORT && type <= ShdParser::IOTA) ||
         type == ShdParser::TYPE;
}

bool standsOnlyAtFileLevel(uint32_t type) {
  switch (type) {
  case ShdParser::IMPORT:
  case ShdParser::HARDWARE:
  case ShdParser::MESH:
  case ShdParser::INPUT:
  case ShdParser::OUTPUT:
  case ShdParser::TRAIN:
  case ShdParser::SERVE:
    return true;
  default:
    return false;
  }
}

bool isComparison(uint32_t type) {
  return type >= ShdParser::EQ && type <= ShdParser::GE;
}

/// A token as an error shows it: quoted, and not at any length.
std::string quoted(StringRef text) {
  constexpr size_t longest = 40;
  if (text.size() <= longest)
    return ("'" + text + "'").str();
  return ("'" + text.take_front(longest) + "...'").str();
}

/// "a", "a or b", "a, b or c".
std::string alternatives(llvm::ArrayRef<std::string> list) {
  std::string result;
  for (auto [i, each] : llvm::enumerate(list)) {
    if (i != 0)
      result += i + 1 == list.size() ? " or " : ", ";
    result += each;
  }
  return result;
}

/// The kind of thing that a name names, in a rule of the grammar.
StringRef nameIn(size_t rule) {
  switch (rule) {
  case ShdParser::RulePlacement:
  case ShdParser::RulePartial:
    return "the name of a mesh axis";
  case ShdParser::RuleDims:
  case ShdParser::RulePlacedName:
  case ShdParser::RuleDimDecl:
  case ShdParser::RuleDimDef:
  case ShdParser::RuleOrderDecl:
  case ShdParser::RuleOrderDef:
    return "the name of a dim";
  case ShdParser::RuleQuestion:
    return "the name of a dim or of a mesh axis";
  default:
    return "a name";
  }
}

/// The kind of a bracketed list's elements; empty if the rule has no list that
/// may be empty.
StringRef elementIn(size_t rule) {
  switch (rule) {
  case ShdParser::RuleBrackets:
  case ShdParser::RuleCallArguments:
    return "an expression";
  case ShdParser::RuleDims:
  case ShdParser::RulePlacement:
  case ShdParser::RuleLayerHead:
  case ShdParser::RuleRepeatHead:
    return nameIn(rule);
  default:
    return "";
  }
}

/// Whether a bracket that closes here could also be preceded by a comma.
bool isCommaList(size_t rule) {
  switch (rule) {
  case ShdParser::RuleHwShape:
  case ShdParser::RuleHwList:
  case ShdParser::RuleNameList:
  case ShdParser::RuleWord:
  case ShdParser::RuleMeshSpec:
  case ShdParser::RuleAxisNames:
  case ShdParser::RuleTuple:
  case ShdParser::RuleGroup:
  case ShdParser::RulePartial:
  case ShdParser::RuleSettingValue:
    return true;
  default:
    return !elementIn(rule).empty();
  }
}

/// Expected tokens in the user's words, after a token of type `previous`; empty
/// if there are too many to help.
std::string describe(const SyntaxError &error, uint32_t previous,
                     const ShdParser &parser) {
  TokenSet left = error.expected;
  auto takes = [&](uint32_t type) { return left.count(type) != 0; };
  auto drop = [&](std::initializer_list<uint32_t> types) {
    for (uint32_t type : types)
      left.erase(type);
  };
  llvm::SmallVector<std::string> words;
  bool real = takes(ShdParser::REAL);
  if (takes(ShdParser::LPAREN) && takes(ShdParser::ID) &&
      takes(ShdParser::INT)) {
    words.push_back(real ? "an expression" : "an integer expression");
    drop({ShdParser::LPAREN, ShdParser::MINUS, ShdParser::INF, ShdParser::SIZE,
          ShdParser::IOTA, ShdParser::TYPE, ShdParser::TRUE, ShdParser::FALSE,
          ShdParser::NONE, ShdParser::ONE_F_ONE_B});
  } else {
    if (takes(ShdParser::ID))
      words.push_back(nameIn(error.rule).str());
    if (takes(ShdParser::INT))
      words.push_back(real ? "a number" : "an integer");
  }
  if (takes(ShdParser::ID))
    drop({ShdParser::ID, ShdParser::ON, ShdParser::AUTO, ShdParser::SAVE,
          ShdParser::NETWORK, ShdParser::CALIBRATION, ShdParser::TORUS,
          ShdParser::SWITCH, ShdParser::IN, ShdParser::ORDER,
          ShdParser::MICROBATCHES, ShdParser::SCHEDULE});
  drop({ShdParser::INT, ShdParser::HEX, ShdParser::REAL});
  if (left.erase(ShdParser::TYPE))
    words.push_back("an element type");
  if (left.erase(ShdParser::STRING))
    words.push_back("a file name in double quotes");
  bool closes = takes(ShdParser::RBRACKET) || takes(ShdParser::RPAREN) ||
                takes(ShdParser::RBRACE);
  // The grammar decides for the end of a list before it looks at the bracket.
  bool opened =
      previous == ShdParser::LBRACKET || previous == ShdParser::LPAREN;
  if (closes && words.empty() && opened && !elementIn(error.rule).empty())
    words.push_back(elementIn(error.rule).str());
  else if (closes && words.empty() && isCommaList(error.rule))
    left.insert(ShdParser::COMMA);
  if (left.erase(ShdParser::COMMA))
    words.push_back("','");
  for (uint32_t type : left)
    words.push_back(type == TokenArray::endOfFile
                        ? "the end of the text"
                        : parser.getVocabulary().getLiteralName(type));
  constexpr size_t most = 5;
  return words.size() > most ? "" : alternatives(words);
}

//===----------------------------------------------------------------------===//
// Parsing one rule
//===----------------------------------------------------------------------===//

/// The parser of one buffer.
class TextParser {
public:
  /// `what` the buffer is: a file, or the text of an option.
  TextParser(SourceFiles &files, StringRef text, StringRef what)
      : files(files), what(what), tokens(text), stream(tokens), parser(&stream),
        builder(files, text), strategy(std::make_shared<StopAtFirstError>()) {
    parser.removeErrorListeners();
    parser.setErrorHandler(strategy);
  }

  /// All items of the file; null after an error that leaves too little of it.
  std::unique_ptr<ast::File> parseItems();

  /// One rule that takes the whole text; null after an error.
  template <typename Context> Context *parseAll(Context *(ShdParser::*rule)()) {
    Context *context = parse(rule);
    if (!context || tokens.type(stream.index()) == TokenArray::endOfFile)
      return context;
    reportUnexpected(stream.index());
    return nullptr;
  }

  AstBuilder &getBuilder() { return builder; }

private:
  /// A layer or repeat whose body is being parsed.
  struct Block {
    ast::ItemPtr owner;
    std::vector<ast::ItemPtr> *body;
    /// Its `{`.
    size_t open;
    /// A declaration that belongs at file level has been reported in it.
    bool reportedMisplaced = false;
  };

  template <typename Context> Context *parse(Context *(ShdParser::*rule)());
  void parseItem();
  template <typename Context> void statement(Context *(ShdParser::*rule)());
  template <typename Context> void block(Context *(ShdParser::*rule)());
  void openBlock(ast::ItemPtr owner, std::vector<ast::ItemPtr> *body);
  void closeBlock();
  void append(ast::ItemPtr item);
  void skipBroken();
  void appendBroken(size_t begin, size_t end);
  bool hasStatement(size_t begin, size_t end) const;
  void checkPlace(bool isOfFile);

  void report(const SyntaxError &error);
  mlir::InFlightDiagnostic reportExpected(StringRef expected, size_t token);
  bool reportBadToken(size_t token);
  void reportCharacter(size_t token);
  void reportUnexpected(size_t token);
  bool reportBarePattern(size_t token);
  void reportNoItem();
  void noteHabit(mlir::InFlightDiagnostic &diagnostic, size_t token);
  bool isBehindComma(size_t token) const;
  void noteOpenBracket(mlir::InFlightDiagnostic &diagnostic, size_t token);
  std::string spelled(size_t token);
  size_t bodyAfter(size_t error) const;
  size_t nextStatement(size_t error) const;
  bool beginsLayout(size_t token) const;
  bool beginsStatement(size_t token) const;

  SourceFiles &files;
  StringRef what;
  TokenArray tokens;
  StatementStream stream;
  ShdParser parser;
  AstBuilder builder;
  std::shared_ptr<StopAtFirstError> strategy;
  /// First token of the current item.
  size_t position = 0;
  /// The token at which the current item failed.
  size_t failedAt = 0;
  ast::File file;
  std::vector<Block> blocks;
  /// The parser cannot make sense of text behind this error.
  bool stopped = false;
  /// An error has taken more than a declaration of a tensor or a statement.
  bool incomplete = false;
};

template <typename Context>
Context *TextParser::parse(Context *(ShdParser::*rule)()) {
  auto *interpreter = parser.getInterpreter<antlr4::atn::ParserATNSimulator>();
  for (auto mode :
       {antlr4::atn::PredictionMode::SLL, antlr4::atn::PredictionMode::LL}) {
    stream.start(position);
    parser.getTreeTracker().reset();
    parser.setContext(nullptr);
    parser.setState(antlr4::atn::ATNState::INVALID_STATE_NUMBER);
    interpreter->setPredictionMode(mode);
    try {
      return (parser.*rule)();
    } catch (const StatementFailed &) {
      failedAt = strategy->getError().token;
    } catch (const StatementStream::TooLong &) {
      failedAt = stream.index();
      files.error(tokens.range(position))
          << "statement is too long (more than " << TokenArray::maxStatement
          << " words and signs)";
      stopped = tokens.isCut();
      return nullptr;
    }
  }
  report(strategy->getError());
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Items
//===----------------------------------------------------------------------===//

std::unique_ptr<ast::File> TextParser::parseItems() {
  constexpr unsigned maxErrors = 20;
  unsigned before = files.numErrors();
  if (tokens.size() == 1) {
    files.error(tokens.range(0)) << "the file is empty";
    return nullptr;
  }
  while (tokens.type(position) != TokenArray::endOfFile) {
    parseItem();
    if (stopped)
      return nullptr;
    if (files.numErrors() - before >= maxErrors) {
      files.error(tokens.range(position))
          << "too many errors; the rest of the file is not checked";
      return nullptr;
    }
  }
  if (!blocks.empty()) {
    incomplete = true;
    mlir::InFlightDiagnostic diagnostic =
        files.error(tokens.range(position))
        << "expected '}' before the end of the " << what;
    diagnostic.attachNote(files.location(tokens.range(blocks.back().open)))
        << "to match this '{'";
  }
  if (incomplete)
    return nullptr;
  return std::make_unique<ast::File>(std::move(file));
}

void TextParser::parseItem() {
  uint32_t type = tokens.type(position);
  bool ordersIndex =
      type == ShdParser::ORDER && isName(tokens.type(position + 1));
  bool places = beginsLayout(position);
  checkPlace(ordersIndex || places || standsOnlyAtFileLevel(type));
  if (ordersIndex)
    return statement(&ShdParser::orderDecl);
  if (places)
    return statement(&ShdParser::placing);
  switch (type) {
  case ShdParser::IMPORT:
    return statement(&ShdParser::importDecl);
  case ShdParser::HARDWARE:
    return statement(&ShdParser::hardwareDecl);
  case ShdParser::MESH:
    return statement(&ShdParser::meshDecl);
  case ShdParser::DIM:
    return statement(&ShdParser::dimDecl);
  case ShdParser::INPUT:
  case ShdParser::WEIGHT:
  case ShdParser::STATE:
    return statement(&ShdParser::tensorDecl);
  case ShdParser::OUTPUT:
    return statement(&ShdParser::outputDecl);
  case ShdParser::TRAIN:
    return statement(&ShdParser::trainBlock);
  case ShdParser::SERVE:
    return statement(&ShdParser::serveBlock);
  case ShdParser::LAYER:
    return block(&ShdParser::layerHead);
  case ShdParser::REPEAT:
    return block(&ShdParser::repeatHead);
  case ShdParser::RBRACE:
    return closeBlock();
  default:
    if (isName(type))
      return statement(&ShdParser::assignStmt);
    reportNoItem();
    failedAt = position;
    skipBroken();
  }
}

/// Leaves out the item at `position`, which failed at `failedAt`.
void TextParser::skipBroken() {
  size_t begin = position;
  position = nextStatement(failedAt);
  appendBroken(begin, position);
}

/// An item in place of the tokens from `begin` to `end`. All names may be names
/// of values that it defines.
void TextParser::appendBroken(size_t begin, size_t end) {
  uint32_t type = tokens.type(begin);
  bool declares =
      isItemKeyword(type) || type == ShdParser::MESH || type == ShdParser::DIM;
  if (declares && !mayBeLeftOut(type)) {
    incomplete = true;
    return;
  }
  auto broken = std::make_unique<ast::BrokenItem>();
  broken->range = tokens.range(begin);
  broken->isDeclaration = isItemKeyword(type);
  for (size_t i = begin; i < end; ++i) {
    if (isName(tokens.type(i)) && type != ShdParser::OUTPUT)
      broken->targets.push_back(
          {{tokens.text(i).str(), tokens.range(i)}, std::nullopt});
    bool defines = tokens.type(i) == ShdParser::ASSIGN ||
                   tokens.type(i) == ShdParser::ACCUMULATE;
    // The rest is read if it has no statement in it.
    if (defines && !hasStatement(i + 1, end))
      break;
  }
  append(std::move(broken));
}

/// Whether the left side of a statement may stand between two tokens.
bool TextParser::hasStatement(size_t begin, size_t end) const {
  for (size_t i = begin + 1; i < end; ++i)
    if (tokens.type(i) == ShdParser::ASSIGN ||
        tokens.type(i) == ShdParser::ACCUMULATE ||
        tokens.type(i) == ShdParser::COLON)
      return true;
  return false;
}

template <typename Context>
void TextParser::statement(Context *(ShdParser::*rule)()) {
  unsigned before = files.numErrors();
  Context *context = parse(rule);
  if (!context)
    return skipBroken();
  size_t begin = position;
  position = stream.index();
  ast::ItemPtr item = builder.build(context);
  if (files.numErrors() == before)
    append(std::move(item));
  else
    appendBroken(begin, position);
}

template <typename Context>
void TextParser::block(Context *(ShdParser::*rule)()) {
  Context *context = parse(rule);
  if (context && tokens.type(stream.index()) != ShdParser::LBRACE) {
    failedAt = stream.index();
    report({failedAt, {ShdParser::LBRACE}, context->getRuleIndex()});
    context = nullptr;
  }
  if (context) {
    unsigned before = files.numErrors();
    auto owner = builder.build(context);
    incomplete |= files.numErrors() != before;
    auto *body = &owner->body;
    position = stream.index();
    openBlock(std::move(owner), body);
    return;
  }
  incomplete = true;
  // The body is still worth checking.
  size_t open = bodyAfter(failedAt);
  if (open == 0) {
    position = nextStatement(failedAt);
    return;
  }
  auto owner = std::make_unique<ast::RepeatStmt>();
  owner->range = tokens.range(position);
  auto *body = &owner->body;
  position = open;
  openBlock(std::move(owner), body);
}

void TextParser::openBlock(ast::ItemPtr owner,
                           std::vector<ast::ItemPtr> *body) {
  blocks.push_back({std::move(owner), body, position++});
}

void TextParser::closeBlock() {
  if (blocks.empty()) {
    incomplete = true;
    files.error(tokens.range(position)) << "unmatched '}'";
    while (tokens.type(position) == ShdParser::RBRACE)
      ++position;
    return;
  }
  Block block = std::move(blocks.back());
  blocks.pop_back();
  block.owner->range = join(block.owner->range, tokens.range(position++));
  append(std::move(block.owner));
}

void TextParser::append(ast::ItemPtr item) {
  (blocks.empty() ? file.items : *blocks.back().body)
      .push_back(std::move(item));
}

/// Most declarations stand only at file level; often a '}' is missing.
void TextParser::checkPlace(bool isOfFile) {
  if (blocks.empty() || !isOfFile || blocks.back().reportedMisplaced)
    return;
  blocks.back().reportedMisplaced = true;
  incomplete = true;
  mlir::InFlightDiagnostic diagnostic =
      files.error(tokens.range(position))
      << quoted(tokens.text(position))
      << " may stand only at the top level of a file";
  diagnostic.attachNote(files.location(tokens.range(blocks.back().open)))
      << "inside this '{'";
}

//===----------------------------------------------------------------------===//
// Reporting
//===----------------------------------------------------------------------===//

std::string TextParser::spelled(size_t token) {
  if (tokens.type(token) == TokenArray::endOfFile)
    return ("the end of the " + what).str();
  return quoted(tokens.text(token));
}

void TextParser::report(const SyntaxError &error) {
  if (reportBadToken(error.token) || reportBarePattern(error.token))
    return;
  uint32_t previous = error.token == position ? TokenArray::endOfFile
                                              : tokens.type(error.token - 1);
  std::string expected = describe(error, previous, parser);
  if (expected.empty())
    return reportUnexpected(error.token);
  if (error.expected.count(ShdParser::ACCUMULATE) &&
      !tokens.startsLine(position)) {
    files.error(tokens.range(position))
        << "expected an operator or a statement before " << spelled(position);
    return;
  }
  mlir::InFlightDiagnostic diagnostic = reportExpected(expected, error.token);
  if (error.expected.count(ShdParser::ID) && !tokens.startsLine(error.token) &&
      isReservedWord(tokens.type(error.token)))
    diagnostic.attachNote() << spelled(error.token) << " is a reserved word";
  noteHabit(diagnostic, error.token);
  std::optional<StringRef> type = likelyElementType(tokens.text(error.token));
  if (error.expected.count(ShdParser::TYPE) && type)
    diagnostic.attachNote() << "did you mean '" << *type << "'?";
  else if (error.expected.count(ShdParser::TYPE) &&
           !error.expected.count(ShdParser::LPAREN))
    diagnostic.attachNote()
        << "element types are f64 f32 tf32 f16 bf16 f8e4m3 f8e5m2 f8e8m0 "
           "f4e2m1 int32 int16 int8 int4 uint8 bool";
  noteOpenBracket(diagnostic, error.token);
}

/// Reports that something is missing: at the end of the line before, if the
/// offending token begins a line.
mlir::InFlightDiagnostic TextParser::reportExpected(StringRef expected,
                                                    size_t token) {
  if (token == position || !tokens.startsLine(token))
    return files.error(tokens.range(token))
           << "expected " << expected << " before " << spelled(token);
  llvm::SMLoc end = tokens.range(token - 1).End;
  return files.error(llvm::SMRange(end, end))
         << "expected " << expected << " after " << spelled(token - 1);
}

/// Reports a token that no rule takes; false if it is not one.
bool TextParser::reportBadToken(size_t token) {
  switch (tokens.type(token)) {
  case ShdParser::BAD_NUMBER:
    files.error(tokens.range(token))
        << "a letter may not follow a number directly in " << spelled(token);
    return true;
  case ShdParser::OPEN_STRING:
    files.error(tokens.range(token)) << "string is not closed on its line";
    return true;
  case ShdParser::OPEN_COMMENT:
    files.error(tokens.range(token)) << "comment is not closed";
    return true;
  case ShdParser::BAD_CHARACTER:
    reportCharacter(token);
    return true;
  case TokenArray::tooDeep:
    files.error(tokens.range(token)) << "nested too deeply (more than "
                                     << TokenArray::maxDepth << " levels)";
    stopped = true;
    return true;
  default:
    return false;
  }
}

void TextParser::reportCharacter(size_t token) {
  unsigned char first = tokens.text(token).front();
  mlir::InFlightDiagnostic diagnostic = files.error(tokens.range(token));
  if (first < 0x20 || first == 0x7F)
    diagnostic << "unexpected control character with code "
               << static_cast<unsigned>(first);
  else
    diagnostic << "unexpected character '"
               << tokens.getBuffer().substr(tokens[token].offset,
                                            llvm::getNumBytesForUTF8(first))
               << "'";
  if (first == '#')
    diagnostic.attachNote() << "comments begin with //";
}

void TextParser::reportUnexpected(size_t token) {
  if (reportBadToken(token))
    return;
  mlir::InFlightDiagnostic diagnostic = files.error(tokens.range(token));
  diagnostic << "unexpected " << spelled(token);
  noteHabit(diagnostic, token);
}

/// Reports a pattern without its quotes, as in `frozen = W*`, if `token` stands
/// in or right behind such a setting; false if not.
bool TextParser::reportBarePattern(size_t token) {
  if (tokens.type(position) != ShdParser::TRAIN)
    return false;
  size_t equals = token;
  while (equals > position &&
         (equals == token || tokens.type(equals) != ShdParser::ASSIGN))
    --equals;
  if (equals == position || tokens.text(equals - 1) != "frozen")
    return false;
  auto isPattern = [&](size_t i) {
    llvm::StringRef text = tokens.text(i);
    return text == "*" || text == "?" || text == "." || text == "[";
  };
  auto ends = [&](size_t i) {
    uint32_t type = tokens.type(i);
    return type == TokenArray::endOfFile || type == ShdParser::COMMA ||
           type == ShdParser::RBRACE;
  };
  // Letters and signs that stand together make one pattern.
  for (size_t i = equals + 1; i <= token && !ends(i); ++i) {
    size_t begin = i;
    bool isBare = isPattern(i);
    for (; !ends(i + 1) && tokens.range(i).End == tokens.range(i + 1).Start;
         ++i)
      isBare |= isPattern(i + 1);
    if (isBare) {
      llvm::SMRange range = join(tokens.range(begin), tokens.range(i));
      StringRef text(range.Start.getPointer(),
                     range.End.getPointer() - range.Start.getPointer());
      files.error(range)
              .append("expected a pattern in quotes, found ", quoted(text))
              .attachNote()
          << "write `frozen = \"" << text << "\"`";
      return true;
    }
    if (tokens.type(i + 1) == ShdParser::COMMA)
      ++i;
  }
  return false;
}

/// True of a token at most four behind a comma between the settings of a
/// block.
bool TextParser::isBehindComma(size_t token) const {
  constexpr size_t kFurthest = 4;
  uint32_t item = tokens.type(position);
  if (item != ShdParser::TRAIN && item != ShdParser::SERVE)
    return false;
  int depth = 0;
  std::optional<size_t> comma;
  for (size_t i = position; i <= token; ++i) {
    uint32_t type = tokens.type(i);
    depth += type == ShdParser::LPAREN || type == ShdParser::LBRACKET;
    depth -= type == ShdParser::RPAREN || type == ShdParser::RBRACKET;
    if (type == ShdParser::COMMA && depth == 0)
      comma = i;
  }
  return comma && token - *comma <= kFurthest;
}

/// What other languages write, and this one does otherwise.
void TextParser::noteHabit(mlir::InFlightDiagnostic &diagnostic, size_t token) {
  if (token == 0)
    return;
  uint32_t type = tokens.type(token), before = tokens.type(token - 1);
  if (type == ShdParser::AT &&
      (isName(before) || before == ShdParser::RBRACKET))
    diagnostic.attachNote()
        << "`*` multiplies matrices, too: `x[B, D] * W[D, F]` sums over D "
           "where the left side lacks it";
  if (type == ShdParser::DOT && isName(before) &&
      tokens.range(token - 1).End == tokens.range(token).Start)
    diagnostic.attachNote() << "names have letters, digits and '_', no dots";
  if (type == ShdParser::RPAREN && before == ShdParser::LPAREN && token >= 4 &&
      tokens.text(token - 3) == "=")
    diagnostic.attachNote() << "where all has its default, write "
                            << spelled(token - 2) << " without parentheses";
  if (isBehindComma(token))
    diagnostic.attachNote()
        << "settings stand one after another, without commas";
}

/// Reports a token that no item begins with.
void TextParser::reportNoItem() {
  if (reportBadToken(position))
    return;
  if (isComparison(tokens.type(position)))
    files.error(tokens.range(position))
        << "comparisons do not chain; put one of them in parentheses";
  else if (tokens.startsLine(position))
    files.error(tokens.range(position))
        << "expected a declaration or a statement before " << spelled(position);
  else
    reportUnexpected(position);
}

/// Points at the bracket that is open at a token, if it is on another line.
void TextParser::noteOpenBracket(mlir::InFlightDiagnostic &diagnostic,
                                 size_t token) {
  llvm::SmallVector<size_t> open;
  for (size_t i = position; i < token; ++i) {
    switch (tokens.type(i)) {
    case ShdParser::LPAREN:
    case ShdParser::LBRACKET:
    case ShdParser::LBRACE:
      open.push_back(i);
      break;
    case ShdParser::RPAREN:
    case ShdParser::RBRACKET:
    case ShdParser::RBRACE:
      if (!open.empty())
        open.pop_back();
      break;
    }
  }
  if (open.empty())
    return;
  llvm::SMRange bracket = tokens.range(open.back());
  if (files.lineAndColumn(bracket.Start).first !=
      files.lineAndColumn(tokens.range(token - 1).Start).first)
    diagnostic.attachNote(files.location(bracket))
        << "to match this " << spelled(open.back());
}

//===----------------------------------------------------------------------===//
// Going on after an error
//===----------------------------------------------------------------------===//

/// The `{` of a layer or repeat whose head failed at `error`; 0 if none is
/// near.
size_t TextParser::bodyAfter(size_t error) const {
  for (size_t i = error;; ++i) {
    uint32_t type = tokens.type(i);
    if (type == ShdParser::LBRACE && tokens.type(i + 1) != ShdParser::PLUS)
      return i;
    if (type == TokenArray::endOfFile || type == ShdParser::RBRACE ||
        isItemKeyword(type) || (tokens.startsLine(i) && beginsStatement(i)))
      return 0;
  }
}

/// True at `layout "x"[B@X]`: a string follows the first word of no statement.
bool TextParser::beginsLayout(size_t token) const {
  return tokens.type(token) == ShdParser::ID &&
         ast::isLayoutWord(tokens.text(token)) &&
         tokens.type(token + 1) == ShdParser::STRING;
}

/// Whether a name stands here as the left side of a statement, or as the first
/// word of a layout.
bool TextParser::beginsStatement(size_t token) const {
  if (!isName(tokens.type(token)))
    return false;
  if (beginsLayout(token))
    return true;
  switch (tokens.type(token + 1)) {
  case ShdParser::ASSIGN:
  case ShdParser::ACCUMULATE:
  case ShdParser::LBRACKET:
  case ShdParser::COLON:
  case ShdParser::COMMA:
    return true;
  default:
    return false;
  }
}

/// Where parsing goes on after the item at `position` failed at `error`: at the
/// next declaration word, at a left side that begins a line outside brackets or
/// no further to the right than the item, or at the end of the block.
size_t TextParser::nextStatement(size_t error) const {
  unsigned column = tokens.column(position);
  unsigned braces = 0, brackets = 0;
  for (size_t i = position;; ++i) {
    uint32_t type = tokens.type(i);
    if (type == TokenArray::endOfFile)
      return i;
    if (i >= error && i > position) {
      bool startsLine = tokens.startsLine(i);
      if (isItemKeyword(type) && (braces == 0 || startsLine))
        return i;
      if (braces == 0 &&
          (type == ShdParser::RBRACE ||
           (startsLine && (type == ShdParser::MESH || type == ShdParser::DIM ||
                           (beginsStatement(i) &&
                            (brackets == 0 || tokens.column(i) <= column))))))
        return i;
    }
    if (type == ShdParser::LBRACE)
      ++braces;
    else if (type == ShdParser::RBRACE)
      braces -= braces != 0;
    else if (type == ShdParser::LPAREN || type == ShdParser::LBRACKET)
      ++brackets;
    else if (type == ShdParser::RPAREN || type == ShdParser::RBRACKET)
      brackets -= brackets != 0;
  }
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

/// Whether a buffer can be lexed; reports why not.
bool isReadable(SourceFiles &files, StringRef text) {
  auto at = [](const char *where) {
    return llvm::SMLoc::getFromPointer(where);
  };
  if (text.size() >= UINT32_MAX) {
    files.error(at(text.begin())) << "the file is larger than 4 GiB";
    return false;
  }
  const auto *bytes = reinterpret_cast<const llvm::UTF8 *>(text.begin());
  const auto *end = reinterpret_cast<const llvm::UTF8 *>(text.end());
  if (llvm::isLegalUTF8String(&bytes, end))
    return true;
  files.error(at(reinterpret_cast<const char *>(bytes)))
      << "the text is not valid UTF-8";
  return false;
}

/// Runs `parse` on a parser of the text; no exception leaves.
template <typename Function>
auto parseText(SourceFiles &files, StringRef text, StringRef what,
               Function parse)
    -> decltype(parse(std::declval<TextParser &>())) {
  if (!isReadable(files, text))
    return {};
  try {
    TextParser parser(files, text, what);
    return parse(parser);
  } catch (const std::exception &e) {
    llvm::report_fatal_error(llvm::Twine("the parser failed: ") + e.what());
  }
}

/// A name for the text of an option: that of the option, numbered if it is
/// given again, because diagnostics find their buffer by its name.
std::string bufferName(const llvm::SourceMgr &sourceMgr, StringRef option) {
  unsigned number = 1;
  for (unsigned id = 1; id <= sourceMgr.getNumBuffers(); ++id)
    number += sourceMgr.getMemoryBuffer(id)->getBufferIdentifier().starts_with(
        option);
  return number == 1 ? option.str()
                     : (option + " #" + llvm::Twine(number)).str();
}

/// Parses the text of an option with one rule.
template <typename Context>
auto parseOption(SourceFiles &files, StringRef option, StringRef text,
                 Context *(ShdParser::*rule)()) {
  using Result =
      decltype(std::declval<AstBuilder &>().build((Context *)nullptr));
  using MaybeResult = std::conditional_t<std::is_same_v<Result, ast::DimDef>,
                                         std::optional<Result>, Result>;
  llvm::SourceMgr &sourceMgr = files.getSourceMgr();
  unsigned id = sourceMgr.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBufferCopy(text, bufferName(sourceMgr, option)),
      llvm::SMLoc());
  unsigned before = files.numErrors();
  return parseText(files, sourceMgr.getMemoryBuffer(id)->getBuffer(), "text",
                   [&](TextParser &parser) -> MaybeResult {
                     Context *context = parser.parseAll(rule);
                     if (!context)
                       return {};
                     MaybeResult result = parser.getBuilder().build(context);
                     if (files.numErrors() != before)
                       return {};
                     return result;
                   });
}

} // namespace

std::unique_ptr<ast::File> shardc::parseFile(SourceFiles &files,
                                             unsigned bufferId) {
  return parseText(
      files, files.getSourceMgr().getMemoryBuffer(bufferId)->getBuffer(),
      "file", [](TextParser &parser) { return parser.parseItems(); });
}

std::unique_ptr<ast::File> shardc::parseFile(llvm::SourceMgr &sourceMgr,
                                             unsigned bufferId,
                                             mlir::MLIRContext *context) {
  SourceFiles files(sourceMgr, context);
  std::unique_ptr<ast::File> file = parseFile(files, bufferId);
  return files.hadError() ? nullptr : std::move(file);
}

std::unique_ptr<ast::HardwareDecl>
shardc::parseHardwareOverride(SourceFiles &files, StringRef text) {
  return parseOption(files, "--hardware", text, &ShdParser::hardwareSpec);
}

std::unique_ptr<ast::MeshDecl> shardc::parseMeshOverride(SourceFiles &files,
                                                         StringRef text) {
  return parseOption(files, "--mesh", text, &ShdParser::meshSpec);
}

std::optional<ast::DimDef> shardc::parseDimOverride(SourceFiles &files,
                                                    StringRef text) {
  return parseOption(files, "--dim", text, &ShdParser::dimDef);
}

std::unique_ptr<ast::Question>
shardc::parseQuestion(SourceFiles &files, StringRef option, StringRef text) {
  return parseOption(files, option, text, &ShdParser::question);
}
