//===- Network.h - The working copy that the solver contracts -*- C++ -*-===//
//
// A Problem without its forbidden labels and parallel edges, which the steps
// of contraction shrink in place. Costs are nonnegative, each step that takes
// a node out is recorded, and recover() turns labels of what is left into an
// assignment of the problem.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SOLVER_NETWORK_H
#define SHARDC_SOLVER_NETWORK_H

#include "shardc/Solver/Problem.h"
#include "llvm/ADT/SmallVector.h"
#include <algorithm>
#include <memory>

namespace shardc::solver {

using LinkId = uint32_t;

/// Memory of one label over rows: sorted, disjoint, positive.
using UsageList = std::vector<Usage>;

/// A variable that is still to be decided. Labels are positions in `labels`.
struct Node {
  bool alive = true;
  /// Finite and not negative.
  std::vector<Cost> costs;
  /// One list per label, or empty if no label uses memory that can bind.
  std::vector<UsageList> usages;
  /// The problem's label of each label, ascending.
  std::vector<Label> labels;
  /// Live links only.
  llvm::SmallVector<LinkId, 4> links;

  size_t size() const { return labels.size(); }
};

/// Memory of pairs of labels over rows [begin, end), row-major.
struct PairUsage {
  uint32_t begin = 0, end = 0;
  std::vector<int64_t> bytes;
};

/// At most one link joins two nodes.
struct Link {
  bool alive = true;
  Variable first = 0, second = 0;
  /// Not negative; kForbidden where the pair is not allowed. Never null.
  std::shared_ptr<const Table> table;
  std::vector<PairUsage> usages;

  Variable other(Variable node) const { return first == node ? second : first; }
};

/// How to choose the label of a node that was taken out, from the labels of
/// its at most two neighbours of that time.
struct Recovery {
  Variable node = 0;
  llvm::SmallVector<Variable, 2> parents;
  /// The problem's labels of each parent at that time, ascending.
  llvm::SmallVector<std::vector<Label>, 2> parentLabels;
  /// The problem's label of `node` for each combination, row-major.
  std::vector<Label> best;
};

struct Network {
  std::vector<Node> nodes;
  std::vector<Link> links;
  /// Cost of what was taken out.
  Cost constant = 0;
  /// Capacity left for the nodes at each memory row. Rows are those points of
  /// the problem that can bind; none if there is no capacity.
  std::vector<int64_t> slack;
  /// The problem's point of each row.
  std::vector<uint32_t> rowPoints;
  /// Some node has no label left, or a row is over capacity whatever is chosen.
  bool noLabel = false, overCapacity = false;
  std::vector<Recovery> recoveries;

  bool infeasible() const { return noLabel || overCapacity; }
  bool usesMemory(Variable node) const;
};

/// Costs are made nonnegative, forbidden labels go, parallel edges are added.
Network buildNetwork(const Problem &problem);

/// A copy of `network` in which memory does not matter.
Network withoutMemory(const Network &network);

/// A row-major matrix of so many rows and columns, by columns. In squares,
/// which stay in the cache.
template <typename T>
std::vector<T> transposed(const std::vector<T> &values, size_t rows,
                          size_t columns) {
  constexpr size_t kSide = 16;
  std::vector<T> result(values.size());
  for (size_t row = 0; row < rows; row += kSide)
    for (size_t column = 0; column < columns; column += kSide) {
      size_t rowEnd = std::min(row + kSide, rows);
      size_t columnEnd = std::min(column + kSide, columns);
      for (size_t i = row; i < rowEnd; ++i)
        for (size_t j = column; j < columnEnd; ++j)
          result[j * rows + i] = values[i * columns + j];
    }
  return result;
}

/// Values of a link's pairs with the labels of `node` as rows.
template <typename T>
std::vector<T> oriented(const Link &link, Variable node,
                        const std::vector<T> &values) {
  return link.first == node
             ? values
             : transposed(values, link.table->rows, link.table->columns);
}

/// The cost of one pair of a link.
Cost pairCost(const Link &link, Variable node, Label own, Label others);

/// The link between two nodes, or null.
Link *findLink(Network &network, Variable a, Variable b);

/// Adds a link, to the one that is there if there is one. The table has
/// `first`'s labels as rows.
void addLink(Network &network, Variable first, Variable second,
             std::shared_ptr<const Table> table,
             std::vector<PairUsage> usages = {});

/// Takes a link out of its nodes' lists.
void removeLink(Network &network, LinkId link);

/// Keeps the labels of `node` for which `keep` is true.
void filterLabels(Network &network, Variable node,
                  const std::vector<bool> &keep);

/// Fixes `node`, which has one label, and takes it out.
void fixNode(Network &network, Variable node);

/// Sum of two usage lists.
UsageList addUsages(const UsageList &a, const UsageList &b);

/// Sorted, disjoint and positive form of any list of usages.
UsageList canonicalUsages(std::vector<Usage> usages);

/// The assignment of the problem for labels of the nodes (of those alive).
std::vector<Label> recover(const Network &network,
                           llvm::ArrayRef<Label> nodeLabels);

/// Labels of the live nodes that an assignment of the problem uses, or nothing
/// if one of them was removed.
std::optional<std::vector<Label>> project(const Network &network,
                                          llvm::ArrayRef<Label> assignment);

} // namespace shardc::solver

#endif // SHARDC_SOLVER_NETWORK_H
