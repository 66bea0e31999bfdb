//===- ApplyShrinking.cpp - Rewrites a program with small extents ---------===//

#include "mlir/IR/Builders.h"
#include "shardc/Shrink/Shrink.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

int64_t Shrinking::extent(int64_t extent) const {
  auto known = extents.find(extent);
  return known == extents.end() ? extent : known->second;
}

/// Extent of an index of an operand or result.
static int64_t extentOf(ArrayRef<StringRef> indices, Value value,
                        StringRef index) {
  return cast<RankedTensorType>(value.getType())
      .getDimSize(llvm::find(indices, index) - indices.begin());
}

int64_t Shrinking::count(int64_t count) const {
  auto known = counts.find(count);
  return known == counts.end() ? count : known->second;
}

static void shrinkRepeat(RepeatOp op, const Shrinking &shrinking) {
  op.setCount(shrinking.count(op.getCount()));
}

/// A range at the start or the end of the whole stays there, one within it
/// stays within.
static void shrinkSlice(SliceOp op, const Shrinking &shrinking) {
  int64_t whole = extentOf(op.getIndexing().getOperandIndices(0), op.getInput(),
                           op.getWhole());
  int64_t begin = op.getRange()[0], end = op.getRange()[1];
  int64_t room = shrinking.extent(whole) - shrinking.extent(end - begin);
  int64_t length = shrinking.extent(end - begin);
  int64_t shrunk = begin == 0 ? 0 : end == whole ? room : room / 2;
  op.setRange({shrunk, shrunk + length});
}

/// A window that hides keys still hides some.
static void shrinkWindow(AttentionOp op, const Shrinking &shrinking) {
  if (!op.getWindow())
    return;
  int64_t keys =
      extentOf(op.getIndexing().getOperandIndices(AttentionOp::kKeyOperand),
               op.getK(), op.getKey());
  int64_t window = *op.getWindow(), shrunk = shrinking.extent(keys);
  op.setWindow(window >= keys
                   ? shrunk
                   : std::min(window, std::max<int64_t>(shrunk / 2, 1)));
}

static void shrinkAttributes(Operation *op, const Shrinking &shrinking) {
  op->removeAttr(kGroupCost);
  TypeSwitch<Operation *>(op)
      .Case([&](RepeatOp typed) { shrinkRepeat(typed, shrinking); })
      .Case([&](SliceOp typed) { shrinkSlice(typed, shrinking); })
      .Case([&](AttentionOp typed) { shrinkWindow(typed, shrinking); })
      .Case<AllGatherOp, AllSliceOp, AllToAllOp, ReduceScatterOp, AllReduceOp,
            CollectivePermuteOp>([](auto typed) { typed.removeCostAttr(); });
}

static void shrinkType(Value value, const Shrinking &shrinking) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return;
  SmallVector<int64_t> shape;
  for (auto [dim, extent] : llvm::enumerate(type.getShape()))
    shape.push_back(dim < stackedDims(value) ? shrinking.count(extent)
                                             : shrinking.extent(extent));
  value.setType(type.clone(shape));
}

static void shrinkMesh(ProgramOp program, const Shrinking &shrinking) {
  MeshAttr mesh = program.getMeshAttr();
  if (!mesh)
    return;
  SmallVector<MeshAxisAttr> axes;
  for (auto [axis, size] : llvm::zip_equal(mesh.getAxes(), shrinking.axes))
    axes.push_back(MeshAxisAttr::get(program.getContext(), axis.getName(), size,
                                     axis.getOn()));
  program.setMeshAttr(MeshAttr::get(program.getContext(), axes));
}

void shardc::applyShrinking(ProgramOp program, const Shrinking &shrinking) {
  shrinkMesh(program, shrinking);
  program->removeAttr(kPlan);
  // Attributes are read together with the extents that they had.
  program.getBody().walk(
      [&](Operation *op) { shrinkAttributes(op, shrinking); });
  program.getBody().walk([&](Operation *op) {
    for (Value result : op->getResults())
      shrinkType(result, shrinking);
    for (Region &region : op->getRegions())
      for (BlockArgument argument : region.getArguments())
        shrinkType(argument, shrinking);
  });
}
