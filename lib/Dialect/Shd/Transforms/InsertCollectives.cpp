//===- InsertCollectives.cpp - shd-insert-collectives ----------*- C++ -*-===//

#include "mlir/IR/Builders.h"
#include "shardc/Dialect/Shd/IR/CalibratedPrices.h"
#include "shardc/Dialect/Shd/IR/Experts.h"
#include "shardc/Dialect/Shd/IR/Explicit.h"
#include "shardc/Dialect/Shd/IR/Halo.h"
#include "shardc/Dialect/Shd/IR/Host.h"
#include "shardc/Dialect/Shd/IR/Order.h"
#include "shardc/Dialect/Shd/IR/RingAttention.h"
#include "shardc/Dialect/Shd/Transforms/MakeExplicit.h"
#include "shardc/Dialect/Shd/Transforms/Passes.h"
#include "shardc/Optimizer/Context.h"
#include "shardc/Optimizer/Domain.h"
#include "shardc/Optimizer/Graph.h"
#include "shardc/Optimizer/Halos.h"
#include "shardc/Optimizer/Names.h"
#include "shardc/Optimizer/Rings.h"
#include "llvm/ADT/TypeSwitch.h"
#include <map>

using namespace mlir;

namespace shardc::shd {
#define GEN_PASS_DEF_SHDINSERTCOLLECTIVES
#include "shardc/Dialect/Shd/Transforms/Passes.h.inc"

namespace {

class CollectiveInserter {
public:
  CollectiveInserter(PlanningContext &context, MLIRContext *mlirContext)
      : context(context), builder(mlirContext) {}

  LogicalResult visit(Block &block);

private:
  Layout layoutOf(Value value) const;
  Value reshard(Value value, const Layout &to, Location loc);
  void emitStep(Value &value, const ReshardStep &step, Location loc);
  void convertOperand(Operation *op, unsigned operand);
  LogicalResult visitCompute(Operation *op);
  std::optional<AxisIndex> ringOf(Operation *op,
                                  const ShardingRule &rule) const;
  Value emitTravelling(Value value, const Layout &to, AxisIndex ring,
                       const RingMove &move, Location loc);
  void emitRingGathers(Operation *op, ArrayRef<RingMove> moves,
                       const ShardingRule &rule, const Strategy &whole,
                       AxisIndex ring);
  void storeSum(Value result, const Layout &summands, const Layout &stored,
                llvm::function_ref<Value()> sum);
  void emitRingScatters(Operation *op, ArrayRef<RingMove> moves,
                        const ShardingRule &rule, const Strategy &strategy,
                        ArrayRef<Layout> stored);
  bool readsHalos(Operation *op, const ShardingRule &rule) const;
  template <typename HaloOp>
  Value emitHalo(Operation *op, Value value, const Layout &to,
                 const HaloMove &move, const ShardingRule &rule,
                 const Strategy &strategy);
  void emitHaloExchanges(Operation *op, ArrayRef<HaloMove> moves,
                         const ShardingRule &rule, const Strategy &strategy);
  void emitHaloReduces(Operation *op, ArrayRef<HaloMove> moves,
                       const ShardingRule &rule, const Strategy &strategy,
                       ArrayRef<Layout> stored);
  void store(Value result, const Layout &made, const Layout &stored);
  void markStore(Value made, Value stored);
  void visitCopy(ReshardOp op);
  void visitPart(PartOp part);
  void emitToHost(UpdateOp update);
  LogicalResult visitRepeat(RepeatOp repeat);
  void emitStatistics(Operation *op, const ShardingRule &rule,
                      const Strategy &strategy);
  Value emitAllReduce(Value value, const StatisticCost &statistic,
                      const Layout &layout, Operation *op);
  CollectiveCostAttr costAttr(const CollectiveCost &cost);
  ArrayAttr axesAttr(ArrayRef<AxisIndex> axes);
  void describe(Operation *collective, StringRef operand,
                ArrayRef<std::string> indices);
  void setType(Value value, ShardingAttr sharding) {
    value.setType(withSharding(value.getType(), sharding));
  }

