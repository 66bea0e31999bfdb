//===- Bindings.cpp - The bindings that a program may ask for -------------===//
//
// A depth-first search that places one mesh axis after the other, each inside
// the next as on the physical axes that they share. Of the orders that lead to
// the same binding it keeps one: an axis follows one that stands before it in
// the mesh only where the two share a physical axis.
//
//===----------------------------------------------------------------------===//

#include "shardc/Machine/Bindings.h"
#include "Levels.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <set>

using namespace llvm;
using namespace shardc;

/// Physical axes of one mesh axis: more make no collective faster.
static constexpr size_t kMaxParts = 4;
/// Steps of the search, where most of them lead nowhere.
static constexpr size_t kMaxSteps = 20000;

namespace {

class BindingSearch {
public:
  BindingSearch(const Machine &machine, const Mesh &mesh, size_t limit)
      : machine(machine), mesh(mesh), limit(limit),
        physical(physicalAxes(machine)), used(physical.size(), 1) {
    for (unsigned index = 0; index < physical.size(); ++index)
      isRing.push_back(wraps(machine, index));
    parts.resize(mesh.size());
    for (unsigned axis = mesh.size(); axis-- > 0;)
      if (mesh.axes[axis].size > 1)
        waiting.push_back(axis);
  }

  std::vector<NamedBinding> run() {
    placeNext(std::nullopt);
    return std::move(found);
  }

private:
  using Parts = SmallVector<AxisPart, 2>;

  void placeNext(std::optional<AxisIndex> last);
  void spread(AxisIndex axis, std::optional<AxisIndex> last, int64_t left);
  void record();
  bool hasLikeBefore(unsigned index) const;
  bool shares(AxisIndex a, AxisIndex b) const;
  bool isInside(AxisIndex inner, AxisIndex outer) const;
  bool isDone() const { return found.size() >= limit || steps >= kMaxSteps; }

  const Machine &machine;
  const Mesh &mesh;
  size_t limit;
  SmallVector<PhysicalAxis, 4> physical;
  SmallVector<bool, 4> isRing;
  /// Positions of each physical axis that are taken, the inner ones.
  SmallVector<int64_t, 4> used;
  /// Mesh axes without a place, the last one first.
  SmallVector<AxisIndex, 4> waiting;
  /// Parts of each mesh axis, innermost first.
  SmallVector<Parts, 4> parts;
  std::set<std::vector<int64_t>> seen;
  std::vector<NamedBinding> found;
  size_t steps = 0;
};

} // namespace

bool BindingSearch::shares(AxisIndex a, AxisIndex b) const {
  return any_of(parts[a], [&](const AxisPart &part) {
    return any_of(parts[b], [&](const AxisPart &other) {
      return other.physical == part.physical;
    });
  });
}

/// True if `inner` must be listed behind `outer`.
bool BindingSearch::isInside(AxisIndex inner, AxisIndex outer) const {
  return any_of(parts[inner], [&](const AxisPart &part) {
    return any_of(parts[outer], [&](const AxisPart &other) {
      return other.physical == part.physical && part.stride < other.stride;
    });
  });
}

/// True if an axis of the same torus before this one would do as well.
bool BindingSearch::hasLikeBefore(unsigned index) const {
  const PhysicalAxis &wanted = physical[index];
  if (machine.networks[wanted.network].kind != Network::Kind::Torus ||
      used[index] > 1)
    return false;
  for (unsigned before = 0; before < index; ++before)
    if (physical[before].network == wanted.network &&
        physical[before].size == wanted.size &&
        isRing[before] == isRing[index] && used[before] == 1)
      return true;
  return false;
}

void BindingSearch::placeNext(std::optional<AxisIndex> last) {
  if (waiting.empty())
    return record();
  for (size_t i = 0; i < waiting.size() && !isDone(); ++i) {
    AxisIndex axis = waiting[i];
    waiting.erase(waiting.begin() + i);
    spread(axis, last, mesh.axes[axis].size);
    waiting.insert(waiting.begin() + i, axis);
  }
}

void BindingSearch::spread(AxisIndex axis, std::optional<AxisIndex> last,
                           int64_t left) {
  if (isDone())
    return;
  ++steps;
  if (left == 1) {
    if (!last || axis < *last || shares(axis, *last))
      placeNext(axis);
    return;
  }
  if (parts[axis].size() == kMaxParts)
    return;
  for (unsigned index = physical.size(); index-- > 0;) {
    if (any_of(parts[axis],
               [&](const AxisPart &part) { return part.physical == index; }) ||
        hasLikeBefore(index))
      continue;
    int64_t stride = used[index];
    int64_t share = largestDivisorUpTo(left, physical[index].size / stride);
    if (share == 1)
      continue;
    parts[axis].push_back({index, share, stride});
    used[index] = stride * share;
    spread(axis, last, left / share);
    used[index] = stride;
    parts[axis].pop_back();
  }
}

void BindingSearch::record() {
  NamedBinding result;
  std::vector<int64_t> key;
  for (const Parts &inward : parts) {
    auto &outward = result.binding.parts.emplace_back();
    auto &on = result.on.emplace_back();
    for (const AxisPart &part : reverse(inward)) {
      outward.push_back(part);
      on.push_back(physical[part.physical].name);
      key.insert(key.end(), {part.physical, part.size, part.stride});
    }
    key.push_back(-1);
  }
  if (!seen.insert(std::move(key)).second)
    return;
  result.binding.idleChips = machine.numChips() - mesh.numDevices();
  // As in the mesh, but for axes that must stand behind later ones.
  SmallVector<AxisIndex, 4> rest;
  for (unsigned axis = 0; axis < mesh.size(); ++axis)
    rest.push_back(axis);
  while (!rest.empty()) {
    auto *next = find_if(rest, [&](AxisIndex axis) {
      return none_of(rest,
                     [&](AxisIndex other) { return isInside(axis, other); });
    });
    if (next == rest.end())
      return; // each would have to stand behind the other
    result.order.push_back(*next);
    rest.erase(next);
  }
  found.push_back(std::move(result));
}

std::vector<NamedBinding> shardc::enumerateBindings(const Machine &machine,
                                                    const Mesh &mesh,
                                                    size_t limit) {
  return BindingSearch(machine, mesh, limit).run();
}

std::string shardc::toString(const Mesh &mesh, const NamedBinding &binding) {
  std::string text;
  raw_string_ostream os(text);
  os << "mesh [";
  interleaveComma(binding.order, os, [&](AxisIndex axis) {
    os << mesh.axes[axis].name << "=" << mesh.axes[axis].size;
    ArrayRef<std::string> on = binding.on[axis];
    if (on.size() == 1)
      os << " on " << on.front();
    else if (on.size() > 1)
      os << " on (" << join(on, ", ") << ")";
  });
  os << "]";
  return text;
}
