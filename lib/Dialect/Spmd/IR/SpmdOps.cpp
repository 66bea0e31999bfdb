//===- SpmdOps.cpp - Operations of the spmd dialect -----------------------===//
//
// Verifiers of the operations; labels are those of their descriptions.
//
//===----------------------------------------------------------------------===//

#include "shardc/Dialect/Shd/IR/Explicit.h"
#include "shardc/Dialect/Shd/IR/Halo.h"
#include "shardc/Dialect/Spmd/IR/Spmd.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::spmd;

ParseResult spmd::parseDirection(OpAsmParser &parser, UnitAttr &backward) {
  if (succeeded(parser.parseOptionalKeyword("forward")))
    return success();
  backward = parser.getBuilder().getUnitAttr();
  return parser.parseKeyword("backward");
}

void spmd::printDirection(OpAsmPrinter &printer, Operation *,
                          UnitAttr backward) {
  printer << (backward ? "backward" : "forward");
}

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
  if (failed(shd::detail::verifyStacked(*this, getStacked(),
                                        cast<RankedTensorType>(getGlobal()),
                                        getKind() == shd::TensorKind::Input)))
    return failure();
  // P3
  if (failed(verifyIndexCount(*this, getIndices(), getType())))
    return failure();
  // P4
  if (shd::ShardingAttr sharding = shd::getSharding(getGlobal());
      sharding && !sharding.getPartial().empty() &&
      getKind() != shd::TensorKind::Gradient)
    return emitOpError() << "'" << getSym()
                         << "' may not be stored as a partial sum";
  // P5
  return shd::detail::verifyOfWeight(*this, getKind(), getSym(),
                                     getOf().has_value());
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
  // U1
  ParameterOp state = getParameter();
  if (!state || state.getKind() == shd::TensorKind::Input)
    return emitOpError() << "is of a tensor that is no parameter that is a "
                            "state";
  if (failed(shd::detail::verifyPartOf(*this, state, getAt(),
                                       getValue().getType())))
    return failure();
  // U2
  return shd::detail::verifyUpdatedOnce(*this, shd::isBuffer(state.getKind()),
                                        getStateMutable(), getAt(),
                                        state.getSym());
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
  return shd::detail::verifyMovement(
      op, mesh, collectiveKind(op), shd::explicitLayout(mesh, from),
      shd::explicitLayout(mesh, to), op.getAxes());
}

/// Z1 to Z5: `part` is a device's part of `global`, and `more` has the rows of
/// a halo, too.
template <typename Op>
static LogicalResult verifyHalo(Op op, Type global, RankedTensorType part,
                                StringRef ofPart, RankedTensorType more,
                                StringRef ofMore) {
  // Z1
  auto from = cast<RankedTensorType>(op.getFrom());
  auto to = cast<RankedTensorType>(op.getTo());
  if (from.getShape() != to.getShape() ||
      from.getElementType() != to.getElementType())
    return op.emitOpError() << "turns " << from << " into " << to
                            << ", which differ in more than their shardings";
  // Z5
  if (failed(spmd::detail::verifyPart(op, global, part, ofPart)))
    return failure();
  // Z1 to Z4
  Mesh mesh = meshOf(op);
  if (failed(shd::detail::verifyHalo(
          op, mesh, collectiveKind(op), from.getShape(),
          shd::explicitLayout(mesh, from), shd::explicitLayout(mesh, to),
          op.getDim(), op.getRows(), op.getAxes())))
    return failure();
  // Z5
  if (RankedTensorType expected =
          withHalo(part, op.getDim(), shd::haloRows(op));
      expected != more)
    return op.emitOpError()
           << ofMore << " must be " << expected << ", but is " << more;
  return success();
}

LogicalResult HaloExchangeOp::verify() {
  return verifyHalo(*this, getFrom(), getInput().getType(), "the operand",
                    getType(), "the result");
}

LogicalResult HaloReduceOp::verify() {
  return verifyHalo(*this, getTo(), getType(), "the result",
                    getInput().getType(), "the operand");
}

LogicalResult AllGatherOp::verify() { return verifyCollective(*this); }
LogicalResult AllSliceOp::verify() { return verifyCollective(*this); }
LogicalResult AllToAllOp::verify() { return verifyCollective(*this); }
LogicalResult ReduceScatterOp::verify() { return verifyCollective(*this); }
LogicalResult AllReduceOp::verify() { return verifyCollective(*this); }
LogicalResult CollectivePermuteOp::verify() { return verifyCollective(*this); }
LogicalResult ToHostOp::verify() { return verifyCollective(*this); }
LogicalResult FromHostOp::verify() { return verifyCollective(*this); }

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

/// R1
static LogicalResult verifyRing(Operation *op, ArrayAttr axes) {
  if (axes.empty())
    return op->emitOpError() << "a ring must have an axis";
  Mesh mesh = meshOf(op);
  AxisSet seen = 0;
  for (StringRef name : axes.getAsValueRange<StringAttr>()) {
    std::optional<AxisIndex> axis = mesh.find(name);
    if (!axis)
      return op->emitOpError()
             << "axis '" << name << "' is not one of the mesh";
    if (seen & axisBit(*axis))
      return op->emitOpError() << "axis '" << name << "' appears twice";
    seen |= axisBit(*axis);
  }
  return success();
}

LogicalResult RingPositionOp::verify() {
  // R1
  if (failed(verifyRing(*this, getAxes())))
    return failure();
  // R2
  int64_t plus = getPlus();
  if (plus < 0)
    return emitOpError() << "must add at least 0, but adds " << plus;
  return success();
}

LogicalResult RingShiftOp::verify() { return verifyRing(*this, getAxes()); }

/// K1 and K2, L1 and L2: `whole` consists of parts like `chunk`.
static LogicalResult verifyParts(Operation *op, RankedTensorType whole,
                                 RankedTensorType chunk, int64_t dim) {
  // K1, L1
  if (dim < 0 || dim >= whole.getRank())
    return op->emitOpError()
           << "dimension " << dim << " is not one of " << whole;
  // K2, L2
  auto others = [&](RankedTensorType type) {
    SmallVector<int64_t> shape(type.getShape());
    if (dim < type.getRank())
      shape[dim] = 1;
    return shape;
  };
  if (whole.getElementType() == chunk.getElementType() &&
      others(whole) == others(chunk) &&
      whole.getDimSize(dim) % chunk.getDimSize(dim) == 0)
    return success();
  return op->emitOpError() << whole << " does not consist of parts " << chunk
                           << " along dimension " << dim;
}

LogicalResult ChunkOp::verify() {
  return verifyParts(*this, getInput().getType(), getType(), getDim());
}

LogicalResult PlaceOp::verify() {
  return verifyParts(*this, getWhole().getType(), getChunk().getType(),
                     getDim());
}
