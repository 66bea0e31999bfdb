//===- Network.cpp - A program as a cost function network -------*- C++ -*-===//

#include "NetworkBuilder.h"
#include "shardc/Dialect/Shd/IR/Halo.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;
using solver::Cost;
using solver::kForbidden;
using solver::Variable;

namespace {
/// Beyond these a mesh is too wide to search: strategies of one operation,
/// layouts of one tensor, and entries of all tables.
constexpr double kMaxStrategies = 20'000, kMaxLayouts = 500, kMaxEntries = 1e8;
/// Beyond these a program is too large to search: operations, and strategies of
/// all of them.
constexpr size_t kMaxOperations = 4'000;
constexpr double kMaxAllStrategies = 1e6;
/// Where layouts are fixed: strategies of one operation, and those of them that
/// its neighbours and the extents allow.
constexpr double kMaxFixedStrategies = 200'000;
constexpr size_t kMaxAllowedStrategies = 6'000;

/// Entries of all tables where only some labels are chosen.
constexpr double kMaxChosenEntries = 2e7;
} // namespace

EntryCosts CostScale::kernel(Picoseconds time, int64_t count) const {
  EntryCosts costs = none();
  costs.weighed() = scaled(scaled(time, count), weights.device);
  if (!costs.resources().empty())
    costs.resources().front() = scaled(time, count);
  return costs;
}

EntryCosts CostScale::collectives(Picoseconds time,
                                  ArrayRef<Picoseconds> occupied,
                                  int64_t count) const {
  EntryCosts costs = none();
  costs.weighed() = scaled(scaled(time, count), weights.collectives);
  if (!costs.resources().empty())
    for (auto [busy, each] :
         llvm::zip(costs.resources().drop_front(), occupied))
      busy = scaled(each, count);
  return costs;
}

EntryCosts CostScale::collective(const CollectiveCost &cost,
                                 int64_t count) const {
  Picoseconds time = toPicoseconds(cost.seconds());
  llvm::SmallVector<Picoseconds, 4> occupied;
  for (unsigned network : cost.occupies) {
    if (occupied.size() <= network)
      occupied.resize(network + 1, 0);
    occupied[network] = time;
  }
  return collectives(time, occupied, count);
}

PriceMatrix::PriceMatrix(ReshardPlanner &planner, const CostScale &scale,
                         const TensorShape &shape, ArrayRef<Layout> from,
                         ArrayRef<Layout> to, int64_t count,
                         const AxisBlocks &blocks)
    : columns(to.size()),
      pairs(from.size() * to.size(), PairPrice{scale.forbidden()}) {
  for (auto [pair, price] :
       llvm::zip_equal(pairs, planner.prices(shape, from, to, blocks)))
    if (price)
      pair = {scale.collectives(price->picoseconds, price->occupied, count),
              price->picoseconds, price->memory.isView(),
              price->memory.extraBytes(), price->memory.storeExtraBytes()};
}

/// For messages; empty without one.
StringRef shardc::nameOfOperation(Operation *op) {
  return op && op->getNumResults() > 0 ? getResultName(op->getResults().front())
                                       : "";
}

Variable NetworkBuilder::addVariable(StringRef name, unsigned numLabels) {
  solver::VariableData &data = network.problem.variables.emplace_back();
  data.name = name.str();
  data.costs.assign(numLabels, 0);
  for (ResourceTimes &resource : network.resources)
    resource.variables.emplace_back();
  return network.problem.variables.size() - 1;
}

void NetworkBuilder::addUsage(Variable variable, unsigned label, uint32_t begin,
                              uint32_t end, int64_t bytes) {
  if (begin >= end || bytes == 0)
    return;
  solver::VariableData &data = network.problem.variables[variable];
  data.usages.resize(data.costs.size());
  data.usages[label].push_back({begin, end, bytes});
}

void NetworkBuilder::addEdgeUsage(unsigned edge, uint32_t begin, uint32_t end,
                                  std::vector<int64_t> bytes) {
  if (begin >= end || llvm::all_of(bytes, [](int64_t b) { return b == 0; }))
    return;
  network.problem.edgeUsages.push_back({edge, begin, end, std::move(bytes)});
}

