//===- PlanEdits.cpp - Placements in a program's text ---------------------===//

#include "PlanEdits.h"
#include "llvm/ADT/STLExtras.h"

using namespace shardc;
using namespace shardc::shd;

//===----------------------------------------------------------------------===//
// Index lists
//===----------------------------------------------------------------------===//

std::string shardc::placementText(DimShardingAttr dim) {
  std::string axes;
  for (mlir::StringAttr axis : dim.getAxes())
    axes += (axes.empty() ? "" : ", ") + axis.str();
  return dim.getAxes().size() == 1 ? "@" + axes : "@(" + axes + ")";
}

static std::string partialText(ShardingAttr pin) {
  std::string axes;
  for (mlir::StringAttr axis : pin.getPartial())
    axes += (axes.empty() ? "+" : ", +") + axis.str();
  return axes.empty() ? "" : "{" + axes + "}";
}

/// True if no index has an axis, so that an empty placement has to close the
/// list.
static bool needsClosing(ShardingAttr pin) {
  return llvm::all_of(
      pin.getDims(), [](DimShardingAttr dim) { return dim.getAxes().empty(); });
}

std::string shardc::closedList(llvm::ArrayRef<std::string> indices,
                               ShardingAttr pin) {
  std::string text;
  bool close = needsClosing(pin);
  for (auto [i, index, dim] : llvm::enumerate(indices, pin.getDims())) {
    text += (i ? ", " : "") + index;
    if (!dim.getAxes().empty() || (close && i == 0))
      text += placementText(dim);
  }
  return "[" + text + "]" + partialText(pin);
}

/// True if the placement already says what `dim` says.
static bool agrees(const ast::Placement &placement, DimShardingAttr dim) {
  return !placement.open &&
         llvm::equal(placement.axes, dim.getAxes(),
                     [](const ast::Name &name, mlir::StringAttr axis) {
                       return axis.getValue() == name.text;
                     });
}

static void editPartial(TextEdits &edits, const ast::IndexList &list,
                        ShardingAttr pin) {
  std::string text = partialText(pin);
  if (!list.partial) {
    if (!text.empty())
      edits.insert(list.range.End, text);
    return;
  }
  // The order of the axes of a partial sum says nothing.
  bool same = list.partial->axes.size() == pin.getPartial().size() &&
              llvm::all_of(list.partial->axes, [&](const ast::Name &name) {
                return llvm::any_of(pin.getPartial(), [&](mlir::StringAttr a) {
                  return a.getValue() == name.text;
                });
              });
  if (!same)
    edits.replace(list.partial->range, text);
}

void shardc::editList(TextEdits &edits, const ast::IndexList &list,
                      ShardingAttr pin) {
  // The remaining placements of the list may close it already.
  bool close =
      needsClosing(pin) &&
      llvm::none_of(llvm::zip(list.indices, pin.getDims()), [](auto pair) {
        const auto &[index, dim] = pair;
        return index.placement && agrees(*index.placement, dim);
      });
  for (auto [i, index, dim] : llvm::enumerate(list.indices, pin.getDims())) {
    std::string text;
    if (!dim.getAxes().empty() || (close && i == 0))
      text = placementText(dim);
    if (!index.placement) {
      if (!text.empty())
        edits.insert(index.range.End, text);
    } else if (!agrees(*index.placement, dim)) {
      edits.replace(index.placement->range, text);
    }
  }
  editPartial(edits, list, pin);
}
