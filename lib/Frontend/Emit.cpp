//===- Emit.cpp - Operations of the statement being imported --------------===//

#include "Importer.h"
#include "shardc/Dialect/Shd/IR/Places.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace shardc;
using mlir::StringAttr;
using mlir::Type;

//===----------------------------------------------------------------------===//
// Names and places
//===----------------------------------------------------------------------===//

mlir::ArrayAttr Importer::strings(IndexNamesRef names) {
  llvm::SmallVector<mlir::Attribute, 4> attrs(names.begin(), names.end());
  return builder.getArrayAttr(attrs);
}

StringAttr Importer::uniqueName(llvm::StringRef name) {
  unsigned count = ++nameCounts[name];
  return count == 1 ? str(name) : str((name + "." + llvm::Twine(count)).str());
}

std::string Importer::pathTo(llvm::StringRef name) const {
  return frame->path.empty() ? name.str() : frame->path + "." + name.str();
}

int64_t Importer::fileOf(llvm::SMLoc loc) {
  unsigned id = files.getSourceMgr().FindBufferContainingLoc(loc);
  const auto *it = llvm::find(buffers, id);
  return it == buffers.end() ? -1 : it - buffers.begin();
}

int64_t Importer::offsetOf(llvm::SMLoc loc) {
  llvm::SourceMgr &sourceMgr = files.getSourceMgr();
  unsigned id = sourceMgr.FindBufferContainingLoc(loc);
  return loc.getPointer() - sourceMgr.getMemoryBuffer(id)->getBufferStart();
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

mlir::RankedTensorType
Importer::tensorType(llvm::ArrayRef<const Operand *> operands,
                     IndexNamesRef names, Type element) {
  llvm::SMRange range = operands.front()->range;
  llvm::SmallVector<int64_t, 4> shape;
  for (StringAttr name : names) {
    std::optional<int64_t> extent;
    for (const Operand *operand : operands)
      extent = extent ? extent : operand->extent(name);
    // A result index that no operand has broadcasts along a dim of the left
    // side, or is one that the operation makes.
    if (!extent)
      extent = dims->extent(name, range);
    if (!extent)
      return nullptr;
    shape.push_back(*extent);
  }
  if (!checkSize(shape, range,
                 "the result of this operation, " + toString(names) + ","))
    return nullptr;
  return mlir::RankedTensorType::get(shape, element);
}

shd::IndexingAttr Importer::indexing(llvm::ArrayRef<const Operand *> operands,
                                     IndexNamesRef result) {
  llvm::SmallVector<mlir::ArrayAttr, 4> lists;
  for (const Operand *operand : operands)
    lists.push_back(strings(operand->indices));
  return shd::IndexingAttr::get(files.getContext(), lists, strings(result));
}

//===----------------------------------------------------------------------===//
// Bookkeeping
//===----------------------------------------------------------------------===//

Operand Importer::record(mlir::Operation *op,
                         llvm::ArrayRef<const Operand *> operands,
                         IndexNames result, llvm::SMRange range,
                         llvm::ArrayRef<Option> options) {
  llvm::SmallVector<shd::PartPlace, 4> places;
  for (auto [i, operand] : llvm::enumerate(operands))
    places.push_back({int(i), files.location(operand->range)});
  for (const auto &[name, where] : options)
    places.push_back({name, files.location(where)});
  if (mlir::failed(shd::verifyAt(op, files.location(range), places))) {
    files.countError(range);
    return {};
  }
  llvm::SmallVector<int64_t, 4> uses;
  llvm::SmallVector<mlir::Attribute, 4> pins;
  bool pinned = false;
  for (const Operand *operand : operands) {
    uses.push_back(operand->use);
    pinned |= operand->pin != nullptr;
    pins.push_back(operand->pin ? mlir::Attribute(operand->pin)
                                : builder.getUnitAttr());
  }
  llvm::SmallVector<mlir::NamedAttribute, 8> attrs{
      builder.getNamedAttr(shd::kName, statement->name),
      builder.getNamedAttr(shd::kTemporary, builder.getUnitAttr()),
      builder.getNamedAttr(shd::kFile,
                           builder.getI64IntegerAttr(statement->file))};
  if (!operands.empty())
    attrs.push_back(
        builder.getNamedAttr(shd::kUses, builder.getDenseI64ArrayAttr(uses)));
  if (pinned)
    attrs.push_back(
        builder.getNamedAttr(shd::kOperandPins, builder.getArrayAttr(pins)));
  attrs.push_back(builder.getNamedAttr(shd::kCall, str(frame->call)));
  op->setDiscardableAttrs(attrs);

  Operand made;
  made.value = onlyResult(op);
  made.indices = std::move(result);
  made.range = range;
  if (pinned && !checkPartialUse(op, operands))
    made.value = nullptr;
  return made;
}

/// `{+X}` at a use asks for an operation that is linear in exactly the operands
/// that are partial sums over X.
bool Importer::checkPartialUse(mlir::Operation *op,
                               llvm::ArrayRef<const Operand *> operands) {
  llvm::MapVector<StringAttr, uint32_t> partial;
  uint32_t closed = 0;
  for (auto [i, operand] : llvm::enumerate(operands)) {
    if (!operand->pin)
      continue;
    if (!operand->pin.isOpen())
      closed |= 1u << i;
    for (StringAttr axis : operand->pin.getPartial())
      partial[axis] |= 1u << i;
  }
  auto rules = mlir::dyn_cast<shd::ShardingRuleOpInterface>(op);
  if (partial.empty() || !rules)
    return true;
  ShardingRule rule = rules.getShardingRule();
  for (auto [axis, needed] : partial) {
    // Others of the set may be partial too if nothing says that they are not.
    bool linear = llvm::any_of(rule.linearSets, [&](uint32_t set) {
      return (needed & ~set) == 0 && (set & closed & ~needed) == 0;
    });
    if (linear)
      continue;
    unsigned first = llvm::countr_zero(needed);
    auto diag = files.error(operands[first]->range)
                << "the operation is not linear in "
                << (operands[first]->label.empty()
                        ? std::string("this operand")
                        : "'" + operands[first]->label.str() + "'")
                << ", so it cannot take partial sums over " << axis.getValue();
    diag.attachNote() << "drop `{+" << axis.getValue()
                      << "}` here: the compiler then adds the parts first";
    return false;
  }
  return true;
}

bool Importer::checkPartialResult(mlir::Operation *op, shd::ShardingAttr pin,
                                  const ast::Name &name) {
  if (!pin || pin.getPartial().empty())
    return true;
  if (auto rules = mlir::dyn_cast<shd::ShardingRuleOpInterface>(op)) {
    ShardingRule rule = rules.getShardingRule();
    bool sums = llvm::any_of(rule.factors, [](const Factor &factor) {
      return factor.kind == FactorKind::Reduction ||
             factor.kind == FactorKind::StatisticReduction;
    });
    if (sums || !rule.linearSets.empty())
      return true;
  }
  auto diag = files.error(name.range)
              << "`{+" << pin.getPartial().front().getValue()
              << "}` needs a reduction; the defining operation of '"
              << name.text << "' has none";
  diag.attachNote() << "a sum over an index, or an operation that is linear in "
                       "a partial sum, gives one";
  return false;
}

bool Importer::isTemporary(mlir::Operation *op) {
  return op && op->hasAttr(shd::kTemporary);
}

void Importer::setDefinition(mlir::Operation *op, llvm::SMLoc def,
                             shd::ShardingAttr pin) {
  op->removeAttr(shd::kTemporary);
  op->setAttr(shd::kDef, builder.getI64IntegerAttr(offsetOf(def)));
  if (pin)
    shd::setResultPin(onlyResult(op), pin);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

Operand Importer::emitConstant(const Scalar &scalar, Type type,
                               llvm::SMRange range) {
  auto value = constantAttr(scalar, type);
  if (!value) {
    files.error(range) << toString(scalar) << " does not fit the element type "
                       << shd::typeName(type);
    return {};
  }
  auto op = shd::ConstantOp::create(builder, statement->loc, value->getType(),
                                    *value);
  return record(op, {}, {}, range);
}

Operand Importer::materialize(Operand operand, Type type) {
  if (!operand.number)
    return operand;
  return emitConstant(*operand.number, type, operand.range);
}

Operand Importer::emitElementwise(shd::Function function,
                                  llvm::ArrayRef<const Operand *> operands,
                                  IndexNames result, Type type,
                                  llvm::SMRange range) {
  for (const Operand *operand : operands)
    if (operand->isPoison())
      return {};
  mlir::RankedTensorType resultType = tensorType(operands, result, type);
  if (!resultType)
    return {};
  llvm::SmallVector<mlir::Value, 3> values;
  for (const Operand *operand : operands)
    values.push_back(operand->value);
  auto op =
      shd::ElementwiseOp::create(builder, statement->loc, resultType, function,
                                 values, indexing(operands, result));
  return record(op, operands, std::move(result), range);
}

Operand Importer::emitEinsum(const Operand &a, const Operand &b,
                             IndexNames result, Type type,
                             llvm::SMRange range) {
  const Operand *operands[] = {&a, &b};
  mlir::RankedTensorType resultType = tensorType(operands, result, type);
  if (!resultType)
    return {};
  auto op = shd::EinsumOp::create(builder, statement->loc, resultType, a.value,
                                  b.value, indexing(operands, result));
  return record(op, operands, std::move(result), range);
}

Operand Importer::emitReduce(shd::Reduction kind, const Operand &input,
                             IndexNames result, Type type,
                             llvm::SMRange range) {
  const Operand *operands[] = {&input};
  mlir::RankedTensorType resultType = tensorType(operands, result, type);
  if (!resultType)
    return {};
  auto op = shd::ReduceOp::create(builder, statement->loc, resultType, kind,
                                  input.value, mlir::ValueRange(),
                                  indexing(operands, result));
  return record(op, operands, std::move(result), range);
}

Operand Importer::emitReshard(const Operand &input, llvm::SMRange range) {
  const Operand *operands[] = {&input};
  auto op =
      shd::ReshardOp::create(builder, statement->loc, input.value.getType(),
                             input.value, indexing(operands, input.indices));
  return record(op, operands, input.indices, range);
}

mlir::Value Importer::stored(mlir::Value value, llvm::StringRef name,
                             mlir::Location loc) {
  auto argument = llvm::dyn_cast<mlir::BlockArgument>(value);
  bool isIteration = argument && argument.getArgNumber() == 0;
  if (!isIteration && !value.getDefiningOp<shd::ConstantOp>())
    return value;
  mlir::ArrayAttr none = builder.getArrayAttr({});
  auto op = shd::ElementwiseOp::create(
      builder, loc, value.getType(), shd::Function::Copy, value,
      shd::IndexingAttr::get(files.getContext(), {none}, {none}));
  op->setAttr(shd::kName, builder.getStringAttr(name));
  return op;
}

Operand Importer::finish(Operand value, const Target &target) {
  if (value.isPoison())
    return value;
  if (value.number)
    value = materialize(
        value, target.elementType
                   ? target.elementType
                   : literalType(files.getContext(), *value.number, nullptr));
  if (value.isPoison())
    return value;
  IndexNames names = target.indices.value_or(value.indices);
  Type type = target.elementType ? target.elementType : value.elementType();
  bool sameType = type == value.elementType();
  if (names != value.indices || !sameType)
    return emitElementwise(sameType ? shd::Function::Copy : shd::Function::Cast,
                           {&value}, names, type, value.range);
  return value.isReference ? emitReshard(value, value.range) : value;
}
