//===- StepWork.h - Work of a program before any sharding -----*- C++ -*-===//

#ifndef SHARDC_LIB_QUESTIONS_STEPWORK_H
#define SHARDC_LIB_QUESTIONS_STEPWORK_H

#include "shardc/Dialect/Shd/IR/Host.h"
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

/// Seconds of so many of an operation's matrix FLOPs on one device, at its peak
/// or once calibrated at what it reaches; 0 where the peak is not stated.
inline double matrixSeconds(const OpWork &work, double flops,
                            const Machine &machine) {
  if (flops == 0 || !machine.peak(work.computeType))
    return 0;
  OpWork matrix;
  matrix.matrixFlops = flops;
  matrix.computeType = work.computeType;
  matrix.isAttention = work.isAttention;
  GroupCost cost;
  addWork(machine, matrix, cost);
  calibrate(machine, /*kernels=*/0, cost);
  return cost.deviceSeconds();
}

/// The matrix work of all runs of an operation, on one device: no devices take
/// less together. 0 of other work.
inline double leastSeconds(shd::CostOpInterface op, const Machine &machine) {
  OpWork work = wholeWork(op, machine);
  return matrixSeconds(work, work.matrixFlops, machine) *
         shd::runsOfAllStages(op) * (1 - kRounding);
}

inline double bytesOf(mlir::Value value) {
  return shd::tensorShape(value.getType()).globalBytes();
}

/// True if the step reads all of a weight: tables are gathered from.
inline bool isReadWhole(shd::DeclareOp declare) {
  return !declare->use_empty() &&
         llvm::none_of(declare->getUsers(), llvm::IsaPred<shd::GatherOp>);
}

/// Seconds that no plan without stages takes less than: all devices share the
/// products and the weights that they read, without a collective.
inline double leastSeconds(shd::ProgramOp program, const Machine &machine,
                           double devices) {
  double products = 0, bytes = 0;
  program->walk(
      [&](shd::CostOpInterface op) { products += leastSeconds(op, machine); });
  for (auto declare : program.getBody().getOps<shd::DeclareOp>())
    if (declare.getKind() == shd::TensorKind::Weight && isReadWhole(declare) &&
        !shd::isOnHost(declare.getResult()))
      bytes += bytesOf(declare.getResult());
  GroupCost read;
  addTraffic(machine, bytes, read);
  calibrate(machine, /*kernels=*/0, read);
  return std::max(products, read.deviceSeconds() * (1 - kRounding)) / devices;
}

} // namespace shardc

#endif // SHARDC_LIB_QUESTIONS_STEPWORK_H
