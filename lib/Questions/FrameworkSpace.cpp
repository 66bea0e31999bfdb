//===- FrameworkSpace.cpp - The plans that a framework expresses ----------===//
//
// The tables of docs/Frameworks.md#the-roles-of-axes as constraints of a
// search.
//
//===----------------------------------------------------------------------===//

#include "FrameworkSpace.h"
#include "llvm/ADT/STLExtras.h"

using namespace shardc;
using Role = AxisRoles::Role;
using Zero = AxisRoles::Zero;

const FrameworkSpace &shardc::spaceOf(Framework framework) {
  static constexpr Zero all[] = {Zero::Weights, Zero::Gradients,
                                 Zero::Optimizer, Zero::None};
  static constexpr Zero fsdp[] = {Zero::Weights, Zero::Gradients, Zero::None};
  static constexpr Zero maxtext[] = {Zero::Weights, Zero::Optimizer,
                                     Zero::None};
  static constexpr llvm::StringLiteral remats[] = {"none", "full"};
  static constexpr llvm::StringLiteral megatronRemats[] = {"none", "norms",
                                                           "full"};
  static constexpr llvm::StringLiteral products[] = {"products", "full"};
  static constexpr llvm::StringLiteral megatronOrders[] = {
      "1f1b", "interleaved(2)", "interleaved(4)"};
  static constexpr llvm::StringLiteral torchtitanOrders[] = {
      "1f1b", "interleaved(2)", "interleaved(4)", "gpipe"};
  static constexpr llvm::StringLiteral maxtextOrders[] = {"gpipe"};
  static const FrameworkSpace megatron = {all,
                                          llvm::ArrayRef(all).drop_back(),
                                          all,
                                          megatronRemats,
                                          megatronOrders,
                                          true,
                                          false};
  static const FrameworkSpace torchtitan = {
      fsdp, llvm::ArrayRef(fsdp).drop_back(), llvm::ArrayRef(fsdp).drop_back(),
      remats, torchtitanOrders};
  static const FrameworkSpace maxText = {maxtext,
                                         llvm::ArrayRef(maxtext).take_front(1),
                                         llvm::ArrayRef(maxtext).take_front(1),
                                         products,
                                         maxtextOrders,
                                         true};
  return pickFor(framework, megatron, torchtitan, maxText);
}

namespace {

/// Adds axes from the outermost one on.
class RoleLister {
public:
  RoleLister(const FrameworkSpace &space, const RoleLimits &limits,
             const Mesh *given)
      : space(space), limits(limits), given(given) {}

  std::vector<RoleMesh> run(int64_t chips);

private:
  /// Places of the order of ranks; tensor parallelism has two roles.
  enum Place { Stages, Replicated, Sharded, Experts, Context, Tensor, End };
  void addFrom(Place place, int64_t left);
  void addGiven(size_t axis, Place place);
  void finish();
  bool fits() const;
  Role roleOf(Place place, bool splitsSequences) const;
  llvm::StringRef nameOf(Place place) const;
  int64_t sizeOf(Place place) const;

  const FrameworkSpace &space;
  const RoleLimits &limits;
  const Mesh *given;
  std::vector<std::pair<Place, MeshAxis>> axes;
  std::vector<RoleMesh> result;
};

} // namespace

llvm::StringRef RoleLister::nameOf(Place place) const {
  constexpr llvm::StringLiteral names[] = {"pp", "rep", "dp", "ep", "cp", "tp"};
  return place == Stages ? llvm::StringRef(limits.stages)
                         : llvm::StringRef(names[place]);
}

Role RoleLister::roleOf(Place place, bool splitsSequences) const {
  switch (place) {
  case Replicated:
    return Role::Replicated;
  case Sharded:
    return Role::Sharded;
  case Experts:
    return Role::Expert;
  case Context:
    return Role::Context;
  default:
    return splitsSequences ? Role::TensorSequence : Role::Tensor;
  }
}

int64_t RoleLister::sizeOf(Place place) const {
  int64_t size = 1;
  for (const auto &[where, axis] : axes)
    if (where == place)
      size *= axis.size;
  return size;
}

bool RoleLister::fits() const {
  int64_t ranks = sizeOf(Replicated) * sizeOf(Sharded) * sizeOf(Experts);
  return limits.batch % ranks == 0 && limits.length % sizeOf(Context) == 0 &&
         limits.experts % sizeOf(Experts) == 0;
}

/// With each level of ZeRO, and with tensor parallelism of both kinds.
void RoleLister::finish() {
  if (!fits())
    return;
  bool hasSharded = sizeOf(Sharded) > 1;
  bool isPartial = sizeOf(Replicated) > 1;
  bool hasTensor = sizeOf(Tensor) > 1;
  bool hasOthers = sizeOf(Context) > 1 || sizeOf(Experts) > 1;
  bool hasShards = hasSharded || sizeOf(Experts) > 1;
  for (Zero zero : hasOthers ? space.zerosOfOthers : space.zeros) {
    // Without ZeRO all ranks are replicas; with it, replicas stand beside
    // others.
    if (zero == Zero::None ? hasSharded : !hasShards)
      continue;
    if (zero != Zero::None && isPartial &&
        !llvm::is_contained(space.partialZeros, zero))
      continue;
    for (bool splitsSequences : {true, false}) {
      if (!hasTensor && splitsSequences)
        continue;
      RoleMesh &mesh = result.emplace_back();
      mesh.roles.zero = zero;
      mesh.roles.hasEqualLayers = space.hasEqualLayers;
      for (const auto &[place, axis] : axes) {
        mesh.mesh.axes.push_back(axis);
        if (place != Stages)
          mesh.roles.axes.push_back(
              {axis.name, roleOf(place, splitsSequences)});
      }
    }
  }
}

void RoleLister::addFrom(Place place, int64_t left) {
  if (place == End) {
    if (left == 1)
      finish();
    return;
  }
  for (int64_t size = 1; size <= left; ++size) {
    if (left % size != 0 || (place == Stages && size > limits.layers))
      continue;
    if (size > 1)
      axes.push_back({place, {nameOf(place).str(), size, place == Stages}});
    addFrom(Place(place + 1), left / size);
    if (size > 1)
      axes.pop_back();
  }
}

void RoleLister::addGiven(size_t axis, Place place) {
  if (axis == given->size())
    return finish();
  const MeshAxis &own = given->axes[axis];
  if (own.size == 1 || own.isStages) {
    axes.push_back({own.isStages ? Stages : place, own});
    addGiven(axis + 1, place);
    axes.pop_back();
    return;
  }
  for (int each = std::max<int>(place, Replicated); each < End; ++each) {
    axes.push_back({Place(each), own});
    addGiven(axis + 1, Place(each));
    axes.pop_back();
  }
}

std::vector<RoleMesh> RoleLister::run(int64_t chips) {
  if (given)
    addGiven(0, Replicated);
  else
    addFrom(Stages, chips);
  return std::move(result);
}

std::vector<RoleMesh> shardc::roleMeshes(const FrameworkSpace &space,
                                         int64_t chips,
                                         const RoleLimits &limits) {
  return RoleLister(space, limits, nullptr).run(chips);
}

std::vector<RoleMesh> shardc::rolesOn(const FrameworkSpace &space,
                                      const Mesh &mesh,
                                      const RoleLimits &limits) {
  return RoleLister(space, limits, &mesh).run(1);
}
