//===- Repeat.cpp - Repetition --------------------------------------------===//

#include "Importer.h"
#include "Stages.h"
#include "shardc/Dialect/Shd/IR/Pipeline.h"

using namespace shardc;
using ast::Expr;

//===----------------------------------------------------------------------===//
// Carried values
//===----------------------------------------------------------------------===//

/// Calls `visit` for each call in an expression, without recursion.
static void forEachCall(const Expr &root,
                        llvm::function_ref<void(const Expr &)> visit) {
  llvm::SmallVector<const Expr *> work{&root};
  while (!work.empty()) {
    const Expr *expr = work.pop_back_val();
    if (expr->kind == Expr::Kind::Call)
      visit(*expr);
    for (const ast::ExprPtr &operand : llvm::reverse(expr->operands))
      work.push_back(operand.get());
    for (const ast::Argument &argument : llvm::reverse(expr->arguments))
      work.push_back(argument.value.get());
    if (!expr->indices)
      continue;
    for (const ast::Index &index : llvm::reverse(expr->indices->indices))
      if (index.gather)
        work.push_back(index.gather.get());
  }
}

void Importer::collectAssigned(const Items &items, NameSet &names) {
  NameSet own;
  for (const ast::ItemPtr &item : items)
    if (auto *tensor = llvm::dyn_cast<ast::TensorDecl>(item.get()))
      own.insert(tensor->name.text);
  NameSet assigned;
  for (const ast::ItemPtr &item : items) {
    if (auto *repeat = llvm::dyn_cast<ast::RepeatStmt>(item.get()))
      collectAssigned(repeat->body, assigned);
    auto *assign = llvm::dyn_cast<ast::AssignStmt>(item.get());
    if (!assign)
      continue;
    forEachCall(*assign->value, [&](const Expr &call) {
      auto it = layers.find(call.name);
      if (it != layers.end())
        for (llvm::StringRef name : assignedByLayer(*it->second))
          assigned.insert(name);
    });
    for (const ast::Target &target : assign->targets)
      assigned.insert(target.name.text);
  }
  for (llvm::StringRef name : assigned)
    if (!own.contains(name))
      names.insert(name);
}

/// States of the file that a call of the layer assigns.
const Importer::NameSet &
Importer::assignedByLayer(const ast::LayerDecl &layer) {
  auto [it, inserted] = layerAssigned.try_emplace(&layer);
  if (!inserted)
    return *it->second;
  // Recursion is an error of its own: the set is empty until it is known.
  it->second = std::make_unique<NameSet>();
  NameSet &result = *it->second;
  NameSet assigned;
  collectAssigned(layer.body, assigned);
  for (const ast::Parameter &parameter : layer.parameters)
    assigned.remove(parameter.name.text);
  for (llvm::StringRef name : assigned)
    if (fileScope.hasLocal(name) &&
        fileScope.local(name).kind == Binding::Kind::State)
      result.insert(name);
  return result;
}

llvm::SmallVector<Importer::Carried>
Importer::findCarried(const ast::RepeatStmt &stmt) {
  NameSet assigned;
  collectAssigned(stmt.body, assigned);
  llvm::SmallVector<Carried> carried;
  for (llvm::StringRef name : assigned) {
    Binding *outer = scope->find(name);
    if (outer && (outer->kind == Binding::Kind::Local ||
                  outer->kind == Binding::Kind::State))
      carried.push_back({name, outer});
  }
  return carried;
}

//===----------------------------------------------------------------------===//
// The body
//===----------------------------------------------------------------------===//

void Importer::checkSaved(const ast::RepeatStmt &stmt, Scope &body) {
  if (stmt.hasSave && !savedInRepeats)
    savedInRepeats.emplace();
  for (const ast::Name &name : stmt.save) {
    savedInRepeats->push_back(name.text);
    if (!body.hasLocal(name.text)) {
      auto diag = files.error(name.range)
                  << "'" << name.text << "' is not assigned in the repeat";
      if (auto near = likelyName(name.text, body.visibleNames()))
        diag.attachNote() << "did you mean '" << *near << "'?";
    }
  }
}

