//===- Values.cpp - Variables of values -------------------------*- C++ -*-===//

#include "NetworkBuilder.h"
#include "shardc/Dialect/Shd/IR/Host.h"
#include "shardc/Optimizer/Names.h"
#include "shardc/Sharding/Reshape.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;
using solver::kForbidden;
using solver::Variable;

/// The annotated stored layout of a value, or null.
ShardingAttr NetworkBuilder::pinOf(const GraphValue &value) const {
  return value.kind == GraphValue::Kind::Result ? ShardingAttr()
                                                : getStoredPin(value.value);
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
         !value.uses.empty() &&
         llvm::all_of(value.uses, [&](const ChunkUse &use) {
           return isFusedUse(value, use);
         });
}

/// True if the rest of its group reads a leader's value, and others do too, and
/// the plan says how it is stored: labels of the rest say how they read it.
bool NetworkBuilder::leavesItsGroup(const GraphValue &value) const {
  return !options.fixed && !closedPin(value) && !staysInGroup(value) &&
         llvm::any_of(value.uses, [&](const ChunkUse &use) {
           return isFusedUse(value, use);
         });
}

/// True if the value may be stored in another layout than it is made in: always
/// if that is pinned, and where the plan is free unless nothing but its own
/// group reads it, or what makes it reads it too.
bool NetworkBuilder::reshardsBeforeStore(const GraphValue &value) const {
  if (value.kind != GraphValue::Kind::Computed)
    return false;
  if (closedPin(value))
    return true;
  bool matters = !value.uses.empty() || !value.flows.empty() || pinOf(value);
  if (!matters || options.fixed || isPrologueValue(value) ||
      staysInGroup(value))
    return false;
  const Chunk &maker = network.graph.chunks[value.chunk];
  return llvm::none_of(Value(value.value).getUsers(), [&](Operation *user) {
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
  if (leavesItsGroup(value))
    return true;
  // Where memory counts, a value may wait for its reader in a smaller layout.
  if (options.memoryLimit && reshardsBeforeStore(value))
    return true;
  llvm::SmallSetVector<unsigned, 4> users;
  for (const ChunkUse &use : value.uses)
    if (!isFusedUse(value, use))
      users.insert(use.chunk);
  return value.usedDeeper || users.size() + value.flows.size() > 1;
}

/// Layouts in which users read the value.
std::vector<Layout>
NetworkBuilder::consumedLayouts(const GraphValue &value) const {
  std::vector<Layout> layouts;
  for (const ChunkUse &use : value.uses)
    llvm::append_range(
        layouts, network.domains[use.chunk].operands[use.op][use.operand]);
  return layouts;
}

/// Layouts that a value may be stored in, as far as pins allow: all, those of
/// blocks of axes, or those around plans and what its users read. Stacked
/// dimensions are split by no axis.
std::vector<Layout> NetworkBuilder::layoutsToChoose(unsigned index,
                                                    bool withPartial) const {
  const GraphValue &value = network.graph.values[index];
  const LabelChoice *choice = options.choice;
  unsigned stacked = stackedDims(value.value);
  TensorShape part = shapeOf(index);
  part.extents.erase(part.extents.begin(), part.extents.begin() + stacked);
  auto whole = [&](std::vector<Layout> layouts) {
    for (Layout &layout : layouts)
      layout.dims.insert(layout.dims.begin(), stacked, AxisList());
    return layouts;
  };
  auto placing = [&](const AxisBlocks &blocks) {
    return whole(enumerateLayouts(context.mesh(), part, withPartial, blocks,
                                  context.allowPadding));
  };
  AxisBlocks separate = separateAxes(context.mesh());
  if (!choice)
    return placing(separate);
  std::vector<Layout> layouts;
  for (const PlanLabels &plan : choice->plans)
    layouts.push_back(plan.stored[index].layout);
  if (choice->blocks.empty()) {
    Layout first = partLayout(layouts.front(), part.rank());
    llvm::append_range(
        layouts, whole(neighbourLayouts(context.mesh(), part, first,
                                        withPartial, context.allowPadding)));
    if (stacked == 0)
      llvm::append_range(layouts, consumedLayouts(value));
  } else {
    llvm::append_range(layouts, placing(choice->blocks));
  }
  if (!withPartial)
    llvm::erase_if(layouts,
                   [](const Layout &layout) { return layout.partial; });
  return distinct(std::move(layouts));
}

/// A gradient may wait for its reduction.
std::vector<Layout> NetworkBuilder::declaredLayouts(unsigned index) const {
  auto declare =
      cast<DeclareOp>(network.graph.values[index].value.getDefiningOp());
  return layoutsToChoose(index, /*withPartial=*/declare.getKind() ==
                                    TensorKind::Gradient);
}

/// Layouts that a value may be brought into before it is stored.
std::vector<Layout> NetworkBuilder::layoutsToStore(unsigned index) const {
  if (!isStoredAsRead)
    return layoutsToChoose(index, /*withPartial=*/false);
  std::vector<Layout> layouts = consumedLayouts(network.graph.values[index]);
  llvm::erase_if(layouts, [](const Layout &layout) { return layout.partial; });
  return layouts;
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
    return admitted(declaredLayouts(index));
  case GraphValue::Kind::Carried:
    return admitted(layoutsToChoose(index, /*withPartial=*/true));
  case GraphValue::Kind::Part:
    llvm_unreachable("a part is stored as its whole is");
  case GraphValue::Kind::Computed: {
    std::vector<Layout> layouts = network.domains[value.chunk].layoutsOf(value);
    if (reshardsBeforeStore(value))
      llvm::append_range(layouts, layoutsToStore(index));
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

/// Layouts worth copying into: those that some user consumes, and those of
/// pinned tensors that the value becomes.
std::vector<Layout> NetworkBuilder::copyLayouts(unsigned index) {
  const GraphValue &value = network.graph.values[index];
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
  // A buffer or state that keeps the value in the only layout that it may have.
  for (const GraphValue::Flow &flow : value.flows)
    if (auto pin = closedPin(network.graph.values[flow.target]))
      layouts.push_back(partLayout(*pin, shapeOf(index).rank()));
  llvm::erase_if(layouts, [](const Layout &layout) { return layout.partial; });
  if (options.choice)
    for (const PlanLabels &plan : options.choice->plans)
      if (plan.copies[index])
        layouts.push_back(*plan.copies[index]);
  return distinct(std::move(layouts));
}

void NetworkBuilder::enumerateLabels(unsigned index,
                                     std::vector<Layout> stored) {
  const GraphValue &value = network.graph.values[index];
  ValueVariable &result = network.values[index];
  bool isPrologue = isPrologueValue(value);
  bool mayReshard = isPrologue && closedPin(value);
  for (unsigned s = 0; s < stored.size(); ++s) {
    if (isPrologue)
      result.labels.push_back({s, /*inlined=*/true});
    result.labels.push_back({s});
    if (mayReshard)
      result.labels.push_back({s, /*inlined=*/false, /*resharded=*/true});
  }
  result.layouts = std::move(stored);
}

void NetworkBuilder::addOwnMemory(unsigned index) {
  const GraphValue &value = network.graph.values[index];
  if (homeOf(value) || staysInGroup(value) || takesNoDeviceMemory(value.value))
    return;
  const ValueVariable &variable = network.values[index];
  TensorShape shape = shapeOf(index);
  int64_t kept = inFlight(value.value);
  for (auto [number, label] : llvm::enumerate(variable.labels))
    if (!label.inlined)
      addUsage(variable.variable, number, value.begin, value.end,
               kept * wholeBytes(shape.localBytes(
                          context.mesh(), variable.layouts[label.layout])));
}

/// The variable of a value's copy: label 0 is none.
void NetworkBuilder::addCopies(unsigned index) {
  const GraphValue &value = network.graph.values[index];
  ValueVariable &variable = network.values[index];
  // A value from the host is a copy already.
  if (isOffloadedSave(value.value))
    return;
  variable.copies = options.within ? options.within->values[index].copies
                                   : copyLayouts(index);
  if (variable.copies.empty())
    return;
  TensorShape shape = shapeOf(index);
  variable.copyVariable = addVariable("", variable.copies.size() + 1);
  std::vector<int64_t> copyBytes;
  for (auto [number, layout] : llvm::enumerate(variable.copies)) {
    copyBytes.push_back(wholeBytes(shape.localBytes(context.mesh(), layout)));
    addUsage(variable.copyVariable, number + 1, value.firstRead, value.readEnd,
             copyBytes.back());
  }
  PriceMatrix prices =
      pricesOf(index, variable.layouts, variable.copies, value.count);
  CostTable table = tableOf(variable.labels.size(), variable.copies.size() + 1);
  const EntryCosts none = scale.none(), forbidden = scale.forbidden();
  std::vector<int64_t> extra;
  for (const StoredLabel &label : variable.labels) {
    table.append(none);
    extra.push_back(0);
    for (unsigned copy = 0; copy < variable.copies.size(); ++copy) {
      const PairPrice &price = prices.at(label.layout, copy);
      // A layout that a free slice gives needs no copy.
      bool isUseful =
          !label.inlined && !price.isFree && !price.costs.isForbidden();
      table.append(isUseful ? price.costs : forbidden);
      // The copy itself counts by its own variable.
      extra.push_back(isUseful ? price.extraBytes - copyBytes[copy] : 0);
    }
  }
  unsigned edge =
      addEdge(variable.variable, variable.copyVariable, std::move(table));
  keepEdge({ChainLink::Kind::Copy, index, 0}, edge, value.count);
  addEdgeUsage(edge, value.firstRead, value.firstRead + 1, std::move(extra));
}

/// Ties a value's own variable to what decides how it is made.
void NetworkBuilder::linkToMaker(unsigned index) {
  const GraphValue &value = network.graph.values[index];
  const ValueVariable &variable = network.values[index];
  std::vector<Layout> made;
  Variable maker;
  bool reshards = false;
  if (value.kind == GraphValue::Kind::Computed) {
    made = network.domains[value.chunk].layoutsOf(value);
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
  // A prologue costs something of its own only if it is not computed by its
  // users.
  std::vector<Picoseconds> ownTimes(made.size(), 0);
  if (isPrologueValue(value))
    ownTimes = timesAlone(value.chunk, works(value.chunk));
  std::vector<Layout> sources = distinct(made);
  PriceMatrix prices = pricesOf(index, sources, variable.layouts, value.count);
  CostTable table = tableOf(made.size(), variable.labels.size());
  const EntryCosts none = scale.none(), forbidden = scale.forbidden();
  std::vector<int64_t> extra;
  std::vector<Picoseconds> groupTimes, storeTimes;
  for (auto [row, from] : llvm::enumerate(made)) {
    unsigned source = numberOf(sources, from);
    EntryCosts own = scale.kernel(ownTimes[row], value.count);
    for (const StoredLabel &label : variable.labels) {
      bool isSame = from == variable.layouts[label.layout];
      // For a prologue's value, the label says whether it is resharded.
      bool mayReshard =
          isPrologueValue(value) ? label.resharded && !isSame : reshards;
      const PairPrice *price =
          mayReshard ? &prices.at(source, label.layout) : nullptr;
      bool agrees = isSame && !label.resharded;
      EntryCosts costs = price ? price->costs : agrees ? none : forbidden;
      if (!label.inlined)
        costs += own;
      table.append(costs);
      groupTimes.push_back(label.inlined ? 0 : ownTimes[row]);
      storeTimes.push_back(price ? price->time : 0);
      extra.push_back(price && !costs.isForbidden() ? price->storeExtraBytes
                                                    : 0);
    }
  }
  std::vector<TimedLink> links = {
      {{ChainLink::Kind::Store, index, 0}, std::move(storeTimes)}};
  if (isPrologueValue(value))
    links.push_back({{ChainLink::Kind::Group,
                      unsigned(network.graph.chunks[value.chunk].group), 0},
                     std::move(groupTimes)});
  unsigned edge =
      addEdge(maker, variable.variable, std::move(table), std::move(links));
  keepEdge({ChainLink::Kind::Store, index, 0}, edge, value.count);
  addEdgeUsage(edge, value.begin, value.begin + 1, std::move(extra));
}

/// The value is stored as its maker makes it: its layouts are those of the
/// maker's labels.
void NetworkBuilder::aliasMaker(unsigned index) {
  const GraphValue &value = network.graph.values[index];
  ValueVariable &variable = network.values[index];
  std::vector<Layout> made;
  if (value.kind == GraphValue::Kind::Computed) {
    variable.variable = network.chunkVariable[value.chunk];
    made = network.domains[value.chunk].layoutsOf(value);
    ShardingAttr pin = getResultPin(value.value);
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
    variable.labels.push_back({numberOf(variable.layouts, layout)});
  if (staysInGroup(value) || homeOf(value) || takesNoDeviceMemory(value.value))
    return;
  TensorShape shape = shapeOf(index);
  for (auto [label, layout] : llvm::enumerate(made))
    addUsage(variable.variable, label, value.begin, value.end,
             wholeBytes(shape.localBytes(context.mesh(), layout)));
}

/// The value is stored as the stacked one that it is a part of, which has the
/// memory too.
void NetworkBuilder::aliasStacked(unsigned index) {
  const ValueVariable &whole =
      network.values[network.graph.values[index].whole];
  ValueVariable &variable = network.values[index];
  unsigned rank = shapeOf(index).rank();
  variable.variable = whole.variable;
  variable.labels = whole.labels;
  for (const Layout &layout : whole.layouts)
    variable.layouts.push_back(partLayout(layout, rank));
  if (isOffloadedSave(network.graph.values[index].value))
    addPartFromHost(index);
}

/// A saved part that is on the host is on the device while it is read.
void NetworkBuilder::addPartFromHost(unsigned index) {
  const GraphValue &value = network.graph.values[index];
  const ValueVariable &variable = network.values[index];
  TensorShape shape = shapeOf(index);
  for (auto [number, label] : llvm::enumerate(variable.labels))
    addUsage(variable.variable, number, value.firstRead, value.readEnd,
             wholeBytes(shape.localBytes(context.mesh(),
                                         variable.layouts[label.layout])));
}

/// The transfers of a buffer's parts to the host and back.
void NetworkBuilder::addTransfers(unsigned index) {
  const GraphValue &value = network.graph.values[index];
  const ValueVariable &variable = network.values[index];
  std::vector<EntryCosts> costs;
  for (const StoredLabel &label : variable.labels) {
    EntryCosts &cost = costs.emplace_back(scale.none());
    for (Operation *user : value.value.getUsers()) {
      auto update = dyn_cast<UpdateOp>(user);
      auto kind = update ? CollectiveKind::ToHost : CollectiveKind::FromHost;
      Value part = update ? Value(update.getValue()) : user->getResult(0);
      TensorShape shape = tensorShape(part.getType());
      cost += scale.transfer(
          context.model.hostCost(
              kind, shape.localBytes(context.mesh(),
                                     partLayout(variable.layouts[label.layout],
                                                shape.rank()))),
          executionCount(user));
    }
  }
  addCosts(variable.variable, costs, std::nullopt);
}

/// A view of a tensor, the result of a write into one, or what replaces it,
/// takes memory if it is stored otherwise.
void NetworkBuilder::addMemoryBesideHome(unsigned index) {
  const GraphValue &value = network.graph.values[index];
  const ValueVariable &variable = network.values[index];
  const ValueVariable &home = network.values[*homeOf(value)];
  TensorShape shape = shapeOf(index);
  TensorShape part = value.viewOf ? shapeOf(*value.viewOf) : shape;
  CostTable table = tableOf(variable.labels.size(), home.labels.size());
  const EntryCosts none = scale.none();
  std::vector<int64_t> bytes;
  for (const StoredLabel &label : variable.labels)
    for (const StoredLabel &ofHome : home.labels) {
      table.append(none);
      const Layout &layout = variable.layouts[label.layout];
      Layout there = partLayout(home.layouts[ofHome.layout], part.rank());
      bool isThere = value.viewOf ? areAlike(context.mesh(), shape.extents,
                                             layout, part.extents, there)
                                  : layout == there;
      bytes.push_back(
          isThere ? 0 : wholeBytes(shape.localBytes(context.mesh(), layout)));
    }
  if (llvm::all_of(bytes, [](int64_t each) { return each == 0; }))
    return;
  unsigned edge = addEdge(variable.variable, home.variable, std::move(table));
  addEdgeUsage(edge, value.begin, value.end, std::move(bytes));
}

LogicalResult NetworkBuilder::buildValue(unsigned index) {
  const GraphValue &graphValue = network.graph.values[index];
  Value value = graphValue.value;
  if (graphValue.kind == GraphValue::Kind::Part) {
    aliasStacked(index);
    addCopies(index);
    return success();
  }
  if (!needsOwnVariable(graphValue)) {
    aliasMaker(index);
    if (homeOf(graphValue))
      addMemoryBesideHome(index);
    return success();
  }
  ValueVariable &variable = network.values[index];
  variable.own = true;
  if (options.within) {
    variable.layouts = options.within->values[index].layouts;
    variable.labels = options.within->values[index].labels;
  } else {
    std::vector<Layout> stored = storedLayouts(index);
    if (stored.empty())
      return emitError(value.getLoc())
             << "'" << valueName(value)
             << "' cannot be produced in its annotated layout";
    enumerateLabels(index, std::move(stored));
  }
  variable.variable = addVariable(nameOfOperation(value.getDefiningOp()),
                                  variable.labels.size());
  addOwnMemory(index);
  addCopies(index);
  linkToMaker(index);
  if (isOffloadedSave(value))
    addTransfers(index);
  if (homeOf(graphValue))
    addMemoryBesideHome(index);
  return success();
}
