//===- Network.cpp - A program as a cost function network ------*- C++ -*-===//

#include "shardc/Optimizer/Network.h"
#include "Prices.h"
#include "shardc/Cost/Saturating.h"
#include "shardc/Optimizer/Names.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;
using solver::Cost;
using solver::kForbidden;
using solver::Variable;

namespace {

/// Sums that are too large stop at what Problem::check() refuses.
Cost scaled(Picoseconds picoseconds, int64_t count) {
  return picoseconds == kForbidden
             ? kForbidden
             : std::min(saturatingMultiply(picoseconds, count),
                        solver::kMaxTotal);
}

Cost sum(Cost a, Cost b) {
  return a == kForbidden || b == kForbidden
             ? kForbidden
             : std::min(saturatingAdd(a, b), solver::kMaxTotal);
}

/// Sorted, each once.
std::vector<Layout> distinct(std::vector<Layout> layouts) {
  llvm::sort(layouts);
  layouts.erase(std::unique(layouts.begin(), layouts.end()), layouts.end());
  return layouts;
}

unsigned numberOf(ArrayRef<Layout> sorted, const Layout &layout) {
  return llvm::lower_bound(sorted, layout) - sorted.begin();
}

/// Beyond these a mesh is too wide to search: strategies of one operation,
/// layouts of one tensor, and entries of all tables.
constexpr double kMaxStrategies = 20'000, kMaxLayouts = 400, kMaxEntries = 1e8;
/// Beyond these a program is too large to search: operations, and strategies of
/// all of them.
constexpr size_t kMaxOperations = 4'000;
constexpr double kMaxAllStrategies = 1e6;
/// Strategies of one operation where layouts are fixed.
constexpr double kMaxFixedStrategies = 200'000;
/// Beyond these a value has no copies: its layouts times those of its copies.
constexpr size_t kMaxLabels = 40'000;

/// Ways of placing axes of the mesh on so many dimensions, in all orders.
double countPlacements(const Mesh &mesh, unsigned dims) {
  unsigned axes = llvm::count_if(
      mesh.axes, [](const MeshAxis &axis) { return axis.size > 1; });
  double total = 1, ways = 1;
  for (unsigned placed = 0; placed < axes; ++placed) {
    ways *= double(axes - placed) * (dims + placed) / (placed + 1);
    total += ways;
  }
  return total;
}

class NetworkBuilder {
public:
  NetworkBuilder(PlanningContext &context, const NetworkOptions &options)
      : context(context), options(options), prices(context.planner) {}

  std::variant<PlanNetwork, NoNetwork> build(ProgramOp program);

private:
  /// A consumer's layouts of one value: [use][label].
  struct Consumer {
    /// Labels of a leader, where they say what is computed in place; else null.
    const std::vector<ChunkStrategy> *strategies = nullptr;
    llvm::SmallVector<unsigned, 2> operands;
    Variable variable = 0;
    unsigned numLabels = 0;
    llvm::SmallVector<const std::vector<Layout> *, 2> layouts;
    int64_t count = 1;
    uint32_t point = 0;
    /// False for the rest of the maker's group: it reads what is stored.
    bool readsCopies = true;
  };

  LogicalResult buildDomains(ProgramOp program);
  void addPrologueLabels();
  bool isPrologueValue(const GraphValue &value) const {
    return value.kind == GraphValue::Kind::Computed && !value.uses.empty() &&
           network.graph.chunks[value.chunk].prologue;
  }
  Variable addVariable(StringRef name, unsigned numLabels);
  void addUsage(Variable variable, unsigned label, uint32_t begin, uint32_t end,
                int64_t bytes);
  void addEdgeUsage(unsigned edge, uint32_t begin, uint32_t end,
                    std::vector<int64_t> bytes);
  unsigned addEdge(Variable first, Variable second, solver::Table table);

  LogicalResult buildValue(unsigned index);
  bool needsOwnVariable(const GraphValue &value) const;
  ShardingAttr pinOf(const GraphValue &value) const;
  std::optional<Layout> closedPin(const GraphValue &value) const;
  std::vector<Layout> storedLayouts(unsigned index);
  std::vector<Layout> copyLayouts(const GraphValue &value);
  void enumerateLabels(unsigned index, std::vector<Layout> stored);
  void linkToMaker(unsigned index);
  void addOwnMemory(unsigned index);
  void viewMaker(unsigned index);

