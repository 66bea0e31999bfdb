//===- Halos.cpp - Price and memory of halo exchanges ---------------------===//

#include "shardc/Optimizer/Halos.h"
#include "shardc/Dialect/Shd/IR/Halo.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

/// Turns coordinates along the axes into those of the device one place further
/// on, or back, in row-major order; they stay where there is none.
static void step(const Mesh &mesh, ArrayRef<AxisIndex> axes, bool isBack,
                 MutableArrayRef<int64_t> coordinates) {
  auto isLast = [&](AxisIndex axis) {
    return coordinates[axis] == (isBack ? 0 : mesh.axes[axis].size - 1);
  };
  if (llvm::all_of(axes, isLast))
    return;
  for (AxisIndex axis : llvm::reverse(axes)) {
    bool carries = isLast(axis);
    int64_t size = mesh.axes[axis].size;
    coordinates[axis] = (coordinates[axis] + (isBack ? size - 1 : 1)) % size;
    if (!carries)
      return;
  }
}

CollectiveCost shardc::haloCost(const CollectiveModel &model,
                                ArrayRef<AxisIndex> axes, double bytes,
                                int64_t stretches) {
  // First stretches follow each other in the order of the devices, second ones
  // in reverse.
  auto before = [&](ArrayRef<int64_t>, MutableArrayRef<int64_t> source) {
    step(model.mesh(), axes, /*isBack=*/true, source);
  };
  auto behind = [&](ArrayRef<int64_t>, MutableArrayRef<int64_t> source) {
    step(model.mesh(), axes, /*isBack=*/false, source);
  };
  std::array<CollectiveModel::PermuteSource, 2> sources = {before, behind};
  return model.permuteCost(axes, bytes,
                           ArrayRef(sources).take_front(stretches));
}

/// The dimension that maps to a factor.
static unsigned dimOf(const TensorFactors &tensor, unsigned factor) {
  const auto *at = llvm::find_if(tensor, [&](const DimFactors &dim) {
    return llvm::is_contained(dim, factor);
  });
  return at - tensor.begin();
}

/// Rows of the part of a device.
static int64_t rowsOfPart(const Mesh &mesh, const ShardingRule &rule,
                          const Strategy &strategy) {
  return localExtent(mesh, rule.factors[rule.halo->factor].extent,
                     strategy.factorAxes[rule.halo->along]);
}

double shardc::shareWithHalo(const Mesh &mesh, const ShardingRule &rule,
                             const Strategy &strategy) {
  if (!strategy.halo)
    return 1;
  auto rows = double(rowsOfPart(mesh, rule, strategy) +
                     rule.halo->rows * rule.halo->stretches());
  return rows / double(rule.factors[rule.halo->factor].extent);
}

SmallVector<HaloMove, 2> shardc::haloMoves(const CollectiveModel &model,
                                           Operation *op,
                                           const ShardingRule &rule,
                                           const Strategy &strategy) {
  SmallVector<HaloMove, 2> moves;
  if (!strategy.halo)
    return moves;
  const AxisList &axes = strategy.factorAxes[rule.halo->along];
  int64_t part = rowsOfPart(model.mesh(), rule, strategy);
  auto add = [&](unsigned number, bool isResult, Type type,
                 const Layout &layout, const TensorFactors &tensor) {
    double row =
        tensorShape(type).localBytes(model.mesh(), layout) / double(part);
    int64_t rows = rule.halo->rows, stretches = rule.halo->stretches();
    moves.push_back({number, isResult, dimOf(tensor, rule.halo->factor),
                     row * double(part + rows * stretches),
                     haloCost(model, axes, row * double(rows), stretches)});
  };
  for (unsigned operand : haloOperands(rule)) {
    Layout layout = operandLayout(rule, strategy, operand);
    bool isKnown = llvm::any_of(moves, [&](const HaloMove &move) {
      return op->getOperand(move.number) == op->getOperand(operand) &&
             operandLayout(rule, strategy, move.number) == layout;
    });
    if (!isKnown)
      add(operand, /*isResult=*/false, op->getOperand(operand).getType(),
          layout, rule.operands[operand]);
  }
  for (unsigned result : haloResults(rule))
    add(result, /*isResult=*/true, op->getResult(result).getType(),
        resultLayout(rule, strategy, result), rule.results[result]);
  return moves;
}
