//===- Domain.cpp - Strategies of a chunk ----------------------*- C++ -*-===//

#include "shardc/Optimizer/Domain.h"
#include "shardc/Dialect/Shd/IR/Halo.h"
#include "shardc/Dialect/Shd/IR/RingAttention.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

namespace {

/// The iteration space that the operations of a chunk share, by index name.
class ChunkSpace {
public:
  ChunkSpace(const PlanningContext &context, const Chunk &chunk,
             const NeighbourAxes *neighbours);

  /// The labels of these strategies of all operations together.
  ChunkDomain domainOf(ArrayRef<Strategy> strategies) const;
  std::vector<Strategy> placing(const AxisBlocks &blocks) const {
    return enumerateStrategies(context.mesh(), shared, blocks,
                               context.allowPadding);
  }
  std::vector<Strategy> neighboursOf(const Strategy &strategy) const {
    return neighbourStrategies(context.mesh(), shared, strategy,
                               context.allowPadding);
  }
  /// The strategy of all operations that specialise() makes a label of.
  Strategy generalise(const ChunkStrategy &label) const;

private:
  /// A set of operands from outside that may be partial sums together.
  struct Origin {
    unsigned op, linearSet;
  };

  void addFactors(const ShardingRule &rule);
  void addOrigins(unsigned op);
  bool leavesAsPartial(const Origin &origin) const;
  bool isInternal(Value value) const { return made.contains(value); }
  /// A leader is alone in its chunk, so that both have the same factors.
  bool mayRunAroundRings() const {
    return context.machine().ringAttention && rules.size() == 1 &&
           rules.front().ring;
  }
  std::optional<ChunkStrategy> specialise(const Strategy &shared) const;
  std::optional<Strategy> strategyOf(unsigned op, const Strategy &shared,
                                     ArrayRef<Layout> layouts) const;
  /// Operands that the chunk makes, a bit each, and those of them that are
  /// partial sums.
  struct InternalOperands {
    uint32_t all = 0, partial = 0;
  };
  InternalOperands
  internalOperands(unsigned op,
                   llvm::function_ref<bool(unsigned)> isPartial) const;
  std::optional<unsigned> linearSetOf(unsigned op,
                                      InternalOperands operands) const;
  bool passThrough(unsigned op, ArrayRef<Layout> layouts,
                   const Strategy &shared, Strategy &strategy) const;
  bool admitsPins(unsigned op, const Strategy &strategy) const;
  void append(ChunkDomain &domain, ChunkStrategy strategy) const;

