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
  stages.emplace();
  stages->repeats = shd::pipelineRepeats(program, index);
  stages->index = index;
  stages->axis = axis;
  stages->number = names.make("stage");
  stages->last = names.make("last_stage");
  line(cat(stages->number, " = lax.axis_index(", axis, ")"));
  line(cat(stages->last, " = lax.axis_size(", axis, ") - 1"));
}

/// `stage == 0`; empty for all stages.
std::string FunctionPrinter::isOneOf(shd::StageRoles roles) const {
  if (roles & shd::LayerRole)
    return "";
  std::string first = cat(stages->number, " == 0");
  std::string last = cat(stages->number, " == ", stages->last);
  if (!stages->chunk.empty()) {
    first = cat("(", first, ") & (", stages->chunk, " == 0)");
    last = cat("(", last, ") & (", stages->chunk, " == ", file.chunks - 1, ")");
  }
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

/// The dimension that counts the layers of a tensor that has a part for each.
std::optional<unsigned>
FunctionPrinter::layersDim(spmd::ParameterOp parameter) const {
  return shd::layersDim(parameter.getIndices(), parameter.getStacked(),
                        stages->index);
}

bool FunctionPrinter::isLayers(Operation *op) const {
  auto repeat = dyn_cast<shd::RepeatOp>(op);
  return repeat && repeat.getIndex() == stages->index;
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
  bool inLayers = false;
  for (Operation *at = op->getParentOp(); at; at = at->getParentOp())
    inLayers |= isLayers(at);
  auto repeat = dyn_cast<shd::RepeatOp>(op);
  if (isLayersOfMicrobatch(repeat))
    return printLayers(repeat);
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

/// The values of its forward pass that a microbatch's backward pass reads.
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

static std::string chosen(const std::string &condition,
                          const std::string &ifTrue,
                          const std::string &ifFalse) {
  return cat("jnp.where(", condition, ", ", ifTrue, ", ", ifFalse, ")");
}

namespace {
/// A value that a stage carries from one of its microbatches to the next one:
/// a sum of the repeat over microbatches, or a tensor that layers update.
struct Carried {
  /// The number of the sum, or the tensor.
  unsigned number = 0;
  spmd::ParameterOp tensor;
  shd::StageRoles roles = shd::kAllRoles;
  /// Names of it as a whole, and of what an item has of it.
  std::string name, part;

  /// A state has a part for each microbatch.
  bool isState() { return tensor && !shd::isBuffer(tensor.getKind()); }
};
} // namespace

/// Prints a pass as a function of what a stage carries and the tick, and its
/// loop. The backward pass, with layers in reverse, begins on the last stage.
class FunctionPrinter::PassPrinter {
public:
  PassPrinter(FunctionPrinter &printer, ArrayRef<Operation *> ops,
              shd::RepeatOp layers)
      : printer(printer), file(printer.file), stages(*printer.stages), ops(ops),
        layers(layers), microbatches(stages.repeats.microbatches),
        body(microbatches.getBody().front()), backward(layers.getReverse()),
        hasChunks(file.chunks > 1), count(printer.iterationsOf(microbatches)),
        items(hasChunks ? cat(count, " * ", file.chunks) : count) {}

  /// `stack` is the name of what the forward pass keeps.
  LogicalResult print(ArrayRef<Value> kept, std::string &stack);

private:
  void findCarried();
  void beginItem();
  void restore(ArrayRef<Value> kept, StringRef stack);
  std::string take(spmd::ParameterOp tensor, const std::string &whole,
                   bool isState);
  void takeParts(ArrayRef<Value> kept);
  std::string changed(Carried &value);
  void printLoop(const std::string &function, StringRef stack);

  std::string name(StringRef wanted) { return printer.names.make(wanted); }
  /// True in an item of a stage that has one and these roles.
  std::string mine(shd::StageRoles roles) {
    std::string is = printer.isOneOf(roles);
    return is.empty() ? works : cat(works, " & (", is, ")");
  }

  FunctionPrinter &printer;
  PythonFile &file;
  Stages &stages;
  ArrayRef<Operation *> ops;
  shd::RepeatOp layers, microbatches;
  Block &body;
  bool backward, hasChunks;
  /// How many microbatches, and how many items of each stage, there are.
  std::string count, items;
  std::string microbatch, works;
  /// Initial values, in the order of the arguments: messages, then `carried`.
  SmallVector<std::string> inits;
  SmallVector<Carried> carried;
};

void FunctionPrinter::PassPrinter::findCarried() {
  stages.received.clear();
  for (Value init : layers.getInits()) {
    Type element = cast<RankedTensorType>(init.getType()).getElementType();
    inits.push_back(cat("jnp.zeros(", printer.localShape(init), ", ",
                        file.type(element), ")"));
    stages.received.push_back(name(cat(wantedName(init), "_received")));
  }
  auto add = [&](Carried value, const std::string &init) {
    inits.push_back(init);
    value.name = name(carriedName(init));
    carried.push_back(value);
  };
  for (auto [i, value] : llvm::enumerate(body.getTerminator()->getOperands())) {
    Operation *maker = value.getDefiningOp();
    if (maker && llvm::is_contained(ops, maker))
      add({unsigned(i), {}, markedRoles(maker), {}, {}},
          printer.array(microbatches.getInits()[i]));
  }
  for (auto [tensor, roles] : updatedBy(ops))
    add({0, tensor, roles, {}, {}}, printer.array(tensor));
}

/// Which microbatch it is, and of which chunk of layers.
void FunctionPrinter::PassPrinter::beginItem() {
  microbatch = name(microbatches.getIndex());
  works = name("works");
  printer.expressions[body.getArgument(0)] = microbatch;
  std::string item = hasChunks ? name("item") : microbatch;
  std::string place =
      backward ? cat(stages.last, " - ", stages.number) : stages.number;
  printer.line(cat(item, ", ", works, " = ", file.helper("turn"), "(tick, ",
                   place, ", ", items, ")"));
  if (hasChunks) {
    std::string chunk = name("chunk");
    printer.line(cat(microbatch, ", ", chunk, " = ", file.helper("chunk_of"),
                     "(", item, ", ", stages.axis, ", ", file.chunks, ")"));
    stages.chunk = chunk;
    if (backward) {
      stages.chunk = name(chunk);
      printer.line(cat(stages.chunk, " = ", file.chunks - 1, " - ", chunk));
    }
  }
  if (file.isUneven) {
    stages.held = name("held");
    printer.line(cat(stages.held, " = jnp.array(HELD)[", stages.number, ", ",
                     hasChunks ? stages.chunk : "0", "]"));
  }
}

/// Takes the values that the forward pass kept in the tick of this item.
void FunctionPrinter::PassPrinter::restore(ArrayRef<Value> kept,
                                           StringRef stack) {
  SmallVector<std::string> restored;
  for (Value value : kept) {
    auto tensor = value.getDefiningOp<spmd::ParameterOp>();
    restored.push_back(name(tensor ? file.parameters.lookup(tensor.getSym())
                                   : wantedName(value)));
    printer.expressions[value] = restored.back();
  }
  std::string item =
      hasChunks ? cat(file.helper("item_of"), "(", microbatch, ", ",
                      stages.chunk, ", ", stages.axis, ", ", file.chunks, ")")
                : microbatch;
  printer.line(cat(pythonTuple(restored), " = jax.tree.map(lambda x: x[", item,
                   " + ", stages.number, "], ", stack, ")"));
}

/// Takes the microbatch's part of a state, and the chunk's part of a tensor
/// that has one for each layer.
std::string FunctionPrinter::PassPrinter::take(spmd::ParameterOp tensor,
                                               const std::string &whole,
                                               bool isState) {
  std::string text = isState ? cat(whole, "[", microbatch, "]") : whole;
  std::optional<unsigned> dim = printer.layersDim(tensor);
  if (dim && hasChunks)
    text = cat(file.helper("chunk"), "(", text, ", ", stages.chunk, ", ",
               *dim - isState, ", ", file.chunks, ")");
  if (text != whole) {
    std::string part = name(cat(carriedName(whole), "_part"));
    printer.line(cat(part, " = ", text));
    text = part;
  }
  printer.expressions[tensor] = text;
  return text;
}

/// `kept` are those of this item already.
void FunctionPrinter::PassPrinter::takeParts(ArrayRef<Value> kept) {
  llvm::DenseSet<Operation *> taken;
  for (Value value : kept)
    taken.insert(value.getDefiningOp());
  for (Carried &value : carried) {
    if (!value.tensor) {
      printer.expressions[body.getArgument(value.number + 1)] = value.name;
      continue;
    }
    taken.insert(value.tensor);
    value.part = take(value.tensor, value.name, value.isState());
    if (value.isState())
      printer.narrowed[value.tensor].push_back(body.getArgument(0));
  }
  for (auto tensor :
       microbatches->getParentRegion()->getOps<spmd::ParameterOp>())
    if (!taken.contains(tensor) &&
        llvm::any_of(tensor->getUsers(), [&](Operation *user) {
          return layers->isProperAncestor(user);
        }))
      take(tensor, printer.expressions.lookup(tensor), /*isState=*/false);
}

/// A value as the item leaves it. Items that are not there change nothing.
std::string FunctionPrinter::PassPrinter::changed(Carried &value) {
  std::string isMine = mine(value.roles);
  if (!value.tensor)
    return chosen(isMine,
                  printer.array(body.getTerminator()->getOperand(value.number)),
                  value.name);
  std::string result, whole = value.name;
  if (value.isState()) {
    std::string symbol = file.parameters.lookup(value.tensor.getSym());
    result = llvm::find_if(printer.updates, [&](const auto &update) {
               return update.first == symbol;
             })->second;
    whole = cat(whole, "[", microbatch, "]");
  } else {
    result = chosen(isMine, printer.array(value.tensor), value.part);
  }
  std::optional<unsigned> dim = printer.layersDim(value.tensor);
  if (dim && hasChunks) {
    unsigned at = *dim - value.isState();
    result =
        cat("lax.dynamic_update_slice_in_dim(", whole, ", ", result, ", ",
            stages.chunk, " * ", value.part, ".shape[", at, "], ", at, ")");
  }
  if (!value.isState())
    return result;
  return cat(value.name, ".at[", chosen(isMine, microbatch, count), "].set(",
             result, ", mode=\"drop\")");
}

/// Behind the loop every stage has what belongs to the first or the last one.
void FunctionPrinter::PassPrinter::printLoop(const std::string &function,
                                             StringRef stack) {
  // The last messages go nowhere.
  SmallVector<std::string> results(stages.received.size(), "_");
  for (const Carried &value : carried)
    results.push_back(name(carriedName(value.name)));
  printer.line(cat(
      pythonTuple(results), ", ", stack, " = lax.scan(", function, ", ",
      pythonTuple(inits), ", jnp.arange(", items, " + ", stages.last,
      ", dtype=", file.type(IntegerType::get(layers.getContext(), 32)), "))"));
  for (auto [value, made] : llvm::zip_equal(
           carried, ArrayRef(results).drop_front(stages.received.size()))) {
    if (!value.tensor) {
      Value sum = body.getTerminator()->getOperand(value.number);
      printer.expressions[microbatches.getResult(value.number)] =
          printer.onAllStages(made, value.roles, isMarkedPartial(sum));
      continue;
    }
    std::string all =
        printer.layersDim(value.tensor)
            ? made
            : printer.onAllStages(made, value.roles, !value.isState());
    if (value.isState())
      printer.updates.push_back(
          {file.parameters.lookup(value.tensor.getSym()), all});
    else
      printer.expressions[value.tensor] = all;
  }
}

LogicalResult FunctionPrinter::PassPrinter::print(ArrayRef<Value> kept,
                                                  std::string &stack) {
  std::string function = name(backward ? "backward" : "forward");
  findCarried();
  SmallVector<std::string> arguments(stages.received);
  for (const Carried &value : carried)
    arguments.push_back(value.name);
  printer.line(cat("def ", function, "(carried, tick):"));
  SmallVector<NamedExpression> updates = std::move(printer.updates);
  printer.updates.clear();
  llvm::DenseMap<Value, std::string> expressions = printer.expressions;
  ++printer.indent;
  printer.line(cat("\"\"\"A microbatch on its way through the stages",
                   backward ? ", from the last one" : "", ".\"\"\""));
  printer.line(cat(pythonTuple(arguments), " = carried"));
  beginItem();
  if (backward && !kept.empty())
    restore(kept, stack);
  takeParts(backward ? kept : ArrayRef<Value>());
  for (Operation *op : ops)
    if (failed(printer.printStaged(op)))
      return failure();
  SmallVector<std::string> results, saved;
  for (Value result : layers.getResults())
    results.push_back(cat(file.helper(hasChunks ? "around" : "to_stage"), "(",
                          printer.array(result), ", ", stages.axis, ", ",
                          backward ? "-1" : "1", ")"));
  for (Carried &value : carried)
    results.push_back(changed(value));
  if (!backward)
    for (Value value : kept)
      saved.push_back(printer.array(value));
  printer.line(cat("return ", pythonTuple(results), ", ", pythonTuple(saved)));
  --printer.indent;
  for (Carried &value : carried)
    if (value.isState())
      printer.narrowed[value.tensor].pop_back();
  stages.chunk.clear();
  // Names of the function end with it.
  printer.expressions = std::move(expressions);
  printer.updates = std::move(updates);
  stack = saved.empty() ? "_" : name("kept");
  printLoop(function, stack);
  return success();
}

/// The sum of the values on the stages of these roles, or the value of the only
/// one, on all stages.
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
  if (failed(PassPrinter(*this, forward, forwardLayers).print(kept, stack)))
    return failure();
  if (!backwardLayers)
    return success();
  return PassPrinter(*this, backward, backwardLayers).print(kept, stack);
}
