//===- Propagate.cpp - shd-propagate ---------------------------*- C++ -*-===//
//
// Spreads shardings along factors, as Shardy's basic propagation does: a
// worklist would visit the same operations; sweeps in both directions until
// nothing changes are simpler and as fast on programs.
//
//===----------------------------------------------------------------------===//

#include "shardc/Dialect/Shd/Transforms/Passes.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace shardc::shd {
#define GEN_PASS_DEF_SHDPROPAGATE
#include "shardc/Dialect/Shd/Transforms/Passes.h.inc"

namespace {

/// The known sharding of one tensor: its axes by dimension, or nothing.
struct Known {
  SmallVector<std::optional<AxisList>, 4> dims;
  AxisSet partial = 0;

  AxisSet used() const {
    AxisSet set = partial;
    for (const auto &dim : dims)
      if (dim)
        set |= axisSet(*dim);
    return set;
  }
};

class Propagation {
public:
  explicit Propagation(ProgramOp program);
  void run();
  void settleCarried();
  void writePins();

private:
  void collect(Operation *op);
  Known fromPin(ShardingAttr pin, Type type) const;
  Known &known(Value value);
  Known &known(OpOperand &operand);
  bool visit(Operation *op);
  bool visitRule(Operation *op, ShardingRuleOpInterface rule);
  bool tie(Value a, Value b);
  bool assign(Known &tensor, unsigned dim, const AxisList &axes,
              int64_t extent) const;