  const PlanningContext &context;
  const Chunk &chunk;
  std::vector<ShardingRule> rules;
  ShardingRule shared;
  /// [operation][factor of its rule]: factor of the shared rule.
  std::vector<llvm::SmallVector<unsigned, 6>> sharedFactor;
  std::vector<Origin> origins;
  /// [operation][factor]: axes that it may be placed on; empty: all.
  std::vector<llvm::SmallVector<AxisSet, 6>> allowed;
  /// What the chunk's operations make, numbered in their order.
  llvm::DenseMap<Value, unsigned> made;
};

ChunkSpace::ChunkSpace(const PlanningContext &context, const Chunk &chunk,
                       const NeighbourAxes *neighbours)
    : context(context), chunk(chunk) {
  for (Operation *op : chunk.ops) {
    rules.push_back(cast<ShardingRuleOpInterface>(op).getShardingRule());
    addFactors(rules.back());
    addOrigins(rules.size() - 1);
    if (neighbours)
      allowed.push_back(neighbours->axesOf(op, rules.back()));
    for (Value result : op->getResults())
      made.try_emplace(result, made.size());
  }
  // Strategies are as many as origins to the power of the axes.
  llvm::erase_if(
      origins, [&](const Origin &origin) { return !leavesAsPartial(origin); });
  shared.linearSets.assign(origins.size(), 0);
}

void ChunkSpace::addFactors(const ShardingRule &rule) {
  auto &map = sharedFactor.emplace_back();
  for (const Factor &factor : rule.factors) {
    std::optional<unsigned> known = shared.findFactor(factor.name);
    if (!known) {
      known = shared.factors.size();
      shared.factors.push_back(factor);
    } else if (factor.kind == FactorKind::Replicated) {
      shared.factors[*known].kind = FactorKind::Replicated;
    }
    map.push_back(*known);
  }
}

void ChunkSpace::addOrigins(unsigned op) {
  const ShardingRule &rule = rules[op];
  for (unsigned set = 0; set < rule.linearSets.size(); ++set) {
    bool external = true;
    for (unsigned i = 0; i < rule.operands.size(); ++i)
      if (rule.linearSets[set] & (1u << i)) {
        Value operand = chunk.ops[op]->getOperand(i);
        external &= !isInternal(operand) && hasLayout(operand);
      }
    if (external)
      origins.push_back({op, set});
  }
}

ChunkSpace::InternalOperands ChunkSpace::internalOperands(
    unsigned op, llvm::function_ref<bool(unsigned)> isPartial) const {
  InternalOperands operands;
  for (unsigned i = 0; i < rules[op].operands.size(); ++i)
    if (auto it = made.find(chunk.ops[op]->getOperand(i)); it != made.end()) {
      operands.all |= 1u << i;
      if (isPartial(it->second))
        operands.partial |= 1u << i;
    }
  return operands;
}

/// The linear set that partial sums made inside are all of, as far as it is
/// made inside.
std::optional<unsigned>
ChunkSpace::linearSetOf(unsigned op, InternalOperands operands) const {
  ArrayRef<uint32_t> sets = rules[op].linearSets;
  for (unsigned set = 0; set < sets.size(); ++set)
    if ((sets[set] & operands.all) == operands.partial)
      return set;
  return std::nullopt;
}

/// True if every operation of the chunk that reads a partial sum which comes in
/// here, or what is made of it, is linear in it: whatever else is placed.
bool ChunkSpace::leavesAsPartial(const Origin &origin) const {
  llvm::DenseSet<unsigned> partial;
  for (unsigned op = origin.op; op < rules.size(); ++op) {
    InternalOperands operands = internalOperands(
        op, [&](unsigned value) { return partial.contains(value); });
    std::optional<unsigned> set;
    if (op == origin.op)
      set = origin.linearSet;
    else if (!operands.partial)
      continue;
    else if (!(set = linearSetOf(op, operands)))
      return false;
    Strategy strategy;
    strategy.factorAxes.resize(rules[op].factors.size());
    strategy.passThrough.push_back({AxisIndex(0), *set});
    for (auto [i, result] : llvm::enumerate(chunk.ops[op]->getResults()))
      if (resultLayout(rules[op], strategy, i).partial)
        partial.insert(made.lookup(result));
  }
  return true;
}

/// Operands made inside that are partial sums must be exactly (part of) one
/// linear set, whose other operands then come in as partial sums as well.
bool ChunkSpace::passThrough(unsigned op, ArrayRef<Layout> layouts,
                             const Strategy &shared, Strategy &strategy) const {
  for (AxisIndex axis = 0; axis < context.mesh().size(); ++axis) {
    InternalOperands operands = internalOperands(op, [&](unsigned value) {
      return layouts[value].partial & axisBit(axis);
    });
    std::optional<unsigned> chosen;
    for (auto [originAxis, origin] : shared.passThrough)
      if (originAxis == axis && origins[origin].op == op)
        chosen = origins[origin].linearSet;
    if (operands.partial && chosen)
      return false;
    if (operands.partial && !(chosen = linearSetOf(op, operands)))
      return false;
    if (chosen)
      strategy.passThrough.push_back({axis, *chosen});
  }
  return true;
}

bool ChunkSpace::admitsPins(unsigned op, const Strategy &strategy) const {
  for (unsigned i = 0; i < rules[op].operands.size(); ++i)
    if (ShardingAttr pin = getOperandPin(chunk.ops[op], i))
      if (!admits(context.mesh(), pin, operandLayout(rules[op], strategy, i)))
        return false;
  return true;
}

std::optional<Strategy> ChunkSpace::strategyOf(unsigned op,
                                               const Strategy &shared,
                                               ArrayRef<Layout> layouts) const {
  Strategy strategy;
  strategy.ring = shared.ring;
  strategy.halo = shared.halo;
  for (auto [own, factor] : llvm::enumerate(sharedFactor[op])) {
    strategy.factorAxes.push_back(shared.factorAxes[factor]);
    if (!allowed.empty() &&
        (axisSet(strategy.factorAxes.back()) & ~allowed[op][own]))
      return std::nullopt;
  }
  if (!passThrough(op, layouts, shared, strategy) ||
      checkStrategy(context.mesh(), rules[op], strategy,
                    context.allowPadding) ||
      !admitsPins(op, strategy))
    return std::nullopt;
  for (unsigned i = 0; i < rules[op].operands.size(); ++i) {
    auto it = made.find(chunk.ops[op]->getOperand(i));
    if (it == made.end())
      continue;
    // Nothing is resharded inside a chunk.
    const Layout &layout = layouts[it->second];
    ShardingAttr pin = getResultPin(it->first);
    if (!(operandLayout(rules[op], strategy, i) == layout) ||
        (pin && !admits(context.mesh(), pin, layout)))
      return std::nullopt;
  }
  return strategy;
}

std::optional<ChunkStrategy>
ChunkSpace::specialise(const Strategy &shared) const {
  ChunkStrategy result;
  llvm::SmallVector<Layout, 4> layouts;
  for (unsigned op = 0; op < rules.size(); ++op) {
    std::optional<Strategy> strategy = strategyOf(op, shared, layouts);
    if (!strategy)
      return std::nullopt;
    for (unsigned i = 0; i < rules[op].results.size(); ++i) {
      layouts.push_back(resultLayout(rules[op], *strategy, i));
      ShardingAttr made = getMade(chunk.ops[op]->getResult(i));
      if (made && !admits(context.mesh(), made, layouts.back()))
        return std::nullopt;
    }
    result.ops.push_back(std::move(*strategy));
  }
  return result;
}

void ChunkSpace::append(ChunkDomain &domain, ChunkStrategy strategy) const {
  for (unsigned op = 0; op < rules.size(); ++op) {
    for (auto [number, layouts] : llvm::enumerate(domain.results[op]))
      layouts.push_back(resultLayout(rules[op], strategy.ops[op], number));
    for (unsigned i = 0; i < rules[op].operands.size(); ++i)
      if (hasLayout(chunk.ops[op]->getOperand(i)))
        domain.operands[op][i].push_back(
            operandLayout(rules[op], strategy.ops[op], i));
  }
  domain.labels.push_back(std::move(strategy));
}

Strategy ChunkSpace::generalise(const ChunkStrategy &label) const {
  Strategy all;
  all.factorAxes.resize(shared.factors.size());
  for (auto [op, strategy] : llvm::enumerate(label.ops)) {
    for (auto [own, factor] : llvm::enumerate(sharedFactor[op]))
      all.factorAxes[factor] = strategy.factorAxes[own];
    for (auto [axis, set] : strategy.passThrough)
      for (auto [number, origin] : llvm::enumerate(origins))
        if (origin.op == op && origin.linearSet == set)
          all.passThrough.push_back({axis, unsigned(number)});
  }
  llvm::sort(all.passThrough);
  return all;
}

ChunkDomain ChunkSpace::domainOf(ArrayRef<Strategy> strategies) const {
  ChunkDomain domain;
  domain.results.resize(rules.size());
  domain.operands.resize(rules.size());
  for (unsigned op = 0; op < rules.size(); ++op) {
    domain.operands[op].resize(rules[op].operands.size());
    domain.results[op].resize(rules[op].results.size());
  }
  auto add = [&](const Strategy &strategy) {
    if (std::optional<ChunkStrategy> label = specialise(strategy))
      append(domain, std::move(*label));
  };
  // Divisibility is checked per operation; here only the axes are placed.
  for (const Strategy &strategy : strategies)
    add(strategy);
  if (mayRunAroundRings())
    for (Strategy strategy : strategies)
      for (AxisIndex axis : ringAxes(context.mesh(), rules.front(), strategy)) {
        strategy.ring = axis;
        add(strategy);
      }
  if (rules.size() == 1)
    for (Strategy strategy : strategies)
      if (mayReadHalos(context.mesh(), rules.front(), strategy)) {
        strategy.halo = true;
        add(strategy);
      }
  return domain;
}

/// An output's labels are the layouts in which its value may leave: the pin, or
/// any that is no partial sum, or exactly the partial sum that the value's own
/// pin asks for. `all` are the layouts to choose from.
ChunkDomain
outputDomain(const PlanningContext &context, OutputOp output,
             llvm::function_ref<std::vector<Layout>(bool withPartial)> all) {
  ChunkDomain domain;
  domain.operands.resize(1);
  domain.operands[0].resize(1);
  auto &layouts = domain.operands[0][0];
  const Mesh &mesh = context.mesh();
  ShardingAttr pin = getOperandPin(output, 0);
  ShardingAttr stored = output.getValue().getDefiningOp()
                            ? getResultPin(output.getValue())
                            : ShardingAttr();
  if (pin && !pin.isOpen()) {
    layouts.push_back(toLayout(mesh, pin));
  } else {
    bool partial = pin && !pin.getPartial().empty();
    for (Layout &layout : all(partial))
      if (!pin || (admits(mesh, pin, layout) && (partial || !layout.partial)))
        layouts.push_back(std::move(layout));
    if (!pin && stored && !stored.isOpen() && !stored.getPartial().empty())
      layouts.push_back(toLayout(mesh, stored));
  }
  domain.labels.resize(layouts.size());
  return domain;
}

TensorShape shapeOf(OutputOp output) {
  return tensorShape(output.getValue().getType());
}

/// Adds those that are not there yet.
template <typename T> void addNew(std::vector<T> &list, std::vector<T> more) {
  for (T &each : more)
    if (!llvm::is_contained(list, each))
      list.push_back(std::move(each));
}

std::vector<Layout> outputsOf(ArrayRef<ChunkChoice> choices) {
  std::vector<Layout> layouts;
  for (const ChunkChoice &choice : choices)
    layouts.push_back(choice.output);
  return layouts;
}

std::vector<Strategy> strategiesOf(const ChunkSpace &space,
                                   ArrayRef<ChunkChoice> choices) {
  std::vector<Strategy> strategies;
  for (const ChunkChoice &choice : choices)
    addNew(strategies, {space.generalise(choice.strategy)});
  return strategies;
}

} // namespace

