//===- StageRoles.cpp - Which stage has which operation -------------------===//

#include "StageRoles.h"
#include "shardc/Dialect/Shd/IR/Pipeline.h"
#include "shardc/Schedule/StagePlan.h"
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
  findShared();
  findSpread();
  findOutside();
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

/// Adds up its operands, so that the sum of its results over stages is its
/// result of the sums of its operands; casts round each summand.
static bool isSum(Operation *op) {
  auto elementwise = dyn_cast<ElementwiseOp>(op);
  return isCollective(op) ||
         (elementwise && (elementwise.getFunction() == Function::Add ||
                          elementwise.getFunction() == Function::Copy ||
                          elementwise.getFunction() == Function::Cast));
}

/// The roles of what operands of an operation of the microbatch come from.
StageRoles StageMap::rolesOfOperands(Operation *op) const {
  StageRoles roles = NoRole;
  for (Value operand : op->getOperands()) {
    Operation *def = operand.getDefiningOp();
    Operation *at =
        def ? bodyOf(microbatchRepeat).findAncestorOpInBlock(*def) : nullptr;
    if (!at || isa<ConstantOp, PartOp>(at))
      continue;
    roles |= at == forwardRepeat    ? StageRoles(LastRole)
             : at == backwardRepeat ? StageRoles(FirstRole)
                                    : rolesOf(at);
  }
  return roles;
}

/// Collectives of a weight that the first and the last stage have run on both.
void StageMap::findShared() {
  auto isOfWeight = [&](Value operand) {
    Operation *def = operand.getDefiningOp();
    return def && (isa<DeclareOp>(def) || shared.contains(def));
  };
  auto isElsewhere = [&](Operation *user) {
    return user != forwardRepeat && !feedsForward.contains(user) &&
           !behindBackward.contains(user);
  };
  Block &body = bodyOf(microbatchRepeat);
  for (Operation &op : body)
    if ((isCollective(&op) || isa<PartOp>(op)) &&
        llvm::all_of(op.getOperands(), isOfWeight))
      shared.insert(&op);
  for (Operation &op : llvm::reverse(body)) {
    auto isUsed = [&](bool elsewhere) {
      return llvm::any_of(op.getUsers(), [&](Operation *user) {
        Operation *at = body.findAncestorOpInBlock(*user);
        return shared.contains(at) || isElsewhere(at) == elsewhere;
      });
    };
    if (shared.contains(&op) && !(isUsed(false) && isUsed(true)))
      shared.erase(&op);
  }
}

/// The gradient of a weight that the first and the last stage have is a sum of
/// what each of them makes, and each accumulates its own.
void StageMap::findSpread() {
  if (!backwardRepeat)
    return;
  for (Operation &op : bodyOf(microbatchRepeat))
    if (rolesOfOperands(&op) == (FirstRole | LastRole) &&
        (isSum(&op) || isa<UpdateOp>(op)))
      spread.insert(&op);
  for (auto part : bodyOf(microbatchRepeat).getOps<PartOp>())
    if (llvm::any_of(part->getUsers(),
                     [&](Operation *user) { return spread.contains(user); }))
      spread.insert(part);
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
    return outside.lookup(op).roles;
  if (spread.contains(at) || shared.contains(at))
    return FirstRole | LastRole;
  bool isFirst = behindBackward.contains(at) || feedsForward.contains(at);
  return isFirst ? FirstRole : LastRole;
}

StageMap::Share StageMap::shareOf(Value value) const {
  auto result = dyn_cast<OpResult>(value);
  if (!result || isa<DeclareOp>(result.getOwner()))
    return {rolesOf(value)};
  if (auto repeat = dyn_cast<RepeatOp>(result.getOwner())) {
    // Each stage adds up its own layers.
    if (isLayers(repeat))
      return {kAllRoles, /*isPartial=*/true};
    if (repeat == microbatchRepeat)
      return {rolesOf(bodyOf(repeat).getTerminator()->getOperand(
          result.getResultNumber()))};
  }
  return outside.lookup(result.getOwner());
}

/// The stages that have all operands. A sum of what different stages have, and
/// what collectives make of it, is itself spread over them.
StageMap::Share StageMap::shareOf(Operation *op) const {
  Share share;
  for (Value operand : op->getOperands()) {
    Share each = shareOf(operand);
    share.roles &= each.roles;
    share.isPartial |= each.isPartial;
  }
  bool isSpread = share.isPartial || share.roles == NoRole;
  if (!isSpread)
    return share;
  share.isPartial = isSum(op);
  if (share.isPartial || share.roles == NoRole)
    share.roles = kAllRoles;
  return share;
}

bool StageMap::isPartial(Operation *op) const {
  if (passOf(op) != StagePass::Update)
    return spread.contains(op);
  return llvm::any_of(op->getResults(),
                      [&](Value value) { return shareOf(value).isPartial; });
}

/// In program order: operands come first.
void StageMap::findOutside() {
  program->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == microbatchRepeat)
      return WalkResult::skip();
    if (op != program && !isa<DeclareOp>(op) && !isInLayers(op, pipeline))
      outside[op] =
          isLayers(dyn_cast<RepeatOp>(op)) ? Share{LayerRole} : shareOf(op);
    return WalkResult::advance();
  });
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
  StageRoles roles = microbatchRepeat ? rolesOfReaders(value) : NoRole;
  return roles == NoRole ? kAllRoles : roles;
}

/// The stages whose microbatches read a value, or what collectives have made of
/// it before.
StageRoles StageMap::rolesOfReaders(Value value) const {
  StageRoles roles = NoRole;
  for (Operation *user : value.getUsers()) {
    auto update = dyn_cast<UpdateOp>(user);
    if (microbatchRepeat->isProperAncestor(user))
      roles |= update ? rolesOf(update.getValue()) : rolesOf(user);
    else if (isCollective(user) &&
             user->getBlock() == microbatchRepeat->getBlock() &&
             user->isBeforeInBlock(microbatchRepeat))
      roles |= rolesOfReaders(onlyResult(user));
  }
  return roles;
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
    if (declare.getKind() == TensorKind::Weight &&
        !isStackedOverLayers(declare, pipeline) &&
        rolesOf(declare.getResult()) == (FirstRole | LastRole))
      shared.push_back(declare);
  return shared;
}

void shardc::markStages(ProgramOp program) {
  StageMap map(program);
  program.getBody().walk([&](Operation *op) {
    bool isPartial = map.isPartial(op);
    op->setAttr(kStage, StageAttr::get(op->getContext(), map.rolesOf(op),
                                       map.passOf(op), isPartial));
  });
}
