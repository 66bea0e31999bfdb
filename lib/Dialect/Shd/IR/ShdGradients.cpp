//===- ShdGradients.cpp - The gradient of each operation ------------------===//
//
// Reverse mode: docs/Training.md#gradients. At ties max, min, maximum and
// minimum share their gradient equally, as JAX does; relu and abs have
// gradient 0 at 0.
//
//===----------------------------------------------------------------------===//

#include "Factors.h"
#include "shardc/Dialect/Shd/IR/Gradient.h"
#include <numbers>

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

using Names = SmallVector<StringRef, 4>;

//===----------------------------------------------------------------------===//
// Products and elementwise operations
//===----------------------------------------------------------------------===//

LogicalResult EinsumOp::buildGradient(GradientBuilder &builder) {
  NamedTensor gradient = builder.gradient();
  for (unsigned i : {0, 1})
    if (builder.wants(i))
      builder.giveProduct(i, gradient, builder.operand(1 - i));
  return success();
}

/// The tanh form: y = x (1 + t) / 2 with t = tanh(c (x + 0.044715 x^3)).
static NamedTensor geluGradient(const NamedTensor &x, const NamedTensor &g) {
  GradientBuilder &builder = *x.builder;
  const double c = std::sqrt(2 / std::numbers::pi), cubic = 0.044715;
  NamedTensor square = builder.elementwise(Function::Square, {x});
  NamedTensor t =
      builder.elementwise(Function::Tanh, {c * (x * (1.0 + cubic * square))});
  NamedTensor slope = c * (1.0 + (3 * cubic) * square);
  NamedTensor inner =
      (1.0 - builder.elementwise(Function::Square, {t})) * slope;
  return g * (0.5 * (1.0 + (t + x * inner)));
}

/// y = x s with s = sigmoid(x), so y' = s (1 + x (1 - s)).
static NamedTensor siluGradient(const NamedTensor &x, const NamedTensor &g) {
  NamedTensor s = x.builder->elementwise(Function::Sigmoid, {x});
  return g * (s * (1.0 + x * (1.0 - s)));
}

static NamedTensor compare(Function comparison, const NamedTensor &a,
                           const NamedTensor &b) {
  GradientBuilder &builder = *a.builder;
  return builder.elementwise(comparison, {a, b},
                             builder.getBuilder().getI1Type());
}

static NamedTensor compare(Function comparison, const NamedTensor &a,
                           double b) {
  return compare(comparison, a, a.builder->constant(b, a.getElementType()));
}

/// `g` where the condition holds, else 0.
static NamedTensor select(const NamedTensor &condition, const NamedTensor &g) {
  return g.builder->where(condition, g,
                          g.builder->constant(0, g.getElementType()));
}

/// The gradient of maximum's or minimum's operand `own`.
static NamedTensor extremeGradient(Function comparison, const NamedTensor &own,
                                   const NamedTensor &other,
                                   const NamedTensor &g) {
  return g.builder->where(compare(comparison, own, other), g,
                          select(compare(Function::Eq, own, other), 0.5 * g));
}

/// The gradient of a function of one operand x with result y.
static NamedTensor unaryGradient(Function function, const NamedTensor &x,
                                 const NamedTensor &y, const NamedTensor &g) {
  GradientBuilder &builder = *g.builder;
  switch (function) {
  case Function::Copy:
  case Function::Cast:
    return g;
  case Function::Neg:
    return -g;
  case Function::Relu: // y > 0 exactly where x > 0: the pre-activation may die
    return select(compare(Function::Gt, y, 0), g);
  case Function::Gelu:
    return geluGradient(x, g);
  case Function::Silu:
    return siluGradient(x, g);
  case Function::Sigmoid:
    return g * (y * (1.0 - y));
  case Function::Tanh:
    return g * (1.0 - builder.elementwise(Function::Square, {y}));
  case Function::Exp:
    return g * y;
  case Function::Log:
    return g / x;
  case Function::Sqrt:
    return 0.5 * (g / y);
  case Function::Rsqrt:
    return -0.5 * (g * (y * builder.elementwise(Function::Square, {y})));
  case Function::Square:
    return 2.0 * (g * x);
  case Function::Abs:
    return builder.where(compare(Function::Gt, x, 0), g,
                         select(compare(Function::Lt, x, 0), -g));
  default:
    llvm_unreachable("a new function of one operand");
  }
}

