//===- RowPlan.cpp - Few numbers for the usage of many rows ---------------===//

#include "RowPlan.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

namespace shardc::solver {

RowPlan::RowPlan(const Model &model, llvm::ArrayRef<uint32_t> order,
                 llvm::ArrayRef<uint32_t> rows)
    : model(model), rows(rows), steps(order.size()), profiles(order.size()),
      futures(order.size()), most(order.size()), rest(rows.size(), 0) {
  planProfiles(order);
  planFutures();
  if (!rows.empty()) {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (uint32_t r = 0; r < rows.size(); ++r) {
      int64_t slack = model.getNetwork().slack[rows[r]];
      items.push_back({r, 0, slack, 0});
      least = std::min(least, slack);
    }
    bases = {least};
    initialValues = {-least};
  }
  for (size_t step = 0; step < steps.size(); ++step)
    planMoves(step);
}

//===----------------------------------------------------------------------===//
// Profiles
//===----------------------------------------------------------------------===//

void RowPlan::planProfiles(llvm::ArrayRef<uint32_t> order) {
  std::vector<uint32_t> stepOf(model.size());
  for (auto [step, variable] : llvm::enumerate(order))
    stepOf[variable] = step;
  for (auto [step, variable] : llvm::enumerate(order))
    planProfile(step, variable, stepOf);
}

void RowPlan::planProfile(size_t stepIndex, uint32_t variable,
                          llvm::ArrayRef<uint32_t> stepOf) {
  Step &step = steps[stepIndex];
  const Network &network = model.getNetwork();
  const Node &node = network.nodes[model.nodeOf(variable)];
  std::vector<PairTerm> terms;
  for (uint32_t p : model.pairsOf(variable)) {
    const Model::Pair &pair = model.pairs()[p];
    bool ownIsFirst = pair.first == variable;
    uint32_t other = ownIsFirst ? pair.second : pair.first;
    const Link &link = network.links[pair.link];
    if (stepOf[other] < stepOf[variable])
      for (const PairUsage &usage : link.usages)
        terms.push_back(
            {0, &usage, other, ownIsFirst, size_t(link.table->columns)});
  }
  // Positions of rows where some usage begins or ends.
  std::vector<uint32_t> breaks = {0, static_cast<uint32_t>(rows.size())};
  auto addBreak = [&](uint32_t row) {
    breaks.push_back(llvm::lower_bound(rows, row) - rows.begin());
  };
  for (const UsageList &list : node.usages)
    for (const Usage &usage : list) {
      addBreak(usage.begin);
      addBreak(usage.end);
    }
  for (const PairTerm &term : terms) {
    addBreak(term.usage->begin);
    addBreak(term.usage->end);
  }
  llvm::sort(breaks);
  breaks.erase(std::unique(breaks.begin(), breaks.end()), breaks.end());

  // Bytes of each label, then 1 for each pair usage that is alive.
  using Key = std::vector<int64_t>;
  size_t labels = node.size();
  std::map<Key, uint32_t> known = {{Key(labels + terms.size(), 0), 0}};
  std::vector<Key> keys = {known.begin()->first};
  profiles[stepIndex].resize(rows.size());
  for (size_t b = 0; b + 1 < breaks.size(); ++b) {
    uint32_t row = rows[breaks[b]];
    Key key(labels + terms.size(), 0);
    for (Label label = 0; label < node.usages.size(); ++label)
      for (const Usage &usage : node.usages[label])
        if (row >= usage.begin && row < usage.end)
          key[label] = usage.bytes;
    for (auto [index, term] : llvm::enumerate(terms))
      key[labels + index] = row >= term.usage->begin && row < term.usage->end;
    auto [entry, isNew] =
        known.insert({key, static_cast<uint32_t>(keys.size())});
    if (isNew)
      keys.push_back(std::move(key));
    std::fill(profiles[stepIndex].begin() + breaks[b],
              profiles[stepIndex].begin() + breaks[b + 1], entry->second);
  }

  step.numProfiles = keys.size();
  step.own.resize(labels * keys.size());
  most[stepIndex].assign(keys.size(), 0);
  for (size_t profile = 0; profile < keys.size(); ++profile) {
    const Key &key = keys[profile];
    int64_t &largest = most[stepIndex][profile];
    for (Label label = 0; label < labels; ++label) {
      step.own[label * keys.size() + profile] = key[label];
      largest = std::max(largest, key[label]);
    }
    for (auto [index, term] : llvm::enumerate(terms))
      if (key[labels + index]) {
        largest += *llvm::max_element(term.usage->bytes);
        step.pairs.push_back(term);
        step.pairs.back().profile = profile;
      }
  }
}

/// Numbers the distinct pairs of classes.
static uint32_t
classOf(std::map<std::pair<uint32_t, uint32_t>, uint32_t> &known, uint32_t a,
        uint32_t b) {
  return known.insert({{a, b}, static_cast<uint32_t>(known.size())})
      .first->second;
}

void RowPlan::planFutures() {
  if (steps.empty())
    return;
  futures.back().assign(rows.size(), 0);
  for (size_t step = steps.size(); step-- > 0;) {
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> known;
    std::vector<uint32_t> before(rows.size());
    for (size_t r = 0; r < rows.size(); ++r) {
      before[r] = classOf(known, futures[step][r], profiles[step][r]);
      rest[r] += most[step][profiles[step][r]];
    }
    if (step > 0)
      futures[step - 1] = std::move(before);
  }
}

//===----------------------------------------------------------------------===//
// Columns
//===----------------------------------------------------------------------===//

/// Keeps only the tightest of items with equal past and future.
void RowPlan::mergeEqual(size_t step) {
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, size_t> known;
  std::vector<Item> merged;
  for (const Item &item : items) {
    auto [entry, isNew] = known.insert(
        {{item.column, item.profile, futures[step][item.row]}, merged.size()});
    if (isNew)
      merged.push_back(item);
    else if (item.slack < merged[entry->second].slack)
      merged[entry->second] = item;
  }
  items = std::move(merged);
}

/// For each item whether the column of its future takes it rather than that of
/// its past: greedily by how many items each column would take.
std::vector<bool> RowPlan::chooseCover(size_t step) const {
  // Pasts are (column, profile), numbered; then come futures.
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> pasts, future;
  std::vector<std::pair<uint32_t, uint32_t>> ends;
  for (const Item &item : items)
    ends.push_back({classOf(pasts, item.column, item.profile),
                    classOf(future, futures[step][item.row], 0)});
  std::vector<size_t> pastDegree(pasts.size(), 0),
      futureDegree(future.size(), 0);
  for (auto [p, f] : ends) {
    ++pastDegree[p];
    ++futureDegree[f];
  }
  std::vector<bool> byFuture(items.size(), false), covered(items.size(), false);
  for (size_t left = items.size(); left > 0;) {
    size_t p = llvm::max_element(pastDegree) - pastDegree.begin();
    size_t f = llvm::max_element(futureDegree) - futureDegree.begin();
    bool takeFuture = futureDegree[f] > pastDegree[p];
    for (size_t i = 0; i < items.size(); ++i) {
      if (covered[i] || (takeFuture ? ends[i].second != f : ends[i].first != p))
        continue;
      covered[i] = true;
      byFuture[i] = takeFuture;
      --pastDegree[ends[i].first];
      --futureDegree[ends[i].second];
      --left;
    }
  }
  return byFuture;
}

void RowPlan::planMoves(size_t stepIndex) {
  Step &step = steps[stepIndex];
  for (size_t r = 0; r < rows.size(); ++r)
    rest[r] -= most[stepIndex][profiles[stepIndex][r]];
  for (Item &item : items)
    item.profile = profiles[stepIndex][item.row];
  mergeEqual(stepIndex);
  std::vector<bool> byFuture = chooseCover(stepIndex);

  // Columns are numbered as their first item comes.
  std::map<std::tuple<bool, uint32_t, uint32_t>, uint32_t> columns;
  std::vector<uint32_t> columnOf;
  std::vector<int64_t> newBases;
  for (auto [item, future] : llvm::zip_equal(items, byFuture)) {
    auto key = future ? std::tuple(true, futures[stepIndex][item.row], 0u)
                      : std::tuple(false, item.column, item.profile);
    auto [entry, isNew] =
        columns.insert({key, static_cast<uint32_t>(newBases.size())});
    if (isNew)
      newBases.push_back(future ? 0 : item.slack);
    else if (!future)
      newBases[entry->second] = std::min(newBases[entry->second], item.slack);
    columnOf.push_back(entry->second);
  }
  step.thresholds.assign(newBases.size(), std::numeric_limits<int64_t>::max());

  std::vector<Item> next;
  std::vector<bool> isMerged(newBases.size(), false);
  for (size_t i = 0; i < items.size(); ++i) {
    Item item = items[i];
    uint32_t to = columnOf[i];
    int64_t own = byFuture[i] ? item.slack : newBases[to];
    step.moves.push_back(
        {item.column, to, item.profile, bases[item.column] - own});
    if (byFuture[i])
      item.slack = 0;
    step.thresholds[to] = std::min(step.thresholds[to],
                                   item.slack - rest[item.row] - newBases[to]);
    item.column = to;
    if (!byFuture[i] || !isMerged[to])
      next.push_back(item);
    isMerged[to] = byFuture[i];
  }
  // Items of one past move alike.
  auto key = [](const Move &move) {
    return std::tuple(move.to, move.from, move.profile, move.offset);
  };
  llvm::sort(step.moves,
             [&](const Move &a, const Move &b) { return key(a) < key(b); });
  step.moves.erase(std::unique(step.moves.begin(), step.moves.end(),
                               [&](const Move &a, const Move &b) {
                                 return key(a) == key(b);
                               }),
                   step.moves.end());
  items = std::move(next);
  bases = std::move(newBases);
}

} // namespace shardc::solver
