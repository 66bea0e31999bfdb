//===- SplitStages.cpp - spmd-split-stages ----------------------*- C++ -*-===//
//
// The program of a stage that has everything becomes one program for each kind
// of virtual stage: the operations of its roles, its number of layers, and
// messages in place of what other stages make.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "shardc/Dialect/Shd/IR/Pipeline.h"
#include "shardc/Dialect/Spmd/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace shardc::spmd {
#define GEN_PASS_DEF_SPMDSPLITSTAGES
#include "shardc/Dialect/Spmd/Transforms/Passes.h.inc"

namespace {
using shd::isMarkedPartial;
using shd::markedRoles;
using shd::ownerOf;
using shd::StageRoles;

Block &bodyOf(shd::RepeatOp repeat) { return repeat.getBody().front(); }

shd::StageAttr stageOf(Operation *op) {
  return op->getAttrOfType<shd::StageAttr>(shd::kStage);
}

/// The parts of the program of a stage that has everything.
struct Parts : shd::PipelineRepeats {
  Parts(ProgramOp program, StringRef index)
      : PipelineRepeats(shd::pipelineRepeats(program, index)), program(program),
        index(index) {}

  bool isLayers(Operation *op) const {
    auto repeat = dyn_cast<shd::RepeatOp>(op);
    return repeat && repeat.getIndex() == index;
  }

  ProgramOp program;
  StringRef index;
};

/// Gradients of a weight that the first and the last stage have, where the
/// update reads them: each stage has those of its own use.
SmallVector<shd::PartOp> sharedGradients(Parts &parts) {
  SmallVector<shd::PartOp> found;
  for (auto part : parts.program.getBody().getOps<shd::PartOp>()) {
    auto parameter = part.getSource().getDefiningOp<ParameterOp>();
    if (parameter && parameter.getKind() == shd::TensorKind::Gradient &&
        markedRoles(parameter) == (shd::FirstRole | shd::LastRole))
      found.push_back(part);
  }
  return found;
}

/// Operands that need the sum of what all stages have.
SmallVector<OpOperand *> partialUses(Parts &parts) {
  SmallVector<OpOperand *> found;
  for (Operation &op : parts.program.getBody().front()) {
    bool keeps = parts.isLayers(&op) || isMarkedPartial(&op);
    if (keeps || &op == parts.microbatches)
      continue;
    for (OpOperand &use : op.getOpOperands())
      if (isMarkedPartial(use.get()))
        found.push_back(&use);
  }
  return found;
}

/// True for what any stage may have: what nothing reads is erased later.
bool isForAll(Operation *op) {
  return isa<ParameterOp, shd::PartOp, shd::ConstantOp>(op) ||
         op->hasTrait<OpTrait::IsTerminator>();
}

/// Builds the program of virtual stages with these roles and so many layers.
class Splitter {
public:
  Splitter(ProgramOp whole, StringRef index, StageRoles roles, int64_t layers)
      : parts(cast<ProgramOp>(whole->clone()), index), roles(roles),
        layers(layers), builder(whole.getContext()) {}

  FailureOr<ProgramOp> run();

private:
  bool has(StageRoles those) const { return roles & those; }
  void receive(shd::RepeatOp repeat, bool backward);
  void send(shd::RepeatOp repeat, bool backward);
  void exchange();
  void sumShared();
  void addPartial(Operation *op);
  void addUp(Block &block);
  void addUpRepeat(shd::RepeatOp repeat);
  void standFor(Value sum, Value summand);
  Value summand(Value value);
  Value zeroBefore(Operation *op, Type type);
  void sumPartial();
  void addSpread();
  void dropCarried();
  LogicalResult eraseOthers();
  void holdLayers();
  void findUnread();
  void eraseDead();
  void dropMarks();

