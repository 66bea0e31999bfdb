//===- Gradient.cpp - Building the gradients of operations ----------------===//

#include "shardc/Dialect/Shd/IR/Gradient.h"
#include "llvm/ADT/StringMap.h"
#include <numeric>

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

using Names = SmallVector<StringRef, 4>;

static Names unionOf(Names names, ArrayRef<StringRef> more) {
  for (StringRef name : more)
    if (!llvm::is_contained(names, name))
      names.push_back(name);
  return names;
}

/// Those of `names` that are in `kept`.
static Names intersection(ArrayRef<StringRef> names, ArrayRef<StringRef> kept) {
  Names result;
  for (StringRef name : names)
    if (llvm::is_contained(kept, name))
      result.push_back(name);
  return result;
}

void shd::nameGradient(Operation *op, StringRef name) {
  Builder builder(op->getContext());
  if (!name.empty())
    for (Value result : op->getResults())
      setResultAttr(result, kName, builder.getStringAttr(name + ".grad"));
  op->setAttr(kTemporary, builder.getUnitAttr());
  setPhase(op, Phase::Backward);
}

std::string shd::logsumexpName(StringRef attention) {
  return attention.empty() ? "" : (attention + ".logsumexp").str();
}

std::vector<RecomputableValue> shd::recomputableValues(ProgramOp program) {
  std::vector<RecomputableValue> values;
  llvm::StringMap<unsigned> numbers;
  auto add = [&](CostOpInterface op, Value value, StringRef name) {
    unsigned number = ++numbers[name];
    values.push_back({op, value,
                      number == 1 && !name.empty()
                          ? name.str()
                          : (name + "#" + Twine(number)).str()});
  };
  program->walk<WalkOrder::PreOrder>([&](CostOpInterface op) {
    if (getPhase(op) != Phase::Forward || !op->getParentOfType<RepeatOp>())
      return;
    for (Value result : op->getResults())
      add(op, result, getResultName(result));
    auto attention = dyn_cast<AttentionOp>(op.getOperation());
    if (attention && !attention.getLogsumexp())
      add(op, nullptr, logsumexpName(getResultName(attention.getResult())));
  });
  return values;
}

void shd::pinParts(DeclareOp declare, DictionaryAttr pins, StringRef name) {
  auto pin = pins ? pins.getAs<ShardingAttr>(name) : ShardingAttr();
  if (!pin)
    return;
  MLIRContext *context = declare.getContext();
  // A weight that the program declares with its repeat's index is pinned with
  // that, too.
  bool isWhole = int64_t(pin.getDims().size()) == declare.getType().getRank();
  SmallVector<DimShardingAttr> dims(
      isWhole ? 0 : declare.getStacked(),
      DimShardingAttr::get(context, {}, /*isOpen=*/false));
  llvm::append_range(dims, pin.getDims());
  setResultPin(declare.getResult(),
               ShardingAttr::get(context, dims, pin.getPartial()));
}

//===----------------------------------------------------------------------===//
// Named tensors
//===----------------------------------------------------------------------===//

int64_t NamedTensor::extent(StringRef index) const {
  return getType().getDimSize(llvm::find(indices, index) - indices.begin());
}

static NamedTensor binary(Function function, const NamedTensor &a,
                          const NamedTensor &b) {
  return a.builder->elementwise(function, {a, b});
}

static NamedTensor binary(Function function, double a, const NamedTensor &b) {
  return b.builder->elementwise(
      function, {b.builder->constant(a, b.getElementType()), b});
}

NamedTensor shd::operator+(const NamedTensor &a, const NamedTensor &b) {
  return binary(Function::Add, a, b);
}
NamedTensor shd::operator-(const NamedTensor &a, const NamedTensor &b) {
  return binary(Function::Sub, a, b);
}
NamedTensor shd::operator*(const NamedTensor &a, const NamedTensor &b) {
  return binary(Function::Mul, a, b);
}
NamedTensor shd::operator/(const NamedTensor &a, const NamedTensor &b) {
  return binary(Function::Div, a, b);
}
NamedTensor shd::operator-(const NamedTensor &a) {
  return a.builder->elementwise(Function::Neg, {a});
}
NamedTensor shd::operator+(double a, const NamedTensor &b) {
  return binary(Function::Add, a, b);
}
NamedTensor shd::operator-(double a, const NamedTensor &b) {
  return binary(Function::Sub, a, b);
}
NamedTensor shd::operator*(double a, const NamedTensor &b) {
  return binary(Function::Mul, a, b);
}

