//===- Interpreter.cpp - Runs programs, whole or on a mesh ----------------===//
//
// All devices run one program without branches, so they are at the same
// operation at any time: the interpreter goes through the program once and runs
// each operation on every device. Only collectives read what others hold.
//
//===----------------------------------------------------------------------===//

#include "GridInterpreter.h"
#include "shardc/Dialect/Shd/IR/Explicit.h"
#include "shardc/Dialect/Shd/IR/Halo.h"
#include "shardc/Dialect/Shd/IR/Host.h"
#include "shardc/Dialect/Shd/IR/Order.h"
#include "shardc/Dialect/Shd/IR/Segments.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace shardc;

//===----------------------------------------------------------------------===//
// Memories
//===----------------------------------------------------------------------===//

TensorRef Interpreter::read(Operation *op, Value value, unsigned device) {
  TensorRef tensor = memories[device].lookup(keyOf(value, iterations));
  if (!tensor)
    op->emitError() << "device " << devices.name(device)
                    << " does not hold an operand";
  return tensor;
}

/// Every device gets its part of an operation's result.
void Interpreter::define(Value value, std::vector<TensorRef> parts) {
  if (options.observe)
    options.observe({cast<OpResult>(value), iterations, parts});
  for (auto [memory, part] : llvm::zip_equal(memories, parts))
    memory[keyOf(value, iterations)] = std::move(part);
}

FailureOr<SmallVector<const Tensor *>> Interpreter::operands(Operation *op,
                                                             unsigned device) {
  SmallVector<const Tensor *> values;
  for (Value operand : op->getOperands()) {
    TensorRef tensor = read(op, operand, device);
    if (!tensor)
      return failure();
    // Memory keeps it alive.
    values.push_back(tensor.get());
  }
  return values;
}

//===----------------------------------------------------------------------===//
// Computation
//===----------------------------------------------------------------------===//

/// The operation that a statistic is of: it takes what the all_reduce of the
/// statistic makes. And which of its statistics it is.
static std::pair<shd::ShardingRuleOpInterface, unsigned>
consumerOf(shd::StatisticOp op) {
  for (Operation *reduce : op->getUsers())
    for (OpOperand &use : onlyResult(reduce).getUses()) {
      auto consumer = dyn_cast<shd::ShardingRuleOpInterface>(use.getOwner());
      if (!consumer || consumer.getStats().empty())
        continue;
      unsigned first = consumer.getStats().getBeginOperandIndex();
      if (use.getOperandNumber() >= first)
        return {consumer, use.getOperandNumber() - first};
    }
  return {nullptr, 0};
}

std::vector<SmallVector<FactorRange, 4>>
Interpreter::computeRanges(Operation *op) const {
  ShardingRule rule = cast<shd::ShardingRuleOpInterface>(op).getShardingRule();
  SmallVector<AxisList, 6> axes(rule.factors.size());
  SmallVector<int64_t, 6> extents;
  for (const Factor &factor : rule.factors)
    extents.push_back(factor.extent);
  // By factor: how many places further on its part comes from, below 0 of those
  // before, and how many elements before it are here.
  SmallVector<int64_t, 6> steps(rule.factors.size(), 0);
  SmallVector<int64_t, 6> halos(rule.factors.size(), 0);
  if (auto shards = op->getAttrOfType<ArrayAttr>(spmd::kShards))
    for (auto shard : shards.getAsRange<spmd::ShardAttr>()) {
      unsigned factor = *rule.findFactor(shard.getName());
      extents[factor] = shard.getExtent();
      for (StringAttr axis : shard.getAxes())
        axes[factor].push_back(*devices.mesh().find(axis));
      halos[factor] = shard.getHalo();
      if (shard.hasTravelled())
        steps[factor] = (shard.getBack() ? -1 : 1) *
                        (shard.getStep() +
                         (shard.getEachIteration() ? iterations.back() : 0));
    }
  std::vector<SmallVector<FactorRange, 4>> result(devices.size());
  for (unsigned device = 0; device < devices.size(); ++device) {
    SmallVector<int64_t, 4> coordinates = devices.coordinates(device);
    for (auto [extent, list, step, halo] :
         llvm::zip_equal(extents, axes, steps, halos)) {
      FactorRange &range = result[device].emplace_back(
          partOf(devices.mesh(), extent, list, coordinates));
      if (step != 0)
        range.offset = llvm::mod(range.offset + step * range.size, extent);
      range.offset -= halo;
      range.size += halo;
      range.halo = halo;
    }
  }
  return result;
}

