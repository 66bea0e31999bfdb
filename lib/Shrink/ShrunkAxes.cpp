//===- ShrunkAxes.cpp - Small meshes --------------------------------------===//

#include "ShrunkAxes.h"
#include "llvm/ADT/STLExtras.h"

using namespace shardc;

namespace {
/// Depth-first over the axes, the first one first.
class AxisSearch {
public:
  AxisSearch(const Mesh &mesh, const EqualGroups &equalGroups, int64_t maxAxis,
             AxisSet kept, AxisSet twoWays)
      : original(mesh), equalGroups(equalGroups), maxAxis(maxAxis), kept(kept),
        twoWays(twoWays), current(mesh), best(mesh) {}

  Mesh run() {
    visit(0, 1);
    return best;
  }

private:
  void visit(AxisIndex axis, int64_t devices);
  bool isConstrained(AxisIndex axis) const;
  bool keepsGroups(AxisIndex numAssigned) const;
  llvm::SmallVector<int64_t> sizesOf(AxisIndex axis) const;

  const Mesh &original;
  const EqualGroups &equalGroups;
  int64_t maxAxis;
  AxisSet kept, twoWays;
  Mesh current, best;
};
} // namespace

bool AxisSearch::isConstrained(AxisIndex axis) const {
  return llvm::any_of(equalGroups, [&](const auto &groups) {
    return ((groups.first | groups.second) & axisBit(axis)) != 0;
  });
}

/// The groups whose axes are all among the first `numAssigned`.
bool AxisSearch::keepsGroups(AxisIndex numAssigned) const {
  return llvm::all_of(equalGroups, [&](const auto &groups) {
    AxisSet axes = groups.first | groups.second;
    return (axes >> numAssigned) != 0 ||
           current.groupSize(groups.first) == current.groupSize(groups.second);
  });
}

/// Ascending.
llvm::SmallVector<int64_t> AxisSearch::sizesOf(AxisIndex axis) const {
  int64_t size = original.axes[axis].size, least = maxAxis;
  if (twoWays & axisBit(axis))
    least = std::max<int64_t>(least, 3);
  if (size <= least || (kept & axisBit(axis)))
    return {size};
  llvm::SmallVector<int64_t> sizes = {least};
  if (!isConstrained(axis))
    return sizes;
  while (sizes.back() <= size / maxAxis)
    sizes.push_back(sizes.back() * maxAxis);
  if (sizes.back() != size)
    sizes.push_back(size);
  return sizes;
}

void AxisSearch::visit(AxisIndex axis, int64_t devices) {
  if (axis == original.size()) {
    if (devices < best.numDevices())
      best = current;
    return;
  }
  for (int64_t size : sizesOf(axis)) {
    if (size > best.numDevices() / devices)
      return;
    current.axes[axis].size = size;
    if (keepsGroups(axis + 1))
      visit(axis + 1, devices * size);
  }
}

Mesh shardc::shrinkAxes(const Mesh &mesh, const EqualGroups &equalGroups,
                        int64_t maxAxis, AxisSet kept, AxisSet twoWays) {
  return AxisSearch(mesh, equalGroups, maxAxis, kept, twoWays).run();
}
