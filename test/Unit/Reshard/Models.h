//===- Models.h - Machines for tests of resharding ------------*- C++ -*-===//
//
// Small machines, built by hand so that the tests depend on no catalogue.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TEST_UNIT_RESHARD_MODELS_H
#define SHARDC_TEST_UNIT_RESHARD_MODELS_H

#include "shardc/Cost/Collective.h"
#include "shardc/Reshard/Reshard.h"

namespace shardc::test {

/// One link, one direction: W_one of TPU v5e.
inline constexpr double kLink = 4.5e10;
/// Seconds per hop.
inline constexpr double kHop = 1e-6;

/// One mesh axis for each physical axis of a torus.
inline CollectiveModel torusModel(llvm::ArrayRef<int64_t> shape, bool wrap) {
  Network network;
  network.name = "ici";
  network.kind = Network::Kind::Torus;
  network.bandwidth = kLink;
  network.latency = kHop;
  network.wrap = wrap ? Network::WrapRule::All : Network::WrapRule::None;
  network.wrapParameter = 1;

  Machine machine;
  machine.shape.assign(shape.begin(), shape.end());
  Mesh mesh;
  MeshBinding binding;
  for (unsigned axis = 0; axis < shape.size(); ++axis) {
    network.members.push_back(std::string(1, char('x' + axis)));
    mesh.axes.push_back({std::string(1, char('X' + axis)), shape[axis]});
    binding.parts.push_back({{axis, shape[axis], 1}});
  }
  machine.networks = {network};
  return {machine, mesh, binding};
}

/// Mesh axes of `sizes` inside one node, whose devices send 450e9 B/s; a
/// collective takes 3 us at least for each doubling of its group.
inline CollectiveModel nodeModel(llvm::ArrayRef<int64_t> sizes) {
  Network network;
  network.name = "nvlink";
  network.kind = Network::Kind::Switch;
  network.members = {"gpu"};
  network.bandwidth = 450e9;
  network.latency = 3e-6;

  Mesh mesh;
  MeshBinding binding;
  binding.parts.resize(sizes.size());
  int64_t stride = 1;
  for (unsigned axis = sizes.size(); axis-- > 0;) {
    binding.parts[axis] = {{0, sizes[axis], stride}};
    stride *= sizes[axis];
  }
  for (unsigned axis = 0; axis < sizes.size(); ++axis)
    mesh.axes.push_back({"A" + std::to_string(axis), sizes[axis]});
  Machine machine;
  machine.shape = {stride};
  machine.networks = {network};
  return {machine, mesh, binding};
}

/// X over `nodes` nodes of Y devices each: 450e9 B/s inside, 50e9 for each
/// device between nodes.
inline CollectiveModel clusterModel(int64_t nodes, int64_t devices) {
  Network inside;
  inside.name = "nvlink";
  inside.kind = Network::Kind::Switch;
  inside.members = {"gpu"};
  inside.bandwidth = 450e9;
  inside.latency = 3e-6;
  Network between = inside;
  between.name = "infiniband";
  between.members = {"node"};
  between.bandwidth = 50e9 * devices;
  between.latency = 8e-6;

  Machine machine;
  machine.shape = {nodes, devices};
  machine.networks = {inside, between};
  return {machine,
          {{{"X", nodes}, {"Y", devices}}},
          {{{{0, nodes, 1}}, {{1, devices, 1}}}}};
}

/// The time of the plan from one layout to another, if there is one.
inline std::optional<Picoseconds> priceOf(ReshardPlanner &planner,
                                          const TensorShape &shape,
                                          const Layout &from,
                                          const Layout &to) {
  std::optional<ReshardPrice> price =
      planner.prices(shape, {from}, {to}).front();
  if (!price)
    return std::nullopt;
  return price->picoseconds;
}

} // namespace shardc::test

#endif // SHARDC_TEST_UNIT_RESHARD_MODELS_H
