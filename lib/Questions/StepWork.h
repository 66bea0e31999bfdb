//===- StepWork.h - Work of a program before any sharding -----*- C++ -*-===//

#ifndef SHARDC_LIB_QUESTIONS_STEPWORK_H
#define SHARDC_LIB_QUESTIONS_STEPWORK_H

#include "shardc/Dialect/Shd/IR/Pipeline.h"
#include "shardc/Dialect/Shd/IR/Shd.h"

namespace shardc {

/// An operation on global extents, on one device.
inline OpWork wholeWork(shd::CostOpInterface op, const Machine &machine) {
  ShardingRule rule =
      mlir::cast<shd::ShardingRuleOpInterface>(op.getOperation())
          .getShardingRule();
  return op.getWork(wholeExtents(rule), machine);
}

/// Times are rounded to picoseconds, one operation at a time.
inline constexpr double kRounding = 1e-6;

/// The matrix work of all runs of an operation, on one device at its peak: no
/// devices take less together. 0 of other work.
inline double secondsAtPeak(shd::CostOpInterface op, const Machine &machine) {
  OpWork work = wholeWork(op, machine);
  std::optional<double> peak = machine.peak(work.computeType);
  if (!peak || work.matrixFlops == 0)
    return 0;
  return work.matrixFlops * shd::runsOfAllStages(op) / *peak * (1 - kRounding);
}

inline double bytesOf(mlir::Value value) {
  return shd::tensorShape(value.getType()).globalBytes();
}

} // namespace shardc

#endif // SHARDC_LIB_QUESTIONS_STEPWORK_H
