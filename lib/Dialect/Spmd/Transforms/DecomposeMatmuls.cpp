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

/// The axes that a collective takes off the index of keys, or puts on it;
/// nothing if that is not all it does to the dimensions of a tensor.
std::optional<AxisList> axesOfKeys(const Mesh &mesh, Operation *collective,
                                   ArrayRef<StringRef> names, StringRef key) {
  shd::Movement moved = movementOf(collective);
  Layout parts = shd::explicitLayout(mesh, moved.from),
         whole = shd::explicitLayout(mesh, moved.to);
  if (isa<ReduceScatterOp>(collective))
    std::swap(parts, whole);
  std::optional<AxisList> axes;
  for (auto [dim, name] : llvm::enumerate(names)) {
    if (parts.dims[dim] == whole.dims[dim])
      continue;
    // The parts are equal, so that each step has as many keys.
    if (name != key || !whole.dims[dim].empty() ||
        moved.from.getDimSize(dim) % mesh.groupSize(parts.dims[dim]) != 0)
      return std::nullopt;
    axes = parts.dims[dim];
  }
  return axes;
}

bool isReadOnlyBy(Value value, Operation *reader) {
  return llvm::all_of(value.getUsers(),
                      [&](Operation *user) { return user == reader; });
}

/// The axes around which keys or values, or sums of their gradients, may travel
/// in place of a collective; nothing if they cannot.
std::optional<AxisList> ringOf(const Mesh &mesh, ShardingRuleOpInterface op,
                               Operation *collective) {
  StringRef key = cast<shd::AttentionOpInterface>(op.getOperation()).getKey();
  shd::IndexingAttr indexing = op.getIndexing();
  if (collective->getBlock() != op->getBlock())
    return std::nullopt;
  if (isa<ReduceScatterOp>(collective)) {
    auto sum = dyn_cast<OpResult>(collective->getOperand(0));
    if (!sum || sum.getOwner() != op || !isReadOnlyBy(sum, collective))
      return std::nullopt;
    return axesOfKeys(mesh, collective,
                      indexing.getResultIndices(sum.getResultNumber()), key);
  }
  if (!isa<AllGatherOp>(collective) ||
      !isReadOnlyBy(onlyResult(collective), op))
    return std::nullopt;
  std::optional<AxisList> axes;
  for (OpOperand &use : onlyResult(collective).getUses()) {
    axes = axesOfKeys(mesh, collective,
                      indexing.getOperandIndices(use.getOperandNumber()), key);
    if (!axes)
      break;
  }
  return axes;
}

/// True if attention has steps between which keys may travel, and whoever reads
/// sums that travel reads them added up.
bool hasSteps(shd::AttentionOpInterface attention,
              ArrayRef<Operation *> scatters) {
  if (attention.getAt() || attention.getKeyAt() || attention.getWindow() ||
      attention.getBias())
    return false;
  if (isa<shd::AttentionOp>(attention.getOperation()))
    return true;
  auto gradient = cast<shd::AttentionGradOp>(attention.getOperation());
  return llvm::all_of(ValueRange{gradient.getDk(), gradient.getDv()},
                      [&](Value sum) {
                        return llvm::any_of(scatters, [&](Operation *scatter) {
                          return scatter->getOperand(0) == sum;
                        });
                      });
}

/// Attention whose keys and values, or both in one, are gathered over the same
/// axes, and travel in place of that; likewise its gradient.
LogicalResult decomposeAttention(const Mesh &mesh,
                                 shd::AttentionOpInterface attention,
                                 const Marked &marked) {
  if (marked.matmuls.size() != 1 || marked.collectives.empty())
    return attention->emitError()
           << "'" << shd::kRing << "' must mark one attention and the "
           << "collectives of its keys and values";
  SmallVector<Operation *, 2> gathers, scatters;
  for (Operation *collective : marked.collectives)
    (isa<ReduceScatterOp>(collective) ? scatters : gathers)
        .push_back(collective);
  std::optional<AxisList> axes;
  for (Operation *collective : marked.collectives) {
    std::optional<AxisList> ring;
    if (hasSteps(attention, scatters))
      ring = ringOf(mesh, marked.matmuls.front(), collective);
    if (!ring || (axes && *axes != *ring)) {
      InFlightDiagnostic error = attention->emitError(
          "the attention and its collectives cannot run in chunks around a "
          "ring");
      error.attachNote(collective->getLoc()) << "the collective";
      return error;
    }
    axes = ring;
  }
  if (auto forward = dyn_cast<shd::AttentionOp>(attention.getOperation()))
    buildAttentionRing(mesh, *axes, forward, gathers);
  else
    buildAttentionGradRing(mesh, *axes,
                           cast<shd::AttentionGradOp>(attention.getOperation()),
                           gathers, scatters);
  return success();
}

LogicalResult decompose(const Mesh &mesh, const Marked &marked) {
  Operation *any = marked.matmuls.empty() ? marked.collectives.front()
                                          : marked.matmuls.front();
  if (auto attention = dyn_cast<shd::AttentionOpInterface>(any))
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
