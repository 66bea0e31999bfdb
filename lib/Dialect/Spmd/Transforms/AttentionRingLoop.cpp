//===- AttentionRingLoop.cpp - Steps of attention around a ring -----------===//

#include "AttentionRingLoop.h"
#include "shardc/Dialect/Shd/IR/Order.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::spmd;

AttentionRingLoop::AttentionRingLoop(const Mesh &mesh, ArrayRef<AxisIndex> ring,
                                     shd::AttentionOpInterface attention,
                                     ArrayRef<Operation *> gathers)
    : RingLoop(mesh, ring, attention), attention(attention), gathers(gathers) {
  auto names = indexing().getOperandIndices(shd::AttentionOp::kKeyOperand);
  const auto *at = llvm::find(names, attention.getKey());
  keys = cast<RankedTensorType>(attention.getK().getType())
             .getDimSize(at - names.begin());
}

shd::IndexingAttr AttentionRingLoop::indexing() {
  return cast<shd::ShardingRuleOpInterface>(attention.getOperation())
      .getIndexing();
}

IRMapping AttentionRingLoop::here(ValueRange chunks) const {
  IRMapping here;
  for (auto [gather, chunk] : llvm::zip_equal(gathers, chunks))
    here.map(gather->getResult(0), chunk);
  return here;
}

/// Attributes of the plan that hold of each step, too.
void AttentionRingLoop::keep(Operation *op) {
  for (StringRef name : {shd::kGroup, shd::kDealt})
    if (Attribute known = attention->getAttr(name))
      op->setAttr(name, known);
  keepShards(op, attention, attention.getKey());
}

void AttentionRingLoop::makeStep(Operation *op, int64_t step, bool isInLoop) {
  keep(op);
  SmallVector<Attribute> shards;
  if (auto known = op->getAttrOfType<ArrayAttr>(kShards))
    llvm::append_range(shards, known);
  SmallVector<StringAttr> names(axes.getAsRange<StringAttr>());
  shards.push_back(ShardAttr::get(builder.getContext(), attention.getKey(),
                                  keys, names, step, isInLoop));
  op->setAttr(kShards, builder.getArrayAttr(shards));
}

Value AttentionRingLoop::elementwise(shd::Function function,
                                     ArrayRef<Value> values,
                                     ArrayRef<ArrayAttr> indices,
                                     ArrayAttr result, Type type) {
  auto op = shd::ElementwiseOp::create(
      builder, loc, type, function, ValueRange(values),
      shd::IndexingAttr::get(builder.getContext(), indices, {result}));
  keep(op);
  return op;
}

Value AttentionRingLoop::castTo(Type type, Value value, ArrayAttr indices) {
  if (value.getType() == type)
    return value;
  return elementwise(shd::Function::Cast, {value}, {indices}, indices, type);
}

void AttentionRingLoop::replace(OpResult result, Value value) {
  for (StringRef name : {StringRef(shd::kName), StringRef(kGlobal)})
    if (Attribute known = shd::getResultAttr(result, name))
      shd::setResultAttr(cast<OpResult>(value), name, known);
  result.replaceAllUsesWith(value);
}

void AttentionRingLoop::keepStage(Operation *before) {
  Attribute stage = attention->getAttr(shd::kStage);
  if (!stage)
    return;
  Operation *op =
      before ? before->getNextNode() : &attention->getBlock()->front();
  for (; op != attention; op = op->getNextNode())
    op->walk([&](Operation *made) {
      if (!made->hasTrait<OpTrait::IsTerminator>())
        made->setAttr(shd::kStage, stage);
    });
}
