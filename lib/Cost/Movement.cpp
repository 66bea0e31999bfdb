//===- Movement.cpp - What each collective does to a layout ---------------===//

#include "shardc/Cost/Movement.h"
#include "llvm/ADT/STLExtras.h"

using namespace shardc;
using llvm::ArrayRef;

static bool isPrefix(ArrayRef<AxisIndex> prefix, ArrayRef<AxisIndex> list) {
  return prefix.size() <= list.size() &&
         list.take_front(prefix.size()) == prefix;
}

/// The axes that dimensions of `longer` have at their minor ends beyond those
/// of `shorter`; nothing if the dimensions differ otherwise.
static std::optional<AxisSet> addedAxes(const Layout &shorter,
                                        const Layout &longer) {
  AxisSet added = 0;
  for (auto [prefix, list] : llvm::zip_equal(shorter.dims, longer.dims)) {
    if (!isPrefix(prefix, list))
      return std::nullopt;
    added |= axisSet(ArrayRef(list).drop_front(prefix.size()));
  }
  return added;
}

/// Partial sums over exactly `axes` are resolved.
static bool resolves(const Layout &from, const Layout &to, AxisSet axes) {
  return (from.partial & ~to.partial) == axes &&
         (to.partial & ~from.partial) == 0;
}

/// Every dimension loses axes at its minor end or gains some there.
static bool exchanges(const Layout &from, const Layout &to, AxisSet axes) {
  AxisSet lost = 0, gained = 0;
  for (auto [before, after] : llvm::zip_equal(from.dims, to.dims)) {
    if (isPrefix(after, before))
      lost |= axisSet(ArrayRef(before).drop_front(after.size()));
    else if (isPrefix(before, after))
      gained |= axisSet(ArrayRef(after).drop_front(before.size()));
    else
      return false;
  }
  return lost == gained && lost == axes;
}

static bool cutsAlike(const Mesh &mesh, const Layout &from, const Layout &to) {
  return llvm::all_of(llvm::zip_equal(from.dims, to.dims),
                      [&](const auto &dims) {
                        auto &[before, after] = dims;
                        return mesh.groupSize(ArrayRef(before)) ==
                               mesh.groupSize(ArrayRef(after));
                      });
}

bool shardc::performs(const Mesh &mesh, CollectiveKind kind, const Layout &from,
                      const Layout &to, AxisSet axes) {
  bool keepsPartial = from.partial == to.partial;
  switch (kind) {
  case CollectiveKind::AllGather:
  case CollectiveKind::HaloExchange: // in place of a gather
    return keepsPartial && addedAxes(to, from) == axes;
  case CollectiveKind::AllSlice:
    return keepsPartial && addedAxes(from, to) == axes;
  case CollectiveKind::AllToAll:
    return keepsPartial && exchanges(from, to, axes);
  case CollectiveKind::ReduceScatter:
  case CollectiveKind::HaloReduce: // in place of that sum
    return resolves(from, to, axes) && addedAxes(from, to) == axes;
  case CollectiveKind::AllReduce:
    return resolves(from, to, axes) && from.dims == to.dims;
  case CollectiveKind::CollectivePermute:
    return keepsPartial && cutsAlike(mesh, from, to) &&
           (axes & ~(from.sharded() | to.sharded())) == 0;
  case CollectiveKind::ToHost:
  case CollectiveKind::FromHost:
    return from == to && axes == 0;
  }
  llvm_unreachable("unknown collective");
}
