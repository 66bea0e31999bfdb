//===- Products.cpp - Sums of products to operations ----------------------===//
//
// Products sum, sums broadcast (docs/Language.md#6-statements-and-indices). A
// product of several factors becomes contractions of two, in the order of least
// FLOPs; an index is summed by the first contraction after which nothing else
// has it. A sum that is a factor is computed before the contraction where that
// means the same, and otherwise the product is multiplied out.
//
//===----------------------------------------------------------------------===//

#include "ContractionOrder.h"
#include "Importer.h"

using namespace shardc;
using mlir::StringAttr;
using mlir::Type;

/// Bounds the work on products of many sums with different indices.
static constexpr unsigned kMaxExpansions = 1000;

//===----------------------------------------------------------------------===//
// Trees
//===----------------------------------------------------------------------===//

void Product::addGroup(Product group) {
  bool divides = llvm::all_of(
      group.factors, [](const Factor &factor) { return factor.inverse; });
  if (divides || group.factors.size() == 1) {
    llvm::move(group.factors, std::back_inserter(factors));
    return;
  }
  auto node = std::make_unique<Node>();
  node->kind = Node::Kind::Group;
  node->group = std::move(group);
  factors.push_back({std::move(node), false});
}

/// The factors of a product, those inside of parenthesised products too.
static void flatten(const Product &product,
                    llvm::SmallVectorImpl<FlatFactor> &flat) {
  for (const Product::Factor &factor : product.factors)
    if (factor.node->kind == Node::Kind::Group)
      flatten(factor.node->group, flat);
    else
      flat.push_back({factor.node.get(), factor.inverse});
}

/// All indices that a factor may have.
static void addIndices(const Node &node, IndexNames &names);

static void addIndices(const Product &product, IndexNames &names) {
  for (const Product::Factor &factor : product.factors)
    addIndices(*factor.node, names);
}

static void addIndices(const Node &node, IndexNames &names) {
  switch (node.kind) {
  case Node::Kind::Leaf:
    return addNames(names, node.leaf.indices);
  case Node::Kind::Group:
    return addIndices(node.group, names);
  case Node::Kind::Sum:
    for (const Term &term : node.terms)
      addIndices(term.product, names);
  }
}

static bool isPoison(const Node &node) {
  auto poisoned = [](const Product &product) {
    return llvm::any_of(product.factors, [](const Product::Factor &factor) {
      return isPoison(*factor.node);
    });
  };
  switch (node.kind) {
  case Node::Kind::Leaf:
    return node.leaf.isPoison();
  case Node::Kind::Group:
    return poisoned(node.group);
  case Node::Kind::Sum:
    return llvm::any_of(
        node.terms, [&](const Term &term) { return poisoned(term.product); });
  }
  llvm_unreachable("unknown node");
}

/// A copy of `product` with the factors of `fill` in place of the node `hole`.
static Product clone(const Product &product, const Node *hole,
                     const Product *fill);

static std::unique_ptr<Node> clone(const Node &node, const Node *hole,
                                   const Product *fill) {
  auto copy = std::make_unique<Node>();
  copy->kind = node.kind;
  copy->leaf = node.leaf;
  copy->group = clone(node.group, hole, fill);
  for (const Term &term : node.terms)
    copy->terms.push_back({clone(term.product, hole, fill), term.negative});
  return copy;
}

static Product clone(const Product &product, const Node *hole,
                     const Product *fill) {
  Product copy;
  copy.coefficient = product.coefficient;
  copy.divisor = product.divisor;
  copy.range = product.range;
  for (const Product::Factor &factor : product.factors) {
    if (factor.node.get() == hole)
      llvm::move(clone(*fill, nullptr, nullptr).factors,
                 std::back_inserter(copy.factors));
    else if (factor.node->kind == Node::Kind::Group)
      copy.addGroup(clone(factor.node->group, hole, fill));
    else
      copy.factors.push_back({clone(*factor.node, hole, fill), factor.inverse});
  }
  return copy;
}

//===----------------------------------------------------------------------===//
// Sums as factors
//===----------------------------------------------------------------------===//

namespace {
/// How many factors carry an index, in each of the products that something
/// stands for once it is multiplied out: bit n is set if some product has n,
/// bit 2 also for more.
using Counts = uint8_t;
constexpr Counts kNone = 1, kOne = 2, kSeveral = 4;
} // namespace

