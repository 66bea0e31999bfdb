//===- Elimination.cpp - Bucket elimination and its tables ----------------===//

#include "shardc/Solver/Elimination.h"
#include "Cursors.h"
#include "llvm/ADT/STLExtras.h"
#include <cassert>
#include <tuple>

namespace shardc::solver {

//===----------------------------------------------------------------------===//
// Planning
//===----------------------------------------------------------------------===//

Elimination::Elimination(const Model &model, std::vector<uint32_t> order,
                         const EliminationLimits &limits)
    : elimination(std::move(order)), position(model.size()),
      groupsOf(model.size()), separators(model.size()) {
  assert(elimination.size() == model.size() && "an order of all variables");
  for (auto [index, variable] : llvm::enumerate(elimination))
    position[variable] = index;
  for (uint32_t v = 0; v < model.size(); ++v)
    sizes.push_back(model.costs(v).size());

  std::vector<std::vector<Factor>> buckets(model.size());
  for (uint32_t v = 0; v < model.size(); ++v)
    buckets[v].push_back(makeFactor(FactorKind::Unary, v, false, {v}));
  for (auto [index, pair] : llvm::enumerate(model.pairs())) {
    bool transposed = position[pair.first] > position[pair.second];
    uint32_t first = transposed ? pair.second : pair.first;
    uint32_t second = transposed ? pair.first : pair.second;
    buckets[first].push_back(
        makeFactor(FactorKind::Pair, index, transposed, {first, second}));
  }
  for (uint32_t variable : elimination) {
    size_t firstGroup = groups.size();
    planBucket(variable, std::move(buckets[variable]), limits);
    for (size_t g = firstGroup; g < groups.size(); ++g)
      if (!groups[g].scope.empty())
        buckets[groups[g].scope.front()].push_back(
            makeFactor(FactorKind::Message, g, false, groups[g].scope));
  }
  messages.resize(groups.size());
}

Elimination::Factor
Elimination::makeFactor(FactorKind kind, uint32_t index, bool transposed,
                        llvm::ArrayRef<uint32_t> scope) const {
  Factor factor{kind, index, transposed, {}, {}};
  factor.scope.assign(scope.begin(), scope.end());
  factor.strides.resize(scope.size());
  size_t stride = 1;
  for (size_t d = scope.size(); d-- > 0;) {
    factor.strides[d] = stride;
    stride *= sizes[scope[d]];
  }
  return factor;
}

double Elimination::unionSize(const Group &group, const Factor &factor) const {
  double size = sizes[group.variable];
  for (uint32_t v : group.scope)
    size *= sizes[v];
  for (uint32_t v : llvm::drop_begin(factor.scope))
    if (!llvm::is_contained(group.scope, v))
      size *= sizes[v];
  return size;
}

/// Puts each factor into the first mini-bucket that stays small enough, large
/// factors first. A factor that is too large alone gets its own.
void Elimination::planBucket(uint32_t variable, std::vector<Factor> factors,
                             const EliminationLimits &limits) {
  llvm::sort(factors, [](const Factor &a, const Factor &b) {
    return std::tuple(b.scope.size(), a.kind, a.index) <
           std::tuple(a.scope.size(), b.kind, b.index);
  });
  double limit =
      std::min(limits.bucketEntries, limits.messageEntries * sizes[variable]);
  size_t firstGroup = groups.size();
  for (Factor &factor : factors) {
    auto fits = [&](const Group &group) {
      return unionSize(group, factor) <= limit;
    };
    auto group = std::find_if(groups.begin() + firstGroup, groups.end(), fits);
    if (group == groups.end()) {
      groups.push_back({variable, {}, {}, 1});
      group = groups.end() - 1;
    }
    for (uint32_t v : llvm::drop_begin(factor.scope))
      if (!llvm::is_contained(group->scope, v))
        group->scope.push_back(v);
    group->factors.push_back(std::move(factor));
  }
  exact &= groups.size() <= firstGroup + 1;
  for (size_t g = firstGroup; g < groups.size(); ++g) {
    Group &group = groups[g];
    llvm::sort(group.scope, [&](uint32_t a, uint32_t b) {
      return position[a] < position[b];
    });
    for (uint32_t v : group.scope) {
      group.entries *= sizes[v];
      if (!llvm::is_contained(separators[variable], v))
        separators[variable].push_back(v);
    }
    totalWork += double(group.entries) * sizes[variable];
    totalEntries += double(group.entries);
    groupsOf[variable].push_back(g);
  }
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

const Scaled *Elimination::dataOf(const Factor &factor) const {
  switch (factor.kind) {
  case FactorKind::Unary:
    return model->costs(factor.index).data();
  case FactorKind::Pair: {
    const ScaledTable &table = *model->pairs()[factor.index].table;
    return factor.transposed ? table.byColumns().data() : table.costs.data();
  }
  case FactorKind::Message:
    return messages[factor.index].data();
  }
  return nullptr;
}

/// out[j] = min over labels i of the sum of all factors at (i, j).
static void minOverOwn(const Cursors &cursors, size_t ownSize, Scaled *out,
                       size_t innerSize, std::vector<Scaled> &scratch) {
  std::fill_n(out, innerSize, kInfinity);
  for (size_t i = 0; i < ownSize; ++i) {
    Scaled base = sumOfScalars(cursors, i);
    if (base >= kInfinity)
      continue;
    llvm::ArrayRef<Cursor> rows = cursors.rows();
    auto row = [&](size_t r) { return rows[r].data + i * rows[r].ownStride; };
    switch (rows.size()) {
    case 0:
      out[0] = std::min(out[0], base);
      break;
    case 1:
      minPlus(out, row(0), base, innerSize);
      break;
    case 2:
      minPlus(out, row(0), row(1), base, innerSize);
      break;
    default:
      scratch.assign(row(0), row(0) + innerSize);
      for (size_t r = 1; r + 1 < rows.size(); ++r)
        addSaturated(scratch.data(), row(r), innerSize);
      minPlus(out, scratch.data(), row(rows.size() - 1), base, innerSize);
    }
  }
}

Cursor Elimination::makeCursor(const Group &group, const Factor &factor) const {
  Cursor cursor{dataOf(factor), factor.strides[0], {}};
  for (uint32_t v : group.outer()) {
    auto found = llvm::find(factor.scope, v);
    cursor.outerSteps.push_back(
        found == factor.scope.end()
            ? 0
            : factor.strides[found - factor.scope.begin()]);
  }
  return cursor;
}

Cursors Elimination::makeCursors(const Group &group) const {
  Cursors cursors;
  for (const Factor &factor : group.factors)
    if (group.varies(factor))
      cursors.all.push_back(makeCursor(group, factor));
  cursors.numRows = cursors.all.size();
  for (const Factor &factor : group.factors)
    if (!group.varies(factor))
      cursors.all.push_back(makeCursor(group, factor));
  return cursors;
}

llvm::SmallVector<size_t, 4> Elimination::outerSizes(const Group &group) const {
  llvm::SmallVector<size_t, 4> result;
  for (uint32_t v : group.outer())
    result.push_back(sizes[v]);
  return result;
}

void Elimination::runGroup(size_t index) {
  const Group &group = groups[index];
  std::vector<Scaled> &message = messages[index];
  message.resize(group.entries);
  Cursors cursors = makeCursors(group);
  llvm::SmallVector<size_t, 4> outer = outerSizes(group);
  size_t innerSize = group.scope.empty() ? 1 : sizes[group.scope.back()];
  std::vector<Scaled> scratch;
  Odometer odometer(outer, cursors.all);
  for (size_t at = 0; at < message.size(); at += innerSize) {
    minOverOwn(cursors, sizes[group.variable], &message[at], innerSize,
               scratch);
    odometer.next();
  }
}

Int128 Elimination::run(const Model &newModel) {
  model = &newModel;
  Int128 sum = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    runGroup(g);
    if (groups[g].scope.empty())
      sum += messages[g][0];
  }
  return sum;
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

size_t Elimination::offsetOf(const Factor &factor,
                             llvm::ArrayRef<Label> labels) const {
  size_t offset = 0;
  for (size_t d = 1; d < factor.scope.size(); ++d)
    offset += factor.strides[d] * labels[factor.scope[d]];
  return offset;
}

void Elimination::increases(uint32_t variable, llvm::ArrayRef<Label> labels,
                            std::vector<Scaled> &result) const {
  result.assign(sizes[variable], 0);
  Scaled known = 0;
  for (uint32_t g : groupsOf[variable]) {
    const Group &group = groups[g];
    for (const Factor &factor : group.factors) {
      const Scaled *data = dataOf(factor) + offsetOf(factor, labels);
      for (size_t i = 0; i < result.size(); ++i)
        result[i] = addScaled(result[i], data[i * factor.strides[0]]);
    }
    size_t at = 0;
    for (uint32_t v : group.scope)
      at = at * sizes[v] + labels[v];
    known = addScaled(known, messages[g][at]);
  }
  for (Scaled &value : result)
    if (value < kInfinity)
      value = std::max<Scaled>(value - known, 0);
}

std::vector<Label> Elimination::decode() const {
  std::vector<Label> labels(sizes.size(), 0);
  std::vector<Scaled> costs;
  for (uint32_t variable : llvm::reverse(elimination)) {
    increases(variable, labels, costs);
    labels[variable] = llvm::min_element(costs) - costs.begin();
  }
  return labels;
}

} // namespace shardc::solver
