//===- AstBuilder.cpp - From ANTLR's parse trees to the AST ---------------===//
//
// Operator chains are built in loops; recursion follows brackets only, whose
// depth the token array limits.
//
//===----------------------------------------------------------------------===//

#include "AstBuilder.h"
#include "llvm/ADT/Twine.h"
#include <cmath>

using namespace shardc;
using grammar::ShdParser;
using llvm::SMRange;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Text, names and numbers
//===----------------------------------------------------------------------===//

SMRange AstBuilder::range(antlr4::Token *token) {
  return {
      llvm::SMLoc::getFromPointer(buffer.data() + token->getStartIndex()),
      llvm::SMLoc::getFromPointer(buffer.data() + token->getStopIndex() + 1)};
}

SMRange AstBuilder::range(antlr4::ParserRuleContext *context) {
  return join(range(context->start), range(context->stop));
}

StringRef AstBuilder::text(SMRange range) {
  return StringRef(range.Start.getPointer(),
                   range.End.getPointer() - range.Start.getPointer());
}

ast::Name AstBuilder::name(antlr4::tree::TerminalNode *node) {
  SMRange where = range(node->getSymbol());
  return {text(where).str(), where};
}

ast::Name AstBuilder::name(Parser::NameContext *context) {
  SMRange where = range(context->start);
  return {text(where).str(), where};
}

std::vector<ast::Name>
AstBuilder::names(const std::vector<Parser::NameContext *> &list) {
  std::vector<ast::Name> result;
  result.reserve(list.size());
  for (Parser::NameContext *each : list)
    result.push_back(name(each));
  return result;
}

static std::string withoutSeparators(StringRef digits) {
  std::string result = digits.str();
  llvm::erase(result, '_');
  return result;
}

int64_t AstBuilder::integer(SMRange range) {
  std::string digits = withoutSeparators(text(range));
  bool hex = StringRef(digits).starts_with("0x");
  int64_t result = 0;
  if (StringRef(digits)
          .drop_front(hex ? 2 : 0)
          .getAsInteger(hex ? 16 : 10, result)) {
    files.error(range) << "integer does not fit in 64 bits";
    return 1;
  }
  return result;
}

int64_t AstBuilder::integer(Parser::IntegerContext *context) {
  return integer(range(context));
}

double AstBuilder::real(SMRange range) {
  double result = 0;
  if (StringRef(withoutSeparators(text(range))).getAsDouble(result) ||
      !std::isfinite(result)) {
    files.error(range) << "number is too large";
    return 1;
  }
  return result;
}

template <typename T>
AstBuilder::Tree<T> AstBuilder::combine(typename T::Kind kind, SMRange range,
                                        Tree<T> first, Tree<T> second) {
  unsigned height = std::max(first.height, second.height) + 1;
  if (height > maxHeight) {
    if (!reportedHeight)
      files.error(range) << "expression is too long (more than " << maxHeight
                         << " operations); give parts of it names";
    reportedHeight = true;
    return first;
  }
  auto root = std::make_unique<T>();
  root->kind = kind;
  root->range = range;
  root->operands.push_back(std::move(first.root));
  if (second.root)
    root->operands.push_back(std::move(second.root));
  return {std::move(root), height};
}

//===----------------------------------------------------------------------===//
// Dims arithmetic
//===----------------------------------------------------------------------===//

ast::DimExprPtr AstBuilder::extent(Parser::DimExprContext *context) {
  return dimExpr(context).root;
}

AstBuilder::DimTree AstBuilder::dimExpr(Parser::DimExprContext *context) {
  DimTree result = dimTerm(context->terms.front());
  for (size_t i = 0; i < context->ops.size(); ++i) {
    auto kind = context->ops[i]->getType() == ShdParser::PLUS
                    ? ast::DimExpr::Kind::Add
                    : ast::DimExpr::Kind::Sub;
    DimTree term = dimTerm(context->terms[i + 1]);
    SMRange where = join(result.root->range, term.root->range);
    result = combine(kind, where, std::move(result), std::move(term));
  }
  return result;
}

