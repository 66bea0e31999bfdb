//===- Serve.cpp - shd-serve -----------------------------------*- C++ -*-===//
//
// Prefill and a decode step of one program. They differ in extents, which the
// import has set, in where positions come from, and in how much of the cache
// attention reads.
//
//===----------------------------------------------------------------------===//

#include "shardc/Dialect/Shd/IR/Serving.h"
#include "shardc/Dialect/Shd/Transforms/Passes.h"

using namespace mlir;

namespace shardc::shd {
#define GEN_PASS_DEF_SHDSERVE
#include "shardc/Dialect/Shd/Transforms/Passes.h.inc"

namespace {

/// Makes prefill: positions are 0, 1, ... along the sequence.
class Prefill {
public:
  Prefill(ProgramOp program, const Serving &serving)
      : program(program), serving(serving) {}

  void run();

private:
  void place(OpOperand &use);
  bool placeRope(RopeOp op);
  bool placeAttention(AttentionOp op);
  bool placeScatter(ScatterOp op);
  /// The operation's name for the sequence index of its positions, which are
  /// operand `number`.
  StringRef sequenceOf(ShardingRuleOpInterface op, unsigned number) const {
    return op.getIndexing().getOperandIndices(number)[sequenceDim];
  }
  Value counted();

  ProgramOp program;
  const Serving &serving;
  DeclareOp positions;
  unsigned sequenceDim = 0;
  /// The positions as a tensor, if something needs them.
  Value tensor;
};

/// Indices of an operation without those of one operand.
IndexingAttr withoutOperand(IndexingAttr indexing, unsigned number) {
  SmallVector<ArrayAttr> operands(indexing.getOperands().begin(),
                                  indexing.getOperands().end());
  operands.erase(operands.begin() + number);
  return IndexingAttr::get(indexing.getContext(), operands,
                           indexing.getResults());
}

/// Drops the pin of an operand that goes.
void dropOperandPin(Operation *op, unsigned number) {
  auto pins = op->getAttrOfType<ArrayAttr>(kOperandPins);
  if (!pins)
    return;
  SmallVector<Attribute> kept(pins.begin(), pins.end());
  kept.erase(kept.begin() + number);
  op->setAttr(kOperandPins, ArrayAttr::get(op->getContext(), kept));
}

/// Drops where the text refers to an operand that goes.
void dropUse(Operation *op, unsigned number) {
  auto uses = op->getAttrOfType<DenseI64ArrayAttr>(kUses);
  if (!uses || number >= uses.size())
    return;
  SmallVector<int64_t> kept(uses.asArrayRef());
  kept.erase(kept.begin() + number);
  op->setAttr(kUses, DenseI64ArrayAttr::get(op->getContext(), kept));
}

bool Prefill::placeRope(RopeOp op) {
  StringRef name = sequenceOf(op, 1);
  dropOperandPin(op, 1);
  dropUse(op, 1);
  op.setPositions(name);
  op.setIndexingAttr(withoutOperand(op.getIndexing(), 1));
  op.getAtMutable().clear();
  return true;
}

/// Queries and keys are the same positions.
bool Prefill::placeAttention(AttentionOp op) {
  unsigned number = op.getAtOperand();
  StringRef name = sequenceOf(op, number);
  auto keys = op.getIndexing().getOperandIndices(AttentionOp::kKeyOperand);
  size_t dim = llvm::find(keys, op.getKey()) - keys.begin();
  if (llvm::is_contained(keys, name) ||
      cast<RankedTensorType>(op.getK().getType()).getDimSize(dim) !=
          serving.prompt)
    return false;
  dropOperandPin(op, number);
  dropUse(op, number);
  op.setQuery(name);
  op.setIndexingAttr(withoutOperand(op.getIndexing(), number));
  op.getAtMutable().clear();
  return true;
}

/// A scatter whose update has every position of the destination.
bool Prefill::placeScatter(ScatterOp op) {
  if (op.getAccumulate() || op.getPositions().size() != 1)
    return false;
  IndexingAttr indexing = op.getIndexing();
  auto into = indexing.getOperandIndices(0);
  auto from = indexing.getOperandIndices(1);
  auto at = indexing.getOperandIndices(2);
  StringRef sequence = sequenceOf(op, 2);
  unsigned dim = op.getDims()[0];
  auto type = cast<RankedTensorType>(op.getResult().getType());
  if (type.getDimSize(dim) != serving.prompt || from.size() != into.size())
    return false;
  // The update, with the destination's indices in their order.
  SmallVector<Attribute> wanted;
  for (auto [number, name] : llvm::enumerate(into))
    wanted.push_back(
        StringAttr::get(op.getContext(), number == dim ? sequence : name));
  for (Attribute name : wanted)
    if (!llvm::is_contained(from, cast<StringAttr>(name).getValue()))
      return false;
  for (StringRef name : at)
    if (name != sequence && !llvm::is_contained(into, name))
      return false;
  OpBuilder builder(op);
  MLIRContext *context = op.getContext();
  SmallVector<Attribute> given;
  for (StringRef name : from)
    given.push_back(StringAttr::get(context, name));
  ArrayAttr result = ArrayAttr::get(context, wanted);
  IndexingAttr copied =
      IndexingAttr::get(context, ArrayAttr::get(context, given), result);
  Operation *copy =
      given == wanted
          ? ReshardOp::create(builder, op.getLoc(), type, op.getUpdate(),
                              copied)
                .getOperation()
          : ElementwiseOp::create(builder, op.getLoc(), type, Function::Copy,
                                  ValueRange{op.getUpdate()}, copied)
                .getOperation();
  for (StringRef name : {kResultPin, kName, kTemporary, kFile, kDef, kCall})
    if (Attribute attr = op->getAttr(name))
      copy->setAttr(name, attr);
  op.getResult().replaceAllUsesWith(copy->getResult(0));
  Value destination = op.getDestination();
  op.erase();
  if (Operation *part = destination.getDefiningOp();
      isa_and_nonnull<PartOp>(part) && part->use_empty())
    part->erase();
  return true;
}

/// `iota[T]` for every sequence.
Value Prefill::counted() {
  if (tensor)
    return tensor;
  OpBuilder builder(program.getContext());
  builder.setInsertionPointAfter(positions);
  MLIRContext *context = program.getContext();
  auto type = cast<RankedTensorType>(positions.getType());
  Location loc = positions.getLoc();
  ArrayAttr one = builder.getStrArrayAttr({serving.sequence});
  auto row = RankedTensorType::get({type.getDimSize(sequenceDim)},
                                   type.getElementType());
  auto iota =
      IotaOp::create(builder, loc, row,
                     IndexingAttr::get(context, ArrayRef<ArrayAttr>(), one));
  iota->setAttr(kTemporary, builder.getUnitAttr());
  auto copy = ElementwiseOp::create(
      builder, loc, type, Function::Copy, ValueRange{iota.getResult()},
      IndexingAttr::get(context, one, positions.getIndices()));
  copy->setAttr(kName, positions.getSymAttr());
  tensor = copy.getResult();
  return tensor;
}

void Prefill::place(OpOperand &use) {
  Operation *user = use.getOwner();
  unsigned number = use.getOperandNumber();
  bool isPlaced = false;
  if (auto rope = dyn_cast<RopeOp>(user); rope && number == 1)
    isPlaced = placeRope(rope);
  else if (auto attention = dyn_cast<AttentionOp>(user);
           attention && number == attention.getAtOperand())
    isPlaced = placeAttention(attention);
  else if (auto scatter = dyn_cast<ScatterOp>(user); scatter && number == 2)
    isPlaced = placeScatter(scatter);
  if (!isPlaced)
    use.set(counted());
}

void Prefill::run() {
  for (auto declare : program.getBody().getOps<DeclareOp>())
    if (declare.getKind() == TensorKind::Input &&
        declare.getSym() == serving.position)
      positions = declare;
  if (!positions)
    return;
  for (Attribute name : positions.getIndices()) {
    if (cast<StringAttr>(name) == serving.sequence)
      break;
    ++sequenceDim;
  }
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : positions.getResult().getUses())
    uses.push_back(&use);
  // Uses are listed last first.
  for (OpOperand *use : llvm::reverse(uses))
    place(*use);
  if (positions.use_empty())
    positions.erase();
}

struct ShdServe : impl::ShdServeBase<ShdServe> {
  void runOnOperation() override {
    ProgramOp program = getOperation();
    std::optional<ServingPhase> phase = servingPhase(program);
    if (!phase)
      return;
    std::optional<Serving> serving = Serving::of(program);
    if (!serving) {
      program.emitError() << "'" << kServingPhase << "' needs '" << kServing
                          << "', which says what is served";
      return signalPassFailure();
    }
    if (*phase == ServingPhase::Prefill)
      Prefill(program, *serving).run();
    else
      setFilledKeys(program, *serving, /*last=*/false);
  }
};

} // namespace
} // namespace shardc::shd
