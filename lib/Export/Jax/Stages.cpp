//===- Stages.cpp - A pipeline's stages in one function -------------------===//
//
// All stages run the same program: two loops, in which each stage runs the
// forward and then the backward pass of one microbatch at a time, between
// messages to its neighbours. What belongs to one stage is made on all and
// taken from that one, so that every device takes part in every collective.
// Weights of layers are split over the stages; others are on all of them, and
// their gradients are added up.
//
//===----------------------------------------------------------------------===//

#include "Function.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::jax;
using shd::isMarkedPartial;
using shd::markedRoles;

void FunctionPrinter::beginStages(spmd::ProgramOp program) {
  shd::PipelineAttr pipeline = *program.getPipeline();
  StringRef index = pipeline.getIndex();
  std::string axis = quoted(pipeline.getAxis());
  stages = Stages{shd::pipelineRepeats(program, index),
                  index.str(),
                  axis,
                  names.make("stage"),
                  names.make("last_stage"),
                  {}};
  line(cat(stages->number, " = lax.axis_index(", axis, ")"));
  line(cat(stages->last, " = lax.axis_size(", axis, ") - 1"));
}

/// `stage == 0`; empty for all stages.
std::string FunctionPrinter::isOneOf(shd::StageRoles roles) const {
  if (roles & shd::LayerRole)
    return "";
  std::string first = cat(stages->number, " == 0");
  std::string last = cat(stages->number, " == ", stages->last);
  if (roles == (shd::FirstRole | shd::LastRole))
    return cat("(", first, ") | (", last, ")");
  return roles == shd::FirstRole ? first : last;
}

/// The stage that has a value: the results of layers are those of the last
/// one, or of the first one in the backward pass.
shd::StageRoles FunctionPrinter::ownerOf(Value value) const {
  Operation *op = value.getDefiningOp();
  if (op == stages->repeats.forward)
    return shd::LastRole;
  if (op == stages->repeats.backward)
    return shd::FirstRole;
  return shd::ownerOf(value);
}

/// True for a tensor with a part for each layer.
bool FunctionPrinter::isOfLayers(spmd::ParameterOp parameter) const {
  return shd::layersDim(parameter.getIndices(), parameter.getStacked(),
                        stages->index)
      .has_value();
}

/// The operands of which a stage adds up what it has.
static MutableArrayRef<OpOperand> summandsOf(Operation *op) {
  if (auto repeat = dyn_cast<shd::RepeatOp>(op))
    return repeat.getInitsMutable();
  if (isMarkedPartial(op) && !isa<shd::PartOp, spmd::UpdateOp>(op))
    return op->getOpOperands();
  return {};
}

/// Operations that add up read the summand of each stage, others the sum over
/// the stages.
LogicalResult FunctionPrinter::printStaged(Operation *op) {
  shd::RepeatOp microbatches = stages->repeats.microbatches;
  if (op == microbatches)
    return printPipeline();
  bool isInMicrobatch = microbatches->isProperAncestor(op);
  auto isLayers = [&](Operation *around) {
    auto repeat = dyn_cast<shd::RepeatOp>(around);
    return repeat && repeat.getIndex() == stages->index;
  };
  bool inLayers = false;
  for (Operation *at = op->getParentOp(); at; at = at->getParentOp())
    inLayers |= isLayers(at);
  if (op == stages->repeats.forward || op == stages->repeats.backward)
    return printLayers(cast<shd::RepeatOp>(op));
  if (inLayers || (isInMicrobatch && !isMarkedPartial(op)))
    return printOp(op);
  llvm::MapVector<Value, std::string> known;
  auto readAs = [&](Value value, const std::string &expression) {
    std::string name = names.make(carriedName(array(value)));
    line(cat(name, " = ", expression));
    known.insert({value, expressions.lookup(value)});
    expressions[value] = name;
  };
  for (OpOperand &use : summandsOf(op)) {
    Value value = use.get();
    if (known.count(value) || isMarkedPartial(value) ||
        isa<BlockArgument>(value))
      continue;
    if (std::string mine = isOneOf(ownerOf(value)); !mine.empty())
      readAs(value, cat("jnp.where(", mine, ", ", array(value), ", 0)"));
  }
  bool readsSums = isa<spmd::ProgramOp>(op->getParentOp()) &&
                   !isa<shd::RepeatOp>(op) && !isMarkedPartial(op);
  if (readsSums)
    for (Value value : op->getOperands())
      if (isMarkedPartial(value) && !known.count(value))
        readAs(value, cat("lax.psum(", array(value), ", ", stages->axis, ")"));
  LogicalResult printed = printOp(op);
  for (const auto &[value, expression] : known) {
    if (expression.empty())
      expressions.erase(value);
    else
      expressions[value] = expression;
  }
  return printed;
}

