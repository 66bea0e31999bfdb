//===- Stages.cpp - Runs the stages of a pipeline -------------------------===//
//
// Each virtual stage has devices and a memory of its own. A stage runs the
// items of its schedule in their order, each as soon as the messages that it
// receives have been sent; an item runs, of one microbatch, the operations of
// its pass. Values of microbatches in flight stand side by side.
//
//===----------------------------------------------------------------------===//

#include "GridInterpreter.h"
#include "StagePrograms.h"
#include "shardc/Dialect/Shd/IR/Pipeline.h"
#include <memory>

using namespace mlir;
using namespace shardc;

namespace {

/// Tensors on their way between virtual stages, and sums over stages.
struct Exchange {
  /// By direction, receiver, microbatch and number of the message.
  std::map<std::tuple<bool, int64_t, int64_t, int64_t>, std::vector<TensorRef>>
      messages;
  /// By number of the sum: what each virtual stage gave.
  std::map<int64_t, std::map<int64_t, std::vector<TensorRef>>> sums;
  /// How many virtual stages give to a sum.
  std::map<int64_t, int64_t> givers;
  int64_t sent = 0;
};

/// The passes of one item.
using Passes = SmallVector<shd::StagePass, 2>;

Passes passesOf(PipelineItem::Kind kind) {
  switch (kind) {
  case PipelineItem::F:
    return {shd::StagePass::Forward};
  case PipelineItem::B:
    return {shd::StagePass::Backward};
  case PipelineItem::W:
    return {shd::StagePass::Weights};
  case PipelineItem::BW:
    return {shd::StagePass::Backward, shd::StagePass::Weights};
  }
  llvm_unreachable("covered switch");
}

/// Devices of one stage: the axis of the stages has one place.
Mesh meshOfStage(spmd::ProgramOp program) {
  Mesh mesh = spmd::meshOf(program);
  for (auto [axis, attr] :
       llvm::zip_equal(mesh.axes, program.getMeshAttr().getAxes()))
    if (attr.getStages())
      axis.size = 1;
  return mesh;
}

/// Layers of the program, and the first of them in a virtual stage.
struct StageLayers {
  StringRef index;
  int64_t first = 0, held = 0, all = 0;
};

std::optional<unsigned> layersDim(spmd::ParameterOp parameter,
                                  StringRef index) {
  return shd::layersDim(parameter.getIndices(), parameter.getStacked(), index);
}

/// The options of a stage, which declares its own layers of stacked tensors.
RunOptions optionsOfStage(const RunOptions &options, spmd::ProgramOp program,
                          StageLayers layers) {
  llvm::StringMap<unsigned> stacked;
  for (auto parameter : program.getBody().getOps<spmd::ParameterOp>())
    if (std::optional<unsigned> dim = layersDim(parameter, layers.index))
      stacked[parameter.getSym()] = *dim;
  RunOptions result = options;
  result.declared = [=, declared = options.declared](DeclaredTensor tensor) {
    auto known = stacked.find(tensor.name);
    if (known == stacked.end())
      return declared(tensor);
    unsigned dim = known->second;
    SmallVector<int64_t> shape(tensor.type.getShape());
    RankedTensorType own = tensor.type;
    shape[dim] = layers.all;
    tensor.type = own.clone(shape);
    Tensor all = declared(tensor);
    Box part = wholeBox(own.getShape());
    part[dim] = {layers.first, layers.held, layers.all};
    return cut(all, part, own.getShape());
  };
  return result;
}

/// Holds the options before the interpreter that reads them.
struct HeldOptions {
  RunOptions held;
};

class VirtualStage : private HeldOptions, public Interpreter {
public:
  VirtualStage(spmd::ProgramOp program, int64_t number, StageLayers layers,
               const RunOptions &options, Exchange &exchange);

  LogicalResult begin();
  bool isReady(PipelineItem item);
  LogicalResult runItem(PipelineItem item);
  /// Goes on behind the microbatches. True if it could run anything.
  FailureOr<bool> advance();
  bool isDone() { return next == program.getBody().front().end(); }
  RunResult takeResult();
  spmd::ProgramOp getProgram() { return program; }

private:
  Key keyOf(Value value, ArrayRef<int64_t> iterations) const override;
  LogicalResult runOperation(Operation *op) override;
  LogicalResult repeat(shd::RepeatOp op) override;

  bool isSelected(Operation *op) const;
  LogicalResult send(spmd::SendOp op);
  LogicalResult receive(spmd::ReceiveOp op);
  /// True once all have given.
  FailureOr<bool> sum(spmd::SumStagesOp op);
  void beginMicrobatch(int64_t number);
  void endItem();