//===----------------------------------------------------------------------===//
// The forward operation
//===----------------------------------------------------------------------===//

NamedTensor GradientBuilder::operand(unsigned number) {
  return {this, forward->getOperand(number),
          forward.getIndexing().getOperandIndices(number)};
}

NamedTensor GradientBuilder::result(unsigned number) {
  return {this, forward->getResult(number),
          forward.getIndexing().getResultIndices(number)};
}

NamedTensor GradientBuilder::gradient(unsigned number) {
  return {this, resultGradients[number],
          forward.getIndexing().getResultIndices(number)};
}

bool GradientBuilder::wants(unsigned number) const {
  return scope.isWanted(forward->getOperand(number));
}

void GradientBuilder::give(unsigned number, NamedTensor gradient) {
  NamedTensor like = operand(number);
  // Sums are taken in the type of the gradient, so cast what is to be summed.
  gradient = cast(gradient, gradientType(number));
  gradient = broadcastTo(sumTo(gradient, like.indices), like);
  gradients[number] = gradient.value;
}

void GradientBuilder::giveProduct(unsigned number, const NamedTensor &a,
                                  const NamedTensor &b) {
  NamedTensor like = operand(number);
  Names all = unionOf(a.indices, b.indices);
  Names kept = intersection(like.indices, all);
  SmallVector<int64_t, 4> shape;
  for (StringRef name : kept)
    shape.push_back(like.extent(name));
  auto type = RankedTensorType::get(shape, gradientType(number));
  NamedTensor product =
      kept.size() == all.size()
          ? create<ElementwiseOp>(kept, type, Function::Mul,
                                  ValueRange{a.value, b.value},
                                  indexing({a, b}, kept))
          : create<EinsumOp>(kept, type, a.value, b.value,
                             indexing({a, b}, kept));
  gradients[number] = broadcastTo(product, like).value;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

IndexingAttr GradientBuilder::indexing(ArrayRef<NamedTensor> operands,
                                       ArrayRef<StringRef> result) {
  SmallVector<ArrayAttr, 4> lists;
  for (const NamedTensor &operand : operands)
    lists.push_back(builder.getStrArrayAttr(operand.indices));
  return IndexingAttr::get(builder.getContext(), lists,
                           builder.getStrArrayAttr(result));
}

NamedTensor GradientBuilder::record(Operation *op,
                                    ArrayRef<StringRef> indices) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(op);
  for (OpOperand &operand : op->getOpOperands())
    operand.set(scope.read(operand.get(), builder));
  nameGradient(op, getResultName(forward->getResult(0)));
  return {this, op->getResult(0), Names(indices)};
}

Value shd::exactConstant(OpBuilder &builder, Location loc, double value,
                         Type elementType) {
  auto type = RankedTensorType::get({}, elementType);
  Attribute number =
      isa<FloatType>(elementType)
          ? Attribute(builder.getFloatAttr(elementType, value))
          : Attribute(builder.getIntegerAttr(elementType, int64_t(value)));
  auto elements = DenseElementsAttr::get(type, number);
  auto op = ConstantOp::create(builder, loc, type, elements);
  if (auto rounded = dyn_cast<FloatAttr>(number);
      rounded && rounded.getValueAsDouble() != value)
    op->setAttr(kExact, builder.getF64FloatAttr(value));
  return op.getResult();
}

NamedTensor GradientBuilder::constant(double value, Type elementType) {
  return {
      this, exactConstant(builder, forward->getLoc(), value, elementType), {}};
}

/// The widest of the operands' element types; a condition has no say.
static Type widestType(ArrayRef<NamedTensor> operands) {
  Type widest = operands.back().getElementType();
  for (const NamedTensor &operand : llvm::drop_end(operands)) {
    Type type = operand.getElementType();
    if (isa<FloatType>(type) && isa<FloatType>(widest) &&
        type.getIntOrFloatBitWidth() > widest.getIntOrFloatBitWidth())
      widest = type;
  }
  return widest;
}

