//===- AddOptimizer.cpp - shd-add-optimizer --------------------*- C++ -*-===//
//
// The update of each weight that has a gradient: elementwise operations, which
// one fusion group computes (docs/Training.md#update). Weights stacked along
// the same repeats are updated in one repeat over them.
//
//===----------------------------------------------------------------------===//

#include "shardc/Dialect/Shd/IR/Gradient.h"
#include "shardc/Dialect/Shd/Transforms/Passes.h"
#include "shardc/Optimizer/Names.h"
#include "llvm/ADT/MapVector.h"
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
    auto type = RankedTensorType::get({}, builder.getF32Type());
    return ConstantOp::create(
        builder, loc, type,
        DenseElementsAttr::get(
            type, Attribute(builder.getF32FloatAttr(float(value)))));
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
  SmallVector<DeclareOp, 2> moments;
};

class OptimizerBuilder {
public:
  OptimizerBuilder(ProgramOp program, TrainingAttr training)
      : program(program), training(training), builder(program.getContext()) {}

  void run();

private:
  using Body = llvm::function_ref<Value(Trained &, ValueRange numbers, Value)>;

  void findTrained();
  void declareState(Trained &trained);
  DeclareOp declare(DeclareOp like, TensorKind kind, Type type,
                    const Twine &name);
  Value forEach(Value carried, Body body);
  Value part(DeclareOp declare, ValueRange numbers);
  void write(DeclareOp declare, Value value, ValueRange numbers);
  ArrayAttr partIndices(DeclareOp declare);
  Value squares(Trained &trained, ValueRange numbers, Value sum);
  void update(Trained &trained, ValueRange numbers);
  Value adamw(Arithmetic &in, Trained &trained, ValueRange numbers, Value g,
              Value p);
  Value sgd(Arithmetic &in, Trained &trained, ValueRange numbers, Value g,
            Value p);
  Value moment(Arithmetic &in, DeclareOp state, ValueRange numbers, double keep,
               double add, Value value);
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
  return DeclareOp::create(builder, like.getLoc(), like.getType().clone(type),
                           kind, name.str(), like.getIndices(),
                           like.getStacked(), like.getSymAttr());
}

