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

StageRoles shardc::rolesOfStage(unsigned stage, int64_t stages) {
  StageRoles roles = LayerRole;
  if (stage == 0)
    roles |= FirstRole;
  if (int64_t(stage) + 1 == stages)
    roles |= LastRole;
  return roles;
}

StageRoles shardc::rolesOfChunk(unsigned stage, int64_t stages, unsigned chunk,
                                unsigned chunks) {
  StageRoles roles = rolesOfStage(stage, stages);
  if (chunk > 0)
    roles &= ~FirstRole;
  if (chunk + 1 < chunks)
    roles &= ~LastRole;
  return roles;
}

StageMap::StageMap(ProgramOp program)
    : program(program), pipeline(*program.getPipeline()) {
  findRepeats();
  if (!forwardRepeat)
    return;
  findNeeded();
  behindBackward = forwardSliceOf(backwardRepeat);
  findRecomputed();
  findCopied();
  findSpread();
  findOutside();
}

void StageMap::findRepeats() {
  PipelineRepeats repeats = pipelineRepeats(program, pipeline.getIndex());
  microbatchRepeat = repeats.microbatches;
  forwardRepeat = repeats.forward;
  backwardRepeat = repeats.backward;
  if (!microbatchRepeat)
    return;
  for (Operation &op : bodyOf(microbatchRepeat))
    if (!firstBackward && getPhase(&op) != Phase::Forward)
      firstBackward = &op;
}

/// Adds the backward slice of a set in its operations' blocks: all that they
/// read, group by group, as operations of a kernel run together.
void StageMap::addBackwardSlice(Operations &needed) const {
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
  addBackwardSlice(feedsForward);
  if (!backwardRepeat)
    return;
  Operation *yield = bodyOf(backwardRepeat).getTerminator();
  Operations inside = {yield}, outside = {backwardRepeat.getOperation()};
  addBackwardSlice(inside);
  addBackwardSlice(outside);
  givesGradient.insert(inside.begin(), inside.end());
  givesGradient.insert(outside.begin(), outside.end());
}

/// Operations of the microbatch that depend on what a repeat in it makes.
StageMap::Operations StageMap::forwardSliceOf(RepeatOp repeat) const {
  Operations found;
  SmallVector<Operation *> work;
  if (repeat)
    work.push_back(repeat);
  while (!work.empty())
    for (Operation *user : work.pop_back_val()->getUsers())
      if (Operation *at = bodyOf(microbatchRepeat).findAncestorOpInBlock(*user);
          at && found.insert(at).second)
        work.push_back(at);
  return found;
}

/// Statistics that the first stage computes again for its gradients need no
/// gradient themselves.
void StageMap::findRecomputed() {
  Operations needLayers = forwardSliceOf(forwardRepeat);
  for (Operation &op : llvm::reverse(bodyOf(microbatchRepeat))) {
    bool isFree = &op != forwardRepeat && !needLayers.contains(&op) &&
                  !feedsForward.contains(&op) && !op.use_empty();
    if (isFree && llvm::all_of(op.getUsers(), [&](Operation *user) {
          return behindBackward.contains(
              bodyOf(microbatchRepeat).findAncestorOpInBlock(*user));
        }))
      behindBackward.insert(&op);
  }
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

/// The roles of what operands of an operation of the microbatch come from, but
/// for those that any stage can make.
StageRoles StageMap::rolesOfOperands(Operation *op) const {
  StageRoles roles = NoRole;
  for (Value operand : op->getOperands()) {
    Operation *def = operand.getDefiningOp();
    Operation *at =
        def ? bodyOf(microbatchRepeat).findAncestorOpInBlock(*def) : nullptr;
    if (!at || isa<ConstantOp, PartOp>(at) || copied.contains(at))
      continue;
    roles |= at == forwardRepeat    ? StageRoles(LastRole)
             : at == backwardRepeat ? StageRoles(FirstRole)
                                    : rolesOf(at);
  }
  return roles;
}

/// True for what any stage can make by itself: parts of inputs, and what
/// collectives and elementwise functions make of weights alone.
bool StageMap::canCopy(Operation *op, TensorKind kind) const {
  bool isOfWeights = kind == TensorKind::Weight;
  if (isOfWeights && !isCollective(op) && !isa<PartOp, ElementwiseOp>(op))
    return false;
  bool readsKind = false;
  for (Value operand : op->getOperands()) {
    Operation *def = operand.getDefiningOp();
    bool isNumber = operand == bodyOf(microbatchRepeat).getArgument(0);
    if (isNumber || isa_and_nonnull<ConstantOp>(def))
      continue;
    if (!def || (def->getBlock() == op->getBlock() && !copied.contains(def)))
      return false;
    if (def->getBlock() != op->getBlock() && !isMadeOf(def, kind))
      return false;
    readsKind = true;
  }
  return readsKind;
}

/// True for a declaration of the kind, and what is made of such ones alone.
bool StageMap::isMadeOf(Operation *op, TensorKind kind) const {
  if (auto declare = dyn_cast<DeclareOp>(op))
    return declare.getKind() == kind;
  return op->getNumOperands() > 0 &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           Operation *def = operand.getDefiningOp();
           return def && isMadeOf(def, kind);
         });
}

/// The stages of a use of a value that any stage can make.
StageRoles StageMap::rolesOfUse(OpOperand &use) const {
  Operation *user = use.getOwner();
  Operation *at = bodyOf(microbatchRepeat).findAncestorOpInBlock(*user);
  if (user == forwardRepeat)
    return FirstRole;
  if (user == backwardRepeat)
    return LastRole;
  if (at == forwardRepeat || at == backwardRepeat)
    return LayerRole;
  if (auto known = copied.find(at); known != copied.end())
    return known->second;
  bool isFirst = behindBackward.contains(at) || feedsForward.contains(at);
  return isFirst ? FirstRole : LastRole;
}

