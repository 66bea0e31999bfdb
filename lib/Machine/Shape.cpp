//===- Shape.cpp - Shapes of machines -------------------------------------===//
//
// `hardware h100[4, 8]`: one number per torus axis and per switch, outermost
// first, within what the catalogue says can be built
// (docs/Language.md#3-machine-and-mesh).
//
//===----------------------------------------------------------------------===//

#include "Levels.h"
#include "shardc/Machine/Machine.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace shardc;

/// Permutations are routed chip by chip.
static constexpr int64_t kMaxChips = 1 << 20;

namespace {

/// One network's part of a shape: `count` extents from `first` on.
struct ShapePart {
  unsigned network;
  unsigned first;
  unsigned count;
};

} // namespace

/// The networks that a shape of `extents` numbers covers, fastest first; empty
/// if it would cover a torus in part or has more numbers than levels.
static SmallVector<ShapePart, 3> coveredNetworks(const Machine &machine,
                                                 size_t extents) {
  SmallVector<ShapePart, 3> parts;
  size_t left = extents;
  for (auto [index, network] : enumerate(machine.networks)) {
    unsigned count = network.members.size();
    if (left == 0)
      break;
    if (count > left)
      return {};
    left -= count;
    parts.push_back(
        {static_cast<unsigned>(index), static_cast<unsigned>(left), count});
  }
  return left == 0 ? parts : SmallVector<ShapePart, 3>();
}

/// The catalogue's limits of these extents; empty where it states none.
static ArrayRef<int64_t> limitsOf(const Machine &machine, const ShapePart &part,
                                  size_t extents) {
  size_t fromInnermost = extents - part.first;
  if (fromInnermost > machine.maxShape.size())
    return {};
  return ArrayRef(machine.maxShape)
      .slice(machine.maxShape.size() - fromInnermost, part.count);
}

/// True if a part of a shape can be built. A slice of a torus may lie in any
/// orientation.
static bool fits(ArrayRef<int64_t> extents, ArrayRef<int64_t> limits) {
  if (limits.empty())
    return true;
  SmallVector<int64_t, 3> sortedExtents(extents), sortedLimits(limits);
  llvm::sort(sortedExtents);
  llvm::sort(sortedLimits);
  return all_of(zip_equal(sortedExtents, sortedLimits), [](auto pair) {
    return std::get<0>(pair) <= std::get<1>(pair);
  });
}

static const ShapePart *firstThatDoesNotFit(const Machine &machine,
                                            ArrayRef<ShapePart> parts,
                                            ArrayRef<int64_t> shape) {
  return find_if(parts, [&](const ShapePart &part) {
    return !fits(shape.slice(part.first, part.count),
                 limitsOf(machine, part, shape.size()));
  });
}

int64_t shardc::largestDivisorUpTo(int64_t number, int64_t limit) {
  int64_t best = 1;
  for (int64_t low = 1; low <= number / low; ++low) {
    if (number % low != 0)
      continue;
    if (low <= limit)
      best = std::max(best, low);
    if (number / low <= limit)
      best = std::max(best, number / low);
  }
  return best;
}

/// The shape of as many chips that was probably meant: what is too much for a
/// level moves to the next one out. Empty if there is none.
static SmallVector<int64_t, 4> suggestShape(const Machine &machine,
                                            ArrayRef<int64_t> shape) {
  SmallVector<int64_t, 4> suggestion;
  int64_t carry = 1;
  size_t position = shape.size();
  for (const Network &network : machine.networks) {
    if (position == 0 && carry == 1)
      break;
    for (size_t member = network.members.size(); member-- > 0;) {
      int64_t extent = carry;
      if (position > 0)
        extent *= shape[--position];
      carry = 1;
      suggestion.push_back(extent);
      if (suggestion.size() > machine.maxShape.size())
        continue;
      int64_t limit =
          machine.maxShape[machine.maxShape.size() - suggestion.size()];
      suggestion.back() = largestDivisorUpTo(extent, limit);
      carry = extent / suggestion.back();
    }
  }
  std::reverse(suggestion.begin(), suggestion.end());
  SmallVector<ShapePart, 3> parts = coveredNetworks(machine, suggestion.size());
  if (carry != 1 || parts.empty() ||
      firstThatDoesNotFit(machine, parts, suggestion) != parts.end())
    return {};
  return suggestion;
}

static MachineError tooLarge(const Machine &machine, const ShapePart &part,
                             ArrayRef<int64_t> shape, unsigned where) {
  const Network &network = machine.networks[part.network];
  std::string message;
  raw_string_ostream os(message);
  auto printProduct = [&](ArrayRef<int64_t> extents) {
    interleave(extents, os, "x");
  };
  if (network.kind == Network::Kind::Torus)
    os << "a slice of '" << machine.name << "' is at most ";
  else
    os << "level '" << network.members[0] << "' of '" << machine.name
       << "' has at most ";
  printProduct(limitsOf(machine, part, shape.size()));
  os << ", found ";
  printProduct(shape.slice(part.first, part.count));
  MachineError error{where, message, ""};
  SmallVector<int64_t, 4> suggestion = suggestShape(machine, shape);
  if (!suggestion.empty())
    error.note =
        "did you mean '" + shapeToString(machine.name, suggestion) + "'?";
  return error;
}

static MachineError wrongCount(const Machine &machine, size_t found,
                               unsigned where) {
  std::string message;
  raw_string_ostream os(message);
  os << "'" << machine.name << "' ";
  if (machine.networks.empty()) {
    os << "has no network, so it takes no shape";
    return {where, message, ""};
  }
  os << "takes ";
  SmallVector<PhysicalAxis, 4> levels = allLevels(machine);
  size_t count = 0;
  for (const Network &network : machine.networks) {
    count += network.members.size();
    if (count != network.members.size())
      os << " or ";
    os << "[";
    interleaveComma(ArrayRef(levels).take_back(count), os,
                    [&](const PhysicalAxis &level) { os << level.name; });
    os << "]";
  }
  os << " as its shape, found " << found
     << (found == 1 ? " number" : " numbers");
  return {where, message, ""};
}

MachineOr<Machine> shardc::withShape(Machine machine, ArrayRef<int64_t> shape,
                                     unsigned where) {
  machine.shape.assign(shape.begin(), shape.end());
  if (shape.empty())
    return machine;
  SmallVector<ShapePart, 3> parts = coveredNetworks(machine, shape.size());
  if (parts.empty())
    return wrongCount(machine, shape.size(), where);
  int64_t chips = 1;
  for (int64_t extent : shape) {
    if (extent < 1)
      return MachineError{where,
                          "the shape of '" + machine.name +
                              "' has an extent of " + std::to_string(extent) +
                              ", below 1",
                          ""};
    if (MulOverflow(chips, extent, chips) || chips > kMaxChips)
      return MachineError{where,
                          "'" + shapeToString(machine.name, shape) +
                              "' has more than " + std::to_string(kMaxChips) +
                              " chips",
                          ""};
  }
  const ShapePart *tooBig = firstThatDoesNotFit(machine, parts, shape);
  if (tooBig != parts.end())
    return tooLarge(machine, *tooBig, shape, where);
  return machine;
}
