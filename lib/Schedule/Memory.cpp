//===- Memory.cpp - Memory of a planned program over time ------*- C++ -*-===//
//
// Lifetimes come from the program's graph, layouts from the types of the
// explicit program, and from the schedule where buffers are made earlier than
// program order needs them: docs/CostModel.md#6-memory-of-one-device.
//
//===----------------------------------------------------------------------===//

#include "MemoryProfiler.h"
#include "shardc/Dialect/Shd/IR/Explicit.h"
#include "shardc/Dialect/Shd/IR/Halo.h"
#include "shardc/Dialect/Shd/IR/Host.h"
#include "shardc/Dialect/Shd/IR/RingAttention.h"
#include "shardc/Dialect/Shd/IR/Views.h"
#include "shardc/Optimizer/GroupCosts.h"
#include "shardc/Optimizer/Names.h"
#include "shardc/Optimizer/Rings.h"
#include "shardc/Reshard/ReshardMemory.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

/// Counts the moments of a graph in place of its points.
static Graph inMoments(Graph graph) {
  auto scale = [](auto &...points) { ((points *= kMomentsPerPoint), ...); };
  for (Chunk &chunk : graph.chunks)
    scale(chunk.point, chunk.readEnd);
  for (GraphValue &value : graph.values) {
    scale(value.begin, value.end, value.firstRead, value.readEnd);
    for (ChunkUse &use : value.uses)
      scale(use.point);
    for (GraphValue::Flow &flow : value.flows)
      scale(flow.begin, flow.end);
  }
  for (auto &[repeat, points] : graph.repeatPoints)
    scale(points.first, points.second);
  scale(graph.numPoints);
  return graph;
}

MemoryProfiler::MemoryProfiler(ProgramOp program)
    : program(program), graph(inMoments(buildGraph(program))) {
  if (MeshAttr attr = program.getMeshAttr())
    mesh = toMesh(attr);
}

/// Bytes of a tensor of which a device has so many rows more than those of its
/// part.
static int64_t bytesWithHalo(const Mesh &mesh, Value part, int64_t dim,
                             int64_t rows) {
  TensorShape shape = tensorShape(part.getType());
  Layout layout = explicitLayout(mesh, part.getType());
  auto own = double(localExtent(mesh, shape.extents[dim], layout.dims[dim]));
  return wholeBytes(shape.localBytes(mesh, layout) / own *
                    (own + double(rows)));
}

int64_t MemoryProfiler::bytesOf(Value value) const {
  if (auto halo = value.getDefiningOp<HaloExchangeOp>())
    return bytesWithHalo(mesh, halo.getInput(), halo.getDim(), haloRows(halo));
  if (HaloReduceOp halo = haloReduceOf(value))
    return bytesWithHalo(mesh, halo.getResult(), halo.getDim(), haloRows(halo));
  return wholeBytes(
      tensorShape(value.getType())
          .localBytes(mesh, explicitLayout(mesh, value.getType())));
}

void MemoryProfiler::add(Value value, MemoryKind kind, uint32_t begin,
                         uint32_t end, int64_t bytes) {
  if (begin < end && bytes != 0)
    intervals.push_back({value, kind, bytes, begin, end});
}

/// The collectives that lead from `from` to `to`, the last first.
static SmallVector<Operation *, 2> stepsBetween(Value from, Value to) {
  SmallVector<Operation *, 2> steps;
  for (; to != from; to = to.getDefiningOp()->getOperand(0))
    steps.push_back(to.getDefiningOp());
  return steps;
}

ReshardMemory MemoryProfiler::chain(ArrayRef<Operation *> steps) const {
  ReshardMemory memory;
  for (Operation *step : llvm::reverse(steps))
    memory.add(collectiveKind(step), bytesOf(step->getOperand(0)),
               bytesOf(onlyResult(step)));
  return memory;
}

