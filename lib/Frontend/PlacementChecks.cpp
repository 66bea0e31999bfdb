//===- PlacementChecks.cpp - Annotated operands of one operation ----------===//

#include "Importer.h"

using namespace shardc;
using mlir::StringAttr;

namespace {
/// The placement of one axis or index by one annotated operand.
struct Said {
  const Operand *operand = nullptr;
  /// Null for a partial sum.
  StringAttr index;
};
} // namespace

static std::string nameOf(const Operand &operand) {
  return operand.label.empty() ? "another operand"
                               : "'" + operand.label.str() + "'";
}

/// `J@(X, Y)`, or `J` for an index that is not sharded.
static std::string written(StringAttr index, shd::DimShardingAttr dim) {
  std::string axes;
  for (StringAttr axis : dim.getAxes())
    axes += (axes.empty() ? "" : ", ") + axis.getValue().str();
  std::string text = index.getValue().str();
  if (dim.getAxes().size() > 1)
    return text + "@(" + axes + ")";
  return axes.empty() ? text + "@()" : text + "@" + axes;
}

/// An index that both operands place, and differently.
bool Importer::checkSharedIndex(const Operand &a, const Operand &b,
                                llvm::StringRef what) {
  for (auto [index, dim] : llvm::zip(b.indices, b.pin.getDims())) {
    auto *same = llvm::find(a.indices, index);
    if (same == a.indices.end())
      continue;
    shd::DimShardingAttr other = a.pin.getDims()[same - a.indices.begin()];
    if (dim.getIsOpen() || other.getIsOpen() || dim == other)
      continue;
    bool gatherA = !other.getAxes().empty();
    const Operand &gathered = gatherA ? a : b;
    auto diag =
        files.error(b.range)
        << "operands of one " << what << " place index '" << index.getValue()
        << "' differently: " << written(index, other) << " in " << nameOf(a)
        << ", " << written(index, dim) << " in " << nameOf(b);
    diag.attachNote(files.location(gathered.range))
        << "gather " << nameOf(gathered) << " over '" << index.getValue()
        << "' by writing `" << index.getValue()
        << "@()` here, or leave it open with `" << index.getValue() << "@?`";
    return false;
  }
  return true;
}

/// An axis that one operand has on an index and the other on a different one,
/// or as a partial sum.
bool Importer::checkSharedAxis(const Operand &a, const Operand &b,
                               llvm::StringRef what,
                               const Travelling &travelling) {
  llvm::MapVector<StringAttr, Said> said;
  for (auto [index, dim] : llvm::zip(a.indices, a.pin.getDims()))
    for (StringAttr axis : dim.getAxes())
      said[axis] = {&a, index};
  for (StringAttr axis : a.pin.getPartial())
    said[axis] = {&a, nullptr};
  auto place = [](StringAttr index) {
    return index ? "on index '" + index.getValue().str() + "' of "
                 : std::string("a partial sum of ");
  };
  auto check = [&](StringAttr axis, StringAttr index) {
    auto it = said.find(axis);
    if (it == said.end() || it->second.index == index ||
        travelling.mayShare(it->second.index, index))
      return true;
    auto diag = files.error(b.range)
                << "axis '" << axis.getValue() << "' is "
                << place(it->second.index) << nameOf(a) << " and "
                << place(index) << nameOf(b) << " in one " << what;
    diag.attachNote(files.location(a.range))
        << "gather one of them over '" << axis.getValue()
        << "', or leave its index open with `@?`";
    return false;
  };
  for (auto [index, dim] : llvm::zip(b.indices, b.pin.getDims()))
    for (StringAttr axis : dim.getAxes())
      if (!check(axis, index))
        return false;
  return llvm::all_of(b.pin.getPartial(),
                      [&](StringAttr axis) { return check(axis, nullptr); });
}

bool Importer::checkPlacements(llvm::ArrayRef<const Operand *> operands,
                               llvm::StringRef what,
                               const Travelling &travelling) {
  llvm::SmallVector<const Operand *> annotated;
  for (const Operand *operand : operands)
    if (operand->pin)
      annotated.push_back(operand);
  for (size_t i = 1; i < annotated.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (!checkSharedIndex(*annotated[k], *annotated[i], what) ||
          !checkSharedAxis(*annotated[k], *annotated[i], what, travelling))
        return false;
  return true;
}
