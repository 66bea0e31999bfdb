//===- PointRunner.cpp - Runs a device's program in its schedule ----------===//
//
// Arrays that a point touches live during all of it: memory is freed between
// points only. A sequence of collectives takes memory for the two arrays that
// are alive while one of them runs, from when its first is issued until the
// point that reads what the last one makes.
//
//===----------------------------------------------------------------------===//

#include "PointRunner.h"
#include "shardc/Dialect/Shd/IR/Explicit.h"
#include "shardc/Dialect/Shd/IR/Host.h"
#include "shardc/Dialect/Shd/IR/RingAttention.h"
#include "shardc/Dialect/Shd/IR/Segments.h"
#include "shardc/Dialect/Shd/IR/Views.h"

using namespace mlir;
using namespace shardc;

int64_t shardc::linearIteration(Block *block, ArrayRef<int64_t> iterations) {
  SmallVector<int64_t, 2> counts;
  for (auto repeat = dyn_cast<shd::RepeatOp>(block->getParentOp()); repeat;
       repeat = dyn_cast<shd::RepeatOp>(repeat->getParentOp()))
    counts.push_back(repeat.getCount());
  int64_t number = 0;
  for (auto [count, iteration] :
       llvm::zip_first(llvm::reverse(counts), iterations))
    number = number * (count + 1) + iteration;
  return number;
}

int64_t shardc::bytesOf(RankedTensorType type) {
  int64_t bits =
      type.getNumElements() * shd::elementBits(type.getElementType());
  return (bits + 7) / 8;
}

/// The iteration of what is there in all of them.
static constexpr int64_t kResident = -1;

static unsigned depthOf(Block *block) {
  unsigned depth = 0;
  for (Operation *op = block->getParentOp(); isa<shd::RepeatOp>(op);
       op = op->getParentOp())
    ++depth;
  return depth;
}

/// The iterations of the repeats around a value, which are the first of `at`.
static Iterations around(Value value, ArrayRef<int64_t> at) {
  return Iterations(at.take_front(depthOf(value.getParentBlock())));
}

static MemoryMeter::Key keyOf(Value value, const Iterations &at) {
  return {value.getAsOpaquePointer(),
          linearIteration(value.getParentBlock(), at)};
}

static DeviceBytes sum(const DeviceBytes &a, const DeviceBytes &b) {
  DeviceBytes result;
  for (auto [x, y] : llvm::zip_equal(a, b))
    result.push_back(x + y);
  return result;
}

static DeviceBytes most(const DeviceBytes &a, const DeviceBytes &b) {
  DeviceBytes result;
  for (auto [x, y] : llvm::zip_equal(a, b))
    result.push_back(std::max(x, y));
  return result;
}

static bool isNothing(const DeviceBytes &bytes) {
  return llvm::all_of(bytes, [](int64_t each) { return each == 0; });
}

static bool isOfStatistic(Operation *collective) {
  return isa_and_nonnull<shd::StatisticOp>(
      collective->getOperand(0).getDefiningOp());
}

//===----------------------------------------------------------------------===//
// Making values
//===----------------------------------------------------------------------===//

/// A carried value that an iteration begins with is what the one before yields.
LogicalResult PointRunner::bringArgument(BlockArgument argument,
                                         const Iterations &at) {
  if (argument.getArgNumber() == 0) {
    devices.number(argument, at);
    return success();
  }
  auto repeat = cast<shd::RepeatOp>(argument.getOwner()->getParentOp());
  unsigned carried = argument.getArgNumber() - 1;
  Iterations before = at;
  Value from = repeat.getInits()[carried];
  if (before.back() == 0) {
    before.pop_back();
  } else {
    --before.back();
    from = argument.getOwner()->getTerminator()->getOperand(carried);
  }
  if (failed(need(from, before)))
    return failure();
  devices.hand(from, around(from, before), argument, at);
  return success();
}

/// Each operation runs once in each iteration; what it made stays to its last
/// use.
LogicalResult PointRunner::markRun(Operation *op, const Iterations &at) {
  if (op->getNumResults() == 0 ||
      hasRun.insert(keyOf(op->getResults().front(), at)).second)
    return success();
  return op->emitError("no device holds the result any more when it is read");
}

