//===- MessagePassing.cpp - Bounds where tables do not fit ----------------===//

#include "shardc/Solver/MessagePassing.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc::solver {

MessagePassing::MessagePassing(const Model &model)
    : model(model), unary(model.size()), least(model.size(), 0),
      limit(Int128(kInfinity) * kInfinity) {
  for (const Model::Pair &pair : model.pairs()) {
    current.toFirst.emplace_back(pair.table->rows, 0);
    current.toSecond.emplace_back(pair.table->columns, 0);
  }
  updateCosts();
}

void MessagePassing::updateCosts() {
  constant = 0;
  for (uint32_t v = 0; v < model.size(); ++v) {
    bool isFirst = unary[v].empty();
    llvm::ArrayRef<Scaled> costs = model.costs(v);
    std::vector<Scaled> sums(costs.begin(), costs.end());
    for (uint32_t p : model.pairsOf(v)) {
      const std::vector<Scaled> &message = model.pairs()[p].first == v
                                               ? current.toFirst[p]
                                               : current.toSecond[p];
      for (auto [sum, part] : llvm::zip_equal(sums, message))
        if (part > -kInfinity)
          sum = addScaled(sum, part);
    }
    for (size_t label = 0; !isFirst && label < sums.size(); ++label)
      if (unary[v][label] >= kInfinity)
        sums[label] = kInfinity;
    unary[v] = std::move(sums);
  }
  prunes = false;
}

void MessagePassing::restore(const Messages &messages) { current = messages; }

bool MessagePassing::comesAfter(uint32_t variable, uint32_t pair) const {
  const Model::Pair &data = model.pairs()[pair];
  return (data.first == variable ? data.second : data.first) > variable;
}

void MessagePassing::sweep() {
  for (uint32_t v = 0; v < model.size() && !exhausted; ++v)
    visit(v, true);
  // After a whole pass all parts are nonnegative whatever the prices did.
  prunes = true;
  for (uint32_t v = model.size(); v-- > 0 && !exhausted;)
    visit(v, false);
}

/// Moves the least cost into the constant and takes out what exceeds the limit.
void MessagePassing::extractLeast(uint32_t variable) {
  std::vector<Scaled> &costs = unary[variable];
  least[variable] = llvm::min_element(costs) - costs.begin();
  Scaled part = costs[least[variable]];
  if (part >= kInfinity) {
    exhausted = true;
    return;
  }
  constant += part;
  Int128 room = limit - constant;
  exhausted |= prunes && room < 0;
  for (Scaled &cost : costs) {
    if (cost < kInfinity)
      cost -= part;
    if (prunes && cost > room)
      cost = kInfinity;
  }
}

void MessagePassing::visit(uint32_t variable, bool forward) {
  extractLeast(variable);
  if (exhausted)
    return;
  int64_t after = 0;
  llvm::ArrayRef<uint32_t> pairs = model.pairsOf(variable);
  for (uint32_t p : pairs)
    after += comesAfter(variable, p);
  int64_t before = pairs.size() - after;
  int64_t chains = std::max<int64_t>({after, before, 1});
  for (uint32_t p : pairs)
    if (comesAfter(variable, p) == forward)
      pushAndPull(variable, p, chains);
  // Costs that were pushed leave the variable, once for each pair.
  int64_t pushed = forward ? after : before;
  for (Scaled &cost : unary[variable])
    if (cost < kInfinity)
      cost -= cost / chains * pushed;
}

/// Pushes one of `share` equal parts of the variable's costs into the pair, and
/// from there all that the other end must pay in any case to that end.
void MessagePassing::pushAndPull(uint32_t variable, uint32_t index,
                                 int64_t share) {
  const Model::Pair &pair = model.pairs()[index];
  bool isFirst = pair.first == variable;
  uint32_t other = isFirst ? pair.second : pair.first;
  std::vector<Scaled> &from =
      isFirst ? current.toFirst[index] : current.toSecond[index];
  std::vector<Scaled> &to =
      isFirst ? current.toSecond[index] : current.toFirst[index];
  for (auto [message, cost] : llvm::zip_equal(from, unary[variable]))
    message = cost >= kInfinity ? -kInfinity : message - cost / share;
  scratch.resize(to.size());
  const Scaled *matrix = pair.table->costs.data();
  if (isFirst)
    minOverRows(scratch.data(), matrix, from.data(), from.size(), to.size());
  else
    minOverColumns(scratch.data(), matrix, from.data(), to.size(), from.size());
  for (size_t label = 0; label < to.size(); ++label) {
    Scaled &cost = unary[other][label];
    if (cost >= kInfinity)
      continue;
    if (scratch[label] >= kInfinity) {
      cost = kInfinity;
      continue;
    }
    cost = std::min(cost + (scratch[label] - to[label]), kInfinity);
    to[label] = scratch[label];
  }
}

LabelSets MessagePassing::remaining() const {
  LabelSets result;
  for (const std::vector<Scaled> &costs : unary) {
    result.emplace_back();
    for (Scaled cost : costs)
      result.back().push_back(cost < kInfinity);
  }
  return result;
}

std::vector<Label> MessagePassing::decode() const {
  std::vector<Label> labels(model.size(), 0);
  for (uint32_t v = 0; v < model.size(); ++v) {
    std::vector<Scaled> sums(model.costs(v).begin(), model.costs(v).end());
    for (size_t label = 0; label < sums.size(); ++label)
      if (unary[v][label] >= kInfinity)
        sums[label] = kInfinity;
    for (uint32_t p : model.pairsOf(v)) {
      const Model::Pair &pair = model.pairs()[p];
      bool isFirst = pair.first == v;
      if (comesAfter(v, p)) {
        addSaturated(sums.data(),
                     (isFirst ? current.toFirst : current.toSecond)[p].data(),
                     sums.size());
        continue;
      }
      Label other = labels[isFirst ? pair.second : pair.first];
      size_t size = sums.size();
      const ScaledTable &table = *pair.table;
      addSaturated(sums.data(),
                   (isFirst ? table.byColumns() : table.costs).data() +
                       other * size,
                   size);
    }
    labels[v] = llvm::min_element(sums) - sums.begin();
  }
  return labels;
}

} // namespace shardc::solver
