//===- AttentionRing.cpp - Attention in steps around a ring ---------------===//
//
// Each step attends to the keys that are here, while they move on, and adds to
// what the steps before have: with logsumexps l and l' of their scores, results
// o and o' have the weights exp(l - n) and exp(l' - n) in the result of both, n
// = log(exp l + exp l') (Liu et al. 2023, arXiv 2310.01889).
//
//===----------------------------------------------------------------------===//

#include "AttentionRingLoop.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::spmd;
using shd::Function;

namespace {

class AttentionRingBuilder : AttentionRingLoop {
public:
  AttentionRingBuilder(const Mesh &mesh, ArrayRef<AxisIndex> ring,
                       shd::AttentionOp attention,
                       ArrayRef<Operation *> gathers);

  void build();

private:
  /// What attention to some keys makes.
  struct Sum {
    Value result, logSumExp;
  };

  Sum attend(ValueRange chunks, int64_t step, bool isInLoop);
  /// Without a logsumexp if nothing reads it.
  Sum merge(const Sum &before, const Sum &more, bool needsLogSumExp = true);
  void finish(const Sum &sum);

  shd::AttentionOp whole;
  /// Indices of the result and of the queries.
  ArrayAttr ofResult, ofQueries;
  RankedTensorType resultType, logSumExpType;
};

AttentionRingBuilder::AttentionRingBuilder(const Mesh &mesh,
                                           ArrayRef<AxisIndex> ring,
                                           shd::AttentionOp attention,
                                           ArrayRef<Operation *> gathers)
    : AttentionRingLoop(mesh, ring, attention, gathers), whole(attention) {
  ofResult = indexing().getResults().front();
  SmallVector<StringRef> queries;
  SmallVector<int64_t> shape;
  for (auto [index, extent] : llvm::zip_equal(
           indexing().getOperandIndices(shd::AttentionOp::kQueryOperand),
           whole.getQ().getType().getShape()))
    if (index != whole.getHead()) {
      queries.push_back(index);
      shape.push_back(extent);
    }
  ofQueries = builder.getStrArrayAttr(queries);
  logSumExpType = RankedTensorType::get(shape, builder.getF32Type());
  resultType = RankedTensorType::get(whole.getResult().getType().getShape(),
                                     builder.getF32Type());
}

AttentionRingBuilder::Sum
AttentionRingBuilder::attend(ValueRange chunks, int64_t step, bool isInLoop) {
  IRMapping map = here(chunks);
  auto op = shd::AttentionOp::create(
      builder, loc, resultType, logSumExpType, whole.getQ(),
      map.lookupOrDefault(Value(whole.getK())),
      map.lookupOrDefault(Value(whole.getV())), /*at=*/Value(),
      /*key_at=*/Value(), /*sink=*/Value(), /*bias=*/Value(),
      /*stats=*/ValueRange(),
      shd::IndexingAttr::get(builder.getContext(), indexing().getOperands(),
                             {ofResult, ofQueries}),
      whole.getHeadAttr(), whole.getKeyAttr(), whole.getQueryAttr(),
      whole.getCausalAttr(), whole.getWindowAttr(), whole.getScaleAttr(),
      whole.getSoftcapAttr());
  makeStep(op, step, isInLoop);
  return {op.getResult(), op.getLogsumexp()};
}

AttentionRingBuilder::Sum AttentionRingBuilder::merge(const Sum &before,
                                                      const Sum &more,
                                                      bool needsLogSumExp) {
  ArrayAttr q = ofQueries, r = ofResult;
  auto ofTwo = [&](Function function, Value a, Value b) {
    return elementwise(function, {a, b}, {q, q}, q, logSumExpType);
  };
  auto ofOne = [&](Function function, Value a) {
    return elementwise(function, {a}, {q}, q, logSumExpType);
  };
  Value greatest = ofTwo(Function::Maximum, before.logSumExp, more.logSumExp);
  auto share = [&](const Sum &sum) {
    return ofOne(Function::Exp, ofTwo(Function::Sub, sum.logSumExp, greatest));
  };
  Value first = share(before), second = share(more);
  Value all = ofTwo(Function::Add, first, second);
  auto weigh = [&](const Sum &sum, Value own) {
    return elementwise(Function::Mul,
                       {sum.result, ofTwo(Function::Div, own, all)}, {r, q}, r,
                       resultType);
  };
  Value result =
      elementwise(Function::Add, {weigh(before, first), weigh(more, second)},
                  {r, r}, r, resultType);
  if (!needsLogSumExp)
    return {result, Value()};
  return {result, ofTwo(Function::Add, greatest, ofOne(Function::Log, all))};
}

void AttentionRingBuilder::finish(const Sum &sum) {
  Value result = castTo(whole.getResult().getType(), sum.result, ofResult);
  if (Attribute known = whole->getAttr(shd::kTemporary))
    result.getDefiningOp()->setAttr(shd::kTemporary, known);
  replace(cast<OpResult>(Value(whole.getResult())), result);
  if (whole.getLogsumexp())
    replace(cast<OpResult>(Value(whole.getLogsumexp())), sum.logSumExp);
}

void AttentionRingBuilder::build() {
  Operation *before = whole->getPrevNode();
  SmallVector<Value> inits;
  for (Operation *gather : gathers)
    inits.push_back(gather->getOperand(0));
  auto namesOf = [](ArrayAttr indices) {
    return llvm::to_vector(indices.getAsValueRange<StringAttr>());
  };
  inits.push_back(zeros(resultType, namesOf(ofResult)));
  inits.push_back(
      fill(logSumExpType, namesOf(ofQueries),
           builder.getFloatAttr(builder.getF32Type(),
                                -std::numeric_limits<double>::infinity())));
  size_t travelling = gathers.size();
  Block *body = nullptr;
  shd::RepeatOp loop = addLoop(inits, body);
  ValueRange carried(body->getArguments().drop_front());
  SmallVector<Value> yielded;
  for (auto [gather, chunk] :
       llvm::zip_equal(gathers, carried.take_front(travelling)))
    yielded.push_back(shift(chunk, gather));
  Sum sum = merge({carried[travelling], carried[travelling + 1]},
                  attend(carried.take_front(travelling), 0, /*isInLoop=*/true));
  yielded.append({sum.result, sum.logSumExp});
  shd::YieldOp::create(builder, loc, yielded);

  builder.setInsertionPointAfter(loop);
  ValueRange made = loop.getResults();
  Sum last = attend(made.take_front(travelling), size - 1, /*isInLoop=*/false);
  finish(merge({made[travelling], made[travelling + 1]}, last,
               bool(whole.getLogsumexp())));
  keepStage(before);
  whole.erase();
  for (Operation *gather : gathers)
    gather->erase();
}

} // namespace

void spmd::buildAttentionRing(const Mesh &mesh, ArrayRef<AxisIndex> axes,
                              shd::AttentionOp attention,
                              ArrayRef<Operation *> gathers) {
  AttentionRingBuilder(mesh, axes, attention, gathers).build();
}
