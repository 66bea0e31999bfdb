//===- Rows.cpp - Keeping only the memory rows that can bind --------------===//

#include "shardc/Solver/Arithmetic.h"
#include "shardc/Solver/Contract.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc::solver {

//===----------------------------------------------------------------------===//
// Usage of every label
//===----------------------------------------------------------------------===//

/// Combines two lists row by row; `op(0, 0)` must be 0.
template <typename Op>
static UsageList combine(const UsageList &a, const UsageList &b, Op op) {
  UsageList result;
  size_t i = 0, j = 0;
  uint32_t row = 0;
  while (i < a.size() || j < b.size()) {
    auto valueAt = [&](const UsageList &list, size_t k, uint32_t &next) {
      if (k == list.size())
        return int64_t(0);
      if (row < list[k].begin) {
        next = std::min(next, list[k].begin);
        return int64_t(0);
      }
      next = std::min(next, list[k].end);
      return list[k].bytes;
    };
    uint32_t next = std::numeric_limits<uint32_t>::max();
    int64_t left = valueAt(a, i, next), right = valueAt(b, j, next);
    int64_t bytes = op(left, right);
    if (bytes != 0) {
      if (!result.empty() && result.back().end == row &&
          result.back().bytes == bytes)
        result.back().end = next;
      else
        result.push_back({row, next, bytes});
    }
    row = next;
    if (i < a.size() && a[i].end <= row)
      ++i;
    if (j < b.size() && b[j].end <= row)
      ++j;
  }
  return result;
}

static UsageList leastOf(const std::vector<UsageList> &lists) {
  UsageList least = lists.front();
  for (const UsageList &list : llvm::drop_begin(lists)) {
    if (least.empty())
      break;
    least = combine(least, list,
                    [](int64_t a, int64_t b) { return std::min(a, b); });
  }
  return least;
}

static UsageList mostOf(const std::vector<UsageList> &lists) {
  UsageList most;
  for (const UsageList &list : lists)
    most = combine(most, list,
                   [](int64_t a, int64_t b) { return std::max(a, b); });
  return most;
}

namespace {
/// Sums of intervals by their changes at each row.
class Profile {
public:
  explicit Profile(size_t rows) : change(rows + 1, 0) {}
  void add(uint32_t begin, uint32_t end, int64_t bytes) {
    change[begin] += bytes;
    change[end] -= bytes;
  }
  void add(const UsageList &list) {
    for (const Usage &usage : list)
      add(usage.begin, usage.end, usage.bytes);
  }
  std::vector<int64_t> sums() const {
    std::vector<int64_t> result(change.size() - 1);
    int64_t sum = 0;
    for (size_t row = 0; row < result.size(); ++row)
      result[row] = sum += change[row];
    return result;
  }

private:
  std::vector<int64_t> change;
};
} // namespace

static void subtractCommon(Node &node, Profile &common) {
  if (node.usages.empty())
    return;
  UsageList least = leastOf(node.usages);
  if (!least.empty()) {
    common.add(least);
    for (UsageList &list : node.usages)
      list = combine(list, least, [](int64_t a, int64_t b) { return a - b; });
  }
  if (llvm::all_of(node.usages, [](const UsageList &l) { return l.empty(); }))
    node.usages.clear();
}

/// Moves to the labels of `node` what all their allowed pairs use.
static void moveCommon(Network &network, const Link &link, Variable node,
                       PairUsage &usage) {
  Node &data = network.nodes[node];
  size_t others = network.nodes[link.other(node)].size();
  size_t columns = link.table->columns;
  bool isFirst = link.first == node;
  for (Label own = 0; own < data.size(); ++own) {
    auto at = [&](Label k) {
      return isFirst ? own * columns + k : k * columns + own;
    };
    int64_t least = std::numeric_limits<int64_t>::max();
    for (Label k = 0; k < others; ++k)
      if (!isForbidden(link.table->costs[at(k)]))
        least = std::min(least, usage.bytes[at(k)]);
    if (least == 0 || least == std::numeric_limits<int64_t>::max())
      continue;
    for (Label k = 0; k < others; ++k)
      if (!isForbidden(link.table->costs[at(k)]))
        usage.bytes[at(k)] -= least;
    data.usages.resize(data.size());
    data.usages[own] =
        addUsages(data.usages[own], {{usage.begin, usage.end, least}});
  }
}

