//===- Meshes.h - The meshes that a machine can have ----------*- C++ -*-===//
//
// Lists what `mesh auto` chooses from: sizes of axes whose product is the
// number of chips, and for each the bindings to the physical axes.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_MACHINE_MESHES_H
#define SHARDC_MACHINE_MESHES_H

#include "shardc/Machine/Bindings.h"

namespace shardc {

/// More axes of more than one device are not looked for.
inline constexpr unsigned kMaxAutoAxes = 3;

/// Meshes that differ only in their bindings.
struct MeshFamily {
  Mesh mesh;
  /// Those that no symmetry of the machine turns into one another; of axes in
  /// the order of `mesh`.
  std::vector<NamedBinding> bindings;

  /// Axes of more than one device.
  unsigned wideAxes() const;
};

struct MeshNames {
  /// Names of the axes; empty: any number of axes, called X, Y, Z.
  std::vector<std::string> names;
  /// Nothing tells one axis from another but its name: sizes in descending
  /// order stand for all orders.
  bool areAlike = true;
  /// The one with the stages of a pipeline, which is unlike all others; may be
  /// empty.
  std::string ofStages;
};

/// All meshes of all chips of a machine, fewer axes first, then larger sizes. A
/// mesh axis takes whole physical axes, or parts of them, which it names in the
/// machine's order.
std::vector<MeshFamily> enumerateMeshes(const Machine &machine,
                                        const MeshNames &names);

/// A mesh of a family as a program lists it: its axes are in the binding's
/// order, and where names mean nothing (`renamed`) get the names in that order.
struct BoundMesh {
  Mesh mesh;
  /// By axis of `mesh`, outermost first.
  llvm::SmallVector<llvm::SmallVector<std::string, 2>, 4> on;

  bool operator==(const BoundMesh &other) const = default;
};
BoundMesh boundMesh(const MeshFamily &family, const NamedBinding &binding,
                    bool renamed);

/// `[X=4 on y, Y=16 on (x, z)]`.
std::string toString(const BoundMesh &mesh);

} // namespace shardc

#endif // SHARDC_MACHINE_MESHES_H
