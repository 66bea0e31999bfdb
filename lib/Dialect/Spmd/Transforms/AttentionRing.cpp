//===- AttentionRing.cpp - Attention in steps around a ring ---------------===//
//
// Each step attends to the keys that are here, while they move on, and adds to
// what the steps before have: with logsumexps l and l' of their scores, results
// o and o' have the weights exp(l - n) and exp(l' - n) in the result of both, n
// = log(exp l + exp l') (Liu et al. 2023, arXiv 2310.01889).
//
//===----------------------------------------------------------------------===//

#include "RingLoop.h"
#include "mlir/IR/IRMapping.h"
#include "shardc/Dialect/Shd/IR/Order.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::spmd;
using shd::Function;

namespace {

class AttentionRingBuilder : RingLoop {
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
  Value elementwise(Function function, ArrayRef<Value> values,
                    ArrayRef<ArrayAttr> indices, ArrayAttr result);
  ArrayAttr shardsOfStep(Operation *op, int64_t step, bool isInLoop);
  void keep(Operation *op);
  void keepStage(Operation *before);

  shd::AttentionOp attention;
  ArrayRef<Operation *> gathers;
  /// Indices of the result and of the queries.
  ArrayAttr ofResult, ofQueries;
  RankedTensorType resultType, logSumExpType;
  /// The whole extent of the keys.
  int64_t keys = 0;
};

AttentionRingBuilder::AttentionRingBuilder(const Mesh &mesh,
                                           ArrayRef<AxisIndex> ring,
                                           shd::AttentionOp attention,
                                           ArrayRef<Operation *> gathers)
    : RingLoop(mesh, ring, attention), attention(attention), gathers(gathers) {
  shd::IndexingAttr indexing = attention.getIndexing();
  ofResult = indexing.getResults().front();
  SmallVector<StringRef> queries;
  SmallVector<int64_t> shape;
  for (auto [index, extent] : llvm::zip_equal(
           indexing.getOperandIndices(shd::AttentionOp::kQueryOperand),
           attention.getQ().getType().getShape()))
    if (index != attention.getHead()) {
      queries.push_back(index);
      shape.push_back(extent);
    }
  ofQueries = builder.getStrArrayAttr(queries);
  logSumExpType = RankedTensorType::get(shape, builder.getF32Type());
  resultType = RankedTensorType::get(attention.getResult().getType().getShape(),
                                     builder.getF32Type());
  auto names = indexing.getOperandIndices(shd::AttentionOp::kKeyOperand);
  const auto *at = llvm::find(names, attention.getKey());
  keys = attention.getK().getType().getDimSize(at - names.begin());
}

/// What a plan knows of the attention is true of each of its steps.
void AttentionRingBuilder::keep(Operation *op) {
  for (StringRef name : {shd::kGroup, shd::kDealt})
    if (Attribute known = attention->getAttr(name))
      op->setAttr(name, known);
}

/// The keys of a step are those of the device that is so many places further
/// on.
ArrayAttr AttentionRingBuilder::shardsOfStep(Operation *op, int64_t step,
                                             bool isInLoop) {
  keepShards(op, attention, attention.getKey());
  SmallVector<Attribute> shards;
  if (auto known = op->getAttrOfType<ArrayAttr>(kShards))
    llvm::append_range(shards, known);
  SmallVector<StringAttr> names(axes.getAsRange<StringAttr>());
  shards.push_back(ShardAttr::get(builder.getContext(), attention.getKey(),
                                  keys, names, step, isInLoop));
  return builder.getArrayAttr(shards);
}

AttentionRingBuilder::Sum
AttentionRingBuilder::attend(ValueRange chunks, int64_t step, bool isInLoop) {
  IRMapping here;
  for (auto [gather, chunk] : llvm::zip_equal(gathers, chunks))
    here.map(gather->getResult(0), chunk);
  shd::IndexingAttr indexing = attention.getIndexing();
  auto op = shd::AttentionOp::create(
      builder, loc, resultType, logSumExpType, attention.getQ(),
      here.lookupOrDefault(Value(attention.getK())),
      here.lookupOrDefault(Value(attention.getV())), /*at=*/Value(),
      /*sink=*/Value(), /*bias=*/Value(),
      /*stats=*/ValueRange(),
      shd::IndexingAttr::get(builder.getContext(), indexing.getOperands(),
                             {ofResult, ofQueries}),
      attention.getHeadAttr(), attention.getKeyAttr(), attention.getQueryAttr(),
      attention.getCausalAttr(), attention.getWindowAttr(),
      attention.getScaleAttr(), attention.getSoftcapAttr());
  keep(op);
  op->setAttr(kShards, shardsOfStep(op, step, isInLoop));
  return {op.getResult(), op.getLogsumexp()};
}

Value AttentionRingBuilder::elementwise(Function function,
                                        ArrayRef<Value> values,
                                        ArrayRef<ArrayAttr> indices,
                                        ArrayAttr result) {
  auto op = shd::ElementwiseOp::create(
      builder, loc, result == ofResult ? resultType : logSumExpType, function,
      ValueRange(values),
      shd::IndexingAttr::get(builder.getContext(), indices, {result}));
  keep(op);
  keepShards(op, attention, attention.getKey());
  return op;
}

AttentionRingBuilder::Sum AttentionRingBuilder::merge(const Sum &before,
                                                      const Sum &more,
                                                      bool needsLogSumExp) {
  ArrayAttr q = ofQueries, r = ofResult;
  auto ofTwo = [&](Function function, Value a, Value b) {
    return elementwise(function, {a, b}, {q, q}, q);
  };
  auto ofOne = [&](Function function, Value a) {
    return elementwise(function, {a}, {q}, q);
  };
  Value greatest = ofTwo(Function::Maximum, before.logSumExp, more.logSumExp);
  auto share = [&](const Sum &sum) {
    return ofOne(Function::Exp, ofTwo(Function::Sub, sum.logSumExp, greatest));
  };
  Value first = share(before), second = share(more);
  Value all = ofTwo(Function::Add, first, second);
  auto weigh = [&](const Sum &sum, Value own) {
    return elementwise(Function::Mul,
                       {sum.result, ofTwo(Function::Div, own, all)}, {r, q}, r);
  };
  Value result = elementwise(
      Function::Add, {weigh(before, first), weigh(more, second)}, {r, r}, r);
  if (!needsLogSumExp)
    return {result, Value()};
  return {result, ofTwo(Function::Add, greatest, ofOne(Function::Log, all))};
}

void AttentionRingBuilder::finish(const Sum &sum) {
  Value result = sum.result;
  if (RankedTensorType type = attention.getResult().getType();
      type != resultType) {
    auto cast = shd::ElementwiseOp::create(
        builder, loc, type, Function::Cast, result,
        shd::IndexingAttr::get(builder.getContext(), {ofResult}, {ofResult}));
    keep(cast);
    keepShards(cast, attention, attention.getKey());
    result = cast;
  }
  auto describe = [&](Value to, Value from) {
    for (StringRef name : {StringRef(shd::kName), StringRef(kGlobal)})
      if (Attribute known = shd::getResultAttr(cast<OpResult>(from), name))
        shd::setResultAttr(cast<OpResult>(to), name, known);
  };
  describe(result, attention.getResult());
  if (Attribute known = attention->getAttr(shd::kTemporary))
    result.getDefiningOp()->setAttr(shd::kTemporary, known);
  attention.getResult().replaceAllUsesWith(result);
  if (attention.getLogsumexp()) {
    describe(sum.logSumExp, attention.getLogsumexp());
    attention.getLogsumexp().replaceAllUsesWith(sum.logSumExp);
  }
}

/// A pipeline's item that runs attention runs all that stands for it: what
/// follows `before`, or all from the beginning of the block.
void AttentionRingBuilder::keepStage(Operation *before) {
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

void AttentionRingBuilder::build() {
  Operation *before = attention->getPrevNode();
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
               bool(attention.getLogsumexp())));
  keepStage(before);
  attention.erase();
  for (Operation *gather : gathers)
    gather->erase();
}

} // namespace

void spmd::buildAttentionRing(const Mesh &mesh, ArrayRef<AxisIndex> axes,
                              shd::AttentionOp attention,
                              ArrayRef<Operation *> gathers) {
  AttentionRingBuilder(mesh, axes, attention, gathers).build();
}