LogicalResult ElementwiseOp::buildGradient(GradientBuilder &builder) {
  NamedTensor g = builder.gradient();
  auto give = [&](unsigned operand, auto gradient) {
    if (builder.wants(operand))
      builder.give(operand, gradient());
  };
  auto operand = [&](unsigned i) { return builder.operand(i); };
  Function function = getFunction();
  switch (function) {
  case Function::Add:
    give(0, [&] { return g; });
    give(1, [&] { return g; });
    break;
  case Function::Sub:
    give(0, [&] { return g; });
    give(1, [&] { return -g; });
    break;
  case Function::Mul:
    give(0, [&] { return g * operand(1); });
    give(1, [&] { return g * operand(0); });
    break;
  case Function::Div:
    give(0, [&] { return g / operand(1); });
    give(1, [&] { return -(g * (builder.result() / operand(1))); });
    break;
  case Function::Maximum:
  case Function::Minimum: {
    Function wins = function == Function::Maximum ? Function::Gt : Function::Lt;
    for (unsigned i : {0, 1})
      give(i, [&] {
        return extremeGradient(wins, operand(i), operand(1 - i), g);
      });
    break;
  }
  case Function::Where: {
    auto zero = [&] { return builder.constant(0, g.getElementType()); };
    give(1, [&] { return builder.where(operand(0), g, zero()); });
    give(2, [&] { return builder.where(operand(0), zero(), g); });
    break;
  }
  case Function::Eq:
  case Function::Ne:
  case Function::Lt:
  case Function::Le:
  case Function::Gt:
  case Function::Ge:
    break;            // a step function: no gradient passes
  case Function::Rem: // of integers, which have none
  case Function::StopGradient:
    break;
  default:
    give(0, [&] {
      return unaryGradient(function, operand(0), builder.result(), g);
    });
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// Elements that reach the extreme share its gradient equally.
static NamedTensor extremesGradient(const NamedTensor &x, const NamedTensor &y,
                                    const NamedTensor &g) {
  GradientBuilder &builder = *g.builder;
  // Rounding keeps the order, so the extreme is still reached behind it.
  NamedTensor reaches =
      compare(Function::Eq, builder.cast(x, y.getElementType()), y);
  NamedTensor ones = select(reaches, builder.constant(1, g.getElementType()));
  return select(reaches, g / builder.sumTo(ones, g.indices));
}

LogicalResult ReduceOp::buildGradient(GradientBuilder &builder) {
  if (!builder.wants(0))
    return success();
  NamedTensor x = builder.operand(0), g = builder.gradient();
  switch (getKind()) {
  case Reduction::Sum:
    builder.give(0, g);
    break;
  case Reduction::Mean: {
    SmallVector<int64_t, 4> extents;
    for (StringRef index : x.indices)
      if (!llvm::is_contained(g.indices, index))
        extents.push_back(x.extent(index));
    NamedTensor inverse = builder.constant(1, g.getElementType());
    setInverseOf(inverse.value.getDefiningOp<ConstantOp>(), extents);
    builder.give(0, inverse * g);
    break;
  }
  case Reduction::Max:
  case Reduction::Min:
    builder.give(0, extremesGradient(x, builder.result(), g));
    break;
  case Reduction::ArgMax:
    break; // integers
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Normalisations and losses
//===----------------------------------------------------------------------===//

// An operation fuses with the group of its latest operand. So that one kernel
// makes a gradient, chains of operations read what is their own (the
// statistics, the normalised input) in each step, and cast nothing beforehand
// that another kernel would write in f32.

/// The product in the type in which normalisations compute.
static NamedTensor productInFloat(const NamedTensor &a, const NamedTensor &b) {
  GradientBuilder &builder = *a.builder;
  return builder.elementwise(Function::Mul, {a, b}, builder.floatType({a, b}));
}

/// x' = y (g - sum(g y)).
static NamedTensor softmaxGradient(const NamedTensor &y, const NamedTensor &g,
                                   ArrayRef<StringRef> kept) {
  NamedTensor sum = y.builder->sumTo(productInFloat(g, y), kept);
  return (g - sum) * y;
}

namespace {
/// What normalises the elements of rmsnorm and layernorm, computed again from
/// the input: a statistic is cheaper than a value of the input's size.
struct Normalized {
  /// The distance from the mean (of rmsnorm: from 0).
  NamedTensor distance;
  /// The inverse of the root mean square or of the standard deviation.
  NamedTensor inverse;
};
} // namespace

static Normalized normalizedAgain(NormalizeOp op, const NamedTensor &x,
                                  ArrayRef<StringRef> kept) {
  GradientBuilder &builder = *x.builder;
  double eps = op.getEps().convertToDouble();
  auto square = [&](const NamedTensor &tensor) {
    return builder.elementwise(Function::Square, {tensor},
                               builder.floatType({tensor}));
  };
  NamedTensor variance = builder.reduce(Reduction::Mean, square(x), kept);
  NamedTensor distance = x;
  if (op.getKind() == Normalization::LayerNorm) {
    // Both means at once, as the forward operation has its statistics.
    NamedTensor mean =
        builder.reduce(Reduction::Mean, builder.toFloat(x), kept);
    distance = x - mean;
    NamedTensor difference = variance - square(mean);
    variance = builder.elementwise(
        Function::Maximum,
        {difference, builder.constant(0, difference.getElementType())});
  }
  return {distance, builder.elementwise(Function::Rsqrt, {eps + variance})};
}

/// With d = distance and u = inverse * scale * g: x' = u - mean(u) -
/// d inverse^2 mean(u d), without mean(u) for rmsnorm.
static void giveNormGradients(NormalizeOp op, GradientBuilder &builder,
                              ArrayRef<StringRef> kept) {
  bool hasScale = op.getInputs().size() > 1;
  if (op.getInputs().size() > 2 && builder.wants(2))
    builder.give(2, builder.gradient());
  bool wantsScale = hasScale && builder.wants(1);
  if (!builder.wants(0) && !wantsScale)
    return;
  NamedTensor g = builder.gradient();
  auto [distance, inverse] = normalizedAgain(op, builder.operand(0), kept);
  if (wantsScale)
    builder.give(1, (distance * inverse) * g);
  if (!builder.wants(0))
    return;
  NamedTensor u = hasScale ? (inverse * builder.operand(1)) * g : inverse * g;
  auto mean = [&](const NamedTensor &tensor) {
    return builder.reduce(Reduction::Mean, tensor, kept);
  };
  NamedTensor share =
      builder.elementwise(Function::Square, {inverse}) * mean(u * distance);
  NamedTensor slope = u - share * distance;
  if (op.getKind() == Normalization::LayerNorm)
    slope = slope - mean(u);
  builder.give(0, slope);
}

LogicalResult NormalizeOp::buildGradient(GradientBuilder &builder) {
  Names kept = builder.operand(0).indices;
  llvm::erase_if(kept, [&](StringRef index) {
    return llvm::is_contained(getOver().getAsValueRange<StringAttr>(), index);
  });
  switch (getKind()) {
  case Normalization::Softmax:
    if (builder.wants(0))
      builder.give(0,
                   softmaxGradient(builder.result(), builder.gradient(), kept));
    break;
  case Normalization::LogSumExp:
    if (builder.wants(0)) {
      NamedTensor x = builder.operand(0), y = builder.result();
      NamedTensor logs =
          builder.elementwise(Function::Sub, {x, y}, builder.floatType({x, y}));
      builder.give(0, builder.elementwise(Function::Exp, {logs}) *
                          builder.gradient());
    }
    break;
  case Normalization::RmsNorm:
  case Normalization::LayerNorm:
    giveNormGradients(*this, builder, kept);
    break;
  }
  return success();
}

/// The softmax of the logits, less 1 at the label.
LogicalResult CrossEntropyOp::buildGradient(GradientBuilder &builder) {
  if (!builder.wants(0))
    return success();
  NamedTensor x = builder.operand(0), labels = builder.operand(1);
  auto type =
      RankedTensorType::get(x.getType().getShape(), builder.floatType({x}));
  Builder &attributes = builder.getBuilder();
  NamedTensor likely = builder.create<NormalizeOp>(
      x.indices, type, Normalization::Softmax, x.value,
      attributes.getStrArrayAttr(getClasses()), ValueRange(),
      builder.indexing(x, x.indices), llvm::APFloat(0.0));
  // The softmax times the gradient, less the gradient at the label.
  NamedTensor g = builder.gradient();
  NamedTensor product = builder.cast(likely * g, builder.gradientType(0));
  NamedTensor atLabel = builder.cast(-g, builder.gradientType(0));
  int64_t dim =
      llvm::find(product.indices, getClasses()) - product.indices.begin();
  builder.give(
      0, builder.create<ScatterOp>(
             product.indices, product.getType(), product.value, atLabel.value,
             labels.value,
             builder.indexing({product, atLabel, labels}, product.indices),
             attributes.getDenseI64ArrayAttr(dim),
             /*accumulate=*/true));
  return success();
}

//===----------------------------------------------------------------------===//
// Attention and positions
//===----------------------------------------------------------------------===//

/// The operation that gives its logsumexp too, in place of one that does not.
Operation *AttentionOp::prepareGradient(OpBuilder &builder) {
  if (getLogsumexp())
    return *this;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(*this);
  Names queries;
  SmallVector<int64_t, 4> shape;
  for (auto [index, extent] :
       llvm::zip_equal(getIndexing().getOperandIndices(kQueryOperand),
                       getQ().getType().getShape()))
    if (index != getHead()) {
      queries.push_back(index);
      shape.push_back(extent);
    }
  SmallVector<ArrayAttr, 2> results(getIndexing().getResults());
  results.push_back(builder.getStrArrayAttr(queries));
  auto op = AttentionOp::create(
      builder, getLoc(), getResult().getType(),
      RankedTensorType::get(shape, builder.getF32Type()), getQ(), getK(),
      getV(), getAt(), getKeyAt(), getSink(), getBias(), getStats(),
      IndexingAttr::get(getContext(), getIndexing().getOperands(), results),
      getHeadAttr(), getKeyAttr(), getQueryAttr(), getCausalAttr(),
      getWindowAttr(), getScaleAttr(), getSoftcapAttr());
  for (NamedAttribute attr : (*this)->getDiscardableAttrs())
    op->setDiscardableAttr(attr.getName(), attr.getValue());
  // With several results, a list says something of each.
  for (StringRef name : {kResultPin, kMade, kName}) {
    op->removeDiscardableAttr(name);
    if (Attribute value = getResultAttr(getResult(), name))
      setResultAttr(op.getResult(), name, value);
  }
  if (std::string name = logsumexpName(getResultName(getResult()));
      !name.empty())
    setResultAttr(op.getLogsumexp(), kName, builder.getStringAttr(name));
  getResult().replaceAllUsesWith(op.getResult());
  erase();
  return op;
}

/// The sink's weight p = exp(sink - logsumexp) belongs to a value of 0, so the
/// softmax's p (p' - g . o) has p' = 0.
static void giveSinkGradient(AttentionOp op, GradientBuilder &builder) {
  NamedTensor logs = builder.result(1);
  NamedTensor sink = builder.toFloat(builder.operand(op.getSinkOperand()));
  NamedTensor weight = builder.elementwise(Function::Exp, {sink - logs});
  NamedTensor slope = builder.sumTo(
      productInFloat(builder.gradient(), builder.result(0)), logs.indices);
  builder.give(op.getSinkOperand(), -(weight * slope));
}

/// One operation for queries, keys, values and bias, which computes the scores
/// again.
LogicalResult AttentionOp::buildGradient(GradientBuilder &builder) {
  auto wants = [&](unsigned i) { return builder.wants(i); };
  bool wantsSink = getSink() && wants(getSinkOperand());
  SmallVector<unsigned, 4> differentiated = {kQueryOperand, kKeyOperand,
                                             kValueOperand};
  if (getBias() && wants(getBiasOperand()))
    differentiated.push_back(getBiasOperand());
  bool wantsScores = llvm::any_of(differentiated, wants);
  if (!wantsScores && !wantsSink)
    return success();
  if (!getLogsumexp())
    return emitOpError() << "needs its logsumexp as a result to have a "
                         << "derivative";
  if (wantsSink)
    giveSinkGradient(*this, builder);
  if (!wantsScores)
    return success();
  NamedTensor g = builder.gradient();
  SmallVector<NamedTensor, 4> inputs;
  SmallVector<Type, 4> types;
  SmallVector<ArrayAttr, 4> lists;
  for (unsigned i : differentiated) {
    NamedTensor operand = inputs.emplace_back(builder.operand(i));
    Type type = wants(i) ? builder.gradientType(i) : g.getElementType();
    types.push_back(RankedTensorType::get(operand.getType().getShape(), type));
    lists.push_back(getIndexing().getOperands()[i]);
  }
  SmallVector<NamedTensor, 8> operands(ArrayRef(inputs).take_front(3));
  operands.append({builder.result(0), g, builder.result(1)});
  if (getAt())
    operands.push_back(builder.operand(kAtOperand));
  if (getKeyAt())
    operands.push_back(builder.operand(getKeyAtOperand()));
  if (getBias())
    operands.push_back(builder.operand(getBiasOperand()));
  auto indexing = IndexingAttr::get(
      getContext(), builder.indexing(operands, {}).getOperands(), lists);
  NamedTensor first = builder.create<AttentionGradOp>(
      operands.front().indices, types[0], types[1], types[2],
      types.size() > 3 ? types[3] : Type(), getQ(), getK(), getV(), getResult(),
      g.value, getLogsumexp(), getAt(), getKeyAt(), getBias(), indexing,
      getHeadAttr(), getKeyAttr(), getQueryAttr(), getCausalAttr(),
      getWindowAttr(), getScaleAttr(), getSoftcapAttr());
  Operation *op = first.value.getDefiningOp();
  for (auto [number, i] : llvm::enumerate(differentiated)) {
    // Results of one operation need names of their own.
    Value operand = (*this)->getOperand(i), made = op->getResult(number);
    StringRef name = isa<OpResult>(operand) ? getResultName(operand) : "";
    if (!name.empty())
      setResultAttr(cast<OpResult>(made), kName,
                    StringAttr::get(getContext(), name + ".grad"));
    if (wants(i))
      builder.give(i, {&builder, made, inputs[number].indices});
  }
  return success();
}

/// A rotation's transpose is its inverse.
LogicalResult RopeOp::buildGradient(GradientBuilder &builder) {
  if (!builder.wants(0))
    return success();
  NamedTensor g = builder.gradient(), x = builder.operand(0);
  IndexingAttr indexing = getIndexing();
  SmallVector<ArrayAttr, 2> lists(indexing.getOperands());
  lists.front() = indexing.getResults().front();
  auto turned =
      IndexingAttr::get(getContext(), lists, indexing.getOperands().front());
  UnitAttr inverse = getInverse() ? UnitAttr() : UnitAttr::get(getContext());
  auto type = RankedTensorType::get(x.getType().getShape(), g.getElementType());
  builder.give(0, builder.create<RopeOp>(
                      x.indices, type, g.value, getAt(), turned, getHeadAttr(),
                      getPositionsAttr(), getThetaAttr(), inverse));
  return success();
}

//===----------------------------------------------------------------------===//
// Gather and scatter
//===----------------------------------------------------------------------===//

/// Every gathered element adds its gradient to the row that it came from.
LogicalResult GatherOp::buildGradient(GradientBuilder &builder) {
  if (!builder.wants(0))
    return success();
  NamedTensor table = builder.operand(0), g = builder.gradient();
  SmallVector<NamedTensor, 2> operands = {g};
  for (unsigned i = 0; i < getPositions().size(); ++i)
    operands.push_back(builder.operand(i + 1));
  // Rows add up in the type of the table's gradient.
  auto type = RankedTensorType::get(table.getType().getShape(),
                                    builder.gradientType(0));
  builder.give(0, builder.create<ScatterSumOp>(
                      table.indices, type, g.value, getPositions(),
                      builder.indexing(operands, table.indices), getDims()));
  return success();
}

/// What is written passes to the update, what is kept to the destination. Of
/// updates at equal positions only the last, which stays, has a gradient.
LogicalResult ScatterOp::buildGradient(GradientBuilder &builder) {
  NamedTensor g = builder.gradient(), update = builder.operand(1);
  SmallVector<NamedTensor, 3> positions;
  for (unsigned i = 0; i < getPositions().size(); ++i)
    positions.push_back(builder.operand(i + 2));
  auto gather = [&](const NamedTensor &table) {
    SmallVector<NamedTensor, 4> operands = {table};
    llvm::append_range(operands, positions);
    auto type = RankedTensorType::get(update.getType().getShape(),
                                      table.getElementType());
    return builder.create<GatherOp>(
        update.indices, type, table.value, getPositions(),
        builder.indexing(operands, update.indices), getDims());
  };
  auto scatter = [&](const NamedTensor &destination,
                     const NamedTensor &written) {
    SmallVector<NamedTensor, 4> operands = {destination, written};
    llvm::append_range(operands, positions);
    return builder.create<ScatterOp>(
        g.indices, destination.getType(), destination.value, written.value,
        getPositions(), builder.indexing(operands, destination.indices),
        getDims(), /*accumulate=*/false);
  };
  if (builder.wants(0)) {
    NamedTensor zeros =
        builder.broadcastTo(builder.constant(0, g.getElementType()), update);
    builder.give(0, getAccumulate() ? g : scatter(g, zeros));
  }
  if (!builder.wants(1))
    return success();
  NamedTensor taken = gather(g);
  // Elements that differ in an index of the destination never meet.
  Names meeting;
  for (StringRef index : update.indices)
    if (!llvm::is_contained(g.indices, index))
      meeting.push_back(index);
  if (!getAccumulate() && !meeting.empty()) {
    // Of the numbers of the elements that meet, a scatter leaves the last.
    NamedTensor numbers =
        builder.broadcastTo(builder.numberElements(update, meeting), update);
    Type integer = numbers.getElementType();
    NamedTensor stayed = gather(scatter(
        builder.broadcastTo(builder.constant(-1, integer), g), numbers));
    taken = select(compare(Function::Eq, stayed, numbers), taken);
  }
  builder.give(1, taken);
  return success();
}

//===----------------------------------------------------------------------===//
// Experts
//===----------------------------------------------------------------------===//

/// Bool.
LogicalResult TopKOp::buildGradient(GradientBuilder &) { return success(); }

/// The operation `Op` with the same picks on other tensors; `like` has the
/// result's shape, `type` is its element type.
template <typename Op, typename From>
static NamedTensor routed(From from, GradientBuilder &builder,
                          ArrayRef<NamedTensor> operands,
                          const NamedTensor &like, Type type) {
  auto result = RankedTensorType::get(like.getType().getShape(), type);
  SmallVector<Value, 3> values;
  for (const NamedTensor &operand : operands)
    values.push_back(operand.value);
  NamedTensor made = builder.create<Op>(like.indices, result, values,
                                        ArrayRef<NamedAttribute>{});
  auto op = made.value.template getDefiningOp<Op>();
  op.setIndexingAttr(builder.indexing(operands, like.indices));
  op.setExpertsAttr(from.getExpertsAttr());
  op.setSlotsAttr(from.getSlotsAttr());
  op.setKAttr(from.getKAttr());
  op.setBlocksAttr(from.getBlocksAttr());
  op.setLimitAttr(from.getLimitAttr());
  op.setDroplessAttr(from.getDroplessAttr());
  op.setImbalanceAttr(from.getImbalanceAttr());
  return made;
}

/// With X of tokens, Y of slots and weights W, each of the three operations is
/// the derivative of sum(W X Y) over what picks join, with respect to one of
/// them; `g` stands for that one.
template <typename Op> static void giveRouted(Op op, GradientBuilder &builder) {
  NamedTensor g = builder.gradient(), picks = builder.operand(kPicksOperand);
  unsigned result = op->getNumOperands();
  auto tensor = [&](unsigned number) {
    return number == result ? g : builder.operand(number);
  };
  std::optional<unsigned> weights = op.getWeightsTensor();
  auto operandsWith = [&](const NamedTensor &first) {
    SmallVector<NamedTensor, 3> operands = {first, picks};
    if (weights)
      operands.push_back(tensor(*weights));
    return operands;
  };
  auto isGiven = [&](unsigned number) {
    return number != result && builder.wants(number);
  };
  unsigned tokens = op.getTokensTensor(), slots = op.getSlotsTensor();
  if (isGiven(tokens))
    builder.give(tokens,
                 routed<CombineOp>(op, builder, operandsWith(tensor(slots)),
                                   builder.operand(tokens),
                                   builder.gradientType(tokens)));
  if (isGiven(slots))
    builder.give(slots,
                 routed<DispatchOp>(op, builder, operandsWith(tensor(tokens)),
                                    builder.operand(slots),
                                    builder.gradientType(slots)));
  if (weights && isGiven(*weights))
    builder.give(*weights,
                 routed<CombineGradOp>(op, builder,
                                       {tensor(tokens), picks, tensor(slots)},
                                       builder.operand(*weights),
                                       builder.gradientType(*weights)));
}

LogicalResult DispatchOp::buildGradient(GradientBuilder &builder) {
  giveRouted(*this, builder);
  return success();
}

LogicalResult CombineOp::buildGradient(GradientBuilder &builder) {
  giveRouted(*this, builder);
  return success();
}

LogicalResult CombineGradOp::buildGradient(GradientBuilder &builder) {
  giveRouted(*this, builder);
  return success();
}

//===----------------------------------------------------------------------===//
// Layout of indices
//===----------------------------------------------------------------------===//

LogicalResult SplitOp::buildGradient(GradientBuilder &builder) {
  if (!builder.wants(0))
    return success();
  NamedTensor g = builder.gradient(), x = builder.operand(0);
  auto type = RankedTensorType::get(x.getType().getShape(), g.getElementType());
  builder.give(0, builder.create<MergeOp>(x.indices, type, g.value,
                                          getPartsAttr(), getWholeAttr(),
                                          builder.indexing(g, x.indices)));
  return success();
}

LogicalResult MergeOp::buildGradient(GradientBuilder &builder) {
  if (!builder.wants(0))
    return success();
  NamedTensor g = builder.gradient(), x = builder.operand(0);
  auto type = RankedTensorType::get(x.getType().getShape(), g.getElementType());
  builder.give(0, builder.create<SplitOp>(x.indices, type, g.value,
                                          getWholeAttr(), getPartsAttr(),
                                          builder.indexing(g, x.indices)));
  return success();
}

/// Zeros around the slice.
LogicalResult SliceOp::buildGradient(GradientBuilder &builder) {
  if (!builder.wants(0))
    return success();
  NamedTensor g = builder.gradient(), x = builder.operand(0);
  int64_t begin = getRange()[0], end = getRange()[1];
  SmallVector<NamedTensor, 3> pieces;
  Names parts;
  auto add = [&](const NamedTensor &piece, StringRef part) {
    pieces.push_back(piece);
    parts.push_back(part);
  };
  std::string before = (getPart() + ".before").str();
  std::string behind = (getPart() + ".behind").str();
  if (begin > 0)
    add(builder.zerosLike(g, getPart(), before, begin), before);
  add(g, getPart());
  if (int64_t whole = x.extent(getWhole()); end < whole)
    add(builder.zerosLike(g, getPart(), behind, whole - end), behind);
  if (pieces.size() == 1) {
    g.indices[llvm::find(g.indices, getPart()) - g.indices.begin()] =
        getWhole();
    builder.give(0, g);
    return success();
  }
  SmallVector<Value, 3> values;
  for (const NamedTensor &piece : pieces)
    values.push_back(piece.value);
  auto type = RankedTensorType::get(x.getType().getShape(), g.getElementType());
  builder.give(0, builder.create<ConcatOp>(
                      x.indices, type, values,
                      builder.getBuilder().getStrArrayAttr(parts),
                      getWholeAttr(), builder.indexing(pieces, x.indices)));
  return success();
}

LogicalResult ConcatOp::buildGradient(GradientBuilder &builder) {
  NamedTensor g = builder.gradient();
  int64_t begin = 0;
  for (auto [i, part] : llvm::enumerate(getParts().getAsRange<StringAttr>())) {
    NamedTensor x = builder.operand(i);
    int64_t end = begin + x.extent(part);
    if (builder.wants(i)) {
      // A slice keeps the order of dimensions.
      Names names = g.indices;
      SmallVector<int64_t, 4> shape(g.getType().getShape());
      auto at = llvm::find(names, getWhole()) - names.begin();
      names[at] = part;
      shape[at] = end - begin;
      auto type = RankedTensorType::get(shape, g.getElementType());
      builder.give(i,
                   builder.create<SliceOp>(
                       names, type, g.value, getWholeAttr(),
                       builder.getBuilder().getDenseI64ArrayAttr({begin, end}),
                       part, builder.indexing(g, names)));
    }
    begin = end;
  }
  return success();
}

LogicalResult ReshardOp::buildGradient(GradientBuilder &builder) {
  if (builder.wants(0))
    builder.give(0, builder.gradient());
  return success();
}

LogicalResult AdamWOp::buildGradient(GradientBuilder &) {
  return emitOpError("has no derivative");
}

LogicalResult SgdOp::buildGradient(GradientBuilder &) {
  return emitOpError("has no derivative");
}

/// Integers.
LogicalResult IotaOp::buildGradient(GradientBuilder &) { return success(); }

LogicalResult AttentionGradOp::buildGradient(GradientBuilder &) {
  return emitOpError() << "has no derivative";
}

/// Where the elements are, as a gather reads them.
LogicalResult ScatterSumOp::buildGradient(GradientBuilder &builder) {
  if (!builder.wants(0))
    return success();
  NamedTensor g = builder.gradient(), update = builder.operand(0);
  SmallVector<NamedTensor, 2> operands = {g};
  for (unsigned i = 0; i < getPositions().size(); ++i)
    operands.push_back(builder.operand(i + 1));
  auto type =
      RankedTensorType::get(update.getType().getShape(), g.getElementType());
  builder.give(0, builder.create<GatherOp>(
                      update.indices, type, g.value, getPositions(),
                      builder.indexing(operands, update.indices), getDims()));
  return success();
}