  void connectUses(unsigned index);
  void connect(unsigned index, const Consumer &consumer);
  static bool inlinesAsStored(const Consumer &consumer, unsigned label,
                              const Layout &layout, const StoredLabel &stored);
  void connectFlow(unsigned index, const GraphValue::Flow &flow);
  bool isFusedUse(const GraphValue &value, const ChunkUse &use) const;
  bool staysInGroup(const GraphValue &value) const;
  bool reshardsBeforeStore(const GraphValue &value) const;

  Operation *findWide(double maxStrategies);
  bool hasManyLabels();
  bool hasManyOperations();
  double countEntries() const;
  void costChunks();
  void costGroup(int leader, int rest);
  const ShardingRule &ruleOf(Operation *op);
  PartWork work(unsigned chunk, unsigned label);
  void addPrologue(Value value, const Layout &layout, PartWork &part);
  Picoseconds price(const PartWork &first, const PartWork *second,
                    ArrayRef<unsigned> chunks) const;
  std::vector<PartWork> works(unsigned chunk);
  std::vector<Cost> costsAlone(unsigned chunk, ArrayRef<PartWork> works);
  bool neededInHbm(Value value, ArrayRef<unsigned> chunks) const;
  TensorShape shapeOf(unsigned index) const {
    return tensorShape(network.graph.values[index].value.getType());
  }

  PlanningContext &context;
  const NetworkOptions &options;
  PriceTable prices;
  llvm::DenseMap<Operation *, std::unique_ptr<ShardingRule>> rules;
  PlanNetwork network;
};

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

Variable NetworkBuilder::addVariable(StringRef name, unsigned numLabels) {
  solver::VariableData &data = network.problem.variables.emplace_back();
  data.name = name.str();
  data.costs.assign(numLabels, 0);
  return network.problem.variables.size() - 1;
}

void NetworkBuilder::addUsage(Variable variable, unsigned label, uint32_t begin,
                              uint32_t end, int64_t bytes) {
  if (!options.memoryLimit || begin >= end || bytes == 0)
    return;
  solver::VariableData &data = network.problem.variables[variable];
  data.usages.resize(data.costs.size());
  data.usages[label].push_back({begin, end, bytes});
}

void NetworkBuilder::addEdgeUsage(unsigned edge, uint32_t begin, uint32_t end,
                                  std::vector<int64_t> bytes) {
  if (!options.memoryLimit || begin >= end ||
      llvm::all_of(bytes, [](int64_t b) { return b == 0; }))
    return;
  network.problem.edgeUsages.push_back({edge, begin, end, std::move(bytes)});
}

unsigned NetworkBuilder::addEdge(Variable first, Variable second,
                                 solver::Table table) {
  network.problem.tables.push_back(std::move(table));
  network.problem.edges.push_back(
      {first, second, solver::TableId(network.problem.tables.size() - 1)});
  return network.problem.edges.size() - 1;
}

LogicalResult NetworkBuilder::buildDomains(ProgramOp program) {
  bool failed = false;
  std::optional<NeighbourAxes> neighbours;
  if (options.fixed)
    neighbours.emplace(program, context.mesh());
  for (const Chunk &chunk : network.graph.chunks) {
    ChunkDomain domain =
        buildDomain(context, chunk, neighbours ? &*neighbours : nullptr);
    if (domain.labels.empty()) {
      chunk.ops.front()->emitError()
          << "no way to run this operation has the layouts that its "
             "annotations ask for";
      failed = true;
    }
    auto name = chunk.ops.front()->getAttrOfType<StringAttr>(kName);
    network.chunkVariable.push_back(
        addVariable(name ? name.getValue() : "", domain.labels.size()));
    network.domains.push_back(std::move(domain));
  }
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
    network.problem.variables[variable].costs.assign(domain.labels.size(), 0);
  }
}

/// What the program says of how a value is stored; null: nothing.
ShardingAttr NetworkBuilder::pinOf(const GraphValue &value) const {
  if (value.kind == GraphValue::Kind::Result)
    return {};
  if (value.kind != GraphValue::Kind::Carried)
    return getResultPin(value.value.getDefiningOp());
  auto argument = cast<BlockArgument>(value.value);
  return getOperandPin(argument.getOwner()->getParentOp(),
                       argument.getArgNumber() - 1);
}

