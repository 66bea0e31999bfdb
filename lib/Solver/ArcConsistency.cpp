//===- ArcConsistency.cpp - Labels without an allowed partner -------------===//

#include "shardc/Solver/Arithmetic.h"
#include "shardc/Solver/Contract.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc::solver {

/// Which labels of `node` have an allowed partner in this link.
static std::vector<bool> supportedBy(const Link &link, Variable node) {
  const Table &table = *link.table;
  bool isRow = link.first == node;
  std::vector<bool> result(isRow ? table.rows : table.columns, false);
  size_t missing = result.size();
  for (Label i = 0; i < table.rows && missing > 0; ++i)
    for (Label j = 0; j < table.columns; ++j) {
      if (isForbidden(table.at(i, j)) || result[isRow ? i : j])
        continue;
      result[isRow ? i : j] = true;
      --missing;
      if (isRow || missing == 0)
        break;
    }
  return result;
}

bool makeConsistent(Network &network, Variable node) {
  std::vector<bool> keep(network.nodes[node].size(), true);
  for (LinkId id : network.nodes[node].links)
    for (auto [label, isSupported] :
         llvm::enumerate(supportedBy(network.links[id], node)))
      keep[label] = keep[label] && isSupported;
  if (llvm::all_of(keep, [](bool k) { return k; }))
    return false;
  filterLabels(network, node, keep);
  return true;
}

} // namespace shardc::solver