  ProgramOp program;
  Mesh mesh;
  std::vector<Operation *> ops;
  llvm::DenseMap<Value, Known> values;
  /// The annotated layouts in which operations read values.
  llvm::DenseMap<OpOperand *, Known> pinnedOperands;
};

Propagation::Propagation(ProgramOp program) : program(program) {
  if (MeshAttr attr = program.getMeshAttr())
    mesh = toMesh(attr);
  program->walk<WalkOrder::PreOrder>([&](Operation *op) { collect(op); });
}

void Propagation::collect(Operation *op) {
  ops.push_back(op);
  for (Value result : op->getResults())
    values[result] =
        fromPin(isa<RepeatOp>(op) ? ShardingAttr() : getResultPin(result),
                result.getType());
  // No axis splits the first dimensions of a stacked tensor.
  for (Value result : op->getResults())
    std::fill_n(values[result].dims.begin(), stackedDims(result), AxisList());
  if (isa<ShardingRuleOpInterface>(op))
    for (OpOperand &operand : op->getOpOperands())
      if (ShardingAttr pin = getOperandPin(op, operand.getOperandNumber()))
        pinnedOperands[&operand] = fromPin(pin, operand.get().getType());
  for (Region &region : op->getRegions())
    for (Value argument : region.getArguments())
      values[argument] = fromPin(ShardingAttr(), argument.getType());
}

Known Propagation::fromPin(ShardingAttr pin, Type type) const {
  Known known;
  known.dims.resize(cast<RankedTensorType>(type).getRank());
  if (!pin)
    return known;
  Layout layout = toLayout(mesh, pin);
  for (auto [i, dim] : llvm::enumerate(pin.getDims()))
    if (!dim.getIsOpen())
      known.dims[i] = layout.dims[i];
  known.partial = layout.partial;
  return known;
}

Known &Propagation::known(Value value) { return values.find(value)->second; }

Known &Propagation::known(OpOperand &operand) {
  auto it = pinnedOperands.find(&operand);
  return it == pinnedOperands.end() ? known(operand.get()) : it->second;
}

bool Propagation::assign(Known &tensor, unsigned dim, const AxisList &axes,
                         int64_t extent) const {
  if (tensor.dims[dim] || (tensor.used() & axisSet(axes)) ||
      extent % mesh.groupSize(axes))
    return false;
  tensor.dims[dim] = axes;
  return true;
}

/// Each factor takes the longest axes that an operand or a result has and
/// gives them to the tensors that nothing is known of.
bool Propagation::visitRule(Operation *op, ShardingRuleOpInterface interface) {
  ShardingRule rule = interface.getShardingRule();
  SmallVector<Known *, 4> tensors;
  for (unsigned i = 0; i < rule.operands.size(); ++i)
    tensors.push_back(&known(op->getOpOperand(i)));
  for (Value result : op->getResults())
    tensors.push_back(&known(result));
  auto maps = llvm::to_vector(rule.operands);
  llvm::append_range(maps, rule.results);

  bool changed = false;
  for (unsigned f = 0; f < rule.factors.size(); ++f) {
    if (rule.factors[f].kind == FactorKind::Replicated)
      continue;
    AxisList axes;
    for (auto [tensor, map] : llvm::zip(tensors, maps))
      for (unsigned d = 0; d < map.size(); ++d)
        if (map[d].size() == 1 && map[d][0] == f && tensor->dims[d] &&
            tensor->dims[d]->size() > axes.size())
          axes = *tensor->dims[d];
    if (axes.empty())
      continue;
    for (auto [tensor, map] : llvm::zip(tensors, maps))
      for (unsigned d = 0; d < map.size(); ++d)
        if (map[d].size() == 1 && map[d][0] == f)
          changed |= assign(*tensor, d, axes, rule.factors[f].extent);
  }
  return changed;
}

/// Two values that share one sharding: that of a part is the last dimensions of
/// its whole's.
bool Propagation::tie(Value a, Value b) {
  Known &left = known(a), &right = known(b);
  auto type = cast<RankedTensorType>(a.getType());
  size_t first = right.dims.size() - left.dims.size();
  bool changed = false;
  for (unsigned d = 0; d < left.dims.size(); ++d) {
    std::optional<AxisList> &other = right.dims[first + d];
    if (left.dims[d] && !left.dims[d]->empty())
      changed |= assign(right, first + d, *left.dims[d], type.getDimSize(d));
    else if (other && !other->empty())
      changed |= assign(left, d, *other, type.getDimSize(d));
  }
  return changed;
}

bool Propagation::visit(Operation *op) {
  if (auto rule = dyn_cast<ShardingRuleOpInterface>(op))
    return visitRule(op, rule);
  if (auto part = dyn_cast<PartOp>(op))
    return tie(part, part.getSource());
  auto repeat = dyn_cast<RepeatOp>(op);
  if (!repeat)
    return false;
  bool changed = false;
  Operation *yield = repeat.getBody().front().getTerminator();
  for (auto [i, argument] : llvm::enumerate(repeat.getCarried())) {
    // An annotation of the rebinding goes before one of the initial value, as
    // in shd-replicate-open.
    changed |= tie(argument, yield->getOperand(i));
    changed |= tie(argument, repeat.getInits()[i]);
    changed |= tie(argument, repeat.getResults()[i]);
  }
  return changed;
}

void Propagation::run() {
  bool changed = true;
  while (changed) {
    changed = false;
    for (Operation *op : ops)
      changed |= visit(op);
    for (Operation *op : llvm::reverse(ops))
      changed |= visit(op);
  }
}

/// What an operation makes as the next one of a carried value, or null.
static Value rebinding(RepeatOp repeat, unsigned number) {
  Value next = repeat.getBody().front().getTerminator()->getOperand(number);
  if (auto inner = next.getDefiningOp<RepeatOp>())
    return rebinding(inner, cast<OpResult>(next).getResultNumber());
  return next.getDefiningOp<ShardingRuleOpInterface>() ? next : Value();
}

/// A carried value and its rebinding share one layout, or the value would move
/// in each iteration: that of the rebinding if its author has placed it, else
/// that of the carried value. Outer repeats come first.
void Propagation::settleCarried() {
  llvm::DenseSet<Value> settled;
  for (Operation *op : ops)
    if (auto repeat = dyn_cast<RepeatOp>(op))
      for (auto [i, argument] : llvm::enumerate(repeat.getCarried())) {
        Value made = rebinding(repeat, i);
        if (!made)
          continue;
        Known &carried = known(argument), &next = known(made);
        if (settled.insert(made).second && !getResultPin(made))
          next = carried;
        else
          carried = next;
      }
}

void Propagation::writePins() {
  auto pinFor = [&](Value value) {
    Layout layout;
    const Known &tensor = known(value);
    for (const auto &dim : tensor.dims)
      layout.dims.push_back(dim.value_or(AxisList()));
    layout.partial = tensor.partial;
    return toSharding(program.getContext(), mesh, layout);
  };
  for (Operation *op : ops) {
    if (isa<DeclareOp>(op) ||
        (isa<ShardingRuleOpInterface>(op) && !op->hasAttr(kTemporary)))
      for (Value result : op->getResults())
        setResultPin(result, pinFor(result));
    if (auto repeat = dyn_cast<RepeatOp>(op))
      for (auto [i, argument] : llvm::enumerate(repeat.getCarried()))
        setOperandPin(op, i, pinFor(argument));
  }
}

struct PropagatePass : impl::ShdPropagateBase<PropagatePass> {
  void runOnOperation() override {
    Propagation propagation(getOperation());
    propagation.run();
    propagation.settleCarried();
    propagation.writePins();
  }
};

} // namespace
} // namespace shardc::shd