/// The layout that a value must be stored in, if its pin leaves no choice.
std::optional<Layout> NetworkBuilder::closedPin(const GraphValue &value) const {
  ShardingAttr pin = pinOf(value);
  if (!pin || pin.isOpen())
    return std::nullopt;
  return toLayout(context.mesh(), pin);
}

/// True for the use of a leader's value by the rest of its group: the pair's
/// table has its price.
bool NetworkBuilder::isFusedUse(const GraphValue &value,
                                const ChunkUse &use) const {
  if (value.kind != GraphValue::Kind::Computed)
    return false;
  const Chunk &maker = network.graph.chunks[value.chunk];
  const Chunk &user = network.graph.chunks[use.chunk];
  return maker.kind == Chunk::Kind::Leader && user.group == maker.group;
}

/// True if only the rest of its group reads the value: fused, it takes no
/// memory, so the pair's table has its memory.
bool NetworkBuilder::staysInGroup(const GraphValue &value) const {
  return value.kind == GraphValue::Kind::Computed && value.flows.empty() &&
         llvm::all_of(value.uses, [&](const ChunkUse &use) {
           return isFusedUse(value, use);
         });
}

/// True if the value may be stored in another layout than it is made in: always
/// if that is pinned, and where the plan is free unless its own group reads
/// what is made.
bool NetworkBuilder::reshardsBeforeStore(const GraphValue &value) const {
  if (value.kind != GraphValue::Kind::Computed)
    return false;
  if (closedPin(value))
    return true;
  bool matters = !value.uses.empty() || !value.flows.empty() || pinOf(value);
  if (!matters || options.fixed || isPrologueValue(value))
    return false;
  const Chunk &maker = network.graph.chunks[value.chunk];
  return llvm::none_of(
             value.uses,
             [&](const ChunkUse &use) { return isFusedUse(value, use); }) &&
         llvm::none_of(Value(value.value).getUsers(), [&](Operation *user) {
           return llvm::is_contained(maker.ops, user);
         });
}

bool NetworkBuilder::needsOwnVariable(const GraphValue &value) const {
  if (value.kind == GraphValue::Kind::Declared ||
      value.kind == GraphValue::Kind::Carried ||
      (value.kind == GraphValue::Kind::Computed && closedPin(value)))
    return true;
  if (isPrologueValue(value))
    return true;
  if (options.fixed)
    return false;
  // Where memory counts, a value may wait for its reader in a smaller layout.
  if (options.memoryLimit && reshardsBeforeStore(value))
    return true;
  llvm::SmallSetVector<unsigned, 4> users;
  for (const ChunkUse &use : value.uses)
    if (!isFusedUse(value, use))
      users.insert(use.chunk);
  return value.usedDeeper || users.size() + value.flows.size() > 1;
}

std::vector<Layout> NetworkBuilder::storedLayouts(unsigned index) {
  const GraphValue &value = network.graph.values[index];
  if (std::optional<Layout> pin = closedPin(value))
    return {*pin};
  auto admitted = [&](std::vector<Layout> layouts) {
    if (ShardingAttr pin = pinOf(value))
      llvm::erase_if(layouts, [&](const Layout &layout) {
        return !admits(context.mesh(), pin, layout);
      });
    return layouts;
  };
  switch (value.kind) {
  case GraphValue::Kind::Declared:
  case GraphValue::Kind::Carried: {
    bool partial = value.kind == GraphValue::Kind::Carried;
    return admitted(enumerateLayouts(context.mesh(), shapeOf(index), partial,
                                     context.allowPadding));
  }
  case GraphValue::Kind::Computed: {
    std::vector<Layout> layouts =
        network.domains[value.chunk].results[value.op];
    if (reshardsBeforeStore(value))
      llvm::append_range(layouts,
                         enumerateLayouts(context.mesh(), shapeOf(index),
                                          /*withPartial=*/false,
                                          context.allowPadding));
    return admitted(distinct(std::move(layouts)));
  }
  case GraphValue::Kind::Result: {
    std::vector<Layout> layouts;
    const ValueVariable &carried = network.values[value.carried];
    for (const StoredLabel &label : carried.labels)
      layouts.push_back(carried.layouts[label.layout]);
    return distinct(std::move(layouts));
  }
  }
  llvm_unreachable("unknown kind of value");
}

