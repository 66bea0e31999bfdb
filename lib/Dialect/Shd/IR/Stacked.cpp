//===- Stacked.cpp - Tensors that are stacked along repeats ---------------===//
//
// The layouts and types of their parts, how declarations and parts find each
// other, and the constraints on operations that read and write parts.
//
//===----------------------------------------------------------------------===//

#include "shardc/Dialect/Shd/IR/Segments.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

Layout shd::partLayout(const Layout &layout, unsigned rank) {
  assert(rank <= layout.rank() && "a part has some of the dimensions");
  Layout part;
  part.dims.append(layout.dims.end() - rank, layout.dims.end());
  part.partial = layout.partial;
  return part;
}

RankedTensorType shd::partType(Type stacked, unsigned dims) {
  auto type = cast<RankedTensorType>(stacked);
  ShardingAttr sharding = getSharding(type);
  if (sharding)
    sharding = ShardingAttr::get(type.getContext(),
                                 sharding.getDims().drop_front(dims),
                                 sharding.getPartial());
  return RankedTensorType::get(type.getShape().drop_front(dims),
                               type.getElementType(), sharding);
}

unsigned shd::stackedDims(Value value) {
  auto declare = value.getDefiningOp<DeclareOp>();
  return declare ? declare.getStacked() : 0;
}

bool shd::isReadWhole(Value value) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if (auto part = dyn_cast<PartOp>(user))
      return part.getAt().size() < stackedDims(value);
    return user->getName().stripDialect() != "update";
  });
}

Value shd::wholeOf(Value value) {
  while (auto part = value.getDefiningOp<PartOp>())
    value = part.getSource();
  return value;
}

DeclareOp shd::declarationOf(Value value) {
  return wholeOf(value).getDefiningOp<DeclareOp>();
}

bool shd::standsBefore(Operation *a, Operation *b) {
  Block *common = a->getBlock();
  while (!common->findAncestorOpInBlock(*b))
    common = common->getParentOp()->getBlock();
  return common->findAncestorOpInBlock(*a)->isBeforeInBlock(
      common->findAncestorOpInBlock(*b));
}

/// The part that is read first in program order, or null.
static PartOp firstPartOf(DeclareOp declare) {
  PartOp first;
  for (Operation *user : declare->getUsers())
    if (auto part = dyn_cast<PartOp>(user);
        part && (!first || standsBefore(part, first)))
      first = part;
  return first;
}

UpdateOp shd::updateOf(DeclareOp declare) {
  for (OpOperand &use : declare->getUses())
    if (auto update = dyn_cast<UpdateOp>(use.getOwner());
        update && use == update.getStateMutable())
      return update;
  return {};
}

UpdateOp shd::updateBefore(PartOp part) {
  DeclareOp declare = declarationOf(part);
  if (!declare || !declare.isBuffer())
    return {};
  // A part of a part is taken where that is.
  while (auto outer = part.getSource().getDefiningOp<PartOp>())
    part = outer;
  UpdateOp last;
  for (OpOperand &use : declare->getUses())
    if (auto update = dyn_cast<UpdateOp>(use.getOwner());
        update && use == update.getStateMutable() &&
        standsBefore(update, part) && (!last || standsBefore(last, update)))
      last = update;
  return last;
}

Operation *shd::introducerOf(DeclareOp declare) {
  PartOp part = firstPartOf(declare);
  return part ? part.getOperation() : declare.getOperation();
}

DeclareOp shd::introducedBy(Operation *op) {
  auto declare = dyn_cast<DeclareOp>(op);
  if (auto part = dyn_cast<PartOp>(op))
    declare = part.getSource().getDefiningOp<DeclareOp>();
  return declare && introducerOf(declare) == op ? declare : DeclareOp();
}

RepeatOp shd::repeatOf(Value number) {
  auto argument = dyn_cast<BlockArgument>(number);
  return argument && argument.getArgNumber() == 0
             ? dyn_cast<RepeatOp>(argument.getOwner()->getParentOp())
             : RepeatOp();
}

