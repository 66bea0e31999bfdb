//===- ShdShardingRules.cpp - What each operation allows ------------------===//
//
// Sharding rules: docs/CostModel.md#3-shardings, How to Scale Your Model
// chapter 3. Indices are parallel unless an operation says otherwise.
//
//===----------------------------------------------------------------------===//

#include "Factors.h"
#include "shardc/Dialect/Shd/IR/Gradient.h"
#include "shardc/Dialect/Shd/IR/Order.h"
#include "shardc/Dialect/Shd/IR/Serving.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

/// A rule all of whose factors are parallel.
static ShardingRule parallelRule(const FactorTable &table) {
  ShardingRule rule;
  for (const FactorTable::Entry &entry : table.entries())
    rule.factors.push_back({entry.of.empty()
                                ? entry.name.str()
                                : (entry.name + " of " + entry.of).str(),
                            entry.extent, FactorKind::Parallel});
  rule.operands.assign(table.operands().begin(), table.operands().end());
  rule.results.assign(table.results().begin(), table.results().end());
  return rule;
}

ShardingRule shd::parallelRule(ShardingRuleOpInterface op) {
  return ::parallelRule(FactorTable::of(op));
}

namespace {
/// Turns a factor table into a rule and marks what is not parallel.
class RuleBuilder {
public:
  RuleBuilder(Operation *op, const FactorTable &table)
      : op(op), table(table), rule(::parallelRule(table)) {}

  void setKind(StringRef index, FactorKind kind) {
    rule.factors[table.find(index)].kind = kind;
  }
  void setKind(ArrayAttr indices, FactorKind kind) {
    for (StringRef index : indices.getAsValueRange<StringAttr>())
      setKind(index, kind);
  }
  /// Sets the kind of the factors that some result lacks.
  void setKindOfReduced(FactorKind kind) {
    for (auto [number, factor] : llvm::enumerate(rule.factors))
      for (const TensorFactors &result : rule.results)
        if (!hasFactor(result, number))
          factor.kind = kind;
  }
  /// Sets the kind of the second factors of two of one name.
  void setKindOfSecond(FactorKind kind) {
    for (auto [factor, entry] : llvm::zip_equal(rule.factors, table.entries()))
      if (!entry.of.empty())
        factor.kind = kind;
  }
  /// Sets the kind of the factors that neither stand in `tensor` nor are that
  /// of `index`.
  void setKindOfOthers(const TensorFactors &tensor, StringRef index,
                       FactorKind kind) {
    for (auto [number, factor] : llvm::enumerate(rule.factors))
      if (!hasFactor(tensor, number) && number != table.find(index))
        factor.kind = kind;
  }
  /// A result that is no partial sum where others are.
  void setComplete(unsigned result) {
    rule.completeResults |= uint32_t(1) << result;
  }

  void setRing(std::optional<RingRule> ring) { rule.ring = std::move(ring); }
  void setHalo(std::optional<HaloRule> halo) { rule.halo = halo; }

  /// The operation is linear in `operands` jointly. Constants and iteration
  /// numbers are whole on every device, never partial sums: with one of them,
  /// there is nothing to say.
  void addLinearSet(ArrayRef<unsigned> operands) {
    uint32_t set = 0;
    for (unsigned operand : operands) {
      if (isWholeScalar(op->getOperand(operand)))
        return;
      set |= uint32_t(1) << operand;
    }
    rule.linearSets.push_back(set);
  }
  void addLinearSetOfAll() {
    addLinearSet(llvm::to_vector(llvm::seq<unsigned>(rule.operands.size())));
  }

  /// A statistic with the factors of operand 0 that are parallel.
  void addStatistic(StringRef name, Statistic::Combination combination,
                    StringRef elementType = "f32") {
    Statistic &statistic = rule.statistics.emplace_back();
    statistic.name = name;
    statistic.combination = combination;
    statistic.elementType = elementType;
    for (const DimFactors &dim : rule.operands.front())
      for (unsigned factor : dim)
        if (rule.factors[factor].kind == FactorKind::Parallel)
          statistic.factors.push_back(factor);
  }

