//===- Importer.cpp - File level and blocks -------------------------------===//

#include "Importer.h"
#include "shardc/Dialect/Shd/IR/Order.h"

using namespace shardc;
using mlir::StringAttr;

/// Time and memory of every stage grow with the number of operations.
static constexpr unsigned kMaxOperations = 200000;
/// Dimensions of a tensor.
static constexpr size_t kMaxRank = 64;

Importer::Importer(SourceFiles &files, DimScope &fileDims,
                   const ImportSettings &settings)
    : files(files), builder(files.getContext(), &counter),
      placements(files, *settings.mesh, settings.allowPadding),
      buffers(settings.buffers), staged(settings.layers),
      stages(settings.stages), fileDims(fileDims), dims(&fileDims) {}

//===----------------------------------------------------------------------===//
// Collecting names
//===----------------------------------------------------------------------===//

void Importer::collectLayers(const Items &items) {
  for (const ast::ItemPtr &item : items) {
    if (auto *repeat = llvm::dyn_cast<ast::RepeatStmt>(item.get()))
      collectLayers(repeat->body);
    auto *layer = llvm::dyn_cast<ast::LayerDecl>(item.get());
    if (!layer)
      continue;
    collectLayers(layer->body);
    const ast::Name &name = layer->name;
    if (findFunction(name.text)) {
      files.error(name.range)
          << "a layer cannot have the name of the function '" << name.text
          << "'";
      continue;
    }
    auto [it, inserted] = layers.try_emplace(name.text, layer);
    if (!inserted) {
      auto diag = files.error(name.range)
                  << "layer '" << name.text << "' is declared twice";
      diag.attachNote(files.location(it->second->name.range))
          << "first declared here";
      continue;
    }
    layerOrder.push_back(layer);
    checkParameters(*layer);
  }
}

void Importer::checkParameters(const ast::LayerDecl &layer) {
  llvm::StringMap<llvm::SMRange> seen;
  for (const ast::Parameter &parameter : layer.parameters) {
    auto [it, inserted] =
        seen.try_emplace(parameter.name.text, parameter.name.range);
    if (inserted)
      continue;
    auto diag = files.error(parameter.name.range)
                << "layer '" << layer.name.text << "' has two parameters '"
                << parameter.name.text << "'";
    diag.attachNote(files.location(it->second)) << "the first is here";
    faultyLayers.insert(&layer);
  }
}

void Importer::collectAssignedNames(const Items &items) {
  for (const ast::ItemPtr &item : items) {
    if (auto *assign = llvm::dyn_cast<ast::AssignStmt>(item.get()))
      for (const ast::Target &target : assign->targets)
        assignedNames.try_emplace(target.name.text, target.name.range);
    else if (auto *repeat = llvm::dyn_cast<ast::RepeatStmt>(item.get()))
      collectAssignedNames(repeat->body);
    else if (auto *layer = llvm::dyn_cast<ast::LayerDecl>(item.get()))
      collectAssignedNames(layer->body);
  }
}

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

bool Importer::declaredIndices(const ast::IndexList &list, IndexNames &names,
                               llvm::SmallVectorImpl<int64_t> &extents) {
  bool ok = true;
  for (const ast::Index &index : list.indices) {
    if (index.name.empty()) {
      files.error(index.range) << "expected the name of a dim as an index";
      ok = false;
      continue;
    }
    auto extent = dims->extent(index.name, index.range);
    StringAttr name = str(index.name);
    if (contains(names, name)) {
      auto diag = files.error(index.range)
                  << "index '" << index.name << "' is repeated in one list";
      diag.attachNote() << "give the second dimension an index of its own, for "
                           "example `dim "
                        << index.name << "2 = " << index.name << "`";
      ok = false;
    }
    ok &= extent.has_value();
    names.push_back(name);
    extents.push_back(extent.value_or(1));
  }
  return ok;
}

static Binding::Kind bindingKind(ast::TensorDecl::TensorKind kind) {
  switch (kind) {
  case ast::TensorDecl::TensorKind::Input:
    return Binding::Kind::Input;
  case ast::TensorDecl::TensorKind::Weight:
    return Binding::Kind::Weight;
  case ast::TensorDecl::TensorKind::State:
    return Binding::Kind::State;
  }
  llvm_unreachable("unknown kind of tensor");
}

static shd::TensorKind dialectKind(Binding::Kind kind) {
  return kind == Binding::Kind::Input    ? shd::TensorKind::Input
         : kind == Binding::Kind::Weight ? shd::TensorKind::Weight
                                         : shd::TensorKind::State;
}