  PlanningContext &context;
  OpBuilder builder;
  /// Reshards already emitted, by sharingKey and value.
  std::map<std::pair<const void *, void *>,
           SmallVector<std::pair<Layout, Value>, 2>>
      emitted;
};

Layout CollectiveInserter::layoutOf(Value value) const {
  return explicitLayout(context.mesh(), value.getType());
}

ArrayAttr CollectiveInserter::axesAttr(ArrayRef<AxisIndex> axes) {
  SmallVector<StringRef> names;
  for (AxisIndex axis : axes)
    names.push_back(context.mesh().axes[axis].name);
  return builder.getStrArrayAttr(names);
}

CollectiveCostAttr CollectiveInserter::costAttr(const CollectiveCost &cost) {
  SmallVector<StringAttr> networks, boundBy;
  for (unsigned axis : cost.occupies) {
    StringAttr name = builder.getStringAttr(context.model.networkName(axis));
    networks.push_back(name);
    if (cost.boundBy() & physicalBit(axis))
      boundBy.push_back(name);
  }
  if (boundBy.size() == networks.size())
    boundBy.clear();
  return CollectiveCostAttr::get(builder.getContext(), cost.bytes,
                                 cost.wireBytes, cost.bandwidthSeconds,
                                 cost.latencySeconds, networks, boundBy,
                                 calibratedAttr(builder.getContext(), cost));
}

void CollectiveInserter::describe(Operation *collective, StringRef operand,
                                  ArrayRef<std::string> indices) {
  SmallVector<StringRef> names(indices.begin(), indices.end());
  collective->setAttr(kOperand, builder.getStringAttr(operand));
  collective->setAttr(kIndices, builder.getStrArrayAttr(names));
}

void CollectiveInserter::emitStep(Value &value, const ReshardStep &step,
                                  Location loc) {
  auto type =
      withSharding(value.getType(),
                   toSharding(builder.getContext(), context.mesh(), step.to));
  std::string name = valueName(value);
  SmallVector<std::string, 4> indices = indexNames(value);
  ArrayAttr axes = axesAttr(step.axes);
  CollectiveCostAttr cost = costAttr(step.cost);
  Operation *op = nullptr;
  switch (step.kind) {
  case CollectiveKind::AllGather:
    op = AllGatherOp::create(builder, loc, type, value, axes, cost);
    break;
  case CollectiveKind::AllSlice:
    op = AllSliceOp::create(builder, loc, type, value, axes, cost);
    break;
  case CollectiveKind::AllToAll:
    op = AllToAllOp::create(builder, loc, type, value, axes, cost);
    break;
  case CollectiveKind::ReduceScatter:
    op = ReduceScatterOp::create(builder, loc, type, value, axes, cost);
    break;
  case CollectiveKind::AllReduce:
    op = AllReduceOp::create(builder, loc, type, value, axes, Combination::Sum,
                             cost);
    break;
  case CollectiveKind::CollectivePermute:
    op = CollectivePermuteOp::create(builder, loc, type, value, axes, cost);
    break;
  case CollectiveKind::ToHost:
  case CollectiveKind::FromHost:
  case CollectiveKind::HaloExchange:
  case CollectiveKind::HaloReduce:
    llvm_unreachable("no reshard has transfers to the host or halos");
  }
  describe(op, name, indices);
  value = onlyResult(op);
}

/// Emits the cheapest sequence from the layout that `value` has; the builder
/// stands where it goes.
Value CollectiveInserter::reshard(Value value, const Layout &to, Location loc) {
  const ReshardPlan *plan =
      context.planner.plan(movedShape(value), layoutOf(value), to);
  assert(plan && "the plan asks for a reshard that does not exist");
  for (const ReshardStep &step : plan->steps)
    emitStep(value, step, loc);
  return value;
}

/// Identifies operations that share reshards of their operands: those of one
/// part of a group. A free operation shares with nothing else, and what only
/// hands values on makes a reshard for each.
static const void *sharingKey(Operation *op) {
  if (Attribute group = op->getAttr(kGroup))
    return group.getAsOpaquePointer();
  return isa<ShardingRuleOpInterface>(op) ? op : nullptr;
}

void CollectiveInserter::convertOperand(Operation *op, unsigned operand) {
  Value value = op->getOperand(operand);
  ShardingAttr pin = getOperandPin(op, operand);
  if (!pin)
    return;
  Layout wanted = toLayout(context.mesh(), pin);
  if (layoutOf(value) == wanted)
    return;
  const void *key = sharingKey(op);
  auto &known = emitted[{key, value.getAsOpaquePointer()}];
  if (key)
    for (auto &[layout, converted] : known)
      if (layout == wanted)
        return op->setOperand(operand, converted);
  builder.setInsertionPoint(op);
  Value converted = reshard(value, wanted, op->getLoc());
  known.push_back({wanted, converted});
  op->setOperand(operand, converted);
}

static Combination toCombination(Statistic::Combination combination) {
  switch (combination) {
  case Statistic::Combination::Sum:
    return Combination::Sum;
  case Statistic::Combination::Max:
    return Combination::Max;
  case Statistic::Combination::Min:
    return Combination::Min;
  }
  llvm_unreachable("a new combination");
}

Value CollectiveInserter::emitAllReduce(Value value,
                                        const StatisticCost &statistic,
                                        const Layout &layout, Operation *op) {
  auto type = withSharding(value.getType(), toSharding(builder.getContext(),
                                                       context.mesh(), layout));
  auto reduce = AllReduceOp::create(
      builder, op->getLoc(), type, value, axesAttr(statistic.axes),
      toCombination(statistic.statistic->combination),
      costAttr(statistic.cost));
  return reduce.getResult();
}

/// Each statistic: what one device contributes, and the all_reduce that makes
/// the devices agree; the operation then takes the results.
void CollectiveInserter::emitStatistics(Operation *op, const ShardingRule &rule,
                                        const Strategy &strategy) {
  SmallVector<StatisticCost, 3> costs =
      statisticCosts(context.model, rule, strategy);
  if (costs.empty())
    return;
  builder.setInsertionPoint(op);
  SmallVector<Value> stats;
  unsigned numOperands = rule.operands.size();
  for (const StatisticCost &cost : costs) {
    Layout layout;
    SmallVector<int64_t> extents;
    SmallVector<std::string, 4> indices;
    for (unsigned factor : cost.statistic->factors) {
      layout.dims.push_back(strategy.factorAxes[factor]);
      extents.push_back(rule.factors[factor].extent);
      indices.push_back(rule.factors[factor].name);
    }
    Layout local = layout;
    local.partial = axisSet(cost.axes);
    auto sharding = toSharding(builder.getContext(), context.mesh(), local);
    Type element = typeFromName(op->getContext(), cost.statistic->elementType);
    SmallVector<Value> inputs(op->operand_begin(),
                              op->operand_begin() + numOperands);
    inputs.append(stats);
    auto statistic =
        StatisticOp::create(builder, op->getLoc(),
                            RankedTensorType::get(extents, element, sharding),
                            cost.statistic->name, inputs);
    Value reduced = emitAllReduce(statistic.getResult(), cost, layout, op);
    describe(
        reduced.getDefiningOp(),
        (getResultName(op->getResults().front()) + "." + cost.statistic->name)
            .str(),
        indices);
    stats.push_back(reduced);
  }
  cast<StatisticsOpInterface>(op).getStatsMutable().assign(stats);
}

/// Moves a result from how it is made to how it is stored, for all who read it.
void CollectiveInserter::store(Value result, const Layout &made,
                               const Layout &stored) {
  Operation *op = result.getDefiningOp();
  setType(result, toSharding(op->getContext(), context.mesh(), made));
  builder.setInsertionPointAfter(op);
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : result.getUses())
    uses.push_back(&use);
  Value converted = reshard(result, stored, op->getLoc());
  markStore(result, converted);
  for (OpOperand *use : uses)
    use->set(converted);
}

/// Marks the collectives that lead from a result to how it is stored.
void CollectiveInserter::markStore(Value made, Value stored) {
  for (Value at = stored; at != made; at = at.getDefiningOp()->getOperand(0))
    at.getDefiningOp()->setAttr(kStore, builder.getUnitAttr());
}

/// The axis that places the index that travels and one along which the
/// operation is split: it runs around a ring.
std::optional<AxisIndex>
CollectiveInserter::ringOf(Operation *op, const ShardingRule &rule) const {
  if (!rule.ring)
    return std::nullopt;
  AxisSet travels = 0, along = 0;
  for (auto [number, tensor] : llvm::enumerate(rule.operands)) {
    ShardingAttr pin = getOperandPin(op, number);
    if (!pin)
      continue;
    Layout layout = toLayout(context.mesh(), pin);
    for (auto [dim, factors] : llvm::zip_equal(layout.dims, tensor))
      for (unsigned factor : factors) {
        if (factor == rule.ring->factor)
          travels |= axisSet(dim);
        else if (llvm::is_contained(rule.ring->along, factor))
          along |= axisSet(dim);
      }
  }
  for (AxisIndex axis = 0; axis < context.mesh().size(); ++axis)
    if (travels == axisBit(axis) && (along & axisBit(axis)))
      return axis;
  return std::nullopt;
}

/// A collective that stands for what travels around a ring, and has its price;
/// the builder stands where it goes.
Value CollectiveInserter::emitTravelling(Value value, const Layout &to,
                                         AxisIndex ring, const RingMove &move,
                                         Location loc) {
  auto type = withSharding(
      value.getType(), toSharding(builder.getContext(), context.mesh(), to));
  bool isSum = layoutOf(value).partial & axisBit(ring);
  Operation *op =
      isSum ? ReduceScatterOp::create(builder, loc, type, value,
                                      axesAttr({ring}), costAttr(move.cost))
                  .getOperation()
            : AllGatherOp::create(builder, loc, type, value, axesAttr({ring}),
                                  costAttr(move.cost));
  op->setAttr(kTravels, move.halved.empty()
                            ? Attribute(builder.getUnitAttr())
                            : builder.getStringAttr(move.halved));
  describe(op, valueName(value), indexNames(value));
  return onlyResult(op);
}

/// Those of `operands` that are the value of the one at `number`, in its
/// layout, read the other value; queries may be the same value.
static void replaceOperands(Operation *op, ArrayRef<unsigned> operands,
                            unsigned number, const ShardingRule &rule,
                            const Strategy &strategy, Value other) {
  Value value = op->getOperand(number);
  Layout layout = operandLayout(rule, strategy, number);
  for (unsigned operand : operands)
    if (op->getOperand(operand) == value &&
        operandLayout(rule, strategy, operand) == layout)
      op->setOperand(operand, other);
}

/// The operands that travel, as all steps together read them.
void CollectiveInserter::emitRingGathers(Operation *op,
                                         ArrayRef<RingMove> moves,
                                         const ShardingRule &rule,
                                         const Strategy &whole,
                                         AxisIndex ring) {
  builder.setInsertionPoint(op);
  for (const RingMove &move : moves) {
    if (move.isResult)
      continue;
    Value value = op->getOperand(move.number);
    Value gathered =
        emitTravelling(value, operandLayout(rule, whole, move.number), ring,
                       move, op->getLoc());
    replaceOperands(op, ringOperands(rule), move.number, rule, whole, gathered);
  }
}

/// Gives a result the layout of its summands, adds them up by what `sum` emits,
/// and stores that for its readers.
void CollectiveInserter::storeSum(Value result, const Layout &summands,
                                  const Layout &stored,
                                  llvm::function_ref<Value()> sum) {
  setType(result, toSharding(builder.getContext(), context.mesh(), summands));
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : result.getUses())
    uses.push_back(&use);
  builder.setInsertionPointAfter(result.getDefiningOp());
  Value converted = reshard(sum(), stored, result.getLoc());
  markStore(result, converted);
  for (OpOperand *use : uses)
    use->set(converted);
}

