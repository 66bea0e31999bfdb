//===- OrderSearch.h - Local search for a faster order --------*- C++ -*-===//

#ifndef SHARDC_LIB_SCHEDULE_ORDERSEARCH_H
#define SHARDC_LIB_SCHEDULE_ORDERSEARCH_H

#include "BlockGraph.h"

namespace shardc {

/// Simulates the work of a block in any order, and looks for a faster one by
/// moving work about. The simulation is that of Schedule.h with all the memory
/// there is, but for a repeat: of it, one iteration runs whose weights are
/// there. Gathers that only outputs read are left out.
class OrderSearch {
public:
  explicit OrderSearch(const BlockGraph &graph);

  /// How long the block takes in an order of its work, each behind all that it
  /// depends on.
  Picoseconds lengthOf(llvm::ArrayRef<unsigned> order);
  /// An order that takes no longer. Does a fixed amount of work.
  std::vector<unsigned> improve(std::vector<unsigned> order);

private:
  /// When the gathers of weights are issued: before the step, or with the work
  /// before the first that reads them.
  enum class Gathers { AtOnce, Ahead };

  bool isIssuedByReader(unsigned node) const {
    return graph.isStep() && graph.nodes[node].isReady;
  }
  Picoseconds lengthOf(llvm::ArrayRef<unsigned> order, Gathers gathers);
  void reset();
  void issueFor(unsigned node, Picoseconds time);
  void start(unsigned node);
  void finish(unsigned node, Picoseconds end);
  Picoseconds leastLength() const;
  bool moveOne(std::vector<unsigned> &order, unsigned from,
               unsigned random) const;

  const BlockGraph &graph;
  bool hasGathers = false;
  std::vector<unsigned> missing;
  std::vector<Picoseconds> release, networkFree;
  /// By node: work has asked for it, or for a node that reads it.
  std::vector<bool> isIssued;
  Picoseconds now = 0, length = 0;
};

} // namespace shardc

#endif // SHARDC_LIB_SCHEDULE_ORDERSEARCH_H
