//===- StageRoles.cpp - Which stage has which operation -------------------===//

#include "StageRoles.h"
#include "shardc/Dialect/Shd/IR/Pipeline.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

static Block &bodyOf(RepeatOp repeat) { return repeat.getBody().front(); }

static auto declarationsOf(ProgramOp program) {
  return program.getBody().getOps<DeclareOp>();
}

StageMap::StageMap(ProgramOp program)
    : program(program), pipeline(*program.getPipeline()) {
  findRepeats();
  if (!forwardRepeat)
    return;
  findNeeded();
  findBehind();
}

void StageMap::findRepeats() {
  program->walk([&](RepeatOp repeat) {
    Operation *parent = repeat->getParentOp();
    if (!isLayers(repeat) || !isa<RepeatOp>(parent))
      return;
    microbatchRepeat = cast<RepeatOp>(parent);
    (repeat.getReverse() ? backwardRepeat : forwardRepeat) = repeat;
  });
  if (!microbatchRepeat)
    return;
  for (Operation &op : bodyOf(microbatchRepeat))
    if (!firstBackward && getPhase(&op) != Phase::Forward)
      firstBackward = &op;
}

/// Adds what the operations of a set read in their block, group by group:
/// operations of a kernel run together.
void StageMap::closeBackward(Operations &needed) const {
  SmallVector<Operation *> work(needed.begin(), needed.end());
  auto add = [&](Operation *op, Block *block) {
    if (op && op->getBlock() == block && needed.insert(op).second)
      work.push_back(op);
  };
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    Block *block = op->getBlock();
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *def = operand.getDefiningOp())
          add(block->findAncestorOpInBlock(*def), block);
    });
    if (Attribute group = op->getAttr(kGroup))
      for (Operation &other : *block)
        if (other.getAttr(kGroup) == group)
          add(&other, block);
  }
}

void StageMap::findNeeded() {
  feedsForward.insert(forwardRepeat);
  closeBackward(feedsForward);
  if (!backwardRepeat)
    return;
  Operation *yield = bodyOf(backwardRepeat).getTerminator();
  Operations inside = {yield}, outside = {backwardRepeat.getOperation()};
  closeBackward(inside);
  closeBackward(outside);
  givesGradient.insert(inside.begin(), inside.end());
  givesGradient.insert(outside.begin(), outside.end());
}

void StageMap::findBehind() {
  if (!backwardRepeat)
    return;
  SmallVector<Operation *> work = {backwardRepeat};
  while (!work.empty())
    for (Operation *user : work.pop_back_val()->getUsers())
      if (Operation *at = bodyOf(microbatchRepeat).findAncestorOpInBlock(*user);
          at && behindBackward.insert(at).second)
        work.push_back(at);
}

StageRoles StageMap::rolesOf(Operation *op) const {
  if (auto declare = dyn_cast<DeclareOp>(op))
    return rolesOf(declare.getResult());
  if (isLayers(dyn_cast<RepeatOp>(op)) || isInLayers(op, pipeline))
    return LayerRole;
  Operation *at = microbatchRepeat
                      ? bodyOf(microbatchRepeat).findAncestorOpInBlock(*op)
                      : nullptr;
  if (!at)
    return op == microbatchRepeat ? kAllRoles : rolesOfUpdate(op);
  bool isFirst = behindBackward.contains(at) || feedsForward.contains(at);
  return isFirst ? FirstRole : LastRole;
}

/// The stages whose gradients an operation behind the microbatches reads.
StageRoles StageMap::rolesOfUpdate(Operation *op) const {
  StageRoles roles = NoRole;
  llvm::SetVector<Operation *> slice;
  slice.insert(op);
  for (size_t i = 0; i < slice.size(); ++i) {
    if (auto part = dyn_cast<PartOp>(slice[i]))
      if (auto declare = part.getSource().getDefiningOp<DeclareOp>();
          declare && declare.getKind() == TensorKind::Gradient)
        roles |= rolesOf(declare.getResult());
    for (Value operand : slice[i]->getOperands())
      if (Operation *def = operand.getDefiningOp();
          def && !isa<DeclareOp, RepeatOp>(def))
        slice.insert(def);
  }
  return roles == NoRole ? kAllRoles : roles;
}

/// What is declared is where it is used in a microbatch; an optimizer's state
/// where its weight is.
StageRoles StageMap::rolesOf(Value value) const {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto repeat = cast<RepeatOp>(argument.getOwner()->getParentOp());
    return isLayers(repeat) ? StageRoles(LayerRole) : kAllRoles;
  }
  auto declare = value.getDefiningOp<DeclareOp>();
  if (!declare)
    return rolesOf(value.getDefiningOp());
  if (isStackedOverLayers(declare, pipeline))
    return LayerRole;
  if (std::optional<StringRef> of = declare.getOf();
      of && declare.getKind() != TensorKind::Gradient)
    for (auto weight : declarationsOf(program))
      if (weight.getSym() == *of)
        return rolesOf(weight.getResult());
  StageRoles roles = NoRole;
  for (Operation *user : value.getUsers())
    if (microbatchRepeat && microbatchRepeat->isProperAncestor(user)) {
      if (auto update = dyn_cast<UpdateOp>(user))
        roles |= rolesOf(update.getValue());
      else
        roles |= rolesOf(user);
    }
  return roles == NoRole ? kAllRoles : roles;
}

StagePass StageMap::passOf(Operation *op) const {
  if (!microbatchRepeat || !microbatchRepeat->isProperAncestor(op))
    return StagePass::Update;
  Operation *at = bodyOf(microbatchRepeat).findAncestorOpInBlock(*op);
  bool isForward = !firstBackward || at == forwardRepeat ||
                   (at != firstBackward && at->isBeforeInBlock(firstBackward));
  if (isForward)
    return StagePass::Forward;
  if (op == backwardRepeat)
    return StagePass::Backward;
  bool isNeeded = at == backwardRepeat
                      ? givesGradient.contains(
                            bodyOf(backwardRepeat).findAncestorOpInBlock(*op))
                      : givesGradient.contains(at);
  return isNeeded ? StagePass::Backward : StagePass::Weights;
}

SmallVector<DeclareOp> StageMap::sharedWeights() const {
  SmallVector<DeclareOp> shared;
  for (auto declare : declarationsOf(program))
    if (declare.getKind() == TensorKind::Weight && !isStackedOverLayers(declare, pipeline) &&
        rolesOf(declare.getResult()) == (FirstRole | LastRole))
      shared.push_back(declare);
  return shared;
}
