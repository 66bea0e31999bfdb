//===- Statements.cpp - Assignments ---------------------------------------===//

#include "Importer.h"

using namespace shardc;
using ast::Expr;
using mlir::StringAttr;
using mlir::Type;

void Importer::importAssign(const ast::AssignStmt &stmt) {
  std::optional<Statement> outer = std::move(statement);
  if (stmt.targets.size() > 1)
    importMultiple(stmt);
  else
    importSingle(stmt, stmt.targets.front());
  statement = std::move(outer);
}

Importer::Statement Importer::makeStatement(const ast::Target &target) {
  Statement made(files.location(target.name.range.Start));
  made.left = pathTo(target.name.text);
  made.name = uniqueName(made.left);
  made.file = fileOf(target.name.range.Start);
  return made;
}

//===----------------------------------------------------------------------===//
// Left sides
//===----------------------------------------------------------------------===//

bool Importer::refuseRebinding(const ast::Name &name, const Binding *binding) {
  if (!binding || (binding->kind != Binding::Kind::Input &&
                   binding->kind != Binding::Kind::Weight))
    return false;
  bool isInput = binding->kind == Binding::Kind::Input;
  auto diag = files.error(name.range) << "'" << name.text << "' is "
                                      << (isInput ? "an input" : "a weight")
                                      << " and cannot be assigned";
  diag.attachNote(files.location(binding->where)) << "it is declared here";
  return true;
}

void Importer::poisonTarget(const ast::Target &target) {
  Binding *binding = scope->find(target.name.text);
  if (!binding) {
    binding = &scope->local(target.name.text);
    binding->where = target.name.range;
  }
  // Keeps the value of a binding that keeps its type: later assignments are
  // checked against it.
  if (!binding->keepsType())
    binding->value = nullptr;
}

bool Importer::writesPart(const ast::IndexList &list) {
  return llvm::any_of(list.indices, [&](const ast::Index &index) {
    return index.name.empty() || iterationNumber(index.name, index.range);
  });
}

bool Importer::leftIndices(const ast::IndexList &list, IndexNames &names,
                           mlir::FailureOr<shd::ShardingAttr> &pin) {
  llvm::SmallVector<int64_t> extents;
  if (!declaredIndices(list, names, extents))
    return false;
  pin = placements.pin(list, extents);
  return true;
}

/// The element type that the statement fixes, null if none; fails after an
/// error.
mlir::FailureOr<Type> Importer::wantedType(const ast::AssignStmt &stmt,
                                           const Binding *existing) {
  Type kept;
  if (existing && existing->value && (existing->keepsType() || stmt.accumulate))
    kept = mlir::cast<mlir::RankedTensorType>(existing->value.getType())
               .getElementType();
  if (!stmt.type)
    return kept;
  Type written = shd::typeFromName(files.getContext(), stmt.type->text);
  if (!kept || kept == written)
    return written;
  auto diag = files.error(stmt.type->range)
              << "'" << stmt.targets[0].name.text << "' keeps its element type "
              << shd::typeName(kept) << ", so it cannot become "
              << stmt.type->text;
  diag.attachNote(files.location(existing->where)) << "it is defined here";
  return mlir::failure();
}

bool Importer::checkExisting(const ast::Target &target, const Binding &existing,
                             const Operand &value) {
  if (!existing.keepsType() || !existing.value)
    return true;
  auto type = mlir::cast<mlir::RankedTensorType>(existing.value.getType());
  bool namesAgree = !existing.carried || value.indices == existing.indices;
  if (namesAgree && value.extents() == type.getShape())
    return true;
  auto diag = files.error(target.name.range)
              << "'" << target.name.text << "' "
              << (existing.carried ? "is carried by the repeat" : "is a state")
              << " and has indices " << toString(existing.indices)
              << ", but it is assigned " << toString(value.indices);
  if (value.indices == existing.indices)
    diag << " of other extents";
  diag.attachNote(files.location(existing.where)) << "it is defined here";
  return false;
}

