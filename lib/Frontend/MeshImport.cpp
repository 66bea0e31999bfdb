//===- MeshImport.cpp - The mesh declaration ------------------------------===//

#include "MeshImport.h"
#include "llvm/ADT/StringSet.h"

using namespace shardc;

/// Names, sizes and requests of the axes; false after an error.
static bool readAxes(SourceFiles &files, AxisSizes sizeOf,
                     const ast::MeshDecl &decl, Mesh &mesh,
                     llvm::SmallVectorImpl<AxisRequest> &requests) {
  if (decl.axes.size() > kMaxMeshAxes) {
    files.error(decl.axes[kMaxMeshAxes].name.range)
        << "a mesh has at most " << kMaxMeshAxes << " axes, but this one has "
        << decl.axes.size();
    return false;
  }
  llvm::StringMap<llvm::SMRange> seen;
  bool ok = true;
  for (const ast::MeshAxisDecl &axis : decl.axes) {
    auto [it, inserted] = seen.try_emplace(axis.name.text, axis.name.range);
    if (!inserted) {
      auto diag = files.error(axis.name.range)
                  << "the mesh has two axes '" << axis.name.text << "'";
      diag.attachNote(files.location(it->second)) << "the first is here";
      ok = false;
    }
    std::optional<int64_t> size = sizeOf(axis);
    if (size && *size < 1) {
      files.error(axis.size->range)
          << "axis '" << axis.name.text << "' has size " << *size
          << ", but a size is at least 1";
      size.reset();
    }
    ok &= size.has_value();
    mesh.axes.push_back({axis.name.text, size.value_or(1)});
    AxisRequest request;
    for (const ast::Name &name : axis.on)
      request.on.push_back(name.text);
    request.where = requests.size() + 1;
    requests.push_back(std::move(request));
  }
  return ok;
}

/// The number of devices fits 64 bits.
static bool checkDevices(SourceFiles &files, const ast::MeshDecl &decl,
                         const Mesh &mesh) {
  int64_t devices = 1;
  for (const MeshAxis &axis : mesh.axes)
    if (__builtin_mul_overflow(devices, axis.size, &devices)) {
      files.error(decl.range) << "the number of devices does not fit 64 bits";
      return false;
    }
  return true;
}

static shd::MeshAttr meshAttr(mlir::MLIRContext *context, const Mesh &mesh,
                              llvm::ArrayRef<AxisRequest> requests) {
  llvm::SmallVector<shd::MeshAxisAttr> axes;
  for (auto [axis, request] : llvm::zip(mesh.axes, requests)) {
    llvm::SmallVector<mlir::StringAttr> on;
    for (const std::string &name : request.on)
      on.push_back(mlir::StringAttr::get(context, name));
    axes.push_back(shd::MeshAxisAttr::get(context, axis.name, axis.size, on,
                                          axis.isStages));
  }
  return shd::MeshAttr::get(context, axes);
}

/// Gives `mesh auto[data, model]` these axes, of size 1.
static void nameAxes(const ast::MeshDecl &decl, ast::MeshDecl &result) {
  result.range = decl.range;
  for (const ast::Name &name : decl.autoNames) {
    ast::MeshAxisDecl &axis = result.axes.emplace_back();
    axis.name = name;
    axis.size = std::make_unique<ast::DimExpr>();
    axis.size->range = name.range;
    axis.size->integer = 1;
  }
}

std::optional<ImportedMesh> shardc::importMesh(SourceFiles &files,
                                               AxisSizes sizeOf,
                                               const ast::MeshDecl *decl,
                                               const Machine *machine) {
  ImportedMesh result;
  if (!decl) {
    result.attr = meshAttr(files.getContext(), {}, {});
    return result;
  }
  ast::MeshDecl named;
  if (decl->isAuto) {
    nameAxes(*decl, named);
    decl = &named;
  }
  llvm::SmallVector<AxisRequest> requests;
  if (!readAxes(files, sizeOf, *decl, result.mesh, requests) ||
      !checkDevices(files, *decl, result.mesh))
    return std::nullopt;
  result.attr = meshAttr(files.getContext(), result.mesh, requests);
  if (!machine)
    return result;
  auto binding = bindMesh(*machine, result.mesh, requests, 0);
  if (auto *error = std::get_if<MachineError>(&binding)) {
    auto diag =
        files.error(error->where == 0 ? decl->range
                                      : decl->axes[error->where - 1].name.range)
        << error->message;
    if (!error->note.empty())
      diag.attachNote() << error->note;
    return std::nullopt;
  }
  result.binding = std::move(std::get<MeshBinding>(binding));
  return result;
}
