//===- StateSearch.cpp - Exact search with costs to go --------------------===//

#include "shardc/Solver/StateSearch.h"
#include "RowPlan.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

namespace shardc::solver {

/// A state is compared with this many others of its frontier at most.
static constexpr size_t kMaxComparisons = 400;

/// Before dominance is looked for, this many times the width is kept.
static constexpr size_t kWidthBeforeDominance = 8;

/// Copying and comparing one label of a frontier, in additions.
static constexpr uint64_t kFrontierWork = 8;

namespace {
/// States after one variable, as columns.
struct Layer {
  std::vector<uint32_t> frontier; // variables, ascending
  size_t numColumns = 0, numGuides = 0;
  std::vector<Label> labels;     // of the frontier, per state
  std::vector<int64_t> usage;    // columns of the row plan, per state
  std::vector<Scaled> room;      // to the limit of each guide, per state
  std::vector<Scaled> leastRoom; // of all guides
  std::vector<Cost> cost;        // true cost of what is assigned
  std::vector<uint32_t> parent;  // position in the layer before
  std::vector<Label> own;        // of the variable assigned last

  size_t size() const { return parent.size(); }
  const Label *labelsOf(size_t state) const {
    return labels.data() + state * frontier.size();
  }
  const int64_t *usageOf(size_t state) const {
    return usage.data() + state * numColumns;
  }
  const Scaled *roomOf(size_t state) const {
    return room.data() + state * numGuides;
  }
  /// Keeps the given states, ascending.
  void select(llvm::ArrayRef<uint32_t> kept) {
    selectPart(labels, frontier.size(), kept);
    selectPart(usage, numColumns, kept);
    selectPart(room, numGuides, kept);
    selectPart(leastRoom, 1, kept);
    selectPart(cost, 1, kept);
    selectPart(parent, 1, kept);
    selectPart(own, 1, kept);
  }

private:
  template <typename T>
  static void selectPart(std::vector<T> &values, size_t width,
                         llvm::ArrayRef<uint32_t> kept) {
    for (auto [to, from] : llvm::enumerate(kept))
      std::copy_n(values.begin() + from * width, width,
                  values.begin() + to * width);
    values.resize(kept.size() * width);
  }
};

/// The part of a layer that is kept to read back the labels.
struct Trace {
  std::vector<uint32_t> parent;
  std::vector<Label> own;
};

/// A variable may come once its separator is assigned. Depth first through the
/// elimination tree, small subtrees first, keeps frontiers small. Split buckets
/// make no tree: then the order is the reverse of elimination.
std::vector<uint32_t> planOrder(const Elimination &elimination) {
  llvm::ArrayRef<uint32_t> eliminated = elimination.order();
  if (!elimination.isExact())
    return {eliminated.rbegin(), eliminated.rend()};
  std::vector<std::vector<uint32_t>> children(eliminated.size());
  std::vector<size_t> subtree(eliminated.size(), 1);
  std::vector<uint32_t> stack;
  for (uint32_t v : eliminated) {
    // All children were eliminated before.
    llvm::sort(children[v], [&](uint32_t a, uint32_t b) {
      return std::pair(subtree[a], a) > std::pair(subtree[b], b);
    });
    llvm::ArrayRef<uint32_t> separator = elimination.separator(v);
    if (separator.empty()) {
      stack.push_back(v);
      continue;
    }
    uint32_t parent = *std::min_element(
        separator.begin(), separator.end(), [&](uint32_t a, uint32_t b) {
          return elimination.positionOf(a) < elimination.positionOf(b);
        });
    children[parent].push_back(v);
    subtree[parent] += subtree[v];
  }
  std::vector<uint32_t> result;
  while (!stack.empty()) {
    uint32_t v = stack.back();
    stack.pop_back();
    result.push_back(v);
    llvm::append_range(stack, children[v]);
  }
  return result;
}

/// After a step the rest depends on assigned variables that are in the
/// separator of a variable still to come.
std::vector<std::vector<uint32_t>>
planFrontiers(const Elimination &elimination, llvm::ArrayRef<uint32_t> order) {
  std::vector<size_t> lastUse(order.size(), 0);
  for (auto [step, variable] : llvm::enumerate(order))
    for (uint32_t v : elimination.separator(variable))
      lastUse[v] = step;
  std::vector<std::vector<uint32_t>> result;
  std::vector<uint32_t> current;
  for (auto [step, variable] : llvm::enumerate(order)) {
    current.push_back(variable);
    llvm::erase_if(current,
                   [&, now = step](uint32_t v) { return lastUse[v] <= now; });
    result.push_back(current);
    llvm::sort(result.back());
  }
  return result;
}

class Search {
public:
  Search(llvm::ArrayRef<const Guide *> guides, llvm::ArrayRef<uint32_t> rows,
         llvm::ArrayRef<Scaled> gaps, const StateLimits &limits)
      : guides(guides), model(guides[0]->model),
        elimination(guides[0]->elimination), gaps(gaps), limits(limits),
        order(planOrder(elimination)),
        frontiers(planFrontiers(elimination, order)),
        rowPlan(model, order, rows), values(model.size(), 0),
        increases(guides.size()) {
    for (const Guide *guide : guides)
      for (auto [row, price] : llvm::enumerate(guide->model.getPrices()))
        comparesRoom |= price > 0 && !llvm::is_contained(rows, row);
  }

