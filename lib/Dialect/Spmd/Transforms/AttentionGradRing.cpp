//===- AttentionGradRing.cpp - Attention's gradient around a ring ---------===//
//
// Each step has the gradients of all scores between the queries and the keys
// that are here. That of the queries is added up where it is; those of the keys
// and values that came by move on with them, one device behind: the sum of a
// chunk begins at the first device that its keys come to, and the last hop
// takes it home, where the device's own share waits. So all of them make N - 1
// hops.
//
//===----------------------------------------------------------------------===//

#include "AttentionRingLoop.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::spmd;
using shd::Function;

namespace {

class AttentionGradRingBuilder : AttentionRingLoop {
public:
  AttentionGradRingBuilder(const Mesh &mesh, ArrayRef<AxisIndex> ring,
                           shd::AttentionGradOp gradient,
                           ArrayRef<Operation *> gathers,
                           ArrayRef<Operation *> scatters)
      : AttentionRingLoop(mesh, ring, gradient, gathers), whole(gradient),
        scatters(scatters), ofQueries(indexing().getResults().front()),
        sumType(whole.getDq().getType().clone(builder.getF32Type())) {}

  void build();

private:
  /// The gradients of one step: of the queries, and by scatter of what travels.
  struct Gradients {
    Value queries;
    SmallVector<Value, 2> travelling;
  };

  Gradients step(ValueRange chunks, int64_t number, bool isInLoop);
  Value add(Value sum, Value term, ArrayAttr indices) {
    return elementwise(Function::Add, {sum, term}, {indices, indices}, indices,
                       sum.getType());
  }
  static OpResult summed(Operation *scatter) {
    return cast<OpResult>(scatter->getOperand(0));
  }
  ArrayAttr indicesOf(Operation *scatter) {
    return indexing().getResults()[summed(scatter).getResultNumber()];
  }
  void finish(ValueRange sums, const Gradients &own);

  shd::AttentionGradOp whole;
  ArrayRef<Operation *> scatters;
  ArrayAttr ofQueries;
  RankedTensorType sumType;
};

AttentionGradRingBuilder::Gradients
AttentionGradRingBuilder::step(ValueRange chunks, int64_t number,
                               bool isInLoop) {
  IRMapping map = here(chunks);
  Value k = map.lookupOrDefault(Value(whole.getK()));
  Value v = map.lookupOrDefault(Value(whole.getV()));
  auto like = [](RankedTensorType result, Value operand) {
    return result.clone(cast<RankedTensorType>(operand.getType()).getShape());
  };
  auto op = shd::AttentionGradOp::create(
      builder, loc,
      TypeRange{sumType, like(whole.getDk().getType(), k),
                like(whole.getDv().getType(), v)},
      whole.getQ(), k, v, whole.getOutput(), whole.getGradient(),
      whole.getLogsumexp(), /*at=*/Value(), /*key_at=*/Value(),
      /*bias=*/Value(), indexing(), whole.getHeadAttr(), whole.getKeyAttr(),
      whole.getQueryAttr(), whole.getCausalAttr(), whole.getWindowAttr(),
      whole.getScaleAttr(), whole.getSoftcapAttr());
  makeStep(op, number, isInLoop);
  Gradients made{op.getDq(), {}};
  for (Operation *scatter : scatters)
    made.travelling.push_back(op->getResult(summed(scatter).getResultNumber()));
  return made;
}

/// Adds a device's own share to the sums that have come home.
void AttentionGradRingBuilder::finish(ValueRange sums, const Gradients &own) {
  replace(cast<OpResult>(Value(whole.getDq())),
          castTo(whole.getDq().getType(), sums.front(), ofQueries));
  for (auto [scatter, sum, mine] :
       llvm::zip_equal(scatters, sums.drop_front(), own.travelling)) {
    Value all = add(sum, mine, indicesOf(scatter));
    for (StringRef name : {shd::kOperand, shd::kIndices})
      if (Attribute known = scatter->getAttr(name))
        all.getDefiningOp()->setAttr(name, known);
    all.getDefiningOp()->setAttr(kGlobal,
                                 cast<ReduceScatterOp>(scatter).getToAttr());
    onlyResult(scatter).replaceAllUsesWith(all);
  }
}

void AttentionGradRingBuilder::build() {
  Operation *before = whole->getPrevNode();
  size_t travelling = gathers.size();
  SmallVector<Value> inits;
  for (Operation *gather : gathers)
    inits.push_back(gather->getOperand(0));
  Gradients own = step(inits, 0, /*isInLoop=*/false);
  inits.push_back(own.queries);
  for (auto [scatter, mine] : llvm::zip_equal(scatters, own.travelling))
    inits.push_back(zeros(
        cast<RankedTensorType>(mine.getType()),
        llvm::to_vector(indicesOf(scatter).getAsValueRange<StringAttr>())));
  Block *body = nullptr;
  shd::RepeatOp loop = addLoop(inits, body);
  ValueRange carried(body->getArguments().drop_front());
  SmallVector<Value> yielded;
  for (auto [gather, chunk] :
       llvm::zip_equal(gathers, carried.take_front(travelling)))
    yielded.push_back(shift(chunk, gather));
  Gradients made = step(yielded, 1, /*isInLoop=*/true);
  ValueRange sums = carried.drop_front(travelling);
  yielded.push_back(add(sums.front(), made.queries, ofQueries));
  for (auto [scatter, sum, more] :
       llvm::zip_equal(scatters, sums.drop_front(), made.travelling))
    yielded.push_back(shift(add(sum, more, indicesOf(scatter)), scatter));
  shd::YieldOp::create(builder, loc, yielded);

  builder.setInsertionPointAfter(loop);
  finish(loop.getResults().drop_front(travelling), own);
  keepStage(before);
  for (Operation *scatter : scatters)
    scatter->erase();
  whole.erase();
  for (Operation *gather : gathers)
    gather->erase();
}

} // namespace

void spmd::buildAttentionGradRing(const Mesh &mesh, ArrayRef<AxisIndex> axes,
                                  shd::AttentionGradOp gradient,
                                  ArrayRef<Operation *> gathers,
                                  ArrayRef<Operation *> scatters) {
  AttentionGradRingBuilder(mesh, axes, gradient, gathers, scatters).build();
}
