//===- LayerCalls.cpp - Calls of layers, inlined --------------------------===//

#include "LayerNames.h"

using namespace shardc;
using ast::Expr;
using mlir::StringAttr;

/// Calls inside of calls, which the importer follows by recursion.
static constexpr unsigned kMaxCallDepth = 200;
/// Layers that call others twice multiply; this bounds the program's size.
static constexpr unsigned kMaxCalls = 100000;

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

bool Importer::checkCall(const Expr &call, const ast::LayerDecl &layer) {
  if (!hasRoom(call.nameRange))
    return false;
  if (call.hasFunctionIndices) {
    files.error(call.nameRange)
        << "layer '" << call.name << "' takes no indices in brackets";
    return false;
  }
  std::string path = layer.name.text;
  for (const Frame *caller = frame; caller; caller = caller->caller) {
    if (!caller->layer)
      break;
    path = caller->layer->name.text + " -> " + path;
    if (caller->layer != &layer)
      continue;
    files.error(call.nameRange)
        << "layer '" << call.name << "' calls itself: " << path;
    return false;
  }
  if (frame->depth >= kMaxCallDepth) {
    files.error(call.nameRange)
        << "layer calls nest deeper than " << kMaxCallDepth;
    return false;
  }
  if (++calls <= kMaxCalls)
    return true;
  // Once: every further call would be one more.
  if (calls == kMaxCalls + 1)
    files.error(call.nameRange) << "the program makes more than " << kMaxCalls
                                << " layer calls, those in layers included";
  return false;
}

std::optional<llvm::SmallVector<const Expr *>>
Importer::matchArguments(const Expr &call, const ast::LayerDecl &layer) {
  llvm::SmallVector<const Expr *> values(layer.parameters.size(), nullptr);
  bool ok = true;
  auto fail = [&](llvm::SMRange range, const llvm::Twine &what) {
    auto diag = files.error(range) << what;
    diag.attachNote(files.location(layer.name.range))
        << "the layer is declared here";
    ok = false;
  };
  size_t position = 0;
  for (const ast::Argument &argument : call.arguments) {
    size_t slot = position;
    if (!argument.name.empty()) {
      auto it = llvm::find_if(layer.parameters, [&](const ast::Parameter &p) {
        return p.name.text == argument.name;
      });
      slot = it - layer.parameters.begin();
      if (it == layer.parameters.end()) {
        fail(argument.nameRange, "layer '" + call.name +
                                     "' has no parameter '" + argument.name +
                                     "'");
        continue;
      }
    } else if (++position > values.size()) {
      fail(argument.range, "layer '" + call.name + "' takes " +
                               counted(values.size(), "argument") +
                               ", but has " +
                               llvm::Twine(call.arguments.size()));
      break;
    }
    if (values[slot])
      fail(argument.range, "parameter '" + layer.parameters[slot].name.text +
                               "' is given twice");
    values[slot] = argument.value.get();
  }
  for (auto [value, parameter] : llvm::zip(values, layer.parameters))
    if (ok && !value)
      fail(call.range, "missing argument for parameter '" +
                           parameter.name.text + "' of layer '" + call.name +
                           "'");
  if (!ok)
    return std::nullopt;
  return values;
}

bool Importer::bindDimParameter(const ast::Parameter &parameter,
                                const Expr &value, DimScope &calleeDims) {
  bool none = false;
  auto number = evaluateConstant(value, &none);
  if (!none && !number)
    return false;
  std::optional<int64_t> extent;
  if (number)
    extent = number->asInteger();
  if (!none && extent.value_or(0) < 1) {
    files.error(value.range) << "parameter '" << parameter.name.text
                             << "' takes an integer of at least 1 or none";
    return false;
  }
  calleeDims.bind(parameter.name.text, extent, value.range, none);
  return true;
}