/// The sums that travel: from what a device adds in all steps together to how
/// they are stored.
void CollectiveInserter::emitRingScatters(Operation *op,
                                          ArrayRef<RingMove> moves,
                                          const ShardingRule &rule,
                                          const Strategy &strategy,
                                          ArrayRef<Layout> stored) {
  Strategy whole = strategy;
  whole.ring = std::nullopt;
  for (const RingMove &move : moves) {
    if (!move.isResult)
      continue;
    Value result = op->getResult(move.number);
    storeSum(result, resultLayout(rule, whole, move.number),
             stored[move.number], [&] {
               return emitTravelling(result,
                                     resultLayout(rule, strategy, move.number),
                                     *strategy.ring, move, op->getLoc());
             });
  }
}

/// True if the pins place the factor of a halo as they do the one along which
/// the operation is split.
bool CollectiveInserter::readsHalos(Operation *op,
                                    const ShardingRule &rule) const {
  HaloPins pins = haloPins(context.mesh(), op, rule);
  return context.mesh().groupSize(ArrayRef(pins.halo)) > 1 &&
         pins.halo == pins.along;
}

/// A halo_exchange or halo_reduce; the builder stands where it goes.
template <typename HaloOp>
Value CollectiveInserter::emitHalo(Operation *op, Value value, const Layout &to,
                                   const HaloMove &move,
                                   const ShardingRule &rule,
                                   const Strategy &strategy) {
  auto type = withSharding(
      value.getType(), toSharding(builder.getContext(), context.mesh(), to));
  auto halo = HaloOp::create(
      builder, op->getLoc(), type, value, move.dim, rule.halo->rows,
      axesAttr(strategy.factorAxes[rule.halo->along]), costAttr(move.cost));
  SmallVector<std::string, 4> indices = indexNames(value);
  describe(halo, valueName(value), indices);
  // Its rows are in the order of the operation's keys.
  if (auto dealt = op->getAttrOfType<DictionaryAttr>(kDealt))
    if (Attribute entry = dealt.get(rule.factors[rule.halo->factor].name))
      halo->setAttr(kDealt, builder.getDictionaryAttr(builder.getNamedAttr(
                                indices[move.dim], entry)));
  return halo.getResult();
}

