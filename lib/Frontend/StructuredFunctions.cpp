//===- StructuredFunctions.cpp - Attention, rope, losses, layout ----------===//

#include "Importer.h"
#include "llvm/Support/MathExtras.h"

using namespace shardc;
using ast::Expr;
using mlir::StringAttr;
using mlir::Type;

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// The operands and options of one call of attention.
struct Importer::AttentionShape {
  Operand q, k, v, at, keyAt, sink, bias;
  StringAttr head, key, query;
  bool causal = false;
  std::optional<int64_t> window;
  std::optional<double> scale, softcap;
  IndexNames result;
};

/// True or false as written; nothing (and an error) for anything else.
static std::optional<bool> flag(SourceFiles &files, const Expr *expr) {
  if (!expr || expr->kind == Expr::Kind::False)
    return false;
  if (expr->kind == Expr::Kind::True)
    return true;
  files.error(expr->range) << "'causal' expects true or false";
  return std::nullopt;
}

/// Finds the index of q along which positions run
/// (docs/Language.md#8-functions).
bool Importer::findQueryIndex(const Expr &call, AttentionShape &shape) {
  if (shape.at.value || !(shape.causal || shape.window))
    return true;
  size_t keyDim =
      llvm::find(shape.k.indices, shape.key) - shape.k.indices.begin();
  int64_t keys = shape.k.extents()[keyDim];
  IndexNames candidates;
  for (auto [name, extent] : llvm::zip(shape.q.indices, shape.q.extents()))
    if (!contains(shape.k.indices, name) && extent == keys)
      candidates.push_back(name);
  if (candidates.size() == 1) {
    shape.query = candidates.front();
    return true;
  }
  auto diag = files.error(call.nameRange);
  if (candidates.empty())
    diag << "no index of q gives the positions of the queries: none that k "
            "lacks "
            "has the extent "
         << keys << " of '" << shape.key.getValue() << "'";
  else
    diag << "several indices of q may give the positions of the queries: "
         << toString(candidates);
  diag.attachNote() << "say which, for example `at=iota[T]`";
  return false;
}

bool Importer::checkAttention(const Expr &call, AttentionShape &shape) {
  if (!requireIndices(shape.q, shape.head, shape.q.range) ||
      !requireIndices(shape.k, {shape.head, shape.key}, shape.k.range) ||
      !requireIndices(shape.v, shape.key, shape.v.range))
    return false;
  if (contains(shape.q.indices, shape.key)) {
    auto diag = files.error(shape.q.range)
                << "q has the index '" << shape.key.getValue()
                << "' of the keys";
    diag.attachNote()
        << "give the keys an index of their own, for example `dim S "
           "= T`";
    return false;
  }
  for (StringAttr name : shape.k.indices)
    if (name != shape.key && !contains(shape.q.indices, name)) {
      auto diag = files.error(shape.k.range)
                  << "index '" << name.getValue() << "' of k is not one of q";
      diag.attachNote() << "q has " << toString(shape.q.indices);
      return false;
    }
  for (StringAttr name : shape.q.indices)
    if (name != shape.head)
      shape.result.push_back(name);
  for (StringAttr name : shape.v.indices) {
    if (name == shape.key)
      continue;
    if (name != shape.head && contains(shape.q.indices, name) &&
        !contains(shape.k.indices, name)) {
      files.error(shape.v.range) << "index '" << name.getValue()
                                 << "' of v is one of q, but k lacks it";
      return false;
    }
    if (!contains(shape.result, name))
      shape.result.push_back(name);
  }
  if (shape.at.value) {
    if (!requireIntegers(shape.at, "positions"))
      return false;
    for (StringAttr name : shape.at.indices)
      if (name == shape.head || !contains(shape.q.indices, name)) {
        files.error(shape.at.range) << "index '" << name.getValue()
                                    << "' of the positions is not one of q";
        return false;
      }
  }
  return checkKeyPositions(shape) &&
         checkScoreTensor(shape.sink, "sink", shape) &&
         checkScoreTensor(shape.bias, "bias", shape) &&
         findQueryIndex(call, shape);
}