void Importer::bindTarget(const ast::Target &target, Operand value,
                          shd::ShardingAttr pin) {
  Binding *existing = scope->find(target.name.text);
  if (existing && !checkExisting(target, *existing, value))
    return poisonTarget(target);
  // The result of a layer has a statement of its own; a placement needs one
  // here.
  if (!isTemporary(value.value.getDefiningOp()) && pin)
    value = emitReshard(value, value.range);
  mlir::Operation *op = value.value.getDefiningOp();
  if (isTemporary(op)) {
    if (!checkPartialResult(op, pin, target.name))
      return poisonTarget(target);
    setDefinition(op, target.name.range.Start, pin);
  }
  Binding &binding = existing ? *existing : scope->local(target.name.text);
  if (!existing)
    binding.where = target.name.range;
  binding.value = value.value;
  binding.indices = value.indices;
}

//===----------------------------------------------------------------------===//
// One target
//===----------------------------------------------------------------------===//

/// The right side; with `+=`, the value so far is its first term.
Operand Importer::evaluateRight(const ast::AssignStmt &stmt,
                                const Context &context, const Binding *existing,
                                const Target &target,
                                const IndexNames &leftNames) {
  if (!stmt.accumulate)
    return evaluate(*stmt.value, context, &target);
  std::vector<Term> terms = buildTerms(*stmt.value, context, nullptr);
  Term first;
  first.product.range = stmt.targets.front().name.range;
  auto node = std::make_unique<Node>();
  node->leaf.value = existing->value;
  node->leaf.indices = leftNames;
  node->leaf.label = stmt.targets.front().name.text;
  node->leaf.range = first.product.range;
  first.product.factors.push_back({std::move(node), false});
  terms.insert(terms.begin(), std::move(first));
  return lowerSum(std::move(terms), context, {}, 0, &target);
}

void Importer::importSingle(const ast::AssignStmt &stmt,
                            const ast::Target &target) {
  Binding *existing = scope->find(target.name.text);
  if (refuseRebinding(target.name, existing))
    return;
  bool isPart = target.indices && writesPart(*target.indices);
  if (!existing && (stmt.accumulate || isPart)) {
    auto diag = files.error(target.name.range)
                << (stmt.accumulate ? "cannot add to undefined tensor '"
                                    : "cannot assign to a part of undefined "
                                      "tensor '")
                << target.name.text << "'";
    if (auto near = likelyName(target.name.text, scope->visibleNames()))
      diag.attachNote() << "did you mean '" << *near << "'?";
    return poisonTarget(target);
  }
  statement = makeStatement(target);
  if (existing && !existing->value && (stmt.accumulate || isPart))
    return;
  auto type = wantedType(stmt, existing);
  if (mlir::failed(type))
    return poisonTarget(target);
  if (isPart)
    return importScatter(stmt, target, *existing);

  Context context;
  Target wanted;
  wanted.elementType = *type;
  mlir::FailureOr<shd::ShardingAttr> pin = shd::ShardingAttr();
  IndexNames names;
  if (target.indices) {
    if (!leftIndices(*target.indices, names, pin))
      return poisonTarget(target);
    if (stmt.accumulate && names.size() != existing->indices.size()) {
      files.error(target.name.range)
          << "'" << target.name.text << "' has "
          << counted(existing->indices.size(), "index") << " "
          << toString(existing->indices) << ", but the list has "
          << names.size();
      return poisonTarget(target);
    }
    context.mode = SumMode::Left;
    context.named = names;
    wanted.indices = names;
  } else if (stmt.accumulate) {
    names = existing->indices;
    wanted.indices = names;
  }
  // The right side has errors of its own.
  Operand value = evaluateRight(stmt, context, existing, wanted, names);
  if (value.isPoison() || mlir::failed(pin))
    return poisonTarget(target);
  if (!target.indices && existing && existing->keepsType() &&
      sameSet(value.indices, existing->indices))
    wanted.indices = existing->indices;
  if (!target.indices && stmt.accumulate &&
      !sameSet(value.indices, existing->indices)) {
    files.error(target.name.range)
        << "'" << target.name.text << "' has indices "
        << toString(existing->indices) << ", but what is added has "
        << toString(value.indices);
    return poisonTarget(target);
  }
  value = finish(std::move(value), wanted);
  if (value.isPoison())
    return poisonTarget(target);
  bindTarget(target, std::move(value), *pin);
}

