//===- Halo.cpp - Operands with the rows of the part before ---------------===//

#include "shardc/Dialect/Shd/IR/Halo.h"
#include "Factors.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

SmallVector<unsigned, 2> shd::haloOperands(const ShardingRule &rule) {
  return tensorsWith(rule.operands, rule.halo->factor);
}

SmallVector<unsigned, 2> shd::haloResults(const ShardingRule &rule) {
  return tensorsWith(rule.results, rule.halo->factor);
}

HaloPins shd::haloPins(const Mesh &mesh, Operation *op,
                       const ShardingRule &rule) {
  HaloPins pins;
  if (!rule.halo)
    return pins;
  for (auto [number, tensor] : llvm::enumerate(rule.operands)) {
    ShardingAttr pin = getOperandPin(op, number);
    if (!pin)
      continue;
    Layout layout = toLayout(mesh, pin);
    for (auto [dim, factors] : llvm::zip_equal(layout.dims, tensor)) {
      if (llvm::is_contained(factors, rule.halo->factor))
        pins.halo = dim;
      if (llvm::is_contained(factors, rule.halo->along))
        pins.along = dim;
    }
  }
  return pins;
}

HaloExchangeOp shd::haloOf(Operation *op) {
  for (Value operand : op->getOperands())
    if (auto halo = operand.getDefiningOp<HaloExchangeOp>())
      return halo;
  return {};
}

HaloReduceOp shd::haloReduceOf(Value value) {
  for (Operation *user : value.getUsers())
    if (auto reduce = dyn_cast<HaloReduceOp>(user))
      return reduce;
  return {};
}
