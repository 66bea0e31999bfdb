//===- Functions.cpp - Calls of functions ---------------------------------===//
//
// Matching of arguments, and the functions that work element by element or
// along indices. Those with a structure of their own are in
// StructuredFunctions.cpp.
//
//===----------------------------------------------------------------------===//

#include "Importer.h"
#include <cmath>

using namespace shardc;
using ast::Expr;
using mlir::StringAttr;
using mlir::Type;

//===----------------------------------------------------------------------===//
// Matching
//===----------------------------------------------------------------------===//

void Importer::reportUnknownFunction(const Expr &call) {
  auto diag = files.error(call.nameRange)
              << "unknown function or layer '" << call.name << "'";
  std::vector<llvm::StringRef> names = functionNames();
  for (const ast::LayerDecl *layer : layerOrder)
    names.push_back(layer->name.text);
  if (auto type = likelyElementType(call.name))
    diag.attachNote() << "did you mean '" << *type << "'?";
  else if (auto near = likelyName(call.name, names))
    diag.attachNote() << "did you mean '" << *near << "'?";
}

Operand Importer::evaluateCall(const Expr &call, const Context &context,
                               const Target *hint) {
  if (shd::typeFromName(files.getContext(), call.name))
    return functionCast(call, context, hint);
  if (call.name == "iota" || call.name == "size")
    return evaluateIndexFunction(call);
  if (const FunctionInfo *info = findFunction(call.name))
    return evaluateFunction(call, *info, context, hint);
  if (!layers.contains(call.name)) {
    reportUnknownFunction(call);
    return {};
  }
  auto results = callLayer(call);
  if (!results)
    return {};
  if (results->size() != 1) {
    files.error(call.range) << "layer '" << call.name << "' has "
                            << results->size() << " results, expected one here";
    return {};
  }
  return results->front();
}

/// `size[I]` and `iota[I]`.
Operand Importer::evaluateIndexFunction(const Expr &call) {
  bool isPlain =
      call.functionIndices.size() == 1 && call.arguments.empty() &&
      call.functionIndices[0].kind == ast::FunctionIndex::Kind::Plain;
  if (!isPlain) {
    files.error(call.range)
        << "'" << call.name << "' is written `" << call.name << "[I]`";
    return {};
  }
  const ast::FunctionIndex &index = call.functionIndices[0];
  if (index.placement) {
    files.error(index.placement->range)
        << "placements are not allowed in the brackets of a function";
    return {};
  }
  if (call.name == "iota")
    return functionIota(str(index.from[0].text), call.range);
  Operand number;
  number.range = call.range;
  if (auto extent = dims->extent(index.from[0].text, index.range))
    number.number = Scalar::get(*extent);
  return number;
}

bool Importer::checkBrackets(const Expr &call, const FunctionInfo &info) {
  auto fail = [&](llvm::SMRange range, const llvm::Twine &what) {
    auto diag = files.error(range) << what;
    diag.attachNote() << "it is written `" << info.usage << "`";
    return false;
  };
  size_t count = call.functionIndices.size();
  if (count < info.minBrackets || count > info.maxBrackets) {
    if (count == 0)
      return fail(call.nameRange,
                  "'" + info.name + "' needs indices in brackets");
    if (info.maxBrackets == 0)
      return fail(call.functionIndices[0].range,
                  "'" + info.name + "' takes no indices in brackets");
    return fail(call.functionIndices[0].range,
                "'" + info.name + "' does not take " + llvm::Twine(count) +
                    " indices");
  }
  static constexpr ast::FunctionIndex::Kind kinds[] = {
      ast::FunctionIndex::Kind::Plain, ast::FunctionIndex::Kind::Plain,
      ast::FunctionIndex::Kind::Group, ast::FunctionIndex::Kind::Range};
  for (const ast::FunctionIndex &index : call.functionIndices) {
    if (index.placement) {
      files.error(index.placement->range)
          << "placements are not allowed in the brackets of a function";
      return false;
    }
    if (index.kind != kinds[unsigned(info.brackets)])
      return fail(index.range,
                  "'" + info.name + "' takes another form of brackets");
  }
  return true;
}

