//===- Reads.cpp - Tables between values and their readers ------*- C++ -*-===//

#include "NetworkBuilder.h"
#include "shardc/Solver/Arithmetic.h"
#include "llvm/ADT/SetVector.h"
#include <map>

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;
using solver::kForbidden;

/// Numbers the layouts that labels of a consumer want, and tells apart what it
/// computes in place and how it reads what its leader makes.
std::vector<NetworkBuilder::Want>
NetworkBuilder::distinctWants(const Consumer &consumer, Layouts &wanted,
                              std::vector<unsigned> &wantOf) const {
  for (const auto *layouts : consumer.layouts)
    wanted.insert(wanted.end(), layouts->begin(), layouts->end());
  wanted = distinct(std::move(wanted));
  std::vector<Want> wants;
  std::map<std::vector<unsigned>, unsigned> numbers;
  ShardingRule rule;
  if (consumer.strategies)
    rule = cast<ShardingRuleOpInterface>(consumer.operands.front()->getOwner())
               .getShardingRule();
  for (unsigned label = 0; label < consumer.numLabels; ++label) {
    Want want;
    uint32_t inlines = 0, moves = 0;
    if (consumer.strategies) {
      const ChunkStrategy &strategy = (*consumer.strategies)[label];
      want.leaderRead = strategy.leaderRead;
      inlines = strategy.inlined;
      moves = movedOperands(rule, strategy.ops.front());
    }
    std::vector<unsigned> key = {unsigned(want.leaderRead)};
    for (auto [number, layouts] : llvm::enumerate(consumer.layouts)) {
      unsigned layout = numberOf(wanted, (*layouts)[label]);
      unsigned operand = consumer.operands[number]->getOperandNumber();
      bool inlined = inlines >> operand & 1, moved = moves >> operand & 1;
      want.layouts.push_back(layout);
      want.inlined.push_back(inlined);
      want.moved.push_back(moved);
      key.push_back(4 * layout + 2 * moved + inlined);
    }
    auto [it, isNew] = numbers.try_emplace(std::move(key), wants.size());
    if (isNew)
      wants.push_back(std::move(want));
    wantOf.push_back(it->second);
  }
  return wants;
}

/// Whether what is wanted goes with how a value is stored, as far as it is
/// computed in place: users either read it, or compute it where it lies.
bool NetworkBuilder::inlinesAsStored(const Want &want, const Layout &layout,
                                     const StoredLabel &stored,
                                     ArrayRef<Layout> wanted) const {
  for (auto [number, inlined, moved] :
       llvm::zip_equal(want.layouts, want.inlined, want.moved)) {
    // How a partial sum comes about is not part of its layout: it is stored.
    bool direct = wanted[number] == layout && !moved && !stored.resharded &&
                  !layout.partial;
    if (options.readsAnyStored && !inlined && !stored.inlined)
      continue;
    if (inlined != direct || (stored.inlined && !direct))
      return false;
  }
  return true;
}

/// Whether a consumer's labels that want this go with how a value is stored.
bool NetworkBuilder::readsAsStored(const Consumer &consumer, const Want &want,
                                   const Layout &layout,
                                   const StoredLabel &stored,
                                   ArrayRef<Layout> wanted) const {
  if (!consumer.strategies)
    return true;
  switch (want.leaderRead) {
  case LeaderRead::Any:
    return inlinesAsStored(want, layout, stored, wanted);
  case LeaderRead::Fused:
  case LeaderRead::Stored:
    return readsAll(want, layout, wanted);
  case LeaderRead::Resharded:
    return !readsAll(want, layout, wanted);
  }
  llvm_unreachable("unknown way of reading");
}

/// Prices of what is made from one layout, each distinct one once.
NetworkBuilder::ReadPrice
NetworkBuilder::priceReads(const PriceMatrix &prices, unsigned from,
                           ArrayRef<unsigned> wants) const {
  ReadPrice result{scale.none()};
  for (auto [position, want] : llvm::enumerate(wants)) {
    if (llvm::is_contained(wants.take_front(position), want))
      continue;
    const PairPrice &price = prices.at(from, want);
    result.costs += price.costs;
    result.bytes += price.extraBytes;
    result.time = std::max(result.time, price.time);
  }
  return result;
}

