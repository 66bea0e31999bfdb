//===- Carry.cpp - Prices and messages for a smaller network --------------===//

#include "Carry.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc::solver::search {

Naming::Naming(const Network &network, const Graph &graph)
    : points(network.rowPoints), ids(graph.ids) {
  for (Variable id : ids)
    labels.push_back(network.nodes[id].labels);
}

static Prices carryPrices(const Naming &from, const Prices &prices,
                          llvm::ArrayRef<int64_t> tightness, const Naming &to) {
  Prices carried(to.points.size(), 0);
  if (carried.empty())
    return carried;
  // Rows after are among those before.
  auto tightnessAt = [&](size_t row) {
    size_t old =
        llvm::lower_bound(from.points, to.points[row]) - from.points.begin();
    return tightness[old];
  };
  for (size_t row = 0; row < prices.size(); ++row) {
    size_t next =
        llvm::lower_bound(to.points, from.points[row]) - to.points.begin();
    bool stays = next < carried.size() && to.points[next] == from.points[row];
    if (!stays && next > 0 &&
        (next == carried.size() || tightnessAt(next - 1) > tightnessAt(next)))
      --next;
    carried[next] += prices[row];
  }
  return carried;
}

/// Where the messages to each node from each other begin.
static llvm::DenseMap<std::pair<Variable, Variable>, uint32_t>
findMessages(const Graph &graph) {
  llvm::DenseMap<std::pair<Variable, Variable>, uint32_t> result;
  for (uint32_t u = 0; u < graph.size(); ++u)
    for (const Arc &arc : graph.arcsOf(u))
      result[{graph.ids[u], graph.ids[arc.other]}] = arc.incoming;
  return result;
}

static std::vector<float> carryMessages(const Graph &before, const Naming &from,
                                        const std::vector<float> &messages,
                                        const Graph &after, const Naming &to) {
  std::vector<float> carried(after.messageEntries, 0);
  auto old = findMessages(before);
  llvm::DenseMap<Variable, uint32_t> number;
  for (auto [index, id] : llvm::enumerate(from.ids))
    number[id] = index;
  for (uint32_t u = 0; u < after.size(); ++u)
    for (const Arc &arc : after.arcsOf(u)) {
      auto found = old.find({after.ids[u], after.ids[arc.other]});
      if (found == old.end())
        continue;
      const std::vector<Label> &was = from.labels[number[after.ids[u]]];
      for (auto [i, label] : llvm::enumerate(to.labels[u]))
        carried[arc.incoming + i] =
            messages[found->second +
                     (llvm::lower_bound(was, label) - was.begin())];
    }
  return carried;
}

DualPoint carry(const Graph &before, const Naming &from, const DualPoint &point,
                llvm::ArrayRef<int64_t> tightness, const Graph &after,
                const Naming &to) {
  DualPoint result;
  result.prices = carryPrices(from, point.prices, tightness, to);
  result.messages = carryMessages(before, from, point.messages, after, to);
  return result;
}

} // namespace shardc::solver::search