/// Layouts worth copying into: those that some user consumes.
std::vector<Layout> NetworkBuilder::copyLayouts(const GraphValue &value) {
  std::vector<Layout> layouts;
  if (options.fixed)
    return layouts;
  llvm::SmallSetVector<unsigned, 4> users;
  for (const ChunkUse &use : value.uses) {
    if (isFusedUse(value, use))
      continue;
    users.insert(use.chunk);
    const auto &consumed =
        network.domains[use.chunk].operands[use.op][use.operand];
    layouts.insert(layouts.end(), consumed.begin(), consumed.end());
  }
  if (users.size() + value.flows.size() < 2 && !value.usedDeeper)
    return {};
  llvm::erase_if(layouts, [](const Layout &layout) { return layout.partial; });
  return distinct(std::move(layouts));
}

void NetworkBuilder::enumerateLabels(unsigned index,
                                     std::vector<Layout> stored) {
  const GraphValue &value = network.graph.values[index];
  ValueVariable &result = network.values[index];
  result.own = true;
  std::vector<Layout> copies = copyLayouts(value);
  if (stored.size() * copies.size() > kMaxLabels) {
    copies.clear();
    network.complete = false;
  }
  TensorShape shape = shapeOf(index);
  std::vector<Cost> costs;
  result.layouts = stored;
  unsigned firstCopy = stored.size();
  result.layouts.insert(result.layouts.end(), copies.begin(), copies.end());
  for (unsigned s = 0; s < stored.size(); ++s) {
    auto add = [&](StoredLabel label, Cost cost) {
      result.labels.push_back(label);
      costs.push_back(cost);
      if (isPrologueValue(value) && closedPin(value)) {
        label.resharded = true;
        result.labels.push_back(label);
        costs.push_back(cost);
      }
    };
    if (isPrologueValue(value)) {
      result.labels.push_back({s, -1, /*inlined=*/true});
      costs.push_back(0);
    }
    add({s, -1}, 0);
    for (unsigned c = 0; c < copies.size(); ++c) {
      const PairPrice &price = prices.get(shape, stored[s], copies[c]);
      // What can be sliced for free needs no copy.
      if (price.picoseconds != kForbidden && !price.isFree)
        add({s, int(firstCopy + c)}, scaled(price.picoseconds, value.count));
    }
  }
  auto name =
      value.value.getDefiningOp()
          ? value.value.getDefiningOp()->getAttrOfType<StringAttr>(kName)
          : StringAttr();
  result.variable = addVariable(name ? name.getValue() : "", costs.size());
  network.problem.variables[result.variable].costs = std::move(costs);
}

void NetworkBuilder::addOwnMemory(unsigned index) {
  const GraphValue &value = network.graph.values[index];
  const ValueVariable &variable = network.values[index];
  TensorShape shape = shapeOf(index);
  for (auto [number, label] : llvm::enumerate(variable.labels)) {
    const Layout &stored = variable.layouts[label.layout];
    int64_t bytes = wholeBytes(shape.localBytes(context.mesh(), stored));
    if (!value.inPlace && !label.inlined && !staysInGroup(value))
      addUsage(variable.variable, number, value.begin, value.end,
               bytes * value.multiplicity);
    if (label.copy < 0)
      continue;
    const Layout &copy = variable.layouts[label.copy];
    const PairPrice &price = prices.get(shape, stored, copy);
    int64_t copyBytes = wholeBytes(shape.localBytes(context.mesh(), copy));
    addUsage(variable.variable, number, value.firstRead, value.readEnd,
             copyBytes);
    addUsage(variable.variable, number, value.firstRead, value.firstRead + 1,
             price.extraBytes - copyBytes);
  }
}

