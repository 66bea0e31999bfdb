//===- GroupCosts.cpp - Roofline of fused operations -----------*- C++ -*-===//

#include "shardc/Optimizer/GroupCosts.h"
#include "shardc/Optimizer/Graph.h"
#include "shardc/Optimizer/Names.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

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

void shardc::addOperation(const PlanningContext &context, Operation *op,
                          const ShardingRule &rule, const Strategy &strategy,
                          PartWork &part) {
  OpWork work = cast<CostOpInterface>(op).getWork(
      localExtents(context.mesh(), rule, strategy), context.machine());
  GroupCost cost;
  addWork(context.machine(), work, cost);
  part.matrixFlops += cost.matrixFlops;
  part.matrixSeconds += cost.matrixSeconds;
  part.vectorFlops += cost.vectorFlops;
  for (auto [i, bytes] : llvm::enumerate(work.operandBytes)) {
    if (!hasLayout(op->getOperand(i)))
      continue;
    PartWork::Access read{rootValue(op->getOperand(i)),
                          operandLayout(rule, strategy, i), bytes};
    if (!leaveWritten(part.writes, read))
      continue;
    if (auto *known =
            const_cast<PartWork::Access *>(findAccess(part.reads, read)))
      known->bytes = std::max(known->bytes, bytes);
    else
      part.reads.push_back(std::move(read));
  }
  for (auto [result, bytes] :
       llvm::zip_equal(op->getResults(), work.resultBytes))
    part.writes.push_back(
        {result, resultLayout(rule, strategy, result.getResultNumber()),
         bytes});
}

GroupCost shardc::costParts(const Machine &machine, const PartWork &first,
                            const PartWork *second,
                            llvm::function_ref<bool(Value)> needed) {
  double bytes = 0;
  for (const PartWork::Access &read : first.reads)
    bytes += read.bytes;
  for (const PartWork::Access &write : first.writes)
    if (needed(write.value))
      bytes += write.bytes;
  GroupCost cost;
  cost.matrixFlops = first.matrixFlops;
  cost.matrixSeconds = first.matrixSeconds;
  OpWork vector;
  vector.vectorFlops = first.vectorFlops;
  if (second) {
    for (const PartWork::Access &read : second->reads) {
      PartWork::Access rest = read;
      if (!leaveWritten(first.writes, rest))
        continue;
      const PartWork::Access *known = findAccess(first.reads, rest);
      bytes += known ? std::max(0.0, rest.bytes - known->bytes) : rest.bytes;
    }
    for (const PartWork::Access &write : second->writes)
      if (needed(write.value))
        bytes += write.bytes;
    vector.vectorFlops += second->vectorFlops;
  }
  addWork(machine, vector, cost);
  addTraffic(machine, bytes, cost);
  return cost;
}
