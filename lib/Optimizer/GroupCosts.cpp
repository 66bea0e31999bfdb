//===- GroupCosts.cpp - Roofline of fused operations -----------*- C++ -*-===//

#include "shardc/Optimizer/GroupCosts.h"
#include "shardc/Dialect/Shd/IR/Explicit.h"
#include "shardc/Dialect/Shd/IR/Halo.h"
#include "shardc/Dialect/Shd/IR/Host.h"
#include "shardc/Dialect/Shd/IR/Pipeline.h"
#include "shardc/Dialect/Shd/IR/RingAttention.h"
#include "shardc/Optimizer/Graph.h"
#include "shardc/Optimizer/Halos.h"
#include "shardc/Optimizer/Names.h"
#include "shardc/Optimizer/Rings.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

Strategy shardc::explicitStrategy(const Mesh &mesh, Operation *op,
                                  const ShardingRule &rule) {
  SmallVector<std::optional<Layout>> operands, results;
  auto layoutOf = [&](Value value) -> std::optional<Layout> {
    if (!hasLayout(value))
      return std::nullopt;
    return explicitLayout(mesh, value.getType());
  };
  for (unsigned i = 0; i < rule.operands.size(); ++i)
    operands.push_back(layoutOf(op->getOperand(i)));
  for (Value result : op->getResults())
    results.push_back(layoutOf(result));
  std::optional<Strategy> strategy =
      inferStrategy(mesh, rule, operands, results);
  assert(strategy && "the verifier has checked the operation's shardings");
  strategy->ring = ringAxis(mesh, op);
  strategy->halo = bool(haloOf(op));
  return *strategy;
}

DeviceFlops shardc::deviceFlops(const Mesh &mesh, Operation *op) {
  auto cost = dyn_cast<CostOpInterface>(op);
  if (!cost)
    return {};
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  // The type that the units compute in does not matter here.
  Machine machine;
  double all = cost.getWork(wholeExtents(rule), machine).matrixFlops;
  if (all == 0)
    return {};
  Strategy strategy = explicitStrategy(mesh, op, rule);
  double parts = 1;
  for (const AxisList &axes : strategy.factorAxes)
    for (AxisIndex axis : axes)
      parts *= double(mesh.axes[axis].size);
  return {cost.getWork(localExtents(mesh, rule, strategy), machine).matrixFlops,
          all / parts};
}

static const PartWork::Access *findAccess(ArrayRef<PartWork::Access> list,
                                          const PartWork::Access &wanted) {
  for (const PartWork::Access &access : list)
    if (access.value == wanted.value && access.layout == wanted.layout)
      return &access;
  return nullptr;
}

/// Takes off a read what the group has just written; false if nothing is left.
/// Behind a scatter that is the elements that it does not name.
static bool leaveWritten(ArrayRef<PartWork::Access> writes,
                         PartWork::Access &read) {
  if (const PartWork::Access *written = findAccess(writes, read))
    read.bytes -= written->bytes;
  return read.bytes > 0;
}

/// The operand as it is read: through a view, as part of the whole.
static PartWork::Access readOf(const PartWork &part, Value operand,
                               Layout layout, double bytes) {
  for (const PartWork::View &view : part.views)
    if (view.value == operand && view.layout == layout) {
      PartWork::Access read = view.whole;
      read.bytes = bytes;
      return read;
    }
  return {operand, std::move(layout), bytes};
}

static double lengthOf(ArrayRef<PartWork::Access::Range> ranges) {
  double length = 0;
  for (auto [first, last] : ranges)
    length += double(last - first);
  return length;
}

/// One read of all that two read: of two parts, as keys and values of one
/// cache, what both have counts once.
static void joinRead(PartWork::Access &known, const PartWork::Access &read) {
  if (known.ranges.empty() || read.ranges.empty()) {
    known.bytes = std::max(known.bytes, read.bytes);
    known.ranges.clear();
    return;
  }
  if (known.index != read.index) {
    known.bytes += read.bytes;
    return;
  }
  double ofPosition = std::max(known.bytes / lengthOf(known.ranges),
                               read.bytes / lengthOf(read.ranges));
  SmallVector<PartWork::Access::Range, 2> all(known.ranges.begin(),
                                              known.ranges.end());
  llvm::append_range(all, read.ranges);
  llvm::sort(all);
  known.ranges.clear();
  for (auto [first, last] : all)
    if (!known.ranges.empty() && first <= known.ranges.back().second)
      known.ranges.back().second = std::max(known.ranges.back().second, last);
    else
      known.ranges.push_back({first, last});
  known.bytes = ofPosition * lengthOf(known.ranges);
}