  spmd::ProgramOp program;
  int64_t stage;
  StageLayers layers;
  Exchange &exchange;
  shd::RepeatOp microbatches;
  int64_t microbatch = 0;
  Passes passes;
  Block::iterator next;
};

VirtualStage::VirtualStage(spmd::ProgramOp program, int64_t number,
                           StageLayers layers, const RunOptions &options,
                           Exchange &exchange)
    : HeldOptions{optionsOfStage(options, program, layers)},
      Interpreter(meshOfStage(program), held), program(program), stage(number),
      layers(layers), exchange(exchange), microbatches(microbatchesOf(program)),
      next(program.getBody().front().begin()) {
  program->walk([&](spmd::SumStagesOp op) {
    ++exchange.givers[int64_t(op.getNumber())];
  });
}

/// Buffers of saved values are there for each microbatch in flight.
Interpreter::Key VirtualStage::keyOf(Value value,
                                     ArrayRef<int64_t> iterations) const {
  auto parameter = value.getDefiningOp<spmd::ParameterOp>();
  if (parameter && parameter.getKind() == shd::TensorKind::Saved)
    return {value, microbatch};
  return {value, linearIteration(value.getParentBlock(), iterations)};
}

/// An operation runs if it is of the item's passes; a repeat, if anything in it
/// is.
bool VirtualStage::isSelected(Operation *op) const {
  if (!microbatches->isProperAncestor(op))
    return true;
  auto stage = op->getAttrOfType<shd::StageAttr>(shd::kStage);
  if (stage && llvm::is_contained(passes, stage.getPass()))
    return true;
  return isa<shd::RepeatOp>(op) && op->walk([&](Operation *inner) {
                                       return inner != op &&
                                                      isSelected(inner) &&
                                                      !isa<shd::YieldOp>(inner)
                                                  ? WalkResult::interrupt()
                                                  : WalkResult::advance();
                                     }).wasInterrupted();
}

/// What an iteration carries moves in the item that the repeat belongs to; a
/// later item finds it in place.
LogicalResult VirtualStage::repeat(shd::RepeatOp op) {
  auto stage = op->getAttrOfType<shd::StageAttr>(shd::kStage);
  bool carries = !microbatches->isProperAncestor(op) ||
                 (stage && llvm::is_contained(passes, stage.getPass()));
  Block &body = op.getBody().front();
  Iterations around = iterations;
  auto handAll = [&](ValueRange from, const Iterations &fromIterations,
                     ValueRange to, const Iterations &toIterations) {
    if (carries)
      for (auto [source, target] : llvm::zip_equal(from, to))
        hand(source, fromIterations, target, toIterations);
  };
  auto inner = [&](int64_t i) {
    Iterations result = around;
    result.push_back(i);
    return result;
  };
  ValueRange carried(body.getArguments().drop_front());
  Operation *yield = body.getTerminator();
  int64_t count = op.getCount();
  handAll(op.getInits(), around, carried, inner(0));
  for (int64_t i = 0; i < count; ++i) {
    iterations = inner(i);
    Interpreter::number(body.getArgument(0), iterations);
    for (Operation &each : body.without_terminator())
      if (isSelected(&each) && failed(runOperation(&each)))
        return failure();
    if (i + 1 < count)
      handAll(yield->getOperands(), inner(i), carried, inner(i + 1));
    else
      handAll(yield->getOperands(), inner(i), op.getResults(), around);
  }
  iterations = around;
  return success();
}

LogicalResult VirtualStage::send(spmd::SendOp op) {
  FailureOr<std::vector<TensorRef>> parts = readAll(op, op.getValue());
  if (failed(parts))
    return failure();
  int64_t receiver = stage + (op.getBackward() ? -1 : 1);
  exchange.messages[{op.getBackward(), receiver, microbatch,
                     int64_t(op.getNumber())}] = std::move(*parts);
  ++exchange.sent;
  return success();
}

LogicalResult VirtualStage::receive(spmd::ReceiveOp op) {
  auto message = exchange.messages.find(
      {op.getBackward(), stage, microbatch, int64_t(op.getNumber())});
  if (message == exchange.messages.end())
    return op.emitError("nothing was sent");
  define(op.getResult(), std::move(message->second));
  exchange.messages.erase(message);
  return success();
}

FailureOr<bool> VirtualStage::sum(spmd::SumStagesOp op) {
  auto number = int64_t(op.getNumber());
  auto &given = exchange.sums[number];
  if (!given.count(stage)) {
    FailureOr<std::vector<TensorRef>> own = readAll(op, op.getInput());
    if (failed(own))
      return failure();
    given[stage] = std::move(*own);
  }
  if (int64_t(given.size()) < exchange.givers[number])
    return false;
  Box whole = wholeBox(op.getType().getShape());
  std::vector<TensorRef> sums;
  for (unsigned device = 0; device < devices.size(); ++device) {
    Tensor total(op.getType());
    for (auto &[giver, parts] : given)
      addBox(*parts[device], whole, total, whole, whole);
    sums.push_back(std::make_shared<const Tensor>(std::move(total)));
  }
  define(op.getResult(), std::move(sums));
  return true;
}

LogicalResult VirtualStage::runOperation(Operation *op) {
  if (auto sent = dyn_cast<spmd::SendOp>(op))
    return send(sent);
  if (auto received = dyn_cast<spmd::ReceiveOp>(op))
    return receive(received);
  return Interpreter::runOperation(op);
}

LogicalResult VirtualStage::begin() {
  if (!microbatches)
    return program.emitError("has no layers in a repeat over microbatches");
  for (; &*next != microbatches; ++next)
    if (failed(runOperation(&*next)))
      return failure();
  Block &body = microbatches.getBody().front();
  for (auto [init, argument] : llvm::zip_equal(
           microbatches.getInits(), body.getArguments().drop_front()))
    hand(init, {}, argument, {0});
  return success();
}

bool VirtualStage::isReady(PipelineItem item) {
  bool isForward = item.kind == PipelineItem::F;
  if (item.kind == PipelineItem::W)
    return true;
  Block &body = microbatches.getBody().front();
  return llvm::all_of(body.getOps<spmd::ReceiveOp>(), [&](auto op) {
    return op.getBackward() == isForward ||
           exchange.messages.count({op.getBackward(), stage, item.microbatch,
                                    int64_t(op.getNumber())});
  });
}

/// Its saved values are zeros until the forward pass writes them.
void VirtualStage::beginMicrobatch(int64_t number) {
  microbatch = number;
  for (auto parameter : program.getBody().getOps<spmd::ParameterOp>())
    if (parameter.getKind() == shd::TensorKind::Saved)
      for (Memory &memory : memories) {
        TensorRef &buffer = memory[{parameter.getResult(), number}];
        if (!buffer)
          buffer = std::make_shared<Tensor>(parameter.getType());
      }
}

/// Hands what the item has made of the next microbatch's values.
void VirtualStage::endItem() {
  Block &body = microbatches.getBody().front();
  int64_t count = microbatches.getCount();
  bool isForward = llvm::is_contained(passes, shd::StagePass::Forward);
  for (auto [i, value] : llvm::enumerate(body.getTerminator()->getOperands())) {
    Operation *op = value.getDefiningOp();
    if (op ? !isSelected(op) : !isForward)
      continue;
    if (microbatch + 1 < count)
      hand(value, {microbatch}, body.getArgument(i + 1), {microbatch + 1});
    else
      hand(value, {microbatch}, microbatches.getResult(i), {});
  }
}

LogicalResult VirtualStage::runItem(PipelineItem item) {
  passes = passesOf(item.kind);
  beginMicrobatch(item.microbatch);
  iterations = {item.microbatch};
  Block &body = microbatches.getBody().front();
  Interpreter::number(body.getArgument(0), iterations);
  for (Operation &op : body.without_terminator())
    if (isSelected(&op) && failed(runOperation(&op)))
      return failure();
  endItem();
  iterations.clear();
  return success();
}

FailureOr<bool> VirtualStage::advance() {
  bool hasRun = false;
  if (&*next == microbatches) {
    ++next;
    hasRun = true;
  }
  for (; !isDone(); ++next, hasRun = true) {
    if (auto op = dyn_cast<spmd::SumStagesOp>(*next)) {
      FailureOr<bool> isThere = sum(op);
      if (failed(isThere))
        return failure();
      if (!*isThere)
        return hasRun;
    } else if (failed(runOperation(&*next))) {
      return failure();
    }
  }
  return hasRun;
}

/// Parts of stacked tensors have the numbers that they have among all layers.
RunResult VirtualStage::takeResult() {
  RunResult all = collect(program.getBody().front());
  for (RunResult::Final &final : all.finals) {
    auto update = dyn_cast<spmd::UpdateOp>(final.op);
    std::optional<unsigned> dim =
        update ? layersDim(update.getParameter(), layers.index) : std::nullopt;
    if (!dim)
      continue;
    int64_t parts = 1;
    if (final.kind == shd::TensorKind::Gradient) {
      ArrayRef<int64_t> shape = update.getParameter().getType().getShape();
      parts = numElements(
          shape.take_front(update.getParameter().getStacked()).drop_front());
    }
    final.iterations[*dim] += layers.first * parts;
  }
  return all;
}

/// All virtual stages of a pipeline.
class PipelineRunner {
public:
  PipelineRunner(ArrayRef<spmd::ProgramOp> list, const RunOptions &options);