LogicalResult PointRunner::need(Value value, Iterations at) {
  at = around(value, at);
  if (devices.holds(value, at))
    return success();
  if (auto argument = dyn_cast<BlockArgument>(value))
    return bringArgument(argument, at);
  Operation *op = value.getDefiningOp();
  return spmd::isCollective(op) ? communicate(op, at) : compute(op, at);
}

/// Memory that a tensor's readers share: the copy made for them. What it was
/// stored from is no longer needed.
LogicalResult PointRunner::readTensor(Value tensor, const Iterations &at) {
  MemoryMeter::Key key = keyOf(tensor, at);
  if (!order.isRead(tensor) || !read.insert(key).second)
    return success();
  if (auto it = storing.find(key); it != storing.end())
    meter.release(it->second);
  Value copy = RunOrder::copyOf(RunOrder::storedForm(tensor));
  if (!copy)
    return success();
  if (failed(need(copy, at)))
    return failure();
  MemoryMeter::Key copyKey = keyOf(copy, at);
  if (!isNothing(sequences[copyKey].taken))
    copies.push_back({copyKey, devices.bytes(copy, at)});
  return success();
}

/// The point runs of an operation a result of which a state has, perhaps since
/// it was issued early: what it was stored from stays to the end of the point.
LogicalResult PointRunner::readForStates(Operation *op, const Iterations &at) {
  for (Value result : op->getResults()) {
    if (order.updatesWith(result).empty())
      continue;
    MemoryMeter::Key key = keyOf(result, at);
    if (auto it = storing.find(key);
        it != storing.end() && !read.contains(key)) {
      storingNow.push_back({key, it->second, /*blocks=*/false});
      storing.erase(it);
    }
    if (failed(readTensor(result, at)))
      return failure();
  }
  return success();
}

static bool isLeader(Operation *op) {
  auto cost = dyn_cast<shd::CostOpInterface>(op);
  return cost && cost.getFusionKind() == shd::FusionKind::Leader;
}

/// Both follow the leader of one kernel, in which values pass from one to the
/// other: that is no read of the array that the kernel writes for others.
static bool followOneLeader(Operation *a, Operation *b) {
  std::optional<int64_t> group = a ? shd::fusionGroupOf(a) : std::nullopt;
  return group && group == shd::fusionGroupOf(b) && !isLeader(a) &&
         !isLeader(b);
}

/// Makes what an operation reads. What it computes of its operands, a statistic
/// of it reads where it runs itself; and what is issued early for a state, the
/// state has where the operation stands that made it.
LogicalResult PointRunner::needAll(Operation *op, const Iterations &at) {
  bool isStatistic = isa<shd::StatisticOp>(op);
  for (Value operand : RunOrder::read(op)) {
    if (isStatistic) {
      if (failed(need(operand, at)))
        return failure();
      continue;
    }
    Value tensor = RunOrder::tensorOf(operand);
    bool readsLater = issued && isa<spmd::UpdateOp>(op);
    bool isWithinKernel = followOneLeader(tensor.getDefiningOp(), op);
    if ((!readsLater && !isWithinKernel &&
         failed(readTensor(tensor, around(tensor, at)))) ||
        failed(need(operand, at)))
      return failure();
    Operation *def = operand.getDefiningOp();
    if (def && spmd::isCollective(def) && !def->hasAttr(shd::kStore) &&
        !def->hasAttr(shd::kCopy))
      scratchOf[{order.inputsEndWith(op), linearIteration(op->getBlock(), at)}]
          .push_back({operand, around(operand, at)});
  }
  return success();
}

/// The state into which an operation writes in place, perhaps after others, or
/// null.
static spmd::ParameterOp stateWrittenBy(Operation *op) {
  OpOperand *whole = op ? shd::inPlaceOperand(op) : nullptr;
  if (!whole)
    return {};
  Operation *maker =
      shd::wholeOf(RunOrder::tensorOf(whole->get())).getDefiningOp();
  auto parameter = dyn_cast_or_null<spmd::ParameterOp>(maker);
  if (!parameter)
    return stateWrittenBy(maker);
  return parameter.getKind() == shd::TensorKind::State ? parameter
                                                       : spmd::ParameterOp();
}

