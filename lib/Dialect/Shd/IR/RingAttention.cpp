//===- RingAttention.cpp - Attention that runs around a ring --------------===//

#include "shardc/Dialect/Shd/IR/RingAttention.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

SmallVector<unsigned, 2> shd::ringOperands(const ShardingRule &rule) {
  SmallVector<unsigned, 2> operands;
  for (auto [number, tensor] : llvm::enumerate(rule.operands))
    if (hasFactor(tensor, rule.ring->factor))
      operands.push_back(number);
  return operands;
}

bool shd::travels(Operation *collective) {
  return collective && collective->hasAttr(kTravels);
}

SmallVector<Operation *, 2> shd::ringGathers(Operation *op) {
  SmallVector<Operation *, 2> gathers;
  for (Value operand : op->getOperands())
    if (Operation *gather = operand.getDefiningOp();
        travels(gather) && !llvm::is_contained(gathers, gather))
      gathers.push_back(gather);
  return gathers;
}

std::optional<AxisIndex> shd::ringAxis(const Mesh &mesh, Operation *op) {
  SmallVector<Operation *, 2> gathers = ringGathers(op);
  if (gathers.empty())
    return std::nullopt;
  auto axes = gathers.front()->getAttrOfType<ArrayAttr>("axes");
  return mesh.find(cast<StringAttr>(axes.getValue().front()).getValue());
}