std::optional<Importer::Slots>
Importer::matchParameters(const Expr &call, const FunctionInfo &info) {
  Slots slots(info.parameters.size(), nullptr);
  bool ok = true;
  size_t position = 0;
  auto fail = [&](llvm::SMRange range, const llvm::Twine &what) {
    auto diag = files.error(range) << what;
    diag.attachNote() << "it is written `" << info.usage << "`";
    ok = false;
  };
  for (const ast::Argument &argument : call.arguments) {
    size_t slot = position;
    if (!argument.name.empty()) {
      const auto *it =
          llvm::find_if(info.parameters, [&](const FunctionParameter &p) {
            return p.name == argument.name;
          });
      slot = it - info.parameters.begin();
      if (it == info.parameters.end()) {
        fail(argument.nameRange,
             "'" + info.name + "' has no argument '" + argument.name + "'");
        continue;
      }
    } else if (++position > info.parameters.size()) {
      fail(argument.range, "'" + info.name + "' takes at most " +
                               counted(info.parameters.size(), "argument") +
                               ", but has " +
                               llvm::Twine(call.arguments.size()));
      break;
    }
    if (slots[slot])
      fail(argument.range, "argument '" + info.parameters[slot].name +
                               "' of '" + info.name + "' is given twice");
    slots[slot] = argument.value.get();
  }
  for (auto [slot, parameter] : llvm::zip(slots, info.parameters))
    if (ok && parameter.required && !slot)
      fail(call.range,
           "missing argument '" + parameter.name + "' of '" + info.name + "'");
  if (!ok)
    return std::nullopt;
  return slots;
}

Operand Importer::evaluateFunction(const Expr &call, const FunctionInfo &info,
                                   const Context &context, const Target *hint) {
  if (!checkBrackets(call, info))
    return {};
  if (info.kind == FunctionKind::Concat)
    return functionConcat(call, context);
  auto slots = matchParameters(call, info);
  if (!slots)
    return {};
  switch (info.kind) {
  case FunctionKind::Elementwise:
    return functionElementwise(call, info, *slots, context, hint);
  case FunctionKind::Reduction:
    return functionReduce(call, info, *slots, context, hint);
  case FunctionKind::Normalization:
    return functionNormalize(call, info, *slots, context, hint);
  case FunctionKind::Attention:
    return functionAttention(call, *slots, context, hint);
  case FunctionKind::Rope:
    return functionRope(call, *slots, context);
  case FunctionKind::CrossEntropy:
    return functionCrossEntropy(call, *slots, context, hint);
  case FunctionKind::TopK:
    return functionTopK(call, *slots, context);
  case FunctionKind::Dispatch:
    return functionDispatch(call, *slots, context, hint);
  case FunctionKind::Combine:
    return functionCombine(call, *slots, context, hint);
  case FunctionKind::Split:
    return functionSplit(call, *slots, context);
  case FunctionKind::Merge:
    return functionMerge(call, *slots, context);
  case FunctionKind::Slice:
    return functionSlice(call, *slots, context);
  case FunctionKind::Concat:
    break;
  }
  llvm_unreachable("unknown kind of function");
}

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

IndexNames Importer::bracketNames(const Expr &call) {
  IndexNames names;
  for (const ast::FunctionIndex &index : call.functionIndices)
    names.push_back(str(index.from[0].text));
  return names;
}

std::optional<Type>
Importer::commonOperandType(llvm::ArrayRef<Operand *> operands,
                            llvm::SMRange range) {
  Type common;
  for (Operand *operand : operands) {
    if (operand->number)
      continue;
    Type type = operand->elementType();
    auto both = common ? commonType(common, type) : type;
    if (!both) {
      auto diag = files.error(range)
                  << "operands of types " << shd::typeName(common) << " and "
                  << shd::typeName(type) << " have no common type";
      diag.attachNote() << "cast one of them, for example `bf16(...)`";
      return std::nullopt;
    }
    common = *both;
  }
  // Numbers take the type of the tensors; among themselves, a real one wins.
  Type result = common;
  for (Operand *operand : operands)
    if (operand->number) {
      Type type = literalType(files.getContext(), *operand->number, common);
      result = result ? *commonType(result, type) : type;
    }
  for (Operand *operand : operands)
    if (operand->number) {
      *operand = materialize(*operand, isBool(result) ? i32() : result);
      if (operand->isPoison())
        return std::nullopt;
    }
  return result;
}