/// True if a view of a declared tensor, or the result of a write into a state,
/// lies where the tensor does.
bool MemoryProfiler::isInPlace(const GraphValue &value, Value stored) const {
  if (value.viewOf) {
    Value tensor = graph.values[*value.viewOf].value;
    return liesIn(mesh, stored.getType(), wholeOf(tensor).getType(),
                  cast<RankedTensorType>(tensor.getType()).getRank());
  }
  if (!value.intoState)
    return false;
  Value state = graph.values[*value.intoState].value;
  Layout layout = explicitLayout(mesh, stored.getType());
  return layout ==
         partLayout(explicitLayout(mesh, state.getType()), layout.rank());
}

bool MemoryProfiler::isInBuffer(Value value) const {
  auto it = graph.valueIndex.find(value);
  return it != graph.valueIndex.end() && graph.values[it->second].viewOf &&
         isInPlace(graph.values[it->second], storedValue(value));
}

bool shardc::computes(Operation *user, Attribute group) {
  auto groups = user->getAttrOfType<ArrayAttr>(kPrologues);
  return groups && llvm::is_contained(groups, group);
}

/// Only the rest of its fusion group reads it, in the same kernel, or each of
/// its users computes it. A collective, as that of a copy, reads it from HBM.
bool MemoryProfiler::staysOnChip(const GraphValue &value) const {
  if (value.kind != GraphValue::Kind::Computed || !value.flows.empty() ||
      llvm::any_of(value.value.getUsers(), isCollective))
    return false;
  const Chunk &maker = graph.chunks[value.chunk];
  if (maker.prologue)
    return llvm::all_of(value.uses, [&](const ChunkUse &use) {
      Operation *user = graph.chunks[use.chunk].ops[use.op];
      return user->getOperand(use.operand) == value.value &&
             computes(user, maker.ops.front()->getAttr(kGroup));
    });
  if (maker.kind != Chunk::Kind::Leader || value.uses.empty())
    return false;
  Attribute group = maker.ops.front()->getAttr(kGroup);
  return llvm::all_of(value.uses, [&](const ChunkUse &use) {
    return graph.chunks[use.chunk].ops[use.op]->getAttr(kGroup) == group;
  });
}

/// A buffer that program order needs during [begin, end), made by `maker` and
/// what follows it.
void MemoryProfiler::addBuffer(Value value, Operation *maker, uint32_t begin,
                               uint32_t end, int64_t bytes) {
  const EarlyBuffer *buffer = earlyBuffer(maker);
  addEarly(value, MemoryKind::Buffer, begin, end, bytes,
           buffer ? *buffer : EarlyBuffer());
}

/// Adds a value that program order needs during [begin, end) and a schedule
/// earlier. A value for the next iteration lives beside it; values for the next
/// iterations of two repeats do not.
void MemoryProfiler::addEarly(Value value, MemoryKind kind, uint32_t begin,
                              uint32_t end, int64_t bytes,
                              const EarlyBuffer &buffer) {
  add(value, kind, std::min(begin, buffer.from.moment), end, bytes);
  SmallVector<EarlyBuffer::Span, 2> spans = buffer.also;
  llvm::sort(spans, [](const auto &a, const auto &b) {
    return std::tie(a.begin.moment, a.end) < std::tie(b.begin.moment, b.end);
  });
  uint32_t done = 0;
  for (const EarlyBuffer::Span &span : spans) {
    add(value, kind, std::max(span.begin.moment, done), span.end, bytes);
    done = std::max(done, span.end);
  }
}

/// It is no point of the schedule: a view, or a prologue that each of its users
/// computes.
bool MemoryProfiler::costsNothing(const Chunk &chunk) const {
  if (!chunk.prologue)
    return chunk.kind == Chunk::Kind::Free;
  auto isOnChip = [&](Value value) {
    return staysOnChip(graph.values[graph.valueIndex.lookup(value)]);
  };
  return llvm::all_of(chunk.ops, [&](Operation *op) {
    return llvm::all_of(op->getResults(), isOnChip);
  });
}

