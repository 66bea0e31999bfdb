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
        sumType(typeOfPart(whole.getDq().getType().clone(builder.getF32Type()),
                           ofQueries)) {}

  void build();

private:
  /// The gradients of one step of a way: of the queries, and by scatter of what
  /// travels.
  struct Gradients {
    Value queries;
    SmallVector<Value, 2> travelling;
  };

  Gradients step(ValueRange chunks, int64_t number, bool isInLoop,
                 unsigned way);
  Value add(Value sum, Value term, ArrayAttr indices) {
    return elementwise(Function::Add, {sum, term}, {indices, indices}, indices,
                       sum.getType());
  }
  static OpResult summed(Operation *scatter) {
    return cast<OpResult>(scatter->getOperand(0));
  }
  ArrayAttr indicesOfSum(Operation *scatter) {
    return indexing().getResults()[summed(scatter).getResultNumber()];
  }
  void finish(ArrayRef<ValueRange> sums, ArrayRef<Gradients> own);

  shd::AttentionGradOp whole;
  ArrayRef<Operation *> scatters;
  ArrayAttr ofQueries;
  /// The type of one way.
  RankedTensorType sumType;
};

AttentionGradRingBuilder::Gradients
AttentionGradRingBuilder::step(ValueRange chunks, int64_t number, bool isInLoop,
                               unsigned way) {
  IRMapping map = here(chunks, way);
  Value k = map.lookup(Value(whole.getK()));
  Value v = map.lookup(Value(whole.getV()));
  auto like = [](RankedTensorType result, Value operand) {
    return result.clone(cast<RankedTensorType>(operand.getType()).getShape());
  };
  auto op = shd::AttentionGradOp::create(
      builder, loc,
      TypeRange{sumType, like(whole.getDk().getType(), k),
                like(whole.getDv().getType(), v)},
      map.lookup(Value(whole.getQ())), k, v,
      map.lookup(Value(whole.getOutput())),
      map.lookup(Value(whole.getGradient())),
      map.lookup(Value(whole.getLogsumexp())), /*at=*/Value(),
      /*key_at=*/Value(),
      /*bias=*/Value(), indexing(), whole.getHeadAttr(), whole.getKeyAttr(),
      whole.getQueryAttr(), whole.getCausalAttr(), whole.getWindowAttr(),
      whole.getScaleAttr(), whole.getSoftcapAttr());
  makeStep(op, number, isInLoop, way);
  Gradients made{op.getDq(), {}};
  for (Operation *scatter : scatters)
    made.travelling.push_back(op->getResult(summed(scatter).getResultNumber()));
  return made;
}

/// Adds a device's own share to the sums that have come home.
void AttentionGradRingBuilder::finish(ArrayRef<ValueRange> sums,
                                      ArrayRef<Gradients> own) {
  SmallVector<Value, 2> queries;
  for (ValueRange ofWay : sums)
    queries.push_back(castTo(typeOfPart(whole.getDq().getType(), ofQueries),
                             ofWay.front(), ofQueries));
  replace(cast<OpResult>(Value(whole.getDq())), join(queries, ofQueries));
  for (auto [number, scatter] : llvm::enumerate(scatters)) {
    ArrayAttr indices = indicesOfSum(scatter);
    SmallVector<Value, 2> parts;
    for (auto [ofWay, mine] : llvm::zip_equal(sums, own))
      parts.push_back(add(ofWay[1 + number], mine.travelling[number], indices));
    Value all = join(parts, indices);
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
  cutOperands();
  size_t travelling = gathers.size();
  // By way: the chunks that travel, the sum of the queries, and sums that
  // travel.
  size_t carriedByWay = travelling + 1 + scatters.size();
  SmallVector<Value> inits;
  SmallVector<Gradients, 2> own;
  for (unsigned way = 0; way < numWays(); ++way) {
    SmallVector<Value> chunks;
    for (Operation *gather : gathers)
      chunks.push_back(partOf(gather->getOperand(0), indicesOf(gather), way));
    own.push_back(step(chunks, 0, /*isInLoop=*/false, way));
    llvm::append_range(inits, chunks);
    inits.push_back(own.back().queries);
    for (auto [scatter, mine] :
         llvm::zip_equal(scatters, own.back().travelling))
      inits.push_back(
          zeros(cast<RankedTensorType>(mine.getType()),
                llvm::to_vector(
                    indicesOfSum(scatter).getAsValueRange<StringAttr>())));
  }
  Block *body = nullptr;
  shd::RepeatOp loop = addLoop(inits, body);
  SmallVector<Value> yielded;
  for (unsigned way = 0; way < numWays(); ++way) {
    bool back = way == 1;
    ValueRange carried = ValueRange(body->getArguments().drop_front())
                             .slice(way * carriedByWay, carriedByWay);
    SmallVector<Value> chunks;
    for (auto [gather, chunk] :
         llvm::zip_equal(gathers, carried.take_front(travelling)))
      chunks.push_back(shift(chunk, gather, back));
    Gradients made = step(chunks, 1, /*isInLoop=*/true, way);
    llvm::append_range(yielded, chunks);
    ValueRange sums = carried.drop_front(travelling);
    yielded.push_back(add(sums.front(), made.queries, ofQueries));
    for (auto [scatter, sum, more] :
         llvm::zip_equal(scatters, sums.drop_front(), made.travelling))
      yielded.push_back(
          shift(add(sum, more, indicesOfSum(scatter)), scatter, back));
  }
  shd::YieldOp::create(builder, loc, yielded);

  builder.setInsertionPointAfter(loop);
  SmallVector<ValueRange, 2> sums;
  for (unsigned way = 0; way < numWays(); ++way)
    sums.push_back(ValueRange(loop.getResults())
                       .slice(way * carriedByWay, carriedByWay)
                       .drop_front(travelling));
  finish(sums, own);
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
