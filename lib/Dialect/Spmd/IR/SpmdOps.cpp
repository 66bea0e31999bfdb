//===- SpmdOps.cpp - Operations of the spmd dialect -----------------------===//
//
// What each operation verifies; the labels are those of its description.
//
//===----------------------------------------------------------------------===//

#include "shardc/Dialect/Spmd/IR/Spmd.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::spmd;

#define GET_OP_CLASSES
#include "shardc/Dialect/Spmd/IR/SpmdOps.cpp.inc"

static LogicalResult verifyAxes(Operation *op, const Mesh &mesh,
                                shd::ShardingAttr sharding) {
  auto verifyAxis = [&](StringAttr axis) -> LogicalResult {
    if (mesh.find(axis))
      return success();
    return op->emitOpError() << "the sharding names axis '" << axis.getValue()
                             << "', which the mesh lacks";
  };
  for (shd::DimShardingAttr dim : sharding.getDims())
    for (StringAttr axis : dim.getAxes())
      if (failed(verifyAxis(axis)))
        return failure();
  for (StringAttr axis : sharding.getPartial())
    if (failed(verifyAxis(axis)))
      return failure();
  return success();
}

LogicalResult spmd::detail::verifyPart(Operation *op, Type global, Type local,
                                       StringRef what) {
  Mesh mesh = meshOf(op);
  if (shd::ShardingAttr sharding = shd::getSharding(global))
    if (failed(verifyAxes(op, mesh, sharding)))
      return failure();
  if (RankedTensorType expected = localType(mesh, global); expected != local)
    return op->emitOpError()
           << what << " must be " << expected << ", a device's part of "
           << global << ", but is " << local;
  return success();
}

/// One index per dimension.
static LogicalResult verifyIndexCount(Operation *op, ArrayAttr indices,
                                      RankedTensorType type) {
  if (indices.size() == size_t(type.getRank()))
    return success();
  return op->emitOpError() << "has " << indices.size()
                           << " indices for a tensor of " << type.getRank()
                           << " dimensions";
}

LogicalResult ParameterOp::verify() {
  // P1
  if (failed(spmd::detail::verifyPart(*this, getGlobal(), getType(),
                                      "the result")))
    return failure();
  // P2
  if (getKind() == shd::TensorKind::Input &&
      !isa<ProgramOp>((*this)->getParentOp()))
    return emitOpError() << "input '" << getSym()
                         << "' must stand directly in the program";
  // P3
  if (failed(verifyIndexCount(*this, getIndices(), getType())))
    return failure();
  // P4
  if (shd::ShardingAttr sharding = shd::getSharding(getGlobal());
      sharding && !sharding.getPartial().empty())
    return emitOpError() << "'" << getSym()
                         << "' may not be stored as a partial sum";
  return success();
}

LogicalResult OutputOp::verify() {
  // O1
  if (failed(spmd::detail::verifyPart(*this, getGlobal(), getValue().getType(),
                                      "the value")))
    return failure();
  // O2
  return verifyIndexCount(*this, getIndices(), getValue().getType());
}

LogicalResult UpdateOp::verify() {
  ParameterOp state;
  for (Operation &op : *(*this)->getBlock()) {
    if (auto parameter = dyn_cast<ParameterOp>(op);
        parameter && parameter.getKind() == shd::TensorKind::State &&
        parameter.getSym() == getSym()) {
      // U1
      if (state)
        return emitOpError() << "state '" << getSym()
                             << "' is a parameter twice in the same region";
      state = parameter;
    }
    // U2
    if (auto other = dyn_cast<UpdateOp>(op);
        other && other != *this && other.getSym() == getSym())
      return emitOpError() << "state '" << getSym() << "' is updated twice";
  }
  // U1
  if (!state)
    return emitOpError() << "state '" << getSym()
                         << "' is not a parameter of the same region";
  if (state.getType() != getValue().getType())
    return emitOpError() << "state '" << getSym() << "' has type "
                         << state.getType() << ", but its value has type "
                         << getValue().getType();
  return success();
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

template <typename Collective>
static LogicalResult verifyCollective(Collective op) {
  // C1
  auto from = cast<RankedTensorType>(op.getFrom());
  auto to = cast<RankedTensorType>(op.getTo());
  if (from.getShape() != to.getShape() ||
      from.getElementType() != to.getElementType())
    return op->emitOpError() << "turns " << from << " into " << to
                             << ", which differ in more than their shardings";
  if (failed(spmd::detail::verifyPart(op, from, op.getInput().getType(),
                                      "the operand")) ||
      failed(spmd::detail::verifyPart(op, to, op.getResult().getType(),
                                      "the result")))
    return failure();
  // C2
  Mesh mesh = meshOf(op);
  return shd::detail::verifyMovement(op, mesh, collectiveKind(op),
                                     layoutOf(mesh, from), layoutOf(mesh, to),
                                     op.getAxes());
}

LogicalResult AllGatherOp::verify() { return verifyCollective(*this); }
LogicalResult AllSliceOp::verify() { return verifyCollective(*this); }
LogicalResult AllToAllOp::verify() { return verifyCollective(*this); }
LogicalResult ReduceScatterOp::verify() { return verifyCollective(*this); }
LogicalResult AllReduceOp::verify() { return verifyCollective(*this); }
LogicalResult CollectivePermuteOp::verify() { return verifyCollective(*this); }
