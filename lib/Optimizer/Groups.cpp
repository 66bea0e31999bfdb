//===- Groups.cpp - Costs of fusion groups ----------------------*- C++ -*-===//

#include "NetworkBuilder.h"
#include "shardc/Cost/Schedule.h"
#include "shardc/Dialect/Shd/IR/RingAttention.h"
#include "shardc/Optimizer/Halos.h"
#include "shardc/Optimizer/Rings.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

/// Adds the operations of the prologue that makes `value`, as they run where it
/// is wanted in `layout`.
void NetworkBuilder::addPrologue(Value value, const Layout &layout,
                                 PartWork &part) {
  const GraphValue &made =
      network.graph.values[network.graph.valueIndex.lookup(value)];
  const ChunkDomain &domain = network.domains[made.chunk];
  const auto &layouts = domain.layoutsOf(made);
  auto it = llvm::find(layouts, layout);
  if (it == layouts.end())
    return; // no way to make it there: the pair is forbidden
  const ChunkStrategy &strategy = domain.labels[it - layouts.begin()];
  for (auto [op, opStrategy] :
       llvm::zip(network.graph.chunks[made.chunk].ops, strategy.ops))
    addOperation(context, op, ruleOf(op), opStrategy, part);
}

/// The operation's sharding rule, made once.
const ShardingRule &NetworkBuilder::ruleOf(Operation *op) {
  auto [it, isNew] = rules.try_emplace(op);
  if (isNew)
    it->second = std::make_unique<ShardingRule>(
        cast<ShardingRuleOpInterface>(op).getShardingRule());
  return *it->second;
}

PartWork NetworkBuilder::work(unsigned index, unsigned label) {
  const Chunk &chunk = network.graph.chunks[index];
  const ChunkStrategy &strategy = network.domains[index].labels[label];
  PartWork part;
  llvm::SmallSetVector<Value, 2> inlined;
  for (unsigned operand = 0; strategy.inlined >> operand; ++operand)
    if (Value value = chunk.ops.front()->getOperand(operand);
        (strategy.inlined & (1u << operand)) && inlined.insert(value))
      addPrologue(value, network.domains[index].operands[0][operand][label],
                  part);
  for (auto [number, op] : llvm::enumerate(chunk.ops))
    addOperation(context, op, ruleOf(op), strategy.ops[number], part);
  return part;
}

/// True if `chunks` make the value and someone outside reads it from HBM.
bool NetworkBuilder::neededInHbm(Value value, ArrayRef<unsigned> chunks) const {
  const GraphValue &info =
      network.graph.values[network.graph.valueIndex.lookup(value)];
  if (!llvm::is_contained(chunks, info.chunk))
    return false;
  return !info.flows.empty() ||
         llvm::any_of(info.uses, [&](const ChunkUse &use) {
           return !llvm::is_contained(chunks, use.chunk);
         });
}

/// Time of one or two parts that run as one kernel.
Picoseconds NetworkBuilder::timeOf(const PartWork &first,
                                   const PartWork *second,
                                   ArrayRef<unsigned> chunks) const {
  GroupCost cost =
      costParts(context.machine(), first, second,
                [&](Value value) { return neededInHbm(value, chunks); });
  return toPicoseconds(cost.seconds());
}

std::vector<PartWork> NetworkBuilder::works(unsigned chunk) {
  size_t numLabels = network.domains[chunk].labels.size();
  std::vector<PartWork> result;
  for (unsigned label = 0; label < numLabels; ++label)
    result.push_back(work(chunk, label));
  return result;
}

/// By label of a leader that may run around rings: what travels takes so long,
/// on so many devices. Empty for others.
std::vector<NetworkBuilder::RingTime>
NetworkBuilder::ringTimes(unsigned index) {
  const Chunk &chunk = network.graph.chunks[index];
  std::vector<RingTime> times;
  if (chunk.kind != Chunk::Kind::Leader || !ruleOf(chunk.ops.front()).ring)
    return times;
  Operation *op = chunk.ops.front();
  for (const ChunkStrategy &label : network.domains[index].labels) {
    RingTime &time = times.emplace_back();
    const Strategy &strategy = label.ops.front();
    for (const RingMove &move :
         ringMoves(context.model, op, ruleOf(op), strategy))
      time.moves =
          saturatingAdd(time.moves, toPicoseconds(move.cost.seconds()));
    if (strategy.ring)
      time.devices = context.mesh().axes[*strategy.ring].size;
  }
  return times;
}

/// The time for which a group keeps the compute stream: with what travels
/// beside it, where it runs around a ring.
Picoseconds NetworkBuilder::withRing(Picoseconds time, ArrayRef<RingTime> rings,
                                     unsigned label) {
  if (rings.empty() || rings[label].devices == 1)
    return time;
  return ringTime(time, rings[label].moves, rings[label].devices);
}

uint32_t NetworkBuilder::beginOfReads(unsigned chunk) const {
  uint32_t begin = network.graph.chunks[chunk].point;
  for (const GraphValue &value : network.graph.values)
    for (const ChunkUse &use : value.uses)
      if (use.chunk == chunk)
        begin = std::min(begin, use.point);
  return begin;
}

