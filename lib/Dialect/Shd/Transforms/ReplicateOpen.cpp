//===- ReplicateOpen.cpp - shd-replicate-open ------------------*- C++ -*-===//

#include "shardc/Dialect/Shd/Transforms/Passes.h"

using namespace mlir;

namespace shardc::shd {
#define GEN_PASS_DEF_SHDREPLICATEOPEN
#include "shardc/Dialect/Shd/Transforms/Passes.h.inc"

namespace {

/// `pin` with open dimensions closed; replicated if null.
ShardingAttr close(ShardingAttr pin, Type type) {
  MLIRContext *context = type.getContext();
  auto closed = DimShardingAttr::get(context, {}, false);
  if (!pin) {
    SmallVector<DimShardingAttr> dims(cast<RankedTensorType>(type).getRank(),
                                      closed);
    return ShardingAttr::get(context, dims, {});
  }
  SmallVector<DimShardingAttr> dims;
  for (DimShardingAttr dim : pin.getDims())
    dims.push_back(dim.getIsOpen() ? closed : dim);
  return ShardingAttr::get(context, dims, pin.getPartial());
}

/// The pin of a value: its operation's, or the repeat's if it is carried.
ShardingAttr pinOf(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getArgNumber() == 0)
      return {};
    return getOperandPin(argument.getOwner()->getParentOp(),
                         argument.getArgNumber() - 1);
  }
  if (auto repeat = value.getDefiningOp<RepeatOp>())
    return getOperandPin(repeat, cast<OpResult>(value).getResultNumber());
  return getResultPin(value.getDefiningOp());
}

void pinCarried(RepeatOp repeat) {
  Operation *yield = repeat.getBody().front().getTerminator();
  for (auto [i, init] : llvm::enumerate(repeat.getInits())) {
    Value yielded = yield->getOperand(i);
    ShardingAttr pin = getOperandPin(repeat, i);
    if (!pin && yielded.getDefiningOp())
      pin = pinOf(yielded);
    if (!pin)
      pin = pinOf(init);
    pin = close(pin, init.getType());
    setOperandPin(repeat, i, pin);
    Operation *maker = yielded.getDefiningOp();
    if (maker && !isa<RepeatOp, DeclareOp>(maker) && !getResultPin(maker))
      setResultPin(maker, pin);
  }
}

struct ReplicateOpenPass : impl::ShdReplicateOpenBase<ReplicateOpenPass> {
  void runOnOperation() override {
    // Inner repeats take what is said of the outer value, so outer ones first.
    getOperation()->walk<WalkOrder::PreOrder>([](Operation *op) {
      if (auto repeat = dyn_cast<RepeatOp>(op))
        pinCarried(repeat);
      else if (isa<DeclareOp>(op) ||
               (isa<ShardingRuleOpInterface>(op) && !op->hasAttr(kTemporary)))
        setResultPin(op, close(getResultPin(op), op->getResult(0).getType()));
    });
  }
};

} // namespace
} // namespace shardc::shd