/// Leaves to pairs only what depends on both ends.
static void reducePairUsages(Network &network, Link &link) {
  for (PairUsage &usage : link.usages) {
    for (auto [cost, bytes] : llvm::zip_equal(link.table->costs, usage.bytes))
      if (isForbidden(cost))
        bytes = 0;
    moveCommon(network, link, link.first, usage);
    moveCommon(network, link, link.second, usage);
  }
  llvm::erase_if(link.usages, [](const PairUsage &usage) {
    return llvm::all_of(usage.bytes, [](int64_t b) { return b == 0; });
  });
}

//===----------------------------------------------------------------------===//
// Rows that can bind
//===----------------------------------------------------------------------===//

namespace {
/// For each boundary between rows: may any label use more, or less, after it.
struct Boundaries {
  std::vector<bool> rises, falls;

  explicit Boundaries(size_t rows)
      : rises(rows + 1, false), falls(rows + 1, false) {}

  void add(const UsageList &list) {
    for (size_t i = 0; i < list.size(); ++i) {
      bool follows = i > 0 && list[i - 1].end == list[i].begin;
      int64_t before = follows ? list[i - 1].bytes : 0;
      rises[list[i].begin] = rises[list[i].begin] || list[i].bytes > before;
      falls[list[i].begin] = falls[list[i].begin] || list[i].bytes < before;
      if (i + 1 == list.size() || list[i + 1].begin != list[i].end)
        falls[list[i].end] = true;
    }
  }
};
} // namespace

/// Rows that matter, ascending: those over capacity at the most that can be
/// used, less those where a kept neighbour is at least as tight.
static std::vector<uint32_t> bindingRows(const Network &network,
                                         const std::vector<int64_t> &most,
                                         const Boundaries &boundaries) {
  std::vector<uint32_t> kept;
  bool rises = false, falls = false; // since the last kept row
  for (uint32_t row = 0; row < network.slack.size(); ++row) {
    rises |= boundaries.rises[row];
    falls |= boundaries.falls[row];
    if (most[row] <= network.slack[row])
      continue;
    if (!kept.empty()) {
      int64_t last = network.slack[kept.back()], own = network.slack[row];
      if (!rises && own >= last)
        continue;
      if (!falls && last >= own)
        kept.pop_back();
    }
    // A popped row's predecessor may now be comparable, but seldom is.
    kept.push_back(row);
    rises = falls = false;
  }
  return kept;
}

static void renumber(UsageList &list, const std::vector<uint32_t> &rank) {
  std::vector<Usage> result;
  for (Usage usage : list) {
    usage.begin = rank[usage.begin];
    usage.end = rank[usage.end];
    if (usage.begin == usage.end)
      continue;
    if (!result.empty() && result.back().end == usage.begin &&
        result.back().bytes == usage.bytes)
      result.back().end = usage.end;
    else
      result.push_back(usage);
  }
  list = std::move(result);
}

static void keepRows(Network &network, const std::vector<uint32_t> &kept) {
  // rank[r]: kept rows before row r.
  std::vector<uint32_t> rank(network.slack.size() + 1, 0);
  for (uint32_t row : kept)
    rank[row + 1] = 1;
  for (size_t row = 1; row < rank.size(); ++row)
    rank[row] += rank[row - 1];
  for (Node &node : network.nodes) {
    for (UsageList &list : node.usages)
      renumber(list, rank);
    if (llvm::all_of(node.usages, [](const UsageList &l) { return l.empty(); }))
      node.usages.clear();
  }
  for (Link &link : network.links) {
    for (PairUsage &usage : link.usages) {
      usage.begin = rank[usage.begin];
      usage.end = rank[usage.end];
    }
    llvm::erase_if(link.usages,
                   [](const PairUsage &u) { return u.begin == u.end; });
  }
  for (auto [index, row] : llvm::enumerate(kept)) {
    network.slack[index] = network.slack[row];
    network.rowPoints[index] = network.rowPoints[row];
  }
  network.slack.resize(kept.size());
  network.rowPoints.resize(kept.size());
}