/// One table for all uses of a value by one consumer: each distinct layout is
/// resharded once, from the stored layout.
void NetworkBuilder::connectDirectly(unsigned index, const Consumer &consumer,
                                     ChainLink link) {
  const ValueVariable &provider = network.values[index];
  Layouts wanted;
  std::vector<unsigned> wantOf;
  std::vector<Want> wants = distinctWants(consumer, wanted, wantOf);
  PriceMatrix prices =
      pricesOf(index, provider.layouts, wanted, consumer.count);
  CostTable table = tableOf(provider.labels.size(), consumer.numLabels);
  std::vector<int64_t> extra;
  std::vector<Picoseconds> times;
  extra.reserve(size_t(table.rows) * table.columns);
  std::vector<ReadPrice> reads(wants.size(), ReadPrice{scale.none()});
  for (const StoredLabel &label : provider.labels) {
    const Layout &stored = provider.layouts[label.layout];
    for (auto [read, want] : llvm::zip_equal(reads, wants))
      read = readsAsStored(consumer, want, stored, label, wanted)
                 ? priceReads(prices, label.layout, want.layouts)
                 : ReadPrice{scale.forbidden()};
    for (unsigned column = 0; column < consumer.numLabels; ++column) {
      const ReadPrice &read = reads[wantOf[column]];
      table.append(read.costs);
      times.push_back(read.time);
      extra.push_back(read.costs.isForbidden() ? 0 : read.bytes);
    }
  }
  unsigned edge = addEdge(provider.variable, consumer.variable,
                          std::move(table), {{link, std::move(times)}});
  keepEdge(link, edge, consumer.count);
  addEdgeUsage(edge, consumer.begin, consumer.end, std::move(extra));
}

/// The least time in which each wanted layout comes about by way of a copy, by
/// stored layout.
std::vector<Picoseconds>
NetworkBuilder::timesThroughCopies(unsigned index, const Layouts &wanted) {
  const ValueVariable &value = network.values[index];
  size_t copies = value.copies.size(), wants = wanted.size();
  std::vector<Picoseconds>
      toCopy = pricesOf(index, value.layouts, value.copies, 1).times(),
      fromCopy = pricesOf(index, value.copies, wanted, 1).times(),
      times(value.layouts.size() * wants, kForbidden);
  for (size_t from = 0; from < value.layouts.size(); ++from)
    for (size_t copy = 0; copy < copies; ++copy)
      if (toCopy[from * copies + copy] < kForbidden)
        solver::minPlus(times.data() + from * wants,
                        fromCopy.data() + copy * wants,
                        toCopy[from * copies + copy], wants);
  std::replace(times.begin(), times.end(), kForbidden, Picoseconds(0));
  return times;
}

/// A variable between a value that may have a copy and one consumer.
void NetworkBuilder::connectByRead(unsigned index, const Consumer &consumer,
                                   ChainLink link) {
  ValueVariable &provider = network.values[index];
  Layouts wanted;
  std::vector<unsigned> wantOf;
  std::vector<Want> wants = distinctWants(consumer, wanted, wantOf);
  ReadVariable &read = provider.reads.emplace_back();
  read.operands = consumer.operands;

  // Labels: each want with each choice of what comes from the copy.
  struct ReadLabel {
    unsigned want;
    llvm::SmallVector<unsigned, 2> fromStored, fromCopy;
  };
  std::vector<ReadLabel> labels;
  for (auto [number, want] : llvm::enumerate(wants)) {
    std::vector<unsigned> each(want.layouts.begin(), want.layouts.end());
    llvm::sort(each);
    each.erase(std::unique(each.begin(), each.end()), each.end());
    bool readsOnly = !llvm::is_contained(want.inlined, true);
    unsigned masks = readsOnly ? 1u << each.size() : 1;
    for (unsigned mask = 0; mask < masks; ++mask) {
      ReadLabel &label =
          labels.emplace_back(ReadLabel{unsigned(number), {}, {}});
      for (auto [bit, layout] : llvm::enumerate(each))
        (mask >> bit & 1 ? label.fromCopy : label.fromStored).push_back(layout);
      auto &flags = read.fromCopy.emplace_back();
      for (unsigned layout : want.layouts)
        flags.push_back(llvm::is_contained(label.fromCopy, layout));
    }
  }
  read.variable = addVariable("", labels.size());

  CostTable stored = tableOf(provider.labels.size(), labels.size()),
            copied = tableOf(provider.copies.size() + 1, labels.size()),
            consumed = tableOf(consumer.numLabels, labels.size());
  const EntryCosts none = scale.none(), forbidden = scale.forbidden();
  std::vector<int64_t> storedExtra, copiedExtra;
  auto add = [](CostTable &table, std::vector<int64_t> &extra,
                const ReadPrice &price) {
    table.append(price.costs);
    extra.push_back(price.costs.isForbidden() ? 0 : price.bytes);
  };
  PriceMatrix fromStored =
                  pricesOf(index, provider.layouts, wanted, consumer.count),
              fromCopy =
                  pricesOf(index, provider.copies, wanted, consumer.count);
  // The copy takes its time before it is read; which one it is, the table does
  // not know.
  std::vector<Picoseconds> throughCopy, times;
  if (options.measureLinks)
    throughCopy = timesThroughCopies(index, wanted);
  for (const StoredLabel &from : provider.labels)
    for (const ReadLabel &label : labels) {
      ReadPrice price =
          readsAsStored(consumer, wants[label.want],
                        provider.layouts[from.layout], from, wanted)
              ? priceReads(fromStored, from.layout, label.fromStored)
              : ReadPrice{forbidden};
      add(stored, storedExtra, price);
      if (options.measureLinks)
        for (unsigned want : label.fromCopy)
          price.time = std::max(
              price.time, throughCopy[from.layout * wanted.size() + want]);
      times.push_back(price.time);
    }
  for (const ReadLabel &label : labels)
    add(copied, copiedExtra,
        ReadPrice{label.fromCopy.empty() ? none : forbidden});
  for (unsigned copy = 0; copy < provider.copies.size(); ++copy)
    for (const ReadLabel &label : labels)
      add(copied, copiedExtra, priceReads(fromCopy, copy, label.fromCopy));
  for (unsigned row = 0; row < consumer.numLabels; ++row)
    for (const ReadLabel &label : labels)
      consumed.append(label.want == wantOf[row] ? none : forbidden);

  unsigned edge = addEdge(provider.variable, read.variable, std::move(stored),
                          {{link, std::move(times)}});
  keepEdge(link, edge, consumer.count);
  addEdgeUsage(edge, consumer.begin, consumer.end, std::move(storedExtra));
  edge = addEdge(provider.copyVariable, read.variable, std::move(copied));
  keepEdge(link, edge, consumer.count);
  addEdgeUsage(edge, consumer.begin, consumer.end, std::move(copiedExtra));
  addEdge(consumer.variable, read.variable, std::move(consumed));
}