ChunkDomain shardc::buildDomain(const PlanningContext &context,
                                const Chunk &chunk,
                                const NeighbourAxes *neighbours) {
  AxisBlocks separate = separateAxes(context.mesh());
  if (chunk.kind == Chunk::Kind::Output)
    return buildDomain(context, chunk, separate, {});
  ChunkSpace space(context, chunk, neighbours);
  return space.domainOf(space.placing(separate));
}

ChunkDomain shardc::buildDomain(const PlanningContext &context,
                                const Chunk &chunk, const AxisBlocks &blocks,
                                ArrayRef<ChunkChoice> choices) {
  if (chunk.kind == Chunk::Kind::Output) {
    auto output = cast<OutputOp>(chunk.ops.front());
    return outputDomain(context, output, [&](bool withPartial) {
      std::vector<Layout> layouts =
          enumerateLayouts(context.mesh(), shapeOf(output), withPartial, blocks,
                           context.allowPadding);
      addNew(layouts, outputsOf(choices));
      return layouts;
    });
  }
  ChunkSpace space(context, chunk, /*neighbours=*/nullptr);
  std::vector<Strategy> strategies = space.placing(blocks);
  addNew(strategies, strategiesOf(space, choices));
  return space.domainOf(strategies);
}

ChunkDomain shardc::buildDomainAround(const PlanningContext &context,
                                      const Chunk &chunk,
                                      ArrayRef<ChunkChoice> choices) {
  if (chunk.kind == Chunk::Kind::Output) {
    auto output = cast<OutputOp>(chunk.ops.front());
    return outputDomain(context, output, [&](bool withPartial) {
      std::vector<Layout> layouts;
      addNew(layouts, outputsOf(choices));
      addNew(layouts, neighbourLayouts(context.mesh(), shapeOf(output),
                                       choices.front().output, withPartial,
                                       context.allowPadding));
      return layouts;
    });
  }
  ChunkSpace space(context, chunk, /*neighbours=*/nullptr);
  std::vector<Strategy> strategies = strategiesOf(space, choices);
  addNew(strategies,
         space.neighboursOf(space.generalise(choices.front().strategy)));
  return space.domainOf(strategies);
}