/// The operations that read a value, as it is or in another layout, and cost
/// nothing.
void MemoryProfiler::addFreeReaders(
    Value value, SmallVectorImpl<Operation *> &readers) const {
  for (Operation *user : value.getUsers()) {
    auto chunk = graph.chunkOf.find(user);
    if (isCollective(user))
      addFreeReaders(onlyResult(user), readers);
    else if (chunk != graph.chunkOf.end() &&
             costsNothing(graph.chunks[chunk->second]))
      readers.push_back(user);
  }
}

/// Earliest live point of a loop-carried value (initial or yielded) whose
/// reshard is prefetched for the next iteration.
uint32_t MemoryProfiler::earlyFlow(OpOperand &use,
                                   llvm::DenseSet<Value> &seen) const {
  bool isYield = isa<YieldOp>(use.getOwner());
  auto repeat =
      cast<RepeatOp>(isYield ? use.getOwner()->getParentOp() : use.getOwner());
  uint32_t entry = graph.repeatPoints.lookup(repeat).first;
  uint32_t from = UINT32_MAX;
  for (const EarlyBuffer::Span &span :
       earlyUse(repeat.getCarried()[use.getOperandNumber()], seen).also)
    if ((span.begin.moment > entry) == isYield)
      from = std::min(from, span.begin.moment);
  return from;
}

/// When a value is there for a user, perhaps in a repeat that does not contain
/// the value, that needs it at `early`: a repeat finds it there; what is made
/// before for its first iteration needs the same one, not another.
EarlyBuffer MemoryProfiler::seenFrom(Value value, Operation *user,
                                     const EarlyBuffer &early) const {
  Operation *at = value.getParentBlock()->findAncestorOpInBlock(*user);
  if (at == user)
    return early;
  auto [entry, exit] = graph.repeatPoints.lookup(at);
  EarlyBuffer result;
  for (const EarlyBuffer::Span &span : early.also) {
    bool isInside = entry < span.begin.moment && span.end <= exit + 1;
    if (span.end == entry + kMomentsPerPoint)
      result.from.include(span.begin);
    else if (!isInside)
      result.also.push_back(span);
  }
  return result;
}

/// When a value that costs nothing to make is there for the collectives that
/// move it or what becomes of it.
EarlyBuffer MemoryProfiler::earlyUse(Value value,
                                     llvm::DenseSet<Value> &seen) const {
  EarlyBuffer result;
  if (!seen.insert(value).second)
    return result;
  SmallVector<Value> forms = {value};
  while (!forms.empty())
    for (OpOperand &use : forms.pop_back_val().getUses()) {
      Operation *user = use.getOwner();
      if (isa<YieldOp, RepeatOp>(user))
        result.from.include({earlyFlow(use, seen)});
      // Statistics and collectives of an operation's operands may be issued
      // early.
      if (!isCollective(user) && !isa<StatisticOp>(user))
        continue;
      if (const EarlyBuffer *buffer = earlyBuffer(user))
        result.include(seenFrom(value, user, *buffer));
      forms.push_back(onlyResult(user));
    }
  SmallVector<Operation *> readers;
  addFreeReaders(value, readers);
  for (Operation *reader : readers)
    for (Value made : reader->getResults())
      result.include(seenFrom(value, reader, earlyUse(made, seen)));
  return result;
}

EarlyBuffer MemoryProfiler::earlyUse(Value value) const {
  llvm::DenseSet<Value> seen;
  return earlyUse(value, seen);
}

/// When a copy is there that `maker` ends: also for what reads the value early.
EarlyBuffer MemoryProfiler::earlyCopy(Value value, Operation *maker) const {
  const EarlyBuffer *buffer = earlyBuffer(maker);
  EarlyBuffer result = buffer ? *buffer : EarlyBuffer();
  SmallVector<Operation *> readers;
  addFreeReaders(value, readers);
  for (Operation *reader : readers)
    for (Value made : reader->getResults())
      result.include(seenFrom(value, reader, earlyUse(made)));
  return result;
}