/// Operands get the rows before their parts.
void CollectiveInserter::emitHaloExchanges(Operation *op,
                                           ArrayRef<HaloMove> moves,
                                           const ShardingRule &rule,
                                           const Strategy &strategy) {
  Strategy whole = strategy;
  whole.halo = false;
  builder.setInsertionPoint(op);
  for (const HaloMove &move : moves) {
    if (move.isResult)
      continue;
    Value value = op->getOperand(move.number);
    Value withHalo = emitHalo<HaloExchangeOp>(
        op, value, operandLayout(rule, whole, move.number), move, rule,
        strategy);
    replaceOperands(op, haloOperands(rule), move.number, rule, whole, withHalo);
  }
}

/// The summands for rows of the part before go back, and the sums to how they
/// are stored.
void CollectiveInserter::emitHaloReduces(Operation *op,
                                         ArrayRef<HaloMove> moves,
                                         const ShardingRule &rule,
                                         const Strategy &strategy,
                                         ArrayRef<Layout> stored) {
  Strategy whole = strategy;
  whole.halo = false;
  for (const HaloMove &move : moves) {
    if (!move.isResult)
      continue;
    Value result = op->getResult(move.number);
    storeSum(result, resultLayout(rule, whole, move.number),
             stored[move.number], [&] {
               return emitHalo<HaloReduceOp>(
                   op, result, resultLayout(rule, strategy, move.number), move,
                   rule, strategy);
             });
  }
}

