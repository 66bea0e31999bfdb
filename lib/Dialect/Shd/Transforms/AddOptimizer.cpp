//===- AddOptimizer.cpp - shd-add-optimizer --------------------*- C++ -*-===//
//
// The update of each weight that has a gradient: one operation, which one
// kernel computes (docs/Training.md#update). Weights stacked along the same
// repeats are updated in one repeat over them, or with `update = fused` where
// the gradient is made.
//
//===----------------------------------------------------------------------===//

#include "shardc/Dialect/Shd/IR/Gradient.h"
#include "shardc/Dialect/Shd/Transforms/Passes.h"
#include "shardc/Optimizer/Names.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include <cmath>

using namespace mlir;

namespace shardc::shd {
#define GEN_PASS_DEF_SHDADDOPTIMIZER
#include "shardc/Dialect/Shd/Transforms/Passes.h.inc"

namespace {

/// Arithmetic in f32 on tensors with the same indices, and scalars.
class Arithmetic {
public:
  Arithmetic(OpBuilder &builder, Location loc, ArrayAttr indices,
             StringRef name)
      : builder(builder), loc(loc), indices(indices), name(name) {}

  Value constant(double value) {
    return exactConstant(builder, loc, value, builder.getF32Type());
  }

  Value apply(Function function, ValueRange operands) {
    return apply(function, operands, builder.getF32Type());
  }
  Value apply(Function function, Value a, double b) {
    return apply(function, {a, constant(b)});
  }

  Value cast(Value value, Type type) {
    return typeOf(value).getElementType() == type
               ? value
               : apply(Function::Cast, value, type);
  }
  Value toF32(Value value) { return cast(value, builder.getF32Type()); }

  /// The sum of all elements.
  Value sum(Value value) {
    auto type = RankedTensorType::get({}, builder.getF32Type());
    if (typeOf(value).getRank() == 0)
      return value;
    auto none = builder.getStrArrayAttr({});
    auto reduce = ReduceOp::create(
        builder, loc, type, Reduction::Sum, value, ValueRange(),
        IndexingAttr::get(builder.getContext(), indices, none));
    return record(reduce);
  }

  /// The same, perhaps stored in another layout.
  Value stored(Value value) {
    return record(ReshardOp::create(
        builder, loc, value.getType(), value,
        IndexingAttr::get(builder.getContext(), {indices}, indices)));
  }

private:
  static RankedTensorType typeOf(Value value) {
    return mlir::cast<RankedTensorType>(value.getType());
  }

  Value apply(Function function, ValueRange operands, Type elementType) {
    auto none = builder.getStrArrayAttr({});
    SmallVector<ArrayAttr, 3> lists;
    RankedTensorType shape = typeOf(operands.front());
    for (Value operand : operands) {
      lists.push_back(typeOf(operand).getRank() == 0 ? none : indices);
      if (typeOf(operand).getRank() > 0)
        shape = typeOf(operand);
    }
    auto op = ElementwiseOp::create(
        builder, loc, shape.clone(elementType), function, operands,
        IndexingAttr::get(builder.getContext(), lists,
                          shape.getRank() == 0 ? none : indices));
    return record(op);
  }

  Value record(Operation *op) {
    Value result = onlyResult(op);
    setResultAttr(result, kName, builder.getStringAttr(name));
    op->setAttr(kTemporary, builder.getUnitAttr());
    setPhase(op, Phase::Update);
    return result;
  }

  OpBuilder &builder;
  Location loc;
  ArrayAttr indices;
  std::string name;
};

/// A weight, its gradient and the optimizer's state of it.
struct Trained {
  DeclareOp weight, gradient, master;
  /// With `update = fused`, the gradient of a part: no buffer holds it.
  Value fused;
  SmallVector<DeclareOp, 2> moments;
};

class OptimizerBuilder {
public:
  OptimizerBuilder(ProgramOp program, TrainingAttr training)
      : program(program), training(training), builder(program.getContext()) {}

  LogicalResult run();

private:
  using Body = llvm::function_ref<Value(Trained &, ValueRange numbers, Value)>;

