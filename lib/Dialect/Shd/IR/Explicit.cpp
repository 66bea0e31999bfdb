//===- Explicit.cpp - Programs whose plan is in their types ---------------===//

#include "shardc/Dialect/Shd/IR/Explicit.h"

using namespace mlir;
using namespace shardc;

LogicalResult shd::checkExplicit(ProgramOp program) {
  auto isOpen = [&](Type type) {
    return program.getMesh() && cast<RankedTensorType>(type).getRank() > 0 &&
           !getSharding(type);
  };
  WalkResult result = program->walk([&](Operation *op) {
    if (!op->hasAttr(kResultPin) && !op->hasAttr(kOperandPins) &&
        llvm::none_of(op->getResultTypes(), isOpen))
      return WalkResult::advance();
    op->emitError("the plan is not explicit; run shd-insert-collectives first");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

Layout shd::explicitLayout(const Mesh &mesh, Type type) {
  ShardingAttr sharding = getSharding(type);
  return sharding ? toLayout(mesh, sharding)
                  : Layout::replicated(cast<RankedTensorType>(type).getRank());
}

Operation *shardc::shd::leaderOf(ArrayRef<Operation *> part) {
  auto leads = [](Operation *op) {
    auto cost = dyn_cast<CostOpInterface>(op);
    return cost && cost.getFusionKind() == FusionKind::Leader;
  };
  auto leader = llvm::find_if(part, leads);
  return leader != part.end() ? *leader : part.front();
}

int64_t shardc::shd::separateChunks(ArrayRef<Operation *> rest) {
  for (Operation *op : rest)
    if (auto cost = dyn_cast<CostOpInterface>(op);
        cost && cost.getRowChunks() > kNoChunks)
      return cost.getRowChunks();
  return kNoChunks;
}

int64_t shardc::shd::inFlight(Value value) {
  auto declare = value.getDefiningOp<DeclareOp>();
  auto kept =
      declare ? declare->getAttrOfType<IntegerAttr>(kInFlight) : IntegerAttr();
  return kept ? kept.getInt() : 1;
}

int64_t shardc::shd::bytesOfChunk(Value value, int64_t bytes) {
  Operation *maker = value.getDefiningOp();
  auto chunks = maker ? maker->getAttrOfType<IntegerAttr>(kChunks) : nullptr;
  return chunks ? llvm::divideCeil(bytes, chunks.getInt()) : bytes;
}

Value shardc::shd::storedValue(Value value) {
  auto isStore = [](Operation *user) { return user->hasAttr(kStore); };
  for (auto users = value.getUsers(); llvm::any_of(users, isStore);
       users = value.getUsers())
    value = onlyResult((*llvm::find_if(users, isStore)));
  return value;
}

Value shardc::shd::sharedCopy(Value stored) {
  for (Operation *user : stored.getUsers()) {
    if (!isCollective(user))
      continue;
    if (user->hasAttr(kCopy))
      return onlyResult(user);
    if (Value copy = sharedCopy(onlyResult(user)))
      return copy;
  }
  return {};
}
