//===- ScheduledProgram.h - A planned program in time ---------*- C++ -*-===//
//
// The schedule of a program whose plan is explicit, with as much overlap as its
// memory allows, and the memory that it then takes:
// docs/CostModel.md#the-schedule and docs/CostModel.md#6-memory-of-one-device.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SCHEDULE_SCHEDULEDPROGRAM_H
#define SHARDC_SCHEDULE_SCHEDULEDPROGRAM_H

#include "shardc/Cost/Schedule.h"
#include "shardc/Schedule/Memory.h"
#include "shardc/Schedule/RunSchedule.h"

namespace shardc {

struct ScheduledProgram {
  /// A group and a collective that run together.
  struct Matmul {
    unsigned group = 0, collective = 0;
    mlir::Operation *op = nullptr;
  };

  Schedule schedule;
  MemoryProfile memory;

  /// The operations behind the schedule's groups and collectives: those that
  /// carry the price.
  std::vector<mlir::Operation *> groups, collectives;
  /// Where the collectives are issued.
  RunSchedule issues;
  /// The collective matmuls.
  std::vector<Matmul> matmuls;
  /// A group that runs around a ring, its attention, and what travels.
  struct Ring {
    unsigned group = 0;
    mlir::Operation *op = nullptr;
    llvm::SmallVector<unsigned, 2> collectives;
    int64_t devices = 1;
  };
  std::vector<Ring> rings;
  /// By body; without collectives, there is nothing to give up.
  std::vector<Overlap> overlap;
  /// The same if memory did not matter, and the bytes that it would take.
  std::vector<Overlap> unlimited;
  int64_t unlimitedPeak = 0;
  /// How much longer the step takes because memory is not unlimited.
  Picoseconds memoryCosts = 0;
};

/// Schedules a program after shd-annotate-cost. Whatever `memoryLimit` is
/// (none: what the machine has), what fits in program order fits as scheduled;
/// of what does not, nothing overlaps.
ScheduledProgram
scheduleProgram(shd::ProgramOp program, const CollectiveModel &model,
                std::optional<int64_t> memoryLimit = std::nullopt);

/// Marks what runs as a collective matmul or as attention around a ring, and
/// nothing else, with `shd.ring`: what was priced so is then lowered so.
void markRings(shd::ProgramOp program, const ScheduledProgram &scheduled);

} // namespace shardc

#endif // SHARDC_SCHEDULE_SCHEDULEDPROGRAM_H
