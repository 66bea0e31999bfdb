//===- TreeDescent.cpp - Better labels, tree by tree ----------------------===//

#include "TreeDescent.h"
#include "llvm/ADT/IntEqClasses.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

namespace shardc::solver {

/// Forests in all, and those in a row that change nothing before it ends.
static constexpr unsigned kMaxForests = 40, kPatience = 4;
/// Variables of a small tree, at most.
static constexpr size_t kMaxTree = 12;
/// Stands for a forbidden pair.
static constexpr Scaled kPenalty = Scaled(1) << 52;

/// The table of a pair with the labels of `variable` as rows.
static const Scaled *tableFrom(const Model::Pair &pair, uint32_t variable) {
  return (pair.first == variable ? pair.table->costs : pair.table->transposed)
      .data();
}

void TreeDescent::improve(std::vector<Label> &labels) {
  unsigned idle = 0;
  for (unsigned i = 0; i < kMaxForests && idle < kPatience; ++i)
    idle = solveForest(drawForest(), labels) ? 0 : idle + 1;
}

void TreeDescent::improveLocally(
    std::vector<Label> &labels, unsigned trees, double maxEntries,
    llvm::function_ref<bool(llvm::ArrayRef<Label>)> accept) {
  for (unsigned i = 0; i < trees && maxEntries > 0; ++i) {
    std::vector<Label> changed = labels;
    std::vector<Member> tree = drawTree();
    for (const Member &member : tree)
      if (member.parent >= 0)
        maxEntries -= model.pairs()[member.pair].table->costs.size();
    if (solveForest(tree, changed) && accept(changed))
      labels = std::move(changed);
  }
}

/// Grows from a random variable: neighbours join that have one neighbour in it.
std::vector<TreeDescent::Member> TreeDescent::drawTree() {
  size_t size = 1 + random() % kMaxTree;
  inForest.assign(model.size(), false);
  std::vector<Member> tree = {{uint32_t(random() % model.size())}};
  inForest[tree[0].variable] = true;
  std::vector<Member> frontier;
  auto expand = [&](unsigned position) {
    uint32_t variable = tree[position].variable;
    for (uint32_t p : model.pairsOf(variable))
      if (uint32_t other = model.pairs()[p].otherThan(variable);
          !inForest[other])
        frontier.push_back({other, int(position), p});
  };
  expand(0);
  while (tree.size() < size && !frontier.empty()) {
    std::swap(frontier[random() % frontier.size()], frontier.back());
    Member next = frontier.back();
    frontier.pop_back();
    unsigned inside = 0;
    for (uint32_t p : model.pairsOf(next.variable))
      inside += inForest[model.pairs()[p].otherThan(next.variable)];
    if (inForest[next.variable] || inside > 1)
      continue;
    inForest[next.variable] = true;
    tree.push_back(next);
    expand(tree.size() - 1);
  }
  return tree;
}

/// Variables join in random order unless they would close a cycle.
std::vector<TreeDescent::Member> TreeDescent::drawForest() {
  std::vector<uint32_t> order(model.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  inForest.assign(model.size(), false);
  llvm::IntEqClasses trees(model.size());
  auto neighbourOf = [&](uint32_t variable, uint32_t p) {
    return model.pairs()[p].otherThan(variable);
  };
  for (uint32_t variable : order) {
    llvm::SmallVector<unsigned, 8> joined;
    for (uint32_t p : model.pairsOf(variable))
      if (uint32_t other = neighbourOf(variable, p); inForest[other])
        joined.push_back(trees.findLeader(other));
    llvm::sort(joined);
    if (std::adjacent_find(joined.begin(), joined.end()) != joined.end())
      continue;
    inForest[variable] = true;
    for (unsigned tree : joined)
      trees.join(tree, variable);
  }
  // Depth first from the first of each tree.
  std::vector<Member> forest;
  std::vector<bool> seen(model.size(), false);
  for (uint32_t root : order) {
    if (!inForest[root] || seen[root])
      continue;
    size_t next = forest.size();
    forest.push_back({root});
    seen[root] = true;
    for (; next < forest.size(); ++next)
      for (uint32_t p : model.pairsOf(forest[next].variable)) {
        uint32_t other = neighbourOf(forest[next].variable, p);
        if (!inForest[other] || seen[other])
          continue;
        seen[other] = true;
        forest.push_back({other, int(next), p});
      }
  }
  return forest;
}

/// Costs of a variable's labels with its pairs to variables outside the forest.
std::vector<Scaled> TreeDescent::ownCosts(uint32_t variable,
                                          llvm::ArrayRef<Label> labels) const {
  std::vector<Scaled> costs(model.costs(variable).begin(),
                            model.costs(variable).end());
  for (Scaled &cost : costs)
    cost = std::min(cost, kPenalty);
  for (uint32_t p : model.pairsOf(variable)) {
    const Model::Pair &pair = model.pairs()[p];
    uint32_t other = pair.otherThan(variable);
    if (inForest[other])
      continue;
    const Scaled *row = tableFrom(pair, other) + labels[other] * costs.size();
    for (auto [label, cost] : llvm::enumerate(costs))
      cost += std::min(row[label], kPenalty);
  }
  return costs;
}

/// Sets the forest's labels to the best; true if that lowers the cost.
bool TreeDescent::solveForest(llvm::ArrayRef<Member> forest,
                              std::vector<Label> &labels) {
  std::vector<std::vector<Scaled>> costs;
  for (const Member &member : forest)
    costs.push_back(ownCosts(member.variable, labels));
  Scaled before = 0, after = 0;
  for (auto [member, own] : llvm::zip_equal(forest, costs)) {
    before += own[labels[member.variable]];
    if (member.parent < 0)
      continue;
    uint32_t parent = forest[member.parent].variable;
    before += std::min(
        tableFrom(
            model.pairs()[member.pair],
            parent)[labels[parent] * own.size() + labels[member.variable]],
        kPenalty);
  }
  // From the leaves up: what the subtree costs by the label of the parent.
  std::vector<Scaled> offsets, message;
  for (size_t i = forest.size(); i-- > 0;) {
    const Member &member = forest[i];
    Scaled least = *llvm::min_element(costs[i]);
    if (member.parent < 0) {
      after += least;
      continue;
    }
    std::vector<Scaled> &parent = costs[member.parent];
    offsets.clear();
    for (Scaled cost : costs[i])
      offsets.push_back(-cost);
    message.resize(parent.size());
    minOverRows(message.data(),
                tableFrom(model.pairs()[member.pair], member.variable),
                offsets.data(), offsets.size(), message.size());
    for (auto [sum, part] : llvm::zip_equal(parent, message))
      sum += std::min(part, least + kPenalty);
  }
  if (after >= before)
    return false;
  for (auto [member, own] : llvm::zip_equal(forest, costs)) {
    if (member.parent >= 0) {
      uint32_t parent = forest[member.parent].variable;
      const Scaled *row = tableFrom(model.pairs()[member.pair], parent) +
                          labels[parent] * own.size();
      for (auto [label, cost] : llvm::enumerate(own))
        cost += std::min(row[label], kPenalty);
    }
    labels[member.variable] = llvm::min_element(own) - own.begin();
  }
  return true;
}

} // namespace shardc::solver
