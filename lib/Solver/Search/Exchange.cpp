//===- Exchange.cpp - What one plan does better than another --------------===//

#include "Exchange.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc::solver::search {

std::vector<std::vector<uint32_t>>
differingParts(const Graph &graph, const Labels &a, const Labels &b) {
  std::vector<std::vector<uint32_t>> parts;
  std::vector<bool> seen(graph.size(), false);
  for (uint32_t seed = 0; seed < graph.size(); ++seed) {
    if (seen[seed] || a[seed] == b[seed])
      continue;
    seen[seed] = true;
    std::vector<uint32_t> part = {seed};
    for (size_t head = 0; head < part.size(); ++head)
      for (const Arc &arc : graph.arcsOf(part[head]))
        if (!seen[arc.other] && a[arc.other] != b[arc.other]) {
          seen[arc.other] = true;
          part.push_back(arc.other);
        }
    parts.push_back(std::move(part));
  }
  return parts;
}

static void changeAll(State &state, llvm::ArrayRef<uint32_t> nodes,
                      const Labels &labels) {
  for (uint32_t node : nodes)
    state.change(node, labels[node]);
}

bool takeBetterParts(const Graph &graph, State &state, const Labels &other) {
  Labels own = state.labels();
  std::vector<std::pair<int64_t, std::vector<uint32_t>>> better;
  for (std::vector<uint32_t> &part : differingParts(graph, own, other)) {
    int64_t cost = state.cost();
    changeAll(state, part, other);
    int64_t change = state.cost() - cost;
    changeAll(state, part, own);
    if (change < 0)
      better.emplace_back(change, std::move(part));
  }
  llvm::sort(better);
  bool any = false;
  for (const auto &[change, part] : better) {
    changeAll(state, part, other);
    if (state.fits())
      any = true;
    else
      changeAll(state, part, own);
  }
  return any;
}

} // namespace shardc::solver::search