/// Takes the factor of a halo off the axes on which the operation is.
static void joinHalo(const ShardingRule &rule, const TensorFactors &tensor,
                     Layout &layout) {
  for (auto [dim, factors] : llvm::zip_equal(layout.dims, tensor))
    if (llvm::is_contained(factors, rule.halo->factor))
      dim.clear();
}

/// Adds what travels, as one kernel for all steps would have it.
static void gatherFromRing(const ShardingRule &rule,
                           const TensorFactors &tensor, AxisIndex ring,
                           Layout &layout) {
  for (auto [dim, factors] : llvm::zip_equal(layout.dims, tensor))
    if (llvm::is_contained(factors, rule.ring->factor))
      llvm::erase(dim, ring);
}

LogicalResult CollectiveInserter::visitCompute(Operation *op) {
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  std::optional<AxisIndex> ring = ringOf(op, rule);
  bool hasHalos = readsHalos(op, rule);
  SmallVector<std::optional<Layout>> operands, results;
  SmallVector<Layout, 1> stored;
  for (Value result : op->getResults()) {
    ShardingAttr pin = getResultPin(result), made = getMade(result);
    if (!pin)
      return op->emitError("has no plan; run shd-optimize first");
    stored.push_back(toLayout(context.mesh(), pin));
    results.push_back(made ? toLayout(context.mesh(), made) : stored.back());
  }
  for (unsigned i = 0; i < rule.operands.size(); ++i) {
    convertOperand(op, i);
    Value operand = op->getOperand(i);
    operands.push_back(hasLayout(operand)
                           ? std::optional<Layout>(layoutOf(operand))
                           : std::nullopt);
    if (ring && operands.back())
      gatherFromRing(rule, rule.operands[i], *ring, *operands.back());
    if (hasHalos && operands.back())
      joinHalo(rule, rule.operands[i], *operands.back());
  }
  if (ring)
    for (auto [layout, tensor] : llvm::zip_equal(results, rule.results))
      gatherFromRing(rule, tensor, *ring, *layout);
  if (hasHalos)
    for (auto [layout, tensor] : llvm::zip_equal(results, rule.results))
      joinHalo(rule, tensor, *layout);
  std::string why;
  std::optional<Strategy> strategy =
      inferStrategy(context.mesh(), rule, operands, results, &why);
  if (!strategy)
    return op->emitError() << why;
  SmallVector<RingMove, 4> travelling;
  SmallVector<HaloMove, 2> halos;
  if (ring) {
    Strategy whole = *strategy;
    strategy->ring = ring;
    travelling = ringMoves(context.model, op, rule, *strategy);
    emitRingGathers(op, travelling, rule, whole, *ring);
  }
  if (hasHalos) {
    strategy->halo = true;
    halos = haloMoves(context.model, op, rule, *strategy);
    emitHaloExchanges(op, halos, rule, *strategy);
  }
  emitStatistics(op, rule, *strategy);
  auto isMoved = [&](unsigned result) {
    auto moves = [&](const auto &move) {
      return move.isResult && move.number == result;
    };
    return llvm::any_of(travelling, moves) || llvm::any_of(halos, moves);
  };
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    if (!isMoved(i))
      store(result, resultLayout(rule, *strategy, i), stored[i]);
  emitRingScatters(op, travelling, rule, *strategy, stored);
  emitHaloReduces(op, halos, rule, *strategy, stored);
  return success();
}

