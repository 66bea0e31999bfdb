//===- Collectives.cpp - Collectives of the spmd dialect in jax.lax -------===//
//
// Each is one collective of jax.lax over the same axes: where it joins or
// splits several dimensions at once, helper functions move these around it.
//
//===----------------------------------------------------------------------===//

#include "Function.h"
#include "shardc/Dialect/Shd/IR/Explicit.h"
#include "shardc/Dialect/Shd/IR/Halo.h"
#include "shardc/Reshard/Permutation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::jax;

namespace {
/// A dimension and the axes that it loses or gains at its minor end.
struct DimAxes {
  unsigned dim;
  AxisList axes;
};
} // namespace

/// The axes that dimensions of `longer` have beyond those of `shorter`.
static SmallVector<DimAxes> added(const Layout &shorter, const Layout &longer) {
  SmallVector<DimAxes> result;
  for (unsigned dim = 0; dim < longer.rank(); ++dim) {
    size_t common = shorter.dims[dim].size();
    if (longer.dims[dim].size() > common)
      result.push_back(
          {dim, AxisList(llvm::drop_begin(longer.dims[dim], common))});
  }
  return result;
}

/// `{0: ("X",), 2: ("Y", "Z")}`
static std::string dimensions(const PythonFile &file, ArrayRef<DimAxes> dims) {
  return cat("{",
             commas(llvm::map_to_vector(
                 dims,
                 [&](const DimAxes &entry) {
                   return cat(entry.dim, ": (", file.axisNames(entry.axes),
                              entry.axes.size() == 1 ? ",)" : ")");
                 })),
             "}");
}

static AxisList axesOf(const PythonFile &file, ArrayAttr names) {
  AxisList axes;
  for (StringRef name : names.getAsValueRange<StringAttr>())
    if (AxisIndex axis = *file.mesh.find(name); file.mesh.axes[axis].size > 1)
      axes.push_back(axis);
  return axes;
}

/// Joins or splits one dimension, or several with a helper function.
static std::string gather(PythonFile &file, const std::string &x,
                          ArrayRef<DimAxes> dims) {
  if (dims.size() > 1)
    return cat(file.helper("all_gather"), "(", x, ", ", dimensions(file, dims),
               ")");
  return cat("lax.all_gather(", x, ", ", file.axisTuple(dims[0].axes),
             ", axis=", dims[0].dim, ", tiled=True)");
}

static std::string scatter(PythonFile &file, const std::string &x,
                           ArrayRef<DimAxes> dims) {
  if (dims.size() > 1)
    return cat(file.helper("psum_scatter"), "(", x, ", ",
               dimensions(file, dims), ")");
  return cat("lax.psum_scatter(", x, ", ", file.axisTuple(dims[0].axes),
             ", scatter_dimension=", dims[0].dim, ", tiled=True)");
}

static std::string exchange(PythonFile &file, const std::string &x,
                            ArrayRef<DimAxes> lost, ArrayRef<DimAxes> gained) {
  if (lost.size() == 1 && gained.size() == 1 && lost[0].axes == gained[0].axes)
    return cat("lax.all_to_all(", x, ", ", file.axisTuple(lost[0].axes),
               ", split_axis=", gained[0].dim, ", concat_axis=", lost[0].dim,
               ", tiled=True)");
  return cat(file.helper("all_to_all"), "(", x, ", ", dimensions(file, lost),
             ", ", dimensions(file, gained), ")");
}

static StringRef functionOf(shd::Combination combination) {
  switch (combination) {
  case shd::Combination::Sum:
    return "lax.psum";
  case shd::Combination::Max:
    return "lax.pmax";
  case shd::Combination::Min:
    return "lax.pmin";
  }
  llvm_unreachable("a new combination");
}

static std::string reduce(const PythonFile &file, spmd::AllReduceOp op,
                          const std::string &x) {
  return cat(functionOf(op.getCombination()), "(", x, ", ",
             file.axisTuple(axesOf(file, op.getAxes())), ")");
}

static std::string permute(PythonFile &file, const std::string &x,
                           const Layout &from, const Layout &to) {
  reshard::Permutation permutation(file.mesh, from, to);
  auto list = [&](ArrayRef<AxisIndex> axes) {
    return cat("(", file.axisNames(axes), axes.size() == 1 ? ",)" : ")");
  };
  SmallVector<std::string> exchanges;
  for (const auto &[old, fresh] : permutation.exchanged())
    exchanges.push_back(cat("(", list(old), ", ", list(fresh), ")"));
  return cat(file.helper("permute"), "(", x, ", ",
             list(reshard::axisList(permutation.axes())), ", ",
             commas(exchanges), ")");
}

