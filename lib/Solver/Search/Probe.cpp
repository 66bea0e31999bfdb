//===- Probe.cpp - What a single label costs at least ---------------------===//

#include "Probe.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc::solver::search {

/// Passes forward and back for each label, fewer if one closes less than this
/// part of what is missing.
static constexpr unsigned kSweeps = 10;
static constexpr int64_t kLeastShare = 20;

Probe::Probe(const Prover &prover, size_t mostNodes)
    : prover(prover), mostNodes(mostNodes), costs(prover.costs),
      position(prover.costs.graph.size(), kOutside),
      belief(prover.costs.graph.maxLabels) {}

void Probe::chooseRegion(uint32_t root) {
  const Graph &graph = costs.graph;
  for (uint32_t node : region)
    position[node] = kOutside;
  region.assign(1, root);
  position[root] = 0;
  for (size_t head = 0; head < region.size() && region.size() < mostNodes;
       ++head)
    for (const Arc &arc : graph.arcsOf(region[head]))
      if (region.size() < mostNodes && position[arc.other] == kOutside) {
        position[arc.other] = 0;
        region.push_back(arc.other);
      }
  llvm::sort(region);
  members.clear();
  for (uint32_t node : region)
    members.push_back(makeMember(node));
}

Probe::Member Probe::makeMember(uint32_t node) const {
  const Graph &graph = costs.graph;
  llvm::ArrayRef<Arc> arcs = graph.arcsOf(node);
  uint32_t size = graph.labels(node);
  Member member;
  member.node = node;
  member.costs.assign(costs.priced.begin() + graph.firstLabel[node],
                      costs.priced.begin() + graph.firstLabel[node + 1]);
  std::vector<Int128> all = member.costs;
  int64_t earlier = 0, lent = 0;
  for (const Arc &arc : arcs) {
    bool inside = position[arc.other] != kOutside;
    earlier += arc.other < node;
    lent += arc.other < node && !inside;
    for (uint32_t i = 0; i < size; ++i) {
      all[i] += costs.messages[arc.incoming + i];
      if (!inside)
        member.costs[i] += costs.messages[arc.incoming + i];
    }
    if (inside)
      (arc.other < node ? member.earlier : member.later).push_back(&arc);
  }
  int64_t parts = std::max<int64_t>(earlier, arcs.size() - earlier);
  for (uint32_t i = 0; lent && i < size; ++i)
    member.costs[i] -= lent * ((all[i] - prover.lows[node]) / parts);
  return member;
}

Int128 Probe::visit(const Member &member, bool forward, uint32_t from,
                    uint32_t to) {
  for (uint32_t i = from; i < to; ++i)
    belief[i] = member.costs[i];
  for (const auto *arcs : {&member.earlier, &member.later})
    for (const Arc *arc : *arcs)
      for (uint32_t i = from; i < to; ++i)
        belief[i] += costs.messages[arc->incoming + i];
  Int128 low = *std::min_element(belief.begin() + from, belief.begin() + to);
  for (uint32_t i = from; i < to; ++i)
    belief[i] -= low;
  int64_t parts = std::max(member.earlier.size(), member.later.size());
  for (const Arc *arc : forward ? member.later : member.earlier) {
    costs.send(*arc, belief.data(), parts, from, to);
    work += size_t(to - from) * costs.graph.labels(arc->other);
  }
  return low;
}

Int128 Probe::sweep(uint32_t root, uint32_t label) {
  auto visitOne = [&](const Member &member, bool forward) {
    return member.node == root ? visit(member, forward, label, label + 1)
                               : visit(member, forward, 0, member.costs.size());
  };
  for (const Member &member : members)
    visitOne(member, /*forward=*/true);
  Int128 sum = 0;
  for (const Member &member : llvm::reverse(members))
    sum += visitOne(member, /*forward=*/false);
  return sum;
}

void Probe::run(uint32_t root, int64_t cost, std::vector<bool> &gone,
                const Deadline &stop) {
  const Graph &graph = costs.graph;
  chooseRegion(root);
  Int128 outside = prover.sum;
  for (uint32_t node : region)
    outside -= prover.lows[node];
  for (uint32_t label = 0; label < graph.labels(root) && !stop.expired();
       ++label) {
    if (gone[graph.firstLabel[root] + label])
      continue;
    ++tried;
    Int128 last = costs.total(prover.sum);
    for (unsigned k = 0; k < kSweeps; ++k) {
      Int128 bound = costs.total(outside + sweep(root, label));
      if (bound > cost) {
        gone[graph.firstLabel[root] + label] = true;
        ++excluded;
        break;
      }
      if (k > 0 && (bound - last) * kLeastShare < cost - bound)
        break;
      last = bound;
    }
    for (const Member &member : members)
      for (const auto *arcs : {&member.earlier, &member.later})
        for (const Arc *arc : *arcs)
          std::copy_n(prover.costs.messages.begin() + arc->incoming,
                      graph.labels(member.node),
                      costs.messages.begin() + arc->incoming);
  }
}

} // namespace shardc::solver::search
