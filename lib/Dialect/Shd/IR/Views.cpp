//===- Views.cpp - Values in the buffers of declared tensors --------------===//

#include "shardc/Dialect/Shd/IR/Views.h"
#include "shardc/Dialect/Shd/IR/Explicit.h"
#include "shardc/Dialect/Shd/IR/Host.h"
#include "shardc/Sharding/Reshape.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

/// The factors of all dimensions, the major one first.
static SmallVector<unsigned, 8> flatten(const TensorFactors &tensor) {
  SmallVector<unsigned, 8> all;
  for (const auto &factors : tensor)
    llvm::append_range(all, factors);
  return all;
}

/// Its dimensions are other groups of the same factors.
OpOperand *shd::viewedOperand(Operation *op) {
  auto cost = dyn_cast<CostOpInterface>(op);
  if (!cost || cost.getFusionKind() != FusionKind::Free ||
      op->getNumOperands() != 1)
    return nullptr;
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  const TensorFactors &from = rule.operands[0], &to = rule.results[0];
  return from.size() != to.size() && flatten(from) == flatten(to)
             ? &op->getOpOperand(0)
             : nullptr;
}

bool shd::keepsViews(Value tensor) {
  Value whole = wholeOf(tensor);
  Operation *maker = whole.getDefiningOp();
  auto kind =
      maker ? maker->getAttrOfType<TensorKindAttr>("kind") : TensorKindAttr();
  if (!kind || isOnHost(whole))
    return false;
  if (kind.getValue() == TensorKind::State)
    return llvm::none_of(whole.getUsers(), [](Operation *user) {
      return user->getName().stripDialect() == "update";
    });
  return kind.getValue() == TensorKind::Input ||
         kind.getValue() == TensorKind::Weight;
}

bool shd::liesIn(const Mesh &mesh, Type value, Type tensor, int64_t rank) {
  RankedTensorType part =
      partType(tensor, cast<RankedTensorType>(tensor).getRank() - rank);
  return areAlike(mesh, part.getShape(), explicitLayout(mesh, part),
                  cast<RankedTensorType>(value).getShape(),
                  explicitLayout(mesh, value));
}
