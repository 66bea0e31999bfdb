//===- MinMarginals.cpp - What each label costs at best -------------------===//
//
// The pass back from the last bucket to the first: each bucket learns what the
// rest of the network costs at least for the labels of its separator.
//
//===----------------------------------------------------------------------===//

#include "Cursors.h"
#include "shardc/Solver/Elimination.h"
#include "llvm/ADT/STLExtras.h"
#include <cassert>

namespace shardc::solver {

namespace {
/// Where a child bucket's table of the rest is being collected.
struct Target {
  std::vector<Scaled> *table = nullptr;
  Cursor cursor; // in the child's message, which has the same layout
  const Scaled *start = nullptr;
  bool varies = false;

  Scaled *entry(size_t own) const {
    return table->data() + (cursor.data - start) + own * cursor.ownStride;
  }
};
} // namespace

/// Sum of all factors and of the rest at one own label, along the inner
/// variable.
static void fillRow(const Cursors &cursors, size_t own, Scaled base,
                    const Scaled *rest, std::vector<Scaled> &row) {
  addSaturated(row.data(), rest, base, row.size());
  for (const Cursor &cursor : cursors.rows())
    addSaturated(row.data(), cursor.data + own * cursor.ownStride, row.size());
}

static void collect(llvm::ArrayRef<Target> targets, size_t own,
                    const std::vector<Scaled> &row, Scaled least) {
  for (const Target &target : targets) {
    Scaled *entry = target.entry(own);
    if (target.varies)
      minPlus(entry, row.data(), 0, row.size());
    else
      *entry = std::min(*entry, least);
  }
}

/// The rest without the child's own part.
static void subtractMessage(std::vector<Scaled> &rest,
                            const std::vector<Scaled> &message) {
  for (auto [value, own] : llvm::zip_equal(rest, message))
    value = own >= kInfinity || value >= kInfinity ? kInfinity : value - own;
}

void Elimination::passDown(size_t index, std::vector<std::vector<Scaled>> &down,
                           std::vector<Scaled> &marginals) const {
  const Group &group = groups[index];
  Cursors cursors = makeCursors(group);
  std::vector<Target> targets;
  for (const Factor &factor : group.factors) {
    if (factor.kind != FactorKind::Message)
      continue;
    down[factor.index].assign(messages[factor.index].size(), kInfinity);
    targets.push_back({&down[factor.index], makeCursor(group, factor),
                       messages[factor.index].data(), group.varies(factor)});
  }
  // The odometer steps all cursors, those of the targets too.
  llvm::SmallVector<Cursor, 8> targetCursors;
  for (const Target &target : targets)
    targetCursors.push_back(target.cursor);
  llvm::SmallVector<size_t, 4> outer = outerSizes(group);
  Odometer odometer(outer, cursors.all), targetOdometer(outer, targetCursors);

  size_t innerSize = group.scope.empty() ? 1 : sizes[group.scope.back()];
  std::vector<Scaled> row(innerSize);
  for (size_t at = 0; at < group.entries; at += innerSize) {
    for (auto [target, cursor] : llvm::zip_equal(targets, targetCursors))
      target.cursor.data = cursor.data;
    for (size_t own = 0; own < sizes[group.variable]; ++own) {
      Scaled base = sumOfScalars(cursors, own);
      if (base >= kInfinity)
        continue;
      fillRow(cursors, own, base, &down[index][at], row);
      Scaled least = leastOf(row.data(), row.size());
      marginals[own] = std::min(marginals[own], least);
      collect(targets, own, row, least);
    }
    odometer.next();
    targetOdometer.next();
  }
  for (const Factor &factor : group.factors)
    if (factor.kind == FactorKind::Message)
      subtractMessage(down[factor.index], messages[factor.index]);
}

std::vector<std::vector<Scaled>> Elimination::minMarginals() const {
  assert(exact && model && "an exact run comes first");
  std::vector<std::vector<Scaled>> result(sizes.size());
  std::vector<std::vector<Scaled>> down(groups.size());
  for (size_t g = groups.size(); g-- > 0;) {
    if (groups[g].scope.empty())
      down[g].assign(1, 0);
    std::vector<Scaled> &marginals = result[groups[g].variable];
    marginals.assign(sizes[groups[g].variable], kInfinity);
    passDown(g, down, marginals);
    down[g] = {};
    Scaled least = *llvm::min_element(marginals);
    for (Scaled &value : marginals)
      if (value < kInfinity)
        value -= least;
  }
  return result;
}

LabelSets Elimination::labelsWithin(Int128 room) const {
  LabelSets result;
  for (llvm::ArrayRef<Scaled> marginals : minMarginals()) {
    std::vector<bool> &flags = result.emplace_back();
    for (Scaled excess : marginals)
      flags.push_back(excess < kInfinity && excess <= room);
  }
  return result;
}

} // namespace shardc::solver