ArrayRef<FactorRange> Interpreter::rangesOf(Operation *op, unsigned device) {
  if (!isa<shd::ShardingRuleOpInterface>(op))
    return {};
  auto [it, isNew] = ranges.try_emplace(op);
  if (isNew || (device == 0 && spmd::stepsInEachIteration(op)))
    it->second = computeRanges(op);
  return it->second[device];
}

FailureOr<shd::TensorList> Interpreter::evaluate(Operation *op,
                                                 unsigned device) {
  FailureOr<SmallVector<const Tensor *>> values = operands(op, device);
  if (failed(values))
    return failure();
  if (device == 0 && options.observeOperands)
    options.observeOperands(op, *values);
  auto statistic = dyn_cast<shd::StatisticOp>(op);
  if (!statistic) {
    auto evaluated = dyn_cast<shd::EvaluationOpInterface>(op);
    if (!evaluated)
      return op->emitError() << "'" << op->getName() << "' cannot be run";
    return evaluated.evaluate(*values, rangesOf(op, device), options.positions);
  }
  auto [consumer, number] = consumerOf(statistic);
  if (!consumer)
    return op->emitError() << "no operation takes this statistic";
  FailureOr<Tensor> value =
      cast<shd::StatisticsOpInterface>(consumer.getOperation())
          .evaluateStatistic(number, *values, rangesOf(consumer, device),
                             options.positions);
  if (failed(value))
    return failure();
  shd::TensorList results;
  results.push_back(std::move(*value));
  return results;
}

/// The elements that a window lets in are here: as many as if all were.
static SmallVector<FactorRange, 4> withoutHalos(Operation *op,
                                                ArrayRef<FactorRange> ranges) {
  SmallVector<FactorRange, 4> result(ranges);
  auto shards = op->getAttrOfType<ArrayAttr>(spmd::kShards);
  if (!shards)
    return result;
  ShardingRule rule = cast<shd::ShardingRuleOpInterface>(op).getShardingRule();
  for (auto shard : shards.getAsRange<spmd::ShardAttr>())
    if (shard.getHalo() > 0) {
      FactorRange &range = result[*rule.findFactor(shard.getName())];
      range = {0, range.whole, range.whole};
    }
  return result;
}

void Interpreter::countWork(Operation *op) {
  auto cost = dyn_cast<shd::CostOpInterface>(op);
  if (!cost || !isa<shd::ShardingRuleOpInterface>(op))
    return;
  SmallVector<double, 4> flops;
  for (unsigned device = 0; device < devices.size(); ++device)
    flops.push_back(
        cost.getExecutedFlops(withoutHalos(op, rangesOf(op, device))));
  if (llvm::all_of(flops, [](double each) { return each == 0; }))
    return;
  RunResult::Work &sum = work[op];
  sum.op = op;
  sum.flops.resize(devices.size());
  for (auto [total, each] : llvm::zip_equal(sum.flops, flops))
    total += each;
}