void OptimizerBuilder::declareState(Trained &trained) {
  DeclareOp weight = trained.weight;
  if (Type type = training.getMaster();
      type && type != weight.getType().getElementType()) {
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

void OptimizerBuilder::findTrained() {
  llvm::StringMap<DeclareOp> weights;
  SmallVector<DeclareOp> gradients;
  for (auto declare : program.getBody().getOps<DeclareOp>()) {
    if (declare.getKind() == TensorKind::Weight)
      weights[declare.getSym()] = declare;
    if (declare.getKind() == TensorKind::Gradient)
      gradients.push_back(declare);
  }
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

ArrayAttr OptimizerBuilder::partIndices(DeclareOp declare) {
  return builder.getArrayAttr(
      declare.getIndices().getValue().drop_front(declare.getStacked()));
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

Value OptimizerBuilder::squares(Trained &trained, ValueRange numbers,
                                Value sum) {
  Arithmetic in(builder, trained.weight.getLoc(), partIndices(trained.weight),
                "gradients.norm");
  Value g = in.toF32(part(trained.gradient, numbers));
  return in.apply(Function::Add, {sum, in.sum(in.apply(Function::Square, g))});
}

/// min(1, clip / norm), as optax and PyTorch scale.
void OptimizerBuilder::scaleByNorm() {
  FloatAttr clip = training.getClip();
  if (!clip)
    return;
  Arithmetic in(builder, program.getLoc(), builder.getStrArrayAttr({}),
                "gradients.norm");
  Value sum = forEach(in.apply(Function::Copy, in.constant(0)),
                      [&](Trained &trained, ValueRange numbers, Value carried) {
                        return squares(trained, numbers, carried);
                      });
  Value norm = in.apply(Function::Sqrt, sum);
  Value limit = in.constant(clip.getValueAsDouble());
  scale = in.apply(Function::Div,
                   {limit, in.apply(Function::Maximum, {norm, limit})});
}

/// The number of the step, from 1, and Adam's corrections for it.
void OptimizerBuilder::countStep() {
  if (training.getOptimizer() != Optimizer::AdamW || !training.getMoments())
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

/// keep * old + add * value, which the state becomes.
Value OptimizerBuilder::moment(Arithmetic &in, DeclareOp state,
                               ValueRange numbers, double keep, double add,
                               Value value) {
  Value old = in.toF32(part(state, numbers));
  if (add != 1)
    value = in.apply(Function::Mul, value, add);
  Value now =
      in.apply(Function::Add, {in.apply(Function::Mul, old, keep), value});
  write(state, in.cast(now, state.getType().getElementType()), numbers);
  return now;
}

/// Loshchilov and Hutter (2019): the direction in which the weight goes.
Value OptimizerBuilder::adamw(Arithmetic &in, Trained &trained,
                              ValueRange numbers, Value g, Value p) {
  double beta1 = training.getBeta1().getValueAsDouble();
  double beta2 = training.getBeta2().getValueAsDouble();
  if (trained.moments.empty())
    return g;
  Value m = moment(in, trained.moments[0], numbers, beta1, 1 - beta1, g);
  Value v = moment(in, trained.moments[1], numbers, beta2, 1 - beta2,
                   in.apply(Function::Square, g));
  Value root =
      in.apply(Function::Sqrt, in.apply(Function::Div, {v, correction2}));
  Value below =
      in.apply(Function::Add, root, training.getEps().getValueAsDouble());
  return in.apply(Function::Div,
                  {in.apply(Function::Div, {m, correction1}), below});
}

Value OptimizerBuilder::sgd(Arithmetic &in, Trained &trained,
                            ValueRange numbers, Value g, Value p) {
  if (trained.moments.empty())
    return g;
  return moment(in, trained.moments[0], numbers,
                training.getBeta1().getValueAsDouble(), 1, g);
}

void OptimizerBuilder::update(Trained &trained, ValueRange numbers) {
  DeclareOp weight = trained.weight;
  Arithmetic in(builder, weight.getLoc(), partIndices(weight),
                (weight.getSym() + ".update").str());
  Value g = in.toF32(part(trained.gradient, numbers));
  if (scale)
    g = in.apply(Function::Mul, {g, scale});
  DeclareOp stored = trained.master ? trained.master : weight;
  Value p = in.toF32(part(stored, numbers));
  Value direction = training.getOptimizer() == Optimizer::AdamW
                        ? adamw(in, trained, numbers, g, p)
                        : sgd(in, trained, numbers, g, p);
  if (double decay = training.getDecay().getValueAsDouble())
    direction =
        in.apply(Function::Add, {direction, in.apply(Function::Mul, p, decay)});
  Value step =
      in.apply(Function::Mul, direction, training.getLr().getValueAsDouble());
  Value now = in.apply(Function::Sub, {p, step});
  if (trained.master)
    write(trained.master,
          in.cast(now, trained.master.getType().getElementType()), numbers);
  write(weight, in.cast(now, weight.getType().getElementType()), numbers);
}

void OptimizerBuilder::run() {
  builder.setInsertionPointToEnd(&program.getBody().front());
  findTrained();
  if (all.empty())
    return;
  scaleByNorm();
  countStep();
  forEach(nullptr, [&](Trained &trained, ValueRange numbers, Value) {
    update(trained, numbers);
    return Value();
  });
}

struct AddOptimizerPass : impl::ShdAddOptimizerBase<AddOptimizerPass> {
  using ShdAddOptimizerBase::ShdAddOptimizerBase;
  void runOnOperation() override {
    ProgramOp program = getOperation();
    if (std::optional<TrainingAttr> training = program.getTraining())
      OptimizerBuilder(program, *training).run();
  }
};

} // namespace
} // namespace shardc::shd