  ShardingRule take() { return std::move(rule); }

private:
  static bool isWholeScalar(Value value) {
    // Only repeats have arguments, the first of them the iteration's number;
    // while a conversion runs their blocks may stand nowhere.
    if (auto argument = dyn_cast<BlockArgument>(value))
      return argument.getArgNumber() == 0;
    return isa<ConstantOp>(value.getDefiningOp());
  }

  Operation *op;
  const FactorTable &table;
  ShardingRule rule;
};
} // namespace

//===----------------------------------------------------------------------===//
// Products and elementwise operations
//===----------------------------------------------------------------------===//

ShardingRule EinsumOp::getShardingRule() {
  FactorTable table = FactorTable::of(*this);
  RuleBuilder builder(*this, table);
  builder.setKindOfReduced(FactorKind::Reduction);
  builder.addLinearSet({0});
  builder.addLinearSet({1});
  return builder.take();
}

/// A cast of floats to a type that has all of their values rounds nothing.
static bool isExactCast(ElementwiseOp op) {
  auto from = dyn_cast<FloatType>(getElementTypeOrSelf(op->getOperand(0)));
  auto to = dyn_cast<FloatType>(getElementTypeOrSelf(op->getResult(0)));
  return from && to &&
         llvm::APFloat::isRepresentableBy(from.getFloatSemantics(),
                                          to.getFloatSemantics());
}

ShardingRule ElementwiseOp::getShardingRule() {
  FactorTable table = FactorTable::of(*this);
  RuleBuilder builder(*this, table);
  switch (getFunction()) {
  case Function::Add:
  case Function::Sub:
  case Function::Neg:
  case Function::Copy:
  case Function::StopGradient:
    builder.addLinearSetOfAll();
    break;
  case Function::Cast:
    if ((*this)->hasAttr(kSent) || isExactCast(*this))
      builder.addLinearSetOfAll();
    break;
  case Function::Mul:
    builder.addLinearSet({0});
    builder.addLinearSet({1});
    break;
  case Function::Div:
    builder.addLinearSet({0});
    break;
  case Function::Where:
    builder.addLinearSet({1, 2});
    break;
  default:
    break;
  }
  return builder.take();
}

//===----------------------------------------------------------------------===//
// Reductions and normalisations
//===----------------------------------------------------------------------===//

ShardingRule ReduceOp::getShardingRule() {
  FactorTable table = FactorTable::of(*this);
  RuleBuilder builder(*this, table);
  StringRef type = typeName(getInput().getType().getElementType());
  switch (getKind()) {
  case Reduction::Sum:
  case Reduction::Mean:
    builder.setKindOfReduced(FactorKind::Reduction);
    builder.addLinearSet({0});
    break;
  case Reduction::Max:
    builder.setKindOfReduced(FactorKind::Statistic);
    builder.addStatistic("max", Statistic::Combination::Max, type);
    break;
  case Reduction::Min:
    builder.setKindOfReduced(FactorKind::Statistic);
    builder.addStatistic("min", Statistic::Combination::Min, type);
    break;
  case Reduction::ArgMax:
    builder.setKindOfReduced(FactorKind::Statistic);
    builder.addStatistic("value", Statistic::Combination::Max, type);
    builder.addStatistic("index", Statistic::Combination::Min, "int32");
    break;
  }
  return builder.take();
}

ShardingRule NormalizeOp::getShardingRule() {
  FactorTable table = FactorTable::of(*this);
  RuleBuilder builder(*this, table);
  builder.setKind(getOver(), FactorKind::Statistic);
  switch (getKind()) {
  case Normalization::Softmax:
  case Normalization::LogSumExp:
    builder.addStatistic("max", Statistic::Combination::Max);
    builder.addStatistic("sum_exp", Statistic::Combination::Sum);
    break;
  case Normalization::RmsNorm:
    builder.addStatistic("sum_square", Statistic::Combination::Sum);
    break;
  case Normalization::LayerNorm:
    builder.addStatistic("sum", Statistic::Combination::Sum);
    builder.addStatistic("sum_square", Statistic::Combination::Sum);
    break;
  }
  return builder.take();
}

ShardingRule CrossEntropyOp::getShardingRule() {
  FactorTable table = FactorTable::of(*this);
  RuleBuilder builder(*this, table);
  builder.setKind(getClasses(), FactorKind::Statistic);
  builder.addStatistic("max", Statistic::Combination::Max);
  builder.addStatistic("sum_exp", Statistic::Combination::Sum);
  builder.addStatistic("picked", Statistic::Combination::Sum);
  return builder.take();
}

