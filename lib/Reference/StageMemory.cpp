//===- StageMemory.cpp - The memory of a pipeline's stages ----------------===//
//
// Goes through the programs of the stages as their devices do, in the order of
// the schedule, with an account of the arrays that they hold; the elements of
// arrays do not matter here.
//
//===----------------------------------------------------------------------===//

#include "PointRunner.h"
#include "StagePrograms.h"
#include "mlir/IR/OwningOpRef.h"
#include "shardc/Cost/PipelineSchedule.h"
#include "shardc/Dialect/Shd/IR/Host.h"

using namespace mlir;
using namespace shardc;

namespace {

/// A device that knows which arrays it holds, by their types.
class HeldArrays : public OperationRunner {
public:
  LogicalResult run(Operation *op, const Iterations &at) override {
    for (Value result : op->getResults())
      held.insert(keyOf(result, at));
    return success();
  }
  bool holds(Value value, const Iterations &at) override {
    return held.contains(keyOf(value, at));
  }
  void drop(Value value, const Iterations &at) override {
    held.erase(keyOf(value, at));
  }
  void hand(Value from, const Iterations &fromIterations, Value to,
            const Iterations &toIterations) override {
    held.insert(keyOf(to, toIterations));
  }
  void number(BlockArgument argument, const Iterations &at) override {
    held.insert(keyOf(argument, at));
  }
  DeviceBytes bytes(Value value, const Iterations &at) override {
    if (shd::takesNoDeviceMemory(value))
      return {0};
    return {bytesOf(cast<RankedTensorType>(value.getType()))};
  }

private:
  using Key = std::pair<Value, int64_t>;

  static Key keyOf(Value value, ArrayRef<int64_t> at) {
    return {value, linearIteration(value.getParentBlock(), at)};
  }

  llvm::DenseSet<Key> held;
};

/// A chunk of layers on a stage, which has a program of its own.
class StageChunk {
public:
  StageChunk(spmd::ProgramOp program, MemoryMeter &meter,
             llvm::StringSet<> &tensors)
      : program(program.clone()), microbatches(microbatchesOf(*this->program)),
        runner(arrays, /*numDevices=*/1, *this->program, {}, meter) {
    runner.shareTensors(tensors);
    runner.holdParameters();
  }

  LogicalResult runBefore() { return runner.runBefore(microbatches); }
  LogicalResult run(PipelineItem item) {
    return runner.runPass(microbatches, item.microbatch,
                          item.kind == PipelineItem::F);
  }
  LogicalResult leave() { return runner.leave(microbatches); }
  LogicalResult runAfter() { return runner.runAfter(microbatches); }
  int64_t savedBytes() { return runner.savedBytes(); }

private:
  /// A copy: chunks of one kind share a program, but no arrays.
  OwningOpRef<spmd::ProgramOp> program;
  shd::RepeatOp microbatches;
  HeldArrays arrays;
  PointRunner runner;
};

} // namespace

/// Saved values of microbatches in flight share memory, which is there from the
/// first need of it on.
static FailureOr<int64_t> measureStage(ArrayRef<spmd::ProgramOp> programs,
                                       ArrayRef<PipelineItem> items) {
  MemoryMeter meter(/*devices=*/1);
  llvm::StringSet<> tensors;
  std::vector<std::unique_ptr<StageChunk>> chunks;
  for (spmd::ProgramOp program : programs)
    chunks.push_back(std::make_unique<StageChunk>(program, meter, tensors));
  for (auto &chunk : chunks)
    if (failed(chunk->runBefore()))
      return failure();
  int64_t saved = 0, mostSaved = 0;
  for (PipelineItem item : items) {
    StageChunk &chunk = *chunks[item.chunk];
    if (item.kind == PipelineItem::F) {
      saved += chunk.savedBytes();
      mostSaved = std::max(mostSaved, saved);
      meter.hold({&saved, 0}, {mostSaved});
    }
    if (failed(chunk.run(item)))
      return failure();
    if (item.kind != PipelineItem::F)
      saved -= chunk.savedBytes();
  }
  for (auto &chunk : chunks)
    if (failed(chunk->leave()))
      return failure();
  for (auto &chunk : chunks)
    if (failed(chunk->runAfter()))
      return failure();
  return meter.peak().front();
}

FailureOr<std::optional<std::vector<int64_t>>>
shardc::measureStages(ArrayRef<spmd::ProgramOp> programs) {
  StagePrograms all(programs);
  std::vector<int64_t> peaks;
  for (int64_t stage = 0; stage < all.stages; ++stage) {
    std::vector<PipelineItem> items = all.itemsOf(stage);
    if (llvm::any_of(items, [](PipelineItem item) {
          return item.kind == PipelineItem::B || item.kind == PipelineItem::W;
        }))
      return std::optional<std::vector<int64_t>>();
    SmallVector<spmd::ProgramOp> chunks;
    for (int64_t i = stage; i < int64_t(all.programs.size()); i += all.stages)
      chunks.push_back(all.programs[i]);
    FailureOr<int64_t> peak = measureStage(chunks, items);
    if (failed(peak))
      return failure();
    peaks.push_back(*peak);
  }
  return std::optional(peaks);
}