/// Positions of keys are integers with the keys' index and else indices of k.
bool Importer::checkKeyPositions(const AttentionShape &shape) {
  if (!shape.keyAt.value)
    return true;
  llvm::SMRange range = shape.keyAt.range;
  if (!shape.causal) {
    files.error(range) << "'key_at' masks keys, which needs `causal=true`";
    return false;
  }
  if (!requireIntegers(shape.keyAt, "positions of keys") ||
      !requireIndices(shape.keyAt, shape.key, range))
    return false;
  for (StringAttr name : shape.keyAt.indices)
    if (name == shape.head || !contains(shape.k.indices, name)) {
      files.error(range) << "index '" << name.getValue()
                         << "' of 'key_at' is not one of the keys";
      return false;
    }
  return true;
}

/// A sink has indices of q without the head, a bias those and the keys'.
bool Importer::checkScoreTensor(const Operand &operand, llvm::StringRef name,
                                const AttentionShape &shape) {
  if (!operand.value)
    return true;
  if (!llvm::isa<mlir::FloatType>(operand.elementType())) {
    files.error(operand.range) << "'" << name << "' expects floats, found "
                               << shd::typeName(operand.elementType());
    return false;
  }
  for (StringAttr index : operand.indices) {
    if (index != shape.head && contains(shape.q.indices, index))
      continue;
    if (index == shape.key && name == "bias")
      continue;
    auto diag = files.error(operand.range)
                << "index '" << index.getValue() << "' of '" << name
                << "' is not one of the "
                << (name == "bias" ? "scores" : "queries");
    IndexNames expected = shape.q.indices;
    llvm::erase(expected, shape.head);
    if (name == "bias")
      expected.push_back(shape.key);
    diag.attachNote() << "these have " << toString(expected);
    return false;
  }
  return true;
}

bool Importer::readAttentionOptions(const Slots &slots, AttentionShape &shape) {
  auto causal = flag(files, slots[3]);
  bool ok = causal.has_value();
  shape.causal = causal.value_or(false);
  auto number = [&](const Expr *expr, std::optional<Scalar> &value) {
    bool none = false;
    if (!expr)
      return;
    value = evaluateConstant(*expr, &none);
    ok &= none || value.has_value();
  };
  std::optional<Scalar> window, scale, softcap;
  number(slots[4], window);
  number(slots[6], scale);
  number(slots[7], softcap);
  if (window) {
    shape.window = window->asInteger();
    shape.causal = true;
    if (shape.window.value_or(0) < 1) {
      files.error(slots[4]->range)
          << "'window' expects an integer of at least 1";
      ok = false;
    }
  }
  if (scale)
    shape.scale = scale->value();
  if (softcap && !(softcap->value() > 0)) {
    files.error(slots[7]->range) << "'softcap' expects a number greater than 0";
    ok = false;
  }
  if (softcap)
    shape.softcap = softcap->value();
  return ok;
}

Operand Importer::functionAttention(const Expr &call, const Slots &slots,
                                    const Context &context,
                                    const Target *hint) {
  AttentionShape shape;
  IndexNames brackets = bracketNames(call);
  shape.head = brackets[0];
  shape.key = brackets[1];
  Context inner = argumentContext(context, brackets);
  shape.q = requireTensor(evaluate(*slots[0], inner));
  shape.k = requireTensor(evaluate(*slots[1], inner));
  shape.v = requireTensor(evaluate(*slots[2], inner));
  llvm::SmallVector<const Operand *> operands{&shape.q, &shape.k, &shape.v};
  bool ok = readAttentionOptions(slots, shape);
  for (auto [slot, operand] :
       {std::pair(slots[5], &shape.at), std::pair(slots[10], &shape.keyAt),
        std::pair(slots[8], &shape.sink), std::pair(slots[9], &shape.bias)}) {
    if (!slot || slot->kind == Expr::Kind::None)
      continue;
    *operand = requireTensor(evaluate(*slot, inner));
    operands.push_back(operand);
  }
  auto isPoison = [](const Operand *operand) { return operand->isPoison(); };
  if (!ok || llvm::any_of(operands, isPoison) || !checkAttention(call, shape))
    return {};
  auto type = commonOperandType({&shape.q, &shape.k, &shape.v}, call.range);
  // The head index of v is one of the result, not the one that is summed.
  Operand values = shape.v;
  llvm::replace(values.indices, shape.head, str(shape.head.getValue() + ".v"));
  llvm::SmallVector<const Operand *> placed(operands);
  placed[2] = &values;
  Travelling travelling;
  // Around a ring, or with halos where a window leaves most keys out.
  bool mayTravel = !shape.window || shape.query;
  if (!shape.at.value && !shape.keyAt.value && !shape.bias.value && mayTravel) {
    travelling.index = shape.key;
    for (StringAttr name : shape.q.indices)
      if (shape.query ? name == shape.query : !contains(shape.k.indices, name))
        travelling.along.push_back(name);
  }
  if (!type || !checkPlacements(placed, "attention", travelling))
    return {};
  return emitAttention(call, shape, operands,
                       resultType(floatFor(*type), hint));
}

