//===- Neighbours.h - Axes that an operation's tensors bring --*- C++ -*-===//
//
// With `--opt=none` and `--opt=propagate` an operation uses only mesh axes that
// its operands or its result are placed on: axes that nothing mentions
// replicate the work, as written.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_OPTIMIZER_NEIGHBOURS_H
#define SHARDC_OPTIMIZER_NEIGHBOURS_H

#include "shardc/Dialect/Shd/IR/Shd.h"
#include "llvm/ADT/DenseMap.h"

namespace shardc {

class NeighbourAxes {
public:
  /// Reads the pins of every named value of `program`; intermediate results of
  /// a statement take what their neighbours bring.
  NeighbourAxes(shd::ProgramOp program, const Mesh &mesh);

  /// Axes that each factor of the operation's rule may be placed on.
  llvm::SmallVector<AxisSet, 6> axesOf(mlir::Operation *op,
                                       const ShardingRule &rule) const;

private:
  using DimAxes = llvm::SmallVector<AxisSet, 4>;

  void collect(mlir::Operation *op);
  DimAxes fromPin(shd::ShardingAttr pin, mlir::Type type) const;
  bool spread(mlir::Operation *op);

  const Mesh &mesh;
  llvm::DenseMap<mlir::Value, DimAxes> dims;
  /// Operations with a temporary among their tensors, in program order.
  std::vector<mlir::Operation *> open;
};

} // namespace shardc

#endif // SHARDC_OPTIMIZER_NEIGHBOURS_H
