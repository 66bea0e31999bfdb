//===- Halo.cpp - Operands with the rows of the part before ---------------===//

#include "shardc/Dialect/Shd/IR/Halo.h"
#include "Factors.h"
#include "shardc/Dialect/Shd/IR/Order.h"

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

int64_t shd::haloDealt(Operation *op) {
  auto names = op->getAttrOfType<ArrayAttr>(kIndices);
  int64_t dim = op->getAttrOfType<IntegerAttr>("dim").getInt();
  return names && dim < int64_t(names.size())
             ? dealtParts(op, cast<StringAttr>(names[dim]).getValue())
             : 1;
}

int64_t shd::haloRows(Operation *op) {
  return stretchesOfPart(haloDealt(op)) *
         op->getAttrOfType<IntegerAttr>("rows").getInt();
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