/// A copy is its collectives, the last of them marked.
void CollectiveInserter::visitCopy(ReshardOp op) {
  builder.setInsertionPoint(op);
  Value input = op.getInput();
  Value copy =
      reshard(input, toLayout(context.mesh(), getResultPin(op.getResult())),
              op.getLoc());
  if (copy != input)
    copy.getDefiningOp()->setAttr(kCopy, builder.getUnitAttr());
  op.getResult().replaceAllUsesWith(copy);
  op.erase();
}

/// The price of a transfer of a value, as its type has it.
static CollectiveCost transferCost(const PlanningContext &context,
                                   CollectiveKind kind, Value value) {
  Layout layout = explicitLayout(context.mesh(), value.getType());
  return context.model.hostCost(
      kind, tensorShape(value.getType()).localBytes(context.mesh(), layout));
}

/// A saved part that is on the host comes back once, for all who read it.
void CollectiveInserter::visitPart(PartOp part) {
  Value value = part.getResult();
  value.setType(partType(part.getSource().getType(), part.getAt().size()));
  if (!isOffloadedSave(value))
    return;
  builder.setInsertionPointAfter(part);
  auto copy = FromHostOp::create(
      builder, part.getLoc(), value.getType(), value, axesAttr({}),
      costAttr(transferCost(context, CollectiveKind::FromHost, value)));
  copy->setAttr(kCopy, builder.getUnitAttr());
  describe(copy, valueName(value), indexNames(value));
  value.replaceAllUsesExcept(copy.getResult(), copy);
}

