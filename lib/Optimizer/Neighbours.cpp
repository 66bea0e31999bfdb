//===- Neighbours.cpp - Axes that an operation's tensors bring -*- C++ -*-===//

#include "shardc/Optimizer/Neighbours.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

static bool isTemporary(Value value) {
  Operation *def = value.getDefiningOp();
  return def && def->hasAttr(kTemporary) && !getResultPin(value);
}

NeighbourAxes::NeighbourAxes(ProgramOp program, const Mesh &mesh) : mesh(mesh) {
  program->walk<WalkOrder::PreOrder>([&](Operation *op) { collect(op); });
  for (bool changed = true; changed;) {
    changed = false;
    for (Operation *op : open)
      changed |= spread(op);
    for (Operation *op : llvm::reverse(open))
      changed |= spread(op);
  }
}

NeighbourAxes::DimAxes NeighbourAxes::fromPin(ShardingAttr pin,
                                              Type type) const {
  DimAxes axes(cast<RankedTensorType>(type).getRank(), 0);
  if (!pin)
    return axes;
  Layout layout = toLayout(mesh, pin);
  for (auto [set, list] : llvm::zip(axes, layout.dims))
    set = axisSet(list);
  return axes;
}

void NeighbourAxes::collect(Operation *op) {
  if (auto repeat = dyn_cast<RepeatOp>(op)) {
    for (auto [i, argument] : llvm::enumerate(repeat.getCarried())) {
      DimAxes axes = fromPin(getOperandPin(repeat, i), argument.getType());
      dims[repeat.getResult(i)] = axes;
      dims[argument] = std::move(axes);
    }
    return;
  }
  if (!isa<DeclareOp, PartOp, ShardingRuleOpInterface>(op))
    return;
  for (Value result : op->getResults())
    dims[result] = fromPin(getResultPin(result), result.getType());
  if (isa<ShardingRuleOpInterface>(op) &&
      (llvm::any_of(op->getResults(), isTemporary) ||
       llvm::any_of(op->getOperands(), isTemporary)))
    open.push_back(op);
}

llvm::SmallVector<AxisSet, 6>
NeighbourAxes::axesOf(Operation *op, const ShardingRule &rule) const {
  llvm::SmallVector<AxisSet, 6> axes(rule.factors.size(), 0);
  auto add = [&](const TensorFactors &map, ArrayRef<AxisSet> tensor) {
    for (auto [factors, set] : llvm::zip(map, tensor))
      for (unsigned factor : factors)
        axes[factor] |= set;
  };
  for (auto [i, map] : llvm::enumerate(rule.operands)) {
    Value operand = op->getOperand(i);
    if (auto it = dims.find(operand); it != dims.end())
      add(map, it->second);
    add(map, fromPin(getOperandPin(op, i), operand.getType()));
  }
  for (auto [result, map] : llvm::zip_equal(op->getResults(), rule.results))
    if (auto it = dims.find(result); it != dims.end())
      add(map, it->second);
  return axes;
}

/// Temporaries take the axes of their operation's factors.
bool NeighbourAxes::spread(Operation *op) {
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  llvm::SmallVector<AxisSet, 6> axes = axesOf(op, rule);
  bool changed = false;
  auto give = [&](Value value, const TensorFactors &map) {
    if (!isTemporary(value))
      return;
    for (auto [factors, set] : llvm::zip(map, dims[value])) {
      AxisSet more = set;
      for (unsigned factor : factors)
        more |= axes[factor];
      changed |= more != set;
      set = more;
    }
  };
  for (auto [i, map] : llvm::enumerate(rule.operands))
    give(op->getOperand(i), map);
  for (auto [result, map] : llvm::zip_equal(op->getResults(), rule.results))
    give(result, map);
  return changed;
}