/// The layer's own names for the dimensions of an argument.
bool Importer::bindParameterDims(const ast::Parameter &parameter,
                                 const Operand &argument, Callee &callee,
                                 IndexNames &names) {
  const std::vector<ast::Index> &list = parameter.indices.indices;
  if (list.size() != argument.indices.size()) {
    auto diag = files.error(argument.range)
                << "parameter '" << parameter.name.text << "' has "
                << counted(list.size(), "index") << ", but the argument has "
                << toString(argument.indices);
    diag.attachNote(files.location(parameter.name.range))
        << "the parameter is declared here";
    return false;
  }
  for (auto [index, outer, extent] :
       llvm::zip(list, argument.indices, argument.extents())) {
    if (index.name.empty()) {
      files.error(index.range) << "expected a name as the index of a parameter";
      return false;
    }
    StringAttr name = str(index.name);
    if (contains(names, name)) {
      files.error(index.range)
          << "index '" << index.name << "' is repeated in one reference";
      return false;
    }
    names.push_back(name);
    auto [it, inserted] = callee.outer.try_emplace(name, outer, extent);
    if (!inserted && it->second.second != extent) {
      auto diag = files.error(argument.range)
                  << "index '" << index.name << "' of layer '"
                  << callee.frame.layer->name.text << "' is " << extent
                  << " here, but " << it->second.second
                  << " in an earlier argument";
      diag.attachNote(files.location(index.range))
          << "the parameter is declared here";
      return false;
    }
    if (inserted)
      callee.dims.bind(index.name, extent, index.range);
  }
  return true;
}

bool Importer::bindTensorParameter(const ast::Parameter &parameter,
                                   Operand argument, Callee &callee) {
  mlir::Type type = shd::typeFromName(files.getContext(), parameter.type.text);
  if (argument.number)
    argument = materialize(argument, type);
  if (argument.isPoison())
    return false;
  if (argument.elementType() != type) {
    auto diag = files.error(argument.range)
                << "parameter '" << parameter.name.text << "' is "
                << parameter.type.text << ", but the argument is "
                << shd::typeName(argument.elementType());
    diag.attachNote(files.location(parameter.name.range))
        << "the parameter is declared here";
    return false;
  }
  IndexNames names;
  if (!bindParameterDims(parameter, argument, callee, names))
    return false;
  auto pin = placements.pin(parameter.indices, argument.extents());
  if (mlir::failed(pin))
    return false;
  if (argument.pin)
    argument = emitReshard(argument, argument.range);
  if (argument.isPoison())
    return false;
  if (*pin)
    argument = emitParameter(parameter, std::move(argument), *pin, callee);
  Binding &binding = callee.scope.local(parameter.name.text);
  binding.value = argument.value;
  binding.indices = names;
  binding.where = parameter.name.range;
  return true;
}