bool shd::isOfSaved(Value stack) {
  Operation *maker = wholeOf(stack).getDefiningOp();
  auto kind =
      maker ? maker->getAttrOfType<TensorKindAttr>("kind") : TensorKindAttr();
  return kind && kind.getValue() == TensorKind::Saved;
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// True if an axis splits one of the first dimensions.
static bool splitsFirst(RankedTensorType type, unsigned dims) {
  ShardingAttr sharding = getSharding(type);
  return sharding && llvm::any_of(sharding.getDims().take_front(dims),
                                  [](DimShardingAttr dim) {
                                    return !dim.getAxes().empty();
                                  });
}

LogicalResult shd::detail::verifyStacked(Operation *op, int64_t dims,
                                         RankedTensorType type, bool isInput) {
  if (dims == 0)
    return success();
  if (isInput)
    return op->emitOpError() << "an input is not stacked";
  if (dims < 0 || dims > type.getRank())
    return op->emitOpError() << "is stacked along " << dims
                             << " dimensions, but has " << type.getRank();
  if (splitsFirst(type, dims))
    return op->emitOpError() << "is split along a dimension of the stack";
  return success();
}

LogicalResult shd::detail::verifyOfWeight(Operation *op, TensorKind kind,
                                          StringRef name, bool isOf) {
  bool isOfWeight = kind == TensorKind::Gradient || kind == TensorKind::Master;
  // A moment may be of none: the number of the step.
  if (kind == TensorKind::Moment || isOfWeight == isOf)
    return success();
  return op->emitOpError() << "'" << name << "' "
                           << (isOfWeight ? "needs the weight that it is of"
                                          : "is not of a weight");
}

/// A part is taken along all stacked dimensions of its declaration; one along
/// the first of them is there for parts of it.
static LogicalResult verifyDepth(Operation *op, Value stacked, size_t depth) {
  while (auto outer = stacked.getDefiningOp<PartOp>()) {
    depth += outer.getAt().size();
    stacked = outer.getSource();
  }
  Operation *source = stacked.getDefiningOp();
  bool isDeclared = source && source->hasAttr("kind");
  bool isWhole = depth == 0;
  if (!isDeclared || isWhole)
    return success();
  auto known = source->getAttrOfType<IntegerAttr>("stacked");
  size_t dims = known ? known.getInt() : 0;
  bool isForParts =
      isa<PartOp>(op) && llvm::all_of(op->getUsers(), llvm::IsaPred<PartOp>);
  if (depth == dims || (depth < dims && isForParts))
    return success();
  return op->emitOpError() << "names " << depth
                           << " iterations, but the tensor is stacked along "
                           << dims << " dimensions";
}

LogicalResult shd::detail::verifyPartOf(Operation *op, Value stacked,
                                        ValueRange at, Type part) {
  auto type = cast<RankedTensorType>(stacked.getType());
  if (at.size() > size_t(type.getRank()))
    return op->emitOpError()
           << "names " << at.size() << " iterations, but the tensor has "
           << type.getRank() << " dimensions";
  Operation *outside = stacked.getParentBlock()->getParentOp();
  bool isSaved = isOfSaved(stacked);
  for (auto [number, extent] : llvm::zip_first(at, type.getShape())) {
    // Q1
    RepeatOp repeat = repeatOf(number);
    if (!repeat || !outside->isProperAncestor(repeat))
      return op->emitOpError()
             << "needs numbers of repeats inside of which the tensor is not "
                "made, the outermost first";
    outside = repeat;
    // Q2
    if (!mayNumberParts(repeat, extent, isSaved))
      return op->emitOpError()
             << "the repeat of '" << repeat.getIndex() << "' runs "
             << iterationsOfAll(repeat) << " times, but the tensor has "
             << extent << " parts";
  }
  // Q3
  if (splitsFirst(type, at.size()))
    return op->emitOpError() << "the tensor is split along its parts";
  if (RankedTensorType expected = partType(type, at.size()); expected != part)
    return op->emitOpError()
           << "the part must have type " << expected << ", but has " << part;
  // Q5
  return verifyDepth(op, stacked, at.size());
}

/// True if one update keeps the beginnings of segments, and the other one the
/// iterations of a segment that runs again.
static bool areOfSegments(Value state, ValueRange at, ValueRange other) {
  if (!isOfSaved(state) || at.size() != 1 || other.size() != 1)
    return false;
  RepeatOp a = repeatOf(at.front()), b = repeatOf(other.front());
  return a && b && segmentsOf(a).has_value() != segmentsOf(b).has_value();
}

LogicalResult shd::detail::verifyUpdatedOnce(Operation *op, bool isBuffer,
                                             OpOperand &state, ValueRange at,
                                             StringRef name) {
  size_t around = 0;
  for (auto repeat = op->getParentOfType<RepeatOp>(); repeat;
       repeat = repeat->getParentOfType<RepeatOp>())
    ++around;
  if (isBuffer ? around < at.size() : around != at.size())
    return op->emitOpError()
           << "state '" << name << "' is updated in " << around
           << " repeats, but " << at.size() << " are named";
  for (OpOperand &use : state.get().getUses())
    if (use.getOwner() != op && use.getOwner()->getName() == op->getName() &&
        use.getOperandNumber() == state.getOperandNumber() &&
        !areOfSegments(state.get(), at,
                       use.getOwner()->getOperands().drop_front(
                           state.getOperandNumber() + 1)))
      return op->emitOpError() << "state '" << name << "' is updated twice";
  return success();
}
