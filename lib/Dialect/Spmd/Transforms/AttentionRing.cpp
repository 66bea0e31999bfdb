//===- AttentionRing.cpp - Attention in steps around a ring ---------------===//
//
// A sink is there before the first step.
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

  Value firstLogSumExp(unsigned way);
  Sum attend(ValueRange chunks, int64_t step, bool isInLoop, unsigned way);
  /// Without a logsumexp if nothing reads it.
  Sum merge(const Sum &before, const Sum &more, bool needsLogSumExp = true);
  void finish(ArrayRef<Sum> sums);

  shd::AttentionOp whole;
  /// Indices of the result and of the queries.
  ArrayAttr ofResult, ofQueries;
  /// The types of one way.
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
  logSumExpType =
      typeOfPart(RankedTensorType::get(shape, builder.getF32Type()), ofQueries);
  resultType = typeOfPart(
      whole.getResult().getType().clone(builder.getF32Type()), ofResult);
}

AttentionRingBuilder::Sum AttentionRingBuilder::attend(ValueRange chunks,
                                                       int64_t step,
                                                       bool isInLoop,
                                                       unsigned way) {
  IRMapping map = here(chunks, way);
  auto op = shd::AttentionOp::create(
      builder, loc, resultType, logSumExpType, map.lookup(Value(whole.getQ())),
      map.lookup(Value(whole.getK())), map.lookup(Value(whole.getV())),
      /*at=*/Value(),
      /*key_at=*/Value(), /*sink=*/Value(), /*bias=*/Value(),
      /*stats=*/ValueRange(),
      shd::IndexingAttr::get(
          builder.getContext(),
          ArrayRef(indexing().getOperands())
              .take_front(shd::AttentionOp::kValueOperand + 1),
          {ofResult, ofQueries}),
      whole.getHeadAttr(), whole.getKeyAttr(), whole.getQueryAttr(),
      whole.getCausalAttr(), whole.getWindowAttr(), whole.getScaleAttr(),
      whole.getSoftcapAttr());
  makeStep(op, step, isInLoop, way);
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

void AttentionRingBuilder::finish(ArrayRef<Sum> sums) {
  SmallVector<Value, 2> results, logSumExps;
  for (const Sum &sum : sums) {
    results.push_back(castTo(typeOfPart(whole.getResult().getType(), ofResult),
                             sum.result, ofResult));
    logSumExps.push_back(sum.logSumExp);
  }
  Value result = join(results, ofResult);
  if (Attribute known = whole->getAttr(shd::kTemporary))
    result.getDefiningOp()->setAttr(shd::kTemporary, known);
  replace(cast<OpResult>(Value(whole.getResult())), result);
  if (whole.getLogsumexp())
    replace(cast<OpResult>(Value(whole.getLogsumexp())),
            join(logSumExps, ofQueries));
}

static SmallVector<StringRef> namesOf(ArrayAttr indices) {
  return llvm::to_vector(indices.getAsValueRange<StringAttr>());
}

/// Logsumexp before the first step: the score of a sink, which has no value, or
/// minus infinity.
Value AttentionRingBuilder::firstLogSumExp(unsigned way) {
  Value sink = whole.getSink();
  FloatAttr none =
      builder.getFloatAttr(builder.getF32Type(),
                           sink ? 0 : -std::numeric_limits<double>::infinity());
  Value first = fill(logSumExpType, namesOf(ofQueries), none);
  if (!sink)
    return first;
  ArrayAttr ofSink = indexing().getOperands()[whole.getSinkOperand()];
  Value part = ownPart(whole.getSinkOperand(), way);
  Type wide =
      cast<RankedTensorType>(part.getType()).clone(builder.getF32Type());
  return elementwise(Function::Add, {first, castTo(wide, part, ofSink)},
                     {ofQueries, ofSink}, ofQueries, logSumExpType);
}

void AttentionRingBuilder::build() {
  Operation *before = whole->getPrevNode();
  cutOperands();
  // By way: the chunks that travel, then what is known so far.
  SmallVector<Value> inits;
  for (unsigned way = 0; way < numWays(); ++way) {
    for (Operation *gather : gathers)
      inits.push_back(partOf(gather->getOperand(0), indicesOf(gather), way));
    inits.push_back(zeros(resultType, namesOf(ofResult)));
    inits.push_back(firstLogSumExp(way));
  }
  size_t travelling = gathers.size(), carriedByWay = travelling + 2;
  auto ofWay = [&](ValueRange values, unsigned way) {
    return values.slice(way * carriedByWay, carriedByWay);
  };
  Block *body = nullptr;
  shd::RepeatOp loop = addLoop(inits, body);
  ValueRange carried(body->getArguments().drop_front());
  SmallVector<SmallVector<Value, 4>, 2> next(numWays());
  for (unsigned way = 0; way < numWays(); ++way)
    for (auto [gather, chunk] : llvm::zip(gathers, ofWay(carried, way)))
      next[way].push_back(shift(chunk, gather, /*back=*/way == 1));
  /// With what attention to the chunks that are here adds.
  auto attendMore = [&](ValueRange values, int64_t step, bool isInLoop,
                        unsigned way, bool needsLogSumExp) {
    ValueRange own = ofWay(values, way);
    return merge({own[travelling], own[travelling + 1]},
                 attend(own.take_front(travelling), step, isInLoop, way),
                 needsLogSumExp);
  };
  SmallVector<Value> yielded;
  for (unsigned way = 0; way < numWays(); ++way) {
    Sum sum = attendMore(carried, 0, /*isInLoop=*/true, way,
                         /*needsLogSumExp=*/true);
    llvm::append_range(yielded, next[way]);
    yielded.append({sum.result, sum.logSumExp});
  }
  shd::YieldOp::create(builder, loc, yielded);

  builder.setInsertionPointAfter(loop);
  SmallVector<Sum, 2> sums;
  for (unsigned way = 0; way < numWays(); ++way)
    sums.push_back(attendMore(loop.getResults(), size - 1, /*isInLoop=*/false,
                              way, bool(whole.getLogsumexp())));
  finish(sums);
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