/// Ties a value's own variable to what decides how it is made.
void NetworkBuilder::linkToMaker(unsigned index) {
  const GraphValue &value = network.graph.values[index];
  const ValueVariable &variable = network.values[index];
  std::vector<Layout> made;
  Variable maker;
  bool reshards = false;
  if (value.kind == GraphValue::Kind::Computed) {
    made = network.domains[value.chunk].results[value.op];
    maker = network.chunkVariable[value.chunk];
    reshards = reshardsBeforeStore(value);
  } else if (value.kind == GraphValue::Kind::Result) {
    const ValueVariable &carried = network.values[value.carried];
    for (const StoredLabel &label : carried.labels)
      made.push_back(carried.layouts[label.layout]);
    maker = carried.variable;
  } else {
    return;
  }
  TensorShape shape = shapeOf(index);
  // A prologue costs something of its own only if it is not computed by its
  // users.
  std::vector<Cost> ownCosts(made.size(), 0);
  if (isPrologueValue(value))
    ownCosts = costsAlone(value.chunk, works(value.chunk));
  solver::Table table;
  table.rows = made.size();
  table.columns = variable.labels.size();
  std::vector<int64_t> extra;
  for (auto [row, from] : llvm::enumerate(made))
    for (const StoredLabel &label : variable.labels) {
      const Layout &to = variable.layouts[label.layout];
      // Of a prologue's value, the label says whether it is resharded.
      bool mayReshard =
          isPrologueValue(value) ? label.resharded && from != to : reshards;
      const PairPrice *price =
          mayReshard ? &prices.get(shape, from, to) : nullptr;
      bool agrees = from == to && !label.resharded;
      Cost cost = price    ? scaled(price->picoseconds, value.count)
                  : agrees ? 0
                           : kForbidden;
      table.costs.push_back(label.inlined ? cost : sum(cost, ownCosts[row]));
      extra.push_back(price && table.costs.back() != kForbidden
                          ? price->storeExtraBytes
                          : 0);
    }
  unsigned edge = addEdge(maker, variable.variable, std::move(table));
  addEdgeUsage(edge, value.begin, value.begin + 1, std::move(extra));
}

/// The value is stored as its maker makes it: its layouts are those of the
/// maker's labels.
void NetworkBuilder::viewMaker(unsigned index) {
  const GraphValue &value = network.graph.values[index];
  ValueVariable &variable = network.values[index];
  std::vector<Layout> made;
  if (value.kind == GraphValue::Kind::Computed) {
    variable.variable = network.chunkVariable[value.chunk];
    made = network.domains[value.chunk].results[value.op];
    ShardingAttr pin = getResultPin(value.value.getDefiningOp());
    for (auto [label, layout] : llvm::enumerate(made))
      if (pin && !admits(context.mesh(), pin, layout))
        network.problem.variables[variable.variable].costs[label] = kForbidden;
  } else {
    const ValueVariable &carried = network.values[value.carried];
    variable.variable = carried.variable;
    for (const StoredLabel &label : carried.labels)
      made.push_back(carried.layouts[label.layout]);
  }
  variable.layouts = distinct(made);
  for (const Layout &layout : made)
    variable.labels.push_back({numberOf(variable.layouts, layout), -1});
  if (staysInGroup(value) || value.inPlace)
    return;
  TensorShape shape = shapeOf(index);
  for (auto [label, layout] : llvm::enumerate(made))
    addUsage(variable.variable, label, value.begin, value.end,
             wholeBytes(shape.localBytes(context.mesh(), layout)));
}

LogicalResult NetworkBuilder::buildValue(unsigned index) {
  Value value = network.graph.values[index].value;
  if (!needsOwnVariable(network.graph.values[index])) {
    viewMaker(index);
    return success();
  }
  std::vector<Layout> stored = storedLayouts(index);
  if (stored.empty())
    return emitError(value.getLoc())
           << "'" << valueName(value)
           << "' cannot be made in the layout that its annotation asks for";
  enumerateLabels(index, std::move(stored));
  addOwnMemory(index);
  linkToMaker(index);
  return success();
}

//===----------------------------------------------------------------------===//
// Uses
//===----------------------------------------------------------------------===//

/// Whether a consumer computes a prologue's value in place; nothing if the
/// value is no prologue's. Its operands of that value agree or the label is
/// useless.
bool NetworkBuilder::inlinesAsStored(const Consumer &consumer, unsigned label,
                                     const Layout &layout,
                                     const StoredLabel &stored) {
  if (!consumer.strategies)
    return true;
  for (auto [operand, layouts] :
       llvm::zip(consumer.operands, consumer.layouts)) {
    bool inlined = (*consumer.strategies)[label].inlined & (1u << operand);
    // How a partial sum comes about is not part of its layout: it is stored.
    bool direct =
        (*layouts)[label] == layout && !stored.resharded && !layout.partial;
    if (inlined != direct || (stored.inlined && !direct))
      return false;
  }
  return true;
}

