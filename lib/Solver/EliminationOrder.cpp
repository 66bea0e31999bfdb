//===- EliminationOrder.cpp - Greedy orders of elimination ----------------===//
//
// Simulates elimination on the graph. Two greedy rules are tried; the order
// that splits no bucket wins, then that whose tables are smaller in total.
//
//===----------------------------------------------------------------------===//

#include "shardc/Solver/Elimination.h"
#include "llvm/ADT/STLExtras.h"
#include <set>

namespace shardc::solver {

/// Least fill looks at all pairs of neighbours: only where there are few.
static constexpr size_t kFillNodes = 4000;
static constexpr size_t kFillDegree = 64;

namespace {
enum class Rule { LeastCluster, LeastFill };

class Simulation {
public:
  Simulation(const Model &model, Rule rule, const EliminationLimits &limits)
      : rule(rule), limits(limits), neighbours(model.size()),
        scores(model.size()) {
    for (uint32_t v = 0; v < model.size(); ++v)
      sizes.push_back(model.costs(v).size());
    for (const Model::Pair &pair : model.pairs()) {
      neighbours[pair.first].insert(pair.second);
      neighbours[pair.second].insert(pair.first);
    }
  }

  void run() {
    for (uint32_t v = 0; v < sizes.size(); ++v)
      insert(v);
    while (!queue.empty()) {
      uint32_t v = queue.begin()->second;
      queue.erase(queue.begin());
      eliminate(v);
    }
  }

  std::vector<uint32_t> order;
  /// Whether buckets were split, and the sum over eliminated variables of their
  /// tables' entries.
  std::pair<bool, double> cost = {false, 0};

private:
  using Score = std::pair<double, double>;

  double clusterSize(uint32_t v) const {
    double size = sizes[v];
    for (uint32_t n : neighbours[v])
      size *= sizes[n];
    return size;
  }

  double fill(uint32_t v) const {
    const std::set<uint32_t> &around = neighbours[v];
    if (around.size() > kFillDegree)
      return double(around.size()) * around.size();
    double missing = 0;
    for (uint32_t a : around)
      for (uint32_t b : around)
        missing += a < b && !neighbours[a].count(b);
    return missing;
  }

  void insert(uint32_t v) {
    double cluster = clusterSize(v);
    scores[v] =
        rule == Rule::LeastFill ? Score(fill(v), cluster) : Score(cluster, 0);
    queue.insert({scores[v], v});
  }

  void eliminate(uint32_t v) {
    order.push_back(v);
    double cluster = clusterSize(v);
    bool isSplit = cluster > limits.bucketEntries ||
                   cluster > limits.messageEntries * sizes[v];
    cost.first |= isSplit;
    cost.second += cluster;
    std::set<uint32_t> around = std::move(neighbours[v]);
    std::set<uint32_t> affected(around);
    if (rule == Rule::LeastFill)
      for (uint32_t n : around)
        if (neighbours[n].size() <= kFillDegree)
          affected.insert(neighbours[n].begin(), neighbours[n].end());
    affected.erase(v);
    for (uint32_t n : affected)
      queue.erase({scores[n], n});
    for (uint32_t n : around)
      neighbours[n].erase(v);
    // A bucket beyond the limit is split, which joins fewer of its neighbours.
    if (!isSplit)
      for (uint32_t a : around)
        for (uint32_t b : around)
          if (a != b)
            neighbours[a].insert(b);
    for (uint32_t n : affected)
      insert(n);
  }

  Rule rule;
  const EliminationLimits &limits;
  std::vector<double> sizes;
  std::vector<std::set<uint32_t>> neighbours;
  std::vector<Score> scores;
  std::set<std::pair<Score, uint32_t>> queue;
};
} // namespace

std::vector<uint32_t> eliminationOrder(const Model &model,
                                       const EliminationLimits &limits) {
  Simulation cluster(model, Rule::LeastCluster, limits);
  cluster.run();
  if (model.size() > kFillNodes)
    return std::move(cluster.order);
  Simulation fill(model, Rule::LeastFill, limits);
  fill.run();
  return fill.cost < cluster.cost ? std::move(fill.order)
                                  : std::move(cluster.order);
}

} // namespace shardc::solver