/// The type, with its layout, of the tensor of which a device has a part.
static Type globalTypeOf(Value value) {
  Operation *maker = value.getDefiningOp();
  StringRef name = spmd::isCollective(maker) ? "to" : StringRef(spmd::kGlobal);
  return cast<TypeAttr>(shd::getResultAttr(value, name)).getValue();
}

/// True of a view that every device finds in the buffer of the tensor.
static bool liesInViewed(Value tensor, Value stored) {
  Value viewed = RunOrder::viewedBy(tensor);
  if (!viewed)
    return false;
  auto parameter = shd::wholeOf(viewed).getDefiningOp<spmd::ParameterOp>();
  return shd::liesIn(spmd::meshOf(parameter), globalTypeOf(stored),
                     parameter.getGlobal(),
                     cast<RankedTensorType>(viewed.getType()).getRank());
}

/// Stages add up in the buffer of a gradient. Writing into a state changes it
/// where it lies, if the result stays there. So does a value that replaces a
/// tensor or a part of it, if nothing else needs the old one.
bool PointRunner::worksInPlace(Value tensor, Value stored) const {
  if (auto sum = tensor.getDefiningOp<spmd::SumStagesOp>())
    return bool(sum.getInput().getDefiningOp<shd::PartOp>());
  spmd::ParameterOp state = stateWrittenBy(tensor.getDefiningOp());
  if (order.staysInGroup(tensor))
    return false;
  for (spmd::UpdateOp update : order.updatesWith(tensor))
    if (!state && order.replaces(update, tensor))
      state = update.getParameter();
  if (!state)
    return false;
  Mesh mesh = spmd::meshOf(state);
  Layout layout = shd::explicitLayout(mesh, globalTypeOf(stored));
  return layout == shd::partLayout(shd::explicitLayout(mesh, state.getGlobal()),
                                   layout.rank());
}

/// What program order has before an operation by way of a buffer.
LogicalResult PointRunner::computeBefore(Operation *op, const Iterations &at) {
  if (auto part = dyn_cast<shd::PartOp>(op))
    if (spmd::UpdateOp update = RunOrder::updateOf(part))
      return compute(update, Iterations(ArrayRef(at).take_front(
                                 depthOf(update->getBlock()))));
  auto update = dyn_cast<spmd::UpdateOp>(op);
  if (!update || !shd::isBuffer(update.getParameter().getKind()))
    return success();
  for (shd::PartOp part : RunOrder::partsBefore(update))
    if (order.isRead(part) && failed(need(part, around(part, at))))
      return failure();
  for (Value number : update.getAt())
    if (failed(need(number, at)))
      return failure();
  return need(update.getState(), {});
}

LogicalResult PointRunner::compute(Operation *op, const Iterations &at) {
  if (auto update = dyn_cast<spmd::UpdateOp>(op)) {
    if (!updated.insert({op, linearIteration(op->getBlock(), at)}).second)
      return success();
    if (update.getParameter().getKind() == shd::TensorKind::Gradient)
      holdResident(update.getParameter());
  }
  if (failed(computeBefore(op, at)))
    return failure();
  bool isInlined = llvm::any_of(
      op->getResults(), [&](Value result) { return order.isInlined(result); });
  if (issued && op->hasAttr(shd::kGroup) && !isInlined)
    return issued->emitError("is issued before its operand has been made");
  if (failed(markRun(op, at)) || failed(needAll(op, at)) ||
      failed(devices.run(op, at)))
    return failure();
  if (op->getNumResults() == 0 ||
      isa<spmd::ParameterOp, shd::PartOp, shd::ConstantOp, shd::StatisticOp>(
          op))
    return success();
  for (Value result : op->getResults()) {
    if (failed(store(result, at)))
      return failure();
    for (spmd::UpdateOp update : order.updatesWith(result))
      if (update->getBlock() == op->getBlock() && failed(compute(update, at)))
        return failure();
  }
  return success();
}