/// What travels occupies the networks, and has buffers while the operation
/// runs.
void NetworkBuilder::costRings(unsigned index) {
  const Chunk &chunk = network.graph.chunks[index];
  if (chunk.kind != Chunk::Kind::Leader || !ruleOf(chunk.ops.front()).ring)
    return;
  Operation *op = chunk.ops.front();
  const ShardingRule &rule = ruleOf(op);
  const auto &labels = network.domains[index].labels;
  std::vector<EntryCosts> costs(labels.size(), scale.none());
  uint32_t begin = beginOfReads(index);
  for (auto [label, strategy] : llvm::enumerate(labels)) {
    const Strategy &own = strategy.ops.front();
    if (!own.ring)
      continue;
    int64_t bytes =
        wholeBytes(ringSumBytes(rule, localExtents(context.mesh(), rule, own)));
    for (const RingMove &move : ringMoves(context.model, op, rule, own)) {
      costs[label] += scale.collective(move.cost, chunk.count);
      bytes += ringBufferBytes(move.bytes);
    }
    addUsage(network.chunkVariable[index], label, begin, chunk.readEnd, bytes);
  }
  addCosts(network.chunkVariable[index], costs, std::nullopt);
}

/// Halos occupy the networks, and their operands have buffers of their own. The
/// exchange may run beside other work, so that no chain of operations has its
/// time.
void NetworkBuilder::costHalos(unsigned index) {
  const Chunk &chunk = network.graph.chunks[index];
  if (chunk.kind != Chunk::Kind::Leader || !ruleOf(chunk.ops.front()).halo)
    return;
  Operation *op = chunk.ops.front();
  const auto &labels = network.domains[index].labels;
  std::vector<EntryCosts> costs(labels.size(), scale.none());
  uint32_t begin = beginOfReads(index);
  for (auto [label, strategy] : llvm::enumerate(labels)) {
    int64_t bytes = 0, ofResults = 0;
    for (const HaloMove &move :
         haloMoves(context.model, op, ruleOf(op), strategy.ops.front())) {
      costs[label] += scale.collective(move.cost, chunk.count);
      (move.isResult ? ofResults : bytes) += wholeBytes(move.bytes);
    }
    addUsage(network.chunkVariable[index], label, begin, chunk.readEnd, bytes);
    addUsage(network.chunkVariable[index], label, chunk.point, chunk.point + 1,
             ofResults);
  }
  addCosts(network.chunkVariable[index], costs, std::nullopt);
}

/// Times of one run of a chunk that is not fused, by label.
std::vector<Picoseconds>
NetworkBuilder::timesAlone(unsigned chunk, ArrayRef<PartWork> works) const {
  std::vector<Picoseconds> times;
  for (const PartWork &part : works)
    times.push_back(timeOf(part, nullptr, {chunk}));
  return times;
}

