//===- Forest.cpp - Exact moves of many nodes at once ---------------------===//

#include "Forest.h"
#include "Kernels.h"

namespace shardc::solver::search {

Forest::Forest(const Graph &graph)
    : graph(graph), position(graph.size(), kOutside),
      message(padded(graph.maxLabels)) {}

void Forest::clear() {
  for (uint32_t node : members)
    position[node] = kOutside;
  members.clear();
  parentArcs.clear();
  parents.clear();
  offsets.assign(1, 0);
}

bool Forest::mayJoin(uint32_t node, const Arc *arc) {
  if (position[node] != kOutside)
    return false;
  unsigned allowed = arc ? 1 : 0;
  llvm::ArrayRef<Arc> arcs = graph.arcsOf(node);
  work += arcs.size();
  for (const Arc &other : arcs)
    if (position[other.other] != kOutside && allowed-- == 0)
      return false;
  return true;
}

void Forest::join(const Candidate &candidate) {
  uint32_t parent = kOutside;
  if (candidate.arc) {
    // The arc leaves the parent; its reverse would name it directly.
    for (const Arc &arc : graph.arcsOf(candidate.node))
      if (arc.link == candidate.arc->link)
        parent = position[arc.other];
  }
  position[candidate.node] = members.size();
  members.push_back(candidate.node);
  parentArcs.push_back(candidate.arc);
  parents.push_back(parent);
  offsets.push_back(offsets.back() + padded(graph.labels(candidate.node)));
}

void Forest::addCandidates(uint32_t node, uint32_t fanout, Random &random) {
  llvm::ArrayRef<Arc> arcs = graph.arcsOf(node);
  if (arcs.size() <= fanout) {
    for (const Arc &arc : arcs)
      if (position[arc.other] == kOutside)
        frontier.push_back({arc.other, &arc});
    return;
  }
  for (uint32_t i = 0; i < fanout; ++i) {
    const Arc &arc = arcs[random.below(arcs.size())];
    if (position[arc.other] == kOutside)
      frontier.push_back({arc.other, &arc});
  }
}

void Forest::grow(uint32_t seed, size_t size, Order order, uint32_t fanout,
                  Random &random) {
  if (members.size() >= size || !mayJoin(seed, nullptr))
    return;
  frontier.clear();
  join({seed, nullptr});
  addCandidates(seed, fanout, random);
  size_t head = 0; // of the queue, breadth first
  while (members.size() < size && head < frontier.size()) {
    size_t index = order == Order::Breadth ? head
                   : order == Order::Depth ? frontier.size() - 1
                                           : random.below(frontier.size());
    Candidate candidate = frontier[index];
    if (order == Order::Breadth) {
      ++head;
    } else {
      frontier[index] = frontier.back();
      frontier.pop_back();
    }
    if (!mayJoin(candidate.node, candidate.arc))
      continue;
    join(candidate);
    addCandidates(candidate.node, fanout, random);
  }
}

void Forest::load(const State &state) {
  loaded.resize(offsets.back());
  targets.resize(offsets.back());
  for (size_t k = 0; k < members.size(); ++k) {
    uint32_t node = members[k];
    std::copy_n(state.costs(node), graph.labels(node),
                loaded.begin() + offsets[k]);
  }
  const Labels &labels = state.labels();
  for (size_t k = 0; k < members.size(); ++k) {
    if (!parentArcs[k])
      continue;
    const Arc &arc = *parentArcs[k];
    uint32_t node = members[k], parent = members[parents[k]];
    const int64_t *row = graph.exactRow(arc, labels[parent]);
    for (uint32_t i = 0; i < graph.labels(node); ++i)
      loaded[offsets[k] + i] -= row[i];
    const int64_t *column = graph.exactColumn(arc, labels[node]);
    int64_t *theirs = loaded.data() + offsets[parents[k]];
    for (uint32_t i = 0; i < graph.labels(parent); ++i)
      theirs[i] -= column[i];
  }
  for (size_t k = 0; k < members.size(); ++k) {
    const int64_t *own = loaded.data() + offsets[k];
    uint32_t size = graph.labels(members[k]);
    int64_t least = *std::min_element(own, own + size);
    for (uint32_t i = 0; i < size; ++i)
      targets[offsets[k] + i] = static_cast<float>(own[i] - least);
  }
  work += offsets.back();
}

void Forest::solve() {
  sums = targets;
  chosen.resize(members.size());
  for (size_t k = members.size(); k-- > 0;) {
    if (!parentArcs[k])
      continue;
    const Arc &arc = *parentArcs[k];
    uint32_t node = members[k], parent = members[parents[k]];
    const PairTable &table = graph.tables[arc.table];
    minPlus(message.data(), sums.data() + offsets[k],
            table.rounded[1 - arc.side].data(), graph.labels(node),
            padded(graph.labels(parent)));
    work += size_t(graph.labels(node)) * graph.labels(parent);
    addTo(sums.data() + offsets[parents[k]], message.data(),
          graph.labels(parent));
  }
  for (size_t k = 0; k < members.size(); ++k) {
    uint32_t size = graph.labels(members[k]);
    const float *own = sums.data() + offsets[k];
    const float *row =
        parentArcs[k] ? graph.roundedRow(*parentArcs[k], chosen[parents[k]])
                      : nullptr;
    float least = std::numeric_limits<float>::infinity();
    for (uint32_t i = 0; i < size; ++i) {
      float cost = row ? own[i] + row[i] : own[i];
      if (cost < least) {
        least = cost;
        chosen[k] = i;
      }
    }
  }
}

int64_t Forest::change(const State &state) const {
  int64_t sum = 0;
  for (size_t k = 0; k < members.size(); ++k) {
    uint32_t old = state.labels()[members[k]];
    sum += loaded[offsets[k] + chosen[k]] - loaded[offsets[k] + old];
    if (!parentArcs[k])
      continue;
    uint32_t oldParent = state.labels()[members[parents[k]]];
    sum += graph.exactRow(*parentArcs[k], chosen[parents[k]])[chosen[k]] -
           graph.exactRow(*parentArcs[k], oldParent)[old];
  }
  return sum;
}

double Forest::targetGain(const State &state) const {
  double sum = 0;
  for (size_t k = 0; k < members.size(); ++k) {
    uint32_t old = state.labels()[members[k]];
    sum += double(targets[offsets[k] + old]) -
           double(targets[offsets[k] + chosen[k]]);
    if (!parentArcs[k])
      continue;
    uint32_t oldParent = state.labels()[members[parents[k]]];
    sum +=
        double(graph.roundedRow(*parentArcs[k], oldParent)[old]) -
        double(graph.roundedRow(*parentArcs[k], chosen[parents[k]])[chosen[k]]);
  }
  return sum;
}

} // namespace shardc::solver::search
