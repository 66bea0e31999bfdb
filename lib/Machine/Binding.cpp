//===- Binding.cpp - Where mesh axes lie on the machine -------------------===//
//
// Binds logical mesh axes to parts of physical axes: as the program says, else
// to whole physical axes in order where the sizes allow, else those that a
// torus has the like of to whole axes and the others row-major with the last
// mesh axis innermost (docs/Language.md#3-machine-and-mesh).
//
//===----------------------------------------------------------------------===//

#include "Levels.h"
#include "shardc/Machine/Machine.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <set>

using namespace llvm;
using namespace shardc;

namespace {

/// Physical axes that one mesh axis may take, innermost first.
using Candidates = SmallVector<unsigned, 4>;

/// Lays mesh axes over physical ones, one after the other from the inside out:
/// each takes as much as it can of its first candidate, the rest of the next.
/// Backtracks where a smaller share makes the others fit.
class Packer {
public:
  Packer(const Mesh &mesh, ArrayRef<PhysicalAxis> physical,
         ArrayRef<AxisIndex> order, ArrayRef<Candidates> candidates)
      : mesh(mesh), physical(physical), order(order), candidates(candidates),
        used(physical.size(), 1) {
    parts.resize(mesh.size());
  }

  bool pack() { return placeAxis(0); }

  /// Parts of each mesh axis, innermost first.
  SmallVector<SmallVector<AxisPart, 2>, 4> parts;
  /// After a failure: the axis that could not be placed.
  AxisIndex stuck() const { return order[deepest]; }

private:
  bool placeAxis(unsigned step);
  bool spread(unsigned step, unsigned candidate, int64_t left);

  const Mesh &mesh;
  ArrayRef<PhysicalAxis> physical;
  ArrayRef<AxisIndex> order;
  ArrayRef<Candidates> candidates;
  /// Positions of each physical axis that are taken, the inner ones.
  SmallVector<int64_t, 4> used;
  unsigned deepest = 0;
  std::set<SmallVector<int64_t, 8>> failures;
};

} // namespace

/// Divisors of `number` up to `limit`, descending.
static SmallVector<int64_t, 16> divisorsUpTo(int64_t number, int64_t limit) {
  SmallVector<int64_t, 16> divisors;
  for (int64_t low = 1; low <= number / low; ++low) {
    if (number % low != 0)
      continue;
    if (low <= limit)
      divisors.push_back(low);
    if (number / low != low && number / low <= limit)
      divisors.push_back(number / low);
  }
  llvm::sort(divisors, std::greater<>());
  return divisors;
}

bool Packer::placeAxis(unsigned step) {
  if (step == order.size())
    return true;
  deepest = std::max(deepest, step);
  return spread(step, 0, mesh.axes[order[step]].size);
}

bool Packer::spread(unsigned step, unsigned candidate, int64_t left) {
  if (left == 1)
    return placeAxis(step + 1);
  AxisIndex axis = order[step];
  if (candidate == candidates[axis].size())
    return false;
  SmallVector<int64_t, 8> state = {step, candidate, left};
  append_range(state, used);
  if (failures.contains(state))
    return false;
  unsigned target = candidates[axis][candidate];
  int64_t stride = used[target];
  int64_t room = physical[target].size / stride;
  for (int64_t share : divisorsUpTo(left, room)) {
    if (share > 1)
      parts[axis].push_back({target, share, stride});
    used[target] = stride * share;
    if (spread(step, candidate + 1, left / share))
      return true;
    used[target] = stride;
    if (share > 1)
      parts[axis].pop_back();
  }
  failures.insert(state);
  return false;
}

namespace {

/// One call of bindMesh.
class Binder {
public:
  Binder(const Machine &machine, const Mesh &mesh,
         ArrayRef<AxisRequest> requests, unsigned where)
      : machine(machine), mesh(mesh), requests(requests), where(where),
        physical(physicalAxes(machine)), candidates(mesh.size()),
        isNamed(physical.size(), false) {}

  MachineOr<MeshBinding> bind();

private:
  std::optional<MachineError> checkSize() const;
  std::optional<MachineError> resolveRequests();
  std::optional<MachineError> resolveRequest(AxisIndex axis);
  MachineError unknownName(AxisIndex axis, StringRef name) const;
  MachineError cannotPlace(AxisIndex axis) const;

  bool needsPlace(AxisIndex axis) const { return mesh.axes[axis].size > 1; }
  bool isBound(AxisIndex axis) const { return !requests[axis].on.empty(); }
  SmallVector<AxisIndex, 8> placementOrder() const;
  unsigned slowestNeeded() const;
  bool matchWholeAxes();
  bool matchSomeAxes();
  void allowAll(bool alsoNamed);

