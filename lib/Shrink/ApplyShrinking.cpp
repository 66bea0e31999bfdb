//===- ApplyShrinking.cpp - Rewrites a program with small extents ---------===//

#include "mlir/IR/Builders.h"
#include "shardc/Dialect/Shd/IR/Order.h"
#include "shardc/Dialect/Shd/IR/Segments.h"
#include "shardc/Dialect/Shd/IR/Serving.h"
#include "shardc/Shrink/Shrink.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

int64_t Shrinking::extent(int64_t extent) const {
  auto known = extents.find(extent);
  return known == extents.end() ? extent : known->second;
}

int64_t Shrinking::count(int64_t count) const {
  auto known = counts.find(count);
  return known == counts.end() ? count : known->second;
}

static void shrinkRepeat(RepeatOp op, const Shrinking &shrinking) {
  op.setCount(shrinking.count(op.getCount()));
  if (auto segments = op->getAttrOfType<DenseI64ArrayAttr>(kSegments))
    op->setAttr(kSegments,
                Builder(op.getContext())
                    .getDenseI64ArrayAttr({shrinking.count(segments[0]),
                                           shrinking.count(segments[1])}));
}

static void shrinkOrders(Operation *op, const Shrinking &shrinking) {
  auto dealt = op->getAttrOfType<DictionaryAttr>(kDealt);
  if (!dealt)
    return;
  Builder builder(op->getContext());
  SmallVector<NamedAttribute> entries;
  for (NamedAttribute entry : dealt) {
    auto known = cast<DenseI64ArrayAttr>(entry.getValue());
    auto parts = shrinking.dealt.find(known[0]);
    if (parts == shrinking.dealt.end())
      entries.push_back(entry);
    else if (parts->second > 1)
      entries.push_back({entry.getName(), builder.getDenseI64ArrayAttr(
                                              {known[0], parts->second})});
  }
  op->setAttr(kDealt, builder.getDictionaryAttr(entries));
}

/// A window whose rows are exchanged reaches as far as these.
static void shrinkWindow(AttentionOpInterface op, uint64_t before,
                         const Shrinking &shrinking) {
  auto rows = shrinking.halos.find(int64_t(before) - 1);
  if (rows != shrinking.halos.end())
    op->setAttr("window",
                IntegerAttr::get(IntegerType::get(op->getContext(), 64),
                                 rows->second + 1));
}

template <typename HaloOp>
static void shrinkHalo(HaloOp op, const Shrinking &shrinking) {
  op.removeCostAttr();
  op.setRows(shrinking.halos.at(op.getRows()));
}

static void shrinkAttributes(Operation *op, const Shrinking &shrinking) {
  op->removeAttr(kGroupCost);
  op->removeAttr(kFilledKeys);
  shrinkOrders(op, shrinking);
  TypeSwitch<Operation *>(op)
      .Case([&](RepeatOp typed) { shrinkRepeat(typed, shrinking); })
      .Case<HaloExchangeOp, HaloReduceOp>(
          [&](auto typed) { shrinkHalo(typed, shrinking); })
      .Case([&](ExtentsOpInterface typed) {
        auto attention = dyn_cast<AttentionOpInterface>(op);
        std::optional<uint64_t> window =
            attention ? attention.getWindow() : std::nullopt;
        typed.resizeAttributes(
            [&](int64_t extent) { return shrinking.extent(extent); });
        if (window)
          shrinkWindow(attention, *window, shrinking);
      })
      .Case<AllGatherOp, AllSliceOp, AllToAllOp, ReduceScatterOp, AllReduceOp,
            CollectivePermuteOp, ToHostOp, FromHostOp>(
          [](auto typed) { typed.removeCostAttr(); });
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
                                     axis.getOn(), axis.getStages()));
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