/// The counts of products of one from `a` and one from `b`.
static Counts combine(Counts a, Counts b) {
  Counts result = 0;
  for (unsigned i = 0; i <= 2; ++i)
    for (unsigned k = 0; k <= 2; ++k)
      if ((a >> i & 1) && (b >> k & 1))
        result |= 1 << std::min(i + k, 2u);
  return result;
}

static Counts count(const Product &product, StringAttr index, SumMode mode);

static Counts count(const Node &node, StringAttr index, SumMode mode) {
  switch (node.kind) {
  case Node::Kind::Leaf:
    return contains(node.leaf.indices, index) ? kOne : kNone;
  case Node::Kind::Group:
    return count(node.group, index, mode);
  case Node::Kind::Sum:
    break;
  }
  Counts result = 0;
  for (const Term &term : node.terms)
    result |= count(term.product, index, mode);
  return result;
}

static Counts count(const Product &product, StringAttr index, SumMode mode) {
  Counts result = kNone;
  for (const Product::Factor &factor : product.factors)
    // A divisor is an argument: it does not count as a factor there.
    if (!factor.inverse || mode == SumMode::Left)
      result = combine(result, count(*factor.node, index, mode));
  return result;
}

/// The first sum that must be multiplied out because `index` is summed in some
/// of the resulting products and not, or differently, in others; or null.
static Node *findUneven(llvm::ArrayRef<FlatFactor> flat, StringAttr index,
                        SumMode mode) {
  Counts total = kNone;
  unsigned always = 0, sometimes = 0;
  Node *first = nullptr;
  for (const FlatFactor &factor : flat) {
    if (factor.inverse && mode == SumMode::Argument)
      continue;
    Counts counts = count(*factor.node, index, mode);
    total = combine(total, counts);
    always += (counts & kNone) == 0;
    sometimes += (counts & kNone) != 0 && counts != kNone;
    if (llvm::popcount(counts) > 1 && !first)
      first = factor.node;
  }
  // Left: a factor that always has it makes the sum one over the whole product;
  // one that alone has it sums by itself.
  bool uneven = mode == SumMode::Left
                    ? always == 0 && sometimes >= 2
                    : (total & kSeveral) != 0 && total != kSeveral;
  return uneven ? first : nullptr;
}

/// The product multiplied out by one of its sums, if that is the only way.
static std::optional<std::vector<Term>> expand(const Product &product,
                                               const Context &context,
                                               const IndexNames &outside) {
  if (context.mode == SumMode::Free)
    return std::nullopt;
  llvm::SmallVector<FlatFactor> flat;
  flatten(product, flat);
  IndexNames all;
  addIndices(product, all);
  for (StringAttr index : all) {
    if (contains(context.named, index) || contains(outside, index))
      continue;
    Node *sum = findUneven(flat, index, context.mode);
    if (!sum)
      continue;
    std::vector<Term> terms;
    for (const Term &term : sum->terms) {
      Product copy = clone(product, sum, &term.product);
      copy.coefficient = copy.coefficient * term.product.coefficient;
      copy.divisor = copy.divisor * term.product.divisor;
      terms.push_back({std::move(copy), term.negative});
    }
    return terms;
  }
  return std::nullopt;
}