/// Layers begin with what was received; on the stage where the pass begins,
/// with what it has made.
LogicalResult FunctionPrinter::printLayers(shd::RepeatOp layers) {
  std::string begins =
      isOneOf(layers.getReverse() ? shd::LastRole : shd::FirstRole);
  SmallVector<std::string> inits;
  for (auto [init, received] :
       llvm::zip_equal(layers.getInits(), stages->received)) {
    inits.push_back(names.make(wantedName(init)));
    line(cat(inits.back(), " = jnp.where(", begins, ", ", array(init), ", ",
             received, ")"));
  }
  return printRepeat(layers, inits);
}

//===----------------------------------------------------------------------===//
// One pass of all microbatches
//===----------------------------------------------------------------------===//

static bool isForward(Operation *op) {
  auto stage = op->getAttrOfType<shd::StageAttr>(shd::kStage);
  return stage && stage.getPass() == shd::StagePass::Forward;
}

/// What the backward pass of a microbatch reads of its forward pass.
static SmallVector<Value> keptFor(ArrayRef<Operation *> backward,
                                  Block &microbatch) {
  auto isWritten = [](Value buffer) {
    return llvm::any_of(buffer.getUsers(), [](Operation *user) {
      return isa<spmd::UpdateOp>(user) && isForward(user);
    });
  };
  auto isKept = [&](Value value) {
    Operation *maker = value.getDefiningOp();
    auto parameter = dyn_cast_or_null<spmd::ParameterOp>(maker);
    if (parameter)
      return parameter.getKind() == shd::TensorKind::Saved && isWritten(value);
    return maker && maker->getBlock() == &microbatch && isForward(maker) &&
           !isa<shd::ConstantOp>(maker);
  };
  llvm::SetVector<Value> kept;
  for (Operation *op : backward)
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (isKept(operand))
          kept.insert(operand);
    });
  return kept.takeVector();
}

/// The tensors that operations of a pass update, and the stages that do.
static llvm::MapVector<spmd::ParameterOp, shd::StageRoles>
updatedBy(ArrayRef<Operation *> ops) {
  llvm::MapVector<spmd::ParameterOp, shd::StageRoles> updated;
  for (Operation *op : ops)
    op->walk([&](spmd::UpdateOp update) {
      if (update.getParameter().getKind() != shd::TensorKind::Saved)
        updated[update.getParameter()] = markedRoles(update);
    });
  return updated;
}

/// The extents of a device's tensor.
std::string FunctionPrinter::localShape(Value value) {
  Operation *op = value.getDefiningOp();
  unsigned number = cast<OpResult>(value).getResultNumber();
  if (auto computed = dyn_cast<shd::ShardingRuleOpInterface>(op)) {
    IndexedOp indexed(file, computed);
    return indexed.shape(indexed.result(number));
  }
  auto shapeOf = [&](Operation *form) {
    return cast<RankedTensorType>(form->getResult(number).getType()).getShape();
  };
  SmallVector<std::string> extents;
  for (auto [full, small] :
       llvm::zip_equal(shapeOf(op), shapeOf(file.small.lookup(op))))
    extents.push_back(file.sizes.number("part", full, small));
  return pythonTuple(extents);
}