  Parts parts;
  StageRoles roles;
  int64_t layers;
  OpBuilder builder;
  /// Operations whose results nothing needs in the program of all stages.
  llvm::DenseSet<Operation *> unread;
  /// Partial values to which no stage of this kind adds.
  llvm::DenseSet<Value> absent;
  /// By operand, the number of the sum over stages that it needs: that of the
  /// program with everything, for all stages alike.
  llvm::DenseMap<OpOperand *, int64_t> sums;
};

void Splitter::receive(shd::RepeatOp repeat, bool backward) {
  builder.setInsertionPoint(repeat);
  for (auto [number, init] : llvm::enumerate(repeat.getInitsMutable())) {
    auto receive = ReceiveOp::create(builder, repeat.getLoc(),
                                     init.get().getType(), backward, number);
    receive->setAttr(shd::kStage, stageOf(repeat));
    if (Attribute name = shd::getResultAttr(
            cast<OpResult>(repeat.getResult(number)), shd::kName))
      shd::setResultAttr(receive->getResult(0), shd::kName, name);
    init.set(receive);
  }
}

void Splitter::send(shd::RepeatOp repeat, bool backward) {
  builder.setInsertionPointAfter(repeat);
  for (auto [number, result] : llvm::enumerate(repeat.getResults())) {
    auto send =
        SendOp::create(builder, repeat.getLoc(), result, backward, number);
    send->setAttr(shd::kStage, stageOf(repeat));
  }
}

/// Activations come from the stage before and go to the next one, gradients the
/// other way.
void Splitter::exchange() {
  if (!has(shd::FirstRole))
    receive(parts.forward, /*backward=*/false);
  if (!has(shd::LastRole))
    send(parts.forward, /*backward=*/false);
  if (!parts.backward)
    return;
  if (!has(shd::LastRole))
    receive(parts.backward, /*backward=*/true);
  if (!has(shd::FirstRole))
    send(parts.backward, /*backward=*/true);
}

Value Splitter::zeroBefore(Operation *op, Type type) {
  builder.setInsertionPoint(op);
  auto tensor = cast<RankedTensorType>(type);
  return shd::ConstantOp::create(
      builder, op->getLoc(), tensor,
      DenseElementsAttr::get(
          tensor, Attribute(builder.getFloatAttr(tensor.getElementType(), 0))));
}

/// What this stage adds to a partial sum; null if it adds nothing.
Value Splitter::summand(Value value) {
  if (isMarkedPartial(value))
    return absent.contains(value) ? Value() : value;
  // Repeats of the update carry summands: their operands are such.
  Operation *around = value.getParentBlock()->getParentOp();
  if (isa<BlockArgument>(value) && !parts.microbatches->isAncestor(around))
    return value;
  return has(ownerOf(value)) ? value : Value();
}

/// The stage's summand stands for the sum from here on. A kernel that ends with
/// the sum runs as a whole where that stands, if nothing needs the summand
/// before; there it still runs, now that the summand ends it.
void Splitter::standFor(Value sum, Value summand) {
  Operation *op = summand.getDefiningOp();
  Operation *adds = sum.getDefiningOp();
  if (op && adds && op->getBlock() == adds->getBlock() && op->hasOneUse() &&
      shd::fusionGroupOf(op) &&
      shd::fusionGroupOf(op) == shd::fusionGroupOf(adds))
    op->moveBefore(adds);
  sum.replaceAllUsesWith(summand);
  if (!op || isMarkedPartial(op))
    return;
  op->setAttr(shd::kStage,
              shd::StageAttr::get(op->getContext(), markedRoles(op),
                                  stageOf(op).getPass(), /*partial=*/true));
}

/// An operation adds up what this stage has of its operands.
void Splitter::addPartial(Operation *op) {
  SmallVector<Value> present;
  for (Value operand : op->getOperands())
    if (Value value = summand(operand))
      present.push_back(value);
  Value result = onlyResult(op);
  if (present.size() == op->getNumOperands())
    return;
  if (present.empty()) {
    absent.insert(result);
    return;
  }
  assert(present.size() == 1 && "a sum has two operands");
  standFor(result, present.front());
  op->erase();
}

void Splitter::sumShared() {
  for (auto [number, part] : llvm::enumerate(sharedGradients(parts))) {
    if (!has(shd::FirstRole | shd::LastRole))
      continue;
    builder.setInsertionPointAfter(part);
    auto sum = SumStagesOp::create(builder, part.getLoc(), part.getType(),
                                   part.getResult(), int64_t(number));
    sum->setAttr(shd::kStage, stageOf(part));
    part.getResult().replaceAllUsesExcept(sum, sum);
  }
}

void Splitter::sumPartial() {
  int64_t number = sharedGradients(parts).size();
  for (OpOperand *use : partialUses(parts))
    sums[use] = number++;
  addUp(parts.program.getBody().front());
}

/// A repeat of the update begins with the stage's summand; on a stage that has
/// none of its tensors that is its result, too.
void Splitter::addUpRepeat(shd::RepeatOp repeat) {
  bool isHere = has(markedRoles(repeat));
  for (auto [init, result] :
       llvm::zip_equal(repeat.getInitsMutable(), repeat.getResults())) {
    Value present = summand(init.get());
    if (!isHere && present)
      standFor(result, present);
    else if (!isHere)
      absent.insert(result);
    else if (!present)
      init.set(zeroBefore(repeat, init.get().getType()));
  }
  if (isHere && !parts.isLayers(repeat))
    addUp(bodyOf(repeat));
}

/// Outside the microbatches, operations that add up read the stage's summands,
/// others the sums over stages.
void Splitter::addUp(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    auto repeat = dyn_cast<shd::RepeatOp>(op);
    if (repeat && repeat != parts.microbatches) {
      addUpRepeat(repeat);
      continue;
    }
    if (isMarkedPartial(&op) && !repeat) {
      addPartial(&op);
      continue;
    }
    for (OpOperand &use : op.getOpOperands())
      if (auto known = sums.find(&use); known != sums.end()) {
        Value value = summand(use.get());
        if (!value)
          value = zeroBefore(&op, use.get().getType());
        builder.setInsertionPoint(&op);
        use.set(SumStagesOp::create(builder, op.getLoc(), value.getType(),
                                    value, known->second));
      }
  }
}

