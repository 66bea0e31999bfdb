//===- Dominance.cpp - Labels that another label replaces -----------------===//

#include "shardc/Solver/Arithmetic.h"
#include "shardc/Solver/Contract.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

namespace shardc::solver {

/// Additions that comparing the labels of one node may take; pairs that come
/// after are not compared.
static constexpr size_t kMaxWork = 4'000'000;

namespace {
/// A link seen from one node: rows are that node's labels.
class View {
public:
  View(const Network &network, Variable node, const Link &link)
      : columns(network.nodes[link.other(node)].size()),
        costs(oriented(link, node, link.table->costs)) {
    for (const PairUsage &usage : link.usages)
      bytes.push_back(oriented(link, node, usage.bytes));
    for (auto row = costs.begin(); row != costs.end(); row += columns)
      leastAt.push_back(std::min_element(row, row + columns) - row);
  }

  size_t size() const { return columns; }

  bool forbids(Label own, size_t other) const {
    return isForbidden(costs[own * columns + other]);
  }

  Cost least(Label own) const { return costs[own * columns + leastAt[own]]; }

  /// The excess cost of `better` over `worse` at the column where `worse` costs
  /// least.
  Cost excessAtLeast(Label better, Label worse) const {
    return costs[better * columns + leastAt[worse]] - least(worse);
  }

  /// The most that `better` can cost more than `worse`.
  Cost excess(Label better, Label worse) const {
    const Cost *to = costs.data() + better * columns;
    const Cost *from = costs.data() + worse * columns;
    Cost most = -kForbidden;
    for (size_t k = 0; k < columns; ++k)
      most = std::max(most, isForbidden(from[k]) ? most : to[k] - from[k]);
    return most;
  }

  bool usesNoMore(Label better, Label worse) const {
    for (const std::vector<int64_t> &table : bytes)
      for (size_t k = 0; k < columns; ++k)
        if (!isForbidden(costs[worse * columns + k]) &&
            table[better * columns + k] > table[worse * columns + k])
          return false;
    return true;
  }

private:
  size_t columns;
  std::vector<Cost> costs;
  std::vector<Label> leastAt;              // of the neighbour, by own label
  std::vector<std::vector<int64_t>> bytes; // one table per pair usage
};

/// Compares labels of one node, counting the work.
class Comparison {
public:
  Comparison(const Network &network, Variable node)
      : node(network.nodes[node]) {
    for (LinkId link : this->node.links)
      views.emplace_back(network, node, network.links[link]);
    collectForbidden();
    for (const UsageList &list : this->node.usages) {
      Int128 volume = 0;
      for (const Usage &usage : list)
        volume += Int128(usage.bytes) * (usage.end - usage.begin);
      volumes.push_back(volume);
    }
  }

  bool isExhausted() const { return work > kMaxWork; }

  /// All labels by the least cost that they can have together with their
  /// neighbours', then by memory: none dominates one before it, but for ties.
  std::vector<Label> mostPromisingFirst() const {
    std::vector<Int128> least;
    for (Label label = 0; label < node.size(); ++label) {
      least.push_back(node.costs[label]);
      for (const View &view : views)
        least.back() += view.least(label);
    }
    std::vector<Label> order(node.size());
    std::iota(order.begin(), order.end(), 0);
    llvm::sort(order, [&](Label a, Label b) {
      if (least[a] != least[b])
        return least[a] < least[b];
      if (!volumes.empty() && volumes[a] != volumes[b])
        return volumes[a] < volumes[b];
      return a < b;
    });
    return order;
  }

  /// Cheap tests come first: most pairs fail one of them.
  bool dominates(Label better, Label worse) {
    ++work;
    if (!allowsAll(better, worse))
      return false;
    if (!volumes.empty() &&
        (volumes[better] > volumes[worse] ||
         !usesNoMore(node.usages[better], node.usages[worse])))
      return false;
    Int128 excess = Int128(node.costs[better]) - node.costs[worse],
           least = excess;
    for (const View &view : views)
      least += view.excessAtLeast(better, worse);
    if (least > 0)
      return false;
    for (const View &view : views) {
      work += view.size();
      excess += view.excess(better, worse);
    }
    return excess <= 0 && llvm::all_of(views, [&](const View &view) {
             return view.usesNoMore(better, worse);
           });
  }

private:
  /// One bit per label of each neighbour.
  void collectForbidden() {
    size_t bits = 0;
    for (const View &view : views)
      bits += view.size();
    wordsPerLabel = (bits + 63) / 64;
    forbidden.assign(wordsPerLabel * node.size(), 0);
    for (Label own = 0; own < node.size(); ++own) {
      size_t bit = 0;
      for (const View &view : views)
        for (size_t k = 0; k < view.size(); ++k, ++bit)
          if (view.forbids(own, k))
            forbidden[own * wordsPerLabel + bit / 64] |= uint64_t(1)
                                                         << (bit % 64);
    }
  }

  bool allowsAll(Label better, Label worse) const {
    const uint64_t *a = forbidden.data() + better * wordsPerLabel;
    const uint64_t *b = forbidden.data() + worse * wordsPerLabel;
    for (size_t word = 0; word < wordsPerLabel; ++word)
      if (a[word] & ~b[word])
        return false;
    return true;
  }

  /// At every row `a` uses at most what `b` uses.
  static bool usesNoMore(const UsageList &a, const UsageList &b) {
    size_t j = 0;
    for (const Usage &usage : a) {
      uint32_t row = usage.begin;
      while (row < usage.end) {
        while (j < b.size() && b[j].end <= row)
          ++j;
        if (j == b.size() || b[j].begin > row || b[j].bytes < usage.bytes)
          return false;
        row = b[j].end;
      }
    }
    return true;
  }

  const Node &node;
  std::vector<View> views;
  size_t wordsPerLabel = 0;
  std::vector<uint64_t> forbidden; // by label
  std::vector<Int128> volumes;     // bytes times rows, by label
  size_t work = 0;
};
} // namespace

bool removeDominated(Network &network, Variable node) {
  size_t labels = network.nodes[node].size();
  if (labels < 2)
    return false;
  Comparison comparison(network, node);
  std::vector<bool> keep(labels, true);
  std::vector<Label> kept;
  for (Label worse : comparison.mostPromisingFirst()) {
    keep[worse] =
        comparison.isExhausted() || llvm::none_of(kept, [&](Label better) {
          return comparison.dominates(better, worse);
        });
    if (keep[worse])
      kept.push_back(worse);
  }
  if (kept.size() == labels)
    return false;
  filterLabels(network, node, keep);
  return true;
}

} // namespace shardc::solver
