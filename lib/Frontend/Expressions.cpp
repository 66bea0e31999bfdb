//===- Expressions.cpp - From expressions to sums of products -------------===//
//
// Leaves (references and calls) are evaluated first; what sums and products do
// with them is arranged on a tree of terms and factors and then lowered
// (Products.cpp).
//
//===----------------------------------------------------------------------===//

#include "Importer.h"
#include <cmath>

using namespace shardc;
using ast::Expr;
using mlir::Type;
using Kind = Expr::Kind;

static const Expr &stripParens(const Expr &expr) {
  const Expr *inner = &expr;
  while (inner->kind == Kind::Paren)
    inner = inner->operands[0].get();
  return *inner;
}

static std::optional<Scalar> literal(const Expr &expr) {
  switch (expr.kind) {
  case Kind::Integer:
    return Scalar::get(expr.integer);
  case Kind::Real:
    return Scalar::getReal(expr.real);
  case Kind::Infinity:
    return Scalar::getReal(std::numeric_limits<double>::infinity());
  default:
    return std::nullopt;
  }
}

static Operand numberOperand(const Scalar &scalar, llvm::SMRange range) {
  Operand operand;
  operand.number = scalar;
  operand.range = range;
  return operand;
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

Operand Importer::evaluate(const Expr &expr, const Context &context,
                           const Target *hint) {
  return lowerSum(buildTerms(expr, context, hint), context, {}, 0, hint);
}

Context Importer::argumentContext(const Context &context,
                                  IndexNamesRef brackets) {
  Context argument = context;
  // Without brackets on the left nothing is summed, in arguments neither.
  if (context.mode == SumMode::Left)
    argument.mode = SumMode::Argument;
  addNames(argument.named, brackets);
  return argument;
}

Operand Importer::evaluateArgument(const Expr &expr, const Context &context) {
  return evaluate(expr, argumentContext(context));
}

Operand Importer::evaluateLeaf(const Expr &expr, const Context &context,
                               const Target *hint) {
  if (auto number = literal(expr))
    return numberOperand(*number, expr.range);
  switch (expr.kind) {
  case Kind::Ref:
    return evaluateReference(expr, context);
  case Kind::Call:
    return evaluateCall(expr, context, hint);
  case Kind::Rem:
    return evaluateRemainder(expr, context, hint);
  case Kind::True:
  case Kind::False:
  case Kind::None:
  case Kind::Type:
    files.error(expr.range)
        << "true, false, none and element types are allowed only as options "
           "of functions";
    return {};
  default:
    return evaluateComparison(expr, context, hint);
  }
}

static shd::Function comparison(Kind kind) {
  switch (kind) {
  case Kind::Eq:
    return shd::Function::Eq;
  case Kind::Ne:
    return shd::Function::Ne;
  case Kind::Lt:
    return shd::Function::Lt;
  case Kind::Le:
    return shd::Function::Le;
  case Kind::Gt:
    return shd::Function::Gt;
  default:
    return shd::Function::Ge;
  }
}

Operand Importer::evaluateComparison(const Expr &expr, const Context &context,
                                     const Target *hint) {
  Operand a = evaluateArgument(*expr.operands[0], context);
  Operand b = evaluateArgument(*expr.operands[1], context);
  if (a.isPoison() || b.isPoison())
    return {};
  auto type = commonOperandType({&a, &b}, expr.range);
  if (!type || !checkPlacements({&a, &b}, "comparison"))
    return {};
  IndexNames result = a.indices;
  addNames(result, b.indices);
  return emitElementwise(comparison(expr.kind), {&a, &b},
                         arrange(result, hint, true), builder.getI1Type(),
                         expr.range);
}

/// The divisor is a number: an extent in most programs, which stays one where
/// extents are made small.
Operand Importer::evaluateRemainder(const Expr &expr, const Context &context,
                                    const Target *hint) {
  Operand value = evaluateArgument(*expr.operands[0], context);
  std::optional<Scalar> number = evaluateConstant(*expr.operands[1]);
  if (value.isPoison() || !number)
    return {};
  std::optional<int64_t> divisor = number->asInteger();
  if (divisor.value_or(0) < 1) {
    files.error(expr.operands[1]->range)
        << "'%' expects an integer of at least 1 as divisor, found "
        << toString(*number);
    return {};
  }
  if (value.number) {
    std::optional<int64_t> whole = value.number->asInteger();
    if (whole)
      return numberOperand(
          Scalar::get((*whole % *divisor + *divisor) % *divisor), expr.range);
    files.error(value.range)
        << "'%' expects integers, found " << toString(*value.number);
    return {};
  }
  Type type = isInteger(value.elementType()) ? value.elementType() : i32();
  Operand constant = emitConstant(*number, type, expr.range);
  if (constant.isPoison() || !checkPlacements({&value}, "remainder"))
    return {};
  constant.value.getDefiningOp()->setAttr(shd::kExtent, builder.getUnitAttr());
  return emitElementwise(shd::Function::Rem, {&value, &constant},
                         arrange(value.indices, hint, true),
                         value.elementType(), expr.range);
}

std::optional<Scalar> Importer::evaluateConstant(const Expr &expr, bool *none) {
  const Expr &inner = stripParens(expr);
  if (none)
    *none =
        inner.kind == Kind::None ||
        (inner.kind == Kind::Ref && !inner.indices && dims->isNone(inner.name));
  if (none && *none)
    return std::nullopt;
  Context context;
  context.isPosition = true;
  unsigned errors = files.numErrors();
  Operand value = evaluate(expr, context);
  if (!value.number && files.numErrors() == errors && !value.isPoison())
    files.error(expr.range) << "expected a compile-time constant";
  return value.number;
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

std::vector<Term> Importer::buildTerms(const Expr &root, const Context &context,
                                       const Target *hint) {
  std::vector<Term> terms;
  llvm::SmallVector<std::pair<const Expr *, bool>> work{{&root, false}};
  bool alone = true;
  while (!work.empty()) {
    auto [expr, negative] = work.pop_back_val();
    switch (expr->kind) {
    case Kind::Paren:
      work.push_back({expr->operands[0].get(), negative});
      continue;
    case Kind::Negate:
      alone = false;
      work.push_back({expr->operands[0].get(), !negative});
      continue;
    case Kind::Add:
    case Kind::Sub:
      alone = false;
      work.push_back(
          {expr->operands[1].get(), negative != (expr->kind == Kind::Sub)});
      work.push_back({expr->operands[0].get(), negative});
      continue;
    default:
      break;
    }
    Term term;
    term.negative = negative;
    term.product =
        buildProduct(*expr, context, term.negative, alone ? hint : nullptr);
    terms.push_back(std::move(term));
  }
  return terms;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Product Importer::buildProduct(const Expr &root, const Context &context,
                               bool &negative, const Target *hint) {
  Product product;
  product.range = root.range;
  struct Item {
    const Expr *expr;
    bool inverse;
  };
  llvm::SmallVector<Item> work{{&root, false}};
  bool alone = root.kind != Kind::Mul && root.kind != Kind::Div;
  while (!work.empty()) {
    auto [expr, inverse] = work.pop_back_val();
    if (inverse) {
      addLeaf(evaluateArgument(*expr, context), product, true);
    } else if (expr->kind == Kind::Mul || expr->kind == Kind::Div) {
      work.push_back({expr->operands[1].get(), expr->kind == Kind::Div});
      work.push_back({expr->operands[0].get(), false});
    } else {
      addFactor(*expr, context, product, negative, alone ? hint : nullptr);
    }
  }
  return product;
}

void Importer::addFactor(const Expr &expr, const Context &context,
                         Product &product, bool &negative, const Target *hint) {
  const Expr *inner = &expr;
  while (inner->kind == Kind::Negate || inner->kind == Kind::Paren) {
    negative ^= inner->kind == Kind::Negate;
    inner = inner->operands[0].get();
  }
  switch (inner->kind) {
  case Kind::Mul:
  case Kind::Div:
    return addGroup(*inner, context, product, negative);
  case Kind::Add:
  case Kind::Sub:
    return addSum(*inner, context, product);
  default:
    return addLeaf(evaluateLeaf(*inner, context, hint), product, false);
  }
}

void Importer::addLeaf(Operand leaf, Product &product, bool inverse) {
  if (leaf.number) {
    Scalar &scalar = inverse ? product.divisor : product.coefficient;
    scalar = scalar * *leaf.number;
    return;
  }
  auto node = std::make_unique<Node>();
  node->leaf = std::move(leaf);
  product.factors.push_back({std::move(node), inverse});
}

void Importer::addGroup(const Expr &inner, const Context &context,
                        Product &product, bool &negative) {
  Product group = buildProduct(inner, context, negative, nullptr);
  product.coefficient = product.coefficient * group.coefficient;
  product.divisor = product.divisor * group.divisor;
  group.coefficient = group.divisor = Scalar::get(1);
  product.addGroup(std::move(group));
}

void Importer::addSum(const Expr &inner, const Context &context,
                      Product &product) {
  std::vector<Term> terms = buildTerms(inner, context, nullptr);
  if (auto number = constantSum(terms)) {
    product.coefficient = product.coefficient * *number;
    return;
  }
  auto node = std::make_unique<Node>();
  node->kind = Node::Kind::Sum;
  node->terms = std::move(terms);
  product.factors.push_back({std::move(node), false});
}
