//===- PipelineSchedule.h - When a pipeline's stages run ------*- C++ -*-===//
//
// Pipeline-parallel schedules by simulation. A stage is a group of devices that
// holds consecutive layers, or, interleaved, several chunks of them; a virtual
// stage is one chunk on one stage, and a microbatch visits chunk 0 of every
// stage, then chunk 1, and so on. A stage runs its items in an order that is
// fixed by the schedule and never by times, and so does every link, so start
// times are longest paths: no shorter item and no faster link makes a step
// longer.
//
// Sources: GPipe (Huang et al. 2019, arXiv 1811.06965); 1F1B and interleaving
// (Narayanan et al. 2021, arXiv 2104.04473; Korthikanti et al. 2022, arXiv
// 2205.05198); zero bubble, ZB-H1 and ZB-H2 (Qi et al. 2023, arXiv 2401.10241).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_COST_PIPELINESCHEDULE_H
#define SHARDC_COST_PIPELINESCHEDULE_H

#include "shardc/Cost/Collective.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace shardc {

/// Which of its items a stage runs when.
struct PipelineOrder {
  enum Kind : uint8_t {
    /// All forwards, then all backwards.
    GPipe,
    /// As many forwards as it takes to fill the stages behind, then one
    /// backward and one forward in turn.
    OneFOneB,
    /// The same with almost twice the forwards in flight, which hides
    /// transfers.
    OneFOneB2,
    /// One forward, one backward over several chunks of layers a stage.
    Interleaved,
    /// ZB-H1: the gradients of weights fill the bubble, at the memory of
    /// 1F1B's first stage on every stage.
    ZeroBubble,
    /// ZB-H2: the same with almost twice the forwards in flight.
    ZeroBubble2,
  };
  Kind kind = OneFOneB;
  /// Chunks of layers on each stage; 1 unless interleaved.
  int64_t chunks = 1;

  bool operator==(const PipelineOrder &other) const {
    return kind == other.kind && chunks == other.chunks;
  }
};

/// As the language writes it: `gpipe`, `1f1b`, `1f1b(2)`, `interleaved(4)`,
/// `zero_bubble`, `zero_bubble(2)`.
std::string toString(PipelineOrder order);
/// The order of this name; none if there is no such order. Any number of chunks
/// is read: `whyIllegal` says which can run.
std::optional<PipelineOrder> parsePipelineOrder(llvm::StringRef text);

/// Why `layers` layers on `stages` stages cannot run in this order, as the text
/// of a diagnostic; empty if they can.
std::string whyIllegal(PipelineOrder order, int64_t stages,
                       int64_t microbatches, int64_t layers);

/// One microbatch's work on one virtual stage.
struct PipelineItem {
  enum Kind : uint8_t {
    /// The forward pass.
    F,
    /// The gradients of activations, and the recomputation that they need.
    B,
    /// The gradients of weights.
    W,
    /// B and W as one unit, whose input gradient leaves at its end.
    BW,
  };
  Kind kind = F;
  int64_t microbatch = 0, chunk = 0;

  bool operator==(const PipelineItem &other) const {
    return kind == other.kind && microbatch == other.microbatch &&
           chunk == other.chunk;
  }
};

llvm::StringRef toString(PipelineItem::Kind kind);

/// The items of a stage (from 0) in the order in which it runs them; without
/// training, the forwards of that order. `order` must be legal.
std::vector<PipelineItem> orderOf(PipelineOrder order, int64_t stage,
                                  int64_t stages, int64_t microbatches,
                                  bool isTraining);

/// The times of one chunk of a stage for one microbatch.
struct PipelineWork {
  Picoseconds forward = 0, backward = 0, weights = 0;

  /// The three together, saturated.
  Picoseconds total() const;
};

struct PipelineStage {
  /// One entry for each chunk of the order.
  llvm::SmallVector<PipelineWork, 1> chunks;
  /// The work that runs once, after the stage's last item: the reductions of
  /// its gradients, which no other stage waits for, and the update.
  Picoseconds reduce = 0, update = 0;

  /// One microbatch's time on this stage, all chunks together, saturated.
  Picoseconds perMicrobatch() const;
};