  const Machine &machine;
  const Mesh &mesh;
  ArrayRef<AxisRequest> requests;
  unsigned where;
  SmallVector<PhysicalAxis, 4> physical;
  SmallVector<Candidates, 4> candidates;
  /// Physical axes that the program binds mesh axes to.
  SmallVector<bool, 4> isNamed;
};

} // namespace

std::optional<MachineError> Binder::checkSize() const {
  int64_t chips = machine.numChips();
  int64_t devices = 1;
  for (const MeshAxis &axis : mesh.axes) {
    if (axis.size <= chips / devices) {
      devices *= axis.size;
      continue;
    }
    std::string message;
    raw_string_ostream os(message);
    os << "mesh of ";
    interleave(
        mesh.axes, os, [&](const MeshAxis &each) { os << each.size; }, "x");
    os << " devices is larger than '"
       << shapeToString(machine.name, machine.shape) << "' with " << chips
       << (chips == 1 ? " chip" : " chips");
    return MachineError{where, message, ""};
  }
  return std::nullopt;
}

MachineError Binder::unknownName(AxisIndex axis, StringRef name) const {
  SmallVector<StringRef, 4> names;
  for (const PhysicalAxis &each : physical)
    names.push_back(each.name);
  std::string note;
  raw_string_ostream os(note);
  if (names.empty()) {
    os << "without a shape, '" << machine.name << "' is one chip";
  } else {
    os << "it has ";
    interleaveComma(names, os,
                    [&](StringRef each) { os << "'" << each << "'"; });
  }
  return {requests[axis].where,
          ("'" + shapeToString(machine.name, machine.shape) +
           "' has no physical axis '" + name + "'")
              .str(),
          note};
}

std::optional<MachineError> Binder::resolveRequest(AxisIndex axis) {
  const AxisRequest &request = requests[axis];
  const MeshAxis &meshAxis = mesh.axes[axis];
  int64_t room = 1;
  for (StringRef name : request.on) {
    const PhysicalAxis *found = find_if(
        physical, [&](const PhysicalAxis &each) { return each.name == name; });
    if (found == physical.end()) {
      bool isOnePosition =
          any_of(allLevels(machine),
                 [&](const PhysicalAxis &each) { return each.name == name; });
      if (!isOnePosition || needsPlace(axis))
        return unknownName(axis, name);
      continue;
    }
    unsigned index = found - physical.begin();
    if (is_contained(candidates[axis], index))
      return MachineError{request.where,
                          ("mesh axis '" + meshAxis.name +
                           "' is bound to physical axis '" + name + "' twice")
                              .str(),
                          ""};
    isNamed[index] = true;
    room *= found->size;
    candidates[axis].insert(candidates[axis].begin(), index);
  }
  if (isBound(axis) && meshAxis.size > room)
    return cannotPlace(axis);
  return std::nullopt;
}

std::optional<MachineError> Binder::resolveRequests() {
  for (unsigned axis = 0; axis < mesh.size(); ++axis)
    if (auto error = resolveRequest(axis))
      return error;
  return std::nullopt;
}

/// Axes in the order in which they are packed: bound ones first, each kind from
/// the last mesh axis, which is the innermost, to the first.
SmallVector<AxisIndex, 8> Binder::placementOrder() const {
  SmallVector<AxisIndex, 8> order;
  for (bool bound : {true, false})
    for (unsigned axis = mesh.size(); axis-- > 0;)
      if (needsPlace(axis) && isBound(axis) == bound)
        order.push_back(axis);
  return order;
}

/// The slowest network that the unbound mesh axes need.
unsigned Binder::slowestNeeded() const {
  int64_t devices = 1;
  for (unsigned axis = 0; axis < mesh.size(); ++axis)
    if (!isBound(axis))
      devices *= mesh.axes[axis].size;
  int64_t chips = 1;
  unsigned slowest = 0;
  for (unsigned index = physical.size(); index-- > 0;) {
    if (isNamed[index] || physical[index].size == 1)
      continue;
    if (chips >= devices && physical[index].network > slowest)
      break;
    chips *= physical[index].size;
    slowest = physical[index].network;
  }
  return slowest;
}

