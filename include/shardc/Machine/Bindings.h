//===- Bindings.h - The bindings that a program may ask for ---*- C++ -*-===//
//
// Lists the ways in which mesh axes can lie on a machine by naming physical
// axes (docs/Language.md#3-machine-and-mesh), so that a faster one than the
// program's can be found and written down.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_MACHINE_BINDINGS_H
#define SHARDC_MACHINE_BINDINGS_H

#include "shardc/Machine/Machine.h"

namespace shardc {

/// A binding and how a program asks for it.
struct NamedBinding {
  /// Mesh axes in the order in which the program lists them.
  llvm::SmallVector<AxisIndex, 4> order;
  /// By mesh axis: the physical axes that it names, outermost first.
  llvm::SmallVector<llvm::SmallVector<std::string, 2>, 4> on;
  /// By mesh axis.
  MeshBinding binding;
};

/// Bindings of every mesh axis to named physical axes: to whole ones in every
/// order, to several, and to parts of one. Each takes as much of a physical
/// axis as fits, from the inside out. Bindings that differ only in which of two
/// like axes of a torus they take count once. At most `limit`, in an order that
/// depends on nothing else.
std::vector<NamedBinding> enumerateBindings(const Machine &machine,
                                            const Mesh &mesh, size_t limit);

/// `mesh [X=4 on y, Y=16 on (x, z)]`.
std::string toString(const Mesh &mesh, const NamedBinding &binding);

} // namespace shardc

#endif // SHARDC_MACHINE_BINDINGS_H
