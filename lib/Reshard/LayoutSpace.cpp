//===- LayoutSpace.cpp - Layouts that a reshard may pass through ----------===//
//
// Enumerates the nodes of a search and keeps their number in bounds.
//
//===----------------------------------------------------------------------===//

#include "LayoutSpace.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"

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

AxisLinks::AxisLinks(const Layout &layout) : partial(layout.partial) {
  for (AxisIndex axis = 0; axis < kMaxMeshAxes; ++axis)
    next[axis] = axis;
  for (auto [dim, list] : llvm::enumerate(layout.dims)) {
    sharded |= axisSet(list);
    if (!list.empty())
      dims |= DimSet(1) << dim;
    for (size_t place = 0; place + 1 < list.size(); ++place)
      next[list[place]] = list[place + 1];
  }
}

/// True if nothing in a layout keeps `a` and then `b` from being one axis.
static bool actAsOne(const AxisLinks &links, AxisIndex a, AxisIndex b) {
  if (links.sharded & (axisBit(a) | axisBit(b)))
    return links.next[a] == b;
  return bool(links.partial & axisBit(a)) == bool(links.partial & axisBit(b));
}

AxisSuccessors shardc::reshard::axesTogether(AxisSet axes,
                                             const AxisLinks &from,
                                             const AxisLinks &to) {
  AxisSuccessors successors;
  AxisSet placed = from.sharded | to.sharded;
  for (AxisIndex axis = 0; axis < kMaxMeshAxes; ++axis) {
    successors[axis] = axis;
    if (!(axes & axisBit(axis)))
      continue;
    AxisIndex next = from.next[axis] != axis ? from.next[axis] : to.next[axis];
    if (!(placed & axisBit(axis))) {
      AxisSet after = axes & ~((axisBit(axis) << 1) - 1);
      next = after ? AxisIndex(llvm::countr_zero(after)) : axis;
    }
    if (next != axis && actAsOne(from, axis, next) && actAsOne(to, axis, next))
      successors[axis] = next;
  }
  return successors;
}

AxisSuccessors shardc::reshard::linksWithin(const AxisBlocks &blocks,
                                            const AxisLinks &links) {
  AxisSuccessors successors;
  for (AxisIndex axis = 0; axis < kMaxMeshAxes; ++axis)
    successors[axis] = axis;
  for (const AxisList &block : blocks)
    for (size_t place = 0; place + 1 < block.size(); ++place)
      if (actAsOne(links, block[place], block[place + 1]))
        successors[block[place]] = block[place + 1];
  return successors;
}

LayoutSpace LayoutSpace::joined(unsigned rank, AxisSet axes,
                                const AxisSuccessors &successors,
                                AxisSet partial, DimList padded) {
  LayoutSpace space;
  space.fixed.resize(rank);
  AxisSet followers = 0;
  for (AxisIndex axis = 0; axis < kMaxMeshAxes; ++axis)
    if ((axes & axisBit(axis)) && successors[axis] != axis)
      followers |= axisBit(successors[axis]);
  for (AxisIndex head = 0; head < kMaxMeshAxes; ++head) {
    if (!(axes & ~followers & axisBit(head)))
      continue;
    AxisList &atom = space.atoms.emplace_back();
    for (AxisIndex axis = head;; axis = successors[axis]) {
      atom.push_back(axis);
      if (successors[axis] == axis)
        break;
    }
  }
  space.partial = partial;
  space.padded = std::move(padded);
  return space;
}

LayoutSpace LayoutSpace::between(const Layout &from, const Layout &to,
                                 DimList padded, bool fixCommon) {
  Layout common = Layout::replicated(from.rank());
  if (fixCommon)
    common = commonPrefix(from, to);
  AxisSet moved = (from.used() | to.used()) & ~common.sharded();
  LayoutSpace space = joined(
      from.rank(), moved, axesTogether(moved, AxisLinks(from), AxisLinks(to)),
      from.partial, std::move(padded));
  space.fixed = std::move(common.dims);
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
  // The n-th atom that is placed has as many places to go as there are
  // dimensions, and n more.
  size_t numDims = 0;
  for (size_t dim = 0; dim < fixed.size(); ++dim)
    numDims += dims >> dim & 1;
  double total = 0, orders = 1;
  for (size_t placed = 0; placed < ways.size(); ++placed) {
    total += ways[placed] * orders;
    orders *= static_cast<double>(numDims + placed);
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
      if (space.dims >> dim & 1)
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