/// The argument as the parameter's placement lays it out.
Operand Importer::emitParameter(const ast::Parameter &parameter,
                                Operand argument, shd::ShardingAttr pin,
                                Callee &callee) {
  std::optional<Statement> caller = std::move(statement);
  llvm::SaveAndRestore frameGuard(frame, &callee.frame);
  llvm::SMLoc where = parameter.name.range.Start;
  statement.emplace(files.location(where));
  statement->name = uniqueName(pathTo(parameter.name.text));
  statement->file = fileOf(where);
  argument.use = -1;
  Operand made = emitReshard(argument, argument.range);
  setDefinition(made.value.getDefiningOp(), where, pin);
  statement = std::move(caller);
  return made;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

bool Importer::bindParameters(const Expr &call, const ast::LayerDecl &layer,
                              Callee &callee) {
  auto values = matchArguments(call, layer);
  if (!values)
    return false;
  bool ok = true;
  for (auto [parameter, value] : llvm::zip(layer.parameters, *values)) {
    if (parameter.isDim) {
      ok &= bindDimParameter(parameter, *value, callee.dims);
      continue;
    }
    // As a statement without brackets on the left.
    Operand argument = evaluate(*value, Context());
    ok &= bindTensorParameter(parameter, std::move(argument), callee);
  }
  return ok;
}

bool Importer::checkResults(
    const ast::LayerDecl &layer,
    llvm::function_ref<bool(llvm::StringRef)> isAssigned) {
  bool ok = true;
  for (const ast::Name &name : layer.results) {
    if (isAssigned(name.text))
      continue;
    files.error(name.range) << "result '" << name.text << "' of layer '"
                            << layer.name.text << "' is never assigned";
    ok = false;
  }
  return ok;
}

/// The results, with the caller's names where the layer's stand for those.
std::optional<llvm::SmallVector<Operand, 2>>
Importer::takeResults(const Expr &call, Callee &callee) {
  llvm::SmallVector<Operand, 2> results;
  if (!checkResults(*callee.frame.layer, [&](llvm::StringRef name) {
        return callee.scope.hasLocal(name);
      }))
    return std::nullopt;
  for (const ast::Name &name : callee.frame.layer->results) {
    const Binding &binding = callee.scope.local(name.text);
    if (!binding.value)
      return std::nullopt;
    Operand result;
    result.value = binding.value;
    result.range = call.range;
    for (StringAttr index : binding.indices) {
      auto outer = callee.outer.find(index);
      StringAttr mapped =
          outer == callee.outer.end() ? index : outer->second.first;
      if (contains(result.indices, mapped)) {
        auto diag = files.error(call.range)
                    << "result '" << name.text << "' would have index '"
                    << mapped.getValue() << "' twice";
        diag.attachNote(files.location(name.range))
            << "in the layer it has " << toString(binding.indices);
        return std::nullopt;
      }
      result.indices.push_back(mapped);
    }
    results.push_back(std::move(result));
  }
  return results;
}

std::optional<llvm::SmallVector<Operand, 2>>
Importer::callLayer(const Expr &call) {
  const ast::LayerDecl &layer = *layers.find(call.name)->second;
  calledLayers.insert(&layer);
  if (!checkCall(call, layer))
    return std::nullopt;
  Callee callee(files, fileDims, scope);
  callee.frame.caller = frame;
  callee.frame.layer = &layer;
  callee.frame.path = statement->left;
  callee.frame.call = uniqueCall();
  callee.frame.depth = frame->depth + 1;
  if (!bindParameters(call, layer, callee) || faultyLayers.contains(&layer))
    return std::nullopt;

  unsigned errors = files.numErrors();
  std::optional<Statement> caller = std::move(statement);
  std::optional<llvm::SmallVector<Operand, 2>> results;
  importLayerBody(callee);
  if (files.numErrors() == errors)
    results = takeResults(call, callee);
  statement = std::move(caller);
  if (!results)
    faultyLayers.insert(&layer);
  return results;
}

void Importer::importLayerBody(Callee &callee) {
  llvm::SaveAndRestore frameGuard(frame, &callee.frame);
  llvm::SaveAndRestore scopeGuard(scope, &callee.scope);
  llvm::SaveAndRestore dimsGuard(dims, &callee.dims);
  importBlock(callee.frame.layer->body);
}

std::string Importer::uniqueCall() {
  std::string call = frame->call.empty() ? "" : frame->call + ".";
  // The path in names, without the caller's part.
  call += llvm::StringRef(statement->left)
              .drop_front(frame->path.empty() ? 0 : frame->path.size() + 1);
  unsigned count = ++callCounts[call];
  return count == 1 ? call : call + "." + std::to_string(count);
}

//===----------------------------------------------------------------------===//
// Layers without calls
//===----------------------------------------------------------------------===//

void Importer::checkUncalledLayer(const ast::LayerDecl &layer) {
  Callee callee(files, fileDims, &fileScope);
  callee.frame.layer = &layer;
  callee.frame.path = callee.frame.call = layer.name.text;
  for (const ast::Parameter &parameter : layer.parameters) {
    Binding &binding = callee.scope.local(parameter.name.text);
    binding.where = parameter.name.range;
    llvm::SmallVector<int64_t> extents;
    for (const ast::Index &index : parameter.indices.indices) {
      if (parameter.isDim || index.name.empty() || !fileDims.has(index.name))
        return LayerNameChecker(*this, layer).check();
      auto extent = fileDims.extent(index.name, index.range);
      if (!extent)
        return;
      extents.push_back(*extent);
      binding.indices.push_back(str(index.name));
    }
    if (parameter.isDim)
      return LayerNameChecker(*this, layer).check();
    auto type = mlir::RankedTensorType::get(
        extents, shd::typeFromName(files.getContext(), parameter.type.text));
    binding.value =
        builder.getInsertionBlock()->addArgument(type, builder.getUnknownLoc());
  }
  importLayerBody(callee);
  checkResults(
      layer, [&](llvm::StringRef name) { return callee.scope.hasLocal(name); });
}

void Importer::checkUncalledLayers(shd::ProgramOp program) {
  mlir::OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfter(program);
  auto scratch = llvm::cast<shd::ProgramOp>(
      builder.cloneWithoutRegions(*program.getOperation()));
  for (const ast::LayerDecl *layer : layerOrder) {
    if (calledLayers.contains(layer) || faultyLayers.contains(layer))
      continue;
    calledLayers.insert(layer);
    mlir::Block &block = scratch.getBody().emplaceBlock();
    builder.setInsertionPointToStart(&block);
    checkUncalledLayer(*layer);
  }
  updates.clear();
  scratch.erase();
}