/// Stores the result of an operation: as it is, or after collectives.
LogicalResult PointRunner::store(Value tensor, const Iterations &at) {
  Value stored = RunOrder::storedForm(tensor);
  DeviceBytes current = devices.bytes(tensor, at), taken = current;
  SmallVector<Operation *, 2> steps;
  for (Value form = stored; form != tensor;
       form = form.getDefiningOp()->getOperand(0))
    steps.push_back(form.getDefiningOp());
  for (Operation *step : llvm::reverse(steps)) {
    if (failed(need(onlyResult(step), at)))
      return failure();
    DeviceBytes made = devices.bytes(onlyResult(step), at);
    if (shd::travels(step)) // added up on its way
      taken = made;
    else if (!isa<spmd::AllReduceOp>(step))
      taken = most(taken, sum(current, made));
    current = made;
  }
  if (!steps.empty() && shd::travels(steps.back()))
    steps.pop_back();
  if (order.staysOnChip(tensor))
    return success();
  MemoryMeter::Key key = keyOf(tensor, at);
  // Inputs are split into microbatches once for all programs of a device.
  bool isSplit = isa<shd::SplitOp>(tensor.getDefiningOp());
  if (!worksInPlace(tensor, stored) && !liesInViewed(tensor, stored) &&
      !(isSplit && isShared(tensor.getDefiningOp()))) {
    DeviceBytes kept = current;
    for (int64_t &bytes : kept)
      bytes = shd::bytesOfChunk(tensor, bytes);
    meter.hold(key, kept);
  }
  if (steps.empty())
    return success();
  for (auto [all, kept] : llvm::zip_equal(taken, current))
    all -= kept;
  MemoryMeter::Key sequence = keyOf(stored, at);
  meter.hold(sequence, taken);
  storingNow.push_back({key, sequence, !order.isEarly(steps.back())});
  return success();
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

LogicalResult PointRunner::communicate(Operation *op, const Iterations &at) {
  if (failed(need(op->getOperand(0), at)))
    return failure();
  // The operation that made the operand may have stored the result too.
  if (devices.holds(onlyResult(op), at))
    return success();
  if (failed(markRun(op, at)) || failed(devices.run(op, at)))
    return failure();
  if (!isOfStatistic(op) && !op->hasAttr(shd::kStore))
    takeMemory(op, at);
  return success();
}

/// A tensor that travels around a ring is there twice, as the part that is here
/// and the one that comes in; beside the last operand that travels, the sum of
/// what does not, and the sums that do.
DeviceBytes PointRunner::bytesOfRing(Operation *gather, const Iterations &at) {
  Value part = gather->getOperand(0);
  DeviceBytes one = devices.bytes(part, around(part, at));
  DeviceBytes bytes = sum(one, one);
  Operation *attention = *gather->getUsers().begin();
  if (shd::ringGathers(attention).back() != gather)
    return bytes;
  constexpr int64_t f32Bytes = 4;
  auto result = cast<RankedTensorType>(attention->getResult(0).getType());
  int64_t sums = result.getNumElements() * f32Bytes;
  for (Operation *scatter : shd::ringScatters(attention)) {
    auto type = cast<RankedTensorType>(onlyResult(scatter).getType());
    sums += 2 * llvm::divideCeil(type.getNumElements() *
                                     shd::elementBits(type.getElementType()),
                                 8);
  }
  return sum(bytes, DeviceBytes(numDevices, sums));
}

/// Operand and result are alive together. What a value is stored in stays as it
/// is: the first array is a new one, unless it is a view. all_reduce works in
/// place on arrays that a sequence has made.
void PointRunner::takeMemory(Operation *op, const Iterations &at) {
  if (isa<spmd::ToHostOp>(op))
    return; // no device has the result
  Value end = RunOrder::endOfSequence(onlyResult(op));
  MemoryMeter::Key key = keyOf(end, at);
  DeviceBytes none(numDevices, 0);
  auto [it, isNew] = sequences.try_emplace(key, Sequence{none, none});
  Sequence &sequence = it->second;
  bool owns = !isNothing(sequence.current);
  if (owns ? isa<spmd::AllReduceOp>(op) : isa<spmd::AllSliceOp>(op))
    return;
  if (shd::travels(op)) {
    sequence.taken = sum(sequence.taken, bytesOfRing(op, at));
    meter.hold(key, sequence.taken);
    return;
  }
  DeviceBytes made = devices.bytes(onlyResult(op), at);
  sequence.taken = most(sequence.taken, sum(sequence.current, made));
  sequence.current = made;
  meter.hold(key, sequence.taken);
}

LogicalResult PointRunner::issue(const EarlyIssue &issue, Iterations at) {
  if (issue.next) {
    auto repeat = cast<shd::RepeatOp>(issue.block->getParentOp());
    if (++at.back() == shd::iterationsWithin(repeat, ArrayRef(at).drop_back()))
      return success();
  }
  // In repeats within the block, for their first iteration.
  Value result = onlyResult(issue.collective);
  for (Operation *op = issue.collective->getParentOp();
       op != issue.block->getParentOp(); op = op->getParentOp())
    at.push_back(0);
  // Results of the group that has just run are there already.
  if (hasRun.contains(keyOf(result, at)))
    return success();
  issued = issue.collective;
  LogicalResult there = need(result, at);
  issued = nullptr;
  return there;
}

LogicalResult PointRunner::issueAll(ArrayRef<EarlyIssue> issues,
                                    const Iterations &at) {
  for (const EarlyIssue &each : issues)
    if (failed(issue(each, at)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Giving memory back
//===----------------------------------------------------------------------===//

void PointRunner::dropForms(Value value, const Iterations &at) {
  devices.drop(value, at);
  for (Operation *user : value.getUsers())
    if (spmd::isCollective(user) && user->getBlock() == value.getParentBlock())
      dropForms(onlyResult(user), at);
}

void PointRunner::dropCopy(Value tensor, const Iterations &at) {
  if (Value copy = RunOrder::copyOf(RunOrder::storedForm(tensor)))
    meter.release(keyOf(copy, at));
}

void PointRunner::dropTensor(Value tensor, const Iterations &at) {
  meter.release(keyOf(tensor, at));
  dropCopy(tensor, at);
  dropForms(tensor, at);
}

void PointRunner::dropScratch(Operation *op, const Iterations &at) {
  auto it = scratchOf.find({op, linearIteration(op->getBlock(), at)});
  if (it == scratchOf.end())
    return;
  for (auto &[value, iterations] : it->second) {
    meter.release(keyOf(value, iterations));
    devices.drop(value, iterations);
  }
  scratchOf.erase(it);
}

void PointRunner::endPoint(const RunPoint &point, const Iterations &at) {
  endPoint(point.ops, point.last, at);
  for (Value tensor : point.onlyViewed)
    dropCopy(tensor, at);
  for (Operation *update : point.updates)
    dropScratch(update, at);
}

void PointRunner::endPoint(ArrayRef<Operation *> ops, ArrayRef<Value> last,
                           const Iterations &at) {
  meter.sample();
  for (Operation *op : ops)
    dropScratch(op, at);
  for (const Storing &each : storingNow)
    if (each.blocks || read.contains(each.tensor))
      meter.release(each.sequence);
    else
      storing[each.tensor] = each.sequence;
  storingNow.clear();
  for (auto &[key, bytes] : copies)
    meter.hold(key, bytes);
  copies.clear();
  for (Value tensor : last)
    dropTensor(tensor, at);
}

void PointRunner::endIteration(Block &block, const Iterations &at) {
  const RunBody &body = order.body(block);
  endPoint(block.getTerminator(), body.last, at);
  for (Value tensor : body.unread)
    if (auto it = storing.find(keyOf(tensor, at)); it != storing.end())
      meter.release(it->second);
}

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

/// Makes what a repeat begins with.
LogicalResult PointRunner::enter(const RunPoint &point, const Iterations &at) {
  for (Value tensor : point.brought)
    if (failed(readTensor(tensor, at)) || failed(need(tensor, at)))
      return failure();
  for (spmd::ParameterOp gradient : point.gradients)
    holdResident(gradient);
  return needAll(point.ops.front(), at);
}

/// The entry is over: what only the first iteration begins with goes.
void PointRunner::begin(shd::RepeatOp repeat, const Iterations &at) {
  ValueRange carried(repeat.getBody().getArguments().drop_front());
  for (auto [init, argument] : llvm::zip_equal(repeat.getInits(), carried)) {
    Iterations first = at;
    first.push_back(0);
    devices.hand(init, around(init, at), argument, first);
  }
  endPoint(order.entryOf(repeat), at);
}

LogicalResult PointRunner::runRepeat(shd::RepeatOp repeat,
                                     const Iterations &at) {
  Block &block = repeat.getBody().front();
  const RunBody &body = order.body(block);
  ValueRange carried(block.getArguments().drop_front());
  begin(repeat, at);
  Iterations inside = at;
  inside.push_back(0);
  const int64_t count = shd::iterationsWithin(repeat, at);
  for (; inside.back() < count; ++inside.back()) {
    for (Value argument : carried)
      if (order.isRead(argument))
        meter.hold(keyOf(argument, inside), devices.bytes(argument, inside));
    if (inside.back() == 0)
      for (const EarlyIssue &each : body.first)
        if (failed(need(onlyResult(each.collective), inside)))
          return failure();
    if (failed(runBody(block, inside)) ||
        failed(needAll(block.getTerminator(), inside)))
      return failure();
    Iterations next = inside;
    ++next.back();
    for (auto [value, argument] :
         llvm::zip_equal(block.getTerminator()->getOperands(), carried))
      devices.hand(value, around(value, inside), argument, next);
    if (next.back() < count) {
      endIteration(block, inside);
      continue;
    }
    for (auto [argument, result] :
         llvm::zip_equal(carried, repeat.getResults())) {
      devices.hand(argument, next, result, at);
      devices.drop(argument, next);
    }
  }
  if (failed(issueAll(order.exitOf(repeat).during, at)))
    return failure();
  --inside.back();
  endIteration(block, inside);
  return success();
}

LogicalResult PointRunner::runPoint(const RunPoint &point,
                                    const Iterations &at) {
  if (failed(issueAll(point.during, at)))
    return failure();
  for (Operation *update : point.updates)
    if (failed(compute(update, at)))
      return failure();
  switch (point.kind) {
  case RunPoint::Kind::Operations:
    for (Operation *op : point.ops)
      if (((op->getNumResults() == 0 ||
            !devices.holds(op->getResults().front(), at)) &&
           failed(compute(op, at))) ||
          failed(readForStates(op, at)))
        return failure();
    break;
  case RunPoint::Kind::Entry:
    // Ends by itself, before the first iteration.
    return failed(enter(point, at))
               ? failure()
               : runRepeat(cast<shd::RepeatOp>(point.ops.front()), at);
  case RunPoint::Kind::Exit:
    break;
  }
  endPoint(point, at);
  if (point.kind == RunPoint::Kind::Exit)
    for (Value result : point.ops.front()->getResults())
      if (order.isRead(result))
        meter.hold(keyOf(result, at), devices.bytes(result, at));
  return issueAll(point.after, at);
}

LogicalResult PointRunner::runBody(Block &block, const Iterations &at) {
  const RunBody &body = order.body(block);
  if (failed(issueAll(body.before, at)))
    return failure();
  for (const RunPoint &point : body.points)
    if (failed(runPoint(point, at)))
      return failure();
  return success();
}

DeviceBytes PointRunner::bytesOf(spmd::ParameterOp parameter) const {
  return DeviceBytes(numDevices, shardc::bytesOf(parameter.getType()));
}

static bool isUpdatedGradient(spmd::ParameterOp parameter) {
  return parameter.getKind() == shd::TensorKind::Gradient &&
         llvm::any_of(parameter->getUses(), [](OpOperand &use) {
           auto update = dyn_cast<spmd::UpdateOp>(use.getOwner());
           return update && use == update.getStateMutable();
         });
}

/// True if another program of the device holds the same tensor.
bool PointRunner::isShared(Operation *op) {
  if (!shared)
    return false;
  auto parameter = dyn_cast<spmd::ParameterOp>(op);
  if (parameter && parameter.getStacked() > 0)
    return false;
  StringRef name = parameter
                       ? parameter.getSym()
                       : op->getAttrOfType<StringAttr>(shd::kName).getValue();
  return !shared->insert((op->getName().getStringRef() + name).str()).second;
}

/// From now on the tensor is there.
void PointRunner::holdResident(spmd::ParameterOp parameter) {
  // Saved values of a pipeline are counted by the microbatches in flight.
  bool isOfStage = shared && parameter.getKind() == shd::TensorKind::Saved;
  if (isOfStage || isShared(parameter))
    return;
  Value value = parameter.getResult();
  meter.hold({value.getAsOpaquePointer(), kResident}, bytesOf(parameter));
}

/// Weights and states are there all the time, gradients from their first update
/// on, inputs until they have been read.
void PointRunner::holdParameters() {
  program->walk([&](spmd::ParameterOp parameter) {
    Value value = parameter.getResult();
    bool isInput = parameter.getKind() == shd::TensorKind::Input;
    if ((isInput && !order.isRead(value)) || shd::isOnHost(value))
      return;
    if (isInput && isShared(parameter))
      return;
    if (isInput)
      meter.hold(keyOf(value, {}), bytesOf(parameter));
    else if (!isUpdatedGradient(parameter))
      holdResident(parameter);
  });
}

//===----------------------------------------------------------------------===//
// Stages of a pipeline
//===----------------------------------------------------------------------===//

static bool isForward(Operation *op) {
  auto stage = op->getAttrOfType<shd::StageAttr>(shd::kStage);
  if (stage)
    return stage.getPass() == shd::StagePass::Forward;
  return op
      ->walk([](Operation *inner) {
        auto of = inner->getAttrOfType<shd::StageAttr>(shd::kStage);
        return of && of.getPass() == shd::StagePass::Forward
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

static bool isForward(const RunPoint &point) {
  return isForward(point.ops.empty() ? point.updates.front()
                                     : point.ops.front());
}

int64_t PointRunner::savedBytes() {
  int64_t bytes = 0;
  for (auto parameter : program.getBody().getOps<spmd::ParameterOp>())
    if (parameter.getKind() == shd::TensorKind::Saved &&
        !shd::isOnHost(parameter.getResult()))
      bytes += bytesOf(parameter).front();
  return bytes;
}

LogicalResult PointRunner::runBefore(shd::RepeatOp microbatches) {
  meter.sample();
  const RunPoint &entry = order.entryOf(microbatches);
  for (const RunPoint &point : order.body(*microbatches->getBlock()).points) {
    if (&point == &entry)
      break;
    if (failed(runPoint(point, {})))
      return failure();
  }
  if (failed(enter(entry, {})))
    return failure();
  begin(microbatches, {});
  for (BlockArgument argument :
       microbatches.getBody().getArguments().drop_front())
    holdCarried(argument, {0});
  return success();
}

void PointRunner::holdCarried(BlockArgument argument, const Iterations &at) {
  if (order.isRead(argument))
    meter.hold(keyOf(argument, at), devices.bytes(argument, at));
}

LogicalResult PointRunner::runPass(shd::RepeatOp microbatches, int64_t number,
                                   bool isForward) {
  Block &block = microbatches.getBody().front();
  const RunBody &body = order.body(block);
  Operation *yield = block.getTerminator();
  Iterations at = {number}, next = {number + 1};
  devices.number(block.getArgument(0), at);
  auto isHere = [&](Value value) {
    Operation *maker = value.getDefiningOp();
    return (!maker || ::isForward(maker)) == isForward;
  };
  for (const RunPoint &point : body.points)
    if (::isForward(point) == isForward && failed(runPoint(point, at)))
      return failure();
  for (auto [i, value] : llvm::enumerate(yield->getOperands())) {
    if (!isHere(value))
      continue;
    if (failed(need(value, at)))
      return failure();
    devices.hand(value, around(value, at), block.getArgument(i + 1), next);
  }
  SmallVector<Value> last(llvm::make_filter_range(body.last, isHere));
  endPoint(ArrayRef<Operation *>(), last, at);
  for (auto [i, value] : llvm::enumerate(yield->getOperands()))
    if (isHere(value))
      holdCarried(block.getArgument(i + 1), next);
  return success();
}

LogicalResult PointRunner::leave(shd::RepeatOp microbatches) {
  Block &block = microbatches.getBody().front();
  Iterations end = {int64_t(microbatches.getCount())};
  for (auto [argument, result] : llvm::zip_equal(
           block.getArguments().drop_front(), microbatches.getResults())) {
    meter.release(keyOf(argument, end));
    devices.hand(argument, end, result, {});
  }
  return runPoint(order.exitOf(microbatches), {});
}

LogicalResult PointRunner::runAfter(shd::RepeatOp microbatches) {
  ArrayRef<RunPoint> points = order.body(*microbatches->getBlock()).points;
  for (const RunPoint &point :
       points.drop_front(&order.exitOf(microbatches) + 1 - points.data()))
    if (failed(runPoint(point, {})))
      return failure();
  return success();
}

LogicalResult PointRunner::run() {
  holdParameters();
  meter.sample();
  return runBody(program.getBody().front(), {});
}