Operand Importer::emitAttention(const Expr &call, const AttentionShape &shape,
                                llvm::ArrayRef<const Operand *> operands,
                                Type element) {
  mlir::RankedTensorType type = tensorType(operands, shape.result, element);
  if (!type)
    return {};
  auto real = [&](std::optional<double> value) {
    return value ? builder.getF64FloatAttr(*value) : mlir::FloatAttr();
  };
  auto op = shd::AttentionOp::create(
      builder, statement->loc, type, /*logsumexp=*/mlir::Type(), shape.q.value,
      shape.k.value, shape.v.value, shape.at.value, shape.keyAt.value,
      shape.sink.value, shape.bias.value, mlir::ValueRange(),
      indexing(operands, shape.result), shape.head, shape.key, shape.query,
      shape.causal ? builder.getUnitAttr() : mlir::UnitAttr(),
      shape.window ? builder.getI64IntegerAttr(*shape.window)
                   : mlir::IntegerAttr(),
      real(shape.scale), real(shape.softcap));
  return record(op, operands, shape.result, call.range);
}

//===----------------------------------------------------------------------===//
// Positions and losses
//===----------------------------------------------------------------------===//

Operand Importer::functionRope(const Expr &call, const Slots &slots,
                               const Context &context) {
  IndexNames brackets = bracketNames(call);
  Context inner = argumentContext(context, brackets);
  Operand x = requireTensor(evaluate(*slots[0], inner));
  Operand at;
  if (slots[1])
    at = requireTensor(evaluate(*slots[1], inner));
  std::optional<Scalar> theta = Scalar::get(10000);
  if (slots[2])
    theta = evaluateConstant(*slots[2]);
  if (x.isPoison() || (slots[1] && at.isPoison()) || !theta ||
      !requireIndices(x, brackets, call.range))
    return {};
  if ((brackets.size() == 2) == (slots[1] != nullptr)) {
    auto diag = files.error(call.range)
                << "'rope' takes positions either along an index or from `at`";
    diag.attachNote() << "it is written `" << findFunction("rope")->usage
                      << "`";
    return {};
  }
  StringAttr head = brackets.back();
  size_t dim = llvm::find(x.indices, head) - x.indices.begin();
  if (x.extents()[dim] % 2 != 0) {
    files.error(call.range)
        << "'rope' pairs the elements of '" << head.getValue()
        << "', so its extent must be even, but is " << x.extents()[dim];
    return {};
  }
  llvm::SmallVector<const Operand *> operands{&x};
  if (slots[1]) {
    if (!requireIntegers(at, "positions") ||
        !requireIndices(x, at.indices, at.range) ||
        !checkPlacements({&x, &at}, "rope"))
      return {};
    if (contains(at.indices, head)) {
      files.error(at.range) << "the positions have the index '"
                            << head.getValue() << "' of the pairs";
      return {};
    }
    operands.push_back(&at);
  }
  auto op =
      shd::RopeOp::create(builder, statement->loc, x.value.getType(), x.value,
                          at.value, indexing(operands, x.indices), head,
                          slots[1] ? StringAttr() : brackets.front(),
                          builder.getF64FloatAttr(theta->value()));
  return record(op, operands, x.indices, call.range);
}

