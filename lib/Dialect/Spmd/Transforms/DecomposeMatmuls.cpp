//===- DecomposeMatmuls.cpp - spmd-decompose-matmuls ----------------------===//
//
// The pass's description shows the loops. A loop moves one chunk and computes
// with the one before, so that the two overlap.
//
//===----------------------------------------------------------------------===//

#include "RingLoop.h"
#include "mlir/IR/IRMapping.h"
#include "shardc/Dialect/Shd/IR/CollectiveMatmul.h"
#include "shardc/Dialect/Shd/IR/Explicit.h"
#include "shardc/Dialect/Spmd/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using shardc::shd::CollectiveMatmul;
using shardc::shd::ShardingRuleOpInterface;

namespace shardc::spmd {
#define GEN_PASS_DEF_SPMDDECOMPOSEMATMULS
#include "shardc/Dialect/Spmd/Transforms/Passes.h.inc"

namespace {

shd::IndexingAttr indexingOf(Operation *op) {
  return cast<shd::ShardingRuleOpInterface>(op).getIndexing();
}

/// The dimension with an index.
std::optional<int64_t> dimOf(ArrayRef<StringRef> indices, StringRef index) {
  const auto *it = llvm::find(indices, index);
  if (it == indices.end())
    return std::nullopt;
  return it - indices.begin();
}

/// Builds the ring of one matmul and erases what it stands for.
class RingBuilder : RingLoop {
public:
  RingBuilder(const Mesh &mesh, ShardingRuleOpInterface matmul,
              Operation *collective, const CollectiveMatmul &ring)
      : RingLoop(mesh, ring.axes, matmul), matmul(matmul),
        collective(collective), ring(ring) {}

  void buildGather();
  void buildScatter();

private:
  /// The values that an iteration of a gather carries.
  struct Gathered {
    Value chunk, product, whole;
  };

  Value position(Value iteration, int64_t plus);
  Value add(Value sum, Value term, Operation *like, StringRef without);
  Value chunkOf(const CollectiveMatmul::Part &part, Value at,
                const IRMapping &chunks);
  Gathered useChunk(const Gathered &carried, Value at);
  Value scatterChunk(Value at);

