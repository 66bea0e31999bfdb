//===- RingLoop.cpp - Loops in which chunks travel around a ring ----------===//

#include "RingLoop.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::spmd;

RingLoop::RingLoop(const Mesh &mesh, ArrayRef<AxisIndex> axes, Operation *at)
    : size(mesh.groupSize(axes)), builder(at), loc(at->getLoc()) {
  SmallVector<StringRef> names;
  for (AxisIndex axis : axes)
    names.push_back(mesh.axes[axis].name);
  this->axes = builder.getStrArrayAttr(names);
}

Value RingLoop::number(int64_t value) {
  auto type = RankedTensorType::get({}, builder.getI32Type());
  return shd::ConstantOp::create(
      builder, loc, type,
      DenseElementsAttr::get(type, builder.getI32IntegerAttr(int32_t(value))));
}

Value RingLoop::fill(RankedTensorType type, ArrayRef<StringRef> indices,
                     Attribute element) {
  auto scalar = RankedTensorType::get({}, type.getElementType());
  Value value = shd::ConstantOp::create(
      builder, loc, scalar, DenseElementsAttr::get(scalar, element));
  auto indexing =
      shd::IndexingAttr::get(builder.getContext(), {builder.getArrayAttr({})},
                             {builder.getStrArrayAttr(indices)});
  return shd::ElementwiseOp::create(builder, loc, type, shd::Function::Copy,
                                    value, indexing);
}

Value RingLoop::zeros(RankedTensorType type, ArrayRef<StringRef> indices) {
  return fill(type, indices, builder.getZeroAttr(type.getElementType()));
}

Value RingLoop::shift(Value value, Operation *collective, bool back) {
  auto op = RingShiftOp::create(builder, collective->getLoc(), value.getType(),
                                value, axes, back);
  for (StringRef name : {shd::kOperand, shd::kIndices})
    if (Attribute known = collective->getAttr(name))
      op->setAttr(name, known);
  op->setAttr(kRingOf,
              builder.getStringAttr(stringify(collectiveKind(collective))));
  return op;
}

void RingLoop::keepShards(Operation *op, Operation *like, StringRef without) {
  auto known = like->getAttrOfType<ArrayAttr>(kShards);
  if (!known)
    return;
  ShardingRule rule = cast<shd::ShardingRuleOpInterface>(op).getShardingRule();
  SmallVector<Attribute> kept;
  for (auto shard : known.getAsRange<ShardAttr>())
    if (shard.getName() != without && rule.findFactor(shard.getName()))
      kept.push_back(shard);
  if (kept.empty())
    op->removeAttr(kShards);
  else
    op->setAttr(kShards, builder.getArrayAttr(kept));
}

shd::RepeatOp RingLoop::addLoop(ValueRange inits, Block *&body) {
  auto loop = shd::RepeatOp::create(builder, loc, inits.getTypes(),
                                    builder.getStringAttr("ring"),
                                    builder.getI64IntegerAttr(size - 1),
                                    /*reverse=*/nullptr, inits);
  body = &loop.getBody().emplaceBlock();
  body->addArgument(RankedTensorType::get({}, builder.getI32Type()), loc);
  for (Value init : inits)
    body->addArgument(init.getType(), loc);
  builder.setInsertionPointToEnd(body);
  return loop;
}
