//===- ShdEvaluation.cpp - What operations compute ------------------------===//
//
// Iteration spaces, constants, einsum and the operations that only move
// elements.
//
//===----------------------------------------------------------------------===//

#include "Evaluation.h"
#include "shardc/Dialect/Shd/IR/Gradient.h"
#include "shardc/Dialect/Shd/IR/Order.h"
#include <cmath>

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

using Operands = ArrayRef<const Tensor *>;
using Ranges = ArrayRef<FactorRange>;

//===----------------------------------------------------------------------===//
// Iteration spaces
//===----------------------------------------------------------------------===//

IterationSpace::IterationSpace(ShardingRuleOpInterface op, Ranges ranges)
    : rule(op.getShardingRule()), ranges(ranges) {
  assert(ranges.size() == rule.factors.size() && "one range per factor");
}

unsigned IterationSpace::find(StringRef index) const {
  std::optional<unsigned> factor = rule.findFactor(index);
  assert(factor && "the operation lacks an index");
  return *factor;
}

FactorStrides IterationSpace::stridesOf(const TensorFactors &dims) const {
  FactorStrides strides = noStrides();
  int64_t stride = 1;
  for (const DimFactors &dim : llvm::reverse(dims))
    for (unsigned factor : llvm::reverse(dim)) {
      strides[factor] = stride;
      stride *= rule.factors[factor].extent;
    }
  return strides;
}

FactorStrides IterationSpace::statisticStrides(unsigned number) const {
  TensorFactors dims;
  for (unsigned factor : rule.statistics[number].factors)
    dims.push_back({factor});
  return stridesOf(dims);
}

FactorStrides IterationSpace::counting(unsigned factor) const {
  FactorStrides strides = noStrides();
  strides[factor] = 1;
  return strides;
}

FactorStrides IterationSpace::packedStrides(ArrayRef<unsigned> factors) const {
  FactorStrides strides = noStrides();
  int64_t stride = 1;
  for (unsigned factor : llvm::reverse(factors)) {
    strides[factor] = stride;
    stride *= ranges[factor].size;
  }
  return strides;
}

FactorList IterationSpace::factorsOf(const TensorFactors &dims) {
  FactorList factors;
  for (const DimFactors &dim : dims)
    llvm::append_range(factors, dim);
  return factors;
}

FactorList IterationSpace::othersThan(ArrayRef<unsigned> factors) const {
  return without(llvm::to_vector<8>(llvm::seq<unsigned>(rule.factors.size())),
                 factors);
}

int64_t IterationSpace::size(ArrayRef<unsigned> factors) const {
  int64_t product = 1;
  for (unsigned factor : factors)
    product *= ranges[factor].size;
  return product;
}

int64_t IterationSpace::whole(ArrayRef<unsigned> factors) const {
  int64_t product = 1;
  for (unsigned factor : factors)
    product *= ranges[factor].whole;
  return product;
}

FactorList shd::without(ArrayRef<unsigned> list, ArrayRef<unsigned> dropped) {
  FactorList rest;
  for (unsigned factor : list)
    if (!llvm::is_contained(dropped, factor))
      rest.push_back(factor);
  return rest;
}

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

Tensor shd::makeResult(Operation *op) {
  return Tensor(cast<RankedTensorType>(onlyResult(op).getType()));
}

Tensor shd::makeResult(Operation *op, unsigned number) {
  return Tensor(cast<RankedTensorType>(op->getResult(number).getType()));
}

ArrayRef<double> shd::asReals(const Tensor &tensor,
                              std::vector<double> &storage) {
  if (tensor.isReal())
    return tensor.getReals();
  storage.assign(tensor.getIntegers().begin(), tensor.getIntegers().end());
  return storage;
}

bool shd::isExact(Operands operands, const Tensor &result) {
  return !result.isReal() && llvm::none_of(operands, [](const Tensor *operand) {
    return operand->isReal();
  });
}

FailureOr<int64_t> shd::resolvePosition(Operation *op, int64_t position,
                                        StringRef index, int64_t whole,
                                        PositionPolicy policy) {
  if (position >= 0 && position < whole)
    return position;
  if (policy == PositionPolicy::Wrap)
    return (position % whole + whole) % whole;
  return op->emitOpError() << "position " << position << " is not in index '"
                           << index << "' of extent " << whole;
}

/// Copies elements along `factors`.
static void copyElements(const IterationSpace &space,
                         ArrayRef<unsigned> factors, const Tensor &from,
                         const FactorStrides &fromStrides, int64_t fromStart,
                         Tensor &to, const FactorStrides &toStrides,
                         int64_t toStart) {
  Loop<2> loop(space, factors, {toStrides, fromStrides});
  loop.run({toStart, fromStart}, [&](const Loop<2>::Offsets &at) {
    // A double holds every integer of the language's types.
    to.setReal(at[0], from.getReal(at[1]));
  });
}

/// The elements of operand 0 at the same factors.
static Tensor rearrange(ShardingRuleOpInterface op, Operands operands,
                        Ranges ranges) {
  IterationSpace space(op, ranges);
  Tensor result = makeResult(op);
  copyElements(space, space.resultFactors(), *operands[0],
               space.operandStrides(0), 0, result, space.resultStrides(), 0);
  return result;
}

//===----------------------------------------------------------------------===//
// Constants and products
//===----------------------------------------------------------------------===//