void Importer::importRepeatBody(const ast::RepeatStmt &stmt,
                                shd::RepeatOp repeat,
                                llvm::ArrayRef<Carried> carried) {
  mlir::OpBuilder::InsertionGuard guard(builder);
  mlir::Block *block = builder.createBlock(&repeat.getBody());
  block->addArgument(mlir::RankedTensorType::get({}, i32()), repeat.getLoc());
  Scope body(Scope::Kind::Repeat, scope);
  for (const Carried &value : carried) {
    Binding &inner = body.local(value.name);
    inner = *value.outer;
    inner.carried = true;
    if (inner.value)
      inner.value = block->addArgument(inner.value.getType(), repeat.getLoc());
  }
  DimScope bodyDims(files, dims);
  std::vector<Update> bodyUpdates;
  frame->iterations.push_back({str(stmt.index.text), block->getArgument(0)});
  std::swap(bodyUpdates, updates);
  {
    llvm::SaveAndRestore scopeGuard(scope, &body);
    llvm::SaveAndRestore dimsGuard(dims, &bodyDims);
    importBlock(stmt.body);
    emitUpdates();
  }
  std::swap(bodyUpdates, updates);
  frame->iterations.pop_back();
  checkSaved(stmt, body);

  llvm::SmallVector<mlir::Value> yielded;
  unsigned next = 0;
  for (const Carried &value : carried) {
    if (!value.outer->value)
      continue;
    mlir::Value last = body.local(value.name).value;
    yielded.push_back(last ? stored(last, value.name, repeat.getLoc())
                           : mlir::Value(block->getArgument(1 + next)));
    value.outer->value = last ? repeat.getResult(next) : mlir::Value();
    ++next;
  }
  shd::YieldOp::create(builder, repeat.getLoc(), yielded);
}

void Importer::importRepeat(const ast::RepeatStmt &stmt) {
  auto count = dims->extent(stmt.index.text, stmt.index.range);
  if (!count)
    return;
  if (iterationNumber(stmt.index.text, stmt.index.range)) {
    auto diag = files.error(stmt.index.range)
                << "nested repeats over '" << stmt.index.text << "'";
    diag.attachNote() << "give it an index of its own, for example `dim "
                      << stmt.index.text << "2 = " << stmt.index.text << "`";
    return;
  }
  llvm::SmallVector<Carried> carried = findCarried(stmt);
  llvm::SmallVector<mlir::Value> inits;
  llvm::SmallVector<mlir::Type> types;
  for (const Carried &value : carried)
    if (value.outer->value) {
      inits.push_back(stored(value.outer->value, value.name,
                             files.location(stmt.range.Start)));
      types.push_back(value.outer->value.getType());
    }
  auto repeat = shd::RepeatOp::create(builder, files.location(stmt.range.Start),
                                      types, str(stmt.index.text),
                                      builder.getI64IntegerAttr(*count),
                                      /*reverse=*/nullptr, inits);
  importRepeatBody(stmt, repeat, carried);
  if (&stmt == staged)
    return importStages(stmt, repeat);
  if (stmt.microbatches)
    files.error(stmt.microbatches->range)
        << "microbatches are those of pipeline stages: `repeat "
        << stmt.index.text << "@pp microbatches(...)`";
  if (stmt.schedule)
    files.error(stmt.schedule->range)
        << "a schedule is that of pipeline stages: `repeat " << stmt.index.text
        << "@pp schedule(...)`";
}

/// Makes a pipeline of the layers.
void Importer::importStages(const ast::RepeatStmt &stmt, shd::RepeatOp repeat) {
  llvm::StringRef order = shd::kAutoOrder;
  if (stmt.schedule)
    order = stmt.schedule->text;
  if (order != shd::kAutoOrder && !parsePipelineOrder(order)) {
    files.error(stmt.schedule->range)
        << "expected " << kOrderNames << ", found '" << order << "'";
    order = shd::kAutoOrder;
  }
  auto program = repeat->getParentOfType<shd::ProgramOp>();
  program.setPipelineAttr(
      shd::PipelineAttr::get(builder.getContext(), stages, stmt.index.text,
                             repeat.getCount(), /*held=*/0, order));
  if (!stmt.microbatches)
    return;
  std::optional<int64_t> number = dims->evaluate(*stmt.microbatches);
  if (number && *number < 1)
    files.error(stmt.microbatches->range)
        << "expected at least one microbatch, found " << *number;
  else if (number) {
    shd::setMicrobatches(program, *number);
    program->setAttr(shd::kMicrobatchesAt,
                     files.location(stmt.microbatches->range));
  }
}