  ShardingRuleOpInterface matmul;
  Operation *collective;
  const CollectiveMatmul &ring;
};

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

Value RingBuilder::position(Value iteration, int64_t plus) {
  return RingPositionOp::create(builder, loc, iteration.getType(), iteration,
                                plus, axes);
}

/// The sum of two results of `like`, or of chunks of them.
Value RingBuilder::add(Value sum, Value term, Operation *like,
                       StringRef without) {
  ArrayAttr indices = indexingOf(like).getResults().front();
  auto indexing = shd::IndexingAttr::get(builder.getContext(),
                                         {indices, indices}, {indices});
  auto op = shd::ElementwiseOp::create(builder, loc, sum.getType(),
                                       shd::Function::Add,
                                       ValueRange{sum, term}, indexing);
  if (Attribute group = matmul->getAttr(shd::kGroup))
    op->setAttr(shd::kGroup, group);
  keepShards(op, like, without);
  return op;
}

/// A chunk of what an operation computes, from chunks of what it takes: those
/// that are there, and parts of what has the index.
Value RingBuilder::chunkOf(const CollectiveMatmul::Part &part, Value at,
                           const IRMapping &chunks) {
  shd::IndexingAttr indexing = indexingOf(part.op);
  auto divide = [&](RankedTensorType type, int64_t dim) {
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] /= size;
    return type.clone(shape);
  };
  SmallVector<Value> operands;
  for (auto [i, operand] : llvm::enumerate(part.op->getOperands())) {
    std::optional<int64_t> dim =
        dimOf(indexing.getOperandIndices(i), part.index);
    if (Value chunk = chunks.lookupOrNull(operand))
      operands.push_back(chunk);
    else if (dim)
      operands.push_back(ChunkOp::create(
          builder, loc, divide(cast<RankedTensorType>(operand.getType()), *dim),
          operand, at, *dim));
    else
      operands.push_back(operand);
  }
  Operation *copy = builder.clone(*part.op);
  copy->setOperands(operands);
  Value result = onlyResult(copy);
  if (std::optional<int64_t> dim =
          dimOf(indexing.getResultIndices(0), part.index))
    result.setType(divide(cast<RankedTensorType>(result.getType()), *dim));
  copy->removeAttr(shd::kRing);
  copy->removeAttr(kGlobal);
  keepShards(copy, part.op, part.index);
  return result;
}

//===----------------------------------------------------------------------===//
// The two rings
//===----------------------------------------------------------------------===//

/// Computes with the chunk that is here, and keeps it if others read the whole.
RingBuilder::Gathered RingBuilder::useChunk(const Gathered &carried, Value at) {
  const CollectiveMatmul::Part &part = ring.parts.front();
  IRMapping chunks;
  chunks.map(onlyResult(collective), carried.chunk);
  Value product = chunkOf(part, at, chunks);
  Gathered result = carried;
  if (std::optional<int64_t> dim =
          dimOf(matmul.getIndexing().getResultIndices(0), part.index))
    result.product = PlaceOp::create(builder, loc, carried.product.getType(),
                                     product, carried.product, at, *dim);
  else
    result.product = add(carried.product, product, matmul, part.index);
  if (carried.whole) {
    unsigned operand = *shd::movedOperand(matmul, collective);
    int64_t dim =
        *dimOf(matmul.getIndexing().getOperandIndices(operand), part.index);
    result.whole = PlaceOp::create(builder, loc, carried.whole.getType(),
                                   carried.chunk, carried.whole, at, dim);
  }
  return result;
}

void RingBuilder::buildGather() {
  Value gathered = onlyResult(collective);
  unsigned operand = *shd::movedOperand(matmul, collective);
  shd::IndexingAttr indexing = matmul.getIndexing();
  SmallVector<Value> inits = {
      collective->getOperand(0),
      zeros(cast<RankedTensorType>(onlyResult(matmul).getType()),
            indexing.getResultIndices(0))};
  bool hasOthers = !gathered.hasOneUse();
  if (hasOthers)
    inits.push_back(zeros(cast<RankedTensorType>(gathered.getType()),
                          indexing.getOperandIndices(operand)));

  Block *body = nullptr;
  shd::RepeatOp loop = addLoop(inits, body);
  auto carriedIn = [&](ValueRange values) {
    return Gathered{values[0], values[1], hasOthers ? values[2] : Value()};
  };
  Value next = shift(body->getArgument(1), collective);
  Gathered made = useChunk(carriedIn(body->getArguments().drop_front()),
                           position(body->getArgument(0), 0));
  SmallVector<Value> yielded = {next, made.product};
  if (hasOthers)
    yielded.push_back(made.whole);
  shd::YieldOp::create(builder, loc, yielded);

  builder.setInsertionPointAfter(loop);
  Gathered last =
      useChunk(carriedIn(loop.getResults()), position(number(0), size - 1));
  Operation *result = last.product.getDefiningOp();
  for (StringRef name : {StringRef(shd::kName), StringRef(shd::kTemporary),
                         StringRef(shd::kGroup), StringRef(kGlobal)})
    if (Attribute known = matmul->getAttr(name))
      result->setAttr(name, known);
  onlyResult(matmul).replaceAllUsesWith(last.product);
  matmul.erase();
  if (hasOthers) {
    for (StringRef name : {shd::kOperand, shd::kIndices})
      if (Attribute known = collective->getAttr(name))
        last.whole.getDefiningOp()->setAttr(name, known);
    last.whole.getDefiningOp()->setAttr(
        kGlobal, cast<AllGatherOp>(collective).getToAttr());
    gathered.replaceAllUsesWith(last.whole);
  }
  collective->erase();
}

/// This device's summand of a chunk.
Value RingBuilder::scatterChunk(Value at) {
  IRMapping chunks;
  for (const CollectiveMatmul::Part &part : ring.parts)
    chunks.map(onlyResult(part.op), chunkOf(part, at, chunks));
  return chunks.lookup(onlyResult(ring.parts.back().op));
}

void RingBuilder::buildScatter() {
  builder.setInsertionPoint(collective);
  Value first = scatterChunk(position(number(0), 1));
  Block *body = nullptr;
  shd::RepeatOp loop = addLoop(first, body);
  Value moved = shift(body->getArgument(1), collective);
  Value own = scatterChunk(position(body->getArgument(0), 2));
  const CollectiveMatmul::Part &last = ring.parts.back();
  shd::YieldOp::create(builder, loc, add(moved, own, last.op, last.index));
  loop->setAttr(kGlobal, cast<ReduceScatterOp>(collective).getToAttr());
  onlyResult(collective).replaceAllUsesWith(onlyResult(loop));
  collective->erase();
  for (const CollectiveMatmul::Part &part : llvm::reverse(ring.parts))
    part.op->erase();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// The operations that carry one number.
struct Marked {
  SmallVector<ShardingRuleOpInterface, 1> matmuls;
  SmallVector<Operation *, 1> collectives;
};

shd::Movement movementOf(Operation *collective) {
  auto type = [&](StringRef name) {
    return cast<RankedTensorType>(
        collective->getAttrOfType<TypeAttr>(name).getValue());
  };
  return {collective, collectiveKind(collective), type("from"), type("to")};
}

class DecomposeMatmulsPass
    : public impl::SpmdDecomposeMatmulsBase<DecomposeMatmulsPass> {
protected:
  void runOnOperation() override;
};

/// The axes that an all_gather of keys or values takes off their index; nothing
/// if that is not all it does, or attention has no steps between which it may
/// travel.
std::optional<AxisList> ringOf(const Mesh &mesh, shd::AttentionOp attention,
                               Operation *gather) {
  auto op = dyn_cast<AllGatherOp>(gather);
  if (!op || attention.getAt() || attention.getWindow() ||
      attention.getSink() || attention.getBias() ||
      op->getBlock() != attention->getBlock() ||
      !llvm::all_of(op->getUsers(),
                    [&](Operation *user) { return user == attention; }))
    return std::nullopt;
  shd::Movement moved = movementOf(gather);
  Layout from = shd::explicitLayout(mesh, moved.from),
         to = shd::explicitLayout(mesh, moved.to);
  std::optional<AxisList> axes;
  for (OpOperand &use : op.getResult().getUses()) {
    auto names =
        attention.getIndexing().getOperandIndices(use.getOperandNumber());
    for (auto [dim, name] : llvm::enumerate(names)) {
      if (from.dims[dim] == to.dims[dim])
        continue;
      // The parts are equal, so that each step has as many keys.
      if (name != attention.getKey() || !to.dims[dim].empty() ||
          moved.from.getDimSize(dim) % mesh.groupSize(from.dims[dim]) != 0)
        return std::nullopt;
      axes = from.dims[dim];
    }
  }
  return axes;
}

/// Attention whose keys and values, or both in one, are gathered over the same
/// axes, and travel in place of that.
LogicalResult decomposeAttention(const Mesh &mesh, shd::AttentionOp attention,
                                 const Marked &marked) {
  if (marked.matmuls.size() != 1 || marked.collectives.empty())
    return attention.emitError()
           << "'" << shd::kRing << "' must mark one attention and the "
           << "all_gathers of its keys and values";
  std::optional<AxisList> axes;
  for (Operation *gather : marked.collectives) {
    std::optional<AxisList> ring = ringOf(mesh, attention, gather);
    if (!ring || (axes && *axes != *ring)) {
      InFlightDiagnostic error = attention.emitError(
          "the attention and its collectives cannot run in chunks around a "
          "ring");
      error.attachNote(gather->getLoc()) << "the collective";
      return error;
    }
    axes = ring;
  }
  buildAttentionRing(mesh, *axes, attention, marked.collectives);
  return success();
}

LogicalResult decompose(const Mesh &mesh, const Marked &marked) {
  Operation *any = marked.matmuls.empty() ? marked.collectives.front()
                                          : marked.matmuls.front();
  if (auto attention = dyn_cast<shd::AttentionOp>(any))
    return decomposeAttention(mesh, attention, marked);
  if (marked.matmuls.size() != 1 || marked.collectives.size() != 1)
    return any->emitError()
           << "'" << shd::kRing << "' must mark one einsum and "
           << "one collective, but marks " << marked.matmuls.size() << " and "
           << marked.collectives.size();
  ShardingRuleOpInterface matmul = marked.matmuls.front();
  Operation *collective = marked.collectives.front();
  std::optional<CollectiveMatmul> ring =
      matchCollectiveMatmul(mesh, matmul, movementOf(collective));
  if (!ring) {
    InFlightDiagnostic error =
        matmul.emitError("the einsum and its collective cannot run in chunks "
                         "around a ring");
    error.attachNote(collective->getLoc()) << "the collective";
    return error;
  }
  RingBuilder builder(mesh, matmul, collective, *ring);
  if (isa<AllGatherOp>(collective))
    builder.buildGather();
  else
    builder.buildScatter();
  return success();
}

void DecomposeMatmulsPass::runOnOperation() {
  llvm::MapVector<Attribute, Marked> marks;
  getOperation()->walk([&](Operation *op) {
    Attribute mark = op->getAttr(shd::kRing);
    if (!mark)
      return;
    if (auto matmul = dyn_cast<ShardingRuleOpInterface>(op))
      marks[mark].matmuls.push_back(matmul);
    else
      marks[mark].collectives.push_back(op);
  });
  Mesh mesh = meshOf(getOperation());
  for (auto &[mark, marked] : marks)
    if (failed(decompose(mesh, marked)))
      return signalPassFailure();
}

} // namespace
} // namespace shardc::spmd