/// A buffer that is there at the point at which it is made and until something
/// reads the tensor: perhaps an operation that costs nothing and runs early. A
/// copy is made where it is read: until that point ends.
void MemoryProfiler::addUntilRead(Value value, Value tensor, bool isCopy,
                                  uint32_t begin, uint32_t end, int64_t bytes,
                                  const EarlyBuffer &buffer) {
  auto endOfPoint = [](uint32_t moment) {
    return moment - moment % kMomentsPerPoint + kMomentsPerPoint;
  };
  SmallVector<EarlyBuffer::Begin> reads;
  SmallVector<Operation *> readers;
  addFreeReaders(tensor, readers);
  for (Operation *reader : readers)
    for (Value made : reader->getResults()) {
      EarlyBuffer early = earlyUse(made);
      reads.push_back(early.from);
      for (const EarlyBuffer::Span &span : early.also)
        reads.push_back(span.begin);
    }
  auto endOf = [&](uint32_t from, uint32_t to) {
    for (auto [read, isOlder] : reads)
      if (from <= read && read < to)
        to = isOlder && read == from
                 ? from // it was read in the iteration before
                 : std::max(isCopy ? endOfPoint(read) : read, endOfPoint(from));
    return to;
  };
  begin = std::min(begin, buffer.from.moment);
  EarlyBuffer next;
  for (const EarlyBuffer::Span &span : buffer.also)
    next.also.push_back({span.begin, endOf(span.begin.moment, span.end)});
  addEarly(value, MemoryKind::Buffer, begin, endOf(begin, end), bytes, next);
}

const EarlyBuffer *MemoryProfiler::earlyBuffer(Operation *maker) const {
  auto it = early.find(maker);
  return it == early.end() ? nullptr : &it->second;
}

void MemoryProfiler::addReader(Value operand, Value stored, Value copy,
                               uint32_t begin, uint32_t end) {
  Value from = stored;
  for (Value at = operand; at != stored && !(at == copy);
       at = at.getDefiningOp()->getOperand(0))
    if (at.getDefiningOp()->getOperand(0) == copy)
      from = copy;
  if (operand == stored || operand == copy)
    return;
  SmallVector<Operation *, 2> steps = stepsBetween(from, operand);
  if (travels(steps.front())) {
    Value part = steps.front()->getOperand(0);
    add(operand, MemoryKind::Buffer, begin, end,
        ringBufferBytes(double(bytesOf(part))));
    steps.erase(steps.begin());
  }
  if (!steps.empty())
    addBuffer(steps.front()->getResult(0), steps.back(), begin, end,
              chain(steps).extraBytes());
}

/// The sums that the steps of a ring add to, beside the operands that travel.
void MemoryProfiler::addRingSum(unsigned index) {
  const Chunk &chunk = graph.chunks[index];
  Operation *op = chunk.ops.front();
  if (chunk.kind != Chunk::Kind::Leader || !ringAxis(mesh, op))
    return;
  uint32_t begin = chunk.point;
  for (const GraphValue &value : graph.values)
    for (const ChunkUse &use : value.uses)
      if (use.chunk == index)
        begin = std::min(begin, use.point);
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  LocalExtents extents =
      localExtents(mesh, rule, explicitStrategy(mesh, op, rule));
  add(op->getResult(0), MemoryKind::Buffer, begin, chunk.readEnd,
      wholeBytes(ringSumBytes(rule, extents)));
  for (Operation *scatter : ringScatters(op)) {
    Value part = onlyResult(scatter);
    add(part, MemoryKind::Buffer, begin, chunk.readEnd,
        ringBufferBytes(double(bytesOf(part))));
  }
}

void MemoryProfiler::addReaders(const GraphValue &value, Value stored,
                                Value copy) {
  llvm::MapVector<std::pair<unsigned, Value>, uint32_t> begins;
  for (const ChunkUse &use : value.uses) {
    const Chunk &chunk = graph.chunks[use.chunk];
    Value operand = chunk.ops[use.op]->getOperand(use.operand);
    uint32_t &begin =
        begins.try_emplace({use.chunk, operand}, use.point).first->second;
    begin = std::min(begin, use.point);
  }
  for (auto [reader, begin] : begins)
    addReader(reader.second, stored, copy, begin,
              graph.chunks[reader.first].readEnd);
  for (const GraphValue::Flow &flow : value.flows)
    addReader(flow.operand->get(), stored, copy, flow.begin, flow.end);
}