//===----------------------------------------------------------------------===//
// Attention and positions
//===----------------------------------------------------------------------===//

/// Keys and values may travel around the devices that have parts of the
/// queries: each device then comes by all keys, one part after the other.
/// Positions that data give say nothing of the keys that a device needs, and a
/// window needs few. Where the mask leaves keys out, a device begins with those
/// that its own queries see: queries and keys are at the same positions.
static std::optional<RingRule> ringOf(AttentionOpInterface op,
                                      const FactorTable &table) {
  if (op.getAt() || op.getKeyAt() || op.getWindow() || op.getBias() ||
      op->hasAttr(kFilledKeys))
    return std::nullopt;
  RingRule ring;
  ring.factor = table.find(op.getKey());
  if (auto query = op.getQuery()) {
    ring.along.push_back(table.find(*query));
    if (table.entries()[ring.along.front()].extent !=
        table.entries()[ring.factor].extent)
      return std::nullopt;
    return ring;
  }
  const TensorFactors &k = table.operands()[AttentionOp::kKeyOperand];
  for (const DimFactors &dim : table.operands()[AttentionOp::kQueryOperand])
    for (unsigned factor : dim)
      if (!hasFactor(k, factor))
        ring.along.push_back(factor);
  return ring;
}

/// A window of w keys reaches w - 1 positions back: where queries and keys are
/// at the same positions, a device needs its own part of the keys and so many
/// rows before each stretch of its positions.
static std::optional<HaloRule> haloOf(AttentionOpInterface op,
                                      const FactorTable &table) {
  std::optional<StringRef> query = op.getQuery();
  if (!op.getWindow() || int64_t(*op.getWindow()) < 2 || !query || op.getAt() ||
      op.getKeyAt() || op.getBias() || op->hasAttr(kFilledKeys) ||
      dealtParts(op, *query) != dealtParts(op, op.getKey()))
    return std::nullopt;
  HaloRule halo{table.find(*query), table.find(op.getKey()),
                int64_t(*op.getWindow()) - 1, dealtParts(op, *query)};
  if (table.entries()[halo.along].extent != table.entries()[halo.factor].extent)
    return std::nullopt;
  return halo;
}

/// Over a split key index each device has the softmax over its keys, weighted
/// by what the devices agreed on: a part of the sum over keys. A split head
/// index would make the scores partial sums.
ShardingRule AttentionOp::getShardingRule() {
  FactorTable table = FactorTable::withValues(*this);
  RuleBuilder builder(*this, table);
  builder.setKind(getHead(), FactorKind::Replicated);
  builder.setKind(getKey(), FactorKind::StatisticReduction);
  builder.addLinearSet({kValueOperand});
  builder.addStatistic("max", Statistic::Combination::Max);
  builder.addStatistic("sum_exp", Statistic::Combination::Sum);
  if (getLogsumexp())
    builder.setComplete(1);
  builder.setRing(ringOf(*this, table));
  builder.setHalo(haloOf(*this, table));
  return builder.take();
}

/// A device has the weights of its queries and keys, since the logsumexp is
/// known; but their gradients need whole rows of the values. Around a ring, the
/// gradients of keys and values travel with these; those of a halo's rows go
/// back.
ShardingRule AttentionGradOp::getShardingRule() {
  FactorTable table = FactorTable::withValues(*this);
  RuleBuilder builder(*this, table);
  builder.setKindOfReduced(FactorKind::Reduction);
  builder.setKindOfOthers(table.operands()[kQueryOperand], getKey(),
                          FactorKind::Replicated);
  builder.setKind(getHead(), FactorKind::Replicated);
  builder.addLinearSet({kGradientOperand});
  builder.setRing(ringOf(*this, table));
  builder.setHalo(haloOf(*this, table));
  return builder.take();
}

ShardingRule RopeOp::getShardingRule() {
  FactorTable table = FactorTable::of(*this);
  RuleBuilder builder(*this, table);
  builder.setKind(getHead(), FactorKind::Replicated);
  builder.addLinearSet({0});
  return builder.take();
}

