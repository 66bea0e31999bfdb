//===- Machines.h - Machines for the tests of costs -----------*- C++ -*-===//
//
// The machines of How to Scale Your Model that the tests calculate with.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TEST_UNIT_COST_MACHINES_H
#define SHARDC_TEST_UNIT_COST_MACHINES_H

#include "shardc/Cost/Collective.h"
#include <gtest/gtest.h>

namespace shardc {

inline Network torus(llvm::ArrayRef<std::string> axes, double linkBandwidth,
                     Network::WrapRule wrap, int64_t wrapParameter = 0) {
  Network network;
  network.name = "ici";
  network.kind = Network::Kind::Torus;
  network.members.assign(axes.begin(), axes.end());
  network.bandwidth = linkBandwidth;
  network.latency = 1e-6;
  network.wrap = wrap;
  network.wrapParameter = wrapParameter;
  return network;
}

inline Network switched(llvm::StringRef member, double bandwidth,
                        double latency, llvm::StringRef per = "") {
  Network network;
  network.name = member.str() + "_network";
  network.kind = Network::Kind::Switch;
  network.members = {member.str()};
  network.bandwidth = bandwidth;
  network.bandwidthPer = per.str();
  network.latency = latency;
  return network;
}

/// Chapter 2: 4.5e10 B/s a link, one way; an axis of 16 wraps.
inline Machine tpuV5e(llvm::ArrayRef<int64_t> shape) {
  Machine machine;
  machine.name = "tpu_v5e";
  machine.shape.assign(shape.begin(), shape.end());
  machine.flops = {{"bf16", 197e12}, {"int8", 394e12}};
  machine.hbmCapacity = 16e9;
  machine.hbmBandwidth = 820e9;
  machine.networks = {torus({"x", "y"}, 45e9, Network::WrapRule::Exactly, 16),
                      switched("slice", 3.125e9, 10e-6, "chip")};
  return machine;
}

/// Chapter 2: 9e10 B/s a link, one way; wraps in whole cubes of 4x4x4.
inline Machine tpuV5p(llvm::ArrayRef<int64_t> shape) {
  Machine machine;
  machine.name = "tpu_v5p";
  machine.shape.assign(shape.begin(), shape.end());
  machine.flops = {{"bf16", 459e12}, {"int8", 918e12}};
  machine.vectorFlops = 14e12;
  machine.hbmCapacity = 96e9;
  machine.hbmBandwidth = 2.8e12;
  machine.networks = {
      torus({"x", "y", "z"}, 90e9, Network::WrapRule::MultipleOf, 4),
      switched("slice", 6.25e9, 10e-6, "chip")};
  return machine;
}

/// Chapter 12: 450e9 B/s a GPU, 400e9 a node, 12.8e12 a leaf of 32 nodes.
inline Machine h100(llvm::ArrayRef<int64_t> shape) {
  Machine machine;
  machine.name = "h100";
  machine.shape.assign(shape.begin(), shape.end());
  machine.flops = {{"bf16", 989e12}, {"f8e4m3", 1979e12}};
  machine.hbmCapacity = 80e9;
  machine.hbmBandwidth = 3.35e12;
  machine.maxShape = {4, 32, 8};
  machine.networks = {switched("gpu", 450e9, 3e-6),
                      switched("node", 400e9, 8e-6),
                      switched("leaf", 12.8e12, 8e-6)};
  return machine;
}

/// A mesh with axes X, Y, Z, ... of these sizes, bound by name or by default.
inline CollectiveModel
model(const Machine &machine, llvm::ArrayRef<int64_t> sizes,
      llvm::ArrayRef<llvm::SmallVector<std::string, 2>> on = {}) {
  Mesh mesh;
  llvm::SmallVector<AxisRequest, 4> requests(sizes.size());
  for (unsigned axis = 0; axis < sizes.size(); ++axis) {
    mesh.axes.push_back({std::string(1, "XYZUVW"[axis]), sizes[axis]});
    if (axis < on.size())
      requests[axis].on = on[axis];
  }
  MachineOr<MeshBinding> binding = bindMesh(machine, mesh, requests, 0);
  if (auto *error = std::get_if<MachineError>(&binding)) {
    ADD_FAILURE() << error->message;
    MeshBinding unbound;
    unbound.parts.resize(mesh.size());
    return CollectiveModel(machine, mesh, unbound);
  }
  return CollectiveModel(machine, mesh, std::get<MeshBinding>(binding));
}

/// Relative comparison: hand calculations, not bit patterns.
inline void expectNear(double actual, double expected,
                       double tolerance = 1e-9) {
  EXPECT_NEAR(actual, expected, std::abs(expected) * tolerance);
}

} // namespace shardc

#endif // SHARDC_TEST_UNIT_COST_MACHINES_H
