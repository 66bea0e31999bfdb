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

void pinCarried(RepeatOp repeat) {
  Operation *yield = repeat.getBody().front().getTerminator();
  for (auto [i, init] : llvm::enumerate(repeat.getInits())) {
    Value yielded = yield->getOperand(i);
    ShardingAttr pin = getOperandPin(repeat, i);
    if (!pin && yielded.getDefiningOp())
      pin = getStoredPin(yielded);
    if (!pin)
      pin = getStoredPin(init);
    pin = close(pin, init.getType());
    setOperandPin(repeat, i, pin);
    Operation *maker = yielded.getDefiningOp();
    if (maker && !isa<RepeatOp, DeclareOp, PartOp>(maker) &&
        !getResultPin(yielded))
      setResultPin(yielded, pin);
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
        for (Value result : op->getResults())
          setResultPin(result, close(getResultPin(result), result.getType()));
    });
  }
};

} // namespace
} // namespace shardc::shd
