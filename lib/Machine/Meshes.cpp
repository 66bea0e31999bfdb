//===- Meshes.cpp - The meshes that a machine can have --------------------===//
//
// Sizes are the factorisations of the number of chips; their bindings are those
// that a program can ask for (Bindings.h), of which symmetric ones are kept
// once: like axes of a torus may be exchanged, members of a switch are all
// alike, and so are mesh axes of equal sizes that nothing tells apart.
//
//===----------------------------------------------------------------------===//

#include "shardc/Machine/Meshes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <array>
#include <optional>
#include <set>

using namespace llvm;
using namespace shardc;

/// Bindings of one family that are looked at.
static constexpr size_t kMaxBindings = 2000;
/// Sizes that are looked at.
static constexpr size_t kMaxSizes = 5000;

unsigned MeshFamily::wideAxes() const {
  return count_if(mesh.axes,
                  [](const MeshAxis &axis) { return axis.size > 1; });
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

namespace {
using Sizes = SmallVector<int64_t, 4>;

/// Lists the factorisations of a number.
class Factorisations {
public:
  Factorisations(size_t slots, bool descending)
      : slots(slots), descending(descending) {}

  std::vector<Sizes> of(int64_t number) {
    extend(number, number);
    return std::move(found);
  }

private:
  void extend(int64_t left, int64_t largest) {
    if (found.size() >= kMaxSizes)
      return;
    bool isLast = current.size() + 1 == slots;
    for (int64_t size = isLast ? left : 1; size <= left; ++size) {
      if (left % size != 0 || (descending && size > largest) ||
          (size > 1 && wide == kMaxAutoAxes))
        continue;
      current.push_back(size);
      wide += size > 1;
      if (isLast)
        found.push_back(current);
      else
        extend(left / size, size);
      wide -= size > 1;
      current.pop_back();
    }
  }

  size_t slots;
  bool descending;
  Sizes current;
  unsigned wide = 0;
  std::vector<Sizes> found;
};
} // namespace

static size_t countWide(ArrayRef<int64_t> sizes) {
  return count_if(sizes, [](int64_t size) { return size > 1; });
}

/// Fewer axes first, then larger ones first.
static std::vector<Sizes> listSizes(int64_t chips, const MeshNames &names) {
  bool isOpen = names.names.empty();
  size_t slots = isOpen ? kMaxAutoAxes : names.names.size();
  auto ofStages = find(names.names, names.ofStages);
  bool hasStages = ofStages != names.names.end();
  std::vector<Sizes> all =
      Factorisations(slots, isOpen || (names.areAlike && !hasStages)).of(chips);
  if (hasStages && names.areAlike)
    erase_if(all, [&](Sizes sizes) {
      sizes.erase(sizes.begin() + (ofStages - names.names.begin()));
      return !is_sorted(sizes, std::greater<int64_t>());
    });
  if (isOpen)
    for (Sizes &sizes : all)
      sizes.resize(countWide(sizes));
  llvm::sort(all, [](const Sizes &a, const Sizes &b) {
    return std::pair(countWide(a), b) < std::pair(countWide(b), a);
  });
  return all;
}

//===----------------------------------------------------------------------===//
// Symmetry
//===----------------------------------------------------------------------===//

namespace {
/// All permutations of positions that exchange only like ones.
template <typename Alike>
std::vector<SmallVector<unsigned, 4>>
exchanges(const SmallVector<unsigned, 4> &positions, Alike alike) {
  SmallVector<unsigned, 4> order = positions;
  std::vector<SmallVector<unsigned, 4>> result;
  do
    if (all_of(zip(positions, order), [&](auto each) {
          auto [from, to] = each;
          return from == to || alike(from, to);
        }))
      result.push_back(order);
  while (std::next_permutation(order.begin(), order.end()));
  return result;
}

/// Tells whether a binding is another one seen through a symmetry.
class Symmetry {
public:
  Symmetry(const Machine &machine, const Mesh &mesh, bool axesAreAlike)
      : machine(machine), physical(physicalAxes(machine)),
        ofMachine(
            exchanges(positions(physical.size(), [](unsigned) { return true; }),
                      [&](unsigned a, unsigned b) { return areLike(a, b); })),
        ofMesh(exchanges(
            positions(mesh.size(),
                      [&](unsigned axis) { return mesh.axes[axis].size > 1; }),
            [&](unsigned a, unsigned b) {
              return axesAreAlike &&
                     mesh.axes[a].isStages == mesh.axes[b].isStages &&
                     mesh.axes[a].size == mesh.axes[b].size;
            })) {}

  /// True once for bindings that are symmetric.
  bool isNew(const MeshBinding &binding) {
    return seen.insert(normalForm(binding)).second;
  }

private:
  using Form = std::vector<std::vector<std::array<int64_t, 3>>>;

  template <typename Wanted>
  static SmallVector<unsigned, 4> positions(unsigned size, Wanted wanted) {
    SmallVector<unsigned, 4> result;
    for (unsigned i = 0; i < size; ++i)
      if (wanted(i))
        result.push_back(i);
    return result;
  }

  bool isTorus(unsigned axis) const {
    return machine.networks[physical[axis].network].kind ==
           Network::Kind::Torus;
  }
  bool areLike(unsigned a, unsigned b) const {
    return isTorus(a) && physical[a].network == physical[b].network &&
           physical[a].size == physical[b].size &&
           wraps(machine, a) == wraps(machine, b);
  }

  Form formOf(const MeshBinding &binding, ArrayRef<unsigned> axes,
              ArrayRef<unsigned> places) const {
    Form form;
    for (unsigned axis : axes) {
      auto &parts = form.emplace_back();
      for (const AxisPart &part : binding.parts[axis])
        parts.push_back({places[part.physical], part.size,
                         isTorus(part.physical) ? part.stride : 0});
      llvm::sort(parts);
    }
    return form;
  }

  Form normalForm(const MeshBinding &binding) const {
    std::optional<Form> least;
    for (ArrayRef<unsigned> axes : ofMesh)
      for (ArrayRef<unsigned> places : ofMachine)
        if (Form form = formOf(binding, axes, places); !least || form < *least)
          least = std::move(form);
    return *least;
  }

  const Machine &machine;
  SmallVector<PhysicalAxis, 4> physical;
  std::vector<SmallVector<unsigned, 4>> ofMachine, ofMesh;
  std::set<Form> seen;
};
} // namespace

/// True if every mesh axis names physical axes in the machine's order.
static bool isInOrder(const NamedBinding &binding) {
  return all_of(binding.binding.parts, [](ArrayRef<AxisPart> parts) {
    return is_sorted(parts, [](const AxisPart &a, const AxisPart &b) {
      return a.physical < b.physical;
    });
  });
}

/// Whole physical axes are named in the machine's order.
static void sortWhole(ArrayRef<PhysicalAxis> physical, NamedBinding &binding) {
  for (auto [parts, on] : zip_equal(binding.binding.parts, binding.on)) {
    if (!all_of(parts, [&](const AxisPart &part) {
          return part.size == physical[part.physical].size;
        }))
      continue;
    llvm::sort(parts, [](const AxisPart &a, const AxisPart &b) {
      return a.physical < b.physical;
    });
    for (auto [part, name] : zip_equal(parts, on))
      name = physical[part.physical].name;
  }
}

static std::vector<NamedBinding>
distinctBindings(const Machine &machine, const Mesh &mesh, bool areAlike) {
  Symmetry symmetry(machine, mesh, areAlike);
  SmallVector<PhysicalAxis, 4> physical = physicalAxes(machine);
  std::vector<NamedBinding> result;
  std::vector<NamedBinding> all =
      enumerateBindings(machine, mesh, kMaxBindings);
  // Those in the machine's order stand for the others.
  for (bool inOrder : {true, false})
    for (NamedBinding &each : all)
      if (isInOrder(each) == inOrder && symmetry.isNew(each.binding)) {
        sortWhole(physical, each);
        result.push_back(std::move(each));
      }
  return result;
}

//===----------------------------------------------------------------------===//
// Meshes
//===----------------------------------------------------------------------===//

static std::string defaultName(size_t axis) {
  return std::string(1, static_cast<char>('X' + axis));
}

std::vector<MeshFamily> shardc::enumerateMeshes(const Machine &machine,
                                                const MeshNames &names) {
  std::vector<MeshFamily> families;
  for (ArrayRef<int64_t> sizes : listSizes(machine.numChips(), names)) {
    MeshFamily family;
    for (auto [axis, size] : enumerate(sizes))
      family.mesh.axes.push_back(
          {names.names.empty() ? defaultName(axis) : names.names[axis], size,
           !names.names.empty() && names.names[axis] == names.ofStages});
    family.bindings = distinctBindings(machine, family.mesh, names.areAlike);
    if (!family.bindings.empty())
      families.push_back(std::move(family));
  }
  return families;
}

BoundMesh shardc::boundMesh(const MeshFamily &family,
                            const NamedBinding &binding, bool renamed) {
  BoundMesh result;
  for (auto [place, axis] : enumerate(binding.order)) {
    result.mesh.axes.push_back(family.mesh.axes[axis]);
    if (renamed)
      result.mesh.axes.back().name = family.mesh.axes[place].name;
    result.on.push_back(binding.on[axis]);
  }
  return result;
}

std::string shardc::toString(const BoundMesh &mesh) {
  std::string text;
  raw_string_ostream os(text);
  os << "[";
  interleaveComma(zip(mesh.mesh.axes, mesh.on), os, [&](auto each) {
    auto &[axis, on] = each;
    os << axis.name << "=" << axis.size;
    if (on.size() == 1)
      os << " on " << on.front();
    else if (on.size() > 1)
      os << " on (" << join(on, ", ") << ")";
  });
  os << "]";
  return text;
}