/// In a microbatch, each of the stages that have a weight makes its own summand
/// of the gradient.
void Splitter::addSpread() {
  for (Operation &op : llvm::make_early_inc_range(bodyOf(parts.microbatches)))
    if (isMarkedPartial(&op) && has(markedRoles(&op)) &&
        op.getNumResults() == 1 && !isa<shd::PartOp>(op))
      addPartial(&op);
}

/// Microbatches carry no sums of what other stages make. What adds them up here
/// reads their first values, until it is erased.
void Splitter::dropCarried() {
  Block &body = bodyOf(parts.microbatches);
  Operation *yield = body.getTerminator();
  SmallVector<Value> inits, kept;
  BitVector dropped(yield->getNumOperands()), arguments(body.getNumArguments());
  for (auto [number, value] : llvm::enumerate(yield->getOperands())) {
    Operation *op = value.getDefiningOp();
    bool isOfOthers = op && !parts.isLayers(op) && !has(markedRoles(op));
    if (isOfOthers) {
      Value init = parts.microbatches.getInits()[number];
      parts.microbatches.getResult(number).replaceAllUsesWith(init);
      body.getArgument(number + 1).replaceAllUsesWith(init);
      dropped.set(number);
      arguments.set(number + 1);
      continue;
    }
    inits.push_back(parts.microbatches.getInits()[number]);
    kept.push_back(parts.microbatches.getResult(number));
  }
  yield->eraseOperands(dropped);
  body.eraseArguments(arguments);
  builder.setInsertionPoint(parts.microbatches);
  auto repeat = shd::RepeatOp::create(
      builder, parts.microbatches.getLoc(), ValueRange(inits).getTypes(),
      parts.microbatches.getIndexAttr(), parts.microbatches.getCountAttr(),
      parts.microbatches.getReverseAttr(), inits);
  repeat->setDiscardableAttrs(
      parts.microbatches->getDiscardableAttrDictionary());
  repeat.getBody().takeBody(parts.microbatches.getBody());
  for (auto [before, after] : llvm::zip_equal(kept, repeat.getResults()))
    before.replaceAllUsesWith(after);
  parts.microbatches.erase();
  parts.microbatches = repeat;
}

/// Operations of other stages, the last one first.
LogicalResult Splitter::eraseOthers() {
  SmallVector<Operation *> others;
  auto add = [&](Block &block) {
    for (Operation &op : block)
      if ((!has(markedRoles(&op)) && !isForAll(&op)) ||
          (op.getNumResults() == 1 && absent.contains(op.getResult(0))))
        others.push_back(&op);
  };
  // A repeat comes before what is in it.
  add(parts.program.getBody().front());
  parts.program.getBody().walk<WalkOrder::PreOrder>([&](shd::RepeatOp repeat) {
    bool isInside = parts.microbatches->isProperAncestor(repeat);
    if (!isInside && !parts.isLayers(repeat))
      add(bodyOf(repeat));
  });
  llvm::SmallPtrSet<Operation *, 32> erased(others.begin(), others.end());
  for (Operation *op : others)
    for (Operation *user : op->getUsers()) {
      Operation *at = user;
      while (at && !erased.contains(at))
        at = at->getParentOp();
      if (!at)
        return op->emitError()
               << "'"
               << (isa<ParameterOp>(op) ? cast<ParameterOp>(op).getSym()
                                        : shd::getResultName(op->getResult(0)))
               << "' is made by one stage of the pipeline and read by another, "
                  "which has only what the layers carry";
    }
  for (Operation *op : others)
    op->dropAllReferences();
  for (Operation *op : llvm::reverse(others)) {
    op->dropAllUses();
    op->erase();
  }
  return success();
}

void Splitter::holdLayers() {
  parts.program->walk([&](Operation *op) {
    if (parts.isLayers(op))
      cast<shd::RepeatOp>(op).setCount(layers);
    auto parameter = dyn_cast<ParameterOp>(op);
    std::optional<unsigned> dim =
        parameter ? shd::layersDim(parameter.getIndices(),
                                   parameter.getStacked(), parts.index)
                  : std::nullopt;
    if (!dim)
      return;
    auto resize = [&](RankedTensorType type) {
      SmallVector<int64_t> shape(type.getShape());
      shape[*dim] = layers;
      return type.clone(shape);
    };
    parameter.setGlobalAttr(
        TypeAttr::get(resize(cast<RankedTensorType>(parameter.getGlobal()))));
    parameter.getResult().setType(resize(parameter.getType()));
  });
}