FailureOr<TensorList> ConstantOp::evaluate(Operands, Ranges, PositionPolicy) {
  auto value = dyn_cast<DenseElementsAttr>(getValue());
  if (!value)
    return emitOpError() << "must be dense to be evaluated";
  Tensor result = makeResult(*this);
  if (result.isReal()) {
    llvm::APFloat number = *value.value_begin<llvm::APFloat>();
    bool losesInfo;
    number.convert(llvm::APFloat::IEEEdouble(),
                   llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    result.setReal(0, number.convertToDouble());
    if (auto exact = (*this)->getAttrOfType<FloatAttr>(kExact))
      result.setReal(0, exact.getValueAsDouble());
    if (auto extents = (*this)->getAttrOfType<DenseI64ArrayAttr>(kInverseOf))
      result.setReal(0, inverseOf(extents.asArrayRef()));
  } else {
    llvm::APInt number = *value.value_begin<llvm::APInt>();
    result.setInteger(0, static_cast<int64_t>(number.getZExtValue()));
  }
  return oneResult(std::move(result));
}

namespace {
/// The loops of an einsum: over the result's elements, and over what is summed
/// but the innermost of it.
struct EinsumLoops {
  Loop<3> outer;
  Loop<2> inner;
  int64_t innermostSize = 1, lhsStep = 0, rhsStep = 0;

  explicit EinsumLoops(const IterationSpace &space)
      : EinsumLoops(space, space.othersThan(space.resultFactors()),
                    space.operandStrides(0), space.operandStrides(1)) {}

private:
  EinsumLoops(const IterationSpace &space, const FactorList &summed,
              const FactorStrides &lhs, const FactorStrides &rhs)
      : outer(space, space.resultFactors(), {space.resultStrides(), lhs, rhs}),
        inner(space, ArrayRef(summed).drop_back(), {lhs, rhs}),
        innermostSize(space.range(summed.back()).size),
        lhsStep(lhs[summed.back()]), rhsStep(rhs[summed.back()]) {}
};
} // namespace

template <typename Number, typename Store>
static void contract(const EinsumLoops &loops, ArrayRef<Number> lhs,
                     ArrayRef<Number> rhs, Store store) {
  // Sums of integers wrap, which is defined for unsigned ones.
  using Sum = std::conditional_t<std::is_integral_v<Number>, uint64_t, Number>;
  loops.outer.run([&](const Loop<3>::Offsets &at) {
    Sum sum = 0;
    loops.inner.run({at[1], at[2]}, [&](const Loop<2>::Offsets &start) {
      int64_t left = start[0], right = start[1];
      for (int64_t step = 0; step < loops.innermostSize; ++step) {
        sum += static_cast<Sum>(lhs[left]) * static_cast<Sum>(rhs[right]);
        left += loops.lhsStep;
        right += loops.rhsStep;
      }
    });
    store(at[0], sum);
  });
}

FailureOr<TensorList> EinsumOp::evaluate(Operands operands, Ranges ranges,
                                         PositionPolicy) {
  IterationSpace space(*this, ranges);
  EinsumLoops loops(space);
  Tensor result = makeResult(*this);
  const Tensor &lhs = *operands[0], &rhs = *operands[1];
  if (isExact(operands, result)) {
    contract(loops, lhs.getIntegers(), rhs.getIntegers(),
             [&](int64_t at, uint64_t sum) {
               result.setInteger(at, static_cast<int64_t>(sum));
             });
    return oneResult(std::move(result));
  }
  std::vector<double> lhsStorage, rhsStorage;
  contract(loops, asReals(lhs, lhsStorage), asReals(rhs, rhsStorage),
           [&](int64_t at, double sum) { result.setReal(at, sum); });
  return oneResult(std::move(result));
}

//===----------------------------------------------------------------------===//
// Layout of indices
//===----------------------------------------------------------------------===//

FailureOr<TensorList> SplitOp::evaluate(Operands operands, Ranges ranges,
                                        PositionPolicy) {
  return oneResult(rearrange(*this, operands, ranges));
}

FailureOr<TensorList> MergeOp::evaluate(Operands operands, Ranges ranges,
                                        PositionPolicy) {
  return oneResult(rearrange(*this, operands, ranges));
}

FailureOr<TensorList> ReshardOp::evaluate(Operands operands, Ranges ranges,
                                          PositionPolicy) {
  return oneResult(rearrange(*this, operands, ranges));
}

FailureOr<TensorList> SliceOp::evaluate(Operands operands, Ranges ranges,
                                        PositionPolicy) {
  IterationSpace space(*this, ranges);
  Tensor result = makeResult(*this);
  FactorStrides input = space.operandStrides(0);
  int64_t step = input[space.find(getWhole())];
  input[space.find(getPart())] = step;
  copyElements(space, space.resultFactors(), *operands[0], input,
               getRange()[0] * step, result, space.resultStrides(), 0);
  return oneResult(std::move(result));
}

FailureOr<TensorList> ConcatOp::evaluate(Operands operands, Ranges ranges,
                                         PositionPolicy) {
  IterationSpace space(*this, ranges);
  Tensor result = makeResult(*this);
  FactorStrides strides = space.resultStrides();
  int64_t step = strides[space.find(getWhole())], start = 0;
  for (auto [i, part] :
       llvm::enumerate(getParts().getAsValueRange<StringAttr>())) {
    unsigned factor = space.find(part);
    FactorStrides partStrides = strides;
    partStrides[factor] = step;
    copyElements(space, space.operandFactors(i), *operands[i],
                 space.operandStrides(i), 0, result, partStrides, start);
    start += space.range(factor).whole * step;
  }
  return oneResult(std::move(result));
}

FailureOr<TensorList> IotaOp::evaluate(Operands, Ranges ranges,
                                       PositionPolicy) {
  Tensor result = makeResult(*this);
  PositionOrder order = positionOrder(
      *this, getIndexing().getResultIndices(0).front(), ranges[0].whole);
  for (int64_t i = 0; i < ranges[0].size; ++i)
    result.setInteger(i, order.positionAt(ranges[0].offset + i));
  return oneResult(std::move(result));
}
