//===- LayoutSpace.cpp - Layouts that a reshard may pass through ----------===//
//
// Enumerates the nodes of a search and keeps their number in bounds.
//
//===----------------------------------------------------------------------===//

#include "LayoutSpace.h"
#include "llvm/ADT/STLExtras.h"

using namespace shardc;
using namespace shardc::reshard;

LayoutSpace LayoutSpace::ofAxes(unsigned rank, AxisSet axes, AxisSet partial,
                                DimList padded) {
  LayoutSpace space;
  space.fixed.resize(rank);
  for (AxisIndex axis = 0; axis < kMaxMeshAxes; ++axis)
    if (axes & axisBit(axis))
      space.atoms.push_back({axis});
  space.partial = partial;
  space.padded = std::move(padded);
  return space;
}

Layout shardc::reshard::commonPrefix(const Layout &layout,
                                     const Layout &other) {
  Layout common = Layout::replicated(layout.rank());
  for (auto [prefix, a, b] :
       llvm::zip_equal(common.dims, layout.dims, other.dims))
    for (auto [axis, otherAxis] : llvm::zip(a, b)) {
      if (axis != otherAxis)
        break;
      prefix.push_back(axis);
    }
  common.partial = other.partial;
  return common;
}

DimList shardc::reshard::paddedDims(const Mesh &mesh, const TensorShape &shape,
                                    const Layout &a, const Layout &b) {
  DimList padded;
  for (unsigned dim = 0; dim < shape.rank(); ++dim)
    if (shape.extents[dim] % mesh.groupSize(a.dims[dim]) != 0 ||
        shape.extents[dim] % mesh.groupSize(b.dims[dim]) != 0)
      padded.push_back(dim);
  return padded;
}

/// The axis that splits the parts of `axis` further, if there is one.
static std::optional<AxisIndex> nextAxis(const Layout &layout, AxisIndex axis) {
  for (const AxisList &list : layout.dims) {
    const AxisIndex *place = llvm::find(list, axis);
    if (place != list.end() && place + 1 != list.end())
      return place[1];
  }
  return std::nullopt;
}

/// True if nothing in `layout` keeps `a` and then `b` from being one axis.
static bool actAsOne(const Layout &layout, AxisIndex a, AxisIndex b) {
  if (layout.sharded() & (axisBit(a) | axisBit(b)))
    return nextAxis(layout, a) == b;
  return bool(layout.partial & axisBit(a)) == bool(layout.partial & axisBit(b));
}

LayoutSpace LayoutSpace::between(const Mesh &mesh, const Layout &from,
                                 const Layout &to, DimList padded,
                                 bool fixCommon) {
  LayoutSpace space;
  space.fixed.resize(from.rank());
  if (fixCommon)
    space.fixed = commonPrefix(from, to).dims;
  AxisSet done = 0;
  for (const AxisList &list : space.fixed)
    done |= axisSet(list);
  AxisSet moved = (from.used() | to.used()) & ~done;

  auto successor = [&](AxisIndex axis) -> std::optional<AxisIndex> {
    for (const Layout *layout : {&from, &to})
      if (std::optional<AxisIndex> next = nextAxis(*layout, axis))
        if (actAsOne(from, axis, *next) && actAsOne(to, axis, *next))
          return next;
    return std::nullopt;
  };
  AxisSet followers = 0;
  for (AxisIndex axis = 0; axis < mesh.size(); ++axis)
    if (moved & axisBit(axis))
      if (std::optional<AxisIndex> next = successor(axis))
        followers |= axisBit(*next);
  for (AxisIndex head = 0; head < mesh.size(); ++head) {
    if (!(moved & ~followers & axisBit(head)))
      continue;
    AxisList &atom = space.atoms.emplace_back();
    for (std::optional<AxisIndex> axis = head; axis; axis = successor(*axis))
      atom.push_back(*axis);
  }
  space.partial = from.partial;
  space.padded = std::move(padded);
  return space;
}

double LayoutSpace::count() const {
  // ways[k]: choices of the atoms so far that place k of them; an atom that is
  // not placed is idle or, if it may be, partial.
  llvm::SmallVector<double, 8> ways = {1};
  for (const AxisList &atom : atoms) {
    double unplaced = (axisSet(atom) & ~partial) == 0 ? 2 : 1;
    ways.push_back(0);
    for (size_t placed = ways.size() - 1; placed > 0; --placed)
      ways[placed] = ways[placed] * unplaced + ways[placed - 1];
    ways[0] *= unplaced;
  }
  // The n-th atom that is placed has rank + n places to go.
  double total = 0, orders = 1;
  for (size_t placed = 0; placed < ways.size(); ++placed) {
    total += ways[placed] * orders;
    orders *= static_cast<double>(fixed.size() + placed);
  }
  return total;
}

namespace {
/// Depth-first over the atoms.
class SpaceEnumerator {
public:
  SpaceEnumerator(const Mesh &mesh, const TensorShape &shape,
                  const LayoutSpace &space)
      : mesh(mesh), shape(shape), space(space) {
    atomsOfDim.resize(shape.rank());
  }

  std::vector<Layout> run() {
    place(0);
    llvm::sort(layouts);
    return std::move(layouts);
  }

private:
  void place(unsigned position) {
    if (position == space.atoms.size()) {
      add();
      return;
    }
    place(position + 1);
    for (unsigned dim = 0; dim < shape.rank(); ++dim)
      placeInDim(position, dim);
    AxisSet axes = axisSet(space.atoms[position]);
    if ((axes & ~space.partial) != 0)
      return;
    partial |= axes;
    place(position + 1);
    partial &= ~axes;
  }

  void placeInDim(unsigned position, unsigned dim) {
    AxisSet before = axesOfDim(dim);
    AxisSet axes = before | axisSet(space.atoms[position]);
    if (shape.extents[dim] % mesh.groupSize(axes) != 0 &&
        !llvm::is_contained(space.padded, dim))
      return;
    auto &list = atomsOfDim[dim];
    for (size_t place = 0; place <= list.size(); ++place) {
      list.insert(list.begin() + place, position);
      this->place(position + 1);
      list.erase(list.begin() + place);
    }
  }

  AxisSet axesOfDim(unsigned dim) const {
    AxisSet axes = axisSet(space.fixed[dim]);
    for (unsigned atom : atomsOfDim[dim])
      axes |= axisSet(space.atoms[atom]);
    return axes;
  }

  void add() {
    Layout &layout = layouts.emplace_back();
    layout.dims = space.fixed;
    for (auto [list, atoms] : llvm::zip_equal(layout.dims, atomsOfDim))
      for (unsigned atom : atoms)
        list.append(space.atoms[atom]);
    layout.partial = partial;
  }

  const Mesh &mesh;
  const TensorShape &shape;
  const LayoutSpace &space;
  llvm::SmallVector<llvm::SmallVector<unsigned, 4>, 4> atomsOfDim;
  AxisSet partial = 0;
  std::vector<Layout> layouts;
};
} // namespace

std::vector<Layout> LayoutSpace::enumerate(const Mesh &mesh,
                                           const TensorShape &shape) const {
  return SpaceEnumerator(mesh, shape, *this).run();
}