/// A value that is saved on the host goes there as it is stored.
void CollectiveInserter::emitToHost(UpdateOp update) {
  builder.setInsertionPoint(update);
  Value value = update.getValue();
  auto copy = ToHostOp::create(
      builder, update.getLoc(), value.getType(), value, axesAttr({}),
      costAttr(transferCost(context, CollectiveKind::ToHost, value)));
  describe(copy, valueName(value), indexNames(value));
  update.getValueMutable().assign(copy.getResult());
}

LogicalResult CollectiveInserter::visitRepeat(RepeatOp repeat) {
  for (unsigned i = 0; i < repeat.getInits().size(); ++i) {
    ShardingAttr pin = getOperandPin(repeat, i);
    if (!pin)
      return repeat.emitError("has no plan; run shd-optimize first");
    convertOperand(repeat, i);
    setType(repeat.getCarried()[i], pin);
    setType(repeat.getResults()[i], pin);
  }
  return visit(repeat.getBody().front());
}

LogicalResult CollectiveInserter::visit(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (isCollective(&op))
      return op.emitError("has been inserted before; the plan is explicit");
    if (auto repeat = dyn_cast<RepeatOp>(op)) {
      if (failed(visitRepeat(repeat)))
        return failure();
    } else if (op.hasAttr(kCopy)) {
      visitCopy(cast<ReshardOp>(op));
    } else if (isa<ShardingRuleOpInterface>(op)) {
      if (failed(visitCompute(&op)))
        return failure();
    } else if (auto declare = dyn_cast<DeclareOp>(op)) {
      if (ShardingAttr pin = getResultPin(declare.getResult()))
        setType(declare.getResult(), pin);
      else if (!context.mesh().axes.empty() &&
               declare.getType().getRank() > 0 &&
               !getSharding(declare.getType()))
        return declare.emitError("has no plan; run shd-optimize first");
    } else if (auto part = dyn_cast<PartOp>(op)) {
      visitPart(part);
    } else if (isa<OutputOp, UpdateOp, YieldOp>(op)) {
      for (unsigned i = 0; i < op.getNumOperands(); ++i)
        convertOperand(&op, i);
      if (auto update = dyn_cast<UpdateOp>(op); update && copiesToHost(update))
        emitToHost(update);
    }
  }
  return success();
}

/// Pins may ask for what types must not have.
LogicalResult checkExtents(ProgramOp program, const Mesh &mesh) {
  WalkResult result = program.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      if (ShardingAttr sharding = getSharding(type);
          sharding &&
          !divides(mesh, tensorShape(type), toLayout(mesh, sharding))) {
        op->emitError("the plan's axes do not divide the extents of the "
                      "result, whose sharding is ")
            << sharding;
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// Without a mesh no type has a sharding.
void removeShardings(ProgramOp program) {
  auto remove = [](Value value) {
    value.setType(withSharding(value.getType(), {}));
  };
  program.walk([&](Operation *op) {
    llvm::for_each(op->getResults(), remove);
    for (Region &region : op->getRegions())
      llvm::for_each(region.getArguments(), remove);
  });
}

struct InsertCollectivesPass
    : impl::ShdInsertCollectivesBase<InsertCollectivesPass> {
  void runOnOperation() override {
    std::unique_ptr<PlanningContext> context = createContext(getOperation());
    if (!context || failed(insertCollectives(*context, getOperation())))
      signalPassFailure();
  }
};

} // namespace

LogicalResult insertCollectives(PlanningContext &context, ProgramOp program) {
  CollectiveInserter inserter(context, program.getContext());
  if (failed(inserter.visit(program.getBody().front())) ||
      (!program.getAllowPadding() &&
       failed(checkExtents(program, context.mesh()))))
    return failure();
  program.walk([](Operation *op) {
    op->removeAttr(kResultPin);
    op->removeAttr(kOperandPins);
    op->removeAttr(kMade);
    removeSourceAttributes(op);
  });
  if (!program.getMeshAttr())
    removeShardings(program);
  return success();
}

} // namespace shardc::shd
