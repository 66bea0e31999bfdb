//===- ArcConsistency.cpp - Labels without an allowed partner -------------===//

#include "shardc/Solver/Arithmetic.h"
#include "shardc/Solver/Contract.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc::solver {

bool makeConsistent(Network &network, Variable node) {
  const Node &data = network.nodes[node];
  std::vector<bool> keep(data.size(), true);
  for (LinkId id : data.links) {
    const Link &link = network.links[id];
    std::vector<bool> supported(data.size(), false);
    const Table &table = *link.table;
    for (Label i = 0; i < table.rows; ++i)
      for (Label j = 0; j < table.columns; ++j)
        if (!isForbidden(table.at(i, j)))
          supported[link.first == node ? i : j] = true;
    for (size_t label = 0; label < keep.size(); ++label)
      keep[label] = keep[label] && supported[label];
  }
  if (llvm::all_of(keep, [](bool k) { return k; }))
    return false;
  filterLabels(network, node, keep);
  return true;
}

} // namespace shardc::solver