/// A halo_exchange or halo_reduce.
template <typename HaloOp>
static std::string moveHalo(PythonFile &file, const std::string &x, HaloOp op) {
  auto small = cast<HaloOp>(file.small.lookup(op));
  int64_t dealt = shd::haloDealt(op);
  StringRef name = op->getName().stripDialect();
  std::string parts;
  if (dealt > 1)
    parts = cat(", ", file.sizes.number("parts", dealt, shd::haloDealt(small)));
  return cat(
      file.helper(dealt > 1 ? cat("dealt_", name) : name.str()), "(", x, ", ",
      file.axisTuple(axesOf(file, op.getAxes())), ", ", op.getDim(), ", ",
      file.sizes.number("halo", op.getRows(), small.getRows()), parts, ")");
}

LogicalResult FunctionPrinter::printCollective(Operation *op) {
  Layout from = shd::explicitLayout(
      file.mesh, op->getAttrOfType<TypeAttr>("from").getValue());
  Layout to = shd::explicitLayout(file.mesh,
                                  op->getAttrOfType<TypeAttr>("to").getValue());
  std::string x = array(op->getOperand(0));
  Value result = onlyResult(op);
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](spmd::AllGatherOp) {
        define(result, gather(file, x, added(to, from)), "_gathered");
      })
      .Case([&](spmd::AllSliceOp) {
        for (const DimAxes &dim : added(from, to))
          x = cat(file.helper("all_slice"), "(", x, ", ",
                  file.axisTuple(dim.axes), ", ", dim.dim, ")");
        define(result, x, "_part");
      })
      .Case([&](spmd::AllToAllOp) {
        define(result, exchange(file, x, added(to, from), added(from, to)),
               "_moved");
      })
      .Case([&](spmd::ReduceScatterOp) {
        define(result, scatter(file, x, added(from, to)), "_sum");
      })
      .Case([&](spmd::AllReduceOp reduceOp) {
        define(result, reduce(file, reduceOp, x),
               reduceOp.getInput().getDefiningOp<shd::StatisticOp>() ? ""
                                                                     : "_sum");
      })
      .Case([&](spmd::CollectivePermuteOp) {
        define(result, permute(file, x, from, to), "_moved");
      })
      .Case([&](spmd::ToHostOp) {
        define(result, cat(file.helper("to_host"), "(", x, ")"), "_on_host");
      })
      .Case([&](spmd::FromHostOp fetch) {
        std::string fetched = cat(file.helper("from_host"), "(", x, ")");
        if (unsigned added = units.lookup(shd::wholeOf(fetch->getOperand(0)))) {
          fetched += "[...";
          for (unsigned i = 0; i < added; ++i)
            fetched += ", 0";
          fetched += "]";
        }
        define(result, fetched, "_fetched");
      })
      .Case([&](spmd::HaloExchangeOp halo) {
        define(result, moveHalo(file, x, halo), "_halo");
      })
      .Case([&](spmd::HaloReduceOp halo) {
        define(result, moveHalo(file, x, halo), "_sum");
      });
  return success();
}

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

void FunctionPrinter::ring(spmd::RingPositionOp op) {
  std::string axes = file.axisTuple(axesOf(file, op.getAxes()));
  auto small = cast<spmd::RingPositionOp>(file.small.lookup(op));
  std::string plus =
      file.sizes.number("ring_offset", op.getPlus(), small.getPlus());
  define(op.getResult(),
         cat("(lax.axis_index(", axes, ") + ", array(op.getIteration()), " + ",
             plus, ") % lax.axis_size(", axes, ")"));
}

void FunctionPrinter::ring(spmd::RingShiftOp op) {
  define(op.getResult(),
         cat(file.helper("ring_shift"), "(", array(op.getInput()), ", ",
             file.axisTuple(axesOf(file, op.getAxes())),
             op.getBack() ? ", back=True)" : ")"),
         "_shifted");
}

/// How many chunks the operand consists of.
static int64_t partsOf(spmd::ChunkOp op) {
  int64_t dim = op.getDim();
  return op.getInput().getType().getDimSize(dim) /
         op.getResult().getType().getDimSize(dim);
}

void FunctionPrinter::ring(spmd::ChunkOp op) {
  define(op.getResult(),
         cat(file.helper("chunk"), "(", array(op.getInput()), ", ",
             array(op.getNumber()), ", ", op.getDim(), ", ",
             file.sizes.number(
                 "chunks", partsOf(op),
                 partsOf(cast<spmd::ChunkOp>(file.small.lookup(op)))),
             ")"));
}

void FunctionPrinter::ring(spmd::PlaceOp op) {
  std::string part = array(op.getChunk());
  define(op.getResult(),
         cat("lax.dynamic_update_slice_in_dim(", array(op.getWhole()), ", ",
             part, ", ", array(op.getNumber()), " * ", part, ".shape[",
             op.getDim(), "], ", op.getDim(), ")"));
}