/// Binds the unbound mesh axes to whole physical axes in order, if every one
/// has its like. Slower networks than the mesh needs are left alone.
bool Binder::matchWholeAxes() {
  unsigned slowest = slowestNeeded();
  SmallVector<Candidates, 4> matched = candidates;
  unsigned next = 0;
  for (unsigned axis = 0; axis < mesh.size(); ++axis) {
    if (isBound(axis) || !needsPlace(axis))
      continue;
    while (next < physical.size() &&
           (isNamed[next] || physical[next].network > slowest ||
            physical[next].size != mesh.axes[axis].size))
      ++next;
    if (next == physical.size())
      return false;
    matched[axis] = {next++};
  }
  candidates = std::move(matched);
  return true;
}

/// Binds the unbound mesh axes that have their like in a torus to whole axes of
/// it, and lets the others share the rest; false if none has.
bool Binder::matchSomeAxes() {
  unsigned slowest = slowestNeeded();
  SmallVector<bool, 4> isTaken(isNamed);
  SmallVector<std::optional<unsigned>, 4> whole(mesh.size());
  bool isAny = false;
  for (unsigned axis = 0; axis < mesh.size(); ++axis)
    for (unsigned index = 0; index < physical.size() && !whole[axis]; ++index)
      if (!isBound(axis) && needsPlace(axis) && !isTaken[index] &&
          physical[index].network <= slowest &&
          physical[index].size == mesh.axes[axis].size &&
          machine.networks[physical[index].network].kind ==
              Network::Kind::Torus) {
        whole[axis] = index;
        isTaken[index] = isAny = true;
      }
  for (unsigned axis = 0; axis < mesh.size(); ++axis) {
    if (isBound(axis))
      continue;
    candidates[axis].clear();
    if (whole[axis])
      candidates[axis] = {*whole[axis]};
    for (unsigned index = physical.size(); index-- > 0;)
      if (!whole[axis] && !isTaken[index])
        candidates[axis].push_back(index);
  }
  return isAny;
}

/// Lets the unbound mesh axes take any physical axis, innermost first.
void Binder::allowAll(bool alsoNamed) {
  for (unsigned axis = 0; axis < mesh.size(); ++axis) {
    if (isBound(axis))
      continue;
    candidates[axis].clear();
    for (unsigned index = physical.size(); index-- > 0;)
      if (alsoNamed || !isNamed[index])
        candidates[axis].push_back(index);
  }
}

MachineError Binder::cannotPlace(AxisIndex axis) const {
  const MeshAxis &meshAxis = mesh.axes[axis];
  std::string message;
  raw_string_ostream os(message);
  os << "mesh axis '" << meshAxis.name << "' of size " << meshAxis.size
     << " does not fit on physical "
     << (candidates[axis].size() == 1 ? "axis " : "axes ");
  interleaveComma(reverse(candidates[axis]), os, [&](unsigned index) {
    os << "'" << physical[index].name << "' of size " << physical[index].size;
  });
  bool isShared = any_of(enumerate(candidates), [&](auto each) {
    return each.index() != axis && needsPlace(each.index()) &&
           any_of(each.value(), [&](unsigned index) {
             return is_contained(candidates[axis], index);
           });
  });
  if (isShared)
    os << " beside the other mesh axes";
  unsigned at = isBound(axis) ? requests[axis].where : where;
  return {at, message, ""};
}

MachineOr<MeshBinding> Binder::bind() {
  if (auto error = checkSize())
    return *error;
  if (auto error = resolveRequests())
    return *error;
  SmallVector<AxisIndex, 8> order = placementOrder();
  bool isWhole = matchWholeAxes();
  if (!isWhole &&
      !(matchSomeAxes() && Packer(mesh, physical, order, candidates).pack()))
    allowAll(/*alsoNamed=*/false);
  Packer strict(mesh, physical, order, candidates);
  bool isPacked = strict.pack();
  SmallVector<SmallVector<AxisPart, 2>, 4> parts = std::move(strict.parts);
  if (!isPacked && !isWhole) {
    allowAll(/*alsoNamed=*/true);
    Packer loose(mesh, physical, order, candidates);
    if (!loose.pack())
      return cannotPlace(loose.stuck());
    parts = std::move(loose.parts);
  } else if (!isPacked) {
    return cannotPlace(strict.stuck());
  }
  MeshBinding binding;
  binding.parts = std::move(parts);
  for (SmallVector<AxisPart, 2> &axisParts : binding.parts)
    std::reverse(axisParts.begin(), axisParts.end());
  binding.idleChips = machine.numChips() - mesh.numDevices();
  return binding;
}

MachineOr<MeshBinding> shardc::bindMesh(const Machine &machine,
                                        const Mesh &mesh,
                                        ArrayRef<AxisRequest> requests,
                                        unsigned where) {
  assert(requests.size() == mesh.size() && "one request per mesh axis");
  return Binder(machine, mesh, requests, where).bind();
}
