//===- Placements.h - From `@` to pins -------------------------*- C++ -*-===//
//
// Checks what is written with `@` and `{+}` (docs/Language.md#9-sharding) and
// makes the pins that the dialect carries.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_FRONTEND_PLACEMENTS_H
#define SHARDC_LIB_FRONTEND_PLACEMENTS_H

#include "Source.h"
#include "shardc/Dialect/Shd/IR/Shd.h"
#include "shardc/Frontend/Ast.h"

namespace shardc {

class Placements {
public:
  Placements(SourceFiles &files, const Mesh &mesh, bool allowPadding)
      : files(files), mesh(mesh), allowPadding(allowPadding) {}

  /// The pin that `list` asks for on a tensor of these extents: null if it says
  /// nothing. Reports errors and then fails.
  mlir::FailureOr<shd::ShardingAttr> pin(const ast::IndexList &list,
                                         llvm::ArrayRef<int64_t> extents);

  /// The axis of the mesh that a name means; nothing after an error.
  std::optional<AxisIndex> axis(const ast::Name &name);

private:
  /// Axes that a list has used so far, and where.
  struct Uses {
    llvm::SmallVector<std::optional<llvm::SMRange>> at;
    AxisSet partial = 0;
  };

  bool use(const ast::Name &name, AxisIndex axis, bool isPartial, Uses &uses);
  mlir::FailureOr<shd::DimShardingAttr>
  dim(const ast::Index &index, int64_t extent, bool closes, Uses &uses);
  bool divides(const ast::Index &index, int64_t extent,
               llvm::ArrayRef<AxisIndex> axes);

  SourceFiles &files;
  const Mesh &mesh;
  bool allowPadding;
};

} // namespace shardc

#endif // SHARDC_LIB_FRONTEND_PLACEMENTS_H
