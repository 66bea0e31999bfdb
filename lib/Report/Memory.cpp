//===- Memory.cpp - Memory of a planned program over time ------*- C++ -*-===//
//
// Lifetimes come from the program's graph, layouts from the types of the
// explicit program: cost-model.md section 6.
//
//===----------------------------------------------------------------------===//

#include "shardc/Report/Memory.h"
#include "shardc/Optimizer/Graph.h"
#include "shardc/Optimizer/Names.h"
#include "shardc/Reshard/ReshardMemory.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {

/// A tensor that is alive during [begin, end).
struct Interval {
  LiveTensor tensor;
  uint32_t begin = 0, end = 0;
};

class MemoryProfiler {
public:
  explicit MemoryProfiler(ProgramOp program) : program(program) {
    if (MeshAttr attr = program.getMeshAttr())
      mesh = toMesh(attr);
  }
  MemoryProfile profile();

private:
  void addValue(const GraphValue &value);
  void addReaders(const GraphValue &value, Value stored, Value copy);
  void addReader(Value operand, Value stored, Value copy, uint32_t point);
  void add(Value value, MemoryKind kind, uint32_t begin, uint32_t end,
           int64_t bytes);
  int64_t bytesOf(Value value) const;
  ReshardMemory chain(Value from, Value to) const;
  bool staysOnChip(const GraphValue &value) const;

  ProgramOp program;
  Mesh mesh;
  Graph graph;
  std::vector<Interval> intervals;
};

int64_t MemoryProfiler::bytesOf(Value value) const {
  ShardingAttr sharding = getSharding(value.getType());
  TensorShape shape = tensorShape(value.getType());
  Layout layout =
      sharding ? toLayout(mesh, sharding) : Layout::replicated(shape.rank());
  return wholeBytes(shape.localBytes(mesh, layout));
}

void MemoryProfiler::add(Value value, MemoryKind kind, uint32_t begin,
                         uint32_t end, int64_t bytes) {
  if (begin >= end || bytes == 0)
    return;
  ShardingAttr sharding = getSharding(value.getType());
  Layout layout = sharding
                      ? toLayout(mesh, sharding)
                      : Layout::replicated(tensorShape(value.getType()).rank());
  intervals.push_back({{valueName(value), kind, bytes,
                        toString(mesh, layout, indexNames(value))},
                       begin,
                       end});
}

/// The collectives that lead from `from` to `to`.
ReshardMemory MemoryProfiler::chain(Value from, Value to) const {
  SmallVector<Operation *, 2> steps;
  for (; to != from; to = to.getDefiningOp()->getOperand(0))
    steps.push_back(to.getDefiningOp());
  ReshardMemory memory;
  for (Operation *step : llvm::reverse(steps))
    memory.add(collectiveKind(step), bytesOf(step->getOperand(0)),
               bytesOf(step->getResult(0)));
  return memory;
}

/// The layout in which an operation's value is stored: behind the collectives
/// that are marked so.
Value storedValue(Value value) {
  while (true) {
    Operation *next = nullptr;
    for (Operation *user : value.getUsers())
      if (user->hasAttr(kStore))
        next = user;
    if (!next)
      return value;
    value = next->getResult(0);
  }
}

/// The copy made of a stored value for several users, or null.
Value copyOf(Value stored) {
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

void MemoryProfiler::addReader(Value operand, Value stored, Value copy,
                               uint32_t point) {
  Value from = stored;
  for (Value at = operand; at != stored && !(at == copy);
       at = at.getDefiningOp()->getOperand(0))
    if (at.getDefiningOp()->getOperand(0) == copy)
      from = copy;
  if (operand == stored || operand == copy)
    return;
  add(operand, MemoryKind::Buffer, point, point + 1,
      chain(from, operand).extraBytes());
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
  if (stored != value.value)
    add(value.value, MemoryKind::Buffer, value.begin, value.begin + 1,
        chain(value.value, stored).storeExtraBytes());
  if (copy) {
    add(copy, MemoryKind::Buffer, value.firstRead, value.readEnd,
        bytesOf(copy));
    add(copy, MemoryKind::Buffer, value.firstRead, value.firstRead + 1,
        chain(stored, copy).extraBytes() - bytesOf(copy));
  }
  addReaders(value, stored, copy);
}

MemoryProfile MemoryProfiler::profile() {
  graph = buildGraph(program);
  for (const GraphValue &value : graph.values)
    addValue(value);
  MemoryProfile result{
      std::vector<int64_t>(graph.numPoints, 0), 0, 0, "", program.getLoc(), {}};
  std::vector<int64_t> change(graph.numPoints + 1, 0);
  for (const Interval &interval : intervals) {
    change[interval.begin] += interval.tensor.bytes;
    change[std::min(interval.end, graph.numPoints)] -= interval.tensor.bytes;
  }
  int64_t usage = 0;
  for (unsigned point = 0; point < graph.numPoints; ++point) {
    result.usage[point] = usage += change[point];
    if (usage > result.peak) {
      result.peak = usage;
      result.peakPoint = point;
    }
  }
  for (const Chunk &chunk : graph.chunks)
    if (chunk.point <= result.peakPoint) {
      result.peakName = chunk.kind == Chunk::Kind::Output
                            ? cast<OutputOp>(chunk.ops.back()).getSym().str()
                            : valueName(chunk.ops.back()->getResult(0));
      result.peakLoc = chunk.ops.back()->getLoc();
    }
  for (const Interval &interval : intervals)
    if (interval.begin <= result.peakPoint && result.peakPoint < interval.end)
      result.live.push_back(interval.tensor);
  llvm::sort(result.live, [](const LiveTensor &a, const LiveTensor &b) {
    return std::tuple(-a.bytes, a.kind, a.name, a.sharding) <
           std::tuple(-b.bytes, b.kind, b.name, b.sharding);
  });
  return result;
}

} // namespace

int64_t MemoryProfile::atPeak(MemoryKind kind) const {
  int64_t bytes = 0;
  for (const LiveTensor &tensor : live)
    if (tensor.kind == kind)
      bytes += tensor.bytes;
  return bytes;
}

MemoryProfile shardc::profileMemory(ProgramOp program) {
  return MemoryProfiler(program).profile();
}