void shardc::addOperation(const PlanningContext &context, Operation *op,
                          const ShardingRule &rule, const Strategy &strategy,
                          PartWork &part) {
  if (auto slice = dyn_cast<SliceOp>(op)) {
    PartWork::Access whole{rootValue(slice.getInput()),
                           operandLayout(rule, strategy, 0)};
    whole.index = slice.getWholeAttr();
    whole.ranges = {{slice.getRange()[0], slice.getRange()[1]}};
    part.views.push_back(
        {slice.getResult(), resultLayout(rule, strategy, 0), std::move(whole)});
    return;
  }
  part.runs = true;
  OpWork work = cast<CostOpInterface>(op).getWork(
      localExtents(context.mesh(), rule, strategy), context.machine());
  GroupCost cost;
  addWork(context.machine(), work, cost);
  part.matrixFlops += cost.matrixFlops;
  part.matrixSeconds += cost.matrixSeconds;
  part.attentionSeconds += cost.attentionSeconds;
  part.vectorFlops += cost.vectorFlops;
  part.ringBytes += ringTraffic(context.mesh(), rule, strategy,
                                work.operandBytes, work.resultBytes);
  if (strategy.ring)
    part.kernels = double(context.mesh().axes[*strategy.ring].size);
  for (auto [i, bytes] : llvm::enumerate(work.operandBytes)) {
    if (!hasLayout(op->getOperand(i)))
      continue;
    Value value = rootValue(op->getOperand(i));
    PartWork::Access read =
        readOf(part, value, operandLayout(rule, strategy, i),
               bytes * shareOfReads(value));
    if (!leaveWritten(part.writes, read))
      continue;
    if (auto *known =
            const_cast<PartWork::Access *>(findAccess(part.reads, read)))
      joinRead(*known, read);
    else
      part.reads.push_back(std::move(read));
  }
  // A device makes summands for the keys of its part and of the rows before.
  if (strategy.halo)
    for (unsigned result : haloResults(rule))
      work.resultBytes[result] *= shareWithHalo(context.mesh(), rule, strategy);
  for (auto [result, bytes] :
       llvm::zip_equal(op->getResults(), work.resultBytes))
    part.writes.push_back(
        {result, resultLayout(rule, strategy, result.getResultNumber()),
         bytes});
}

/// The indices along which a chunked row operation is cut: those of its result.
static SmallVector<std::string, 4> chunkedIndices(ArrayRef<Operation *> rest) {
  for (Operation *op : rest)
    if (separateChunks(op) != kNoChunks)
      return indexNames(op->getResults().front());
  return {};
}

PartWork shardc::inChunks(PartWork part, Operation *leader,
                          ArrayRef<Operation *> rest) {
  int64_t chunks = separateChunks(rest);
  if (chunks == kNoChunks)
    return part;
  part.kernels = double(chunks);
  SmallVector<std::string, 4> cut = chunkedIndices(rest);
  auto isCut = [&](auto names) {
    return llvm::any_of(names, [&](const auto &name) {
      return llvm::any_of(cut, [&](const std::string &each) {
        return StringRef(each) == StringRef(name);
      });
    });
  };
  IndexingAttr indexing = cast<ShardingRuleOpInterface>(leader).getIndexing();
  for (PartWork::Access &read : part.reads) {
    // The inputs of a prologue have their own names.
    bool isOperand = false, isWhole = true;
    for (unsigned i = 0; i < indexing.getOperands().size(); ++i)
      if (rootValue(leader->getOperand(i)) == read.value) {
        isOperand = true;
        isWhole &= !isCut(indexing.getOperandIndices(i));
      }
    if (isOperand ? isWhole : !isCut(indexNames(read.value)))
      read.bytes *= double(chunks);
  }
  return part;
}

PartWork shardc::inOwnChunks(PartWork part, ArrayRef<Operation *> rest) {
  if (int64_t chunks = separateChunks(rest); chunks != kNoChunks)
    part.kernels = double(chunks);
  return part;
}

GroupCost shardc::costParts(const Machine &machine, const PartWork &first,
                            const PartWork *second,
                            llvm::function_ref<bool(Value)> needed) {
  if (!first.runs && !second)
    return {};
  GroupTraffic traffic;
  traffic.deviceReads = first.ringBytes;
  auto addRead = [&](Value value, double bytes) {
    bool isScalar = cast<RankedTensorType>(value.getType()).getRank() == 0;
    (isReadOnHost(value) ? traffic.hostReads
     : isScalar          ? traffic.scalarReads
                         : traffic.deviceReads) += bytes;
  };
  auto addWrites = [&](const PartWork &part) {
    for (const PartWork::Access &write : part.writes)
      if (needed(write.value))
        (goesToHost(write.value) ? traffic.hostWrites : traffic.deviceWrites) +=
            write.bytes;
  };
  for (const PartWork::Access &read : first.reads)
    addRead(read.value, read.bytes);
  addWrites(first);
  GroupCost cost;
  cost.matrixFlops = first.matrixFlops;
  cost.matrixSeconds = first.matrixSeconds;
  cost.attentionSeconds = first.attentionSeconds;
  OpWork vector;
  vector.vectorFlops = first.vectorFlops;
  if (second) {
    for (const PartWork::Access &read : second->reads) {
      PartWork::Access rest = read;
      if (!leaveWritten(first.writes, rest))
        continue;
      const PartWork::Access *known = findAccess(first.reads, rest);
      addRead(rest.value,
              known ? std::max(0.0, rest.bytes - known->bytes) : rest.bytes);
    }
    addWrites(*second);
    vector.vectorFlops += second->vectorFlops;
  }
  if (traffic.isOnDevice()) {
    addTraffic(machine,
               traffic.deviceReads + traffic.scalarReads + traffic.deviceWrites,
               cost);
  } else {
    addHostTraffic(machine, traffic, cost);
    // The host's arithmetic keeps up with its memory.
    if (machine.hostMemoryBandwidth)
      vector.vectorFlops = 0;
  }
  addWork(machine, vector, cost);
  calibrate(machine, first.kernels, cost);
  return cost;
}