unsigned NetworkBuilder::addEdge(Variable first, Variable second,
                                 CostTable table) {
  for (auto [resource, costs] :
       llvm::zip_equal(network.resources, llvm::drop_begin(table.costs)))
    resource.edges.push_back(unlessZero(std::move(costs)));
  network.problem.tables.push_back(
      {table.rows, table.columns, std::move(table.costs.front())});
  network.problem.edges.push_back(
      {first, second, solver::TableId(network.problem.tables.size() - 1)});
  return network.problem.edges.size() - 1;
}

/// Keeps how long a link takes, if that is wanted and it ever takes time.
void NetworkBuilder::keepTimes(TimedLink link, Variable first,
                               std::optional<Variable> second,
                               unsigned columns) {
  if (options.measureLinks &&
      llvm::any_of(link.times, [](Picoseconds time) { return time > 0; }))
    network.links.emplace(
        link.link, LinkTime{first, second, columns, std::move(link.times)});
}

/// An edge with links of chains.
unsigned NetworkBuilder::addEdge(Variable first, Variable second,
                                 CostTable table,
                                 std::vector<TimedLink> links) {
  for (TimedLink &link : links)
    keepTimes(std::move(link), first, second, table.columns);
  return addEdge(first, second, std::move(table));
}

/// Costs of a variable's labels, perhaps a link of chains.
void NetworkBuilder::addCosts(Variable variable, ArrayRef<EntryCosts> costs,
                              std::optional<TimedLink> link) {
  auto add = [&](std::vector<Cost> &all, size_t number) {
    all.resize(costs.size(), 0);
    for (auto [cost, more] : llvm::zip_equal(all, costs))
      cost = sum(cost, more.all()[number]);
  };
  add(network.problem.variables[variable].costs, 0);
  for (auto [number, resource] : llvm::enumerate(network.resources))
    add(resource.variables[variable], number + 1);
  if (link)
    keepTimes(std::move(*link), variable, std::nullopt, 1);
}

/// Axes that are placed, each by itself or in a block.
size_t NetworkBuilder::countAxes() const {
  return options.choice && !options.choice->blocks.empty()
             ? options.choice->blocks.size()
             : separateAxes(context.mesh()).size();
}

/// Labels of a chunk before what its values add to them.
ChunkDomain NetworkBuilder::domainOf(unsigned index,
                                     const NeighbourAxes *neighbours) const {
  const Chunk &chunk = network.graph.chunks[index];
  if (!options.choice)
    return buildDomain(context, chunk, neighbours);
  std::vector<ChunkChoice> choices;
  for (const PlanLabels &plan : options.choice->plans)
    choices.push_back(plan.chunks[index]);
  if (options.choice->blocks.empty())
    return buildDomainAround(context, chunk, choices);
  return buildDomain(context, chunk, options.choice->blocks, choices);
}

/// Where keys are on axes of the queries in vain: why they come with no halos.
static void noteHalos(InFlightDiagnostic &diag, Operation *op,
                      const Mesh &mesh) {
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  ShardingRule rule = ruled ? ruled.getShardingRule() : ShardingRule();
  HaloPins pins = haloPins(mesh, op, rule);
  if (!(axisSet(pins.halo) & axisSet(pins.along)))
    return;
  const Factor &keys = rule.factors[rule.halo->factor];
  const std::string &queries = rule.factors[rule.halo->along].name;
  int64_t parts = mesh.groupSize(ArrayRef(pins.halo));
  if (pins.halo != pins.along)
    diag.attachNote(op->getLoc())
        << "keys come with halos where '" << keys.name
        << "' is on the axes of '" << queries << "', in their order";
  else if (keys.extent % parts != 0)
    diag.attachNote(op->getLoc())
        << "keys come with halos where the " << parts
        << " devices of their axes divide the " << keys.extent
        << " elements of '" << keys.name << "'";
  else if (rule.halo->dealt > 1 && rule.halo->dealt % parts != 0)
    diag.attachNote(op->getLoc())
        << "'" << keys.name << "' is in zigzag order for " << rule.halo->dealt
        << " devices, and no halos bring its keys to " << parts;
  else if (rule.halo->rows > keys.extent / parts)
    diag.attachNote(op->getLoc())
        << "a window of " << rule.halo->rows + 1 << " reaches "
        << rule.halo->rows << " keys back, beyond the part of "
        << keys.extent / parts << " on the device before: gather '" << keys.name
        << "' over some of its axes";
}

