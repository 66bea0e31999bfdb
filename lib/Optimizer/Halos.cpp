//===- Halos.cpp - Price and memory of halo exchanges ---------------------===//

#include "shardc/Optimizer/Halos.h"
#include "shardc/Dialect/Shd/IR/Halo.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

CollectiveCost shardc::haloCost(const CollectiveModel &model,
                                ArrayRef<AxisIndex> axes, double bytes) {
  const Mesh &mesh = model.mesh();
  return model.permuteCost(
      axes, bytes,
      [&](ArrayRef<int64_t> destination, MutableArrayRef<int64_t> source) {
        // The number before; the first device takes nothing.
        if (llvm::all_of(
                axes, [&](AxisIndex axis) { return destination[axis] == 0; }))
          return;
        for (AxisIndex axis : llvm::reverse(axes)) {
          if (destination[axis] > 0) {
            source[axis] = destination[axis] - 1;
            return;
          }
          source[axis] = mesh.axes[axis].size - 1;
        }
      });
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
  auto rows = double(rowsOfPart(mesh, rule, strategy) + rule.halo->rows);
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
    moves.push_back({number, isResult, dimOf(tensor, rule.halo->factor),
                     row * double(part + rule.halo->rows),
                     haloCost(model, axes, row * double(rule.halo->rows))});
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
