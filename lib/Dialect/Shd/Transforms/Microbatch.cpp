//===- Microbatch.cpp - shd-microbatch -------------------------*- C++ -*-===//
//
// Gradient accumulation: forward and backward pass run once for each part of
// the batch, in a repeat, and add up loss and gradients. A pipeline of
// inference runs its forward pass so; its outputs, and states that have the
// batch, then have a part for each microbatch. The dimensions that are split
// are found from the inputs' along the factors of sharding rules.
//
//===----------------------------------------------------------------------===//

#include "shardc/Dialect/Shd/IR/Gradient.h"
#include "shardc/Dialect/Shd/IR/Pipeline.h"
#include "shardc/Dialect/Shd/Transforms/Passes.h"
#include "shardc/Optimizer/Names.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace shardc::shd {
#define GEN_PASS_DEF_SHDMICROBATCH
#include "shardc/Dialect/Shd/Transforms/Passes.h.inc"

namespace {

/// Finds, for each value, the dimension along which it is split.
class BatchDims {
public:
  explicit BatchDims(ProgramOp program) : program(program) {}

  /// Starts with a dimension of an input.
  LogicalResult add(Value value, unsigned dim);
  /// Follows them through the program; fails where a value would be split along
  /// two dimensions, or no value of an operation can be.
  LogicalResult spread();
  std::optional<unsigned> of(Value value) const {
    auto it = dims.find(value);
    return it == dims.end() ? std::nullopt : std::optional(it->second);
  }
  ArrayRef<std::pair<Value, unsigned>> all() const {
    return dims.getArrayRef();
  }

private:
  LogicalResult visit(Operation *op);
  LogicalResult visitRuled(ShardingRuleOpInterface op);
  LogicalResult unite(ValueRange values);
  LogicalResult unitePart(Value whole, Value part);

