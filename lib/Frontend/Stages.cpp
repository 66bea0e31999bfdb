//===- Stages.cpp - The repeat with pipeline stages -----------------------===//

#include "Stages.h"
#include "Placements.h"

using namespace shardc;

bool shardc::hasStages(const ast::RepeatStmt &repeat) {
  return repeat.placement &&
         (repeat.placement->open || !repeat.placement->axes.empty());
}

/// Reports placed repeats that stand in another one or in a layer.
static void refuseInner(SourceFiles &files,
                        llvm::ArrayRef<ast::ItemPtr> items) {
  for (const ast::ItemPtr &item : items) {
    auto *repeat = llvm::dyn_cast<ast::RepeatStmt>(item.get());
    if (!repeat)
      continue;
    if (hasStages(*repeat))
      files.error(repeat->placement->range)
          << "a repeat inside of another one or of a layer cannot be a "
             "pipeline";
    refuseInner(files, repeat->body);
  }
}

const ast::RepeatStmt *shardc::findStages(SourceFiles &files,
                                          llvm::ArrayRef<ast::ItemPtr> main) {
  const ast::RepeatStmt *found = nullptr;
  for (const ast::ItemPtr &item : main) {
    if (auto *layer = llvm::dyn_cast<ast::LayerDecl>(item.get()))
      refuseInner(files, layer->body);
    auto *repeat = llvm::dyn_cast<ast::RepeatStmt>(item.get());
    if (!repeat)
      continue;
    refuseInner(files, repeat->body);
    if (!hasStages(*repeat))
      continue;
    if (repeat->placement->axes.size() != 1) {
      files.error(repeat->placement->range)
          << "the layers of a pipeline lie on one axis of the mesh";
    } else if (found) {
      auto diag = files.error(repeat->placement->range)
                  << "a program has at most one pipeline";
      diag.attachNote(files.location(found->placement->range))
          << "the first is here";
    } else {
      found = repeat;
    }
  }
  return found;
}

const ast::RepeatStmt *shardc::findLayers(DimScope &dims,
                                          llvm::ArrayRef<ast::ItemPtr> main) {
  const ast::RepeatStmt *found = nullptr;
  int64_t most = 0;
  for (const ast::ItemPtr &item : main) {
    auto *repeat = llvm::dyn_cast<ast::RepeatStmt>(item.get());
    if (!repeat || !dims.has(repeat->index.text))
      continue;
    int64_t count =
        dims.extent(repeat->index.text, repeat->index.range).value_or(0);
    if (count > most) {
      found = repeat;
      most = count;
    }
  }
  return found;
}

bool shardc::markStages(SourceFiles &files, const ast::Name &name,
                        ImportedMesh &mesh) {
  std::optional<AxisIndex> found =
      Placements(files, mesh.mesh, /*allowPadding=*/false).axis(name);
  if (!found)
    return false;
  mesh.mesh.axes[*found].isStages = true;
  llvm::SmallVector<shd::MeshAxisAttr> axes(mesh.attr.getAxes());
  shd::MeshAxisAttr axis = axes[*found];
  mlir::MLIRContext *context = mesh.attr.getContext();
  axes[*found] = shd::MeshAxisAttr::get(context, axis.getName(), axis.getSize(),
                                        axis.getOn(), /*stages=*/true);
  mesh.attr = shd::MeshAttr::get(context, axes);
  return true;
}