static void emitTooWide(Operation *op, size_t limit) {
  op->emitError("too many strategies of this operation on a mesh of so many "
                "axes: expected at most ")
      << limit;
}

LogicalResult NetworkBuilder::buildDomains(ProgramOp program) {
  if (options.within) {
    network.domains = options.within->domains;
    for (auto [chunk, domain] :
         llvm::zip_equal(network.graph.chunks, network.domains))
      network.chunkVariable.push_back(addVariable(
          nameOfOperation(chunk.ops.front()), domain.labels.size()));
    return success();
  }
  bool failed = false;
  std::optional<NeighbourAxes> neighbours;
  if (options.fixed)
    neighbours.emplace(program, context.mesh());
  for (auto [index, chunk] : llvm::enumerate(network.graph.chunks)) {
    ChunkDomain domain = domainOf(index, neighbours ? &*neighbours : nullptr);
    if (domain.labels.empty()) {
      InFlightDiagnostic diag =
          chunk.ops.front()->emitError()
          << "no strategy of this operation has the annotated layouts";
      noteHalos(diag, chunk.ops.front(), context.mesh());
      failed = true;
    } else if (options.fixed && domain.labels.size() > kMaxAllowedStrategies) {
      failed = true;
      emitTooWide(chunk.ops.front(), kMaxAllowedStrategies);
    }
    network.chunkVariable.push_back(
        addVariable(nameOfOperation(chunk.ops.front()), domain.labels.size()));
    network.domains.push_back(std::move(domain));
  }
  addPrologueLabels();
  addLeaderReadLabels();
  return failure(failed);
}

/// Leaders may compute operands themselves that a prologue makes.
void NetworkBuilder::addPrologueLabels() {
  std::vector<SmallVector<unsigned, 2>> operands(network.graph.chunks.size());
  for (const GraphValue &value : network.graph.values)
    if (isPrologueValue(value))
      for (const ChunkUse &use : value.uses)
        operands[use.chunk].push_back(use.operand);
  for (auto [domain, list, variable] :
       llvm::zip(network.domains, operands, network.chunkVariable)) {
    if (list.empty())
      continue;
    llvm::sort(list);
    addInlining(domain, list);
    Operation *leader =
        network.graph.chunks[&domain - network.domains.data()].ops.front();
    removeInlinedMoves(domain, ruleOf(leader));
    network.problem.variables[variable].costs.assign(domain.labels.size(), 0);
  }
}

/// Where a leader's value may be stored otherwise than it is made, the rest of
/// its group is fused with it or not, whatever its layouts are.
void NetworkBuilder::addLeaderReadLabels() {
  for (const GraphValue &value : network.graph.values) {
    if (!leavesItsGroup(value))
      continue;
    unsigned rest =
        network.graph.groups[network.graph.chunks[value.chunk].group].second;
    SmallVector<std::pair<unsigned, unsigned>, 2> uses;
    for (const ChunkUse &use : value.uses)
      if (isFusedUse(value, use))
        uses.push_back({use.op, use.operand});
    addLeaderReads(network.domains[rest], uses);
    network.problem.variables[network.chunkVariable[rest]].costs.assign(
        network.domains[rest].labels.size(), 0);
  }
}

/// At most so many ways of placing the axes on dimensions of these extents.
double NetworkBuilder::countPlacements(ArrayRef<int64_t> extents) const {
  const Mesh &mesh = context.mesh();
  AxisBlocks axes = separateAxes(mesh);
  unsigned dims = llvm::count_if(extents, [&](int64_t extent) {
    return context.allowPadding ||
           llvm::any_of(axes, [&](const AxisList &axis) {
             return extent % mesh.groupSize(axisSet(axis)) == 0;
           });
  });
  return shardc::countPlacements(countAxes(), dims);
}

double NetworkBuilder::countStrategies(Operation *op) {
  return countPlacements(wholeExtents(ruleOf(op)));
}