//===----------------------------------------------------------------------===//
// Parts and several targets
//===----------------------------------------------------------------------===//

void Importer::importScatter(const ast::AssignStmt &stmt,
                             const ast::Target &target, Binding &binding) {
  auto bound =
      bindList(*target.indices, target.name.text, target.name.range, binding);
  if (!bound)
    return poisonTarget(target);
  Operand destination;
  destination.value = binding.value;
  destination.indices = bound->names;
  destination.label = target.name.text;
  destination.range = target.name.range;

  Context context;
  context.mode = SumMode::Left;
  context.named = bound->free;
  Target wanted;
  wanted.indices = bound->free;
  wanted.elementType = destination.elementType();
  Operand update = evaluate(*stmt.value, context, &wanted);
  // A bare reference is read by the write itself.
  update.isReference = false;
  update = finish(std::move(update), wanted);
  if (update.isPoison())
    return poisonTarget(target);

  llvm::SmallVector<const Operand *, 4> operands{&destination, &update};
  llvm::SmallVector<mlir::Value, 2> positions;
  for (const Operand &position : bound->positions) {
    operands.push_back(&position);
    positions.push_back(position.value);
  }
  auto op = shd::ScatterOp::create(
      builder, statement->loc, binding.value.getType(), binding.value,
      update.value, positions, indexing(operands, bound->names),
      bound->gathered, stmt.accumulate);
  Operand result = record(op, operands, binding.indices, target.name.range);
  if (result.isPoison())
    return poisonTarget(target);
  bindTarget(target, std::move(result), bound->pin);
}

void Importer::importMultiple(const ast::AssignStmt &stmt) {
  auto poison = [&] {
    for (const ast::Target &target : stmt.targets)
      poisonTarget(target);
  };
  for (const ast::Target &target : stmt.targets)
    if (refuseRebinding(target.name, scope->find(target.name.text)))
      return;
  const Expr *call = stmt.value.get();
  while (call->kind == Expr::Kind::Paren)
    call = call->operands[0].get();
  if (stmt.accumulate || call->kind != Expr::Kind::Call ||
      !layers.contains(call->name)) {
    files.error(stmt.value->range)
        << "several names on the left of '=' need one layer call on the right";
    return poison();
  }
  statement.emplace(files.location(stmt.targets[0].name.range.Start));
  statement->left = pathTo(stmt.targets[0].name.text);
  statement->name = str(statement->left);
  statement->file = fileOf(stmt.targets[0].name.range.Start);
  auto results = callLayer(*call);
  if (results && results->size() != stmt.targets.size()) {
    files.error(call->range)
        << "layer '" << call->name << "' has " << results->size()
        << " results, but " << stmt.targets.size() << " names are on the left";
    results.reset();
  }
  if (!results)
    return poison();
  for (auto [target, result] : llvm::zip(stmt.targets, *results)) {
    statement = makeStatement(target);
    importResult(target, std::move(result));
  }
}

/// One of several results, summed and arranged as its target says.
void Importer::importResult(const ast::Target &target, Operand result) {
  Context context;
  Target wanted;
  mlir::FailureOr<shd::ShardingAttr> pin = shd::ShardingAttr();
  const Binding *existing = scope->find(target.name.text);
  if (existing && existing->value && existing->keepsType())
    wanted.elementType =
        mlir::cast<mlir::RankedTensorType>(existing->value.getType())
            .getElementType();
  if (target.indices) {
    IndexNames names;
    if (!leftIndices(*target.indices, names, pin) || mlir::failed(pin))
      return poisonTarget(target);
    context.mode = SumMode::Left;
    context.named = names;
    wanted.indices = names;
  }
  std::vector<Term> terms(1);
  terms[0].product.range = result.range;
  auto node = std::make_unique<Node>();
  node->leaf = std::move(result);
  terms[0].product.factors.push_back({std::move(node), false});
  Operand value =
      finish(lowerSum(std::move(terms), context, {}, 0, &wanted), wanted);
  if (value.isPoison())
    return poisonTarget(target);
  bindTarget(target, std::move(value), *pin);
}
