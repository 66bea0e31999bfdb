//===- Merge.cpp - Nodes that a neighbour determines ----------------------===//

#include "shardc/Solver/Arithmetic.h"
#include "shardc/Solver/Contract.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc::solver {

/// Tables may grow to this many entries in all by carrying links over, or by
/// this factor if that is more.
static constexpr double kMaxEntries = 2e5;
static constexpr double kMaxGrowth = 1.5;

/// The one label of `node` that each label of the link's other end allows, or
/// nothing if some label allows several.
static std::optional<std::vector<Label>>
partners(const Network &network, const Link &link, Variable node) {
  Variable other = link.other(node);
  std::vector<Label> result;
  for (Label label = 0; label < network.nodes[other].size(); ++label) {
    size_t found = 0;
    Label partner = 0;
    for (Label own = 0; own < network.nodes[node].size() && found < 2; ++own)
      if (!isForbidden(pairCost(link, node, own, label))) {
        partner = own;
        ++found;
      }
    if (found != 1)
      return std::nullopt;
    result.push_back(partner);
  }
  return result;
}

/// Do the links of `node` stay small when `into`'s labels index them?
static bool staysSmall(const Network &network, Variable node, Variable into) {
  double before = 0, after = 0;
  for (LinkId id : network.nodes[node].links) {
    Variable other = network.links[id].other(node);
    if (other == into)
      continue;
    double labels = network.nodes[other].size();
    before += labels * network.nodes[node].size();
    after += labels * network.nodes[into].size();
  }
  return after <= std::max(kMaxEntries, kMaxGrowth * before);
}

/// Values of a link with `node`'s labels replaced by their partner's rows, and
/// these rows first.
template <typename T>
static std::vector<T> gather(const Link &link, Variable node,
                             const std::vector<T> &values, size_t others,
                             const std::vector<Label> &partner) {
  std::vector<T> result;
  result.reserve(partner.size() * others);
  size_t columns = link.table->columns;
  for (size_t own : partner)
    for (size_t k = 0; k < others; ++k)
      result.push_back(link.first == node ? values[own * columns + k]
                                          : values[k * columns + own]);
  return result;
}

static void carryLinks(Network &network, Variable node, Variable into,
                       const std::vector<Label> &partner) {
  while (!network.nodes[node].links.empty()) {
    LinkId id = network.nodes[node].links.back();
    const Link &link = network.links[id];
    Variable other = link.other(node);
    size_t others = network.nodes[other].size();
    auto table = std::make_shared<Table>();
    table->rows = partner.size();
    table->columns = others;
    table->costs = gather(link, node, link.table->costs, others, partner);
    std::vector<PairUsage> usages;
    for (const PairUsage &usage : link.usages)
      usages.push_back({usage.begin, usage.end,
                        gather(link, node, usage.bytes, others, partner)});
    removeLink(network, id);
    addLink(network, into, other, std::move(table), std::move(usages));
  }
}

/// Adds costs and memory of `node` and of its link to the labels of `into`.
static void carryLabels(Network &network, LinkId id, Variable node,
                        const std::vector<Label> &partner) {
  const Link &link = network.links[id];
  const Node &from = network.nodes[node];
  Node &to = network.nodes[link.other(node)];
  if (!from.usages.empty() || !link.usages.empty())
    to.usages.resize(to.size());
  for (Label label = 0; label < to.size(); ++label) {
    Label own = partner[label];
    to.costs[label] += from.costs[own] + pairCost(link, node, own, label);
    if (!from.usages.empty())
      to.usages[label] = addUsages(to.usages[label], from.usages[own]);
    size_t at = link.first == node ? own * link.table->columns + label
                                   : label * link.table->columns + own;
    for (const PairUsage &usage : link.usages)
      if (usage.bytes[at] > 0)
        to.usages[label] = addUsages(
            to.usages[label], {{usage.begin, usage.end, usage.bytes[at]}});
  }
}

bool mergeFunctional(Network &network, Variable node) {
  for (LinkId id : network.nodes[node].links) {
    const Link &link = network.links[id];
    Variable into = link.other(node);
    if (!staysSmall(network, node, into))
      continue;
    std::optional<std::vector<Label>> partner = partners(network, link, node);
    if (!partner)
      continue;
    Recovery recovery{node, {into}, {network.nodes[into].labels}, {}};
    for (Label own : *partner)
      recovery.best.push_back(network.nodes[node].labels[own]);
    network.recoveries.push_back(std::move(recovery));
    carryLabels(network, id, node, *partner);
    removeLink(network, id);
    carryLinks(network, node, into, *partner);
    network.nodes[node].alive = false;
    network.nodes[node].usages.clear();
    return true;
  }
  return false;
}

} // namespace shardc::solver