/// `chunks=8`, `chunks=all`; nothing (and an error) for anything else.
std::optional<int64_t> Importer::readChunks(const Expr *expr,
                                            llvm::ArrayRef<int64_t> labels) {
  if (!expr)
    return shd::kNoChunks;
  if (expr->kind == Expr::Kind::Ref && !expr->indices && expr->name == "all")
    return shd::kAllChunks;
  bool none = false;
  std::optional<Scalar> number = evaluateConstant(*expr, &none);
  if (none)
    return shd::kNoChunks;
  if (!number)
    return std::nullopt;
  std::optional<int64_t> chunks = number->asInteger();
  if (!chunks || *chunks < 1) {
    files.error(expr->range)
        << "'chunks' expects 'all' or an integer of at least 1";
    return std::nullopt;
  }
  uint64_t count = 1;
  for (int64_t extent : labels)
    count = llvm::SaturatingMultiply<uint64_t>(count, extent);
  if (count % uint64_t(*chunks) != 0) {
    files.error(expr->range)
        << "'chunks' is " << *chunks << ", which does not divide the " << count
        << " labels";
    return std::nullopt;
  }
  return chunks;
}

Operand Importer::functionCrossEntropy(const Expr &call, const Slots &slots,
                                       const Context &context,
                                       const Target *hint) {
  IndexNames over = bracketNames(call);
  Context inner = argumentContext(context, over);
  Operand logits = requireTensor(evaluate(*slots[0], inner));
  Operand labels = requireTensor(evaluate(*slots[1], inner));
  if (logits.isPoison() || labels.isPoison() ||
      !requireIndices(logits, over, call.range) ||
      !requireIntegers(labels, "labels"))
    return {};
  IndexNames result = logits.indices;
  llvm::erase(result, over[0]);
  if (!sameSet(result, labels.indices)) {
    auto diag = files.error(labels.range)
                << "the labels have indices " << toString(labels.indices)
                << ", but the logits without '" << over[0].getValue()
                << "' have " << toString(result);
    return {};
  }
  std::optional<int64_t> chunks = readChunks(slots[2], labels.extents());
  llvm::SmallVector<const Operand *> operands{&logits, &labels};
  if (!chunks || !checkPlacements(operands, "cross_entropy"))
    return {};
  Type element = resultType(floatFor(logits.elementType()), hint);
  mlir::RankedTensorType type = tensorType(operands, result, element);
  if (!type)
    return {};
  auto op = shd::CrossEntropyOp::create(
      builder, statement->loc, type, logits.value, labels.value,
      mlir::ValueRange(), indexing(operands, result), over[0],
      builder.getI64IntegerAttr(*chunks));
  return record(op, operands, result, call.range);
}

//===----------------------------------------------------------------------===//
// Layout
//===----------------------------------------------------------------------===//

/// Extents of the dims that a function makes; false after an error.
bool Importer::madeExtents(llvm::ArrayRef<ast::Name> names, IndexNames &made,
                           int64_t &product) {
  product = 1;
  for (const ast::Name &name : names) {
    auto extent = dims->extent(name.text, name.range);
    if (!extent)
      return false;
    if (__builtin_mul_overflow(product, *extent, &product)) {
      files.error(name.range) << "the extents multiply to more than 64 bits";
      return false;
    }
    if (contains(made, str(name.text))) {
      files.error(name.range) << "index '" << name.text << "' is given twice";
      return false;
    }
    made.push_back(str(name.text));
  }
  return true;
}

/// The names of a group that its argument has; false after an error.
bool Importer::groupNames(const Operand &input, llvm::ArrayRef<ast::Name> names,
                          IndexNames &result) {
  for (const ast::Name &name : names) {
    StringAttr attr = str(name.text);
    if (!requireIndices(input, attr, name.range))
      return false;
    if (contains(result, attr)) {
      files.error(name.range) << "index '" << name.text << "' is given twice";
      return false;
    }
    result.push_back(attr);
  }
  return true;
}

static int64_t extentOf(const Operand &operand, StringAttr name) {
  return operand
      .extents()[llvm::find(operand.indices, name) - operand.indices.begin()];
}

/// `result` has no index twice, or the error is reported.
bool Importer::checkMade(const IndexNames &result, llvm::SMRange range) {
  for (auto [i, name] : llvm::enumerate(result))
    if (llvm::is_contained(llvm::ArrayRef(result).take_front(i), name)) {
      files.error(range) << "the result would have index '" << name.getValue()
                         << "' twice";
      return false;
    }
  return true;
}

