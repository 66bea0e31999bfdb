//===- RunSchedule.h - Where collectives are issued -----------*- C++ -*-===//
//
// The part of a schedule (docs/CostModel.md#the-schedule) that an interpreter
// follows: the order in which collectives start, without times.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SCHEDULE_RUNSCHEDULE_H
#define SHARDC_SCHEDULE_RUNSCHEDULE_H

#include "mlir/IR/Operation.h"
#include <vector>

namespace shardc {

/// A collective that is issued before program order needs it.
struct EarlyIssue {
  mlir::Operation *collective = nullptr;
  /// Where: in the program or the body of a repeat, when this operation of it
  /// and its group have run, or (null) before anything else.
  mlir::Block *block = nullptr;
  mlir::Operation *after = nullptr;
  /// While that operation runs.
  bool during = false;
  /// For the next iteration of the repeat.
  bool next = false;
  /// Compute waits for it.
  bool blocks = false;
};
using RunSchedule = std::vector<EarlyIssue>;

} // namespace shardc

#endif // SHARDC_SCHEDULE_RUNSCHEDULE_H