  ProgramOp program;
  llvm::MapVector<Value, unsigned> dims;
  bool changed = false;
};

LogicalResult BatchDims::add(Value value, unsigned dim) {
  auto [it, isNew] = dims.try_emplace(value, dim);
  changed |= isNew;
  if (it->second == dim)
    return success();
  return emitError(value.getLoc())
         << "'" << valueName(value)
         << "' has the batch in two dimensions, so that its parts depend on "
            "each other; use microbatches = 1";
}

/// Values of one type that are one after the other.
LogicalResult BatchDims::unite(ValueRange values) {
  for (Value value : values)
    if (std::optional<unsigned> dim = of(value))
      for (Value other : values)
        if (failed(add(other, *dim)))
          return failure();
  return success();
}

LogicalResult BatchDims::unitePart(Value whole, Value part) {
  unsigned stacked = cast<RankedTensorType>(whole.getType()).getRank() -
                     cast<RankedTensorType>(part.getType()).getRank();
  if (std::optional<unsigned> dim = of(part))
    return add(whole, *dim + stacked);
  std::optional<unsigned> dim = of(whole);
  return dim && *dim >= stacked ? add(part, *dim - stacked) : success();
}

/// True if an operation computes with the number of an element along an index:
/// that of a microbatch begins anew.
static bool countsAlong(Operation *op, StringRef index) {
  if (auto rope = dyn_cast<RopeOp>(op))
    return !rope.getAt() && rope.getPositions() == index;
  if (auto attention = dyn_cast<AttentionOpInterface>(op))
    return !attention.getAt() && attention.getQuery() == index &&
           (attention.getCausal() || attention.getWindow());
  return false;
}

static LogicalResult refusePositions(Operation *op) {
  return op->emitError()
         << "'" << getResultName(op->getResult(0))
         << "' depends on positions in the batch; use microbatches = 1";
}

/// A factor of one of the operation's dimensions has the batch: so have all of
/// its dimensions.
LogicalResult BatchDims::visitRuled(ShardingRuleOpInterface op) {
  ShardingRule rule = op.getShardingRule();
  SmallVector<std::pair<Value, const TensorFactors *>> tensors;
  for (auto [i, factors] : llvm::enumerate(rule.operands))
    tensors.push_back({op->getOperand(i), &factors});
  for (auto [i, factors] : llvm::enumerate(rule.results))
    tensors.push_back({op->getResult(i), &factors});
  llvm::SmallDenseSet<unsigned, 2> split;
  for (auto &[value, factors] : tensors)
    if (std::optional<unsigned> dim = of(value);
        dim && !(*factors)[*dim].empty())
      split.insert((*factors)[*dim].front());
  for (unsigned factor : split)
    if (rule.factors[factor].kind != FactorKind::Parallel &&
        rule.factors[factor].kind != FactorKind::Reduction)
      return op.emitError()
             << "'" << getResultName(op->getResult(0)) << "' needs all of '"
             << rule.factors[factor].name
             << "' at once, which is the batch; use microbatches = 1";
  // Merged, the batch may be the major index. Elements that a split batch has
  // together would be others in each microbatch.
  bool mayDivide = !isa<SplitOp>(op) || getPhase(op) == Phase::Backward;
  for (auto &[value, factors] : tensors)
    for (const auto &list : *factors) {
      auto refused =
          ArrayRef(list).drop_front(mayDivide && !list.empty() ? 1 : 0);
      if (list.size() > 1 && llvm::any_of(refused, [&](unsigned factor) {
            return split.contains(factor);
          }))
        return refusePositions(op);
    }
  for (unsigned factor : split)
    if (countsAlong(op, rule.factors[factor].name))
      return refusePositions(op);
  if (auto positions = dyn_cast<PositionsOpInterface>(op.getOperation()))
    for (int64_t dim : positions.getDims())
      if (std::optional<unsigned> batch = of(positions.getPositioned());
          batch && int64_t(*batch) == dim)
        return refusePositions(op);
  for (auto &[value, factors] : tensors)
    for (auto [dim, list] : llvm::enumerate(*factors))
      if (!list.empty() && split.contains(list.front()) &&
          failed(add(value, dim)))
        return failure();
  return success();
}

LogicalResult BatchDims::visit(Operation *op) {
  if (auto repeat = dyn_cast<RepeatOp>(op)) {
    Operation *yield = repeat.getBody().front().getTerminator();
    for (auto [init, argument, yielded, result] :
         llvm::zip_equal(repeat.getInits(), repeat.getCarried(),
                         yield->getOperands(), repeat.getResults()))
      if (failed(unite({init, argument, yielded, result})))
        return failure();
    return success();
  }
  if (auto part = dyn_cast<PartOp>(op))
    return unitePart(part.getSource(), part.getResult());
  if (auto update = dyn_cast<UpdateOp>(op))
    return unitePart(update.getState(), update.getValue());
  if (auto ruled = dyn_cast<ShardingRuleOpInterface>(op))
    return visitRuled(ruled);
  return success();
}

LogicalResult BatchDims::spread() {
  do {
    changed = false;
    WalkResult result = program.walk([&](Operation *op) {
      return failed(visit(op)) ? WalkResult::interrupt()
                               : WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
  } while (changed);
  return success();
}

class Microbatching {
public:
  Microbatching(ProgramOp program, int64_t count)
      : program(program), training(program.getTraining()), count(count),
        builder(program.getContext()), dims(program) {}

  LogicalResult run();

private:
  /// How the parts' values make the value of the whole batch.
  enum class Joins { Whole, Batch, Mean, Sum };

  LogicalResult refuseCount(DeclareOp input, StringRef batch, int64_t extent);
  LogicalResult findInputs();
  LogicalResult check();
  LogicalResult checkPin(ShardingAttr pin, Value value, unsigned dim,
                         Location loc);
  LogicalResult checkPins(Value value, unsigned dim);
  FailureOr<Joins> joinsOf(ShardingRuleOpInterface op);
  LogicalResult checkForward(Block &block);
  LogicalResult checkDeclared(DeclareOp declare);
  LogicalResult checkUpdates();
  LogicalResult takeWhole();
  LogicalResult sortOutputs();
  Value zeroOf(OutputOp sum);
  Value addUp(OutputOp sum, Value before);
  void moveIntoRepeat();
  void takePartsOf(DeclareOp state, RepeatOp repeat);
  void collect(OutputOp output, RepeatOp repeat);
  void takePartOf(DeclareOp input, RepeatOp repeat);
  void accumulate(UpdateOp update);
  void divideMeans();
  int64_t microbatchesOfPipeline();
  static bool canSplit(ProgramOp program, int64_t count);
  void countInFlight();
  void resize();
  Value onOutput(OutputOp output, Function function, ValueRange operands,
                 Type type);

  ProgramOp program;
  /// Nothing for a pipeline of inference.
  std::optional<TrainingAttr> training;
  int64_t count;
  OpBuilder builder;
  BatchDims dims;
  llvm::DenseMap<Value, Joins> joins;
  SmallVector<DeclareOp> inputs, states;
  /// Outputs that microbatches add up, such as the loss, and those of which
  /// each has a part.
  SmallVector<OutputOp> sums, collected;
};

//===----------------------------------------------------------------------===//
// What is legal
//===----------------------------------------------------------------------===//

/// The error stands where the program says how many, if it does.
LogicalResult Microbatching::refuseCount(DeclareOp input, StringRef batch,
                                         int64_t extent) {
  auto written = program->getAttrOfType<LocationAttr>(kMicrobatchesAt);
  InFlightDiagnostic error =
      emitError(written ? Location(written) : input.getLoc())
      << count << " microbatches do not divide " << batch << " = " << extent;
  if (written)
    error.attachNote(input.getLoc())
        << "'" << batch << "' is the index of the batch, which input '"
        << input.getSym() << "' has";
  return error;
}

/// The inputs with the batch; without a name it is the first index of each.
LogicalResult Microbatching::findInputs() {
  StringAttr named = training ? training->getBatch() : StringAttr();
  StringAttr batch = named;
  for (auto input : program.getBody().getOps<DeclareOp>()) {
    if (input.getKind() != TensorKind::Input)
      continue;
    ArrayAttr indices = input.getIndices();
    if (!named) {
      auto first =
          indices.empty() ? StringAttr() : cast<StringAttr>(indices[0]);
      if (!first || (batch && first != batch))
        return input.emitError("microbatches need the index of the batch, "
                               "which is not the first of every input")
               << (training ? "; give the train block a `batch = NAME`" : "");
      batch = first;
    }
    const auto *at = llvm::find(indices.getValue(), Attribute(batch));
    if (at == indices.end())
      continue;
    unsigned dim = at - indices.begin();
    int64_t extent = input.getType().getDimSize(dim);
    if (extent % count != 0)
      return refuseCount(input, batch.getValue(), extent);
    inputs.push_back(input);
    if (failed(dims.add(input.getResult(), dim)))
      return failure();
  }
  if (!inputs.empty())
    return success();
  Location loc = program.getLoc();
  for (auto output : program.getBody().getOps<OutputOp>())
    if (training && output.getSym() == training->getLoss())
      loc = output.getLoc();
  return emitError(loc) << count
                        << " microbatches need an input with the index "
                        << "of the batch, but no input has it";
}

static bool isMean(Operation *op) {
  auto reduce = dyn_cast<ReduceOp>(op);
  return reduce && reduce.getKind() == Reduction::Mean;
}

/// True for operations whose result, of means, is the mean of the results.
static bool isAffine(Operation *op) {
  auto elementwise = dyn_cast<ElementwiseOp>(op);
  return elementwise && (elementwise.getFunction() == Function::Add ||
                         elementwise.getFunction() == Function::Sub);
}

static bool passesOn(Operation *op) {
  auto elementwise = dyn_cast<ElementwiseOp>(op);
  return isa<ReshardOp>(op) ||
         (elementwise && (elementwise.getFunction() == Function::Cast ||
                          elementwise.getFunction() == Function::Copy));
}

FailureOr<Microbatching::Joins>
Microbatching::joinsOf(ShardingRuleOpInterface op) {
  bool hasBatch = false;
  uint32_t joined = 0;
  Joins how = Joins::Whole;
  ShardingRule rule = op.getShardingRule();
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    Joins each = joins.lookup(operand);
    hasBatch |= each == Joins::Batch;
    if (each != Joins::Mean && each != Joins::Sum)
      continue;
    if (how != Joins::Whole && how != each)
      return op.emitError()
             << "'" << getResultName(op->getResult(0))
             << "' is made of a sum and of a mean over the batch, which "
                "microbatches cannot be; use microbatches = 1";
    how = each;
    joined |= uint32_t(1) << i;
  }
  if (joined == 0) {
    if (!hasBatch)
      return Joins::Whole;
    for (Value result : op->getResults())
      if (!dims.of(result))
        return isMean(op) ? Joins::Mean : Joins::Sum;
    return Joins::Batch;
  }
  if (!hasBatch &&
      (passesOn(op) || llvm::is_contained(rule.linearSets, joined) ||
       (how == Joins::Mean && isAffine(op))))
    return how;
  return op.emitError() << "'" << getResultName(op->getResult(0))
                        << "' is not linear in a sum over the batch, which "
                           "microbatches need; use microbatches = 1";
}

/// The forward pass up to the loss: the batch is parallel until sums or means
/// remove it, and what follows is linear in these.
LogicalResult Microbatching::checkForward(Block &block) {
  for (Operation &op : block) {
    if (getPhase(&op) != Phase::Forward)
      continue;
    if (auto repeat = dyn_cast<RepeatOp>(op)) {
      for (auto [argument, init] :
           llvm::zip_equal(repeat.getCarried(), repeat.getInits()))
        joins[argument] = joins.lookup(init);
      Block &body = repeat.getBody().front();
      // Twice: what is yielded is what the next iteration begins with.
      for (unsigned i = 0; i < 2; ++i) {
        if (failed(checkForward(body)))
          return failure();
        for (auto [argument, yielded] : llvm::zip_equal(
                 repeat.getCarried(), body.getTerminator()->getOperands()))
          joins[argument] = joins.lookup(yielded);
      }
      for (auto [result, argument] :
           llvm::zip_equal(repeat.getResults(), repeat.getCarried()))
        joins[result] = joins.lookup(argument);
    } else if (auto part = dyn_cast<PartOp>(op)) {
      joins[part.getResult()] = joins.lookup(part.getSource());
    } else if (auto ruled = dyn_cast<ShardingRuleOpInterface>(op)) {
      FailureOr<Joins> how = joinsOf(ruled);
      if (failed(how))
        return failure();
      for (Value result : op.getResults())
        joins[result] = *how;
    }
  }
  return success();
}

/// The axes that a layout places the batch on divide each microbatch.
LogicalResult Microbatching::checkPin(ShardingAttr pin, Value value,
                                      unsigned dim, Location loc) {
  if (!pin || program.getAllowPadding() || !program.getMesh())
    return success();
  int64_t parts = 1;
  for (StringAttr axis : pin.getDims()[dim].getAxes())
    for (MeshAxisAttr each : program.getMesh()->getAxes())
      if (each.getName() == axis.getValue())
        parts *= each.getSize();
  int64_t extent =
      cast<RankedTensorType>(value.getType()).getDimSize(dim) / count;
  if (extent % parts == 0)
    return success();
  return emitError(loc) << "'" << valueName(value)
                        << "' has the batch on axes of " << parts
                        << " devices, which do not divide the " << extent
                        << " of a microbatch";
}

/// So do the layouts in which the program stores and reads a value. Inputs are
/// stored whole, and operations read parts of them.
LogicalResult Microbatching::checkPins(Value value, unsigned dim) {
  auto declare = value.getDefiningOp<DeclareOp>();
  bool isInput = declare && declare.getKind() == TensorKind::Input;
  if (!isInput &&
      failed(checkPin(getStoredPin(value), value, dim, value.getLoc())))
    return failure();
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (failed(checkPin(getOperandPin(user, use.getOperandNumber()), value, dim,
                        user->getLoc())))
      return failure();
  }
  return success();
}

/// A declared tensor that has the batch: an input with its index, a buffer, or
/// a state of a pipeline of inference.
LogicalResult Microbatching::checkDeclared(DeclareOp declare) {
  bool isInput = declare.getKind() == TensorKind::Input;
  if (isInput && !llvm::is_contained(inputs, declare))
    return declare.emitError()
           << "'" << declare.getSym()
           << "' meets the batch, but has another index for it; use "
              "microbatches = 1";
  bool isState = !training && declare.getKind() == TensorKind::State;
  if (isState)
    states.push_back(declare);
  if (isInput || isState || declare.getKind() == TensorKind::Saved)
    return success();
  return declare.emitError() << "'" << declare.getSym()
                             << "' has the index of the batch; use "
                                "microbatches = 1";
}

/// What one microbatch writes another one must not read.
LogicalResult Microbatching::checkUpdates() {
  WalkResult result = program.walk([&](UpdateOp update) {
    if (training || dims.of(update.getState()))
      return WalkResult::advance();
    update.emitError() << "state '" << update.getSym()
                       << "' lacks the index of the batch, so that each "
                          "microbatch of the pipeline would update it";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// The loss is added up; of a pipeline of inference, so are all outputs without
/// the batch.
LogicalResult Microbatching::sortOutputs() {
  for (auto output : program.getBody().getOps<OutputOp>()) {
    bool isLoss = training && output.getSym() == training->getLoss();
    if (training && !isLoss)
      return output.emitError()
             << "output '" << output.getSym()
             << "' is not the loss, which is all that leaves a step in "
                "microbatches";
    bool isWhole = count == 1;
    bool isPart = dims.of(output.getValue()) || (isWhole && !training);
    if (!isPart && !isWhole && joins.lookup(output.getValue()) == Joins::Whole)
      return output.emitError()
             << (isLoss ? "the loss '" : "output '") << output.getSym()
             << "' does not depend on the batch"
             << (isLoss ? "; use microbatches = 1" : "");
    (isPart ? collected : sums).push_back(output);
  }
  return success();
}

/// One microbatch is the whole batch, whatever the batch is.
LogicalResult Microbatching::takeWhole() {
  if (!training)
    program.walk([&](UpdateOp update) {
      if (!llvm::is_contained(states, update.getDeclaration()))
        states.push_back(update.getDeclaration());
    });
  return sortOutputs();
}

LogicalResult Microbatching::check() {
  if (failed(findInputs()) || failed(dims.spread()))
    return failure();
  for (auto [value, dim] : dims.all()) {
    auto declare = value.getDefiningOp<DeclareOp>();
    if (declare && failed(checkDeclared(declare)))
      return failure();
    if (value.getDefiningOp<IotaOp>())
      return emitError(value.getLoc(),
                       "counts along the batch; use microbatches = 1");
  }
  for (auto [value, dim] : dims.all())
    if (failed(checkPins(value, dim)))
      return failure();
  for (DeclareOp declare : llvm::concat<DeclareOp>(inputs, states))
    joins[declare.getResult()] = Joins::Batch;
  if (failed(checkUpdates()) || failed(checkForward(program.getBody().front())))
    return failure();
  return sortOutputs();
}

//===----------------------------------------------------------------------===//
// The repeat
//===----------------------------------------------------------------------===//

/// The value that gives the one operand of a mean's derivative the elements
/// of the mean's operand; null if there is none.
static Value broadcastOf(ConstantOp inverse) {
  Value value = inverse.getResult();
  auto rankOf = [](Value of) {
    return cast<RankedTensorType>(of.getType()).getRank();
  };
  for (bool isProduct = true; value.hasOneUse(); isProduct = false) {
    auto user = dyn_cast<ElementwiseOp>(*value.user_begin());
    if (!user)
      return {};
    Value result = onlyResult(user);
    if (!isProduct && rankOf(result) > rankOf(value))
      return result;
    value = result;
  }
  return {};
}

/// A mean over the batch is the mean of the microbatches' means: its derivative
/// divides by the size of a microbatch, and the loss's by their number, so that
/// what the batch does not enter, such as a penalty of the weights, counts once
/// and not in each microbatch.
void Microbatching::divideMeans() {
  SmallVector<ConstantOp> inverses;
  program.walk([&](ConstantOp op) {
    if (op->hasAttr(kInverseOf))
      inverses.push_back(op);
  });
  for (ConstantOp op : inverses) {
    ArrayRef<int64_t> extents =
        op->getAttrOfType<DenseI64ArrayAttr>(kInverseOf).asArrayRef();
    if (extents.empty()) {
      setInverseOf(op, count);
      continue;
    }
    Value made = broadcastOf(op);
    std::optional<unsigned> dim = made ? dims.of(made) : std::nullopt;
    if (!dim || llvm::any_of(made.getDefiningOp()->getOperands(),
                             [&](Value operand) { return dims.of(operand); }))
      continue;
    SmallVector<int64_t> divided(extents);
    auto *whole = llvm::find(
        divided, cast<RankedTensorType>(made.getType()).getDimSize(*dim));
    if (whole == divided.end())
      continue;
    *whole /= count;
    setInverseOf(op, divided);
  }
}

/// Every value that has the batch has a microbatch of it.
void Microbatching::resize() {
  for (auto [value, dim] : dims.all()) {
    if (auto declare = value.getDefiningOp<DeclareOp>();
        declare && declare.getKind() == TensorKind::Input)
      continue;
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] /= count;
    Value(value).setType(type.clone(shape));
  }
}

/// `B -> (B', M)` with the microbatch minor, so that a device that has a part
/// of the batch has a part of each microbatch.
void Microbatching::takePartOf(DeclareOp input, RepeatOp repeat) {
  unsigned dim = *dims.of(input.getResult());
  auto type = input.getType();
  auto names = indexNames(input.getResult());
  SmallVector<StringRef> whole(names.begin(), names.end());
  SmallVector<StringRef> parts = whole, micro = whole;
  std::string all = names[dim] + ".all";
  whole[dim] = all;
  parts.insert(parts.begin() + dim + 1, repeat.getIndex());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] /= count;
  auto microType = type.clone(shape);
  shape.insert(shape.begin() + dim + 1, count);
  auto list = [&](ArrayRef<StringRef> strings) {
    return builder.getStrArrayAttr(strings);
  };
  MLIRContext *context = builder.getContext();
  auto mark = [&](Operation *op) {
    op->setAttr(kName, input.getSymAttr());
    op->setAttr(kTemporary, builder.getUnitAttr());
  };
  builder.setInsertionPoint(repeat);
  auto split = SplitOp::create(
      builder, input.getLoc(), type.clone(shape), input.getResult(),
      builder.getStringAttr(all), list({parts[dim], repeat.getIndex()}),
      IndexingAttr::get(context, list(whole), list(parts)));
  mark(split);
  builder.setInsertionPointToStart(&repeat.getBody().front());
  auto part = GatherOp::create(
      builder, input.getLoc(), microType, split.getResult(),
      ValueRange(repeat.getIteration()),
      IndexingAttr::get(context, {list(parts), list({})}, list(micro)),
      builder.getDenseI64ArrayAttr({int64_t(dim) + 1}));
  mark(part);
  input.getResult().replaceUsesWithIf(part.getResult(), [&](OpOperand &use) {
    return use.getOwner() != split;
  });
}

/// The buffer has the sum of the gradients so far.
void Microbatching::accumulate(UpdateOp update) {
  builder.setInsertionPoint(update);
  Value gradient = update.getValue();
  ArrayAttr list = builder.getArrayAttr(
      update.getDeclaration().getIndices().getValue().drop_front(
          update.getAt().size()));
  auto before = PartOp::create(builder, update.getLoc(), gradient.getType(),
                               update.getState(), update.getAt());
  auto sum = ElementwiseOp::create(
      builder, update.getLoc(), gradient.getType(), Function::Add,
      ValueRange{before, gradient},
      IndexingAttr::get(builder.getContext(), {list, list}, list));
  nameGradient(sum, *update.getDeclaration().getOf());
  update.getValueMutable().assign(sum.getResult());
}

/// The sum of narrow numbers is wide.
static RankedTensorType typeOfSum(OutputOp sum) {
  auto type = cast<RankedTensorType>(sum.getValue().getType());
  bool isNarrow = type.getElementTypeBitWidth() < 32;
  return isNarrow ? type.clone(Float32Type::get(sum.getContext())) : type;
}

/// A scalar for elements of `type`.
static Value constantOf(OpBuilder &builder, Location loc, RankedTensorType type,
                        TypedAttr value) {
  auto scalar = RankedTensorType::get({}, type.getElementType());
  return ConstantOp::create(builder, loc, scalar,
                            DenseElementsAttr::get(scalar, Attribute(value)));
}

/// An elementwise operation on an output and scalars.
Value Microbatching::onOutput(OutputOp output, Function function,
                              ValueRange operands, Type type) {
  ArrayAttr all = output.getIndices(), none = builder.getStrArrayAttr({});
  SmallVector<ArrayAttr, 2> lists;
  for (Value operand : operands)
    lists.push_back(
        cast<RankedTensorType>(operand.getType()).getRank() == 0 ? none : all);
  auto op = ElementwiseOp::create(
      builder, operands.front().getLoc(), type, function, operands,
      IndexingAttr::get(builder.getContext(), lists, all));
  op->setAttr(kName, output.getSymAttr());
  op->setAttr(kTemporary, builder.getUnitAttr());
  return op.getResult();
}

Value Microbatching::zeroOf(OutputOp sum) {
  RankedTensorType type = typeOfSum(sum);
  TypedAttr zero = builder.getZeroAttr(type.getElementType());
  return onOutput(sum, Function::Copy,
                  constantOf(builder, sum.getLoc(), type, zero), type);
}

/// What a microbatch makes of an output's sum.
Value Microbatching::addUp(OutputOp sum, Value before) {
  Value last = sum.getValue();
  RankedTensorType type = typeOfSum(sum);
  bool isMean = joins.lookup(last) == Joins::Mean;
  if (last.getType() != type)
    last = onOutput(sum, Function::Cast, last, type);
  if (isMean) {
    Value inverse = constantOf(builder, sum.getLoc(), type,
                               builder.getFloatAttr(type.getElementType(), 1));
    setInverseOf(inverse.getDefiningOp<ConstantOp>(), count);
    last = onOutput(sum, Function::Mul, {last, inverse}, type);
  }
  return onOutput(sum, Function::Add, {before, last}, type);
}

void Microbatching::moveIntoRepeat() {
  Block &block = program.getBody().front();
  SmallVector<Operation *> moved;
  for (Operation &op : block)
    if (!isa<DeclareOp, OutputOp>(op))
      moved.push_back(&op);
  builder.setInsertionPointToEnd(&block);
  Location loc =
      sums.empty() ? program.getLoc() : Location(sums.front().getLoc());
  SmallVector<Value> zeros, yielded;
  for (OutputOp sum : sums)
    zeros.push_back(zeroOf(sum));
  auto repeat = RepeatOp::create(builder, loc, ValueRange(zeros).getTypes(),
                                 builder.getStringAttr(kMicrobatchIndex),
                                 builder.getI64IntegerAttr(count),
                                 /*reverse=*/UnitAttr(), zeros);
  Block &body = repeat.getBody().emplaceBlock();
  body.addArgument(RankedTensorType::get({}, builder.getI32Type()), loc);
  for (OutputOp sum : sums)
    body.addArgument(typeOfSum(sum), sum.getLoc());
  for (Operation *op : moved)
    op->moveBefore(&body, body.end());
  builder.setInsertionPointToEnd(&body);
  for (auto [sum, before] : llvm::zip_equal(sums, repeat.getCarried()))
    yielded.push_back(addUp(sum, before));
  YieldOp::create(builder, loc, yielded);
  Operation *last = repeat;
  for (auto [sum, total] : llvm::zip_equal(sums, repeat.getResults())) {
    builder.setInsertionPointAfter(last);
    Value made = total;
    Type type = sum.getValue().getType();
    if (type != made.getType())
      made = onOutput(sum, Function::Cast, made, type);
    sum.getValueMutable().assign(made);
    sum->moveAfter(made.getDefiningOp());
    last = sum;
  }
  for (DeclareOp input : inputs)
    takePartOf(input, repeat);
  for (DeclareOp state : states)
    takePartsOf(state, repeat);
  for (OutputOp output : collected)
    collect(output, repeat);
  SmallVector<UpdateOp> updates;
  repeat.walk([&](UpdateOp update) {
    if (update.getDeclaration().getKind() == TensorKind::Gradient)
      updates.push_back(update);
  });
  llvm::for_each(updates, [&](UpdateOp update) { accumulate(update); });
}

//===----------------------------------------------------------------------===//
// Outputs and states of inference
//===----------------------------------------------------------------------===//

/// Gives a pin a first dimension, which no axis splits.
static ShardingAttr inParts(ShardingAttr pin) {
  if (!pin)
    return pin;
  MLIRContext *context = pin.getContext();
  SmallVector<DimShardingAttr> dims = {
      DimShardingAttr::get(context, {}, /*isOpen=*/false)};
  llvm::append_range(dims, pin.getDims());
  return ShardingAttr::get(context, dims, pin.getPartial());
}

/// The numbers of a microbatch's part of a part.
static SmallVector<Value> inFront(RepeatOp repeat, ValueRange at) {
  SmallVector<Value> all = {repeat.getIteration()};
  llvm::append_range(all, at);
  return all;
}

/// `y`, or `y.out` beside a declared tensor of this name.
static std::string nameOfOutput(OutputOp output) {
  std::string name = output.getSym().str();
  for (auto declare :
       output->getParentOfType<ProgramOp>().getBody().getOps<DeclareOp>())
    if (declare.getSym() == name)
      return name + ".out";
  return name;
}

/// Each microbatch has a state of its own.
void Microbatching::takePartsOf(DeclareOp state, RepeatOp repeat) {
  auto type = state.getType();
  SmallVector<int64_t> shape(type.getShape());
  shape.insert(shape.begin(), count);
  SmallVector<Attribute> indices = {builder.getStringAttr(kMicrobatchIndex)};
  llvm::append_range(indices, state.getIndices());
  ShardingAttr pin = inParts(getStoredPin(state.getResult()));
  SmallVector<OpOperand *> whole;
  for (OpOperand &use : state.getResult().getUses()) {
    Operation *user = use.getOwner();
    if (auto part = dyn_cast<PartOp>(user))
      part.getAtMutable().assign(inFront(repeat, part.getAt()));
    else if (auto update = dyn_cast<UpdateOp>(user);
             update && use == update.getStateMutable())
      update.getAtMutable().assign(inFront(repeat, update.getAt()));
    else
      whole.push_back(&use);
  }
  state.getResult().setType(type.clone(shape));
  state.setIndicesAttr(builder.getArrayAttr(indices));
  state.setStacked(state.getStacked() + 1);
  setResultPin(state.getResult(), pin);
  if (whole.empty())
    return;
  builder.setInsertionPointToStart(&repeat.getBody().front());
  auto part = PartOp::create(builder, state.getLoc(), type, state.getResult(),
                             ValueRange(repeat.getIteration()));
  for (OpOperand *use : whole)
    use->set(part.getResult());
}

/// The parts of an output leave in a tensor that has one for each microbatch.
void Microbatching::collect(OutputOp output, RepeatOp repeat) {
  auto type = cast<RankedTensorType>(output.getValue().getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.insert(shape.begin(), count);
  SmallVector<Attribute> indices = {builder.getStringAttr(kMicrobatchIndex)};
  llvm::append_range(indices, output.getIndices());
  builder.setInsertionPoint(repeat);
  auto buffer = DeclareOp::create(builder, output.getLoc(), type.clone(shape),
                                  TensorKind::State, nameOfOutput(output),
                                  builder.getArrayAttr(indices), /*stacked=*/1,
                                  /*of=*/StringAttr());
  setResultPin(buffer.getResult(), inParts(getOperandPin(output, 0)));
  builder.setInsertionPoint(repeat.getBody().front().getTerminator());
  UpdateOp::create(builder, output.getLoc(), output.getValue(),
                   buffer.getResult(), ValueRange(repeat.getIteration()));
  output.erase();
}

/// Where the compiler chooses the number and has not: enough to fill the stages
/// most of the time.
int64_t Microbatching::microbatchesOfPipeline() {
  constexpr int64_t kPerStage = 4;
  std::optional<int64_t> stages = numStages(program);
  if (!stages || *stages == 1)
    return 1;
  int64_t batch = batchExtent(program);
  int64_t most = std::min(batch, kPerStage * *stages);
  for (int64_t number = most; number > 1; --number)
    if (batch % number == 0)
      return number;
  return 1;
}

/// What is saved of a microbatch is kept until its backward pass: the first
/// stage, which keeps most, has so many of them.
void Microbatching::countInFlight() {
  std::optional<PipelineAttr> pipeline = program.getPipeline();
  if (!pipeline)
    return;
  int64_t kept =
      keptByFirstStage(*pipeline, numStages(program).value_or(1), count);
  for (auto declare : program.getBody().getOps<DeclareOp>())
    if (declare.getKind() == TensorKind::Saved)
      declare->setAttr(kInFlight, builder.getI64IntegerAttr(kept));
}

/// True if nothing forbids so many microbatches.
bool Microbatching::canSplit(ProgramOp program, int64_t count) {
  ScopedDiagnosticHandler silence(program.getContext(), [](Diagnostic &) {});
  return succeeded(Microbatching(program, count).check());
}

LogicalResult Microbatching::run() {
  if (count <= 1 && !program.getPipeline())
    return success();
  if (count == 0) {
    count = microbatchesOfPipeline();
    if (!canSplit(program, count))
      count = 1;
  }
  LogicalResult isLegal = count == 1 ? takeWhole() : check();
  if (failed(isLegal))
    return failure();
  bool isMeanLoss =
      training && joins.lookup(sums.front().getValue()) == Joins::Mean;
  if (isMeanLoss)
    divideMeans();
  resize();
  moveIntoRepeat();
  countInFlight();
  return success();
}

struct MicrobatchPass : impl::ShdMicrobatchBase<MicrobatchPass> {
  using ShdMicrobatchBase::ShdMicrobatchBase;
  void runOnOperation() override {
    ProgramOp program = getOperation();
    bool isDue = program.getTraining() || isInferencePipeline(program);
    if (isDue &&
        failed(Microbatching(program, writtenMicrobatches(program)).run()))
      signalPassFailure();
    program->removeAttr(kMicrobatchesAt);
  }
};

} // namespace
} // namespace shardc::shd