Type Importer::resultType(Type natural, const Target *hint) {
  if (!hint || !hint->elementType || hint->elementType == natural)
    return natural;
  Type wanted = hint->elementType;
  // A cast of its own makes scales.
  if (shd::isScale(wanted))
    return natural;
  bool sameClass = (isFloat(wanted) && isFloat(natural)) ||
                   (isInteger(wanted) && isInteger(natural));
  if (!sameClass)
    return natural;
  if (!hint->widenOnly)
    return wanted;
  auto common = commonType(wanted, natural);
  return common && *common == wanted ? wanted : natural;
}

bool Importer::requireIndices(const Operand &operand, IndexNamesRef names,
                              llvm::SMRange range) {
  for (StringAttr name : names)
    if (!contains(operand.indices, name)) {
      files.error(range) << "index '" << name.getValue()
                         << "' is not one of the argument's "
                         << toString(operand.indices);
      return false;
    }
  return true;
}

Operand Importer::requireTensor(Operand operand) {
  if (!operand.number)
    return operand;
  return materialize(operand,
                     literalType(files.getContext(), *operand.number, nullptr));
}

//===----------------------------------------------------------------------===//
// Elementwise functions and casts
//===----------------------------------------------------------------------===//

/// The function of numbers, so that `1 / sqrt(size[H])` stays a number.
static std::optional<Scalar> fold(shd::Function function,
                                  llvm::ArrayRef<Scalar> x) {
  switch (function) {
  case shd::Function::Sqrt:
    return Scalar::getReal(std::sqrt(x[0].value()));
  case shd::Function::Rsqrt:
    return Scalar::getReal(1 / std::sqrt(x[0].value()));
  case shd::Function::Exp:
    return Scalar::getReal(std::exp(x[0].value()));
  case shd::Function::Log:
    return Scalar::getReal(std::log(x[0].value()));
  case shd::Function::Square:
    return x[0] * x[0];
  case shd::Function::Abs:
    return x[0].isNegative() ? -x[0] : x[0];
  case shd::Function::Neg:
    return -x[0];
  case shd::Function::StopGradient:
    return x[0];
  case shd::Function::Maximum:
    return x[0].value() < x[1].value() ? x[1] : x[0];
  case shd::Function::Minimum:
    return x[1].value() < x[0].value() ? x[1] : x[0];
  default:
    return std::nullopt;
  }
}

/// Functions whose values are not integers even for integers.
static bool isReal(shd::Function function) {
  switch (function) {
  case shd::Function::Gelu:
  case shd::Function::Silu:
  case shd::Function::Sigmoid:
  case shd::Function::Tanh:
  case shd::Function::Exp:
  case shd::Function::Log:
  case shd::Function::Sqrt:
  case shd::Function::Rsqrt:
    return true;
  default:
    return false;
  }
}

Operand Importer::functionElementwise(const Expr &call,
                                      const FunctionInfo &info,
                                      const Slots &slots,
                                      const Context &context,
                                      const Target *hint) {
  auto function = shd::Function(info.code);
  std::vector<Operand> arguments;
  bool ok = true, numbers = true;
  for (const Expr *slot : slots) {
    arguments.push_back(evaluateArgument(*slot, context));
    ok &= !arguments.back().isPoison();
    numbers &= arguments.back().number.has_value();
  }
  if (!ok)
    return {};
  if (numbers) {
    llvm::SmallVector<Scalar> scalars;
    for (const Operand &argument : arguments)
      scalars.push_back(*argument.number);
    if (auto folded = fold(function, scalars)) {
      Operand result;
      result.number = *folded;
      result.range = call.range;
      return result;
    }
  }
  llvm::SmallVector<Operand *> values;
  llvm::SmallVector<const Operand *> operands;
  IndexNames result;
  if (function == shd::Function::Where) {
    arguments[0] = requireTensor(arguments[0]);
    if (arguments[0].isPoison())
      return {};
  }
  for (Operand &argument : arguments) {
    operands.push_back(&argument);
    if (function != shd::Function::Where || &argument != &arguments[0])
      values.push_back(&argument);
  }
  auto type = commonOperandType(values, call.range);
  if (!type || !checkPlacements(operands, info.name))
    return {};
  for (const Operand *operand : operands)
    addNames(result, operand->indices);
  Type natural = isReal(function) ? floatFor(*type) : *type;
  return emitElementwise(function, operands, arrange(result, hint, true),
                         resultType(natural, hint), call.range);
}