/// Makes leaves of the sums among the factors. They keep the indices that
/// others need. False after an error.
bool Importer::lowerInnerSums(Product &product, const Context &context,
                              const IndexNames &outside,
                              unsigned outerFactors) {
  llvm::SmallVector<FlatFactor> flat;
  flatten(product, flat);
  for (const FlatFactor &factor : flat) {
    if (factor.node->kind != Node::Kind::Sum)
      continue;
    IndexNames around = outside;
    for (const FlatFactor &other : flat)
      if (other.node != factor.node)
        addIndices(*other.node, around);
    Operand sum = lowerSum(std::move(factor.node->terms), context, around,
                           outerFactors + flat.size() - 1, nullptr);
    if (sum.isPoison())
      return false;
    factor.node->kind = Node::Kind::Leaf;
    factor.node->leaf = std::move(sum);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Terms
//===----------------------------------------------------------------------===//

/// The element type that `hint` asks for, for results that are not the last.
static Target intermediate(const Target *hint) {
  Target target;
  if (hint)
    target.elementType = hint->elementType;
  target.widenOnly = true;
  return target;
}

IndexNames shardc::arrange(IndexNames names, const Target *hint,
                           bool broadcasts) {
  if (!hint || !hint->indices)
    return names;
  bool fits = llvm::all_of(
      names, [&](StringAttr name) { return contains(*hint->indices, name); });
  return fits && (broadcasts || names.size() == hint->indices->size())
             ? *hint->indices
             : names;
}

std::optional<Scalar> shardc::constantSum(llvm::ArrayRef<Term> terms) {
  Scalar sum = Scalar::get(0);
  for (const Term &term : terms) {
    if (!term.product.factors.empty())
      return std::nullopt;
    Scalar value = term.product.number();
    sum = sum + (term.negative ? -value : value);
  }
  return sum;
}

/// Makes one term, at the place of the first, of the terms that are numbers.
static void foldNumbers(std::vector<Term> &terms) {
  auto isNumber = [](const Term &term) { return term.product.factors.empty(); };
  auto first = llvm::find_if(terms, isNumber);
  if (first == terms.end())
    return;
  for (auto it = std::next(first); it != terms.end();)
    if (isNumber(*it)) {
      Scalar value = it->product.number();
      bool subtract = it->negative != first->negative;
      first->product.coefficient =
          first->product.number() + (subtract ? -value : value);
      first->product.divisor = Scalar::get(1);
      it = terms.erase(it);
    } else {
      ++it;
    }
}

Operand Importer::lowerSum(std::vector<Term> terms, const Context &context,
                           const IndexNames &outside, unsigned outerFactors,
                           const Target *hint) {
  llvm::SMRange range =
      join(terms.front().product.range, terms.back().product.range);
  if (auto number = constantSum(terms)) {
    Operand operand;
    operand.number = *number;
    operand.range = range;
    return operand;
  }
  foldNumbers(terms);
  if (terms.size() == 1)
    return lowerTerm(std::move(terms.front()), context, outside, outerFactors,
                     hint);
  Target inner = intermediate(hint);
  std::vector<Operand> values;
  llvm::SmallVector<bool> negative;
  bool ok = true;
  for (auto [i, term] : llvm::enumerate(terms)) {
    negative.push_back(i > 0 && term.negative);
    if (i > 0)
      term.negative = false;
    values.push_back(
        lowerTerm(std::move(term), context, outside, outerFactors, &inner));
    ok &= !values.back().isPoison();
  }
  if (!ok)
    return {};
  llvm::SmallVector<Operand *> pointers;
  for (Operand &value : values)
    pointers.push_back(&value);
  auto type = commonOperandType(pointers, range);
  if (!type || !checkPlacements({pointers.begin(), pointers.end()}, "sum"))
    return {};
  Operand sum = values.front();
  for (size_t i = 1; i < values.size() && !sum.isPoison(); ++i) {
    bool isLast = i + 1 == values.size();
    const Target *target = isLast ? hint : &inner;
    IndexNames result = sum.indices;
    addNames(result, values[i].indices);
    sum = emitElementwise(negative[i] ? shd::Function::Sub : shd::Function::Add,
                          {&sum, &values[i]}, arrange(result, target, true),
                          resultType(*type, target), range);
  }
  return sum;
}

Operand Importer::lowerTerm(Term term, const Context &context,
                            const IndexNames &outside, unsigned outerFactors,
                            const Target *hint) {
  Product &product = term.product;
  if (term.negative && (!product.isPlain() || product.factors.empty())) {
    product.coefficient = -product.coefficient;
    term.negative = false;
  }
  if (!term.negative)
    return lowerProduct(std::move(product), context, outside, outerFactors,
                        hint);
  Target inner = intermediate(hint);
  llvm::SMRange range = product.range;
  Operand value =
      lowerProduct(std::move(product), context, outside, outerFactors, &inner);
  if (value.isPoison())
    return value;
  return emitElementwise(shd::Function::Neg, {&value},
                         arrange(value.indices, hint, true),
                         resultType(value.elementType(), hint), range);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// An index that the left side lacks, though only one factor of several has it.
void Importer::warnOfLoneIndex(llvm::ArrayRef<FlatFactor> flat,
                               StringAttr index, unsigned outerFactors) {
  const Node *carrier = nullptr;
  unsigned carriers = 0, numerators = 0;
  for (const FlatFactor &factor : flat) {
    numerators += !factor.inverse;
    IndexNames names;
    addIndices(*factor.node, names);
    if (!contains(names, index))
      continue;
    ++carriers;
    carrier = factor.node;
  }
  if (carriers != 1 || numerators + outerFactors < 2 ||
      carrier->kind != Node::Kind::Leaf)
    return;
  const char *place = carrier->leaf.range.Start.getPointer();
  if (!warned.insert({place, index}).second)
    return;
  auto diag = files.warning(carrier->leaf.range)
              << "index '" << index.getValue()
              << "' is summed, but only one factor of the product has it";
  diag.attachNote() << "add '" << index.getValue()
                    << "' to the left side, or say so with `sum["
                    << index.getValue() << "](...)`";
}

static bool isWithin(llvm::SMRange inner, llvm::SMRange outer) {
  return inner.Start.getPointer() >= outer.Start.getPointer() &&
         inner.End.getPointer() <= outer.End.getPointer();
}

/// In `z[B, D] = silu(x[B, D] * Sg[D, F]) * Sd[F, D]`, D was probably to be
/// summed inside of silu: the argument sums nothing and keeps D only because
/// the result has it, and another factor has it again beside an index that is
/// summed.
void Importer::warnOfUnsummed(llvm::ArrayRef<FlatFactor> flat,
                              const IndexNames &summed) {
  auto hasBoth = [](const Operand &operand, StringAttr a, StringAttr b) {
    return contains(operand.indices, a) && contains(operand.indices, b);
  };
  for (const Statement::Unsummed &unsummed : statement->unsummed)
    for (const FlatFactor &gate : flat) {
      if (gate.node->kind != Node::Kind::Leaf ||
          !isWithin(unsummed.range, gate.node->leaf.range))
        continue;
      bool isSuspect = llvm::any_of(summed, [&](StringAttr index) {
        return hasBoth(gate.node->leaf, unsummed.index, index) &&
               llvm::any_of(flat, [&](const FlatFactor &other) {
                 const Operand &leaf = other.node->leaf;
                 return other.node != gate.node &&
                        other.node->kind == Node::Kind::Leaf &&
                        leaf.isReference &&
                        hasBoth(leaf, unsummed.index, index);
               });
      });
      const char *place = unsummed.range.Start.getPointer();
      if (!isSuspect || !warned.insert({place, unsummed.index}).second)
        continue;
      auto diag = files.warning(unsummed.range)
                  << "index '" << unsummed.index.getValue()
                  << "' is not summed in this argument, since the left side "
                     "has it";
      diag.attachNote() << "assign the argument to a name of its own, or give "
                           "the left side another index (`dim "
                        << unsummed.index.getValue()
                        << "2 = " << unsummed.index.getValue() << "`)";
    }
}

IndexNames Importer::summedIndices(const Product &product,
                                   const Context &context,
                                   const IndexNames &outside,
                                   unsigned outerFactors) {
  IndexNames summed, all;
  llvm::SmallVector<Statement::Unsummed, 2> unsummed;
  if (context.mode == SumMode::Free)
    return summed;
  llvm::SmallVector<FlatFactor> flat;
  flatten(product, flat);
  addIndices(product, all);
  for (StringAttr index : all) {
    if (contains(context.named, index) || contains(outside, index)) {
      if (context.mode == SumMode::Argument &&
          count(product, index, context.mode) == kSeveral)
        unsummed.push_back({index, product.range});
      continue;
    }
    if (context.mode == SumMode::Argument &&
        count(product, index, context.mode) != kSeveral)
      continue;
    summed.push_back(index);
    if (context.mode == SumMode::Left)
      warnOfLoneIndex(flat, index, outerFactors);
  }
  // An argument with a sum of its own keeps its batch.
  if (summed.empty())
    llvm::append_range(statement->unsummed, unsummed);
  if (context.mode == SumMode::Left)
    warnOfUnsummed(flat, summed);
  return summed;
}

std::optional<Type> Importer::productType(const Product &product,
                                          llvm::ArrayRef<Operand *> leaves,
                                          bool divides) {
  auto type = commonOperandType(leaves, product.range);
  if (!type)
    return std::nullopt;
  Scalar number = product.number();
  if (!product.isPlain())
    type = *commonType(*type, literalType(files.getContext(), number, *type));
  return divides ? floatFor(*type) : *type;
}

Operand Importer::lowerProduct(Product product, const Context &context,
                               const IndexNames &outside, unsigned outerFactors,
                               const Target *hint) {
  for (const Product::Factor &factor : product.factors)
    if (isPoison(*factor.node))
      return {};
  if (product.factors.empty()) {
    Operand operand;
    operand.number = product.number();
    operand.range = product.range;
    return operand;
  }
  if (auto expanded = expand(product, context, outside)) {
    if (++statement->expansions > kMaxExpansions) {
      auto diag = files.error(product.range)
                  << "this product of sums has too many terms when it is "
                     "multiplied out";
      diag.attachNote() << "assign one of its sums to a name first";
      return {};
    }
    return lowerSum(std::move(*expanded), context, outside, outerFactors, hint);
  }
  IndexNames summed = summedIndices(product, context, outside, outerFactors);
  if (!lowerInnerSums(product, context, outside, outerFactors))
    return {};

  llvm::SmallVector<FlatFactor> flat;
  flatten(product, flat);
  llvm::SmallVector<Operand *> leaves;
  llvm::SmallVector<const Operand *> numerators;
  for (const FlatFactor &factor : flat) {
    leaves.push_back(&factor.node->leaf);
    if (!factor.inverse)
      numerators.push_back(&factor.node->leaf);
  }
  bool divides = numerators.size() < flat.size() || !product.divisor.isOne();
  auto type = productType(product, leaves, divides);
  if (!type || !checkPlacements(numerators, "product"))
    return {};
  if (numerators.empty() && !addUnitNumerator(product, *type))
    return {};
  Contraction contraction{&summed, *type, hint};
  Operand value =
      contractGroup(product, contraction, outside, product.isPlain());
  return applyCoefficient(std::move(value), product, *type, hint);
}

/// A product of divisors only divides its number.
bool Importer::addUnitNumerator(Product &product, Type type) {
  Operand unit = emitConstant(product.number(), type, product.range);
  if (unit.isPoison())
    return false;
  product.coefficient = product.divisor = Scalar::get(1);
  auto node = std::make_unique<Node>();
  node->leaf = std::move(unit);
  product.factors.insert(product.factors.begin(), {std::move(node), false});
  return true;
}

Operand Importer::applyCoefficient(Operand value, const Product &product,
                                   Type type, const Target *hint) {
  if (value.isPoison() || product.isPlain())
    return value;
  bool divides = product.coefficient.isOne();
  Scalar number = divides ? product.divisor : product.number();
  Operand constant = emitConstant(
      number, literalType(files.getContext(), number, value.elementType()),
      product.range);
  if (constant.isPoison())
    return {};
  return emitElementwise(divides ? shd::Function::Div : shd::Function::Mul,
                         {&value, &constant},
                         arrange(value.indices, hint, true),
                         resultType(type, hint), product.range);
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

/// The first of the factors that makes the smallest quotient with `divisor`.
static size_t quotientOf(llvm::ArrayRef<Operand> factors,
                         const Operand &divisor) {
  size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (auto [i, factor] : llvm::enumerate(factors)) {
    double size = 1;
    for (int64_t extent : factor.extents())
      size *= extent;
    for (auto [name, extent] : llvm::zip(divisor.indices, divisor.extents()))
      if (!contains(factor.indices, name))
        size *= extent;
    if (size < least)
      std::tie(best, least) = std::pair(i, size);
  }
  return best;
}

Operand Importer::divide(const Operand &a, const Operand &b,
                         const Contraction &contraction, bool isLast) {
  Target inner = intermediate(contraction.hint);
  const Target *hint = isLast ? contraction.hint : &inner;
  IndexNames result = a.indices;
  addNames(result, b.indices);
  return emitElementwise(
      shd::Function::Div, {&a, &b}, arrange(result, hint, true),
      resultType(contraction.type, hint), join(a.range, b.range));
}

Operand Importer::contractGroup(Product &product,
                                const Contraction &contraction,
                                const IndexNames &needed, bool isLast) {
  std::vector<Operand> factors;
  std::vector<Operand> divisors;
  IndexNames all;
  addIndices(product, all);
  for (Product::Factor &factor : product.factors) {
    if (factor.inverse) {
      divisors.push_back(factor.node->leaf);
      continue;
    }
    if (factor.node->kind == Node::Kind::Leaf) {
      factors.push_back(factor.node->leaf);
      continue;
    }
    IndexNames around = needed;
    for (Product::Factor &other : product.factors)
      if (&other != &factor)
        addIndices(*other.node, around);
    factors.push_back(
        contractGroup(factor.node->group, contraction, around, false));
    if (factors.back().isPoison())
      return {};
  }
  // Division commutes with a sum over indices that the divisor lacks.
  std::vector<Operand> late;
  for (Operand &divisor : divisors) {
    bool early = llvm::any_of(divisor.indices, [&](StringAttr name) {
      return contains(*contraction.summed, name) && !contains(needed, name);
    });
    if (!early || factors.empty()) {
      late.push_back(std::move(divisor));
      continue;
    }
    Operand &factor = factors[quotientOf(factors, divisor)];
    factor = divide(factor, divisor, contraction, false);
    if (factor.isPoison())
      return {};
  }
  Operand value =
      contractFactors(factors, contraction, needed, isLast && late.empty());
  for (size_t i = 0; i < late.size() && !value.isPoison(); ++i)
    value = divide(value, late[i], contraction, isLast && i + 1 == late.size());
  return value;
}

/// The order of the steps; from left to right where there are more indices than
/// bits.
static llvm::SmallVector<ContractionStep>
orderSteps(llvm::ArrayRef<Operand> factors,
           llvm::function_ref<bool(StringAttr)> isNeeded) {
  IndexNames names;
  llvm::SmallVector<int64_t> extents;
  for (const Operand &factor : factors)
    for (auto [name, extent] : llvm::zip(factor.indices, factor.extents()))
      if (!contains(names, name)) {
        names.push_back(name);
        extents.push_back(extent);
      }
  llvm::SmallVector<ContractionStep> steps;
  if (names.size() > 64) {
    for (unsigned i = 1; i < factors.size(); ++i)
      steps.push_back({i == 1 ? 0 : factors.size() + i - 2, i});
    return steps;
  }
  IndexBits needed = 0;
  llvm::SmallVector<IndexBits> bits(factors.size());
  for (auto [i, name] : llvm::enumerate(names)) {
    if (isNeeded(name))
      needed |= IndexBits(1) << i;
    for (auto [k, factor] : llvm::enumerate(factors))
      if (contains(factor.indices, name))
        bits[k] |= IndexBits(1) << i;
  }
  return contractionOrder(bits, extents, needed);
}

Operand Importer::contractFactors(llvm::ArrayRef<Operand> factors,
                                  const Contraction &contraction,
                                  const IndexNames &needed, bool isLast) {
  auto isNeeded = [&](StringAttr name) {
    return !contains(*contraction.summed, name) || contains(needed, name);
  };
  Target inner = intermediate(contraction.hint);
  if (factors.size() == 1) {
    const Operand &factor = factors.front();
    IndexNames result;
    llvm::copy_if(factor.indices, std::back_inserter(result), isNeeded);
    if (result.size() == factor.indices.size())
      return factor;
    const Target *hint = isLast ? contraction.hint : &inner;
    return emitReduce(shd::Reduction::Sum, factor, arrange(result, hint, false),
                      resultType(contraction.type, hint), factor.range);
  }
  std::vector<Operand> values(factors);
  // Live values that have each index.
  llvm::DenseMap<StringAttr, unsigned> carriers;
  for (const Operand &factor : factors)
    for (StringAttr name : factor.indices)
      ++carriers[name];
  auto steps = orderSteps(factors, isNeeded);
  for (auto [i, step] : llvm::enumerate(steps)) {
    const Operand &a = values[step.first], &b = values[step.second];
    IndexNames all = a.indices, result;
    addNames(all, b.indices);
    for (StringAttr name : all) {
      unsigned here = contains(a.indices, name) + contains(b.indices, name);
      carriers[name] -= here;
      if (isNeeded(name) || carriers[name] > 0) {
        result.push_back(name);
        ++carriers[name];
      }
    }
    bool sums = result.size() < all.size();
    const Target *hint =
        isLast && i + 1 == steps.size() ? contraction.hint : &inner;
    values.push_back(
        multiply(a, b, std::move(result), sums, contraction.type, hint));
    if (values.back().isPoison())
      return {};
  }
  return values.back();
}

Operand Importer::multiply(const Operand &a, const Operand &b,
                           IndexNames result, bool sums, Type type,
                           const Target *hint) {
  llvm::SMRange range = join(a.range, b.range);
  if (sums)
    return emitEinsum(a, b, arrange(std::move(result), hint, false),
                      resultType(type, hint), range);
  return emitElementwise(shd::Function::Mul, {&a, &b},
                         arrange(std::move(result), hint, true),
                         resultType(type, hint), range);
}