static MemoryKind kindOf(const GraphValue &value) {
  auto declared = value.value.getDefiningOp<DeclareOp>();
  if (!declared)
    return MemoryKind::Activation;
  switch (declared.getKind()) {
  case TensorKind::Input:
    return MemoryKind::Input;
  case TensorKind::Weight:
    return MemoryKind::Weight;
  case TensorKind::State:
    return MemoryKind::State;
  case TensorKind::Gradient:
    return MemoryKind::Gradient;
  case TensorKind::Saved:
    return MemoryKind::Saved;
  case TensorKind::Moment:
  case TensorKind::Master:
    return MemoryKind::Optimizer;
  }
  llvm_unreachable("unknown kind of tensor");
}

/// When the block has run in which a value is made, or one iteration of it.
uint32_t MemoryProfiler::endOfBlock(Value value) const {
  Operation *owner = value.getParentBlock()->getParentOp();
  return isa<RepeatOp>(owner)
             ? graph.repeatPoints.lookup(owner).second + kMomentsPerPoint
             : graph.numPoints;
}

/// When collectives are issued that read a buffer behind an update.
EarlyBuffer MemoryProfiler::earlyUseBehind(Operation *update,
                                           Value buffer) const {
  EarlyBuffer result;
  for (Operation *user : buffer.getUsers())
    if (auto part = dyn_cast<PartOp>(user);
        part && updateBefore(part).getOperation() == update)
      result.include(earlyUse(part.getResult()));
  return result;
}

/// A view is made as early as a prefetched collective reads it. A gradient that
/// is updated with the view has its buffer from then on, or from where one
/// reads the gradient.
void MemoryProfiler::addEarlyUpdates(const GraphValue &value,
                                     const EarlyBuffer &early) {
  for (const GraphValue::Flow &flow : value.flows) {
    const GraphValue &target = graph.values[flow.target];
    if (kindOf(target) != MemoryKind::Gradient)
      continue;
    EarlyBuffer first = early;
    first.include(earlyUseBehind(flow.operand->getOwner(), target.value));
    uint32_t from = first.from.moment;
    for (const EarlyBuffer::Span &span : first.also)
      from = std::min(from, span.begin.moment);
    add(target.value, MemoryKind::Gradient, from, target.begin,
        bytesOf(target.value));
  }
}

void MemoryProfiler::addValue(const GraphValue &value) {
  Value stored = storedValue(value.value);
  Value copy = sharedCopy(stored);
  bool isFree = value.kind == GraphValue::Kind::Computed &&
                graph.chunks[value.chunk].kind == Chunk::Kind::Free;
  EarlyBuffer early = isFree ? earlyUse(value.value) : EarlyBuffer();
  if (isFree)
    addEarlyUpdates(value, early);
  bool isView = value.kind == GraphValue::Kind::Part;
  if (!isView && !isInPlace(value, stored) && !staysOnChip(value) &&
      !takesNoDeviceMemory(stored))
    addEarly(stored, kindOf(value), value.begin, value.end,
             inFlight(value.value) * bytesOfChunk(value.value, bytesOf(stored)),
             early);
  // As made, it is needed until what it becomes is read.
  SmallVector<Operation *, 2> steps = stepsBetween(value.value, stored);
  if (!steps.empty() && travels(steps.back()))
    steps.pop_back(); // added up on its way
  if (!steps.empty()) {
    uint32_t end = value.begin + kMomentsPerPoint;
    if (earlyBuffer(steps.back()))
      end = std::max(end, std::min(value.firstRead, endOfBlock(value.value)));
    addUntilRead(value.value, value.value, /*isCopy=*/false, value.begin, end,
                 chain(steps).storeExtraBytes(), early);
  }
  if (copy) {
    SmallVector<Operation *, 2> steps = stepsBetween(stored, copy);
    ReshardMemory memory = chain(steps);
    EarlyBuffer shared = earlyCopy(value.value, steps.back());
    addEarly(copy, MemoryKind::Buffer, value.firstRead, value.readEnd,
             memory.madeBytes, shared);
    addUntilRead(copy, value.value, /*isCopy=*/true, value.firstRead,
                 value.firstRead + kMomentsPerPoint,
                 memory.extraBytes() - memory.madeBytes, shared);
  }
  addReaders(value, stored, copy);
}

