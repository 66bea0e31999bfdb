//===- Machine.cpp - Peaks, names and physical axes of machines -----------===//
//
// The facts about a machine that need no checking: its peaks with the fallbacks
// of docs/CostModel.md#2-one-operation-on-one-device, and its levels in the
// order of its shape.
//
//===----------------------------------------------------------------------===//

#include "shardc/Machine/Machine.h"
#include "Levels.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace shardc;

int64_t Machine::numChips() const {
  int64_t chips = 1;
  for (int64_t extent : shape)
    chips *= extent;
  return chips;
}

/// Types whose stated peaks serve `type`, the best match first.
static SmallVector<StringRef, 6> peakFallbacks(StringRef type) {
  static constexpr StringRef kByteTypes[] = {"int8", "f8e4m3", "f8e5m2"};
  static constexpr StringRef kHalfTypes[] = {"bf16", "f16"};
  SmallVector<StringRef, 6> chain = {type};
  bool isNibble = type == "int4" || type == "f4e2m1";
  if (isNibble || type == "uint8" || is_contained(kByteTypes, type))
    append_range(chain, kByteTypes);
  if (isNibble || type == "f8e8m0" || type == "f32" || type == "tf32" ||
      is_contained(kHalfTypes, type))
    append_range(chain, kHalfTypes);
  return chain;
}

std::optional<double> Machine::peak(StringRef type) const {
  for (StringRef candidate : peakFallbacks(type))
    if (auto it = flops.find(candidate.str()); it != flops.end())
      return it->second;
  return std::nullopt;
}

unsigned shardc::elementTypeBits(StringRef type) {
  return StringSwitch<unsigned>(type)
      .Case("f64", 64)
      .Cases({"f32", "tf32", "int32"}, 32)
      .Cases({"f16", "bf16", "int16"}, 16)
      .Cases({"f8e4m3", "f8e5m2", "f8e8m0", "int8", "uint8", "bool"}, 8)
      .Cases({"f4e2m1", "int4"}, 4)
      .Default(0);
}

StringRef shardc::nearestName(StringRef name, ArrayRef<StringRef> candidates,
                              unsigned maxDistance) {
  StringRef nearest;
  unsigned least = maxDistance;
  for (StringRef candidate : candidates) {
    // A distance over the limit is not computed: names may be long.
    unsigned distance = name.edit_distance(
        candidate, /*AllowReplacements=*/true, /*MaxEditDistance=*/least);
    if (distance < least || (distance == least && nearest.empty())) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string shardc::shapeToString(StringRef name, ArrayRef<int64_t> shape) {
  if (shape.empty())
    return name.str();
  std::string text;
  raw_string_ostream os(text);
  os << name << '[';
  interleaveComma(shape, os);
  os << ']';
  return text;
}

SmallVector<PhysicalAxis, 4> shardc::allLevels(const Machine &machine) {
  SmallVector<PhysicalAxis, 4> levels;
  for (unsigned index = machine.networks.size(); index-- > 0;)
    for (const std::string &member : machine.networks[index].members)
      levels.push_back({member, 1, index});
  return levels;
}

SmallVector<PhysicalAxis, 4> shardc::physicalAxes(const Machine &machine) {
  SmallVector<PhysicalAxis, 4> levels = allLevels(machine);
  assert(machine.shape.size() <= levels.size() && "shape not checked");
  SmallVector<PhysicalAxis, 4> axes(
      ArrayRef(levels).take_back(machine.shape.size()));
  for (auto [axis, extent] : zip_equal(axes, machine.shape))
    axis.size = extent;
  return axes;
}

bool shardc::wraps(const Machine &machine, unsigned physical) {
  SmallVector<PhysicalAxis, 4> axes = physicalAxes(machine);
  const PhysicalAxis &axis = axes[physical];
  const Network &network = machine.networks[axis.network];
  if (network.kind != Network::Kind::Torus || axis.size == 1)
    return false;
  switch (network.wrap) {
  case Network::WrapRule::None:
    return false;
  case Network::WrapRule::All:
    return true;
  case Network::WrapRule::Exactly:
    return axis.size == network.wrapParameter;
  case Network::WrapRule::MultipleOf:
    return all_of(axes, [&](const PhysicalAxis &other) {
      return other.network != axis.network ||
             other.size % network.wrapParameter == 0;
    });
  }
  llvm_unreachable("covered switch");
}