/// The first operation with more strategies than that, or null.
Operation *NetworkBuilder::findWide(double maxStrategies) {
  for (const Chunk &chunk : network.graph.chunks)
    for (Operation *op : chunk.ops)
      if (isa<ShardingRuleOpInterface>(op) &&
          countStrategies(op) > maxStrategies)
        return op;
  return nullptr;
}

/// True if an operation has too many strategies, or a tensor too many layouts,
/// to list them.
bool NetworkBuilder::hasManyLabels() {
  return findWide(kMaxStrategies) ||
         llvm::any_of(network.graph.values, [&](const GraphValue &value) {
           TensorShape shape = tensorShape(value.value.getType());
           return countPlacements(ArrayRef(shape.extents)
                                      .drop_front(stackedDims(value.value))) >
                  kMaxLayouts;
         });
}

/// True if there are too many operations, or they have too many strategies
/// together.
bool NetworkBuilder::hasManyOperations() {
  size_t operations = 0;
  double strategies = 0;
  for (const Chunk &chunk : network.graph.chunks)
    for (Operation *op : chunk.ops)
      if (isa<ShardingRuleOpInterface>(op)) {
        ++operations;
        strategies += countStrategies(op);
      }
  return operations > kMaxOperations || strategies > kMaxAllStrategies;
}

/// Entries of the tables between values and their users, and within groups.
double NetworkBuilder::countEntries() const {
  auto labels = [&](unsigned chunk) {
    return double(network.domains[chunk].labels.size());
  };
  double entries = 0;
  for (auto [value, variable] : llvm::zip(network.graph.values, network.values))
    for (const ChunkUse &use : value.uses) {
      double stored = variable.labels.size(), copies = variable.copies.size();
      // A user of a value with copies reads the value or the copy.
      entries += copies == 0
                     ? stored * labels(use.chunk)
                     : 2 * copies * (stored + copies + labels(use.chunk));
    }
  for (auto [leader, rest] : network.graph.groups)
    if (leader >= 0 && rest >= 0)
      entries += labels(leader) * labels(rest);
  return entries;
}

std::variant<PlanNetwork, NoNetwork> NetworkBuilder::build(ProgramOp program) {
  network.graph = buildGraph(program);
  isStoredAsRead = program->hasAttr(kStoredAsRead);
  network.resources.resize(scale.numResources());
  bool isAround = options.choice && options.choice->blocks.empty();
  if (!options.fixed && !options.within && !isAround) {
    if (hasManyLabels())
      return NoNetwork::TooWide;
    if (hasManyOperations())
      return NoNetwork::TooLarge;
  } else if (Operation *wide =
                 options.fixed ? findWide(kMaxFixedStrategies) : nullptr) {
    emitTooWide(wide, kMaxFixedStrategies);
    return NoNetwork::Contradiction;
  }
  if (failed(buildDomains(program)))
    return NoNetwork::Contradiction;
  network.problem.numPoints = network.graph.numPoints;
  network.problem.capacity = options.memoryLimit;
  network.values.resize(network.graph.values.size());
  for (unsigned i = 0; i < network.values.size(); ++i) {
    if (failed(buildValue(i)))
      return NoNetwork::Contradiction;
    if (options.deadline.expired())
      return NoNetwork::NoTime;
  }
  if (!options.fixed &&
      countEntries() > (options.choice ? kMaxChosenEntries : kMaxEntries))
    return NoNetwork::TooWide;
  for (unsigned i = 0; i < network.values.size(); ++i) {
    connectUses(i);
    for (const GraphValue::Flow &flow : network.graph.values[i].flows)
      connectFlow(i, flow);
    if (options.deadline.expired())
      return NoNetwork::NoTime;
  }
  costChunks();
  for (ResourceTimes &resource : network.resources)
    for (std::vector<Cost> &costs : resource.variables)
      costs = unlessZero(std::move(costs));
  if (!options.fixed)
    network.beyond = solver::forbidLargest(network.problem);
  return std::move(network);
}

std::variant<PlanNetwork, NoNetwork>
shardc::buildNetwork(PlanningContext &context, ProgramOp program,
                     const NetworkOptions &options) {
  return NetworkBuilder(context, options).build(program);
}