NamedTensor GradientBuilder::elementwise(Function function,
                                         ArrayRef<NamedTensor> operands,
                                         Type elementType) {
  Names names;
  for (const NamedTensor &operand : operands)
    names = unionOf(std::move(names), operand.indices);
  SmallVector<int64_t, 4> shape;
  for (StringRef name : names)
    shape.push_back(llvm::find_if(operands, [&](const NamedTensor &operand) {
                      return llvm::is_contained(operand.indices, name);
                    })->extent(name));
  SmallVector<Value, 3> values;
  for (const NamedTensor &operand : operands)
    values.push_back(operand.value);
  if (!elementType)
    elementType = widestType(operands);
  return create<ElementwiseOp>(names, RankedTensorType::get(shape, elementType),
                               function, values, indexing(operands, names));
}

NamedTensor GradientBuilder::where(const NamedTensor &condition,
                                   const NamedTensor &a, const NamedTensor &b) {
  return elementwise(Function::Where, {condition, a, b});
}

NamedTensor GradientBuilder::cast(const NamedTensor &tensor, Type elementType) {
  if (tensor.getElementType() == elementType)
    return tensor;
  return elementwise(Function::Cast, {tensor}, elementType);
}

NamedTensor GradientBuilder::sumTo(const NamedTensor &tensor,
                                   ArrayRef<StringRef> indices) {
  return reduce(Reduction::Sum, tensor, indices);
}

NamedTensor GradientBuilder::reduce(Reduction kind, const NamedTensor &tensor,
                                    ArrayRef<StringRef> indices) {
  Names kept = intersection(indices, tensor.indices);
  if (kept.size() == tensor.indices.size())
    return tensor;
  SmallVector<int64_t, 4> shape;
  for (StringRef name : kept)
    shape.push_back(tensor.extent(name));
  return create<ReduceOp>(
      kept, RankedTensorType::get(shape, tensor.getElementType()), kind,
      tensor.value, ValueRange(), indexing(tensor, kept));
}

Type GradientBuilder::floatType(ArrayRef<NamedTensor> operands) {
  for (const NamedTensor &operand : operands)
    if (operand.getElementType().isF64())
      return builder.getF64Type();
  return builder.getF32Type();
}

NamedTensor GradientBuilder::toFloat(const NamedTensor &tensor) {
  return cast(tensor, floatType(tensor));
}

NamedTensor GradientBuilder::broadcastTo(const NamedTensor &tensor,
                                         const NamedTensor &like) {
  if (tensor.indices == like.indices)
    return tensor;
  return create<ElementwiseOp>(
      like.indices,
      RankedTensorType::get(like.getType().getShape(), tensor.getElementType()),
      Function::Copy, tensor.value, indexing(tensor, like.indices));
}

NamedTensor GradientBuilder::zerosLike(const NamedTensor &like, StringRef index,
                                       StringRef name, int64_t extent) {
  NamedTensor zero = constant(0, like.getElementType());
  Names names = like.indices;
  SmallVector<int64_t, 4> shape(like.getType().getShape());
  auto at = llvm::find(names, index) - names.begin();
  names[at] = name;
  shape[at] = extent;
  return create<ElementwiseOp>(
      names, RankedTensorType::get(shape, like.getElementType()),
      Function::Copy, zero.value, indexing(zero, names));
}

NamedTensor GradientBuilder::numberElements(const NamedTensor &like,
                                            ArrayRef<StringRef> indices) {
  Type integer = builder.getI32Type();
  std::optional<NamedTensor> numbers;
  for (StringRef index : indices) {
    NamedTensor count = create<IotaOp>(
        index, RankedTensorType::get(like.extent(index), integer),
        indexing({}, index));
    NamedTensor stride = constant(double(like.extent(index)), integer);
    numbers = numbers ? *numbers * stride + count : count;
  }
  return *numbers;
}

int64_t shd::batchExtent(ProgramOp program) {
  std::optional<TrainingAttr> training = program.getTraining();
  StringAttr batch = training ? training->getBatch() : StringAttr();
  int64_t extent = 0;
  for (auto input : program.getBody().getOps<DeclareOp>()) {
    if (input.getKind() != TensorKind::Input)
      continue;
    for (auto [i, index] : llvm::enumerate(input.getIndices()))
      if (batch ? index == batch : i == 0)
        extent = std::gcd(extent, input.getType().getDimSize(i));
  }
  return extent;
}