  void run() {
    Layer layer;
    layer.numColumns = rowPlan.initial().size();
    layer.numGuides = guides.size();
    layer.usage = rowPlan.initial().vec();
    layer.room = gaps.vec();
    layer.leastRoom = {*llvm::min_element(gaps)};
    layer.cost = {model.getNetwork().constant};
    layer.parent = {0};
    layer.own = {0};
    for (size_t step = 0; step < model.size() && layer.size() > 0; ++step) {
      expired = limits.deadline.expired();
      layer = advance(layer, step);
      traces.push_back({layer.parent, layer.own});
    }
    finish(layer);
  }

  std::optional<std::vector<Label>> best;
  Cost bestCost = 0;
  /// The most room that a dropped state had; negative: nothing was dropped.
  Scaled dropped = -1;
  bool hasMerged = false;
  uint64_t work = 0;

private:
  //===--------------------------------------------------------------------===//
  // One variable
  //===--------------------------------------------------------------------===//

  /// States in groups that agree on the given positions of the frontier.
  static std::vector<uint32_t> orderBy(const Layer &layer,
                                       llvm::ArrayRef<uint32_t> positions) {
    std::vector<uint32_t> result(layer.size());
    std::iota(result.begin(), result.end(), 0);
    llvm::sort(result, [&](uint32_t a, uint32_t b) {
      for (uint32_t d : positions)
        if (layer.labelsOf(a)[d] != layer.labelsOf(b)[d])
          return layer.labelsOf(a)[d] < layer.labelsOf(b)[d];
      return a < b;
    });
    return result;
  }

  Layer advance(const Layer &from, size_t step) {
    uint32_t variable = order[step];
    Layer to;
    to.frontier = frontiers[step];
    to.numColumns = rowPlan.step(step).thresholds.size();
    to.numGuides = guides.size();
    std::vector<uint32_t> separatorAt; // positions in from.frontier
    for (uint32_t v : elimination.separator(variable))
      separatorAt.push_back(llvm::lower_bound(from.frontier, v) -
                            from.frontier.begin());
    const Label *last = nullptr;
    for (uint32_t state : orderBy(from, separatorAt)) {
      const Label *labels = from.labelsOf(state);
      for (auto [v, label] : llvm::zip_equal(
               from.frontier, llvm::ArrayRef(labels, from.frontier.size())))
        values[v] = label;
      bool same = last && llvm::all_of(separatorAt, [&](uint32_t d) {
                    return last[d] == labels[d];
                  });
      if (!same)
        priceLabels(variable);
      last = labels;
      expand(from, state, step, to);
    }
    limitWidth(to, kWidthBeforeDominance * limits.width);
    removeDominated(to);
    limitWidth(to, limits.width);
    return to;
  }

  /// The cost of each label of `variable` given its separator.
  void priceLabels(uint32_t variable) {
    for (auto [guide, increase] : llvm::zip_equal(guides, increases))
      guide->elimination.increases(variable, values, increase);
    const Network &network = model.getNetwork();
    Variable node = model.nodeOf(variable);
    trueCosts = network.nodes[node].costs;
    for (uint32_t p : model.pairsOf(variable)) {
      const Model::Pair &pair = model.pairs()[p];
      uint32_t other = pair.first == variable ? pair.second : pair.first;
      if (elimination.positionOf(other) < elimination.positionOf(variable))
        continue;
      const Link &link = network.links[pair.link];
      for (Label label = 0; label < trueCosts.size(); ++label)
        trueCosts[label] = addCosts(trueCosts[label],
                                    pairCost(link, node, label, values[other]));
    }
  }

