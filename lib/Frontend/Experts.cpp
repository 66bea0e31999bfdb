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
  /// Indices of the picks that are groups, and a group's tokens.
  IndexNames groups, tokens;
  int64_t k = 2;
  std::optional<int64_t> blocks, limit;
  bool dropless = false;
  std::optional<double> imbalance;
  llvm::SmallVector<Option, 4> options;

  /// How many slots each expert has for a group if loads are equal.
  int64_t meanSlots() const;
};

int64_t Importer::ExpertCall::meanSlots() const {
  double load = double(k) * imbalance.value_or(1);
  for (StringAttr name : tokens)
    load *= double(*picks.extent(name));
  return std::max<int64_t>(
      1, int64_t(std::ceil(load / double(*picks.extent(experts)))));
}

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

/// An integer that is known now; nothing after an error.
std::optional<int64_t> Importer::readInteger(const Expr &expr,
                                             llvm::StringRef name) {
  std::optional<Scalar> number = evaluateConstant(expr);
  if (!number)
    return std::nullopt;
  std::optional<int64_t> integer = number->asInteger();
  if (!integer)
    files.error(expr.range)
        << "'" << name << "' expects an integer, found " << toString(*number);
  return integer;
}

/// True unless the option is absent or `none`.
static bool isGiven(const Expr *expr) {
  return expr && expr->kind != Expr::Kind::None;
}

/// Reads `k`, `blocks`, `limit`, `dropless` and `imbalance`.
bool Importer::readExpertOptions(llvm::ArrayRef<const Expr *> options,
                                 ExpertCall &shape) {
  static constexpr const char *names[] = {"k", "blocks", "limit", "dropless",
                                          "imbalance"};
  for (auto [name, option] : llvm::zip_equal(names, options))
    if (option)
      shape.options.push_back({name, option->range});
  const Expr *dropless = options[3], *imbalance = options[4];
  std::optional<int64_t> k = shape.k;
  if (options[0])
    k = readInteger(*options[0], "k");
  if (isGiven(options[1]))
    shape.blocks = readInteger(*options[1], "blocks");
  if (isGiven(options[2]))
    shape.limit = readInteger(*options[2], "limit");
  if (!k || isGiven(options[1]) != shape.blocks.has_value() ||
      isGiven(options[2]) != shape.limit.has_value())
    return false;
  shape.k = *k;
  if (dropless && dropless->kind != Expr::Kind::True &&
      dropless->kind != Expr::Kind::False) {
    files.error(dropless->range) << "'dropless' expects true or false";
    return false;
  }
  shape.dropless = dropless && dropless->kind == Expr::Kind::True;
  if (!isGiven(imbalance))
    return true;
  std::optional<Scalar> number = evaluateConstant(*imbalance);
  if (number)
    shape.imbalance = number->value();
  return number.has_value();
}

//===----------------------------------------------------------------------===//
// Picks and slots
//===----------------------------------------------------------------------===//

Operand Importer::emitTopK(const Operand &input, StringAttr over, int64_t k,
                           llvm::SMRange range,
                           llvm::ArrayRef<Option> options) {
  auto type = mlir::RankedTensorType::get(input.extents(), builder.getI1Type());
  auto op = shd::TopKOp::create(builder, statement->loc, type, input.value,
                                indexing({&input}, input.indices), over,
                                builder.getI64IntegerAttr(k));
  return record(op, {&input}, input.indices, range, options);
}

/// Picks are bool; real numbers mean the k largest.
bool Importer::pickLargest(ExpertCall &shape, llvm::SMRange range) {
  if (isFloat(shape.picks.elementType()))
    shape.picks =
        emitTopK(shape.picks, shape.experts, shape.k, range, shape.options);
  return !shape.picks.isPoison();
}

/// Without drops, the slots are those of the mean load.
bool Importer::checkSlots(const ExpertCall &shape, int64_t slots,
                          llvm::SMRange range) {
  if (!shape.dropless || slots == shape.meanSlots())
    return true;
  auto diag = files.error(range)
              << "without drops '" << shape.slots.getValue() << "' must be "
              << shape.meanSlots()
              << ", the tokens of a group for each expert on average"
              << (shape.imbalance ? " times the imbalance" : "") << ", but is "
              << slots;
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
  Operand made = record(op, operands, result, call.range, shape.options);
  if (made.isPoison())
    return {};
  // A dispatch makes the slots.
  std::optional<int64_t> slots = made.extent(shape.slots);
  if (!checkSlots(shape, slots ? *slots : *shape.moved.extent(shape.slots),
                  call.range))
    return {};
  return made;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

Operand Importer::functionTopK(const Expr &call, const Slots &slots,
                               const Context &context) {
  IndexNames over = bracketNames(call);
  Operand input =
      requireTensor(evaluate(*slots[0], argumentContext(context, over)));
  if (input.isPoison())
    return {};
  std::optional<int64_t> k = 2;
  llvm::SmallVector<Option, 1> options;
  if (slots[1]) {
    options.push_back({"k", slots[1]->range});
    k = readInteger(*slots[1], "k");
  }
  if (!k)
    return {};
  return emitTopK(input, over[0], *k, call.range, options);
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
  if (shape.moved.isPoison() || shape.picks.isPoison() ||
      !dims->extent(slotName.text, slotName.range))
    return {};
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
  for (StringAttr name : shape.picks.indices)
    if (name != shape.experts)
      (contains(left, name) ? shape.groups : shape.tokens).push_back(name);
  addNames(result, shape.groups);
  addNames(result, shape.slots);
  for (StringAttr name : shape.moved.indices)
    if (!contains(shape.picks.indices, name))
      addNames(result, name);
  if (!readExpertOptions(llvm::ArrayRef(slots).drop_front(2), shape))
    return {};
  mlir::Value picks = shape.picks.value;
  if (!pickLargest(shape, call.range))
    return {};
  Operand made = emitExperts<shd::DispatchOp>(
      call, shape, {&shape.moved, &shape.picks}, arrange(result, hint, false),
      resultType(shape.moved.elementType(), hint));
  if (!made.isPoison())
    dispatched[picks].push_back({shape.k, shape.dropless, call.range});
  return made;
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
      (hasWeights && shape.weights.isPoison()))
    return {};
  // Real numbers are the weights of their largest.
  if (!hasWeights && isFloat(shape.picks.elementType())) {
    shape.weights = shape.picks;
    hasWeights = true;
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
  if (!readExpertOptions(llvm::ArrayRef(slots).drop_front(3), shape) ||
      !checkDispatched(shape.picks.value, shape, call.range) ||
      !pickLargest(shape, call.range))
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
