//===- Model.cpp - A network at fixed prices of memory --------------------===//

#include "shardc/Solver/Model.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include <cassert>
#include <cmath>

namespace shardc::solver {

static constexpr unsigned kLargestShift = 20;

Prices roundPrices(const Network &network, llvm::ArrayRef<double> prices,
                   Scaled most) {
  static constexpr double kMost = 1e17;
  double paid = 0;
  for (auto [price, slack] : llvm::zip_equal(prices, network.slack))
    paid += price * std::max<double>(slack, 0);
  double factor =
      std::min(1.0, std::ldexp(double(most), kPriceBits) / std::max(paid, 1.0));
  Prices result;
  for (double price : prices)
    result.push_back(
        static_cast<int64_t>(std::clamp(factor * price + 0.5, 0.0, kMost)));
  return result;
}

Prices pricesAt(const Network &network, llvm::ArrayRef<double> multipliers,
                unsigned shift) {
  std::vector<double> prices;
  for (uint32_t point : network.rowPoints)
    prices.push_back(std::ldexp(multipliers[point], shift + kPriceBits));
  return roundPrices(network, prices);
}

void storePrices(const Network &network, const Prices &prices, unsigned shift,
                 std::vector<double> &multipliers) {
  for (auto [point, price] : llvm::zip_equal(network.rowPoints, prices))
    multipliers[point] =
        std::ldexp(static_cast<double>(price), -int(shift + kPriceBits));
}

static Scaled scale(Cost cost, unsigned shift) {
  return isForbidden(cost) ? kInfinity : saturate(Int128(cost) << shift);
}

static std::shared_ptr<ScaledTable> scaleTable(const Table &table,
                                               unsigned shift) {
  auto result = std::make_shared<ScaledTable>();
  result->rows = table.rows;
  result->columns = table.columns;
  result->costs.reserve(table.costs.size());
  for (Cost cost : table.costs)
    result->costs.push_back(scale(cost, shift));
  return result;
}

Model::Model(const Network &network, unsigned shift)
    : network(&network), shift(shift), prices(network.slack.size(), 0),
      priceSums(network.slack.size() + 1, 0) {
  std::vector<uint32_t> positions(network.nodes.size(), 0);
  for (auto [index, node] : llvm::enumerate(network.nodes))
    if (node.alive) {
      positions[index] = nodes.size();
      nodes.push_back(index);
    }
  unary.resize(nodes.size());
  incident.resize(nodes.size());
  llvm::DenseMap<const Table *, std::shared_ptr<const ScaledTable>> scaled;
  for (auto [index, link] : llvm::enumerate(network.links)) {
    if (!link.alive)
      continue;
    auto &table = scaled[link.table.get()];
    if (!table)
      table = scaleTable(*link.table, shift);
    uint32_t first = positions[link.first], second = positions[link.second];
    incident[first].push_back(allPairs.size());
    incident[second].push_back(allPairs.size());
    Pair &pair = allPairs.emplace_back();
    pair.first = first;
    pair.second = second;
    pair.link = static_cast<LinkId>(index);
    pair.table = pair.unpriced = table;
  }
  priceNodes();
}

unsigned Model::largestShift(const Network &network, Scaled limit) {
  Int128 total = 1;
  for (const Node &node : network.nodes)
    if (node.alive)
      total += *llvm::max_element(node.costs);
  llvm::DenseMap<const Table *, Cost> largest;
  for (const Link &link : network.links) {
    if (!link.alive)
      continue;
    auto [entry, isNew] = largest.insert({link.table.get(), 0});
    if (isNew)
      for (Cost cost : link.table->costs)
        if (!isForbidden(cost))
          entry->second = std::max(entry->second, cost);
    total += entry->second;
  }
  unsigned shift = kLargestShift;
  while (shift > 0 && (total << shift) >= limit)
    --shift;
  return shift;
}

void Model::setPrices(Prices newPrices) {
  assert(newPrices.size() == prices.size() && "one price per row");
  prices = std::move(newPrices);
  for (size_t row = 0; row < prices.size(); ++row) {
    assert(prices[row] >= 0 && "prices are not negative");
    priceSums[row + 1] = priceSums[row] + prices[row];
  }
  priceNodes();
  pricePairs();
}

/// The price of bytes, rounded down and saturated: a long interval's may be
/// large.
static Scaled priceOf(int64_t bytes, Int128 price) {
  if (price == 0 || bytes == 0)
    return 0;
  if (price > (Int128(kInfinity) << kPriceBits) / bytes)
    return kInfinity;
  return saturate(bytes * price >> kPriceBits);
}

void Model::priceNodes() {
  for (size_t v = 0; v < nodes.size(); ++v) {
    const Node &node = network->nodes[nodes[v]];
    unary[v].resize(node.size());
    for (Label label = 0; label < node.size(); ++label) {
      Scaled sum = scale(node.costs[label], shift);
      if (!node.usages.empty())
        for (const Usage &usage : node.usages[label])
          sum =
              addScaled(sum, priceOf(usage.bytes, priceSums[usage.end] -
                                                      priceSums[usage.begin]));
      unary[v][label] = sum;
    }
  }
}

/// Each of `costs` and the price of its bytes, at most `most`; `result` may be
/// `costs`.
static void addPriced(std::vector<Scaled> &result, llvm::ArrayRef<Scaled> costs,
                      llvm::ArrayRef<int64_t> bytes, int64_t most,
                      Int128 price) {
  result.resize(costs.size());
  Int128 whole = price >> kPriceBits;
  if (whole < kInfinity / std::max<int64_t>(most, 1) &&
      most <= kInfinity >> kPriceBits)
    return addPriced(result.data(), costs.data(), bytes.data(), int64_t(whole),
                     int64_t(price - (whole << kPriceBits)), kPriceBits,
                     costs.size());
  for (auto [sum, cost, each] : llvm::zip_equal(result, costs, bytes))
    sum = addScaled(cost, priceOf(each, price));
}

/// Tables are made anew only where prices changed.
void Model::pricePairs() {
  for (Pair &pair : allPairs) {
    const Link &link = network->links[pair.link];
    llvm::SmallVector<Int128, 2> now;
    for (const PairUsage &usage : link.usages)
      now.push_back(priceSums[usage.end] - priceSums[usage.begin]);
    if (llvm::all_of(now, [](Int128 price) { return price == 0; })) {
      pair.table = pair.unpriced;
      continue;
    }
    if (pair.pricedAt != now) {
      // Copies of the model may share the table.
      pair.table = nullptr;
      if (!pair.priced || pair.priced.use_count() > 1)
        pair.priced = std::make_shared<ScaledTable>();
      pair.priced->rows = pair.unpriced->rows;
      pair.priced->columns = pair.unpriced->columns;
      pair.priced->forgetColumns();
      if (pair.mostBytes.empty())
        for (const PairUsage &usage : link.usages)
          pair.mostBytes.push_back(*llvm::max_element(usage.bytes));
      const std::vector<Scaled> *costs = &pair.unpriced->costs;
      for (auto [usage, most, price] :
           llvm::zip_equal(link.usages, pair.mostBytes, now))
        if (price > 0) {
          addPriced(pair.priced->costs, *costs, usage.bytes, most, price);
          costs = &pair.priced->costs;
        }
      pair.pricedAt = std::move(now);
    }
    pair.table = pair.priced;
  }
}

void Model::applyMessages(const Messages &messages) {
  for (auto [pair, toFirst, toSecond] :
       llvm::zip_equal(allPairs, messages.toFirst, messages.toSecond)) {
    auto table = std::make_shared<ScaledTable>(*pair.table);
    for (Label i = 0; i < table->rows; ++i)
      for (Label j = 0; j < table->columns; ++j) {
        Scaled &cost = table->costs[size_t(i) * table->columns + j];
        // Messages of labels that were taken out are infinite.
        bool isLost = toFirst[i] <= -kInfinity || toSecond[j] <= -kInfinity;
        cost = cost >= kInfinity || isLost
                   ? kInfinity
                   : std::min(cost - toFirst[i] - toSecond[j], kInfinity);
      }
    table->forgetColumns();
    pair.table = std::move(table);
    for (auto [cost, part] : llvm::zip_equal(unary[pair.first], toFirst))
      cost = part <= -kInfinity ? kInfinity : addScaled(cost, part);
    for (auto [cost, part] : llvm::zip_equal(unary[pair.second], toSecond))
      cost = part <= -kInfinity ? kInfinity : addScaled(cost, part);
  }
}

Int128 Model::offset() const {
  // Rounded down, as all that lowers bounds.
  Int128 sum = 0;
  for (auto [price, slack] : llvm::zip_equal(prices, network->slack))
    sum -= Int128(price) * slack;
  return (Int128(network->constant) << shift) + (sum >> kPriceBits);
}

Cost Model::boundFor(Int128 leastSum) const {
  Int128 bound = ceilShift(leastSum + offset(), shift);
  return static_cast<Cost>(
      std::clamp<Int128>(bound, -Int128(kForbidden), kForbidden));
}

Int128 Model::sumLimit(Cost upper) const {
  return (Int128(upper - 1) << shift) - offset();
}

Int128 Model::unpricedSum(llvm::ArrayRef<Label> labels) const {
  Int128 sum = 0;
  for (auto [node, label] : llvm::zip_equal(nodes, labels))
    sum += scale(network->nodes[node].costs[label], shift);
  for (const Pair &pair : allPairs)
    sum += pair.unpriced->at(labels[pair.first], labels[pair.second]);
  return sum;
}

std::vector<Label> Model::toNodes(llvm::ArrayRef<Label> labels) const {
  std::vector<Label> result(network->nodes.size(), 0);
  for (auto [node, label] : llvm::zip_equal(nodes, labels))
    result[node] = label;
  return result;
}

std::vector<Label> Model::fromNodes(llvm::ArrayRef<Label> nodeLabels) const {
  std::vector<Label> result;
  result.reserve(nodes.size());
  for (Variable node : nodes)
    result.push_back(nodeLabels[node]);
  return result;
}

void filterLabels(Network &network, const Model &model, const LabelSets &kept) {
  for (auto [variable, flags] : llvm::enumerate(kept))
    filterLabels(network, model.nodeOf(variable), flags);
}

double removedPart(const LabelSets &kept) {
  size_t labels = 0, removed = 0;
  for (const std::vector<bool> &flags : kept) {
    labels += flags.size();
    removed += llvm::count(flags, false);
  }
  return labels == 0 ? 0 : double(removed) / double(labels);
}

} // namespace shardc::solver