void Importer::declareTensor(const ast::TensorDecl &decl,
                             std::vector<DeclaredState> &states) {
  if (scope->hasLocal(decl.name.text)) {
    auto diag = files.error(decl.name.range)
                << "'" << decl.name.text << "' is declared twice";
    diag.attachNote(files.location(scope->local(decl.name.text).where))
        << "first declared here";
    return;
  }
  Binding &binding = scope->local(decl.name.text);
  binding.kind = bindingKind(decl.tensorKind);
  binding.where = decl.name.range;
  binding.fileLevel = scope == &fileScope;
  llvm::SmallVector<int64_t> extents;
  if (!declaredIndices(decl.indices, binding.indices, extents))
    return;
  auto pin = placements.pin(decl.indices, extents);
  if (mlir::failed(pin) ||
      !checkSize(extents, decl.name.range, "'" + decl.name.text + "'"))
    return;
  auto type = mlir::RankedTensorType::get(
      extents, shd::typeFromName(files.getContext(), decl.type.text));
  StringAttr symbol = uniqueName(pathTo(decl.name.text));
  mlir::Operation *op =
      createTensor(files.location(decl.name.range.Start), type,
                   dialectKind(binding.kind), symbol, binding.indices);
  op->setAttr(shd::kFile,
              builder.getI64IntegerAttr(fileOf(decl.name.range.Start)));
  op->setAttr(shd::kCall, str(frame->call));
  setDefinition(op, decl.name.range.Start, *pin);
  binding.value = op->getResult(0);
  if (binding.kind == Binding::Kind::State)
    states.push_back({decl.name.text, symbol, binding.value, op->getLoc()});
}

mlir::Operation *Importer::createTensor(mlir::Location loc,
                                        mlir::RankedTensorType type,
                                        shd::TensorKind kind, StringAttr symbol,
                                        llvm::ArrayRef<StringAttr> indices) {
  llvm::SmallVector<shd::RepeatOp> repeats;
  for (mlir::Operation *at = builder.getInsertionBlock()->getParentOp();
       auto repeat = llvm::dyn_cast<shd::RepeatOp>(at); at = at->getParentOp())
    repeats.insert(repeats.begin(), repeat);
  IndexNames names;
  llvm::SmallVector<int64_t> shape;
  llvm::SmallVector<mlir::Value> numbers;
  for (shd::RepeatOp repeat : repeats) {
    names.push_back(repeat.getIndexAttr());
    shape.push_back(int64_t(repeat.getCount()));
    numbers.push_back(repeat.getIteration());
  }
  llvm::append_range(names, indices);
  llvm::append_range(shape, type.getShape());
  auto create = [&] {
    return shd::DeclareOp::create(builder, loc, type.clone(shape), kind, symbol,
                                  strings(names), repeats.size(),
                                  /*of=*/mlir::StringAttr());
  };
  if (repeats.empty())
    return create();
  shd::DeclareOp declared;
  {
    mlir::OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(repeats.front());
    declared = create();
  }
  return shd::PartOp::create(builder, loc, type, declared, numbers);
}