  void expand(const Layer &from, uint32_t state, size_t step, Layer &to) {
    uint32_t variable = order[step];
    std::vector<int64_t> used(to.numColumns);
    std::vector<Scaled> room(guides.size());
    work += guides.size() * trueCosts.size();
    for (Label label = 0; label < trueCosts.size(); ++label) {
      Scaled least = kInfinity;
      for (size_t g = 0; g < guides.size(); ++g) {
        room[g] = from.roomOf(state)[g] - increases[g][label];
        least = std::min(least, room[g]);
      }
      if (least < 0 || isForbidden(trueCosts[label]))
        continue;
      if (work >= limits.work || expired) {
        dropped = std::max(dropped, least);
        continue;
      }
      work +=
          rowPlan.step(step).moves.size() + kFrontierWork * to.frontier.size();
      if (!use(from.usageOf(state), label, rowPlan.step(step), used))
        continue;
      values[variable] = label;
      for (uint32_t v : to.frontier)
        to.labels.push_back(values[v]);
      llvm::append_range(to.usage, used);
      llvm::append_range(to.room, room);
      to.leastRoom.push_back(least);
      to.cost.push_back(from.cost[state] + trueCosts[label]);
      to.parent.push_back(state);
      to.own.push_back(label);
    }
  }

  /// Columns after `label` was chosen; false if a row is exceeded.
  bool use(const int64_t *before, Label label, const RowPlan::Step &step,
           std::vector<int64_t> &after) {
    if (after.empty())
      return true;
    profileBytes.assign(step.own.begin() + label * step.numProfiles,
                        step.own.begin() + (label + 1) * step.numProfiles);
    for (const RowPlan::PairTerm &pair : step.pairs)
      profileBytes[pair.profile] += pair.bytes(label, values[pair.other]);
    llvm::fill(after, kNeverBinds);
    for (const RowPlan::Move &move : step.moves) {
      if (before[move.from] == kNeverBinds)
        continue;
      int64_t value =
          before[move.from] + move.offset + profileBytes[move.profile];
      if (value > 0)
        return false;
      after[move.to] = std::max(after[move.to], value);
    }
    // Constraints that cannot bind any more do not distinguish states.
    for (size_t c = 0; c < after.size(); ++c)
      if (after[c] <= step.thresholds[c])
        after[c] = kNeverBinds;
    return true;
  }

  //===--------------------------------------------------------------------===//
  // Fewer states
  //===--------------------------------------------------------------------===//

  bool usesNoMore(const Layer &layer, uint32_t a, uint32_t b) const {
    for (size_t c = 0; c < layer.numColumns; ++c)
      if (withMore(layer.usageOf(a)[c]) > layer.usageOf(b)[c])
        return false;
    // Where rows are priced that are no columns, a guide may reject the better
    // of two states.
    for (size_t g = 0; comparesRoom && g < layer.numGuides; ++g)
      if (layer.roomOf(a)[g] < layer.roomOf(b)[g])
        return false;
    return true;
  }

  /// A little more than what is left of a row.
  int64_t withMore(int64_t usage) const {
    return limits.mergeShift == 0 ? usage
                                  : usage + (usage >> limits.mergeShift);
  }

  /// A state stands for another too, with what either has left; `usage` is what
  /// the states of the layer will use.
  void merge(Layer &layer, uint32_t into, uint32_t other,
             std::vector<int64_t> &usage) {
    for (size_t c = 0; c < layer.numColumns; ++c) {
      int64_t &least = usage[into * layer.numColumns + c];
      hasMerged |= layer.usageOf(other)[c] < least;
      least = std::min(least, layer.usageOf(other)[c]);
    }
    Scaled *room = layer.room.data() + into * layer.numGuides;
    for (size_t g = 0; g < layer.numGuides; ++g)
      room[g] = std::max(room[g], layer.roomOf(other)[g]);
    layer.leastRoom[into] = *std::min_element(room, room + layer.numGuides);
  }