/// A step of a pipeline, as the simulation needs it.
struct Pipeline {
  PipelineOrder order;
  int64_t microbatches = 1;
  /// Without, the forwards alone: a pipeline of inference.
  bool isTraining = true;
  std::vector<PipelineStage> stages;
  /// How long a microbatch's activations, and their gradients, take from a
  /// virtual stage to the next one, or back. Transfers from one stage to the
  /// same other one run one after the other, beside compute; on a single stage
  /// there are none.
  Picoseconds forwardTransfer = 0, backwardTransfer = 0;
  /// All stages wait for each other's reductions before any update: gradients
  /// are clipped by their norm, or a weight is on several stages.
  bool stagesWait = false;
};

/// An item as it ran.
struct PipelineEvent {
  unsigned stage = 0;
  PipelineItem item;
  Picoseconds start = 0, end = 0;
};

/// Activations (of an F) or their gradient (of a B or BW) between stages.
struct PipelineTransfer {
  unsigned from = 0, to = 0;
  /// The item that made it, on the stage `from`.
  PipelineItem item;
  Picoseconds start = 0, end = 0;
};

/// Times are counted from the start of stage 0.
struct PipelineRun {
  struct Stage {
    /// The first item's start and the last one's end.
    Picoseconds start = 0, end = 0;
    /// When the stage's update starts and ends, after its reductions.
    Picoseconds updateStart = 0, updateEnd = 0;
    /// Its items together: end - start - busy is its bubble between them.
    Picoseconds busy = 0;
    /// The largest number of microbatches, per chunk, that are kept at once,
    /// from the end of their F to the end of their last backward item.
    int64_t kept = 0;
  };

  /// From one step to the next in a sequence of steps. If the stages wait, the
  /// makespan; otherwise a stage begins the next step as soon as it ends this
  /// one, and the step is the longest time from first start to end of one
  /// stage, or of one link, whose transfers can outlast the forwards of
  /// inference. A sequence of steps is never slower than that; stages of
  /// unequal times can be a little faster, where an early start was of no use.
  Picoseconds step = 0;
  /// From standstill to the last end, updates included.
  Picoseconds makespan = 0;
  /// The pipeline's part of the step: the same as `step` without reductions and
  /// updates.
  Picoseconds pipeline = 0;
  /// The part of `pipeline` that the slowest stage does not work, of 1.
  double bubble = 0;
  std::vector<Stage> stages;
  /// Empty unless asked for; ordered by stage, and by start in each. Transfers
  /// stand at their sender.
  std::vector<PipelineEvent> events;
  std::vector<PipelineTransfer> transfers;
};

/// Runs the step: each stage in its order, an item as soon as the stage is free
/// and its input has arrived. Linear in stages x microbatches x chunks. The
/// order must be legal, each stage have an entry for each of its chunks.
PipelineRun simulate(const Pipeline &pipeline, bool withEvents = false);

/// A microbatch's kept values of one chunk, in bytes or any other unit: all of
/// them from the end of its F to the end of its B or BW, and what W reads from
/// there to the end of W.
struct PipelineKept {
  int64_t untilBackward = 0, untilWeights = 0;
};
/// The sum that a stage keeps at each of its items, saturated: with an F's own
/// values, and with those of a B that its W reads; `chunks` has an entry for
/// each chunk. Zero without training.
std::vector<int64_t> keptAt(llvm::ArrayRef<PipelineItem> items,
                            llvm::ArrayRef<PipelineKept> chunks);
/// The most that it keeps at once.
int64_t peakKept(llvm::ArrayRef<PipelineItem> items,
                 llvm::ArrayRef<PipelineKept> chunks);

/// Lower bounds on every run, without simulation; linear in stages x chunks. A
/// later stage fills, does its own work, and drains; nor is a run shorter
/// than the transfers of one link.
struct PipelineBounds {
  Picoseconds step = 0, makespan = 0, pipeline = 0;
};
PipelineBounds lowerBounds(const Pipeline &pipeline);

/// The times of layers, one like the other, for one microbatch.
struct PipelineLayers {
  int64_t layers = 0;
  Picoseconds layer = 0;
  /// The first stage's work before the first layer, and the last stage's after
  /// the last one.
  Picoseconds prologue = 0, epilogue = 0;
};
/// How many layers each chunk of each stage holds, at least one. The slowest
/// stage is as fast as possible, then the second slowest, and so on; where this
/// leaves a choice, the first stage holds fewer, which keeps the most
/// microbatches, then the last, then later ones. The same holds of the chunks
/// of a stage. There must be at least stages x chunks layers.
std::vector<llvm::SmallVector<int64_t, 1>>
layersOfStages(const PipelineLayers &layers, int64_t stages,
               int64_t chunks = 1);

} // namespace shardc

#endif // SHARDC_COST_PIPELINESCHEDULE_H
