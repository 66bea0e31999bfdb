//===- State.h - An assignment that changes step by step ------*- C++ -*-===//

#ifndef SHARDC_SOLVER_SEARCH_STATE_H
#define SHARDC_SOLVER_SEARCH_STATE_H

#include "Graph.h"
#include "RangeTree.h"

namespace shardc::solver::search {

/// Labels with everything that a move needs to know, in exact integers, kept
/// up to date with each change.
class State {
public:
  State(const Graph &graph, Labels labels);

  const Labels &labels() const { return current; }
  /// Without the graph's constant.
  int64_t cost() const { return total; }
  /// Most memory in use beyond what is available; 0 and less: it fits.
  int64_t overflow() const { return rows ? memory.max() : 0; }
  bool fits() const { return overflow() <= 0; }
  const RangeTree &usage() const { return memory; }
  bool hasRows() const { return rows; }

  /// Cost of each label of `node` with its neighbours' labels as they are.
  const int64_t *costs(uint32_t node) const {
    return conditional.data() + graph.firstLabel[node];
  }

  /// Additions that changes have taken.
  uint64_t work = 0;

  void change(uint32_t node, uint32_t label);

  /// Only what memory is in use: to try out whether a move fits.
  void changeUsage(uint32_t node, uint32_t from, uint32_t to);
  /// Only labels and costs, once the memory has been changed.
  void changeLabel(uint32_t node, uint32_t label);

private:
  const Graph &graph;
  Labels current;
  std::vector<int64_t> conditional; // per label
  bool rows;
  RangeTree memory;
  int64_t total;
};

} // namespace shardc::solver::search

#endif // SHARDC_SOLVER_SEARCH_STATE_H