/// The backward pass, with layers in reverse, begins on the last stage.
LogicalResult FunctionPrinter::printPass(ArrayRef<Operation *> ops,
                                         shd::RepeatOp layers,
                                         ArrayRef<Value> kept,
                                         std::string &stack) {
  shd::RepeatOp microbatches = stages->repeats.microbatches;
  Block &body = microbatches.getBody().front();
  bool backward = layers.getReverse();
  std::string count = iterationsOf(microbatches);
  std::string function = names.make(backward ? "backward" : "forward");
  std::string microbatch = names.make(microbatches.getIndex());
  std::string works = names.make("works");
  expressions[body.getArgument(0)] = microbatch;
  auto mineOf = [&](shd::StageRoles roles) {
    std::string mine = isOneOf(roles);
    return mine.empty() ? works : cat(works, " & (", mine, ")");
  };

  SmallVector<std::string> inits, carried, sent;
  auto carry = [&](const std::string &init, StringRef wanted) {
    inits.push_back(init);
    carried.push_back(names.make(wanted));
    return carried.back();
  };
  stages->received.clear();
  for (Value init : layers.getInits()) {
    Type element = cast<RankedTensorType>(init.getType()).getElementType();
    stages->received.push_back(carry(
        cat("jnp.zeros(", localShape(init), ", ", file.type(element), ")"),
        cat(wantedName(init), "_received")));
  }
  // Values of the repeat over microbatches that this pass changes, by number.
  SmallVector<std::pair<unsigned, std::string>> sums;
  for (auto [i, value] : llvm::enumerate(body.getTerminator()->getOperands())) {
    Operation *maker = value.getDefiningOp();
    if (!maker || !llvm::is_contained(ops, maker))
      continue;
    std::string init = array(microbatches.getInits()[i]);
    sums.push_back({i, carry(init, carriedName(init))});
    expressions[body.getArgument(i + 1)] = sums.back().second;
  }
  auto updated = updatedBy(ops);
  llvm::DenseMap<Operation *, std::string> before;
  for (auto [parameter, roles] : updated) {
    std::string init = array(parameter);
    before[parameter] = carry(init, carriedName(init));
  }

  line(cat("def ", function, "(carried, tick):"));
  SmallVector<NamedExpression> outer = std::move(updates);
  updates.clear();
  ++indent;
  line(cat("\"\"\"A microbatch on its way through the stages",
           backward ? ", from the last one" : "", ".\"\"\""));
  line(cat(pythonTuple(carried), " = carried"));
  std::string place =
      backward ? cat(stages->last, " - ", stages->number) : stages->number;
  line(cat(microbatch, ", ", works, " = ", file.helper("turn"), "(tick, ",
           place, ", ", count, ")"));
  if (backward && !kept.empty()) {
    SmallVector<std::string> restored;
    for (Value value : kept) {
      restored.push_back(names.make(carriedName(array(value))));
      expressions[value] = restored.back();
    }
    line(cat(pythonTuple(restored), " = jax.tree.map(lambda x: x[", microbatch,
             " + ", stages->number, "], ", stack, ")"));
  }
  for (auto [parameter, roles] : updated) {
    std::string &name = expressions[parameter];
    name = before[parameter];
    if (shd::isBuffer(parameter.getKind()))
      continue;
    std::string whole = name;
    name = names.make(cat(carriedName(whole), "_part"));
    line(cat(name, " = ", whole, "[", microbatch, "]"));
    narrowed[parameter].push_back(body.getArgument(0));
  }
  for (Operation *op : ops)
    if (failed(printStaged(op)))
      return failure();

  for (Value result : layers.getResults())
    sent.push_back(cat(file.helper("to_stage"), "(", array(result), ", ",
                       stages->axis, ", ", backward ? "-1" : "1", ")"));
  for (const auto &[i, name] : sums) {
    Value value = body.getTerminator()->getOperand(i);
    sent.push_back(cat("jnp.where(", mineOf(markedRoles(value.getDefiningOp())),
                       ", ", array(value), ", ", name, ")"));
  }
  for (auto [parameter, roles] : updated) {
    std::string mine = mineOf(roles), old = before[parameter];
    if (shd::isBuffer(parameter.getKind())) {
      sent.push_back(
          cat("jnp.where(", mine, ", ", array(parameter), ", ", old, ")"));
      continue;
    }
    std::string name = file.parameters.lookup(parameter.getSym());
    auto *made = llvm::find_if(
        updates, [&](const auto &update) { return update.first == name; });
    sent.push_back(cat(old, ".at[jnp.where(", mine, ", ", microbatch, ", ",
                       count, ")].set(", made->second, ", mode=\"drop\")"));
    narrowed[parameter].pop_back();
  }
  SmallVector<std::string> saved;
  if (!backward)
    for (Value value : kept)
      saved.push_back(array(value));
  line(cat("return ", pythonTuple(sent), ", ", pythonTuple(saved)));
  --indent;
  updates = std::move(outer);

  // The last messages go nowhere.
  SmallVector<std::string> results(layers.getNumResults(), "_");
  for (const std::string &name :
       ArrayRef(carried).drop_front(layers.getNumResults()))
    results.push_back(names.make(carriedName(name)));
  stack = kept.empty() || backward ? "_" : names.make("kept");
  line(cat(pythonTuple(results), ", ", stack, " = lax.scan(", function, ", ",
           pythonTuple(inits), ", jnp.arange(", count, " + ", stages->last,
           ", dtype=", file.type(IntegerType::get(layers.getContext(), 32)),
           "))"));
  auto *after = results.begin() + layers.getNumResults();
  for (const auto &[i, name] : sums) {
    Operation *maker = body.getTerminator()->getOperand(i).getDefiningOp();
    expressions[microbatches.getResult(i)] =
        onAllStages(*after++, markedRoles(maker), isMarkedPartial(maker));
  }
  for (auto [parameter, roles] : updated) {
    bool isBuffer = shd::isBuffer(parameter.getKind());
    std::string name = *after++;
    if (!isOfLayers(parameter))
      name = onAllStages(name, roles, /*adds=*/isBuffer);
    expressions[parameter] =
        isBuffer ? name : file.parameters.lookup(parameter.getSym());
    if (!isBuffer)
      updates.push_back({file.parameters.lookup(parameter.getSym()), name});
  }
  return success();
}

