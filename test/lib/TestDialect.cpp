//===- TestDialect.cpp - Operations that no pass knows --------------------===//

#include "TestDialect.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::test;
using Operands = ArrayRef<const Tensor *>;
using Ranges = ArrayRef<FactorRange>;

#include "TestOpsDialect.cpp.inc"

void TestDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "TestOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

/// Bytes of a tensor whose dimensions map to `dims`, on one device.
static double localBytes(Type type, const TensorFactors &dims,
                         ArrayRef<int64_t> localExtents) {
  double bytes = shd::elementBits(getElementTypeOrSelf(type)) / 8.0;
  for (const DimFactors &dim : dims)
    for (unsigned factor : dim)
      bytes *= localExtents[factor];
  return bytes;
}

/// Work that touches every operand and result in full.
static OpWork fullWork(shd::ShardingRuleOpInterface op,
                       ArrayRef<int64_t> localExtents) {
  ShardingRule rule = op.getShardingRule();
  OpWork work;
  for (auto [i, dims] : llvm::enumerate(rule.operands))
    work.operandBytes.push_back(
        localBytes(op->getOperand(i).getType(), dims, localExtents));
  for (auto [type, dims] : llvm::zip_equal(op->getResultTypes(), rule.results))
    work.resultBytes.push_back(localBytes(type, dims, localExtents));
  return work;
}

static double iterations(ArrayRef<int64_t> localExtents) {
  return llvm::accumulate(localExtents, 1.0, std::multiplies<double>());
}

/// Calls `visit` with the element of each tensor of the rule, operands first,
/// at every point of the iteration space that the device has. Of a dimension
/// that maps to several factors there is none here.
static void forEachPoint(const ShardingRule &rule, Operands operands,
                         const Tensor &result, Ranges ranges,
                         llvm::function_ref<void(ArrayRef<int64_t>)> visit) {
  if (llvm::any_of(ranges, [](FactorRange range) { return range.size == 0; }))
    return;
  SmallVector<SmallVector<int64_t, 6>> strides;
  auto addStrides = [&](const TensorFactors &dims, const Tensor &tensor) {
    auto &each = strides.emplace_back(rule.factors.size(), 0);
    for (auto [dim, stride] : llvm::zip_equal(dims, tensor.getStrides()))
      each[dim.front()] = stride;
  };
  for (auto [dims, operand] : llvm::zip(rule.operands, operands))
    addStrides(dims, *operand);
  addStrides(rule.results.front(), result);
  SmallVector<int64_t> point(rule.factors.size(), 0), elements(strides.size());
  while (true) {
    for (auto [element, stride] : llvm::zip_equal(elements, strides))
      element = std::inner_product(point.begin(), point.end(), stride.begin(),
                                   int64_t(0));
    visit(elements);
    unsigned factor = 0;
    while (factor < point.size() && ++point[factor] >= ranges[factor].size)
      point[factor++] = 0;
    if (factor == point.size())
      return;
  }
}

//===----------------------------------------------------------------------===//
// scaled_outer
//===----------------------------------------------------------------------===//

ShardingRule ScaledOuterOp::getShardingRule() {
  ShardingRule rule = shd::parallelRule(*this);
  rule.linearSets = {0b01, 0b10};
  return rule;
}

OpWork ScaledOuterOp::getWork(const LocalExtents &localExtents,
                              const Machine &machine) {
  OpWork work = fullWork(*this, localExtents);
  work.matrixFlops = 2 * iterations(localExtents);
  SmallVector<StringRef, 2> types;
  for (Type type : getOperandTypes())
    types.push_back(shd::typeName(getElementTypeOrSelf(type)));
  work.computeType = computeType(machine, types);
  return work;
}

shd::FusionKind ScaledOuterOp::getFusionKind() {
  return shd::FusionKind::Leader;
}

bool ScaledOuterOp::readsPrologues() { return true; }

FailureOr<shd::TensorList>
ScaledOuterOp::evaluate(Operands operands, Ranges ranges, PositionPolicy) {
  double scale = getScale().convertToDouble();
  shd::TensorList results(1, Tensor(getResult().getType()));
  Tensor &result = results.front();
  forEachPoint(getShardingRule(), operands, result, ranges,
               [&](ArrayRef<int64_t> at) {
                 result.setReal(at[2], scale * operands[0]->getReal(at[0]) *
                                           operands[1]->getReal(at[1]));
               });
  return results;
}

