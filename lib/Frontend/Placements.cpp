//===- Placements.cpp - From `@` to pins ----------------------------------===//

#include "Placements.h"
#include "Names.h"

using namespace shardc;
using mlir::failure;
using mlir::FailureOr;

std::optional<AxisIndex> Placements::axis(const ast::Name &name) {
  if (auto found = mesh.find(name.text)) {
    if (!mesh.axes[*found].isStages)
      return found;
    files.error(name.range) << "axis '" << name.text
                            << "' has the stages of the pipeline, so that "
                               "nothing else lies on it";
    return std::nullopt;
  }
  auto diag = files.error(name.range)
              << "the mesh has no axis '" << name.text << "'";
  if (mesh.axes.empty()) {
    diag.attachNote() << "the program names no axes; write `mesh [" << name.text
                      << "=4]`, or `mesh auto[" << name.text
                      << "]` to have the size chosen";
    return std::nullopt;
  }
  std::string known;
  for (const MeshAxis &axis : mesh.axes)
    known += (known.empty() ? "" : ", ") + axis.name;
  diag.attachNote() << "its axes are " << known;
  return std::nullopt;
}

bool Placements::use(const ast::Name &name, AxisIndex axis, bool isPartial,
                     Uses &uses) {
  std::optional<llvm::SMRange> &first = uses.at[axis];
  if (!first) {
    first = name.range;
    if (isPartial)
      uses.partial |= axisBit(axis);
    return true;
  }
  bool wasPartial = uses.partial & axisBit(axis);
  auto diag = files.error(name.range) << "axis '" << name.text << "' ";
  if (isPartial && !wasPartial)
    diag << "is both a partial sum and on an index of one list";
  else
    diag << "is used twice in one list";
  diag.attachNote(files.location(*first)) << "first used here";
  return false;
}

bool Placements::divides(const ast::Index &index, int64_t extent,
                         llvm::ArrayRef<AxisIndex> axes) {
  int64_t parts = mesh.groupSize(axes);
  if (allowPadding || extent % parts == 0)
    return true;
  std::string names;
  for (AxisIndex axis : axes)
    names += (names.empty() ? "" : ", ") + mesh.axes[axis].name;
  auto diag = files.error(index.placement->range);
  if (index.name.empty())
    diag << "a dimension of extent ";
  else
    diag << "index '" << index.name << "' of extent ";
  diag << extent << " is not divisible by " << parts << ", the size of "
       << (axes.size() == 1 ? "axis " : "axes ") << names;
  diag.attachNote() << "with --allow-padding each device would hold "
                    << (extent + parts - 1) / parts;
  return false;
}

FailureOr<shd::DimShardingAttr> Placements::dim(const ast::Index &index,
                                                int64_t extent, bool closes,
                                                Uses &uses) {
  mlir::MLIRContext *context = files.getContext();
  if (!index.placement)
    return shd::DimShardingAttr::get(context, {}, !closes);
  if (index.placement->open)
    return shd::DimShardingAttr::get(context, {}, true);
  AxisList axes;
  llvm::SmallVector<mlir::StringAttr, 4> names;
  bool ok = true;
  for (const ast::Name &name : index.placement->axes) {
    auto found = axis(name);
    ok &= found && use(name, *found, false, uses);
    if (!ok)
      continue;
    axes.push_back(*found);
    names.push_back(mlir::StringAttr::get(context, name.text));
  }
  if (!ok || !divides(index, extent, axes))
    return failure();
  return shd::DimShardingAttr::get(context, names, false);
}

FailureOr<shd::ShardingAttr> Placements::pin(const ast::IndexList &list,
                                             llvm::ArrayRef<int64_t> extents) {
  if (!list.hasPlacement())
    return shd::ShardingAttr();
  bool closes = llvm::any_of(list.indices, [](const ast::Index &index) {
    return index.placement.has_value();
  });
  Uses uses;
  uses.at.resize(mesh.size());
  bool ok = true;
  llvm::SmallVector<shd::DimShardingAttr, 4> dims;
  for (auto [index, extent] : llvm::zip(list.indices, extents)) {
    auto placed = dim(index, extent, closes, uses);
    ok &= mlir::succeeded(placed);
    if (ok)
      dims.push_back(*placed);
  }
  llvm::SmallVector<mlir::StringAttr, 4> partial;
  if (list.partial)
    for (const ast::Name &name : list.partial->axes) {
      auto found = axis(name);
      ok &= found && use(name, *found, true, uses);
      partial.push_back(mlir::StringAttr::get(files.getContext(), name.text));
    }
  if (!ok)
    return failure();
  return shd::ShardingAttr::get(files.getContext(), dims, partial);
}
