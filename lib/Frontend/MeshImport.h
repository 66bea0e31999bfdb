//===- MeshImport.h - The mesh declaration ---------------------*- C++ -*-===//
//
// From `mesh [X=4, Y=4 on y]` to a mesh that is bound to the machine.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_FRONTEND_MESHIMPORT_H
#define SHARDC_LIB_FRONTEND_MESHIMPORT_H

#include "Source.h"
#include "shardc/Dialect/Shd/IR/Shd.h"
#include "shardc/Frontend/Ast.h"

namespace shardc {

struct ImportedMesh {
  Mesh mesh;
  /// Empty if the machine is not known.
  MeshBinding binding;
  shd::MeshAttr attr;
};

/// The size of an axis; nothing after an error, which has been reported.
using AxisSizes =
    llvm::function_ref<std::optional<int64_t>(const ast::MeshAxisDecl &)>;

/// Checks the declaration and binds its axes to `machine` (null: not known).
/// Those of `mesh auto` have size 1; without a declaration (null) there are
/// none. Reports errors.
std::optional<ImportedMesh> importMesh(SourceFiles &files, AxisSizes sizeOf,
                                       const ast::MeshDecl *decl,
                                       const Machine *machine);

} // namespace shardc

#endif // SHARDC_LIB_FRONTEND_MESHIMPORT_H
