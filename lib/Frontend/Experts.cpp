//===- Experts.cpp - topk, dispatch and combine ---------------------------===//

#include "Importer.h"
#include <cmath>

using namespace shardc;
using ast::Expr;
using mlir::StringAttr;
using mlir::Type;

/// The operands and options of a call of dispatch or combine.
struct Importer::ExpertCall {
  /// `moved` is what dispatch or combine moves.
  Operand moved, picks, weights;
  StringAttr experts, slots;
  int64_t numExperts = 1, numSlots = 1;
  /// Indices of the picks that are groups, and a group's tokens.
  IndexNames groups, tokens;
  int64_t k = 2;
  std::optional<int64_t> blocks, limit;
  bool dropless = false;
  std::optional<double> imbalance;

  /// How many slots each expert has for a group if loads are equal.
  int64_t meanSlots() const;
};

static int64_t extentOf(const Operand &operand, StringAttr name) {
  return operand
      .extents()[llvm::find(operand.indices, name) - operand.indices.begin()];
}

int64_t Importer::ExpertCall::meanSlots() const {
  double load = double(k) * imbalance.value_or(1);
  for (StringAttr name : tokens)
    load *= double(extentOf(picks, name));
  return std::max<int64_t>(1, int64_t(std::ceil(load / double(numExperts))));
}

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

/// An integer from 1 to `most`; nothing after an error.
std::optional<int64_t> Importer::readCount(const Expr &expr,
                                           llvm::StringRef name, int64_t most,
                                           llvm::StringRef mostOf) {
  std::optional<Scalar> number = evaluateConstant(expr);
  if (!number)
    return std::nullopt;
  std::optional<int64_t> count = number->asInteger();
  if (count && *count >= 1 && *count <= most)
    return count;
  files.error(expr.range) << "'" << name << "' expects an integer from 1 to "
                          << most << ", " << mostOf;
  return std::nullopt;
}

static std::string extentText(StringAttr name) {
  return ("the extent of '" + name.getValue() + "'").str();
}

/// True unless the option is absent or `none`.
static bool isGiven(const Expr *expr) {
  return expr && expr->kind != Expr::Kind::None;
}

/// Reads `k`, `blocks`, `limit`, `dropless` and `imbalance`.
bool Importer::readExpertOptions(const Expr &call,
                                 llvm::ArrayRef<const Expr *> options,
                                 ExpertCall &shape) {
  const Expr *k = options[0], *blocks = options[1], *limit = options[2],
             *dropless = options[3], *imbalance = options[4];
  std::string experts = extentText(shape.experts);
  if (k) {
    auto count = readCount(*k, "k", shape.numExperts, experts);
    if (!count)
      return false;
    shape.k = *count;
  } else if (shape.k > shape.numExperts) {
    files.error(call.range) << "k is 2, but '" << shape.experts.getValue()
                            << "' has extent " << shape.numExperts;
    return false;
  }
  if (isGiven(blocks) != isGiven(limit)) {
    files.error(call.range) << "'blocks' and 'limit' belong together";
    return false;
  }
  if (isGiven(blocks)) {
    shape.blocks = readCount(*blocks, "blocks", shape.numExperts, experts);
    if (!shape.blocks)
      return false;
    if (shape.numExperts % *shape.blocks != 0) {
      files.error(blocks->range)
          << "'blocks' is " << *shape.blocks << ", which does not divide the "
          << shape.numExperts << " of '" << shape.experts.getValue() << "'";
      return false;
    }
    shape.limit = readCount(*limit, "limit", *shape.blocks, "the blocks");
    if (!shape.limit)
      return false;
    int64_t most = *shape.limit * (shape.numExperts / *shape.blocks);
    if (most < shape.k) {
      files.error(limit->range)
          << "k is " << shape.k << ", but only " << most << " of '"
          << shape.experts.getValue() << "' are in " << *shape.limit << " of "
          << *shape.blocks << " blocks";
      return false;
    }
  }
  if (dropless && dropless->kind != Expr::Kind::True &&
      dropless->kind != Expr::Kind::False) {
    files.error(dropless->range) << "'dropless' expects true or false";
    return false;
  }
  shape.dropless = dropless && dropless->kind == Expr::Kind::True;
  if (!isGiven(imbalance))
    return true;
  if (!shape.dropless) {
    auto diag = files.error(imbalance->range)
                << "'imbalance' needs 'dropless=true'";
    diag.attachNote() << "without it every slot of '" << shape.slots.getValue()
                      << "' is executed, and the surplus is dropped";
    return false;
  }
  std::optional<Scalar> number = evaluateConstant(*imbalance);
  if (!number)
    return false;
  shape.imbalance = number->value();
  if (*shape.imbalance >= 1)
    return true;
  files.error(imbalance->range) << "'imbalance' expects a number of at least 1";
  return false;
}

//===----------------------------------------------------------------------===//
// Picks and slots
//===----------------------------------------------------------------------===//

