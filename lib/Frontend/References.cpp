//===- References.cpp - Names of tensors and their index lists ------------===//

#include "Importer.h"

using namespace shardc;
using mlir::StringAttr;

/// `dimension 2`, counted from 1 as people do.
static std::string ordinal(unsigned dim) {
  return "dimension " + std::to_string(dim + 1);
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

void Importer::reportUnknownTensor(llvm::StringRef name, llvm::SMRange range) {
  auto assigned = assignedNames.find(name);
  if (assigned != assignedNames.end()) {
    auto diag = files.error(range)
                << "'" << name << "' is used before it is assigned";
    bool later = assigned->second.Start.getPointer() > range.Start.getPointer();
    diag.attachNote(files.location(assigned->second))
        << (later ? "it is first assigned here"
                  : "it is assigned here, in another scope");
    return;
  }
  auto diag = files.error(range) << "unknown tensor '" << name << "'";
  if (dims->has(name))
    diag.attachNote() << "'" << name << "' is a dim; its extent is `size["
                      << name << "]`";
  else if (auto near = likelyName(name, scope->visibleNames()))
    diag.attachNote() << "did you mean '" << *near << "'?";
}

std::optional<Operand> Importer::iterationNumber(llvm::StringRef name,
                                                 llvm::SMRange range) {
  for (auto &[index, value] : llvm::reverse(frame->iterations))
    if (index.getValue() == name) {
      Operand number;
      number.value = value;
      number.range = range;
      return number;
    }
  return std::nullopt;
}

Operand Importer::evaluateBareName(const ast::Expr &expr,
                                   const Context &context) {
  Binding *binding = scope->find(expr.name);
  if (binding && !context.isPosition) {
    Operand operand;
    operand.value = binding->value;
    operand.indices = binding->indices;
    operand.use = offsetOf(expr.range.Start);
    operand.label = expr.name;
    operand.range = expr.range;
    operand.isReference = true;
    return operand;
  }
  if (auto number = iterationNumber(expr.name, expr.range))
    return *number;
  if (context.isPosition) {
    Operand operand;
    operand.range = expr.range;
    if (auto extent = dims->extent(expr.name, expr.range))
      operand.number = Scalar::get(*extent);
    return operand;
  }
  reportUnknownTensor(expr.name, expr.range);
  // Reported once: later uses are silent.
  scope->local(expr.name).where = expr.range;
  return {};
}

Operand Importer::evaluateReference(const ast::Expr &expr,
                                    const Context &context) {
  if (!expr.indices)
    return evaluateBareName(expr, context);
  Binding *binding = scope->find(expr.name);
  if (!binding) {
    reportUnknownTensor(expr.name, expr.nameRange);
    scope->local(expr.name).where = expr.nameRange;
    return {};
  }
  if (!binding->value)
    return {};
  auto bound = bindList(*expr.indices, expr.name, expr.nameRange, *binding);
  if (!bound)
    return {};
  Operand operand;
  operand.value = binding->value;
  operand.indices = bound->names;
  operand.pin = bound->pin;
  operand.use = offsetOf(expr.range.Start);
  operand.label = expr.name;
  operand.range = expr.range;
  operand.isReference = true;
  return bound->gathered.empty() ? operand : emitGather(operand, *bound);
}

//===----------------------------------------------------------------------===//
// Index lists
//===----------------------------------------------------------------------===//

Operand Importer::evaluatePosition(const ast::Expr &expr, int64_t extent) {
  Context context;
  context.isPosition = true;
  Operand position = evaluate(expr, context);
  if (position.isPoison())
    return position;
  if (position.number) {
    std::optional<int64_t> value = position.number->asInteger();
    if (!value) {
      files.error(expr.range) << "expected an integer as index position, found "
                              << toString(*position.number);
      return {};
    }
    if (*value < 0 || *value >= extent) {
      files.error(expr.range)
          << "position " << *value << " is outside of the dimension's extent "
          << extent;
      return {};
    }
    return emitConstant(Scalar::get(*value), i32(), expr.range);
  }
  return position;
}

bool Importer::bindIndex(const ast::Index &index, int64_t extent, unsigned dim,
                         llvm::StringRef name, const Binding &binding,
                         BoundList &bound) {
  if (index.name.empty() || iterationNumber(index.name, index.range)) {
    Operand position = index.gather ? evaluatePosition(*index.gather, extent)
                                    : *iterationNumber(index.name, index.range);
    if (position.isPoison())
      return false;
    bound.gathered.push_back(dim);
    addNames(bound.free, position.indices);
    bound.positions.push_back(std::move(position));
    bound.names.push_back(nullptr);
    if (index.gather)
      return true;
  }
  if (!dims->has(index.name) && scope->find(index.name)) {
    auto diag = files.error(index.range)
                << "unknown index '" << index.name << "': no dim has this name";
    diag.attachNote() << "'" << index.name
                      << "' is a tensor; to read at its positions, give it its "
                         "brackets, for example `"
                      << index.name << "[]`";
    return false;
  }
  std::optional<int64_t> size = dims->extent(index.name, index.range);
  if (!size)
    return false;
  if (*size != extent) {
    auto diag = files.error(index.range)
                << "index '" << index.name << "' has extent " << *size
                << ", but " << ordinal(dim) << " of '" << name
                << "' has extent " << extent;
    diag.attachNote(files.location(binding.where))
        << "'" << name << "' has indices " << toString(binding.indices);
    return false;
  }
  if (bound.names.size() > dim)
    return true; // the number of an iteration
  StringAttr attr = str(index.name);
  if (contains(bound.names, attr)) {
    files.error(index.range)
        << "index '" << index.name << "' is repeated in one reference";
    return false;
  }
  bound.names.push_back(attr);
  addNames(bound.free, attr);
  return true;
}

/// Gives dimensions that positions read the name that they have in the tensor,
/// made different from all other names of the operation.
void Importer::nameGathered(BoundList &bound, const Binding &binding) {
  IndexNames taken = bound.free;
  for (int64_t dim : bound.gathered) {
    StringAttr name = binding.indices[dim];
    for (unsigned i = 2; contains(taken, name); ++i)
      name =
          str((binding.indices[dim].getValue() + "." + llvm::Twine(i)).str());
    bound.names[dim] = name;
    taken.push_back(name);
  }
}

std::optional<Importer::BoundList>
Importer::bindList(const ast::IndexList &list, llvm::StringRef name,
                   llvm::SMRange range, const Binding &binding) {
  llvm::ArrayRef<int64_t> extents =
      mlir::cast<mlir::RankedTensorType>(binding.value.getType()).getShape();
  if (list.indices.size() != extents.size()) {
    auto diag = files.error(range)
                << "'" << name << "' has " << counted(extents.size(), "index")
                << " " << toString(binding.indices) << ", but the list has "
                << list.indices.size();
    diag.attachNote(files.location(binding.where)) << "it is defined here";
    return std::nullopt;
  }
  BoundList bound;
  bool ok = true;
  for (auto [i, index] : llvm::enumerate(list.indices)) {
    ok &= bindIndex(index, extents[i], i, name, binding, bound);
    if (bound.names.size() <= i)
      bound.names.push_back(nullptr);
  }
  auto pin = placements.pin(list, extents);
  if (!ok || mlir::failed(pin))
    return std::nullopt;
  bound.pin = *pin;
  nameGathered(bound, binding);
  return bound;
}

Operand Importer::emitGather(const Operand &table, const BoundList &bound) {
  llvm::SmallVector<const Operand *, 4> operands{&table};
  llvm::SmallVector<mlir::Value, 2> positions;
  for (const Operand &position : bound.positions) {
    operands.push_back(&position);
    positions.push_back(position.value);
  }
  mlir::RankedTensorType type =
      tensorType(operands, bound.free, table.elementType());
  if (!type)
    return {};
  auto op = shd::GatherOp::create(builder, statement->loc, type, table.value,
                                  positions, indexing(operands, bound.free),
                                  builder.getDenseI64ArrayAttr(bound.gathered));
  return record(op, operands, bound.free, table.range);
}