LogicalResult Interpreter::compute(Operation *op) {
  countWork(op);
  SmallVector<std::vector<TensorRef>, 1> parts(op->getNumResults());
  for (unsigned device = 0; device < devices.size(); ++device) {
    FailureOr<shd::TensorList> values = evaluate(op, device);
    if (failed(values))
      return failure();
    for (auto [list, value] : llvm::zip_equal(parts, *values)) {
      if (options.roundToDeclared)
        roundToElement(value);
      list.push_back(std::make_shared<const Tensor>(std::move(value)));
    }
  }
  for (auto [result, list] : llvm::zip_equal(op->getResults(), parts)) {
    if (options.held)
      if (TensorRef held = options.held(result, iterations))
        list.assign(1, std::move(held));
    define(result, std::move(list));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Communication
//===----------------------------------------------------------------------===//

static Type globalTypeOf(Operation *op, StringRef attribute) {
  return op->getAttrOfType<TypeAttr>(attribute).getValue();
}

static AxisList axesOf(const Mesh &mesh, ArrayAttr names) {
  AxisList axes;
  for (StringRef name : names.getAsValueRange<StringAttr>())
    axes.push_back(*mesh.find(name));
  return axes;
}

static Collective describe(const Mesh &mesh, Operation *op) {
  auto from = cast<RankedTensorType>(globalTypeOf(op, "from"));
  Collective collective;
  collective.kind = spmd::collectiveKind(op);
  collective.axes = axesOf(mesh, op->getAttrOfType<ArrayAttr>("axes"));
  if (auto reduce = dyn_cast<spmd::AllReduceOp>(op))
    collective.combination = reduce.getCombination();
  if (isOfHalo(collective.kind)) {
    collective.haloDim = op->getAttrOfType<IntegerAttr>("dim").getInt();
    collective.haloRows = op->getAttrOfType<IntegerAttr>("rows").getInt();
    collective.haloOrder = shd::PositionOrder(
        from.getDimSize(collective.haloDim), shd::haloDealt(op));
  }
  llvm::append_range(collective.shape, from.getShape());
  collective.from = shd::explicitLayout(mesh, from);
  collective.to = shd::explicitLayout(mesh, globalTypeOf(op, "to"));
  collective.elementBits = shd::elementBits(from.getElementType());
  llvm::append_range(
      collective.localShape,
      cast<RankedTensorType>(onlyResult(op).getType()).getShape());
  return collective;
}

FailureOr<std::vector<TensorRef>> Interpreter::readAll(Operation *op,
                                                       Value value) {
  std::vector<TensorRef> parts;
  for (unsigned device = 0; device < devices.size(); ++device) {
    parts.push_back(read(op, value, device));
    if (!parts.back())
      return failure();
  }
  return parts;
}

void Interpreter::count(Operation *op, const Traffic &traffic) {
  auto [it, isNew] = executed.try_emplace(
      op, RunResult::Executed{op, 0, Traffic(devices.size())});
  ++it->second.runs;
  it->second.traffic.add(traffic);
}

LogicalResult Interpreter::communicate(Operation *op) {
  FailureOr<std::vector<TensorRef>> read = readAll(op, op->getOperand(0));
  if (failed(read))
    return failure();
  std::vector<TensorRef> parts = std::move(*read);
  Traffic traffic(devices.size());
  if (std::optional<std::string> problem =
          runCollective(devices, describe(devices.mesh(), op), parts, traffic))
    return op->emitError() << *problem;
  if (options.roundToDeclared)
    for (TensorRef &part : parts) {
      Tensor rounded = *part;
      roundToElement(rounded);
      part = std::make_shared<const Tensor>(std::move(rounded));
    }
  count(op, traffic);
  define(onlyResult(op), std::move(parts));
  return success();
}

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

/// The place of a device on its ring.
static int64_t placeOf(ArrayRef<unsigned> ring, unsigned device) {
  return llvm::find(ring, device) - ring.begin();
}

LogicalResult Interpreter::shift(spmd::RingShiftOp op) {
  FailureOr<std::vector<TensorRef>> sent = readAll(op, op.getInput());
  if (failed(sent))
    return failure();
  AxisList axes = axesOf(devices.mesh(), op.getAxes());
  unsigned bits = shd::elementBits(op.getType().getElementType());
  Traffic traffic(devices.size());
  std::vector<TensorRef> received(devices.size());
  for (unsigned device = 0; device < devices.size(); ++device) {
    SmallVector<unsigned, 8> ring = devices.group(device, axes);
    int64_t from = placeOf(ring, device) + (op.getBack() ? -1 : 1);
    received[device] = (*sent)[ring[(from + ring.size()) % ring.size()]];
    if (ring.size() == 1)
      continue;
    ++traffic.messages[device];
    traffic.bits[device] += op.getType().getNumElements() * bits;
  }
  count(op, traffic);
  define(onlyResult(op), std::move(received));
  return success();
}

LogicalResult Interpreter::locate(spmd::RingPositionOp op) {
  FailureOr<std::vector<TensorRef>> iteration = readAll(op, op.getIteration());
  if (failed(iteration))
    return failure();
  AxisList axes = axesOf(devices.mesh(), op.getAxes());
  std::vector<TensorRef> places;
  for (unsigned device = 0; device < devices.size(); ++device) {
    SmallVector<unsigned, 8> ring = devices.group(device, axes);
    Tensor place(op.getType());
    place.setInteger(0, (placeOf(ring, device) +
                         (*iteration)[device]->getInteger(0) +
                         int64_t(op.getPlus())) %
                            int64_t(ring.size()));
    places.push_back(std::make_shared<const Tensor>(std::move(place)));
  }
  define(onlyResult(op), std::move(places));
  return success();
}

/// Where in the whole the part with the device's number lies.
FailureOr<Box> Interpreter::partOfNumber(Operation *op, RankedTensorType whole,
                                         RankedTensorType part, int64_t dim,
                                         Value number, unsigned device) {
  TensorRef value = read(op, number, device);
  if (!value)
    return failure();
  Box box = wholeBox(whole.getShape());
  int64_t extent = part.getDimSize(dim);
  int64_t parts = whole.getDimSize(dim) / extent;
  if (value->getInteger(0) < 0 || value->getInteger(0) >= parts)
    return op->emitError() << "device " << devices.name(device)
                           << " asks for part " << value->getInteger(0)
                           << " of " << parts;
  box[dim] = {value->getInteger(0) * extent, extent, whole.getDimSize(dim)};
  return box;
}

LogicalResult Interpreter::takeChunk(spmd::ChunkOp op) {
  FailureOr<std::vector<TensorRef>> wholes = readAll(op, op.getInput());
  if (failed(wholes))
    return failure();
  std::vector<TensorRef> chunks;
  for (unsigned device = 0; device < devices.size(); ++device) {
    FailureOr<Box> box = partOfNumber(op, op.getInput().getType(), op.getType(),
                                      op.getDim(), op.getNumber(), device);
    if (failed(box))
      return failure();
    Tensor chunk(op.getType());
    copyBox(*(*wholes)[device], wholeBox((*wholes)[device]->getShape()), chunk,
            *box, *box);
    chunks.push_back(std::make_shared<const Tensor>(std::move(chunk)));
  }
  define(onlyResult(op), std::move(chunks));
  return success();
}

LogicalResult Interpreter::placeChunk(spmd::PlaceOp op) {
  FailureOr<std::vector<TensorRef>> wholes = readAll(op, op.getWhole());
  FailureOr<std::vector<TensorRef>> chunks = readAll(op, op.getChunk());
  if (failed(wholes) || failed(chunks))
    return failure();
  std::vector<TensorRef> results;
  for (unsigned device = 0; device < devices.size(); ++device) {
    FailureOr<Box> box = partOfNumber(op, op.getType(), op.getChunk().getType(),
                                      op.getDim(), op.getNumber(), device);
    if (failed(box))
      return failure();
    Tensor result = *(*wholes)[device];
    copyBox(*(*chunks)[device], *box, result, wholeBox(result.getShape()),
            *box);
    results.push_back(std::make_shared<const Tensor>(std::move(result)));
  }
  define(onlyResult(op), std::move(results));
  return success();
}

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

/// The names in a list attribute.
static SmallVector<StringRef> namesOf(Operation *op, StringRef attribute) {
  return llvm::to_vector(
      op->getAttrOfType<ArrayAttr>(attribute).getAsValueRange<StringAttr>());
}

/// Buffers are zeros until the step writes them.
LogicalResult Interpreter::declare(Operation *op, DeclaredTensor tensor) {
  auto local = cast<RankedTensorType>(onlyResult(op).getType());
  if (shd::isBuffer(tensor.kind)) {
    define(onlyResult(op),
           std::vector<TensorRef>(devices.size(),
                                  std::make_shared<Tensor>(local)));
    return success();
  }
  Tensor whole = options.declared(tensor);
  if (options.roundToDeclared)
    roundToElement(whole);
  if (op->hasAttr(shd::kDealt))
    whole = shd::stored(whole, shd::positionOrders(op, namesOf(op, "indices"),
                                                   tensor.type.getShape()));
  Layout layout = shd::explicitLayout(devices.mesh(), tensor.type);
  std::vector<TensorRef> parts;
  for (unsigned device = 0; device < devices.size(); ++device) {
    Box part = partOf(devices, tensor.type.getShape(), layout, device);
    parts.push_back(
        std::make_shared<const Tensor>(cut(whole, part, local.getShape())));
  }
  define(onlyResult(op), std::move(parts));
  return success();
}

FailureOr<int64_t> Interpreter::numberOfPart(Operation *op, Value stack,
                                             ValueRange at, unsigned device) {
  int64_t number = 0;
  bool isSaved = shd::isOfSaved(stack);
  int64_t ahead = op->hasAttr(shd::kAhead) ? 1 : 0;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(stack.getType()).getShape();
  for (auto [iteration, extent] : llvm::zip_first(at, shape)) {
    TensorRef position = read(op, iteration, device);
    if (!position)
      return failure();
    number = number * extent + shd::partNumber(shd::repeatOf(iteration), extent,
                                               isSaved,
                                               position->getInteger(0) + ahead);
  }
  return number;
}

LogicalResult Interpreter::takePart(shd::PartOp op) {
  std::vector<TensorRef> parts;
  for (unsigned device = 0; device < devices.size(); ++device) {
    TensorRef source = read(op, op.getSource(), device);
    FailureOr<int64_t> number =
        numberOfPart(op, op.getSource(), op.getAt(), device);
    if (!source || failed(number))
      return failure();
    parts.push_back(std::make_shared<const Tensor>(
        partOfStack(*source, *number, op.getType())));
  }
  define(op.getResult(), std::move(parts));
  return success();
}

/// Changes a buffer on every device. The last write of a gradient is a result.
template <typename UpdateOp>
LogicalResult Interpreter::write(UpdateOp op, shd::TensorKind kind,
                                 Type global) {
  RunResult::Final final{
      op,
      op.getSym().str(),
      kind,
      {},
      op.getLoc(),
      shd::partType(cast<RankedTensorType>(global), op.getAt().size()),
      {}};
  for (unsigned device = 0; device < devices.size(); ++device) {
    TensorRef &buffer =
        memories[device][keyOf(op.getState(), /*iterations=*/{})];
    TensorRef value = read(op, op.getValue(), device);
    FailureOr<int64_t> number =
        numberOfPart(op, op.getState(), op.getAt(), device);
    if (!value || failed(number))
      return failure();
    final.parts.push_back(value);
    final.iterations = {*number};
    if (op.getAt().empty()) {
      buffer = value;
      continue;
    }
    // Devices begin with one array of zeros.
    if (buffer.use_count() > 1)
      buffer = std::make_shared<Tensor>(*buffer);
    setPartOfStack(const_cast<Tensor &>(*buffer), *number, *value);
  }
  if (kind == shd::TensorKind::Gradient)
    gradients.insert_or_assign({op.getState(), final.iterations.front()},
                               std::move(final));
  return success();
}

LogicalResult Interpreter::finish(Operation *op, StringRef name,
                                  std::optional<shd::TensorKind> kind,
                                  Type global) {
  RunResult::Final final{
      op,         name.str(),   kind,
      iterations, op->getLoc(), cast<RankedTensorType>(global),
      {}};
  for (unsigned device = 0; device < devices.size(); ++device) {
    TensorRef part = read(op, op->getOperand(0), device);
    if (!part)
      return failure();
    final.parts.push_back(std::move(part));
  }
  result.finals.push_back(std::move(final));
  return success();
}

/// `to` becomes what `from` is, on every device.
LogicalResult Interpreter::carry(Operation *op, ValueRange from,
                                 ValueRange to) {
  for (unsigned device = 0; device < devices.size(); ++device) {
    SmallVector<TensorRef> values;
    for (Value value : from) {
      values.push_back(read(op, value, device));
      if (!values.back())
        return failure();
    }
    for (auto [value, tensor] : llvm::zip_equal(to, values))
      memories[device][keyOf(value, iterations)] = tensor;
  }
  return success();
}

LogicalResult Interpreter::repeat(shd::RepeatOp op) {
  Block &body = op.getBody().front();
  ValueRange carried(body.getArguments().drop_front());
  if (failed(carry(op, op.getInits(), carried)))
    return failure();
  int64_t count = shd::iterationsWithin(op, iterations);
  for (int64_t i = 0; i < count; ++i) {
    Tensor number(cast<RankedTensorType>(op.getIteration().getType()));
    number.setInteger(0, shd::numberWithin(op, iterations, i));
    auto shared = std::make_shared<const Tensor>(std::move(number));
    for (Memory &memory : memories)
      memory[keyOf(op.getIteration(), iterations)] = shared;
    iterations.push_back(i);
    if (failed(runBlock(body)) ||
        failed(carry(op, body.getTerminator()->getOperands(), carried)))
      return failure();
    iterations.pop_back();
  }
  return carry(op, carried, op.getResults());
}

LogicalResult Interpreter::runOperation(Operation *op) {
  if (spmd::isCollective(op))
    return communicate(op);
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<shd::DeclareOp>([&](shd::DeclareOp declared) {
        return declare(op,
                       {declared.getSym(), declared.getKind(),
                        unsigned(declared.getStacked()), declared.getType()});
      })
      .Case<spmd::ParameterOp>([&](spmd::ParameterOp parameter) {
        return declare(op, {parameter.getSym(), parameter.getKind(),
                            unsigned(parameter.getStacked()),
                            cast<RankedTensorType>(parameter.getGlobal())});
      })
      .Case<shd::PartOp>([&](shd::PartOp part) { return takePart(part); })
      .Case<shd::OutputOp>([&](shd::OutputOp output) {
        return finish(op, output.getSym(), std::nullopt,
                      output.getValue().getType());
      })
      .Case<spmd::OutputOp>([&](spmd::OutputOp output) {
        return finish(op, output.getSym(), std::nullopt, output.getGlobal());
      })
      .Case<shd::UpdateOp>([&](shd::UpdateOp update) {
        shd::DeclareOp declared = update.getDeclaration();
        if (declared.isBuffer())
          return write(update, declared.getKind(), declared.getType());
        return finish(op, update.getSym(), declared.getKind(),
                      update.getValue().getType());
      })
      .Case<spmd::UpdateOp>([&](spmd::UpdateOp update) {
        spmd::ParameterOp parameter = update.getParameter();
        if (shd::isBuffer(parameter.getKind()))
          return write(update, parameter.getKind(), parameter.getGlobal());
        return finish(
            op, update.getSym(), parameter.getKind(),
            shd::partType(parameter.getGlobal(), update.getAt().size()));
      })
      .Case<shd::RepeatOp>(
          [&](shd::RepeatOp repeated) { return repeat(repeated); })
      .Case<spmd::RingShiftOp>(
          [&](spmd::RingShiftOp shifted) { return shift(shifted); })
      .Case<spmd::RingPositionOp>(
          [&](spmd::RingPositionOp position) { return locate(position); })
      .Case<spmd::ChunkOp>(
          [&](spmd::ChunkOp chunk) { return takeChunk(chunk); })
      .Case<spmd::PlaceOp>(
          [&](spmd::PlaceOp place) { return placeChunk(place); })
      .Default([&](Operation *) { return compute(op); });
}

LogicalResult Interpreter::runBlock(Block &block) {
  for (Operation &op : block)
    if (!isa<shd::YieldOp>(op) && failed(runOperation(&op)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// As scheduled
//===----------------------------------------------------------------------===//

Interpreter::Key Interpreter::keyOf(Value value,
                                    ArrayRef<int64_t> iterations) const {
  return {value, options.schedule
                     ? linearIteration(value.getParentBlock(), iterations)
                     : 0};
}

LogicalResult Interpreter::run(Operation *op, const Iterations &at) {
  iterations = at;
  return runOperation(op);
}

bool Interpreter::holds(Value value, const Iterations &at) {
  return memories.front().contains(keyOf(value, at));
}

void Interpreter::drop(Value value, const Iterations &at) {
  for (Memory &memory : memories)
    memory.erase(keyOf(value, at));
}

void Interpreter::hand(Value from, const Iterations &fromIterations, Value to,
                       const Iterations &toIterations) {
  for (Memory &memory : memories)
    memory[keyOf(to, toIterations)] =
        memory.lookup(keyOf(from, fromIterations));
}

void Interpreter::number(BlockArgument argument, const Iterations &at) {
  Tensor number(cast<RankedTensorType>(argument.getType()));
  auto repeat = cast<shd::RepeatOp>(argument.getOwner()->getParentOp());
  number.setInteger(
      0, shd::numberWithin(repeat, ArrayRef(at).drop_back(), at.back()));
  auto shared = std::make_shared<const Tensor>(std::move(number));
  for (Memory &memory : memories)
    memory[keyOf(argument, at)] = shared;
}

DeviceBytes Interpreter::bytes(Value value, const Iterations &at) {
  if (shd::takesNoDeviceMemory(value))
    return DeviceBytes(memories.size(), 0);
  DeviceBytes result;
  for (Memory &memory : memories) {
    TensorRef tensor = memory.lookup(keyOf(value, at));
    int64_t bits =
        tensor->getNumElements() * shd::elementBits(tensor->getElementType());
    result.push_back((bits + 7) / 8);
  }
  return result;
}

/// Where program order would have come to an operation: of each block around
/// it, how far and in which iteration.
static SmallVector<int64_t> programOrder(Operation *op,
                                         ArrayRef<int64_t> iterations) {
  SmallVector<int64_t> place;
  for (int64_t iteration : llvm::reverse(iterations)) {
    place.push_back(
        std::distance(op->getBlock()->begin(), Block::iterator(op)));
    place.push_back(iteration);
    op = op->getParentOp();
  }
  place.push_back(std::distance(op->getBlock()->begin(), Block::iterator(op)));
  return SmallVector<int64_t>(llvm::reverse(place));
}

/// Updates and outputs are listed as in program order.
LogicalResult Interpreter::runScheduled(spmd::ProgramOp program) {
  MemoryMeter meter(devices.size());
  PointRunner runner(*this, devices.size(), program, *options.schedule, meter);
  if (failed(runner.run()))
    return failure();
  result.peak = meter.peak();
  llvm::stable_sort(result.finals, [](const auto &a, const auto &b) {
    return programOrder(a.op, a.iterations) < programOrder(b.op, b.iterations);
  });
  return success();
}

FailureOr<RunResult> Interpreter::run(Operation *op) {
  Block &program = op->getRegion(0).front();
  if (failed(options.schedule ? runScheduled(cast<spmd::ProgramOp>(op))
                              : runBlock(program)))
    return failure();
  return collect(program);
}

/// The results of all that has run, in program order.
RunResult Interpreter::collect(Block &program) {
  program.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto it = work.find(op); it != work.end())
      result.work.push_back(std::move(it->second));
    if (auto it = executed.find(op); it != executed.end())
      result.collectives.push_back(std::move(it->second));
  });
  for (auto &[key, final] : gradients)
    result.finals.push_back(std::move(final));
  return std::move(result);
}

FailureOr<RunResult> shardc::interpret(shd::ProgramOp program,
                                       const RunOptions &options) {
  return Interpreter(Mesh(), options).run(program);
}

FailureOr<RunResult> shardc::interpret(spmd::ProgramOp program,
                                       const RunOptions &options) {
  return Interpreter(shd::toMesh(program.getMeshAttr()), options).run(program);
}
