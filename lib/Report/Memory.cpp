//===- Memory.cpp - Memory of a planned program over time ------*- C++ -*-===//
//
// Lifetimes come from the program's graph, layouts from the types of the
// explicit program, and from the schedule where buffers are made earlier than
// program order needs them: cost-model.md section 6.
//
//===----------------------------------------------------------------------===//

#include "Collect.h"
#include "MemoryProfiler.h"
#include "Names.h"
#include "shardc/Reshard/ReshardMemory.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

MemoryProfiler::MemoryProfiler(ProgramOp program)
    : program(program), graph(buildGraph(program)) {
  if (MeshAttr attr = program.getMeshAttr())
    mesh = toMesh(attr);
}

int64_t MemoryProfiler::bytesOf(Value value) const {
  return wholeBytes(tensorShape(value.getType())
                        .localBytes(mesh, layoutOf(mesh, value.getType())));
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
               bytesOf(step->getResult(0)));
  return memory;
}

/// The copy made of a stored value for several users, or null.
static Value copyOf(Value stored) {
  for (Operation *user : stored.getUsers()) {
    if (!isCollective(user))
      continue;
    if (user->hasAttr(kCopy))
      return user->getResult(0);
    if (Value copy = copyOf(user->getResult(0)))
      return copy;
  }
  return {};
}

/// Only the rest of its fusion group reads it, in the same kernel, or each of
/// its users computes it.
bool MemoryProfiler::staysOnChip(const GraphValue &value) const {
  if (value.kind != GraphValue::Kind::Computed || !value.flows.empty())
    return false;
  const Chunk &maker = graph.chunks[value.chunk];
  if (maker.prologue)
    return llvm::none_of(maker.ops,
                         [](Operation *op) { return op->hasAttr(kGroupCost); });
  if (maker.kind != Chunk::Kind::Leader)
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
  if (const EarlyBuffer *buffer = earlyBuffer(maker)) {
    begin = std::min(begin, buffer->from);
    for (auto [from, to] : buffer->also)
      add(value, MemoryKind::Buffer, from, to, bytes);
  }
  add(value, MemoryKind::Buffer, begin, end, bytes);
}

const EarlyBuffer *MemoryProfiler::earlyBuffer(Operation *maker) const {
  if (!early)
    return nullptr;
  auto it = early->find(maker);
  return it == early->end() ? nullptr : &it->second;
}

void MemoryProfiler::addReader(Value operand, Value stored, Value copy,
                               uint32_t point) {
  Value from = stored;
  for (Value at = operand; at != stored && !(at == copy);
       at = at.getDefiningOp()->getOperand(0))
    if (at.getDefiningOp()->getOperand(0) == copy)
      from = copy;
  if (operand == stored || operand == copy)
    return;
  SmallVector<Operation *, 2> steps = stepsBetween(from, operand);
  addBuffer(operand, steps.back(), point, point + 1, chain(steps).extraBytes());
}

void MemoryProfiler::addReaders(const GraphValue &value, Value stored,
                                Value copy) {
  SmallVector<std::pair<unsigned, Value>, 4> seen;
  for (const ChunkUse &use : value.uses) {
    const Chunk &chunk = graph.chunks[use.chunk];
    Value operand = chunk.ops[use.op]->getOperand(use.operand);
    if (llvm::is_contained(seen, std::pair(use.chunk, operand)))
      continue;
    seen.push_back({use.chunk, operand});
    addReader(operand, stored, copy, chunk.point);
  }
  for (const GraphValue::Flow &flow : value.flows)
    addReader(flow.operand->get(), stored, copy, flow.point);
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
  }
  llvm_unreachable("unknown kind of tensor");
}

void MemoryProfiler::addValue(const GraphValue &value) {
  Value stored = storedValue(value.value);
  Value copy = copyOf(stored);
  if (!value.inPlace && !staysOnChip(value))
    add(stored, kindOf(value), value.begin, value.end,
        bytesOf(stored) * value.multiplicity);
  if (stored != value.value) {
    // As made, it is needed until what it becomes is read.
    SmallVector<Operation *, 2> steps = stepsBetween(value.value, stored);
    uint32_t end = value.begin + 1;
    if (earlyBuffer(steps.back()))
      end = std::max(end, std::min(value.firstRead, graph.numPoints));
    add(value.value, MemoryKind::Buffer, value.begin, end,
        chain(steps).storeExtraBytes());
  }
  if (copy) {
    SmallVector<Operation *, 2> steps = stepsBetween(stored, copy);
    addBuffer(copy, steps.back(), value.firstRead, value.readEnd,
              bytesOf(copy));
    add(copy, MemoryKind::Buffer, value.firstRead, value.firstRead + 1,
        chain(steps).extraBytes() - bytesOf(copy));
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

LiveTensor MemoryProfiler::describe(const Interval &interval) const {
  Value value = interval.value;
  SmallVector<std::string, 4> indices = indexNames(value);
  return {valueName(value), interval.kind, interval.bytes,
          notation(mesh, layoutOf(mesh, value.getType()), indices)};
}

MemoryProfile MemoryProfiler::profile(const EarlyBuffers *buffers) {
  early = buffers;
  intervals.clear();
  for (const GraphValue &value : graph.values)
    addValue(value);
  MemoryProfile result{
      std::vector<int64_t>(graph.numPoints, 0), 0, 0, "", program.getLoc(), {}};
  std::vector<int64_t> change(graph.numPoints + 1, 0);
  for (const Interval &interval : intervals) {
    change[interval.begin] += interval.bytes;
    change[std::min(interval.end, graph.numPoints)] -= interval.bytes;
  }
  int64_t usage = 0;
  for (unsigned point = 0; point < graph.numPoints; ++point) {
    result.usage[point] = usage += change[point];
    if (usage > result.peak) {
      result.peak = usage;
      result.peakPoint = point;
    }
  }
  const Chunk *atPeak = nullptr;
  for (const Chunk &chunk : graph.chunks)
    if (chunk.point <= result.peakPoint)
      atPeak = &chunk;
  if (atPeak) {
    Operation *row = rowOf(atPeak->ops.back());
    auto output = dyn_cast<OutputOp>(row);
    result.peakName =
        output ? output.getSym().str() : valueName(row->getResult(0));
    result.peakLoc = row->getLoc();
  }
  for (const Interval &interval : intervals)
    if (interval.begin <= result.peakPoint && result.peakPoint < interval.end)
      result.live.push_back(describe(interval));
  llvm::sort(result.live, [](const LiveTensor &a, const LiveTensor &b) {
    return std::tuple(-a.bytes, a.kind, a.name, a.sharding) <
           std::tuple(-b.bytes, b.kind, b.name, b.sharding);
  });
  return result;
}

int64_t MemoryProfile::atPeak(MemoryKind kind) const {
  int64_t bytes = 0;
  for (const LiveTensor &tensor : live)
    if (tensor.kind == kind)
      bytes += tensor.bytes;
  return bytes;
}

MemoryProfile shardc::profileMemory(ProgramOp program) {
  return MemoryProfiler(program).profile(nullptr);
}