/// Kernels, collectives and repeats run even if nothing needs their results.
void Splitter::findUnread() {
  llvm::DenseSet<Operation *> dead;
  SmallVector<Operation *> all;
  parts.program.getBody().walk([&](Operation *op) { all.push_back(op); });
  for (Operation *op : llvm::reverse(all)) {
    bool isNeeded = !wouldOpBeTriviallyDead(op) ||
                    llvm::any_of(op->getUsers(), [&](Operation *user) {
                      return !dead.contains(user);
                    });
    if (isNeeded)
      continue;
    dead.insert(op);
    if (shd::fusionGroupOf(op) || isCollective(op) || isa<shd::RepeatOp>(op))
      unread.insert(op);
  }
}

/// What nothing reads any more, parameters with it.
void Splitter::eraseDead() {
  bool changed = true;
  while (changed) {
    changed = false;
    SmallVector<Operation *> dead;
    parts.program.getBody().walk([&](Operation *op) {
      bool isUnused = op->use_empty() && !unread.contains(op) &&
                      !op->hasTrait<OpTrait::IsTerminator>() &&
                      (isa<ParameterOp>(op) || isOpTriviallyDead(op));
      if (isUnused)
        dead.push_back(op);
    });
    for (Operation *op : dead) {
      op->erase();
      changed = true;
    }
  }
}

/// Marks stay where they say which item runs an operation.
void Splitter::dropMarks() {
  parts.program.getBody().walk([&](Operation *op) {
    if (!parts.microbatches->isProperAncestor(op) ||
        op->hasTrait<OpTrait::IsTerminator>())
      op->removeAttr(shd::kStage);
  });
}

FailureOr<ProgramOp> Splitter::run() {
  findUnread();
  exchange();
  sumShared();
  sumPartial();
  addSpread();
  dropCarried();
  if (failed(eraseOthers())) {
    parts.program->erase(); // no module has it
    return failure();
  }
  holdLayers();
  eraseDead();
  dropMarks();
  return parts.program;
}

class SplitStagesPass : public impl::SpmdSplitStagesBase<SplitStagesPass> {
public:
  using SpmdSplitStagesBase::SpmdSplitStagesBase;

protected:
  void runOnOperation() override;

private:
  LogicalResult split(ProgramOp program);
};

LogicalResult SplitStagesPass::split(ProgramOp program) {
  shd::PipelineAttr pipeline = *program.getPipeline();
  std::optional<AxisIndex> axis = meshOf(program).find(pipeline.getAxis());
  int64_t stages = axis ? meshOf(program).axes[*axis].size : 0;
  auto numbers = ArrayRef<int64_t>(*layers);
  if (stages == 0 || numbers.empty() || numbers.size() % stages != 0 ||
      llvm::any_of(numbers, [](int64_t each) { return each < 1; }))
    return program.emitError()
           << "needs the number of layers of each virtual stage of '"
           << pipeline.getAxis() << "'";
  Parts parts(program, pipeline.getIndex());
  if (!parts.forward || !stageOf(parts.forward))
    return program.emitError("has no layers in a repeat over microbatches "
                             "whose stages are marked");
  // Virtual stages that run the same program.
  llvm::MapVector<std::pair<unsigned, int64_t>, SmallVector<int64_t>> kinds;
  for (auto [number, held] : llvm::enumerate(numbers)) {
    unsigned roles = shd::LayerRole;
    roles |= number == 0 ? shd::FirstRole : shd::NoRole;
    roles |= number + 1 == numbers.size() ? shd::LastRole : shd::NoRole;
    kinds[{roles, held}].push_back(number);
  }
  OpBuilder builder(program->getContext());
  builder.setInsertionPoint(program);
  for (auto &[kind, virtualStages] : kinds) {
    FailureOr<ProgramOp> stage =
        Splitter(program, pipeline.getIndex(), kind.first, kind.second).run();
    if (failed(stage))
      return failure();
    stage->removePipelineAttr();
    stage->setStagesAttr(StageProgramAttr::get(
        program.getContext(), virtualStages, numbers.size(),
        pipeline.getIndex(), kind.second, order));
    builder.insert(*stage);
  }
  program.erase();
  return success();
}

void SplitStagesPass::runOnOperation() {
  for (auto program :
       llvm::make_early_inc_range(getOperation().getOps<ProgramOp>()))
    if (program.getPipeline() && failed(split(program)))
      return signalPassFailure();
}

} // namespace
} // namespace shardc::spmd