void NetworkBuilder::connect(unsigned index, const Consumer &consumer,
                             ChainLink link) {
  const ValueVariable &provider = network.values[index];
  if (provider.variable == consumer.variable)
    return; // a carried value that is handed on as it is
  if (provider.copies.empty() || !consumer.readsCopies)
    connectDirectly(index, consumer, link);
  else
    connectByRead(index, consumer, link);
}

/// All reads of a value by one chunk.
NetworkBuilder::Consumer NetworkBuilder::consumerOf(const GraphValue &value,
                                                    unsigned user) const {
  const Chunk &chunk = network.graph.chunks[user];
  Consumer consumer;
  consumer.variable = network.chunkVariable[user];
  consumer.numLabels = network.domains[user].labels.size();
  consumer.count = chunk.count;
  consumer.begin = chunk.point;
  consumer.end = chunk.readEnd;
  for (const ChunkUse &use : value.uses)
    if (use.chunk == user) {
      consumer.begin = std::min(consumer.begin, use.point);
      consumer.layouts.push_back(
          &network.domains[user].operands[use.op][use.operand]);
      consumer.operands.push_back(
          &chunk.ops[use.op]->getOpOperand(use.operand));
    }
  return consumer;
}

/// True for the tensor of which a part is written: in the value itself, not in
/// a copy of it.
static bool writesInto(OpOperand *use) {
  return inPlaceOperand(use->getOwner()) == use;
}

void NetworkBuilder::connectUses(unsigned index) {
  const GraphValue &value = network.graph.values[index];
  // The rest of a group reads what its leader stores; the pair's table has the
  // price where that is what it makes.
  bool isApart = closedPin(value) || leavesItsGroup(value);
  llvm::SmallSetVector<unsigned, 4> users;
  for (const ChunkUse &use : value.uses)
    if (!isFusedUse(value, use) || isApart)
      users.insert(use.chunk);
  for (unsigned user : users) {
    Consumer consumer = consumerOf(value, user);
    bool isRest = llvm::any_of(value.uses, [&](const ChunkUse &use) {
      return use.chunk == user && isFusedUse(value, use);
    });
    consumer.readsCopies =
        !isRest && !llvm::any_of(consumer.operands, writesInto);
    if (isPrologueValue(value) || (isRest && leavesItsGroup(value)))
      consumer.strategies = &network.domains[user].labels;
    connect(index, consumer, {ChainLink::Kind::Read, index, user});
  }
}

void NetworkBuilder::connectFlow(unsigned index, const GraphValue::Flow &flow) {
  const ValueVariable &target = network.values[flow.target];
  unsigned rank = shapeOf(index).rank();
  std::vector<Layout> layouts;
  for (const StoredLabel &label : target.labels)
    layouts.push_back(partLayout(target.layouts[label.layout], rank));
  Consumer consumer;
  consumer.variable = target.variable;
  consumer.numLabels = layouts.size();
  consumer.layouts.push_back(&layouts);
  consumer.operands.push_back(flow.operand);
  consumer.count = flow.count;
  consumer.begin = flow.begin;
  consumer.end = flow.end;
  connect(index, consumer, {ChainLink::Kind::Flow, index, flow.target});
}