Operand Importer::emitTopK(const Operand &input, StringAttr over, int64_t k,
                           llvm::SMRange range) {
  auto type = mlir::RankedTensorType::get(input.extents(), builder.getI1Type());
  auto op = shd::TopKOp::create(builder, statement->loc, type, input.value,
                                indexing({&input}, input.indices), over,
                                builder.getI64IntegerAttr(k));
  return record(op, {&input}, input.indices, range);
}

/// Picks are bool; real numbers mean the k largest.
bool Importer::checkPicks(ExpertCall &shape, llvm::SMRange range) {
  Type type = shape.picks.elementType();
  if (isBool(type))
    return true;
  if (!isFloat(type)) {
    auto diag = files.error(shape.picks.range)
                << "picks must be bool, or real numbers of which the k largest "
                   "are picked, but are "
                << shd::typeName(type);
    diag.attachNote() << "compare them, for example `p != 0`";
    return false;
  }
  shape.picks = emitTopK(shape.picks, shape.experts, shape.k, range);
  return !shape.picks.isPoison();
}

/// Without drops, the slots are those of the mean load.
bool Importer::checkSlots(const ExpertCall &shape, llvm::SMRange range) {
  if (!shape.dropless || shape.numSlots == shape.meanSlots())
    return true;
  auto diag = files.error(range)
              << "without drops '" << shape.slots.getValue() << "' must be "
              << shape.meanSlots()
              << ", the tokens of a group for each expert on average"
              << (shape.imbalance ? " times the imbalance" : "") << ", but is "
              << shape.numSlots;
  return false;
}

/// Slots come back as they were filled: a combine has as many picks as some
/// dispatch of them, and drops what that one drops.
bool Importer::checkDispatched(mlir::Value picks, const ExpertCall &shape,
                               llvm::SMRange range) {
  llvm::ArrayRef<Dispatched> list = dispatched[picks];
  auto fits = [&](const Dispatched &each) {
    return each.k == shape.k && each.dropless == shape.dropless;
  };
  if (list.empty() || llvm::any_of(list, fits))
    return true;
  auto text = [](int64_t k, bool dropless) {
    return "k=" + std::to_string(k) + (dropless ? ", dropless=true" : "");
  };
  auto diag = files.error(range)
              << "'combine' has " << text(shape.k, shape.dropless)
              << ", but the dispatch of its picks has "
              << text(list.front().k, list.front().dropless);
  diag.attachNote(files.location(list.front().range)) << "the dispatch is here";
  return false;
}

