//===- LayerNames.cpp - Names in layers that nothing calls ----------------===//
//
// Without a call a layer's indices have no extents, so that its body cannot be
// imported. What names mean can be checked: tensors, functions, axes, results,
// and that no layer calls itself.
//
//===----------------------------------------------------------------------===//

#include "LayerNames.h"
#include "FunctionTable.h"

using namespace shardc;
using ast::Expr;

void LayerNameChecker::check() {
  for (const ast::Parameter &parameter : layer.parameters) {
    known.insert(parameter.name.text);
    for (const ast::Index &index : parameter.indices.indices)
      known.insert(index.name);
    check(parameter.indices);
  }
  check(layer.body);
  importer.checkResults(
      layer, [&](llvm::StringRef name) { return known.contains(name); });
}

void LayerNameChecker::check(const std::vector<ast::ItemPtr> &items) {
  for (const ast::ItemPtr &item : items)
    if (auto *tensor = llvm::dyn_cast<ast::TensorDecl>(item.get())) {
      known.insert(tensor->name.text);
      check(tensor->indices);
    } else if (auto *dims = llvm::dyn_cast<ast::DimDecl>(item.get())) {
      for (const ast::DimDef &def : dims->dims)
        known.insert(def.name.text);
    }
  for (const ast::ItemPtr &item : items) {
    if (auto *assign = llvm::dyn_cast<ast::AssignStmt>(item.get())) {
      check(*assign);
    } else if (auto *broken = llvm::dyn_cast<ast::BrokenItem>(item.get())) {
      for (const ast::Target &target : broken->targets)
        known.insert(target.name.text);
    } else if (auto *repeat = llvm::dyn_cast<ast::RepeatStmt>(item.get())) {
      llvm::StringSet<> outside = known;
      known.insert(repeat->index.text);
      check(repeat->body);
      known = std::move(outside);
    }
  }
}

void LayerNameChecker::check(const ast::AssignStmt &assign) {
  if (assign.accumulate)
    for (const ast::Target &target : assign.targets)
      checkTensor(target.name);
  check(*assign.value);
  for (const ast::Target &target : assign.targets) {
    if (target.indices)
      check(*target.indices);
    known.insert(target.name.text);
  }
}

void LayerNameChecker::check(const ast::IndexList &list) {
  for (const ast::Index &index : list.indices) {
    if (index.placement)
      for (const ast::Name &axis : index.placement->axes)
        importer.placements.axis(axis);
    if (index.gather)
      check(*index.gather);
  }
  if (list.partial)
    for (const ast::Name &axis : list.partial->axes)
      importer.placements.axis(axis);
}

void LayerNameChecker::checkTensor(const ast::Name &name) {
  // Dims are numbers in positions.
  if (known.contains(name.text) || scope.find(name.text) ||
      importer.fileDims.has(name.text))
    return;
  importer.reportUnknownTensor(name.text, name.range);
  // Reported once: later uses are silent.
  known.insert(name.text);
}

void LayerNameChecker::check(const Expr &expr) {
  if (expr.kind == Expr::Kind::Ref)
    checkTensor({expr.name, expr.nameRange});
  if (expr.kind == Expr::Kind::Call)
    checkCall(expr);
  if (expr.indices)
    check(*expr.indices);
  for (const ast::ExprPtr &operand : expr.operands)
    check(*operand);
  for (const ast::Argument &argument : expr.arguments)
    check(*argument.value);
}

void LayerNameChecker::checkCall(const Expr &call) {
  bool isFunction = shd::typeFromName(importer.files.getContext(), call.name) ||
                    call.name == "iota" || call.name == "size" ||
                    findFunction(call.name);
  if (isFunction)
    return;
  auto it = importer.layers.find(call.name);
  if (it == importer.layers.end())
    return importer.reportUnknownFunction(call);
  llvm::SmallPtrSet<const ast::LayerDecl *, 8> seen;
  std::string path = layer.name.text + " -> " + call.name;
  if (it->second != &layer && !reaches(*it->second, seen, path))
    return;
  importer.files.error(call.nameRange)
      << "layer '" << layer.name.text << "' calls itself: " << path;
  importer.faultyLayers.insert(&layer);
  importer.faultyLayers.insert(it->second);
}

/// The layers that expressions in `items` call, in the order of the text.
static void collectCalls(const Expr &expr,
                         std::vector<llvm::StringRef> &names) {
  if (expr.kind == Expr::Kind::Call)
    names.push_back(expr.name);
  for (const ast::ExprPtr &operand : expr.operands)
    collectCalls(*operand, names);
  for (const ast::Argument &argument : expr.arguments)
    collectCalls(*argument.value, names);
}

static void collectCalls(const std::vector<ast::ItemPtr> &items,
                         std::vector<llvm::StringRef> &names) {
  for (const ast::ItemPtr &item : items)
    if (auto *assign = llvm::dyn_cast<ast::AssignStmt>(item.get()))
      collectCalls(*assign->value, names);
    else if (auto *repeat = llvm::dyn_cast<ast::RepeatStmt>(item.get()))
      collectCalls(repeat->body, names);
}

/// True if calls lead from `from` to the layer; `path` then names them.
bool LayerNameChecker::reaches(
    const ast::LayerDecl &from,
    llvm::SmallPtrSetImpl<const ast::LayerDecl *> &seen, std::string &path) {
  if (!seen.insert(&from).second)
    return false;
  std::vector<llvm::StringRef> names;
  collectCalls(from.body, names);
  for (llvm::StringRef name : names) {
    auto it = importer.layers.find(name);
    if (it == importer.layers.end())
      continue;
    std::string longer = path + " -> " + name.str();
    if (it->second != &layer && !reaches(*it->second, seen, longer))
      continue;
    path = longer;
    return true;
  }
  return false;
}