  void removeDominated(Layer &layer) {
    bool merges = limits.mergeShift > 0;
    std::vector<int64_t> usage;
    if (merges)
      usage = layer.usage;
    size_t width = layer.frontier.size();
    auto compareLabels = [&](uint32_t a, uint32_t b) {
      const Label *left = layer.labelsOf(a), *right = layer.labelsOf(b);
      for (size_t d = 0; d < width; ++d)
        if (left[d] != right[d])
          return left[d] < right[d] ? -1 : 1;
      return 0;
    };
    std::vector<uint32_t> sorted(layer.size());
    std::iota(sorted.begin(), sorted.end(), 0);
    llvm::sort(sorted, [&](uint32_t a, uint32_t b) {
      if (int order = compareLabels(a, b))
        return order < 0;
      return std::pair(layer.cost[a], a) < std::pair(layer.cost[b], b);
    });
    std::vector<uint32_t> kept;
    size_t groupBegin = 0; // in kept
    for (uint32_t state : sorted) {
      if (kept.empty() || compareLabels(kept.back(), state) != 0)
        groupBegin = kept.size();
      size_t end = std::min(kept.size(), groupBegin + kMaxComparisons);
      std::optional<uint32_t> better;
      for (size_t k = groupBegin; k < end && !better; ++k)
        if (usesNoMore(layer, kept[k], state))
          better = kept[k];
      // With one column the state before is the hardest to beat.
      if (!better && layer.numColumns == 1 && kept.size() > groupBegin &&
          usesNoMore(layer, kept.back(), state))
        better = kept.back();
      if (better && merges)
        merge(layer, *better, state, usage);
      work += 1 + end - groupBegin;
      if (!better)
        kept.push_back(state);
    }
    llvm::sort(kept);
    if (merges)
      layer.usage = std::move(usage);
    layer.select(kept);
  }

  /// Keeps the states with the most room.
  void limitWidth(Layer &layer, size_t width) {
    if (layer.size() <= width)
      return;
    std::vector<uint32_t> best(layer.size());
    std::iota(best.begin(), best.end(), 0);
    std::nth_element(best.begin(), best.begin() + width, best.end(),
                     [&](uint32_t a, uint32_t b) {
                       return std::pair(-layer.leastRoom[a], a) <
                              std::pair(-layer.leastRoom[b], b);
                     });
    dropped = std::max(dropped, layer.leastRoom[best[width]]);
    best.resize(width);
    llvm::sort(best);
    layer.select(best);
  }

  void finish(const Layer &layer) {
    if (layer.size() == 0)
      return;
    size_t state = llvm::min_element(layer.cost) - layer.cost.begin();
    bestCost = layer.cost[state];
    best.emplace(model.size(), 0);
    for (size_t step = model.size(); step-- > 0;) {
      (*best)[order[step]] = traces[step].own[state];
      state = traces[step].parent[state];
    }
  }

  llvm::ArrayRef<const Guide *> guides;
  const Model &model;             // of the first guide
  const Elimination &elimination; // of the first guide
  llvm::ArrayRef<Scaled> gaps;    // from each guide's least sum to its limit
  const StateLimits &limits;
  std::vector<uint32_t> order;                  // variables by step
  std::vector<std::vector<uint32_t>> frontiers; // after each step
  RowPlan rowPlan;
  bool comparesRoom = false;
  std::vector<Trace> traces;
  bool expired = false;
  // For the current state:
  std::vector<Label> values;                  // by variable
  std::vector<std::vector<Scaled>> increases; // by guide, then label
  std::vector<Cost> trueCosts;                // by label
  std::vector<int64_t> profileBytes;
};
} // namespace

Guide::Guide(const Model &original, const Elimination &plan, Prices prices,
             const Messages *messages)
    : model(original), elimination(plan) {
  model.setPrices(std::move(prices));
  if (messages)
    model.applyMessages(*messages);
  leastSum = elimination.run(model);
}

StateResult searchStates(const Guides &guides, llvm::ArrayRef<uint32_t> rows,
                         Cost upper, const StateLimits &limits) {
  StateResult result;
  result.bound = upper;
  llvm::SmallVector<const Guide *> useful;
  std::vector<Scaled> gaps;
  for (const std::unique_ptr<Guide> &guide : guides) {
    Int128 gap = guide->model.sumLimit(upper) - guide->leastSum;
    if (gap < 0)
      return result;
    if (!guide->model.tells(upper))
      continue;
    useful.push_back(guide.get());
    gaps.push_back(static_cast<Scaled>(gap));
  }
  if (useful.empty() || useful.front() != guides.front().get()) {
    result.complete = false;
    result.bound = guides.front()->model.boundFor(guides.front()->leastSum);
    return result;
  }
  Search search(useful, rows, gaps, limits);
  search.run();
  result.work = search.work;
  if (search.best) {
    result.labels = search.best;
    result.complete = !search.hasMerged;
    result.isMerged = search.hasMerged && search.dropped < 0;
    result.bound = std::min(upper, search.bestCost);
  }
  if (search.dropped >= 0) {
    result.complete = false;
    unsigned shift = guides[0]->model.getShift();
    Int128 least = (Int128(upper - 1) << shift) - search.dropped;
    result.bound =
        std::min(result.bound, static_cast<Cost>(ceilShift(least, shift)));
  }
  return result;
}

} // namespace shardc::solver