void compressRows(Network &network) {
  size_t rows = network.slack.size();
  if (rows == 0 || network.infeasible())
    return;
  for (Link &link : network.links)
    if (link.alive)
      reducePairUsages(network, link);
  Profile common(rows);
  for (Node &node : network.nodes)
    if (node.alive)
      subtractCommon(node, common);
  for (auto [slack, used] : llvm::zip_equal(network.slack, common.sums())) {
    slack -= used;
    network.overCapacity |= slack < 0;
  }
  if (network.overCapacity)
    return;

  Profile most(rows);
  Boundaries boundaries(rows);
  for (const Node &node : network.nodes) {
    if (!node.alive || node.usages.empty())
      continue;
    most.add(mostOf(node.usages));
    for (const UsageList &list : node.usages)
      boundaries.add(list);
  }
  for (const Link &link : network.links)
    for (const PairUsage &usage : link.usages) {
      int64_t bytes = *llvm::max_element(usage.bytes);
      most.add(usage.begin, usage.end, bytes);
      boundaries.add({{usage.begin, usage.end, bytes}});
    }
  keepRows(network, bindingRows(network, most.sums(), boundaries));
}

//===----------------------------------------------------------------------===//
// Labels that do not fit
//===----------------------------------------------------------------------===//

namespace {
/// Least slack over any interval of rows, by a table of powers of two.
class RangeMinimum {
public:
  explicit RangeMinimum(const std::vector<int64_t> &values) : levels{values} {
    for (size_t width = 1; 2 * width <= values.size(); width *= 2) {
      const std::vector<int64_t> &last = levels.back();
      std::vector<int64_t> next(values.size() - 2 * width + 1);
      for (size_t i = 0; i < next.size(); ++i)
        next[i] = std::min(last[i], last[i + width]);
      levels.push_back(std::move(next));
    }
  }
  /// Over [begin, end), not empty.
  int64_t operator()(uint32_t begin, uint32_t end) const {
    unsigned level = 31 - __builtin_clz(end - begin);
    return std::min(levels[level][begin],
                    levels[level][end - (uint32_t(1) << level)]);
  }

private:
  std::vector<std::vector<int64_t>> levels;
};
} // namespace

/// Forbids pairs whose own memory does not fit; true if any was allowed.
static bool forbidOversized(Link &link, const RangeMinimum &slack) {
  std::shared_ptr<Table> table;
  for (const PairUsage &usage : link.usages) {
    int64_t room = slack(usage.begin, usage.end);
    for (size_t i = 0; i < usage.bytes.size(); ++i) {
      if (usage.bytes[i] <= room || isForbidden(link.table->costs[i]))
        continue;
      if (!table)
        table = std::make_shared<Table>(*link.table);
      table->costs[i] = kForbidden;
    }
  }
  if (!table)
    return false;
  link.table = std::move(table);
  return true;
}

bool removeOversized(Network &network, std::vector<bool> &changed) {
  if (network.slack.empty() || network.infeasible())
    return false;
  RangeMinimum slack(network.slack);
  bool any = false;
  for (Variable v = 0; v < network.nodes.size(); ++v) {
    const Node &node = network.nodes[v];
    if (!node.alive || node.usages.empty())
      continue;
    std::vector<bool> keep;
    for (const UsageList &list : node.usages)
      keep.push_back(llvm::all_of(list, [&](const Usage &usage) {
        return usage.bytes <= slack(usage.begin, usage.end);
      }));
    if (llvm::all_of(keep, [](bool k) { return k; }))
      continue;
    filterLabels(network, v, keep);
    changed[v] = any = true;
    for (LinkId link : node.links)
      changed[network.links[link].other(v)] = true;
  }
  for (Link &link : network.links)
    if (link.alive && forbidOversized(link, slack))
      changed[link.first] = changed[link.second] = any = true;
  return any;
}

} // namespace shardc::solver
