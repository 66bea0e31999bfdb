//===- ShdEvaluationGather.cpp - What gather and scatter compute ----------===//

#include "Evaluation.h"
#include "shardc/Dialect/Shd/IR/Order.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

using Operands = ArrayRef<const Tensor *>;
using Ranges = ArrayRef<FactorRange>;

namespace {
/// The elements of a tensor that positions name: for each element of the
/// positions' indices, where its first element stands in the tensor.
struct Places {
  /// Along the positions' indices, in `offsets`.
  FactorStrides strides;
  /// Negative for an element that this device does not have.
  std::vector<int64_t> offsets;
};
} // namespace

/// The factors of the positions' indices, in order of appearance.
static FactorList positionFactors(const IterationSpace &space, unsigned first) {
  FactorList factors;
  for (unsigned i = first; i < space.getRule().operands.size(); ++i)
    llvm::append_range(factors, without(space.operandFactors(i), factors));
  return factors;
}

/// The dimensions `dims` of the tensor with the indices `names` and the strides
/// `table`, at the positions in the operands from `first` on. Every position is
/// looked at once.
static FailureOr<Places>
findPlaces(ShardingRuleOpInterface op, const IterationSpace &space,
           ArrayRef<StringRef> names, const FactorStrides &table,
           Operands operands, unsigned first, ArrayRef<int64_t> dims,
           PositionPolicy policy) {
  constexpr int64_t elsewhere = -1;
  FactorList factors = positionFactors(space, first);
  Places places;
  places.strides = space.packedStrides(factors);
  places.offsets.assign(space.size(factors), 0);
  bool ok = true;
  for (auto [i, dim] : llvm::enumerate(dims)) {
    StringRef index = names[dim];
    unsigned factor = space.find(index);
    const FactorRange &range = space.range(factor);
    const Tensor &positions = *operands[first + i];
    PositionOrder order = positionOrder(op, index, range.whole);
    Loop<2> loop(space, factors,
                 {places.strides, space.operandStrides(first + i)});
    loop.run([&](const Loop<2>::Offsets &at) {
      if (!ok)
        return;
      FailureOr<int64_t> position = resolvePosition(
          op, positions.getInteger(at[1]), index, range.whole, policy);
      ok = succeeded(position);
      if (!ok)
        return;
      int64_t local = order.storedAt(*position) - range.offset;
      int64_t &offset = places.offsets[at[0]];
      if (local < 0 || local >= range.size || offset == elsewhere)
        offset = elsewhere;
      else
        offset += local * table[factor];
    });
  }
  if (!ok)
    return failure();
  return places;
}

/// Elements that another device has count as 0.
FailureOr<TensorList> GatherOp::evaluate(Operands operands, Ranges ranges,
                                         PositionPolicy policy) {
  constexpr unsigned firstPosition = 1;
  IterationSpace space(*this, ranges);
  FailureOr<Places> places = findPlaces(
      *this, space, getIndexing().getOperandIndices(0), space.operandStrides(0),
      operands, firstPosition, getDims(), policy);
  if (failed(places))
    return failure();
  Tensor result = makeResult(*this);
  Loop<3> loop(
      space, space.resultFactors(),
      {space.resultStrides(), space.operandStrides(0), places->strides});
  loop.run([&](const Loop<3>::Offsets &at) {
    if (int64_t place = places->offsets[at[2]]; place >= 0)
      result.setReal(at[0], operands[0]->getReal(at[1] + place));
  });
  return oneResult(std::move(result));
}

/// The indices of the update in the order in which the left side of the
/// statement has them: those of the destination, where it is written at
/// positions theirs.
static FactorList writingOrder(ScatterOp op, const IterationSpace &space,
                               unsigned firstPosition) {
  FactorList order;
  for (auto [dim, factor] : llvm::enumerate(space.operandFactors(0))) {
    const int64_t *at = llvm::find(op.getDims(), static_cast<int64_t>(dim));
    FactorList factors{factor};
    if (at != op.getDims().end())
      factors =
          space.operandFactors(firstPosition + (at - op.getDims().begin()));
    llvm::append_range(order, without(factors, order));
  }
  return order;
}

static Tensor copyOf(const IterationSpace &space, const Tensor &tensor,
                     Operation *op) {
  Tensor result = makeResult(op);
  Loop<2> loop(space, space.resultFactors(),
               {space.resultStrides(), space.operandStrides(0)});
  loop.run([&](const Loop<2>::Offsets &at) {
    result.setReal(at[0], tensor.getReal(at[1]));
  });
  return result;
}

/// Writes what falls into this device's part, in row-major order of the left
/// side's indices: the last of equal positions wins.
FailureOr<TensorList> ScatterOp::evaluate(Operands operands, Ranges ranges,
                                          PositionPolicy policy) {
  constexpr unsigned firstPosition = 2;
  IterationSpace space(*this, ranges);
  FailureOr<Places> places = findPlaces(
      *this, space, getIndexing().getOperandIndices(0), space.operandStrides(0),
      operands, firstPosition, getDims(), policy);
  if (failed(places))
    return failure();
  Tensor result = copyOf(space, *operands[0], *this);
  const Tensor &update = *operands[1];
  Loop<3> loop(
      space, writingOrder(*this, space, firstPosition),
      {space.resultStrides(), space.operandStrides(1), places->strides});
  loop.run([&](const Loop<3>::Offsets &at) {
    int64_t place = places->offsets[at[2]];
    if (place < 0)
      return;
    int64_t to = at[0] + place;
    if (!getAccumulate())
      result.setReal(to, update.getReal(at[1]));
    else if (result.isReal())
      result.setReal(to, result.getReal(to) + update.getReal(at[1]));
    else
      result.setInteger(to, result.getInteger(to) + update.getInteger(at[1]));
  });
  return oneResult(std::move(result));
}

/// Adds what falls into this device's part of the result.
FailureOr<TensorList> ScatterSumOp::evaluate(Operands operands, Ranges ranges,
                                             PositionPolicy policy) {
  constexpr unsigned firstPosition = 1;
  IterationSpace space(*this, ranges);
  FailureOr<Places> places = findPlaces(
      *this, space, getIndexing().getResultIndices(0), space.resultStrides(),
      operands, firstPosition, getDims(), policy);
  if (failed(places))
    return failure();
  Tensor result = makeResult(*this);
  Loop<3> loop(
      space, space.operandFactors(0),
      {space.resultStrides(), space.operandStrides(0), places->strides});
  loop.run([&](const Loop<3>::Offsets &at) {
    if (int64_t place = places->offsets[at[2]]; place >= 0)
      result.setReal(at[0] + place, result.getReal(at[0] + place) +
                                        operands[0]->getReal(at[1]));
  });
  return oneResult(std::move(result));
}