/// The operation whose row in the report has the cost of `op`.
static Operation *rowOf(Operation *op) {
  Attribute group = op->getAttr(kGroup);
  if (!group)
    return op;
  SmallVector<Operation *, 4> part;
  for (Operation &each : *op->getBlock())
    if (each.getAttr(kGroup) == group)
      part.push_back(&each);
  return leaderOf(part);
}

LiveTensor shardc::describe(const MemorySpan &span, const Mesh &mesh) {
  Value value = span.value;
  // As the program has it, which names the parts of stacked tensors.
  unsigned stacked = stackedDims(value);
  SmallVector<std::string, 4> indices = indexNames(value);
  Layout layout = explicitLayout(mesh, value.getType());
  Layout part = partLayout(layout, layout.rank() - stacked);
  return {valueName(value), span.kind, span.bytes,
          notation(mesh, part,
                   ArrayRef(indices).take_back(
                       std::min<size_t>(part.rank(), indices.size())))};
}

/// Where the stage's own last reader of a value ends, if other stages read it,
/// too.
uint32_t MemoryProfiler::endOn(const StageMemory &stage,
                               const Interval &interval) const {
  auto it = graph.valueIndex.find(rootValue(interval.value));
  if (it == graph.valueIndex.end())
    return interval.end;
  const GraphValue &value = graph.values[it->second];
  Block *home = rootValue(interval.value).getParentBlock();
  uint32_t end = 0;
  bool isReadElsewhere = false;
  auto include = [&](Operation *reader, uint32_t readEnd) {
    if (!stage.runs(reader)) {
      isReadElsewhere = true;
      return;
    }
    Operation *at = home->findAncestorOpInBlock(*reader);
    if (at != reader)
      readEnd = graph.repeatPoints.lookup(at).second + kMomentsPerPoint;
    end = std::max(end, readEnd);
  };
  for (const ChunkUse &use : value.uses) {
    const Chunk &chunk = graph.chunks[use.chunk];
    include(chunk.ops[use.op], chunk.readEnd);
  }
  for (const GraphValue::Flow &flow : value.flows)
    include(flow.operand->getOwner(), flow.end);
  return isReadElsewhere && end > interval.begin ? std::min(end, interval.end)
                                                 : interval.end;
}

void MemoryProfiler::takeShare(const StageMemory &stage) {
  for (Interval &interval : intervals) {
    interval.bytes = stage.bytesOf(interval.value, interval.bytes);
    if (interval.kind == MemoryKind::Activation &&
        stage.isSummand(interval.value))
      interval.begin =
          std::min(interval.begin + kMomentsPerPoint, interval.end);
    if (interval.kind == MemoryKind::Activation ||
        interval.kind == MemoryKind::Buffer)
      interval.end = endOn(stage, interval);
  }
  auto [first, last] = stage.microbatches
                           ? graph.repeatPoints.lookup(stage.microbatches)
                           : std::pair<uint32_t, uint32_t>();
  for (auto [value, bytes] : stage.beside)
    add(value, MemoryKind::Saved, first, last + kMomentsPerPoint, bytes);
  llvm::erase_if(intervals, [](const Interval &each) { return !each.bytes; });
}

