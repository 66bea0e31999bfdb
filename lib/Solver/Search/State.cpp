//===- State.cpp - An assignment that changes step by step ----------------===//

#include "State.h"

namespace shardc::solver::search {

State::State(const Graph &graph, Labels labels)
    : graph(graph), current(std::move(labels)), conditional(graph.costs),
      rows(!graph.slack.empty()), memory(search::overflow(graph, current)),
      total(graphCost(graph, current)) {
  for (uint32_t u = 0; u < graph.size(); ++u)
    for (const Arc &arc : graph.arcsOf(u)) {
      const int64_t *column = graph.exactColumn(arc, current[arc.other]);
      for (uint32_t i = 0; i < graph.labels(u); ++i)
        conditional[graph.firstLabel[u] + i] += column[i];
    }
}

void State::changeUsage(uint32_t node, uint32_t from, uint32_t to) {
  uint32_t first = graph.firstLabel[node];
  llvm::ArrayRef<Usage> before = graph.usagesOf(first + from),
                        after = graph.usagesOf(first + to);
  work += 30 * (before.size() + after.size());
  // Most labels of a node use memory at the same time.
  if (before.size() == 1 && after.size() == 1 &&
      before[0].begin == after[0].begin && before[0].end == after[0].end) {
    if (before[0].bytes != after[0].bytes)
      memory.add(before[0].begin, before[0].end,
                 after[0].bytes - before[0].bytes);
    return;
  }
  for (const Usage &usage : before)
    memory.add(usage.begin, usage.end, -usage.bytes);
  for (const Usage &usage : after)
    memory.add(usage.begin, usage.end, usage.bytes);
}

void State::changeLabel(uint32_t node, uint32_t label) {
  uint32_t old = current[node];
  const int64_t *own = costs(node);
  total += own[label] - own[old];
  current[node] = label;
  for (const Arc &arc : graph.arcsOf(node)) {
    const int64_t *from = graph.exactRow(arc, old);
    const int64_t *to = graph.exactRow(arc, label);
    int64_t *theirs = conditional.data() + graph.firstLabel[arc.other];
    uint32_t size = graph.labels(arc.other);
    work += size;
    for (uint32_t k = 0; k < size; ++k)
      theirs[k] += to[k] - from[k];
  }
}

void State::change(uint32_t node, uint32_t label) {
  if (current[node] == label)
    return;
  changeUsage(node, current[node], label);
  changeLabel(node, label);
}

} // namespace shardc::solver::search