  LogicalResult findTrained();
  LogicalResult checkPins(const llvm::StringMap<DeclareOp> &weights,
                          ArrayRef<DeclareOp> gradients) const;
  void declareState(Trained &trained);
  Value gradientOf(Trained &trained, ValueRange numbers);
  void update(Trained &trained, ValueRange numbers);
  LogicalResult fuse(Trained &trained);
  LogicalResult fuseAll();
  DeclareOp declare(DeclareOp like, TensorKind kind, Type type,
                    const Twine &name);
  Value forEach(Value carried, Body body);
  Value part(DeclareOp declare, ValueRange numbers);
  void write(DeclareOp declare, Value value, ValueRange numbers);
  ArrayAttr partIndices(DeclareOp declare, ValueRange numbers);
  Value squares(Trained &trained, ValueRange numbers);
  Value sumOfSquares();
  void adamw(Trained &trained, ValueRange numbers);
  void sgd(Trained &trained, ValueRange numbers);
  void countStep();
  void scaleByNorm();

  ProgramOp program;
  TrainingAttr training;
  OpBuilder builder;
  /// By the repeats that they are stacked along: names and counts.
  llvm::MapVector<std::pair<Attribute, Attribute>, SmallVector<Trained>> all;
  /// 1 - beta^t of both moments, and what gradients are scaled by.
  Value correction1, correction2, scale;
};

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

DeclareOp OptimizerBuilder::declare(DeclareOp like, TensorKind kind, Type type,
                                    const Twine &name) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfter(like);
  auto declare = DeclareOp::create(
      builder, like.getLoc(), like.getType().clone(type), kind, name.str(),
      like.getIndices(), like.getStacked(), like.getSymAttr());
  if (training.getOffload() == Offload::Optimizer)
    declare->setAttr(kHost, builder.getUnitAttr());
  return declare;
}

void OptimizerBuilder::declareState(Trained &trained) {
  DeclareOp weight = trained.weight;
  if (Type type = training.getMaster();
      type && type.getIntOrFloatBitWidth() >
                  weight.getType().getElementTypeBitWidth()) {
    trained.master =
        declare(weight, TensorKind::Master, type, weight.getSym() + ".master");
    pinParts(trained.master, training.getMasterPins(), weight.getSym());
  }
  Type type = training.getMoments();
  if (!type)
    return;
  auto add = [&](const char *name) {
    trained.moments.push_back(
        declare(weight, TensorKind::Moment, type, weight.getSym() + name));
    pinParts(trained.moments.back(), training.getMomentPins(), weight.getSym());
  };
  if (training.getOptimizer() == Optimizer::Sgd)
    return add(".momentum");
  add(".m");
  add(".v");
}

/// A weight that the loss has no derivative with respect to has no gradient,
/// moments or master copy that the train block could place.
LogicalResult
OptimizerBuilder::checkPins(const llvm::StringMap<DeclareOp> &weights,
                            ArrayRef<DeclareOp> gradients) const {
  llvm::StringSet<> trained;
  for (DeclareOp gradient : gradients)
    trained.insert(*gradient.getOf());
  const std::pair<DictionaryAttr, const char *> all[] = {
      {training.getGradientPins(), "gradient"},
      {training.getMomentPins(), "moments"},
      {training.getMasterPins(), "master"}};
  for (auto [pins, what] : all)
    for (NamedAttribute pin :
         pins ? pins.getValue() : ArrayRef<NamedAttribute>())
      if (DeclareOp weight = weights.lookup(pin.getName());
          weight && !trained.contains(pin.getName()))
        return weight.emitError()
               << "'" << weight.getSym()
               << "' is not trained, since the loss has "
               << "no derivative with respect to it: `" << what << " "
               << weight.getSym() << "` places nothing";
  return success();
}

LogicalResult OptimizerBuilder::findTrained() {
  llvm::StringMap<DeclareOp> weights;
  SmallVector<DeclareOp> gradients;
  for (auto declare : program.getBody().getOps<DeclareOp>()) {
    if (declare.getKind() == TensorKind::Weight)
      weights[declare.getSym()] = declare;
    if (declare.getKind() == TensorKind::Gradient)
      gradients.push_back(declare);
  }
  if (failed(checkPins(weights, gradients)))
    return failure();
  for (DeclareOp gradient : gradients) {
    Trained trained;
    trained.weight = weights.lookup(*gradient.getOf());
    trained.gradient = gradient;
    declareState(trained);
    unsigned stacked = gradient.getStacked();
    ArrayRef<int64_t> counts = gradient.getType().getShape();
    all[{builder.getArrayAttr(
             gradient.getIndices().getValue().take_front(stacked)),
         builder.getI64ArrayAttr(counts.take_front(stacked))}]
        .push_back(trained);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

Value OptimizerBuilder::part(DeclareOp declare, ValueRange numbers) {
  if (numbers.empty() && !declare.isBuffer())
    return declare;
  return PartOp::create(builder, declare.getLoc(),
                        partType(declare.getType(), numbers.size()), declare,
                        numbers);
}

void OptimizerBuilder::write(DeclareOp declare, Value value,
                             ValueRange numbers) {
  UpdateOp::create(builder, declare.getLoc(), value, declare, numbers);
}

/// The indices of the part with these numbers in a stack.
ArrayAttr OptimizerBuilder::partIndices(DeclareOp declare, ValueRange numbers) {
  return builder.getArrayAttr(
      declare.getIndices().getValue().drop_front(numbers.size()));
}

/// Runs `body` for each part of each weight, carrying a scalar if there is one.
Value OptimizerBuilder::forEach(Value carried, Body body) {
  for (auto &[stack, list] : all) {
    auto names = cast<ArrayAttr>(stack.first);
    auto counts = cast<ArrayAttr>(stack.second);
    SmallVector<Value> numbers;
    SmallVector<RepeatOp> repeats;
    OpBuilder::InsertionGuard guard(builder);
    SmallVector<Value, 1> inits;
    if (carried)
      inits.push_back(carried);
    for (auto [name, count] : llvm::zip_equal(names, counts)) {
      auto repeat = RepeatOp::create(
          builder, list.front().weight.getLoc(), ValueRange(inits).getTypes(),
          cast<StringAttr>(name), cast<IntegerAttr>(count),
          /*reverse=*/UnitAttr(), inits);
      Block &block = repeat.getBody().emplaceBlock();
      block.addArgument(RankedTensorType::get({}, builder.getI32Type()),
                        repeat.getLoc());
      for (Value &init : inits)
        init = block.addArgument(init.getType(), repeat.getLoc());
      numbers.push_back(repeat.getIteration());
      repeats.push_back(repeat);
      builder.setInsertionPointToStart(&block);
    }
    Value inner = inits.empty() ? Value() : inits.front();
    for (Trained &trained : list)
      inner = body(trained, numbers, inner);
    for (RepeatOp repeat : llvm::reverse(repeats)) {
      builder.setInsertionPointToEnd(&repeat.getBody().front());
      YieldOp::create(builder, repeat.getLoc(),
                      carried ? ValueRange(inner) : ValueRange());
      if (carried)
        inner = onlyResult(repeat);
    }
    carried = inner;
  }
  return carried;
}

//===----------------------------------------------------------------------===//
// Updates
//===----------------------------------------------------------------------===//

/// The gradient of a weight's part, in the type in which it is sent.
Value OptimizerBuilder::gradientOf(Trained &trained, ValueRange numbers) {
  Arithmetic in(builder, trained.weight.getLoc(),
                partIndices(trained.weight, numbers),
                trained.gradient.getSym());
  Value gradient =
      trained.fused ? trained.fused : part(trained.gradient, numbers);
  if (!training.getReduce())
    return gradient;
  Value sent = in.cast(gradient, training.getReduce());
  if (sent != gradient)
    sent.getDefiningOp()->setAttr(kSent, builder.getUnitAttr());
  return sent;
}

/// The sum of the squares of a gradient's part.
Value OptimizerBuilder::squares(Trained &trained, ValueRange numbers) {
  Arithmetic in(builder, trained.weight.getLoc(),
                partIndices(trained.weight, numbers), "gradients.norm");
  Value g = in.toF32(gradientOf(trained, numbers));
  return in.sum(in.apply(Function::Square, g));
}

/// The squares of all gradients. Gradients of stacked weights are read as a
/// whole, so that partial sums are added up before one all_reduce; stages of a
/// pipeline read the parts of their layers.
Value OptimizerBuilder::sumOfSquares() {
  Arithmetic in(builder, program.getLoc(), builder.getStrArrayAttr({}),
                "gradients.norm");
  if (program.getPipeline())
    return forEach(in.apply(Function::Copy, in.constant(0)),
                   [&](Trained &trained, ValueRange numbers, Value carried) {
                     return in.apply(Function::Add,
                                     {carried, squares(trained, numbers)});
                   });
  Value sum;
  for (auto &[stack, list] : all)
    for (Trained &trained : list) {
      Value own = squares(trained, {});
      sum = sum ? in.apply(Function::Add, {sum, own}) : own;
    }
  // The square root of the sum is not linear: fused with the additions, it
  // would keep partial sums from being added.
  return in.stored(sum);
}

/// min(1, clip / norm), as optax and PyTorch scale.
void OptimizerBuilder::scaleByNorm() {
  FloatAttr clip = training.getClip();
  if (!clip)
    return;
  Arithmetic in(builder, program.getLoc(), builder.getStrArrayAttr({}),
                "gradients.norm");
  Value norm = in.apply(Function::Sqrt, sumOfSquares());
  Value limit = in.constant(clip.getValueAsDouble());
  scale = in.apply(Function::Div,
                   {limit, in.apply(Function::Maximum, {norm, limit})});
}

/// The number of the step, from 1, and Adam's corrections for it.
void OptimizerBuilder::countStep() {
  if (training.getOptimizer() != Optimizer::AdamW)
    return;
  Arithmetic in(builder, program.getLoc(), builder.getStrArrayAttr({}),
                "optimizer.step");
  DeclareOp step;
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&program.getBody().front());
    step = DeclareOp::create(builder, program.getLoc(),
                             RankedTensorType::get({}, builder.getF32Type()),
                             TensorKind::Moment, "optimizer.step",
                             builder.getStrArrayAttr({}), 0, StringAttr());
  }
  Value now = in.apply(Function::Add, step, 1.0);
  write(step, now, {});
  auto correction = [&](FloatAttr beta) {
    Value power =
        in.apply(Function::Exp, in.apply(Function::Mul, now,
                                         std::log(beta.getValueAsDouble())));
    return in.apply(Function::Sub, {in.constant(1), power});
  };
  correction1 = correction(training.getBeta1());
  correction2 = correction(training.getBeta2());
}

/// Names the results of a weight's update.
static void markUpdate(Operation *op, DeclareOp weight) {
  for (Value result : op->getResults())
    setResultAttr(
        result, kName,
        StringAttr::get(op->getContext(), weight.getSym() + ".update"));
  op->setAttr(kTemporary, UnitAttr::get(op->getContext()));
  setPhase(op, Phase::Update);
}

/// Moments, master copy and weight in one operation.
void OptimizerBuilder::adamw(Trained &trained, ValueRange numbers) {
  DeclareOp weight = trained.weight;
  DeclareOp stored = trained.master ? trained.master : weight;
  SmallVector<Value, 7> operands = {gradientOf(trained, numbers),
                                    part(stored, numbers),
                                    part(trained.moments[0], numbers),
                                    part(trained.moments[1], numbers),
                                    correction1,
                                    correction2};
  SmallVector<Type, 4> results;
  for (Value each : ArrayRef<Value>(operands).slice(1, 3))
    results.push_back(each.getType());
  if (trained.master)
    results.push_back(partType(weight.getType(), numbers.size()));
  if (scale)
    operands.push_back(scale);
  ArrayAttr indices = partIndices(weight, numbers),
            none = builder.getStrArrayAttr({});
  SmallVector<ArrayAttr, 7> lists(4, indices);
  lists.resize(operands.size(), none);
  auto op = AdamWOp::create(
      builder, weight.getLoc(), results[0], results[1], results[2],
      trained.master ? results[3] : Type(), operands[0], operands[1],
      operands[2], operands[3], operands[4], operands[5], scale,
      IndexingAttr::get(builder.getContext(), lists,
                        SmallVector<ArrayAttr, 4>(results.size(), indices)),
      training.getLr(), training.getBeta1(), training.getBeta2(),
      training.getEps(), training.getDecay());
  markUpdate(op, weight);
  write(stored, op.getUpdated(), numbers);
  write(trained.moments[0], op.getNewM(), numbers);
  write(trained.moments[1], op.getNewV(), numbers);
  if (trained.master)
    write(weight, op.getRounded(), numbers);
}

/// Momentum, master copy and weight in one operation. As in PyTorch, gradients
/// are added to the momentum undamped.
void OptimizerBuilder::sgd(Trained &trained, ValueRange numbers) {
  DeclareOp weight = trained.weight;
  DeclareOp stored = trained.master ? trained.master : weight;
  Value gradient = gradientOf(trained, numbers), old = part(stored, numbers);
  Value momentum = trained.moments.empty()
                       ? Value()
                       : part(trained.moments.front(), numbers);
  SmallVector<Type, 2> others;
  if (momentum)
    others.push_back(momentum.getType());
  if (trained.master)
    others.push_back(partType(weight.getType(), numbers.size()));
  ArrayAttr indices = partIndices(weight, numbers);
  SmallVector<ArrayAttr, 4> lists(momentum ? 3 : 2, indices);
  if (scale)
    lists.push_back(builder.getStrArrayAttr({}));
  auto op = SgdOp::create(
      builder, weight.getLoc(), old.getType(), others, gradient, old, momentum,
      scale,
      IndexingAttr::get(builder.getContext(), lists,
                        SmallVector<ArrayAttr, 3>(1 + others.size(), indices)),
      training.getLr(), training.getBeta1(), training.getDecay());
  markUpdate(op, weight);
  write(stored, op.getUpdated(), numbers);
  if (momentum)
    write(trained.moments.front(), op.getNewMomentum(), numbers);
  if (trained.master)
    write(weight, op.getRounded(), numbers);
}

void OptimizerBuilder::update(Trained &trained, ValueRange numbers) {
  if (training.getOptimizer() == Optimizer::AdamW)
    adamw(trained, numbers);
  else
    sgd(trained, numbers);
}

//===----------------------------------------------------------------------===//
// Updates right after gradients
//===----------------------------------------------------------------------===//

/// Adds those of the operations that read `value`, as it is or a part of it,
/// that stand in the block of `place` before it.
static void findReadersBefore(Operation *place, Value value,
                              SmallVectorImpl<Operation *> &readers) {
  for (Operation *user : value.getUsers()) {
    if (isa<PartOp>(user))
      findReadersBefore(place, user->getResult(0), readers);
    Operation *at = place->getBlock()->findAncestorOpInBlock(*user);
    if (at && at->isBeforeInBlock(place))
      readers.push_back(at);
  }
}

/// Updates a weight in place of writing its gradient, as soon as that is made
/// and nothing reads the weight any more.
LogicalResult OptimizerBuilder::fuse(Trained &trained) {
  UpdateOp written;
  for (Operation *user : trained.gradient->getUsers()) {
    auto update = dyn_cast<UpdateOp>(user);
    if (!update || written)
      return trained.weight.emitError()
             << "`update = fused` needs the whole gradient of '"
             << trained.weight.getSym()
             << "' in one place, but it is added up in several";
    written = update;
  }
  // The verifier knows no other weight that is updated within two repeats.
  size_t around = 0;
  for (auto repeat = written->getParentOfType<RepeatOp>(); repeat;
       repeat = repeat->getParentOfType<RepeatOp>())
    ++around;
  if (around != written.getAt().size())
    return trained.weight.emitError()
           << "`update = fused` is not supported yet with `remat = every(k)`";
  trained.fused = written.getValue();
  SmallVector<Operation *> before = {trained.fused.getDefiningOp()};
  findReadersBefore(written, trained.weight, before);
  builder.setInsertionPoint(written);
  if (before.front() && before.front()->getBlock() == written->getBlock())
    builder.setInsertionPointAfter(
        *llvm::max_element(before, [](Operation *a, Operation *b) {
          return a->isBeforeInBlock(b);
        }));
  SmallVector<Value> numbers(written.getAt());
  update(trained, numbers);
  written.erase();
  trained.gradient.erase();
  return success();
}

LogicalResult OptimizerBuilder::fuseAll() {
  // The number of the step is there for all updates.
  Block &block = program.getBody().front();
  builder.setInsertionPoint(&*llvm::find_if(
      block, [](Operation &op) { return !isa<DeclareOp>(op); }));
  countStep();
  for (auto &[stack, list] : all)
    for (Trained &trained : list)
      if (failed(fuse(trained)))
        return failure();
  return success();
}

LogicalResult OptimizerBuilder::run() {
  builder.setInsertionPointToEnd(&program.getBody().front());
  if (failed(findTrained()))
    return failure();
  if (all.empty())
    return success();
  if (training.getFused())
    return fuseAll();
  scaleByNorm();
  countStep();
  forEach(nullptr, [&](Trained &trained, ValueRange numbers, Value) {
    update(trained, numbers);
    return Value();
  });
  return success();
}

struct AddOptimizerPass : impl::ShdAddOptimizerBase<AddOptimizerPass> {
  using ShdAddOptimizerBase::ShdAddOptimizerBase;
  void runOnOperation() override {
    ProgramOp program = getOperation();
    if (std::optional<TrainingAttr> training = program.getTraining())
      if (failed(OptimizerBuilder(program, *training).run()))
        signalPassFailure();
  }
};

} // namespace
} // namespace shardc::shd