void shardc::addInlining(ChunkDomain &domain, ArrayRef<unsigned> operands) {
  auto twice = [](auto &list) {
    for (size_t i = 0, size = list.size(); i < size; ++i)
      list.push_back(list[i]);
  };
  for (unsigned operand : operands) {
    size_t size = domain.labels.size();
    twice(domain.labels);
    for (size_t i = size; i < domain.labels.size(); ++i)
      domain.labels[i].inlined |= 1u << operand;
    for (auto *tensors : {&domain.results, &domain.operands})
      for (auto &op : *tensors)
        for (auto &layouts : op)
          twice(layouts);
  }
}

uint32_t shardc::movedOperands(const ShardingRule &rule,
                               const Strategy &strategy) {
  uint32_t moved = 0;
  auto add = [&](ArrayRef<unsigned> operands) {
    for (unsigned operand : operands)
      moved |= 1u << operand;
  };
  if (strategy.ring)
    add(ringOperands(rule));
  if (strategy.halo)
    add(haloOperands(rule));
  return moved;
}

void shardc::removeInlinedMoves(ChunkDomain &domain, const ShardingRule &rule) {
  std::vector<size_t> kept;
  for (auto [number, label] : llvm::enumerate(domain.labels))
    if (!(label.inlined & movedOperands(rule, label.ops.front())))
      kept.push_back(number);
  if (kept.size() < domain.labels.size())
    selectLabels(domain, kept);
}

