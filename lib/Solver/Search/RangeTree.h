//===- RangeTree.h - Sums over ranges and their maximum -------*- C++ -*-===//

#ifndef SHARDC_SOLVER_SEARCH_RANGETREE_H
#define SHARDC_SOLVER_SEARCH_RANGETREE_H

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace shardc::solver::search {

/// Values that grow over ranges, and the largest of them all. A binary tree
/// without recursion: each node holds the maximum below it, with what was added
/// to its whole range, but not what was added further up.
class RangeTree {
public:
  explicit RangeTree(const std::vector<int64_t> &values) {
    while (leaves < values.size())
      leaves *= 2;
    maximum.assign(2 * leaves, std::numeric_limits<int64_t>::min() / 2);
    added.assign(leaves, 0);
    std::copy(values.begin(), values.end(), maximum.begin() + leaves);
    for (size_t node = leaves - 1; node > 0; --node)
      maximum[node] = std::max(maximum[2 * node], maximum[2 * node + 1]);
  }

  /// Adds to the values of [begin, end), which is not empty.
  void add(size_t begin, size_t end, int64_t value) {
    size_t left = begin + leaves, right = end + leaves;
    for (; left < right; left /= 2, right /= 2) {
      if (left & 1)
        addAt(left++, value);
      if (right & 1)
        addAt(--right, value);
    }
    update(begin + leaves);
    update(end - 1 + leaves);
  }

  int64_t max() const { return maximum[1]; }

  /// The first place of the maximum.
  size_t argmax() const {
    size_t node = 1;
    while (node < leaves)
      node =
          maximum[2 * node] >= maximum[2 * node + 1] ? 2 * node : 2 * node + 1;
    return node - leaves;
  }

  int64_t at(size_t index) const {
    size_t node = index + leaves;
    int64_t value = maximum[node];
    while (node /= 2)
      value += added[node];
    return value;
  }

private:
  void addAt(size_t node, int64_t value) {
    maximum[node] += value;
    if (node < leaves)
      added[node] += value;
  }

  void update(size_t node) {
    while (node /= 2)
      maximum[node] =
          std::max(maximum[2 * node], maximum[2 * node + 1]) + added[node];
  }

  size_t leaves = 1;
  std::vector<int64_t> maximum, added;
};

} // namespace shardc::solver::search

#endif // SHARDC_SOLVER_SEARCH_RANGETREE_H