/// Element by element.
ShardingRule AdamWOp::getShardingRule() { return parallelRule(*this); }
ShardingRule SgdOp::getShardingRule() { return parallelRule(*this); }

//===----------------------------------------------------------------------===//
// Gather and scatter
//===----------------------------------------------------------------------===//

/// Rows that a device lacks count as 0, so the result is a sum over the
/// gathered index's devices.
ShardingRule GatherOp::getShardingRule() {
  FactorTable table = FactorTable::of(*this);
  RuleBuilder builder(*this, table);
  for (int64_t dim : getDims())
    builder.setKind(getIndexing().getOperandIndices(0)[dim],
                    FactorKind::Reduction);
  builder.addLinearSet({0});
  return builder.take();
}

/// Each device writes what falls into its part of the destination, for which it
/// needs every element of the indices that the destination lacks.
ShardingRule ScatterOp::getShardingRule() {
  FactorTable table = FactorTable::of(*this);
  RuleBuilder builder(*this, table);
  builder.setKindOfReduced(FactorKind::Replicated);
  builder.addLinearSet({0, 1});
  return builder.take();
}

/// Each device adds its elements to the rows that it has.
ShardingRule ScatterSumOp::getShardingRule() {
  FactorTable table = FactorTable::of(*this);
  RuleBuilder builder(*this, table);
  builder.setKindOfReduced(FactorKind::Reduction);
  builder.addLinearSet({0});
  return builder.take();
}

//===----------------------------------------------------------------------===//
// Experts
//===----------------------------------------------------------------------===//

ShardingRule TopKOp::getShardingRule() {
  FactorTable table = FactorTable::of(*this);
  RuleBuilder builder(*this, table);
  builder.setKind(getOver(), FactorKind::Replicated);
  return builder.take();
}

/// Which slot a token has depends on the picks of all tokens of its group; with
/// these, each device moves the tokens that it has to the slots that it has.
static ShardingRule expertsRule(ExpertsOpInterface op) {
  FactorTable table = FactorTable::withPicks(op);
  RuleBuilder builder(op, table);
  builder.setKindOfReduced(FactorKind::Reduction);
  builder.setKindOfSecond(FactorKind::Replicated);
  for (unsigned operand = 0; operand < op->getNumOperands(); ++operand)
    if (operand != kPicksOperand)
      builder.addLinearSet({operand});
  return builder.take();
}

ShardingRule DispatchOp::getShardingRule() { return expertsRule(*this); }

ShardingRule CombineOp::getShardingRule() { return expertsRule(*this); }

ShardingRule CombineGradOp::getShardingRule() { return expertsRule(*this); }

//===----------------------------------------------------------------------===//
// Layout of indices
//===----------------------------------------------------------------------===//

ShardingRule SplitOp::getShardingRule() {
  FactorTable table = FactorTable::withParts(*this, getWhole(), getParts());
  RuleBuilder builder(*this, table);
  builder.addLinearSet({0});
  return builder.take();
}

ShardingRule MergeOp::getShardingRule() {
  FactorTable table = FactorTable::withParts(*this, getWhole(), getParts());
  RuleBuilder builder(*this, table);
  builder.addLinearSet({0});
  return builder.take();
}

ShardingRule SliceOp::getShardingRule() {
  FactorTable table = FactorTable::of(*this);
  RuleBuilder builder(*this, table);
  builder.setKind(getWhole(), FactorKind::Replicated);
  builder.setKind(getPart(), FactorKind::Replicated);
  builder.addLinearSet({0});
  return builder.take();
}

ShardingRule ConcatOp::getShardingRule() {
  FactorTable table = FactorTable::of(*this);
  RuleBuilder builder(*this, table);
  builder.setKind(getParts(), FactorKind::Replicated);
  builder.setKind(getWhole(), FactorKind::Replicated);
  builder.addLinearSetOfAll();
  return builder.take();
}

ShardingRule IotaOp::getShardingRule() {
  FactorTable table = FactorTable::of(*this);
  return RuleBuilder(*this, table).take();
}

ShardingRule ReshardOp::getShardingRule() {
  FactorTable table = FactorTable::of(*this);
  RuleBuilder builder(*this, table);
  builder.addLinearSet({0});
  return builder.take();
}
