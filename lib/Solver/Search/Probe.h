//===- Probe.h - What a single label costs at least -----------*- C++ -*-===//
//
// A label is tried alone: with the node's others away, messages go around in
// its neighbourhood until the bound exceeds the best plan or rises no more.
// Finds labels that no better plan uses where one pass is not enough.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SOLVER_SEARCH_PROBE_H
#define SHARDC_SOLVER_SEARCH_PROBE_H

#include "ExactBound.h"

namespace shardc::solver::search {

class Probe {
public:
  /// Continues from where the prover has ended, in neighbourhoods of at most so
  /// many nodes.
  Probe(const Prover &prover, size_t mostNodes);

  /// Adds to `gone` the labels of `root` that no plan of at most `cost` uses.
  void run(uint32_t root, int64_t cost, std::vector<bool> &gone,
           const Deadline &stop);

  uint64_t work = 0;
  size_t tried = 0, excluded = 0; // labels

private:
  static constexpr uint32_t kOutside = ~0u;
  /// A node of the neighbourhood, the nodes around which keep their labels'
  /// costs: what it lends them is lent for good.
  struct Member {
    uint32_t node;
    std::vector<Int128> costs; // with messages from outside
    std::vector<const Arc *> earlier, later;
  };

  void chooseRegion(uint32_t root);
  Member makeMember(uint32_t node) const;
  /// The members' least costs after a pass forward and one back, in which
  /// `root` has only `label`.
  Int128 sweep(uint32_t root, uint32_t label);
  Int128 visit(const Member &member, bool forward, uint32_t from, uint32_t to);

  const Prover &prover;
  size_t mostNodes;
  ExactCosts costs; // whose messages change
  std::vector<uint32_t> region, position;
  std::vector<Member> members;
  std::vector<Int128> belief;
};

} // namespace shardc::solver::search

#endif // SHARDC_SOLVER_SEARCH_PROBE_H
