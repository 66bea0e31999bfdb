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
  return (pair.first == variable ? pair.table->costs : pair.table->byColumns())
      .data();
}

TreeDescent::TreeDescent(const Model &model) : model(model) {
  firstNeighbours.push_back(0);
  for (uint32_t variable = 0; variable < model.size(); ++variable) {
    for (uint32_t p : model.pairsOf(variable))
      neighbours.push_back({model.pairs()[p].otherThan(variable), p});
    firstNeighbours.push_back(uint32_t(neighbours.size()));
  }
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
    for (auto [other, p] : neighboursOf(variable))
      if (!inForest[other])
        frontier.push_back({other, int(position), p});
  };
  expand(0);
  while (tree.size() < size && !frontier.empty()) {
    std::swap(frontier[random() % frontier.size()], frontier.back());
    Member next = frontier.back();
    frontier.pop_back();
    unsigned inside = 0;
    for (auto [other, p] : neighboursOf(next.variable))
      inside += inForest[other];
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
  for (uint32_t variable : order) {
    llvm::SmallVector<unsigned, 8> joined;
    for (auto [other, p] : neighboursOf(variable))
      if (inForest[other])
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
      for (auto [other, p] : neighboursOf(forest[next].variable)) {
        if (!inForest[other] || seen[other])
          continue;
        seen[other] = true;
        forest.push_back({other, int(next), p});
      }
  }
  return forest;
}

/// Sums the costs of the labels of each of the forest's variables with its
/// pairs to variables outside.
void TreeDescent::sumOwnCosts(llvm::ArrayRef<Member> forest,
                              llvm::ArrayRef<Label> labels) {
  costs.clear();
  begins.assign(1, 0);
  for (const Member &member : forest) {
    llvm::append_range(costs, model.costs(member.variable));
    begins.push_back(costs.size());
  }
  for (Scaled &cost : costs)
    cost = std::min(cost, kPenalty);
  for (auto [position, member] : llvm::enumerate(forest)) {
    llvm::MutableArrayRef<Scaled> own = costsOf(position);
    for (auto [other, p] : neighboursOf(member.variable))
      if (!inForest[other])
        addCapped(own.data(),
                  tableFrom(model.pairs()[p], other) +
                      labels[other] * own.size(),
                  kPenalty, own.size());
  }
}

/// message[j] = min(message[j], own[i] + table[i][j] of every label i). Labels
/// that cost too much by themselves, which most do among fixed neighbours, are
/// not looked up.
static void lowerToLeast(llvm::MutableArrayRef<Scaled> message,
                         llvm::ArrayRef<Scaled> own, const Scaled *table) {
  size_t columns = message.size();
  auto lowerTo = [&](size_t label) {
    return minPlusMost(message.data(), table + label * columns, own[label],
                       columns);
  };
  Scaled most = lowerTo(llvm::min_element(own) - own.begin());
  for (size_t label = 0; label < own.size(); ++label)
    if (own[label] < most)
      most = lowerTo(label);
}

/// Sets the forest's labels to the best; true if that lowers the cost.
bool TreeDescent::solveForest(llvm::ArrayRef<Member> forest,
                              std::vector<Label> &labels) {
  sumOwnCosts(forest, labels);
  // The row of a member's pair that the label of its parent chooses.
  auto rowOf = [&](const Member &member, size_t size) {
    uint32_t parent = forest[member.parent].variable;
    return tableFrom(model.pairs()[member.pair], parent) +
           labels[parent] * size;
  };
  Scaled before = 0, after = 0;
  for (auto [position, member] : llvm::enumerate(forest)) {
    llvm::ArrayRef<Scaled> own = costsOf(position);
    Label label = labels[member.variable];
    before += own[label];
    if (member.parent >= 0)
      before += std::min(rowOf(member, own.size())[label], kPenalty);
  }
  // From the leaves up: what the subtree costs by the label of the parent.
  std::vector<Scaled> message;
  for (size_t i = forest.size(); i-- > 0;) {
    const Member &member = forest[i];
    llvm::ArrayRef<Scaled> own = costsOf(i);
    Scaled least = *llvm::min_element(own);
    if (member.parent < 0) {
      after += least;
      continue;
    }
    llvm::MutableArrayRef<Scaled> parent = costsOf(member.parent);
    message.assign(parent.size(), least + kPenalty);
    lowerToLeast(message, own,
                 tableFrom(model.pairs()[member.pair], member.variable));
    addCapped(parent.data(), message.data(), least + kPenalty, parent.size());
  }
  if (after >= before)
    return false;
  for (auto [position, member] : llvm::enumerate(forest)) {
    llvm::MutableArrayRef<Scaled> own = costsOf(position);
    if (member.parent >= 0)
      addCapped(own.data(), rowOf(member, own.size()), kPenalty, own.size());
    labels[member.variable] = llvm::min_element(own) - own.begin();
  }
  return true;
}

} // namespace shardc::solver