/// The type of a result whose indices the functions of this section have made:
/// `name` with `extent` is new, all others are the input's.
static mlir::RankedTensorType
madeType(const Operand &input, IndexNamesRef result,
         llvm::function_ref<std::optional<int64_t>(StringAttr)> made) {
  llvm::SmallVector<int64_t> shape;
  for (StringAttr name : result) {
    auto extent = made(name);
    shape.push_back(extent ? *extent : extentOf(input, name));
  }
  return mlir::RankedTensorType::get(shape, input.elementType());
}

Operand Importer::functionSplit(const Expr &call, const Slots &slots,
                                const Context &context) {
  const ast::FunctionIndex &group = call.functionIndices[0];
  if (group.from.size() != 1) {
    files.error(group.range) << "'split' splits one index";
    return {};
  }
  StringAttr whole = str(group.from[0].text);
  Operand input =
      requireTensor(evaluate(*slots[0], argumentContext(context, whole)));
  IndexNames parts;
  int64_t product = 1;
  if (input.isPoison() || !requireIndices(input, whole, group.range) ||
      !madeExtents(group.to, parts, product))
    return {};
  if (product != extentOf(input, whole)) {
    files.error(group.range)
        << "the extents of " << toString(parts) << " multiply to " << product
        << ", but '" << whole.getValue() << "' has extent "
        << extentOf(input, whole);
    return {};
  }
  IndexNames result;
  for (StringAttr name : input.indices)
    if (name == whole)
      result.append(parts);
    else
      result.push_back(name);
  if (!checkMade(result, group.range))
    return {};
  auto type = madeType(input, result, [&](StringAttr name) {
    return contains(parts, name) ? dims->extent(name, group.range)
                                 : std::nullopt;
  });
  auto op =
      shd::SplitOp::create(builder, statement->loc, type, input.value, whole,
                           strings(parts), indexing({&input}, result));
  return record(op, {&input}, result, call.range);
}

Operand Importer::functionMerge(const Expr &call, const Slots &slots,
                                const Context &context) {
  const ast::FunctionIndex &group = call.functionIndices[0];
  if (group.to.size() != 1) {
    files.error(group.range) << "'merge' makes one index";
    return {};
  }
  IndexNames bracket;
  for (const ast::Name &name : group.from)
    bracket.push_back(str(name.text));
  Operand input =
      requireTensor(evaluate(*slots[0], argumentContext(context, bracket)));
  IndexNames parts, made;
  int64_t extent = 1;
  if (input.isPoison() || !groupNames(input, group.from, parts) ||
      !madeExtents(group.to, made, extent))
    return {};
  int64_t product = 1;
  for (StringAttr part : parts)
    product *= extentOf(input, part);
  if (product != extent) {
    files.error(group.range)
        << "the extents of " << toString(parts) << " multiply to " << product
        << ", but '" << made[0].getValue() << "' has extent " << extent;
    return {};
  }
  // The parts stand next to each other, where the major one does.
  IndexNames ordered, result;
  for (StringAttr name : input.indices) {
    if (name == parts[0]) {
      ordered.append(parts);
      result.append(made);
    } else if (!contains(parts, name)) {
      ordered.push_back(name);
      result.push_back(name);
    }
  }
  if (!checkMade(result, group.range))
    return {};
  if (ordered != input.indices)
    input = emitElementwise(shd::Function::Copy, {&input}, ordered,
                            input.elementType(), call.range);
  auto type = madeType(input, result, [&](StringAttr name) {
    return name == made[0] ? std::optional(extent) : std::nullopt;
  });
  auto op =
      shd::MergeOp::create(builder, statement->loc, type, input.value,
                           strings(parts), made[0], indexing({&input}, result));
  return record(op, {&input}, result, call.range);
}