/// Each stage that reads such a value makes it by itself.
void StageMap::findCopied() {
  Block &body = bodyOf(microbatchRepeat);
  for (TensorKind kind : {TensorKind::Input, TensorKind::Weight})
    for (Operation &op : body.without_terminator())
      if (op.getNumResults() > 0 && !isa<RepeatOp>(op) && canCopy(&op, kind))
        copied[&op] = NoRole;
  for (Operation &op : llvm::reverse(body))
    if (copied.contains(&op)) {
      StageRoles roles = NoRole;
      for (OpOperand &use : op.getUses())
        roles |= rolesOfUse(use);
      copied[&op] = roles == NoRole ? StageRoles(FirstRole) : roles;
    }
}

/// The gradient of a weight that the first and the last stage have is a sum of
/// what each of them makes, and each accumulates its own.
void StageMap::findSpread() {
  if (!backwardRepeat)
    return;
  Block &body = bodyOf(microbatchRepeat);
  Operations whole;
  bool changed = true;
  while (changed) {
    changed = false;
    spread.clear();
    for (Operation &op : body)
      if (!whole.contains(&op) && (isSum(&op) || isa<UpdateOp>(op)) &&
          rolesOfOperands(&op) == (FirstRole | LastRole))
        spread.insert(&op);
    // Whoever needs the sum itself cannot do with a summand.
    for (Operation &op : body)
      if (spread.contains(&op) && llvm::any_of(op.getUsers(), [&](auto *user) {
            return !spread.contains(body.findAncestorOpInBlock(*user));
          }))
        changed |= whole.insert(&op).second;
  }
  for (auto part : body.getOps<PartOp>())
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
  if (spread.contains(at))
    return FirstRole | LastRole;
  if (auto known = copied.find(at); known != copied.end())
    return known->second;
  if (auto update = dyn_cast<UpdateOp>(at))
    return rolesOfUpdated(update);
  bool isFirst = behindBackward.contains(at) || feedsForward.contains(at);
  return isFirst ? FirstRole : LastRole;
}

/// The stages that write a value: the last one has the layers' results, the
/// first one the gradients behind them.
StageRoles StageMap::rolesOfUpdated(UpdateOp update) const {
  Operation *maker = update.getValue().getDefiningOp();
  if (maker && maker == forwardRepeat)
    return LastRole;
  if (maker && maker == backwardRepeat)
    return FirstRole;
  return rolesOf(update.getValue());
}

StageMap::Share StageMap::shareOf(Value value) const {
  if (value.getDefiningOp<DeclareOp>())
    return {rolesOf(value)};
  auto result = dyn_cast<OpResult>(value);
  auto repeat = dyn_cast<RepeatOp>(value.getParentBlock()->getParentOp());
  if (!result)
    return {rolesOf(value), /*isPartial=*/value != repeat.getIteration()};
  repeat = dyn_cast<RepeatOp>(result.getOwner());
  if (repeat && repeat == microbatchRepeat)
    return {rolesOf(value)};
  // What repeats of the update carry is a sum: each stage adds up what it has.
  if (repeat)
    return {kAllRoles, /*isPartial=*/true};
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

/// The stages of the tensors whose parts a repeat outside the microbatches
/// reads.
StageRoles StageMap::rolesOfUpdate(RepeatOp repeat) const {
  if (isLayers(repeat))
    return LayerRole;
  StageRoles roles = NoRole;
  repeat.getBody().walk(
      [&](PartOp part) { roles |= rolesOf(part.getSource()); });
  return roles == NoRole ? kAllRoles : roles;
}

/// In program order: operands come first.
void StageMap::findOutside() {
  program->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == microbatchRepeat)
      return WalkResult::skip();
    if (op == program || isa<DeclareOp>(op) || isInLayers(op, pipeline))
      return WalkResult::advance();
    auto repeat = dyn_cast<RepeatOp>(op);
    outside[op] = repeat ? Share{rolesOfUpdate(repeat)} : shareOf(op);
    return WalkResult::advance();
  });
}

/// What is declared is where it is used in a microbatch; an optimizer's state
/// where its weight is.
StageRoles StageMap::rolesOf(Value value) const {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto repeat = cast<RepeatOp>(argument.getOwner()->getParentOp());
    if (isLayers(repeat))
      return LayerRole;
    if (microbatchRepeat && microbatchRepeat->isProperAncestor(repeat))
      return rolesOf(repeat);
    if (repeat != microbatchRepeat || argument.getArgNumber() == 0)
      return kAllRoles;
    // Microbatches carry a value on the stages that make it.
    Value made = argument.getOwner()->getTerminator()->getOperand(
        argument.getArgNumber() - 1);
    return made == value ? kAllRoles : rolesOf(made);
  }
  auto repeat = value.getDefiningOp<RepeatOp>();
  if (repeat && repeat == microbatchRepeat)
    return rolesOf(bodyOf(repeat).getTerminator()->getOperand(
        cast<OpResult>(value).getResultNumber()));
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
/// it before, or its split into microbatches.
StageRoles StageMap::rolesOfReaders(Value value) const {
  StageRoles roles = NoRole;
  for (Operation *user : value.getUsers()) {
    auto update = dyn_cast<UpdateOp>(user);
    if (microbatchRepeat->isProperAncestor(user))
      roles |= update ? rolesOfUpdated(update) : rolesOf(user);
    else if ((isCollective(user) || isa<SplitOp>(user)) &&
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