AstBuilder::DimTree AstBuilder::dimTerm(Parser::DimTermContext *context) {
  DimTree result = dimUnary(context->factors.front());
  for (size_t i = 0; i < context->ops.size(); ++i) {
    size_t op = context->ops[i]->getType();
    auto kind = op == ShdParser::STAR    ? ast::DimExpr::Kind::Mul
                : op == ShdParser::SLASH ? ast::DimExpr::Kind::Div
                                         : ast::DimExpr::Kind::Rem;
    DimTree factor = dimUnary(context->factors[i + 1]);
    SMRange where = join(result.root->range, factor.root->range);
    result = combine(kind, where, std::move(result), std::move(factor));
  }
  return result;
}

AstBuilder::DimTree AstBuilder::dimUnary(Parser::DimUnaryContext *context) {
  DimTree result = dimPrimary(context->dimPrimary());
  for (antlr4::Token *minus : llvm::reverse(context->minuses)) {
    SMRange where = join(range(minus), result.root->range);
    result = combine(ast::DimExpr::Kind::Negate, where, std::move(result));
  }
  return result;
}

AstBuilder::DimTree AstBuilder::dimPrimary(Parser::DimPrimaryContext *context) {
  Parser::NameContext *named = context->name();
  if (!named && !context->integer()) // parentheses
    return dimExpr(context->operands.front());
  DimTree result{std::make_unique<ast::DimExpr>()};
  result.root->range = range(context);
  if (!named) {
    result.root->integer = integer(context->integer());
    return result;
  }
  result.root->kind =
      context->call ? ast::DimExpr::Kind::Call : ast::DimExpr::Kind::Name;
  result.root->name = name(named).text;
  for (Parser::DimExprContext *each : context->operands) {
    DimTree operand = dimExpr(each);
    result.height = std::max(result.height, operand.height + 1);
    result.root->operands.push_back(std::move(operand.root));
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Placements and declarations' dims
//===----------------------------------------------------------------------===//

std::optional<ast::Placement>
AstBuilder::placement(Parser::PlacementContext *context) {
  if (!context)
    return std::nullopt;
  return ast::Placement{range(context), context->open != nullptr,
                        names(context->axes)};
}

std::optional<ast::Partial>
AstBuilder::partial(Parser::PartialContext *context) {
  if (!context)
    return std::nullopt;
  return ast::Partial{range(context), names(context->axes)};
}

/// `isGradient`: only gradients are stored as partial sums.
ast::IndexList AstBuilder::dims(Parser::DimsContext *context,
                                bool mayBePartial) {
  ast::IndexList result;
  result.range = range(context);
  for (Parser::PlacedNameContext *each : context->names) {
    ast::Index &index = result.indices.emplace_back();
    ast::Name indexName = name(each->name());
    index.range = indexName.range;
    index.name = std::move(indexName.text);
    index.placement = placement(each->placement());
  }
  Parser::PartialContext *sum = context->partial();
  if (sum && !mayBePartial)
    files.error(range(sum)) << "a partial sum stands only on the left of a "
                               "statement and at a use, not in a declaration";
  else if (sum)
    result.partial = partial(sum);
  return result;
}

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

ast::ItemPtr AstBuilder::build(Parser::ImportDeclContext *context) {
  auto result = std::make_unique<ast::ImportDecl>();
  result->range = range(context);
  result->pathRange = range(context->path);
  result->path = text(result->pathRange).drop_front().drop_back().str();
  return result;
}

ast::ItemPtr AstBuilder::build(Parser::HardwareDeclContext *context) {
  auto result = build(context->hardwareSpec());
  result->range = range(context);
  return result;
}

std::unique_ptr<ast::HardwareDecl>
AstBuilder::build(Parser::HardwareSpecContext *context) {
  auto result = std::make_unique<ast::HardwareDecl>();
  result->range = range(context);
  result->name = name(context->name());
  if (Parser::HwShapeContext *shape = context->hwShape()) {
    result->hasShape = true;
    for (Parser::DimExprContext *each : shape->extents)
      result->shape.push_back(extent(each));
  }
  if (Parser::HwBodyContext *body = context->hwBody()) {
    result->hasBody = true;
    for (Parser::HwItemContext *item : body->items) {
      if (Parser::HwFieldContext *each = item->hwField())
        result->fields.push_back(field(each));
      else if (Parser::CalibrationContext *each = item->calibration())
        result->calibrations.push_back(calibration(each));
      else
        result->networks.push_back(network(item->network()));
    }
  }
  return result;
}

ast::HardwareFieldDecl AstBuilder::field(Parser::HwFieldContext *context) {
  SMRange dotted = range(context->dotted());
  return {{text(dotted).str(), dotted}, value(context->hwValue())};
}

ast::HardwareValue AstBuilder::value(Parser::HwValueContext *context) {
  ast::HardwareValue result;
  result.range = range(context);
  if (Parser::QuantityContext *quantity = context->quantity()) {
    SMRange digits = range(quantity->number());
    result.number = quantity->number()->REAL()
                        ? real(digits)
                        : static_cast<double>(integer(digits));
    if (Parser::UnitContext *unit = quantity->unit())
      for (Parser::NameContext *part : unit->name())
        result.unit += (result.unit.empty() ? "" : "/") + name(part).text;
    return result;
  }
  const std::vector<Parser::IntegerContext *> *numbers = nullptr;
  if (Parser::WordContext *word = context->word()) {
    result.kind = ast::HardwareValue::Kind::Word;
    result.word = text(range(word->wordName())).str();
    numbers = &word->arguments;
  } else {
    result.kind = ast::HardwareValue::Kind::List;
    numbers = &context->hwList()->numbers;
  }
  for (Parser::IntegerContext *each : *numbers)
    result.list.push_back(integer(each));
  return result;
}

ast::NetworkDecl AstBuilder::network(Parser::NetworkContext *context) {
  ast::NetworkDecl result;
  result.name = name(context->name());
  if (context->kind)
    result.kind = text(range(context->kind)).str();
  if (Parser::NameListContext *members = context->nameList())
    result.members = names(members->names);
  for (Parser::HwFieldContext *each : context->fields)
    result.fields.push_back(field(each));
  return result;
}

ast::CalibrationDecl
AstBuilder::calibration(Parser::CalibrationContext *context) {
  ast::CalibrationDecl result;
  result.range = range(context->getStart());
  for (Parser::HwFieldContext *each : context->fields)
    result.fields.push_back(field(each));
  for (Parser::NetworkContext *each : context->networks)
    result.networks.push_back(network(each));
  return result;
}

ast::ItemPtr AstBuilder::build(Parser::MeshDeclContext *context) {
  auto result = build(context->meshSpec());
  result->range = range(context);
  return result;
}

std::unique_ptr<ast::MeshDecl>
AstBuilder::build(Parser::MeshSpecContext *context) {
  auto result = std::make_unique<ast::MeshDecl>();
  result->range = range(context);
  result->isAuto = context->AUTO() != nullptr;
  if (Parser::NameListContext *list = context->nameList())
    result->autoNames = names(list->names);
  for (Parser::MeshAxisContext *each : context->axes) {
    ast::MeshAxisDecl &axis = result->axes.emplace_back();
    axis.name = name(each->name());
    axis.size = extent(each->dimExpr());
    if (Parser::AxisNamesContext *on = each->axisNames())
      axis.on = names(on->names);
  }
  return result;
}

ast::ItemPtr AstBuilder::build(Parser::DimDeclContext *context) {
  auto result = std::make_unique<ast::DimDecl>();
  result->range = range(context);
  for (Parser::DimDefContext *each : context->defs)
    result->dims.push_back(build(each));
  return result;
}

ast::DimDef AstBuilder::build(Parser::DimDefContext *context) {
  reportedHeight = false;
  return {name(context->name()), extent(context->dimExpr())};
}

ast::ItemPtr AstBuilder::build(Parser::OrderDeclContext *context) {
  auto result = std::make_unique<ast::OrderDecl>();
  result->range = range(context);
  for (Parser::OrderDefContext *each : context->defs)
    result->orders.push_back({name(each->index), name(each->order)});
  return result;
}

ast::Question::Value AstBuilder::value(Parser::IntegerContext *context) {
  return {range(context), integer(context)};
}

std::unique_ptr<ast::Question>
AstBuilder::build(Parser::QuestionContext *context) {
  using Step = ast::Question::Step;
  auto result = std::make_unique<ast::Question>();
  result->range = range(context);
  if (context->what) {
    SMRange what = range(context->what);
    result->name = {text(what).str(), what};
    for (Parser::HardwareSpecContext *machine : context->machines)
      result->machines.push_back(build(machine));
    return result;
  }
  result->name = name(context->name());
  for (Parser::IntegerContext *each : context->values)
    result->values.push_back(value(each));
  if (context->high)
    result->last = value(context->high);
  if (context->op) {
    bool multiplies = context->op->getType() == ShdParser::STAR;
    result->step = multiplies ? Step::Multiply : Step::Add;
    result->by = value(context->step);
  }
  return result;
}

ast::ItemPtr AstBuilder::build(Parser::TensorDeclContext *context) {
  auto result = std::make_unique<ast::TensorDecl>();
  using Kind = ast::TensorDecl::TensorKind;
  result->range = range(context);
  size_t kind = context->kind->getType();
  result->tensorKind = kind == ShdParser::INPUT    ? Kind::Input
                       : kind == ShdParser::WEIGHT ? Kind::Weight
                                                   : Kind::State;
  result->name = name(context->name());
  result->type = name(context->TYPE());
  result->indices = dims(context->dims());
  return result;
}

ast::ItemPtr AstBuilder::build(Parser::OutputDeclContext *context) {
  auto result = std::make_unique<ast::OutputDecl>();
  result->range = range(context);
  result->name = name(context->name());
  if (Parser::DimsContext *list = context->dims())
    result->indices = dims(list);
  return result;
}

ast::Parameter AstBuilder::parameter(Parser::ParamContext *context) {
  ast::Parameter result;
  result.name = name(context->name());
  if (antlr4::tree::TerminalNode *type = context->TYPE()) {
    result.type = name(type);
    result.indices = dims(context->dims());
  } else {
    result.isDim = true;
  }
  return result;
}

std::unique_ptr<ast::LayerDecl>
AstBuilder::build(Parser::LayerHeadContext *context) {
  auto result = std::make_unique<ast::LayerDecl>();
  result->range = range(context);
  result->name = name(context->own);
  for (Parser::ParamContext *each : context->params)
    result->parameters.push_back(parameter(each));
  result->results = names(context->results);
  return result;
}

std::unique_ptr<ast::RepeatStmt>
AstBuilder::build(Parser::RepeatHeadContext *context) {
  auto result = std::make_unique<ast::RepeatStmt>();
  result->range = range(context);
  result->index = name(context->own);
  result->placement = placement(context->placement());
  if (context->dimExpr())
    result->microbatches = extent(context->dimExpr());
  if (Parser::SettingValueContext *order = context->settingValue()) {
    result->schedule = {text(range(order)).str(), range(order)};
    llvm::erase_if(result->schedule->text, [](char c) { return c == ' '; });
  }
  result->hasSave = context->save != nullptr;
  result->save = names(context->saved);
  return result;
}

//===----------------------------------------------------------------------===//
// Training and serving
//===----------------------------------------------------------------------===//

ast::SettingValue AstBuilder::settingValue(antlr4::ParserRuleContext *context,
                                           Parser::DimExprContext *number) {
  ast::SettingValue result;
  result.range = range(context);
  result.text = text(result.range).str();
  if (number)
    result.number = extent(number);
  return result;
}

ast::SettingValue
AstBuilder::settingValue(Parser::SettingValueContext *context) {
  ast::SettingValue result = settingValue(context, context->dimExpr());
  if (!context->namedValue().empty())
    result.function = name(context->name()).text;
  for (Parser::NamedValueContext *each : context->namedValue()) {
    ast::SettingValue value = settingValue(each, each->dimExpr());
    ast::Name key = name(each->name());
    // What stands behind the `=`.
    value.text = StringRef(value.text).split('=').second.trim().str();
    result.arguments.push_back({key, std::move(value)});
  }
  return result;
}

ast::Setting
AstBuilder::setting(Parser::NameContext *key,
                    const std::vector<Parser::SettingValueContext *> &values) {
  ast::Setting result{name(key), {}};
  for (Parser::SettingValueContext *value : values)
    result.values.push_back(settingValue(value));
  return result;
}

ast::PlacedTensor AstBuilder::placed(Parser::PlacedTensorContext *context,
                                     bool mayBePartial) {
  ast::PlacedTensor result;
  if (antlr4::tree::TerminalNode *quoted = context->STRING()) {
    result.name = name(quoted);
    result.name.text =
        StringRef(result.name.text).drop_front().drop_back().str();
    result.isQuoted = true;
  } else {
    result.name = name(context->name());
  }
  Parser::DimsContext *made = nullptr;
  for (Parser::DimsContext *each : context->dims())
    if (each != context->stored)
      made = each;
  if (made)
    result.indices = dims(made, mayBePartial);
  if (context->stored)
    result.stored = dims(context->stored, mayBePartial);
  return result;
}

ast::StepLayout AstBuilder::layout(Parser::PlacingContext *context) {
  ast::StepLayout result{range(context), name(context->key), {}, {}};
  bool mayBePartial =
      ast::isLayoutWord(result.what.text) || result.what.text == "gradient";
  for (Parser::PlacedTensorContext *each : context->placed)
    result.results.push_back(placed(each, mayBePartial));
  for (Parser::PlacedTensorContext *each : context->operands)
    result.operands.push_back(placed(each, mayBePartial));
  return result;
}

ast::ItemPtr AstBuilder::build(Parser::PlacingContext *context) {
  auto result = std::make_unique<ast::LayoutDecl>();
  result->range = range(context);
  result->layout = layout(context);
  return result;
}

/// Placings of single tensors, or how one operation runs.
void AstBuilder::addPlaced(Parser::PlacingContext *context,
                           ast::TrainBlock &block) {
  ast::StepLayout layout = this->layout(context);
  if (ast::isLayoutWord(layout.what.text)) {
    block.layouts.push_back(std::move(layout));
    return;
  }
  if (!layout.operands.empty())
    files.error(layout.operands.front().name.range)
        << "only `layout` says how an operation reads its operands";
  for (ast::PlacedTensor &tensor : layout.results) {
    if (tensor.stored)
      files.error(tensor.stored->range)
          << "only `layout` says how a value is made and how it is stored";
    block.placings.push_back({layout.what, std::move(tensor)});
  }
}

ast::ItemPtr AstBuilder::build(Parser::TrainBlockContext *context) {
  auto result = std::make_unique<ast::TrainBlock>();
  result->range = range(context);
  for (Parser::TrainItemContext *item : context->items) {
    if (Parser::PlacingContext *placing = item->placing())
      addPlaced(placing, *result);
    else
      result->settings.push_back(setting(item->key, item->settingValue()));
  }
  return result;
}

ast::ItemPtr AstBuilder::build(Parser::ServeBlockContext *context) {
  auto result = std::make_unique<ast::ServeBlock>();
  result->range = range(context);
  for (Parser::SettingContext *each : context->settings)
    result->settings.push_back(setting(each->name(), {each->settingValue()}));
  for (Parser::PhaseMachineContext *each : context->machines) {
    ast::PhaseMachine &machine = result->machines.emplace_back();
    machine.range = range(each);
    machine.phase = name(each->phase);
    machine.hardware = build(each->hardwareSpec());
    if (Parser::MeshSpecContext *mesh = each->meshSpec())
      machine.mesh = build(mesh);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

ast::Target AstBuilder::target(Parser::TargetContext *context) {
  ast::Target result;
  result.name = name(context->name());
  unsigned height = 0;
  if (Parser::BracketsContext *brackets = context->brackets())
    result.indices = indexList(brackets, context->partial(), height);
  return result;
}

ast::ItemPtr AstBuilder::build(Parser::AssignStmtContext *context) {
  reportedHeight = false;
  auto result = std::make_unique<ast::AssignStmt>();
  result->range = range(context);
  result->accumulate = context->op->getType() == ShdParser::ACCUMULATE;
  ast::Target first = target(context->first);
  if (antlr4::tree::TerminalNode *type = context->TYPE()) {
    result->type = name(type);
    if (first.indices)
      files.error(range(type->getSymbol()))
          << "the element type stands before the brackets, as in '"
          << first.name.text << ": " << result->type->text << "[...]'";
    unsigned height = 0;
    if (Parser::BracketsContext *brackets = context->brackets())
      first.indices = indexList(brackets, context->partial(), height);
    if (!context->others.empty())
      files.error(result->type->range)
          << "an element type needs a left side of one name";
    else if (result->accumulate)
      files.error(range(context->op))
          << "'+=' keeps the element type of '" << first.name.text
          << "', so none may be written";
  }
  result->targets.push_back(std::move(first));
  for (Parser::TargetContext *each : context->others)
    result->targets.push_back(target(each));
  if (result->accumulate && !context->others.empty())
    files.error(range(context->op)) << "'+=' needs a left side of one name";
  result->value = expr(context->expr()).root;
  return result;
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

AstBuilder::ExprTree AstBuilder::expr(Parser::ExprContext *context) {
  ExprTree left = sumExpr(context->left);
  if (!context->op)
    return left;
  using Kind = ast::Expr::Kind;
  auto kind = [&] {
    switch (context->op->getType()) {
    case ShdParser::EQ:
      return Kind::Eq;
    case ShdParser::NE:
      return Kind::Ne;
    case ShdParser::LT:
      return Kind::Lt;
    case ShdParser::LE:
      return Kind::Le;
    case ShdParser::GT:
      return Kind::Gt;
    default:
      return Kind::Ge;
    }
  }();
  return combine(kind, range(context), std::move(left),
                 sumExpr(context->right));
}

AstBuilder::ExprTree AstBuilder::sumExpr(Parser::SumExprContext *context) {
  ExprTree result = product(context->terms.front());
  for (size_t i = 0; i < context->ops.size(); ++i) {
    auto kind = context->ops[i]->getType() == ShdParser::PLUS
                    ? ast::Expr::Kind::Add
                    : ast::Expr::Kind::Sub;
    ExprTree term = product(context->terms[i + 1]);
    SMRange where = join(result.root->range, term.root->range);
    result = combine(kind, where, std::move(result), std::move(term));
  }
  return result;
}

AstBuilder::ExprTree AstBuilder::product(Parser::ProductContext *context) {
  ExprTree result = unary(context->factors.front());
  for (size_t i = 0; i < context->ops.size(); ++i) {
    size_t op = context->ops[i]->getType();
    auto kind = op == ShdParser::STAR    ? ast::Expr::Kind::Mul
                : op == ShdParser::SLASH ? ast::Expr::Kind::Div
                                         : ast::Expr::Kind::Rem;
    ExprTree factor = unary(context->factors[i + 1]);
    SMRange where = join(result.root->range, factor.root->range);
    result = combine(kind, where, std::move(result), std::move(factor));
  }
  return result;
}

AstBuilder::ExprTree AstBuilder::unary(Parser::UnaryContext *context) {
  ExprTree result = primary(context->primary());
  for (antlr4::Token *minus : llvm::reverse(context->minuses)) {
    SMRange where = join(range(minus), result.root->range);
    result = combine(ast::Expr::Kind::Negate, where, std::move(result));
  }
  return result;
}

AstBuilder::ExprTree AstBuilder::primary(Parser::PrimaryContext *context) {
  if (Parser::ReferenceContext *each = context->reference())
    return reference(each);
  if (Parser::NumberContext *each = context->number())
    return number(each);
  if (Parser::ExprContext *inner = context->expr())
    return combine(ast::Expr::Kind::Paren, range(context), expr(inner));
  if (Parser::CastContext *cast = context->cast())
    return call(name(cast->TYPE()), nullptr, cast->callArguments());
  if (Parser::BuiltinContext *builtin = context->builtin()) {
    SMRange word = range(builtin->kind);
    return call({text(word).str(), word}, builtin->brackets(), nullptr);
  }
  ExprTree result{std::make_unique<ast::Expr>()};
  result.root->kind = ast::Expr::Kind::Infinity;
  result.root->range = range(context);
  return result;
}

AstBuilder::ExprTree AstBuilder::number(Parser::NumberContext *context) {
  ExprTree result{std::make_unique<ast::Expr>()};
  result.root->range = range(context);
  if (context->REAL()) {
    result.root->kind = ast::Expr::Kind::Real;
    result.root->real = real(result.root->range);
  } else {
    result.root->kind = ast::Expr::Kind::Integer;
    result.root->integer = integer(result.root->range);
  }
  return result;
}

AstBuilder::ExprTree AstBuilder::reference(Parser::ReferenceContext *context) {
  if (Parser::CallArgumentsContext *arguments = context->callArguments())
    return call(name(context->name()), context->brackets(), arguments);
  ExprTree result{std::make_unique<ast::Expr>()};
  ast::Name callee = name(context->name());
  result.root->kind = ast::Expr::Kind::Ref;
  result.root->range = range(context);
  result.root->name = std::move(callee.text);
  result.root->nameRange = callee.range;
  if (Parser::BracketsContext *brackets = context->brackets())
    result.root->indices =
        indexList(brackets, context->partial(), result.height);
  return result;
}

AstBuilder::ExprTree AstBuilder::call(ast::Name name,
                                      Parser::BracketsContext *brackets,
                                      Parser::CallArgumentsContext *arguments) {
  ExprTree result{std::make_unique<ast::Expr>()};
  ast::Expr &root = *result.root;
  root.kind = ast::Expr::Kind::Call;
  root.name = std::move(name.text);
  root.nameRange = name.range;
  root.range = name.range;
  if (brackets) {
    root.hasFunctionIndices = true;
    root.functionIndices = functionIndices(brackets);
    root.range = join(root.range, range(brackets));
  }
  if (arguments) {
    for (Parser::ArgumentContext *each : arguments->arguments)
      result.height = std::max(result.height, argument(each, root) + 1);
    root.range = join(root.range, range(arguments));
  }
  return result;
}

unsigned AstBuilder::argument(Parser::ArgumentContext *context,
                              ast::Expr &call) {
  ast::Argument result;
  result.range = range(context);
  if (Parser::NameContext *named = context->name()) {
    ast::Name argumentName = name(named);
    result.name = std::move(argumentName.text);
    result.nameRange = argumentName.range;
  }
  ExprTree value = argumentValue(context->argumentValue());
  result.value = std::move(value.root);
  call.arguments.push_back(std::move(result));
  return value.height;
}

AstBuilder::ExprTree
AstBuilder::argumentValue(Parser::ArgumentValueContext *context) {
  if (Parser::ExprContext *value = context->expr())
    return expr(value);
  ExprTree result{std::make_unique<ast::Expr>()};
  result.root->range = range(context);
  if (!context->literal) {
    result.root->kind = ast::Expr::Kind::Type;
    result.root->name = text(result.root->range).str();
    result.root->nameRange = result.root->range;
    return result;
  }
  size_t literal = context->literal->getType();
  result.root->kind = literal == ShdParser::TRUE    ? ast::Expr::Kind::True
                      : literal == ShdParser::FALSE ? ast::Expr::Kind::False
                                                    : ast::Expr::Kind::None;
  return result;
}

//===----------------------------------------------------------------------===//
// Brackets
//===----------------------------------------------------------------------===//

ast::IndexList AstBuilder::indexList(Parser::BracketsContext *brackets,
                                     Parser::PartialContext *sum,
                                     unsigned &height) {
  ast::IndexList result;
  result.range = range(brackets);
  for (Parser::EntryContext *entry : brackets->entries)
    result.indices.push_back(index(entry, height));
  if ((result.partial = partial(sum)))
    result.range = join(result.range, result.partial->range);
  return result;
}

ast::Index AstBuilder::index(Parser::EntryContext *entry, unsigned &height) {
  ast::Index result;
  result.range = range(entry);
  if (entry->ARROW() || entry->COLON()) {
    files.error(result.range)
        << (entry->COLON() ? "a range" : "a regrouping with '->'")
        << " stands only in the brackets of a function";
    return result;
  }
  ExprTree value = sumExpr(entry->sumExpr());
  result.range = value.root->range;
  result.placement = placement(entry->placement());
  if (value.root->kind == ast::Expr::Kind::Ref && !value.root->indices) {
    result.name = std::move(value.root->name);
    return result;
  }
  height = std::max(height, value.height + 1);
  result.gather = std::move(value.root);
  return result;
}

std::vector<ast::FunctionIndex>
AstBuilder::functionIndices(Parser::BracketsContext *brackets) {
  std::vector<ast::FunctionIndex> result;
  for (Parser::EntryContext *entry : brackets->entries)
    result.push_back(functionIndex(entry));
  return result;
}

std::vector<ast::Name>
AstBuilder::group(const std::vector<Parser::PlacedNameContext *> &list,
                  std::optional<ast::Placement> &placed) {
  std::vector<ast::Name> result;
  for (Parser::PlacedNameContext *each : list) {
    result.push_back(name(each->name()));
    if (!placed)
      placed = placement(each->placement());
  }
  return result;
}

/// Appends the name that a function's index consists of; false if it is not
/// one.
bool AstBuilder::namesOf(const ast::Expr &expr,
                         std::vector<ast::Name> &result) {
  if (expr.kind == ast::Expr::Kind::Paren)
    return namesOf(*expr.operands.front(), result);
  if (expr.kind != ast::Expr::Kind::Ref || expr.indices)
    return false;
  result.push_back({expr.name, expr.nameRange});
  return true;
}

ast::FunctionIndex AstBuilder::functionIndex(Parser::EntryContext *entry) {
  using Kind = ast::FunctionIndex::Kind;
  ast::FunctionIndex result;
  result.range = range(entry);
  if (Parser::TupleContext *tuple = entry->tuple()) {
    result.from = group(tuple->names, result.placement);
  } else {
    ExprTree from = sumExpr(entry->sumExpr());
    if (!namesOf(*from.root, result.from))
      files.error(from.root->range)
          << "expected the name of an index in the brackets of a function";
    result.placement = placement(entry->placement());
  }
  if (Parser::GroupContext *to = entry->group())
    result.to = group(to->names, result.placement);
  if (entry->COLON()) {
    result.kind = Kind::Range;
    result.low = extent(entry->low);
    result.high = extent(entry->high);
    if (result.to.size() > 1 || result.from.size() > 1)
      files.error(result.range)
          << "a range has one index and gets one name, as "
             "in 'I: lo..hi -> J'";
  } else if (entry->ARROW()) {
    result.kind = Kind::Group;
  }
  return result;
}