/// One table for all uses of a value by one consumer: each distinct layout is
/// resharded once, from the stored layout or from the copy.
void NetworkBuilder::connect(unsigned index, const Consumer &consumer) {
  const ValueVariable &provider = network.values[index];
  if (provider.variable == consumer.variable)
    return; // a carried value that is handed on as it is
  TensorShape shape = shapeOf(index);
  unsigned columns = consumer.numLabels;
  // Layouts by number, so that prices are looked up once.
  std::vector<Layout> wanted;
  for (const auto *layouts : consumer.layouts)
    wanted.insert(wanted.end(), layouts->begin(), layouts->end());
  wanted = distinct(std::move(wanted));
  std::vector<llvm::SmallVector<unsigned, 2>> wants(columns);
  for (const auto *layouts : consumer.layouts)
    for (unsigned label = 0; label < columns; ++label) {
      unsigned number = numberOf(wanted, (*layouts)[label]);
      if (!llvm::is_contained(wants[label], number))
        wants[label].push_back(number);
    }
  std::vector<const PairPrice *> matrix;
  for (const Layout &from : provider.layouts)
    for (const Layout &to : wanted)
      matrix.push_back(&prices.get(shape, from, to));

  solver::Table table;
  table.rows = provider.labels.size();
  table.columns = columns;
  table.costs.reserve(size_t(table.rows) * columns);
  std::vector<int64_t> extra;
  extra.reserve(size_t(table.rows) * columns);
  for (const StoredLabel &label : provider.labels) {
    const PairPrice *const *stored = &matrix[label.layout * wanted.size()];
    const PairPrice *const *copy = label.copy < 0 || !consumer.readsCopies
                                       ? nullptr
                                       : &matrix[label.copy * wanted.size()];
    for (unsigned column = 0; column < columns; ++column) {
      Cost cost = 0;
      int64_t bytes = 0;
      if (!inlinesAsStored(consumer, column, provider.layouts[label.layout],
                           label))
        cost = kForbidden;
      for (unsigned want : wants[column]) {
        const PairPrice *price = stored[want];
        if (copy && copy[want]->picoseconds < price->picoseconds)
          price = copy[want];
        cost = sum(cost, scaled(price->picoseconds, consumer.count));
        bytes += price->extraBytes;
      }
      table.costs.push_back(cost);
      extra.push_back(cost == kForbidden ? 0 : bytes);
    }
  }
  unsigned edge =
      addEdge(provider.variable, consumer.variable, std::move(table));
  addEdgeUsage(edge, consumer.point, consumer.point + 1, std::move(extra));
}

void NetworkBuilder::connectUses(unsigned index) {
  const GraphValue &value = network.graph.values[index];
  // The rest of a group reads what its leader stores; the pair's table has the
  // price unless the layout is pinned.
  bool pinned = closedPin(value).has_value();
  llvm::SmallSetVector<unsigned, 4> users;
  for (const ChunkUse &use : value.uses)
    if (!isFusedUse(value, use) || pinned)
      users.insert(use.chunk);
  for (unsigned user : users) {
    const Chunk &chunk = network.graph.chunks[user];
    Consumer consumer;
    consumer.variable = network.chunkVariable[user];
    consumer.numLabels = network.domains[user].labels.size();
    consumer.count = chunk.count;
    consumer.point = chunk.point;
    for (const ChunkUse &use : value.uses)
      if (use.chunk == user) {
        consumer.layouts.push_back(
            &network.domains[user].operands[use.op][use.operand]);
        consumer.operands.push_back(use.operand);
      }
    consumer.readsCopies = !llvm::any_of(value.uses, [&](const ChunkUse &use) {
      return use.chunk == user && isFusedUse(value, use);
    });
    if (isPrologueValue(value))
      consumer.strategies = &network.domains[user].labels;
    connect(index, consumer);
  }
}