bool Importer::checkSize(llvm::ArrayRef<int64_t> extents, llvm::SMRange range,
                         const llvm::Twine &what) {
  if (extents.size() > kMaxRank) {
    files.error(range) << what << " has more than " << kMaxRank
                       << " dimensions";
    return false;
  }
  int64_t elements = 1;
  for (int64_t extent : extents)
    if (__builtin_mul_overflow(elements, extent, &elements)) {
      files.error(range) << what << " has more elements than fit 64 bits";
      return false;
    }
  return true;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

void Importer::declareTensors(const Items &items,
                              std::vector<DeclaredState> &states) {
  for (const ast::ItemPtr &item : items) {
    if (!hasRoom(item->range))
      return;
    if (auto *tensor = llvm::dyn_cast<ast::TensorDecl>(item.get()))
      declareTensor(*tensor, states);
    else if (auto *broken = llvm::dyn_cast<ast::BrokenItem>(item.get());
             broken && broken->isDeclaration)
      llvm::for_each(broken->targets,
                     [&](const ast::Target &target) { poisonTarget(target); });
  }
}

bool Importer::hasRoom(llvm::SMRange next) {
  if (files.isClosed())
    return false;
  if (counter.operations <= kMaxOperations)
    return true;
  {
    auto diag = files.error(next)
                << "the program has more than " << kMaxOperations
                << " operations, those of each layer call included";
    diag.attachNote() << "a `repeat` holds layers that are alike once";
  }
  files.close();
  return false;
}

void Importer::importStatements(const Items &items) {
  for (const ast::ItemPtr &item : items) {
    if (!hasRoom(item->range))
      return;
    if (auto *assign = llvm::dyn_cast<ast::AssignStmt>(item.get()))
      importAssign(*assign);
    else if (auto *repeat = llvm::dyn_cast<ast::RepeatStmt>(item.get()))
      importRepeat(*repeat);
    else if (auto *broken = llvm::dyn_cast<ast::BrokenItem>(item.get()))
      llvm::for_each(broken->targets,
                     [&](const ast::Target &target) { poisonTarget(target); });
  }
}

void Importer::importBlock(const Items &items) {
  for (const ast::ItemPtr &item : items)
    if (auto *decl = llvm::dyn_cast<ast::DimDecl>(item.get()))
      for (const ast::DimDef &def : decl->dims)
        dims->define(def);
  dims->evaluateAll();
  std::vector<DeclaredState> states;
  declareTensors(items, states);
  importStatements(items);
  collectUpdates(states);
}

void Importer::collectUpdates(llvm::ArrayRef<DeclaredState> states) {
  for (const DeclaredState &state : states) {
    mlir::Value last = scope->local(state.name).value;
    if (last && last != state.initial)
      updates.push_back({state.symbol, state.initial, last, state.loc});
  }
}

void Importer::emitUpdates() {
  for (const Update &update : updates) {
    mlir::ValueRange numbers;
    if (auto part = update.state.getDefiningOp<shd::PartOp>())
      numbers = part.getAt();
    shd::UpdateOp::create(builder, update.loc,
                          stored(update.value, update.name, update.loc),
                          shd::wholeOf(update.state), numbers);
  }
  updates.clear();
}

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

void Importer::importOutput(const ast::OutputDecl &output) {
  Binding *binding = scope->find(output.name.text);
  if (!binding)
    return reportUnknownTensor(output.name.text, output.name.range);
  if (!binding->value)
    return;
  Statement made(files.location(output.name.range.Start));
  made.name = str(output.name.text);
  made.file = fileOf(output.name.range.Start);
  statement = made;
  IndexNames names = binding->indices;
  shd::ShardingAttr pin;
  if (output.indices) {
    llvm::SMRange range = output.name.range;
    if (writesPart(*output.indices)) {
      files.error(range)
          << "expected names of dims as the indices of an output";
      return;
    }
    auto bound = bindList(*output.indices, output.name.text, range, *binding);
    if (!bound)
      return;
    names = bound->names;
    pin = bound->pin;
  }
  auto op = shd::OutputOp::create(builder, made.loc, output.name.text,
                                  binding->value, strings(names));
  op->setAttr(shd::kFile, builder.getI64IntegerAttr(made.file));
  op->setAttr(shd::kUses, builder.getDenseI64ArrayAttr(
                              {offsetOf(output.name.range.Start)}));
  if (pin)
    shd::setOperandPin(op, 0, pin);
}

void Importer::importOutputs(const Items &items) {
  llvm::StringMap<llvm::SMRange> seen;
  for (const ast::ItemPtr &item : items) {
    auto *output = llvm::dyn_cast<ast::OutputDecl>(item.get());
    if (!output)
      continue;
    auto [it, inserted] =
        seen.try_emplace(output->name.text, output->name.range);
    if (!inserted) {
      auto diag = files.error(output->name.range)
                  << "output '" << output->name.text << "' is declared twice";
      diag.attachNote(files.location(it->second)) << "first here";
      continue;
    }
    importOutput(*output);
  }
  statement.reset();
}

void Importer::importOrders(const Items &items, shd::ProgramOp program) {
  mlir::NamedAttrList orders;
  llvm::StringMap<llvm::SMRange> seen;
  for (const ast::ItemPtr &item : items) {
    auto *decl = llvm::dyn_cast<ast::OrderDecl>(item.get());
    if (!decl)
      continue;
    for (const auto &[index, order] : decl->orders) {
      if (order.text != "zigzag" && order.text != "contiguous")
        files.error(order.range) << "expected 'contiguous' or 'zigzag' as the "
                                    "order of an index, found '"
                                 << order.text << "'";
      if (auto [it, isNew] = seen.try_emplace(index.text, index.range);
          !isNew) {
        auto diag = files.error(index.range)
                    << "the order of '" << index.text << "' is given twice";
        diag.attachNote(files.location(it->second)) << "first here";
      }
      dims->extent(index.text, index.range);
      orders.set(index.text, str(order.text));
    }
  }
  if (!orders.empty())
    program->setAttr(shd::kOrders, orders.getDictionary(program.getContext()));
}

void Importer::importFiles(llvm::ArrayRef<const ast::File *> sources,
                           shd::ProgramOp program) {
  for (const ast::File *source : sources) {
    collectLayers(source->items);
    collectAssignedNames(source->items);
  }
  builder.setInsertionPointToStart(&program.getBody().front());
  std::vector<DeclaredState> states;
  for (const ast::File *source : sources)
    declareTensors(source->items, states);
  const Items &main = sources.front()->items;
  importStatements(main);
  collectUpdates(states);
  emitUpdates();
  // The operations of the last statement count too.
  if (!hasRoom(main.back()->range))
    return;
  importOutputs(main);
  importOrders(main, program);
  for (const ast::ItemPtr &item : main)
    if (auto *block = llvm::dyn_cast<ast::TrainBlock>(item.get()))
      importTraining(*block, program);
  importLayouts(main, program);
  checkUncalledLayers(program);
}
