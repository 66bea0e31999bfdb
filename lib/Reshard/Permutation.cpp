//===- Permutation.cpp - Which device holds which part --------------------===//
//
// Decomposes a rearrangement of axes into independent exchanges.
//
//===----------------------------------------------------------------------===//

#include "shardc/Reshard/Permutation.h"
#include "shardc/Reshard/PermuteCost.h"
#include "llvm/ADT/STLExtras.h"

using namespace shardc;
using namespace shardc::reshard;

AxisList reshard::axisList(AxisSet axes) {
  AxisList list;
  for (; axes != 0; axes &= axes - 1)
    list.push_back(llvm::countr_zero(axes));
  return list;
}

Permutation::Permutation(const Mesh &mesh, const Layout &from,
                         const Layout &to) {
  for (auto [old, fresh] : llvm::zip_equal(from.dims, to.dims))
    addDim(mesh, old, fresh);
  llvm::sort(exchanges);
  addReplicas();
}

/// Cuts both lists wherever they have counted equally many parts; what lies
/// between two cuts is an exchange of its own.
void Permutation::addDim(const Mesh &mesh, llvm::ArrayRef<AxisIndex> from,
                         llvm::ArrayRef<AxisIndex> to) {
  AxisExchange current;
  int64_t oldParts = 1, newParts = 1;
  while (!from.empty() || !to.empty()) {
    bool takeOld = !from.empty() && (oldParts <= newParts || to.empty());
    llvm::ArrayRef<AxisIndex> &rest = takeOld ? from : to;
    AxisIndex axis = rest.front();
    rest = rest.drop_front();
    if (mesh.axes[axis].size == 1)
      continue;
    (takeOld ? current.first : current.second).push_back(axis);
    (takeOld ? oldParts : newParts) *= mesh.axes[axis].size;
    if (oldParts != newParts)
      continue;
    if (current.first != current.second)
      exchanges.push_back(std::move(current));
    current = {};
  }
}

void Permutation::addReplicas() {
  AxisSet before = 0, after = 0;
  for (auto &[old, fresh] : exchanges) {
    before |= axisSet(old);
    after |= axisSet(fresh);
  }
  AxisExchange replicas;
  for (auto &[old, fresh] : exchanges) {
    llvm::copy_if(fresh, std::back_inserter(replicas.first),
                  [&](AxisIndex axis) { return !(before & axisBit(axis)); });
    llvm::copy_if(old, std::back_inserter(replicas.second),
                  [&](AxisIndex axis) { return !(after & axisBit(axis)); });
  }
  if (!replicas.first.empty())
    exchanges.push_back(std::move(replicas));
}

AxisSet Permutation::axes() const {
  AxisSet set = 0;
  for (auto &[old, fresh] : exchanges)
    set |= axisSet(old) | axisSet(fresh);
  return set;
}

void Permutation::source(const Mesh &mesh, llvm::ArrayRef<int64_t> destination,
                         llvm::MutableArrayRef<int64_t> source) const {
  llvm::copy(destination, source.begin());
  for (auto &[old, fresh] : exchanges) {
    int64_t part = 0;
    for (AxisIndex axis : fresh)
      part = part * mesh.axes[axis].size + destination[axis];
    for (AxisIndex axis : llvm::reverse(old)) {
      source[axis] = part % mesh.axes[axis].size;
      part /= mesh.axes[axis].size;
    }
  }
}

CollectiveCost Permutation::cost(const CollectiveModel &model,
                                 double localBytes) const {
  return model.permuteCost(axisList(axes()), localBytes,
                           [&](llvm::ArrayRef<int64_t> destination,
                               llvm::MutableArrayRef<int64_t> origin) {
                             source(model.mesh(), destination, origin);
                           });
}

CollectiveCost shardc::permuteCost(const CollectiveModel &model,
                                   const Layout &from, const Layout &to,
                                   double localBytes) {
  return Permutation(model.mesh(), from, to).cost(model, localBytes);
}