void NetworkBuilder::connectFlow(unsigned index, const GraphValue::Flow &flow) {
  const ValueVariable &target = network.values[flow.target];
  std::vector<Layout> layouts;
  for (const StoredLabel &label : target.labels)
    layouts.push_back(target.layouts[label.layout]);
  Consumer consumer;
  consumer.variable = target.variable;
  consumer.numLabels = layouts.size();
  consumer.layouts.push_back(&layouts);
  consumer.count = flow.count;
  consumer.point = flow.point;
  connect(index, consumer);
}

//===----------------------------------------------------------------------===//
// Costs of groups
//===----------------------------------------------------------------------===//

/// Adds the operations of the prologue that makes `value`, as they run where it
/// is wanted in `layout`.
void NetworkBuilder::addPrologue(Value value, const Layout &layout,
                                 PartWork &part) {
  const GraphValue &made =
      network.graph.values[network.graph.valueIndex.lookup(value)];
  const ChunkDomain &domain = network.domains[made.chunk];
  const auto &layouts = domain.results[made.op];
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

Picoseconds NetworkBuilder::price(const PartWork &first, const PartWork *second,
                                  ArrayRef<unsigned> chunks) const {
  return toPicoseconds(
      costParts(context.machine(), first, second, [&](Value value) {
        return neededInHbm(value, chunks);
      }).seconds());
}

std::vector<PartWork> NetworkBuilder::works(unsigned chunk) {
  std::vector<PartWork> result;
  for (unsigned label = 0; label < network.domains[chunk].labels.size();
       ++label)
    result.push_back(work(chunk, label));
  return result;
}

/// What a chunk costs in a step if it is not fused, by label.
std::vector<Cost> NetworkBuilder::costsAlone(unsigned chunk,
                                             ArrayRef<PartWork> works) {
  std::vector<Cost> costs;
  for (const PartWork &part : works)
    costs.push_back(scaled(price(part, nullptr, {chunk}),
                           network.graph.chunks[chunk].count));
  return costs;
}

void NetworkBuilder::costGroup(int leader, int rest) {
  if (leader < 0 || rest < 0) {
    unsigned chunk = leader < 0 ? rest : leader;
    if (network.graph.chunks[chunk].prologue)
      return;
    for (auto [label, cost] :
         llvm::enumerate(costsAlone(chunk, works(chunk)))) {
      Cost &unary =
          network.problem.variables[network.chunkVariable[chunk]].costs[label];
      unary = sum(unary, cost);
    }
    return;
  }
  std::vector<PartWork> leaders = works(leader), rests = works(rest);
  std::vector<Cost> leaderAlone = costsAlone(leader, leaders),
                    restAlone = costsAlone(rest, rests);
  unsigned index = network.graph.valueIndex.lookup(
      network.graph.chunks[leader].ops.front()->getResult(0));
  const GraphValue &value = network.graph.values[index];
  std::optional<Layout> pin = closedPin(value);
  bool onlyHere = staysInGroup(value);
  TensorShape shape = shapeOf(index);
  unsigned chunks[] = {unsigned(leader), unsigned(rest)};
  solver::Table table;
  table.rows = leaders.size();
  table.columns = rests.size();
  std::vector<int64_t> life, extra;
  for (unsigned a = 0; a < leaders.size(); ++a) {
    const Layout &made = network.domains[leader].results[0][a];
    const Layout &stored = pin ? *pin : made;
    for (unsigned b = 0; b < rests.size(); ++b) {
      bool fused = made == stored;
      Cost reshards = 0;
      int64_t buffers = 0;
      llvm::SmallVector<const Layout *, 2> seen;
      for (const ChunkUse &use : value.uses) {
        if (use.chunk != unsigned(rest))
          continue;
        const Layout &wanted =
            network.domains[rest].operands[use.op][use.operand][b];
        if (wanted == stored ||
            llvm::any_of(seen, [&](const Layout *s) { return *s == wanted; })) {
          fused &= wanted == stored;
          continue;
        }
        fused = false;
        seen.push_back(&wanted);
        if (pin)
          continue; // priced between the value's variable and the rest
        const PairPrice &pair = prices.get(shape, stored, wanted);
        reshards = sum(reshards, scaled(pair.picoseconds, value.count));
        buffers += pair.extraBytes;
      }
      Cost cost =
          fused ? scaled(price(leaders[a], &rests[b], chunks), value.count)
                : sum(leaderAlone[a], restAlone[b]);
      table.costs.push_back(sum(cost, reshards));
      bool counts = !fused && table.costs.back() != kForbidden;
      life.push_back(counts && onlyHere
                         ? wholeBytes(shape.localBytes(context.mesh(), stored))
                         : 0);
      extra.push_back(counts ? buffers : 0);
    }
  }
  unsigned edge = addEdge(network.chunkVariable[leader],
                          network.chunkVariable[rest], std::move(table));
  if (!value.inPlace)
    addEdgeUsage(edge, value.begin, value.end, std::move(life));
  uint32_t point = network.graph.chunks[rest].point;
  addEdgeUsage(edge, point, point + 1, std::move(extra));
}

void NetworkBuilder::costChunks() {
  for (auto [index, chunk] : llvm::enumerate(network.graph.chunks)) {
    if (chunk.kind == Chunk::Kind::Output)
      continue;
    for (auto [number, op] : llvm::enumerate(chunk.ops)) {
      ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
      if (rule.statistics.empty())
        continue;
      const auto &labels = network.domains[index].labels;
      for (unsigned label = 0; label < labels.size(); ++label) {
        Cost &unary = network.problem.variables[network.chunkVariable[index]]
                          .costs[label];
        for (const StatisticCost &statistic :
             statisticCosts(context.model, rule, labels[label].ops[number]))
          unary = sum(unary, scaled(toPicoseconds(statistic.cost.seconds()),
                                    chunk.count));
      }
    }
  }
  for (auto [leader, rest] : network.graph.groups)
    if (leader >= 0 || rest >= 0)
      costGroup(leader, rest);
}

/// The first operation with more strategies than that, or null.
Operation *NetworkBuilder::findWide(double maxStrategies) {
  for (const Chunk &chunk : network.graph.chunks)
    for (Operation *op : chunk.ops)
      if (isa<ShardingRuleOpInterface>(op) &&
          countPlacements(context.mesh(), ruleOf(op).factors.size()) >
              maxStrategies)
        return op;
  return nullptr;
}

/// True if an operation has too many strategies, or a tensor too many layouts,
/// to list them.
bool NetworkBuilder::hasManyLabels() {
  return findWide(kMaxStrategies) ||
         llvm::any_of(network.graph.values, [&](const GraphValue &value) {
           return countPlacements(context.mesh(),
                                  tensorShape(value.value.getType()).rank()) >
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
        strategies +=
            countPlacements(context.mesh(), ruleOf(op).factors.size());
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
    for (const ChunkUse &use : value.uses)
      entries += double(variable.labels.size()) * labels(use.chunk);
  for (auto [leader, rest] : network.graph.groups)
    if (leader >= 0 && rest >= 0)
      entries += labels(leader) * labels(rest);
  return entries;
}

std::variant<PlanNetwork, NoNetwork> NetworkBuilder::build(ProgramOp program) {
  network.graph = buildGraph(program);
  if (!options.fixed) {
    if (hasManyLabels())
      return NoNetwork::TooWide;
    if (hasManyOperations())
      return NoNetwork::TooLarge;
  } else if (Operation *wide = findWide(kMaxFixedStrategies)) {
    wide->emitError("a mesh of so many axes has too many ways to run this "
                    "operation");
    return NoNetwork::Contradiction;
  }
  if (failed(buildDomains(program)))
    return NoNetwork::Contradiction;
  addPrologueLabels();
  network.problem.numPoints = network.graph.numPoints;
  network.problem.capacity = options.memoryLimit;
  network.values.resize(network.graph.values.size());
  for (unsigned i = 0; i < network.values.size(); ++i)
    if (failed(buildValue(i)))
      return NoNetwork::Contradiction;
  if (!options.fixed && countEntries() > kMaxEntries)
    return NoNetwork::TooWide;
  for (unsigned i = 0; i < network.values.size(); ++i) {
    connectUses(i);
    for (const GraphValue::Flow &flow : network.graph.values[i].flows)
      connectFlow(i, flow);
  }
  costChunks();
  return std::move(network);
}

} // namespace

std::variant<PlanNetwork, NoNetwork>
shardc::buildNetwork(PlanningContext &context, ProgramOp program,
                     const NetworkOptions &options) {
  return NetworkBuilder(context, options).build(program);
}