Operand Importer::functionCast(const Expr &call, const Context &context,
                               const Target *hint) {
  if (call.hasFunctionIndices || call.arguments.size() != 1 ||
      !call.arguments[0].name.empty()) {
    files.error(call.range) << "a cast takes one argument";
    return {};
  }
  Operand argument =
      requireTensor(evaluateArgument(*call.arguments[0].value, context));
  if (argument.isPoison())
    return {};
  Type type = shd::typeFromName(files.getContext(), call.name);
  return emitElementwise(shd::Function::Cast, {&argument},
                         arrange(argument.indices, hint, true), type,
                         call.range);
}

//===----------------------------------------------------------------------===//
// Reductions and normalisations
//===----------------------------------------------------------------------===//

Operand Importer::functionReduce(const Expr &call, const FunctionInfo &info,
                                 const Slots &slots, const Context &context,
                                 const Target *hint) {
  IndexNames over = bracketNames(call);
  Operand input =
      requireTensor(evaluate(*slots[0], argumentContext(context, over)));
  if (input.isPoison() || !requireIndices(input, over, call.range))
    return {};
  IndexNames result;
  llvm::copy_if(input.indices, std::back_inserter(result),
                [&](StringAttr name) { return !contains(over, name); });
  auto kind = shd::Reduction(info.code);
  Type type = input.elementType();
  if (kind == shd::Reduction::ArgMax)
    type = i32();
  else if (kind == shd::Reduction::Mean)
    type = floatFor(type);
  return emitReduce(kind, input, arrange(result, hint, false),
                    resultType(type, hint), call.range);
}

Operand Importer::functionNormalize(const Expr &call, const FunctionInfo &info,
                                    const Slots &slots, const Context &context,
                                    const Target *hint) {
  IndexNames over = bracketNames(call);
  Context inner = argumentContext(context, over);
  std::vector<Operand> inputs;
  std::optional<double> eps;
  bool ok = true;
  for (auto [slot, parameter] : llvm::zip(slots, info.parameters)) {
    if (!slot)
      continue;
    if (parameter.name == "eps") {
      auto number = evaluateConstant(*slot);
      ok &= number.has_value();
      eps = number ? number->value() : 0;
      continue;
    }
    // The operation tells its operands by their positions.
    if (parameter.name == "bias" && inputs.size() < 2) {
      files.error(slot->range) << "a bias of 'layernorm' needs a scale";
      return {};
    }
    inputs.push_back(requireTensor(evaluate(*slot, inner)));
    ok &= !inputs.back().isPoison();
  }
  if (!ok)
    return {};
  llvm::SmallVector<const Operand *> operands;
  llvm::SmallVector<Operand *> typed;
  llvm::SmallVector<mlir::Value> values;
  for (Operand &input : inputs) {
    operands.push_back(&input);
    typed.push_back(&input);
    values.push_back(input.value);
  }
  auto kind = shd::Normalization(info.code);
  IndexNames result = inputs[0].indices;
  if (kind == shd::Normalization::LogSumExp)
    llvm::erase_if(result,
                   [&](StringAttr name) { return contains(over, name); });
  auto type = commonOperandType(typed, call.range);
  if (!type || !checkPlacements(operands, info.name))
    return {};
  mlir::RankedTensorType resultTensor =
      tensorType(operands, result, resultType(floatFor(*type), hint));
  if (!resultTensor)
    return {};
  auto op = shd::NormalizeOp::create(
      builder, statement->loc, resultTensor, kind, values, strings(over),
      mlir::ValueRange(), indexing(operands, result),
      llvm::APFloat(eps.value_or(1e-6)));
  return record(op, operands, result, call.range);
}