void shardc::selectLabels(ChunkDomain &domain, ArrayRef<size_t> numbers) {
  auto select = [&](auto &list) {
    if (list.empty())
      return;
    std::remove_reference_t<decltype(list)> selected;
    for (size_t number : numbers)
      selected.push_back(list[number]);
    list = std::move(selected);
  };
  select(domain.labels);
  for (auto *tensors : {&domain.results, &domain.operands})
    for (auto &op : *tensors)
      for (auto &layouts : op)
        select(layouts);
}

void shardc::addLeaderReads(ChunkDomain &domain,
                            ArrayRef<std::pair<unsigned, unsigned>> uses) {
  auto wanted = [&](std::pair<unsigned, unsigned> use, size_t label) {
    return domain.operands[use.first][use.second][label];
  };
  std::vector<size_t> from;
  std::vector<LeaderRead> reads;
  for (size_t number = 0; number < domain.labels.size(); ++number) {
    // In one layout, or it is resharded for some of its uses.
    bool inOne = llvm::all_of(uses, [&](auto use) {
      return wanted(use, number) == wanted(uses.front(), number);
    });
    for (LeaderRead read :
         {LeaderRead::Fused, LeaderRead::Stored, LeaderRead::Resharded}) {
      if (!inOne && read != LeaderRead::Resharded)
        continue;
      from.push_back(number);
      reads.push_back(read);
    }
  }
  selectLabels(domain, from);
  for (auto [label, read] : llvm::zip_equal(domain.labels, reads))
    label.leaderRead = read;
}

llvm::SmallVector<StatisticCost, 3>
shardc::statisticCosts(const CollectiveModel &model, const ShardingRule &rule,
                       const Strategy &strategy) {
  llvm::SmallVector<StatisticCost, 3> costs;
  AxisList axes = statisticAxes(rule, strategy);
  if (axes.empty())
    return costs;
  LocalExtents extents = localExtents(model.mesh(), rule, strategy);
  for (const Statistic &statistic : rule.statistics) {
    double bytes = elementTypeBits(statistic.elementType) / 8.0;
    for (unsigned factor : statistic.factors)
      bytes *= extents[factor];
    costs.push_back(
        {&statistic, axes, model.cost(CollectiveKind::AllReduce, axes, bytes)});
  }
  return costs;
}
