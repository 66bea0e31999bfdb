//===- TestOps.cpp - Operations that only tests have ----------------------===//

#include "TestOps.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::test;

#include "TestOpsDialect.cpp.inc"

#define GET_OP_CLASSES
#include "TestOps.cpp.inc"

void TestDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "TestOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// double_and_sum
//===----------------------------------------------------------------------===//

/// The factors are the operand's indices. Those that the sum lacks leave it a
/// partial sum where they are split.
ShardingRule DoubleAndSumOp::getShardingRule() {
  ShardingRule rule;
  auto factorsOf = [&](ArrayRef<StringRef> names) {
    TensorFactors dims;
    for (StringRef name : names)
      dims.push_back({*rule.findFactor(name)});
    return dims;
  };
  SmallVector<StringRef, 4> names = getIndexing().getOperandIndices(0);
  SmallVector<StringRef, 4> kept = getIndexing().getResultIndices(1);
  for (auto [name, extent] :
       llvm::zip_equal(names, getInput().getType().getShape()))
    rule.factors.push_back({name.str(), extent,
                            llvm::is_contained(kept, name)
                                ? FactorKind::Parallel
                                : FactorKind::Reduction});
  rule.operands.push_back(factorsOf(names));
  rule.results.push_back(factorsOf(getIndexing().getResultIndices(0)));
  rule.results.push_back(factorsOf(kept));
  rule.linearSets.push_back(1);
  return rule;
}

shd::FusionKind DoubleAndSumOp::getFusionKind() {
  return getLeader() ? shd::FusionKind::Leader : shd::FusionKind::Reduction;
}

/// A product and an addition for each element.
OpWork DoubleAndSumOp::getWork(ArrayRef<int64_t> localExtents,
                               const Machine &) {
  ShardingRule rule = getShardingRule();
  auto bytesOf = [&](Type type, const TensorFactors &dims) {
    double bytes = shd::tensorShape(type).elementBits / 8.0;
    for (const DimFactors &dim : dims)
      bytes *= double(localExtents[dim.front()]);
    return bytes;
  };
  OpWork work;
  work.vectorFlops = 2;
  for (int64_t extent : localExtents)
    work.vectorFlops *= double(extent);
  work.operandBytes.push_back(bytesOf(getInput().getType(), rule.operands[0]));
  for (auto [type, dims] : llvm::zip_equal(getResultTypes(), rule.results))
    work.resultBytes.push_back(bytesOf(type, dims));
  return work;
}

FailureOr<shd::TensorList>
DoubleAndSumOp::evaluate(ArrayRef<const Tensor *> operands,
                         ArrayRef<FactorRange> ranges, PositionPolicy) {
  ShardingRule rule = getShardingRule();
  shd::TensorList results;
  for (Type type : getResultTypes())
    results.emplace_back(cast<RankedTensorType>(type));
  auto offsetOf = [&](ArrayRef<int64_t> at, const TensorFactors &dims) {
    int64_t offset = 0;
    for (const DimFactors &dim : dims)
      offset = offset * rule.factors[dim.front()].extent + at[dim.front()];
    return offset;
  };
  SmallVector<int64_t> at(ranges.size(), 0);
  std::function<void(size_t)> visit = [&](size_t factor) {
    if (factor < ranges.size()) {
      for (at[factor] = 0; at[factor] < ranges[factor].size; ++at[factor])
        visit(factor + 1);
      return;
    }
    double value = operands[0]->getReal(offsetOf(at, rule.operands[0]));
    int64_t sum = offsetOf(at, rule.results[1]);
    results[0].setReal(offsetOf(at, rule.results[0]), 2 * value);
    results[1].setReal(sum, results[1].getReal(sum) + value);
  };
  visit(0);
  return results;
}
