//===- StepWork.h - Work of a program before any sharding -----*- C++ -*-===//

#ifndef SHARDC_LIB_QUESTIONS_STEPWORK_H
#define SHARDC_LIB_QUESTIONS_STEPWORK_H

#include "shardc/Dialect/Shd/IR/Host.h"
#include "shardc/Dialect/Shd/IR/Pipeline.h"
#include "shardc/Dialect/Shd/IR/Shd.h"
#include "shardc/Dialect/Shd/Transforms/DeviceBound.h"
#include "llvm/ADT/MapVector.h"

namespace shardc {

/// An operation on global extents, on one device.
inline OpWork wholeWork(shd::CostOpInterface op, const Machine &machine) {
  ShardingRule rule =
      mlir::cast<shd::ShardingRuleOpInterface>(op.getOperation())
          .getShardingRule();
  return op.getWork(wholeExtents(rule), machine);
}

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

/// The matrix work of all runs of an operation, shared by devices: no plan
/// takes less. 0 of other work.
inline double leastSeconds(shd::CostOpInterface op, const Machine &machine,
                           double devices) {
  OpWork work = wholeWork(op, machine);
  double runs = shd::runsOfAllStages(op);
  return shd::shareOfDevices(
      matrixSeconds(work, work.matrixFlops, machine) * runs, devices,
      runs * double(std::max<int64_t>(1, op.getRowChunks())));
}

inline double bytesOf(mlir::Value value) {
  return shd::tensorShape(value.getType()).globalBytes();
}

/// The weight in HBM that a value is, or a part of; null of others.
inline shd::DeclareOp weightOf(mlir::Value value) {
  if (auto part = value.getDefiningOp<shd::PartOp>())
    value = part.getSource();
  auto declare = value.getDefiningOp<shd::DeclareOp>();
  bool isWeight = declare && declare.getKind() == shd::TensorKind::Weight &&
                  !shd::isOnHost(value);
  return isWeight ? declare : shd::DeclareOp();
}

/// Bytes of weights that some operation reads whole, each once. What is read at
/// positions, or through a slice, does not count.
inline double bytesOfWeightsRead(shd::ProgramOp program,
                                 const Machine &machine) {
  llvm::MapVector<mlir::Operation *, double> ofWeight;
  program->walk([&](shd::CostOpInterface op) {
    if (mlir::isa<shd::PositionsOpInterface>(op.getOperation()))
      return;
    OpWork work = wholeWork(op, machine);
    for (auto [operand, bytes] :
         llvm::zip(op->getOperands(), work.operandBytes))
      if (shd::DeclareOp weight = weightOf(operand)) {
        double &most = ofWeight[weight];
        most = std::max(most, std::min(bytes * double(shd::executionCount(op)),
                                       bytesOf(weight.getResult())));
      }
  });
  double sum = 0;
  for (const auto &[weight, bytes] : ofWeight)
    sum += bytes;
  return sum;
}

/// Seconds that no plan without stages takes less than: all devices share the
/// products and the weights that they read, without a collective.
inline double leastSeconds(shd::ProgramOp program, const Machine &machine,
                           double devices) {
  double products = 0;
  program->walk([&](shd::CostOpInterface op) {
    products += leastSeconds(op, machine, devices);
  });
  GroupCost read;
  addTraffic(machine, bytesOfWeightsRead(program, machine), read);
  calibrate(machine, /*kernels=*/0, read);
  return std::max(products, shd::shareOfDevices(read.deviceSeconds(), devices,
                                                shd::kernelsOf(program)));
}

} // namespace shardc

#endif // SHARDC_LIB_QUESTIONS_STEPWORK_H
