//===- StagePlan.h - A planned program in pipeline stages -----*- C++ -*-===//
//
// What each stage of a pipeline does, takes and keeps, from the plan of one
// that does everything (shd-stage), and when the stages run:
// docs/Training.md#pipelines.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SCHEDULE_STAGEPLAN_H
#define SHARDC_SCHEDULE_STAGEPLAN_H

#include "shardc/Cost/PipelineSchedule.h"
#include "shardc/Schedule/ScheduledProgram.h"

namespace shardc {

/// The devices of one stage.
struct PlannedStage {
  /// Of each chunk.
  llvm::SmallVector<int64_t, 1> layers;
  MemoryProfile memory;
  /// Device time of all microbatches, and of the update.
  Picoseconds forward = 0, backward = 0, recompute = 0, update = 0;
  /// The same by what bounds its operations.
  Picoseconds computeBound = 0, hbmBound = 0;
  /// How long compute waits for collectives, the transfers between stages
  /// aside.
  Picoseconds exposed = 0;
  /// FLOPs of the matrix units of its busiest device in a step; those of its
  /// devices on average, and their time at peak.
  double flops = 0, meanFlops = 0, meanSeconds = 0;

  int64_t numLayers() const;
};

/// A step in stages.
struct StagePlan {
  PipelineOrder order;
  int64_t microbatches = 1;
  std::vector<PlannedStage> stages;
  /// With its events.
  PipelineRun run;
  /// Steps in this order in which each item takes its time with perfect
  /// overlap, as scheduled, and without any.
  Picoseconds lower = 0, scheduled = 0, upper = 0;
  /// A microbatch's activations on their way to the next stage; bytes of one
  /// device, and their time.
  double transferBytes = 0;
  Picoseconds transfer = 0;
  /// Physical networks that a transfer goes over.
  decltype(CollectiveCost::occupies) transferOccupies;
  /// The stage with the most work, and that with the most memory.
  unsigned slowest = 0, fullest = 0;
  /// All orders that were tried, if the program leaves it open; the chosen one
  /// first, then by time.
  struct Tried {
    PipelineOrder order;
    Picoseconds step = 0;
    int64_t peak = 0;
    bool fits = false;
  };
  std::vector<Tried> tried;

  const MemoryProfile &worstMemory() const { return stages[fullest].memory; }
};

/// Layers of each virtual stage, in the order in which a microbatch visits
/// them: chunk 0 of every stage, then chunk 1, and so on.
llvm::SmallVector<int64_t> layersOf(const StagePlan &plan);

/// Runs an explicit and scheduled program in its stages. Of the orders that the
/// program leaves open it takes the fastest whose every stage fits in
/// `memoryLimit` (none: what the machine has), or else that of the least
/// memory. Emits an error where the program's own order cannot run.
std::optional<StagePlan>
planStages(shd::ProgramOp program, const CollectiveModel &model,
           const ScheduledProgram &scheduled,
           std::optional<int64_t> memoryLimit = std::nullopt);

/// Says on each operation of an explicit program which stages run it, and when:
/// `shd.stage`.
void markStages(shd::ProgramOp program);

} // namespace shardc

#endif // SHARDC_SCHEDULE_STAGEPLAN_H