//===----------------------------------------------------------------------===//
// share
//===----------------------------------------------------------------------===//

ShardingRule ShareOp::getShardingRule() {
  ShardingRule rule = shd::parallelRule(*this);
  Statistic sum;
  sum.name = "sum";
  for (auto [number, factor] : llvm::enumerate(rule.factors))
    if (factor.name == getOver())
      factor.kind = FactorKind::Statistic;
    else
      sum.factors.push_back(number);
  rule.statistics.push_back(sum);
  return rule;
}

OpWork ShareOp::getWork(const LocalExtents &localExtents, const Machine &) {
  OpWork work = fullWork(*this, localExtents);
  work.vectorFlops = 2 * iterations(localExtents);
  return work;
}

shd::FusionKind ShareOp::getFusionKind() { return shd::FusionKind::Reduction; }

/// The statistic as a result of a rule with the operands of another.
static ShardingRule ruleOfStatistic(ShardingRule rule) {
  rule.results.front().clear();
  for (unsigned factor : rule.statistics.front().factors)
    rule.results.front().push_back({factor});
  return rule;
}

FailureOr<Tensor> ShareOp::evaluateStatistic(unsigned number, Operands operands,
                                             Ranges ranges,
                                             PositionPolicy policy) {
  ShardingRule rule = ruleOfStatistic(getShardingRule());
  SmallVector<int64_t> shape;
  for (const DimFactors &dim : rule.results.front())
    shape.push_back(rule.factors[dim.front()].extent);
  Tensor sums(Float32Type::get(getContext()), shape);
  forEachPoint(
      rule, operands.take_front(), sums, ranges, [&](ArrayRef<int64_t> at) {
        sums.setReal(at[1], sums.getReal(at[1]) + operands[0]->getReal(at[0]));
      });
  return sums;
}

FailureOr<shd::TensorList> ShareOp::evaluate(Operands operands, Ranges ranges,
                                             PositionPolicy policy) {
  FailureOr<Tensor> own;
  if (operands.size() == 1)
    own = evaluateStatistic(0, operands, ranges, policy);
  const Tensor &sums = operands.size() == 1 ? *own : *operands[1];
  ShardingRule rule = getShardingRule();
  shd::TensorList results(1, Tensor(getResult().getType()));
  Tensor &result = results.front();
  rule.operands.push_back(ruleOfStatistic(rule).results.front());
  forEachPoint(rule, {operands[0], &sums}, result, ranges,
               [&](ArrayRef<int64_t> at) {
                 result.setReal(at[2], operands[0]->getReal(at[0]) /
                                           sums.getReal(at[1]));
               });
  return results;
}

//===----------------------------------------------------------------------===//
// double_and_sum
//===----------------------------------------------------------------------===//

/// Indices that the sum lacks leave it a partial sum where they are split.
ShardingRule DoubleAndSumOp::getShardingRule() {
  ShardingRule rule = shd::parallelRule(*this);
  for (auto [number, factor] : llvm::enumerate(rule.factors))
    if (!hasFactor(rule.results[1], number))
      factor.kind = FactorKind::Reduction;
  rule.linearSets = {0b1};
  return rule;
}

OpWork DoubleAndSumOp::getWork(const LocalExtents &localExtents,
                               const Machine &) {
  OpWork work = fullWork(*this, localExtents);
  work.vectorFlops = 2 * iterations(localExtents);
  return work;
}

shd::FusionKind DoubleAndSumOp::getFusionKind() {
  return getLeader() ? shd::FusionKind::Leader : shd::FusionKind::Reduction;
}

FailureOr<shd::TensorList>
DoubleAndSumOp::evaluate(Operands operands, Ranges ranges, PositionPolicy) {
  shd::TensorList results;
  for (Type type : getResultTypes())
    results.emplace_back(cast<RankedTensorType>(type));
  Tensor &doubled = results[0], &sums = results[1];
  ShardingRule rule = getShardingRule();
  forEachPoint(rule, operands, doubled, ranges, [&](ArrayRef<int64_t> at) {
    doubled.setReal(at[1], 2 * operands[0]->getReal(at[0]));
  });
  rule.results.front() = rule.results[1];
  forEachPoint(rule, operands, sums, ranges, [&](ArrayRef<int64_t> at) {
    sums.setReal(at[1], sums.getReal(at[1]) + operands[0]->getReal(at[0]));
  });
  return results;
}

#define GET_OP_CLASSES
#include "TestOps.cpp.inc"
