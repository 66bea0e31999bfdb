//===- AttentionRingLoop.cpp - Steps of attention around a ring -----------===//

#include "AttentionRingLoop.h"
#include "shardc/Dialect/Shd/IR/Order.h"
#include "shardc/Dialect/Shd/IR/RingAttention.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::spmd;

AttentionRingLoop::AttentionRingLoop(const Mesh &mesh, ArrayRef<AxisIndex> ring,
                                     shd::AttentionOpInterface attention,
                                     ArrayRef<Operation *> gathers)
    : RingLoop(mesh, ring, attention), attention(attention), gathers(gathers),
      halved(shd::halvedIndex(gathers.front())) {
  auto names = indexing().getOperandIndices(shd::AttentionOp::kKeyOperand);
  const auto *at = llvm::find(names, attention.getKey());
  keys = cast<RankedTensorType>(attention.getK().getType())
             .getDimSize(at - names.begin());
}

shd::IndexingAttr AttentionRingLoop::indexing() {
  return cast<shd::ShardingRuleOpInterface>(attention.getOperation())
      .getIndexing();
}

//===----------------------------------------------------------------------===//
// Halves
//===----------------------------------------------------------------------===//

std::optional<int64_t> AttentionRingLoop::halvedDim(ArrayAttr indices) const {
  auto names = indices.getAsValueRange<StringAttr>();
  auto at = llvm::find(names, halved);
  if (halved.empty() || at == names.end())
    return std::nullopt;
  return std::distance(names.begin(), at);
}

ArrayAttr AttentionRingLoop::indicesOf(Operation *gather) {
  unsigned operand = gather->getUses().begin()->getOperandNumber();
  return indexing().getOperands()[operand];
}

RankedTensorType AttentionRingLoop::typeOfPart(Type whole, ArrayAttr indices) {
  auto type = cast<RankedTensorType>(whole);
  std::optional<int64_t> dim = halvedDim(indices);
  if (!dim)
    return type;
  SmallVector<int64_t> shape(type.getShape());
  shape[*dim] /= numWays();
  return type.clone(shape);
}

Value AttentionRingLoop::partOf(Value value, ArrayAttr indices, unsigned way) {
  std::optional<int64_t> dim = halvedDim(indices);
  if (!dim)
    return value;
  return ChunkOp::create(builder, loc, typeOfPart(value.getType(), indices),
                         value, number(way), *dim);
}

void AttentionRingLoop::cutOperands() {
  for (unsigned way = 0; way < numWays(); ++way) {
    SmallVector<Value, 6> &own = parts.emplace_back();
    for (auto [operand, value] : llvm::enumerate(attention->getOperands()))
      own.push_back(
          llvm::is_contained(gathers, value.getDefiningOp())
              ? Value()
              : partOf(value, indexing().getOperands()[operand], way));
  }
}

Value AttentionRingLoop::join(ArrayRef<Value> parts, ArrayAttr indices) {
  std::optional<int64_t> dim = halvedDim(indices);
  if (!dim)
    return parts.front();
  auto type = cast<RankedTensorType>(parts.front().getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[*dim] *= parts.size();
  Value whole = zeros(type.clone(shape),
                      llvm::to_vector(indices.getAsValueRange<StringAttr>()));
  for (auto [way, part] : llvm::enumerate(parts)) {
    auto place = PlaceOp::create(builder, loc, whole.getType(), part, whole,
                                 number(way), *dim);
    if (Attribute group = attention->getAttr(shd::kGroup))
      place->setAttr(shd::kGroup, group);
    whole = place;
  }
  return whole;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

IRMapping AttentionRingLoop::here(ValueRange chunks, unsigned way) const {
  IRMapping here;
  for (auto [gather, chunk] : llvm::zip_equal(gathers, chunks))
    here.map(gather->getResult(0), chunk);
  for (auto [operand, value] : llvm::enumerate(attention->getOperands()))
    if (!here.contains(value))
      here.map(value, parts[way][operand]);
  return here;
}

/// Attributes of the plan that hold of each step, too.
void AttentionRingLoop::keep(Operation *op) {
  for (StringRef name : {shd::kGroup, shd::kDealt})
    if (Attribute known = attention->getAttr(name))
      op->setAttr(name, known);
  keepShards(op, attention, attention.getKey());
  auto shards = op->getAttrOfType<ArrayAttr>(kShards);
  if (halved.empty() || !shards)
    return;
  // Positions along the halved index mean nothing to attention.
  SmallVector<Attribute> ofHalf;
  for (auto shard : shards.getAsRange<ShardAttr>())
    ofHalf.push_back(shard.getName() == halved
                         ? ShardAttr::get(builder.getContext(), halved,
                                          shard.getExtent() / numWays(),
                                          shard.getAxes())
                         : shard);
  op->setAttr(kShards, builder.getArrayAttr(ofHalf));
}

void AttentionRingLoop::makeStep(Operation *op, int64_t step, bool isInLoop,
                                 unsigned way) {
  keep(op);
  SmallVector<Attribute> shards;
  if (auto known = op->getAttrOfType<ArrayAttr>(kShards))
    llvm::append_range(shards, known);
  SmallVector<StringAttr> names(axes.getAsRange<StringAttr>());
  shards.push_back(ShardAttr::get(builder.getContext(), attention.getKey(),
                                  keys, names, step, isInLoop, /*halo=*/0,
                                  /*back=*/way == 1));
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