  FailureOr<RunResult> run();

private:
  LogicalResult runItems();
  LogicalResult runUpdates();
  LogicalResult checkProgress(bool hasRun);

  StagePrograms programs;
  Exchange exchange;
  std::vector<std::unique_ptr<VirtualStage>> all;
};

PipelineRunner::PipelineRunner(ArrayRef<spmd::ProgramOp> list,
                               const RunOptions &options)
    : programs(list) {
  int64_t first = 0;
  for (auto [number, program] : llvm::enumerate(programs.programs)) {
    spmd::StageProgramAttr attr = program.getStagesAttr();
    all.push_back(std::make_unique<VirtualStage>(
        program, number,
        StageLayers{attr.getIndex(), first, attr.getLayers(), programs.layers},
        options, exchange));
    first += attr.getLayers();
  }
}

LogicalResult PipelineRunner::checkProgress(bool hasRun) {
  if (hasRun)
    return success();
  return all.front()->getProgram().emitError(
      "stages of the pipeline wait for each other");
}

/// Goes around the stages; each runs its items while it can.
LogicalResult PipelineRunner::runItems() {
  const int64_t stages = programs.stages;
  std::vector<std::vector<PipelineItem>> items;
  for (int64_t stage = 0; stage < stages; ++stage)
    items.push_back(programs.itemsOf(stage));
  std::vector<size_t> at(stages, 0);
  auto isLeft = [&] {
    for (auto [done, list] : llvm::zip_equal(at, items))
      if (done < list.size())
        return true;
    return false;
  };
  while (isLeft()) {
    bool hasRun = false;
    for (int64_t stage = 0; stage < stages; ++stage)
      for (; at[stage] < items[stage].size(); ++at[stage], hasRun = true) {
        PipelineItem item = items[stage][at[stage]];
        VirtualStage &virtualStage = *all[item.chunk * stages + stage];
        if (!virtualStage.isReady(item))
          break;
        if (failed(virtualStage.runItem(item)))
          return failure();
      }
    if (failed(checkProgress(hasRun)))
      return failure();
  }
  return success();
}

LogicalResult PipelineRunner::runUpdates() {
  auto isDone = [](auto &stage) { return stage->isDone(); };
  while (!llvm::all_of(all, isDone)) {
    bool hasRun = false;
    for (auto &stage : all) {
      FailureOr<bool> moved = stage->advance();
      if (failed(moved))
        return failure();
      hasRun |= *moved;
    }
    if (failed(checkProgress(hasRun)))
      return failure();
  }
  return success();
}

/// A gradient of a weight that several stages have is the sum of what each has
/// accumulated. True if another stage has it, too.
static bool addToGradient(const RunResult::Final &final,
                          std::vector<RunResult::Final> &finals) {
  if (final.kind != shd::TensorKind::Gradient)
    return false;
  auto other = llvm::find_if(finals, [&](const RunResult::Final &each) {
    return each.kind == final.kind && each.name == final.name &&
           each.iterations == final.iterations;
  });
  if (other == finals.end())
    return false;
  for (auto [sum, part] : llvm::zip_equal(other->parts, final.parts)) {
    Tensor total = *sum;
    Box whole = wholeBox(total.getShape());
    addBox(*part, whole, total, whole, whole);
    sum = std::make_shared<const Tensor>(std::move(total));
  }
  return true;
}

FailureOr<RunResult> PipelineRunner::run() {
  for (auto &stage : all)
    if (failed(stage->begin()))
      return failure();
  if (failed(runItems()) || failed(runUpdates()))
    return failure();
  RunResult result;
  for (auto &stage : all)
    for (RunResult::Final &final : stage->takeResult().finals)
      if (!addToGradient(final, result.finals))
        result.finals.push_back(std::move(final));
  result.messages = exchange.sent;
  return result;
}

} // namespace

FailureOr<RunResult> shardc::interpretStages(ArrayRef<spmd::ProgramOp> programs,
                                             const RunOptions &options) {
  return PipelineRunner(programs, options).run();
}