void NetworkBuilder::costGroup(unsigned group) {
  auto [leader, rest] = network.graph.groups[group];
  ChainLink link = {ChainLink::Kind::Group, group, 0};
  if (leader < 0 || rest < 0) {
    unsigned chunk = leader < 0 ? rest : leader;
    if (network.graph.chunks[chunk].prologue)
      return;
    std::vector<Picoseconds> times = timesAlone(chunk, works(chunk));
    std::vector<EntryCosts> costs;
    for (Picoseconds time : times)
      costs.push_back(scale.kernel(time, network.graph.chunks[chunk].count));
    std::vector<RingTime> rings = ringTimes(chunk);
    for (auto [label, time] : llvm::enumerate(times))
      time = withRing(time, rings, label);
    addCosts(network.chunkVariable[chunk], costs,
             TimedLink{link, std::move(times)});
    return;
  }
  std::vector<PartWork> leaders = works(leader), rests = works(rest);
  std::vector<RingTime> rings = ringTimes(leader);
  std::vector<Picoseconds> leaderAlone = timesAlone(leader, leaders),
                           restAlone = timesAlone(rest, rests);
  // In chunks they are kernels of their own, but one value stays small.
  ArrayRef<Operation *> restOps = network.graph.chunks[rest].ops;
  int64_t chunks = separateChunks(restOps);
  std::vector<Picoseconds> leaderInChunks, restInChunks;
  if (chunks != kNoChunks) {
    Operation *leaderOp = network.graph.chunks[leader].ops.front();
    for (const PartWork &part : leaders)
      leaderInChunks.push_back(timeOf(inChunks(part, leaderOp, restOps),
                                      nullptr, {unsigned(leader)}));
    for (const PartWork &part : rests)
      restInChunks.push_back(
          timeOf(inOwnChunks(part, restOps), nullptr, {unsigned(rest)}));
  }
  unsigned index = network.graph.valueIndex.lookup(
      groupValue(network.graph.chunks[leader].ops.front()));
  const GraphValue &value = network.graph.values[index];
  std::optional<Layout> pin = closedPin(value);
  // Then its own variable has what reading it costs.
  bool isApart = pin || leavesItsGroup(value);
  bool onlyHere = staysInGroup(value);
  TensorShape shape = shapeOf(index);
  std::vector<Layout> storedLayouts =
      pin ? std::vector<Layout>{*pin}
          : distinct(network.domains[leader].layoutsOf(value));
  Consumer consumer = consumerOf(value, rest);
  if (leavesItsGroup(value))
    consumer.strategies = &network.domains[rest].labels;
  Layouts wanted;
  std::vector<unsigned> wantOf;
  std::vector<Want> wants = distinctWants(consumer, wanted, wantOf);
  PriceMatrix prices = pricesOf(index, storedLayouts, wanted, value.count);
  CostTable table = tableOf(leaders.size(), rests.size());
  std::vector<int64_t> life, extra;
  std::vector<Picoseconds> groupTimes, readTimes;
  for (unsigned a = 0; a < leaders.size(); ++a) {
    const Layout &made = network.domains[leader].layoutsOf(value)[a];
    unsigned stored = pin ? 0 : numberOf(storedLayouts, made);
    std::vector<ReadPrice> reads;
    std::vector<bool> fuses;
    for (const Want &want : wants) {
      bool asMade = readsAll(want, made, wanted);
      fuses.push_back(want.leaderRead == LeaderRead::Any
                          ? asMade && made == storedLayouts[stored]
                          : want.leaderRead == LeaderRead::Fused);
      ReadPrice &read = reads.emplace_back(ReadPrice{scale.none()});
      // A value that is made and read alike, but stored otherwise, is resharded
      // twice.
      if ((want.leaderRead == LeaderRead::Fused && !asMade) ||
          (want.leaderRead == LeaderRead::Stored && asMade))
        read.costs = scale.forbidden();
      else if (!isApart)
        read = priceReads(prices, stored, want.layouts);
    }
    for (unsigned b = 0; b < rests.size(); ++b) {
      const ReadPrice &read = reads[wantOf[b]];
      bool fused = fuses[wantOf[b]];
      Picoseconds apart = saturatingAdd(leaderAlone[a], restAlone[b]);
      bool isForbidden = read.costs.isForbidden();
      bool together = fused && !isForbidden;
      Picoseconds time = !together ? apart
                         : chunks != kNoChunks
                             ? saturatingAdd(leaderInChunks[a], restInChunks[b])
                             : timeOf(leaders[a], &rests[b],
                                      {unsigned(leader), unsigned(rest)});
      EntryCosts costs = scale.kernel(time, value.count);
      costs += read.costs;
      table.append(costs);
      groupTimes.push_back(
          together ? withRing(time, rings, a)
                   : saturatingAdd(withRing(leaderAlone[a], rings, a),
                                   restAlone[b]));
      readTimes.push_back(read.time);
      bool counts = !fused && !isForbidden;
      bool isStored = counts || (together && chunks != kNoChunks);
      int64_t bytes =
          wholeBytes(shape.localBytes(context.mesh(), storedLayouts[stored]));
      if (!counts && isStored)
        bytes = llvm::divideCeil(bytes, chunks);
      life.push_back(isStored && onlyHere ? bytes : 0);
      extra.push_back(counts ? read.bytes : 0);
    }
  }
  unsigned edge = addEdge(
      network.chunkVariable[leader], network.chunkVariable[rest],
      std::move(table),
      {{link, std::move(groupTimes)},
       {{ChainLink::Kind::Read, index, unsigned(rest)}, std::move(readTimes)}});
  keepEdge({ChainLink::Kind::Read, index, unsigned(rest)}, edge, value.count);
  addEdgeUsage(edge, value.begin, value.end, std::move(life));
  addEdgeUsage(edge, consumer.begin, consumer.end, std::move(extra));
}

void NetworkBuilder::costChunks() {
  for (auto [index, chunk] : llvm::enumerate(network.graph.chunks)) {
    if (chunk.kind == Chunk::Kind::Output)
      continue;
    const auto &labels = network.domains[index].labels;
    std::vector<EntryCosts> costs(labels.size(), scale.none());
    std::vector<Picoseconds> times(labels.size(), 0);
    for (auto [number, op] : llvm::enumerate(chunk.ops)) {
      const ShardingRule &rule = ruleOf(op);
      if (rule.statistics.empty())
        continue;
      for (auto [label, strategy] : llvm::enumerate(labels))
        for (const StatisticCost &statistic :
             statisticCosts(context.model, rule, strategy.ops[number])) {
          costs[label] += scale.collective(statistic.cost, chunk.count);
          times[label] = saturatingAdd(times[label],
                                       toPicoseconds(statistic.cost.seconds()));
        }
    }
    addCosts(network.chunkVariable[index], costs,
             TimedLink{{ChainLink::Kind::Statistics, unsigned(index), 0},
                       std::move(times)});
    costRings(index);
    costHalos(index);
  }
  for (auto [group, parts] : llvm::enumerate(network.graph.groups))
    if (parts.first >= 0 || parts.second >= 0)
      costGroup(group);
}
