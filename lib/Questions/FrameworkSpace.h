//===- FrameworkSpace.h - The plans that a framework expresses -*- C++ -*-===//

#ifndef SHARDC_LIB_QUESTIONS_FRAMEWORKSPACE_H
#define SHARDC_LIB_QUESTIONS_FRAMEWORKSPACE_H

#include "shardc/Frontend/AxisRoles.h"
#include "shardc/Frontend/Framework.h"
#include "shardc/Machine/Machine.h"
#include "llvm/ADT/ArrayRef.h"

namespace shardc {

/// How a framework can run a step, beside the roles of axes.
struct FrameworkSpace {
  llvm::ArrayRef<AxisRoles::Zero> zeros;
  /// Levels of ZeRO that leave replicas beside the axes that split.
  llvm::ArrayRef<AxisRoles::Zero> partialZeros;
  /// Levels of ZeRO beside context and expert parallelism, whose axes split
  /// weights, too.
  llvm::ArrayRef<AxisRoles::Zero> zerosOfOthers;
  /// `none`, `full`, `norms`, which run again alone, or `products`, whose
  /// results alone are kept; the one of least work first.
  llvm::ArrayRef<llvm::StringLiteral> remats;
  llvm::ArrayRef<llvm::StringLiteral> orders;
  bool offloads = false;
  /// All chunks of a pipeline have as many layers.
  bool hasEqualLayers = true;
};

const FrameworkSpace &spaceOf(Framework framework);

/// Counts of what roles can split.
struct RoleLimits {
  int64_t batch = 1, length = 1, layers = 1;
  /// Axes of experts divide this number, with padding, too; 1: no experts.
  int64_t experts = 1;
  /// Names of the axis with stages; stages are not for choice if the program
  /// places them.
  std::string stages = "pp";
};

/// A mesh and the roles of its axes.
struct RoleMesh {
  Mesh mesh;
  AxisRoles roles;
};

/// All meshes of `chips` devices, their axes in the order of ranks: tensor
/// parallelism innermost, stages outermost.
std::vector<RoleMesh> roleMeshes(const FrameworkSpace &space, int64_t chips,
                                 const RoleLimits &limits);

/// The roles that the axes of a mesh can have, in the order of ranks.
std::vector<RoleMesh> rolesOn(const FrameworkSpace &space, const Mesh &mesh,
                              const RoleLimits &limits);

} // namespace shardc

#endif // SHARDC_LIB_QUESTIONS_FRAMEWORKSPACE_H