/// An interval may begin behind the largest moment of its first point, or end
/// before that of its last one: then the point's usage does not have it.
void MemoryProfiler::addSpans(ArrayRef<uint32_t> largestMoments,
                              MemoryProfile &profile) const {
  for (const Interval &interval : intervals) {
    auto first = llvm::lower_bound(largestMoments, interval.begin);
    auto last = std::lower_bound(first, largestMoments.end(), interval.end);
    if (interval.bytes && first != last)
      profile.spans.push_back({interval.value, interval.kind, interval.bytes,
                               unsigned(first - largestMoments.begin()),
                               unsigned(last - largestMoments.begin()) - 1});
  }
}

MemoryProfile MemoryProfiler::profile(const RunSchedule &schedule,
                                      const StageMemory *stage) {
  early = earlyBuffers(graph, schedule);
  intervals.clear();
  for (const GraphValue &value : graph.values)
    addValue(value);
  for (unsigned chunk = 0; chunk < graph.chunks.size(); ++chunk)
    addRingSum(chunk);
  if (stage)
    takeShare(*stage);
  MemoryProfile result{
      std::vector<int64_t>(graph.numPoints / kMomentsPerPoint, 0),
      0,
      0,
      "",
      program.getLoc(),
      {}};
  result.usageByKind.resize(result.usage.size());
  std::vector<int64_t> change(graph.numPoints + 1, 0);
  std::vector<MemoryByKind> changeByKind(graph.numPoints + 1);
  for (const Interval &interval : intervals) {
    uint32_t end = std::min(interval.end, graph.numPoints);
    change[interval.begin] += interval.bytes;
    change[end] -= interval.bytes;
    changeByKind[interval.begin][unsigned(interval.kind)] += interval.bytes;
    changeByKind[end][unsigned(interval.kind)] -= interval.bytes;
  }
  int64_t usage = 0;
  MemoryByKind byKind{};
  uint32_t peakMoment = 0;
  // The moment of the largest usage of each point.
  std::vector<uint32_t> largestMoments(result.usage.size());
  for (unsigned point = 0; point < largestMoments.size(); ++point)
    largestMoments[point] = point * kMomentsPerPoint;
  for (uint32_t moment = 0; moment < graph.numPoints; ++moment) {
    usage += change[moment];
    for (unsigned kind = 0; kind < kNumMemoryKinds; ++kind)
      byKind[kind] += changeByKind[moment][kind];
    unsigned point = moment / kMomentsPerPoint;
    if (int64_t &atPoint = result.usage[point]; usage > atPoint) {
      atPoint = usage;
      result.usageByKind[point] = byKind;
      largestMoments[point] = moment;
    }
    if (usage > result.peak) {
      result.peak = usage;
      peakMoment = moment;
    }
  }
  result.peakPoint = peakMoment / kMomentsPerPoint;
  const Chunk *atPeak = nullptr;
  for (const Chunk &chunk : graph.chunks) {
    if (chunk.point <= peakMoment)
      atPeak = &chunk;
    for (Operation *op : chunk.ops)
      result.points.push_back({op, chunk.point / kMomentsPerPoint});
  }
  if (atPeak) {
    Operation *row = rowOf(atPeak->ops.back());
    auto output = dyn_cast<OutputOp>(row);
    result.peakName =
        output ? output.getSym().str() : valueName(row->getResults().front());
    result.peakLoc = row->getLoc();
  }
  for (const Interval &interval : intervals)
    if (interval.begin <= peakMoment && peakMoment < interval.end)
      result.live.push_back(shardc::describe(
          {interval.value, interval.kind, interval.bytes}, mesh));
  llvm::sort(result.live, [](const LiveTensor &a, const LiveTensor &b) {
    return std::tuple(-a.bytes, a.kind, a.name, a.sharding) <
           std::tuple(-b.bytes, b.kind, b.name, b.sharding);
  });
  addSpans(largestMoments, result);
  return result;
}

int64_t MemoryProfile::atPeak(MemoryKind kind) const {
  int64_t bytes = 0;
  for (const LiveTensor &tensor : live)
    if (tensor.kind == kind)
      bytes += tensor.bytes;
  return bytes;
}

MemoryProfile shardc::profileMemory(ProgramOp program,
                                    const RunSchedule &schedule) {
  return MemoryProfiler(program).profile(schedule);
}
