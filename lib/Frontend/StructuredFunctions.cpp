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
  llvm::SmallVector<Option, 1> options;
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
  std::optional<int64_t> keys = shape.k.extent(shape.key);
  if (shape.at.value || !(shape.causal || shape.window) || !keys)
    return true;
  IndexNames candidates;
  for (auto [name, extent] : llvm::zip(shape.q.indices, shape.q.extents()))
    if (!contains(shape.k.indices, name) && extent == *keys)
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
         << *keys << " of '" << shape.key.getValue() << "'";
  else
    diag << "several indices of q may give the positions of the queries: "
         << toString(candidates);
  diag.attachNote() << "say which, for example `at=iota[T]`";
  return false;
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
    if (!shape.window) {
      files.error(slots[4]->range)
          << "'window' expects an integer, found " << toString(*window);
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
  if (!ok || llvm::any_of(operands, isPoison) || !findQueryIndex(call, shape))
    return {};
  for (StringAttr name : shape.q.indices)
    if (name != shape.head)
      shape.result.push_back(name);
  for (StringAttr name : shape.v.indices)
    if (name != shape.key)
      addNames(shape.result, name);
  if (slots[4])
    shape.options.push_back({"window", slots[4]->range});
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
  return record(op, operands, shape.result, call.range, shape.options);
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
  if (x.isPoison() || (slots[1] && at.isPoison()) || !theta)
    return {};
  llvm::SmallVector<const Operand *> operands{&x};
  if (slots[1])
    operands.push_back(&at);
  if (!checkPlacements(operands, "rope"))
    return {};
  auto op = shd::RopeOp::create(
      builder, statement->loc, x.value.getType(), x.value, at.value,
      indexing(operands, x.indices), brackets.back(),
      brackets.size() == 2 ? brackets[0] : StringAttr(),
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
  if (logits.isPoison() || labels.isPoison())
    return {};
  IndexNames result = logits.indices;
  llvm::erase(result, over[0]);
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

bool Importer::madeNames(llvm::ArrayRef<ast::Name> names, IndexNames &made) {
  for (const ast::Name &name : names) {
    if (!dims->extent(name.text, name.range))
      return false;
    made.push_back(str(name.text));
  }
  return true;
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
  IndexNames parts, result;
  if (input.isPoison() || !madeNames(group.to, parts))
    return {};
  for (StringAttr name : input.indices)
    if (name == whole)
      result.append(parts);
    else
      result.push_back(name);
  mlir::RankedTensorType type =
      tensorType({&input}, result, input.elementType());
  if (!type)
    return {};
  auto op =
      shd::SplitOp::create(builder, statement->loc, type, input.value, whole,
                           strings(parts), indexing({&input}, result));
  return record(op, {&input}, result, call.range, Option("parts", group.range));
}

Operand Importer::functionMerge(const Expr &call, const Slots &slots,
                                const Context &context) {
  const ast::FunctionIndex &group = call.functionIndices[0];
  if (group.to.size() != 1) {
    files.error(group.range) << "'merge' makes one index";
    return {};
  }
  IndexNames parts, made;
  for (const ast::Name &name : group.from)
    parts.push_back(str(name.text));
  Operand input =
      requireTensor(evaluate(*slots[0], argumentContext(context, parts)));
  if (input.isPoison() || !requireIndices(input, parts, group.range) ||
      !madeNames(group.to, made))
    return {};
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
  mlir::RankedTensorType type =
      tensorType({&input}, result, input.elementType());
  if (!type)
    return {};
  if (ordered != input.indices)
    input = emitElementwise(shd::Function::Copy, {&input}, ordered,
                            input.elementType(), call.range);
  if (input.isPoison())
    return {};
  auto op =
      shd::MergeOp::create(builder, statement->loc, type, input.value,
                           strings(parts), made[0], indexing({&input}, result));
  return record(op, {&input}, result, call.range, Option("parts", group.range));
}

Operand Importer::functionSlice(const Expr &call, const Slots &slots,
                                const Context &context) {
  const ast::FunctionIndex &range = call.functionIndices[0];
  StringAttr whole = str(range.from[0].text);
  Operand input =
      requireTensor(evaluate(*slots[0], argumentContext(context, whole)));
  auto low = dims->evaluate(*range.low), high = dims->evaluate(*range.high);
  IndexNames made;
  if (input.isPoison() || !low || !high ||
      !madeNames(range.to.empty() ? range.from : range.to, made))
    return {};
  IndexNames result = input.indices;
  llvm::replace(result, whole, made[0]);
  mlir::RankedTensorType type =
      tensorType({&input}, result, input.elementType());
  if (!type)
    return {};
  auto op =
      shd::SliceOp::create(builder, statement->loc, type, input.value, whole,
                           {*low, *high}, made[0], indexing({&input}, result));
  return record(op, {&input}, result, call.range, Option("range", range.range));
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
  bool ok = madeNames(group.to, made);
  for (auto [argument, name] : llvm::zip(call.arguments, group.from)) {
    StringAttr part = str(name.text);
    parts.push_back(part);
    inputs.push_back(requireTensor(
        evaluate(*argument.value, argumentContext(context, part))));
    ok &= !inputs.back().isPoison();
  }
  if (!ok)
    return {};
  IndexNames result = inputs[0].indices;
  llvm::replace(result, parts[0], made[0]);
  llvm::SmallVector<Operand *> typed;
  llvm::SmallVector<const Operand *> operands;
  llvm::SmallVector<mlir::Value> values;
  for (Operand &input : inputs) {
    typed.push_back(&input);
    operands.push_back(&input);
    values.push_back(input.value);
  }
  auto element = commonOperandType(typed, call.range);
  if (!element)
    return {};
  mlir::RankedTensorType type = tensorType(operands, result, *element);
  if (!type)
    return {};
  auto op = shd::ConcatOp::create(builder, statement->loc, type, values,
                                  strings(parts), made[0],
                                  indexing(operands, result));
  return record(op, operands, result, call.range, Option("parts", group.range));
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