/// What the stages of these roles have: its sum, or that of the only one.
std::string FunctionPrinter::onAllStages(const std::string &value,
                                         shd::StageRoles roles, bool adds) {
  std::string mine = isOneOf(roles);
  if (mine.empty())
    return value;
  std::string name = names.make(carriedName(value));
  line(adds ? cat(name, " = lax.psum(", value, ", ", stages->axis, ")")
            : cat(name, " = ", file.helper("of_stage"), "(", value, ", ", mine,
                  ", ", stages->axis, ")"));
  return name;
}

LogicalResult FunctionPrinter::printPipeline() {
  auto [microbatches, forwardLayers, backwardLayers] = stages->repeats;
  Block &body = microbatches.getBody().front();
  SmallVector<Operation *> forward, backward;
  for (Operation &op : body.without_terminator())
    (isForward(&op) ? forward : backward).push_back(&op);
  // Values that no pass changes.
  for (auto [init, argument, result] : llvm::zip_equal(
           microbatches.getInits(), body.getArguments().drop_front(),
           microbatches.getResults()))
    expressions[argument] = expressions[result] = array(init);
  SmallVector<Value> kept = keptFor(backward, body);
  std::string stack;
  if (failed(printPass(forward, forwardLayers, kept, stack)))
    return failure();
  return backwardLayers ? printPass(backward, backwardLayers, kept, stack)
                        : success();
}