template <typename Op>
Operand Importer::emitExperts(const Expr &call, const ExpertCall &shape,
                              llvm::ArrayRef<const Operand *> operands,
                              IndexNames result, Type element) {
  // Picks are whole where tokens are split.
  Operand picks = shape.picks;
  for (StringAttr &name : picks.indices)
    if (!contains(shape.groups, name))
      name = str(name.getValue() + ".picks");
  llvm::SmallVector<const Operand *> placed(operands);
  placed[1] = &picks;
  mlir::RankedTensorType type = tensorType(operands, result, element);
  if (!type || !checkPlacements(placed, call.name))
    return {};
  auto number = [&](std::optional<int64_t> value) {
    return value ? builder.getI64IntegerAttr(*value) : mlir::IntegerAttr();
  };
  auto op = Op::create(
      builder, statement->loc, type, shape.moved.value, shape.picks.value,
      shape.weights.value, indexing(operands, result), shape.experts,
      shape.slots, number(shape.k), number(shape.blocks), number(shape.limit),
      shape.dropless ? builder.getUnitAttr() : mlir::UnitAttr(),
      shape.imbalance ? builder.getF64FloatAttr(*shape.imbalance)
                      : mlir::FloatAttr());
  return record(op, operands, result, call.range);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

Operand Importer::functionTopK(const Expr &call, const Slots &slots,
                               const Context &context) {
  IndexNames over = bracketNames(call);
  Operand input =
      requireTensor(evaluate(*slots[0], argumentContext(context, over)));
  if (input.isPoison() || !requireIndices(input, over, call.range))
    return {};
  int64_t extent = extentOf(input, over[0]), k = 2;
  if (slots[1]) {
    auto count = readCount(*slots[1], "k", extent, extentText(over[0]));
    if (!count)
      return {};
    k = *count;
  } else if (k > extent) {
    files.error(call.range)
        << "k is 2, but '" << over[0].getValue() << "' has extent " << extent;
    return {};
  }
  return emitTopK(input, over[0], k, call.range);
}

/// The left side's indices say which of the picks' are groups.
Operand Importer::functionDispatch(const Expr &call, const Slots &slots,
                                   const Context &context, const Target *hint) {
  ExpertCall shape;
  IndexNames brackets = bracketNames(call);
  shape.experts = brackets[0];
  shape.slots = brackets[1];
  Context inner = argumentContext(context, brackets);
  shape.moved = requireTensor(evaluate(*slots[0], inner));
  shape.picks = requireTensor(evaluate(*slots[1], inner));
  const ast::Name &slotName = call.functionIndices[1].from[0];
  auto numSlots = dims->extent(slotName.text, slotName.range);
  if (shape.moved.isPoison() || shape.picks.isPoison() || !numSlots ||
      !requireIndices(shape.picks, shape.experts, shape.picks.range))
    return {};
  for (StringAttr name : brackets)
    if (contains(shape.moved.indices, name)) {
      files.error(shape.moved.range)
          << "index '" << name.getValue() << "' is made by 'dispatch', but the "
          << "argument has it already";
      return {};
    }
  bool isNamed = hint && hint->indices;
  if (!isNamed && context.mode == SumMode::Free) {
    auto diag = files.error(call.range)
                << "'dispatch' needs indices on the left, which say what is a "
                   "group of tokens";
    diag.attachNote() << "for example `xe[E, B, C, D] = dispatch[E, C](...)`";
    return {};
  }
  const IndexNames &left = isNamed ? *hint->indices : context.named;
  IndexNames result = {shape.experts};
  for (StringAttr name : shape.picks.indices) {
    if (name == shape.experts)
      continue;
    if (!contains(shape.moved.indices, name)) {
      auto diag = files.error(shape.picks.range)
                  << "index '" << name.getValue()
                  << "' of the picks is not one of what is dispatched";
      diag.attachNote() << "that has " << toString(shape.moved.indices);
      return {};
    }
    (contains(left, name) ? shape.groups : shape.tokens).push_back(name);
  }
  result.append(shape.groups);
  result.push_back(shape.slots);
  for (StringAttr name : shape.moved.indices)
    if (!contains(shape.picks.indices, name))
      result.push_back(name);
  shape.numExperts = extentOf(shape.picks, shape.experts);
  shape.numSlots = *numSlots;
  if (!readExpertOptions(call, llvm::ArrayRef(slots).drop_front(2), shape))
    return {};
  dispatched[shape.picks.value].push_back(
      {shape.k, shape.dropless, call.range});
  if (!checkPicks(shape, call.range) || !checkSlots(shape, call.range))
    return {};
  return emitExperts<shd::DispatchOp>(
      call, shape, {&shape.moved, &shape.picks}, arrange(result, hint, false),
      resultType(shape.moved.elementType(), hint));
}

Operand Importer::functionCombine(const Expr &call, const Slots &slots,
                                  const Context &context, const Target *hint) {
  ExpertCall shape;
  IndexNames brackets = bracketNames(call);
  shape.experts = brackets[0];
  shape.slots = brackets[1];
  Context inner = argumentContext(context, brackets);
  shape.moved = requireTensor(evaluate(*slots[0], inner));
  shape.picks = requireTensor(evaluate(*slots[1], inner));
  bool hasWeights = isGiven(slots[2]);
  if (hasWeights)
    shape.weights = requireTensor(evaluate(*slots[2], inner));
  if (shape.moved.isPoison() || shape.picks.isPoison() ||
      (hasWeights && shape.weights.isPoison()) ||
      !requireIndices(shape.moved, brackets, shape.moved.range) ||
      !requireIndices(shape.picks, shape.experts, shape.picks.range))
    return {};
  if (contains(shape.picks.indices, shape.slots)) {
    files.error(shape.picks.range) << "index '" << shape.slots.getValue()
                                   << "' of the slots is one of the picks, too";
    return {};
  }
  // Real numbers are the weights of their largest.
  if (!hasWeights && isFloat(shape.picks.elementType())) {
    shape.weights = shape.picks;
    hasWeights = true;
  }
  if (hasWeights && !sameSet(shape.weights.indices, shape.picks.indices)) {
    files.error(shape.weights.range)
        << "the weights have indices " << toString(shape.weights.indices)
        << ", but the picks have " << toString(shape.picks.indices);
    return {};
  }
  IndexNames result;
  for (StringAttr name : shape.picks.indices) {
    if (name == shape.experts)
      continue;
    result.push_back(name);
    (contains(shape.moved.indices, name) ? shape.groups : shape.tokens)
        .push_back(name);
  }
  for (StringAttr name : shape.moved.indices)
    if (!contains(brackets, name) && !contains(result, name))
      result.push_back(name);
  shape.numExperts = extentOf(shape.picks, shape.experts);
  shape.numSlots = extentOf(shape.moved, shape.slots);
  if (!readExpertOptions(call, llvm::ArrayRef(slots).drop_front(3), shape) ||
      !checkDispatched(shape.picks.value, shape, call.range) ||
      !checkPicks(shape, call.range) || !checkSlots(shape, call.range))
    return {};
  llvm::SmallVector<const Operand *> operands{&shape.moved, &shape.picks};
  llvm::SmallVector<Operand *> typed{&shape.moved};
  if (hasWeights) {
    operands.push_back(&shape.weights);
    typed.push_back(&shape.weights);
  }
  auto type = commonOperandType(typed, call.range);
  if (!type)
    return {};
  return emitExperts<shd::CombineOp>(call, shape, operands,
                                     arrange(result, hint, false),
                                     resultType(floatFor(*type), hint));
}