Operand Importer::functionSlice(const Expr &call, const Slots &slots,
                                const Context &context) {
  const ast::FunctionIndex &range = call.functionIndices[0];
  StringAttr whole = str(range.from[0].text);
  Operand input =
      requireTensor(evaluate(*slots[0], argumentContext(context, whole)));
  auto low = dims->evaluate(*range.low), high = dims->evaluate(*range.high);
  if (input.isPoison() || !low || !high ||
      !requireIndices(input, whole, range.range))
    return {};
  int64_t extent = extentOf(input, whole);
  if (*low < 0 || *low >= *high || *high > extent) {
    files.error(range.range)
        << "the range " << *low << ".." << *high << " is empty or outside of '"
        << whole.getValue() << "', whose extent is " << extent;
    return {};
  }
  const ast::Name &partName = range.to.empty() ? range.from[0] : range.to[0];
  auto made = dims->extent(partName.text, partName.range);
  if (!made)
    return {};
  if (*made != *high - *low) {
    auto diag = files.error(range.range)
                << "the range " << *low << ".." << *high << " has "
                << *high - *low << " elements, but '" << partName.text
                << "' has extent " << *made;
    if (range.to.empty())
      diag.attachNote() << "name the part: `slice[I: lo..hi -> J](x)`";
    return {};
  }
  StringAttr part = str(partName.text);
  IndexNames result = input.indices;
  llvm::replace(result, whole, part);
  if (!checkMade(result, range.range))
    return {};
  auto type = madeType(input, result, [&](StringAttr name) {
    return name == part ? made : std::nullopt;
  });
  auto op =
      shd::SliceOp::create(builder, statement->loc, type, input.value, whole,
                           {*low, *high}, part, indexing({&input}, result));
  return record(op, {&input}, result, call.range);
}

Operand Importer::functionConcat(const Expr &call, const Context &context) {
  const ast::FunctionIndex &group = call.functionIndices[0];
  if (group.to.size() != 1 || group.from.size() != call.arguments.size()) {
    auto diag = files.error(group.range)
                << "'concat' names one index for each argument and makes one";
    diag.attachNote() << "it is written `" << findFunction("concat")->usage
                      << "`";
    return {};
  }
  std::vector<Operand> inputs;
  IndexNames parts, made;
  int64_t extent = 1, total = 0;
  bool ok = madeExtents(group.to, made, extent);
  for (auto [argument, name] : llvm::zip(call.arguments, group.from)) {
    StringAttr part = str(name.text);
    parts.push_back(part);
    inputs.push_back(requireTensor(
        evaluate(*argument.value, argumentContext(context, part))));
    if (inputs.back().isPoison() ||
        !requireIndices(inputs.back(), part, name.range)) {
      ok = false;
      continue;
    }
    total += extentOf(inputs.back(), part);
  }
  if (!ok)
    return {};
  if (total != extent) {
    files.error(group.range) << "the parts have " << total << " elements, but '"
                             << made[0].getValue() << "' has extent " << extent;
    return {};
  }
  auto resultOf = [&](size_t i) {
    IndexNames names = inputs[i].indices;
    llvm::replace(names, parts[i], made[0]);
    return names;
  };
  IndexNames result = resultOf(0);
  llvm::SmallVector<Operand *> typed;
  llvm::SmallVector<const Operand *> operands;
  llvm::SmallVector<mlir::Value> values;
  for (auto [i, input] : llvm::enumerate(inputs)) {
    if (!sameSet(resultOf(i), result)) {
      auto diag = files.error(input.range)
                  << "arguments of 'concat' differ in other indices: "
                  << toString(inputs[0].indices) << " and "
                  << toString(input.indices);
      return {};
    }
    typed.push_back(&input);
    operands.push_back(&input);
    values.push_back(input.value);
  }
  auto type = commonOperandType(typed, call.range);
  if (!type || !checkMade(result, group.range))
    return {};
  auto tensor = madeType(inputs[0], result, [&](StringAttr name) {
    return name == made[0] ? std::optional(extent) : std::nullopt;
  });
  auto op = shd::ConcatOp::create(builder, statement->loc, tensor.clone(*type),
                                  values, strings(parts), made[0],
                                  indexing(operands, result));
  return record(op, operands, result, call.range);
}

Operand Importer::functionIota(StringAttr index, llvm::SMRange range) {
  auto extent = dims->extent(index.getValue(), range);
  if (!extent)
    return {};
  auto type = mlir::RankedTensorType::get({*extent}, i32());
  auto op =
      shd::IotaOp::create(builder, statement->loc, type, indexing({}, index));
  return record(op, {}, IndexNames{index}, range);
}
