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

using Names = SmallVector<StringRef>;

/// Makes prefill: positions are 0, 1, ... along the sequence.
class Prefill {
public:
  Prefill(ProgramOp program, const Serving &serving)
      : program(program), serving(serving) {}

  LogicalResult run();

private:
  void place(OpOperand &use);
  bool placeRope(RopeOp op);
  bool placeAttention(AttentionOp op);
  bool placeScatter(ScatterOp op);
  Value ringUpdate(Value cache);
  std::optional<Names> indicesOfTokens(AttentionOp op, unsigned number);
  bool placeRing(AttentionOp op);
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
  bool isBroken = false;
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

/// The dimensions of a cache in an update of the scatter that makes it: the
/// position of each of `into` in `from`, where `sequence` is in place of the
/// one that is written; nothing where the update is another part.
std::optional<SmallVector<unsigned>> updatedDims(ScatterOp op,
                                                 StringRef sequence) {
  auto into = op.getIndexing().getOperandIndices(0);
  auto from = op.getIndexing().getOperandIndices(1);
  if (op.getAccumulate() || op.getPositions().size() != 1 ||
      from.size() != into.size())
    return std::nullopt;
  SmallVector<unsigned> dims;
  for (auto [number, name] : llvm::enumerate(into)) {
    StringRef wanted = int64_t(number) == op.getDims()[0] ? sequence : name;
    auto *found = llvm::find(from, wanted);
    if (found == from.end())
      return std::nullopt;
    dims.push_back(found - from.begin());
  }
  return dims;
}

/// Operands that are tensors of other indices have no pins of the old ones.
void replaceOperand(AttentionOp op, unsigned number, Value value,
                    ArrayRef<StringRef> indices) {
  SmallVector<ArrayAttr> operands(op.getIndexing().getOperands());
  operands[number] = Builder(op.getContext()).getStrArrayAttr(indices);
  op.setIndexingAttr(IndexingAttr::get(op.getContext(), operands,
                                       op.getIndexing().getResults()));
  op->setOperand(number, value);
  if (auto pins = op->getAttrOfType<ArrayAttr>(kOperandPins)) {
    SmallVector<Attribute> kept(pins.begin(), pins.end());
    kept[number] = UnitAttr::get(op.getContext());
    op->setAttr(kOperandPins, ArrayAttr::get(op.getContext(), kept));
  }
}

/// Erases what nobody reads any more.
void eraseUnused(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !isa<ShardingRuleOpInterface, ConstantOp>(op) || !op->use_empty())
    return;
  SmallVector<Value> operands(op->getOperands());
  op->erase();
  for (Value operand : operands)
    eraseUnused(operand);
}

/// The tokens that a scatter writes into a ring buffer, each at its position
/// modulo the number of slots; or null.
Value Prefill::ringUpdate(Value cache) {
  auto scatter = cache.getDefiningOp<ScatterOp>();
  if (!scatter || scatter.getPositions().size() != 1)
    return {};
  auto slots = scatter.getPositions()[0].getDefiningOp<ElementwiseOp>();
  if (!slots || slots.getFunction() != Function::Rem ||
      slots.getIndexing().getOperandIndices(0) !=
          slots.getIndexing().getResultIndices(0))
    return {};
  Value position = slots.getInputs()[0];
  if (position != positions.getResult() && position != tensor)
    return {};
  auto count = slots.getInputs()[1].getDefiningOp<ConstantOp>();
  auto type = cast<RankedTensorType>(cache.getType());
  bool isRing =
      count && count.getValue().getValues<IntegerAttr>()[0].getInt() ==
                   type.getDimSize(scatter.getDims()[0]);
  return isRing ? scatter.getUpdate() : Value();
}

/// The indices of the tokens that a ring buffer of attention's keys or values
/// takes, in the names of attention; nothing if the operand is no such buffer.
std::optional<Names> Prefill::indicesOfTokens(AttentionOp op, unsigned number) {
  Value cache = op->getOperand(number), update = ringUpdate(cache);
  if (!update || cast<RankedTensorType>(update.getType()).getElementType() !=
                     cast<RankedTensorType>(cache.getType()).getElementType())
    return std::nullopt;
  auto scatter = cache.getDefiningOp<ScatterOp>();
  auto names = op.getIndexing().getOperandIndices(number);
  auto dims = updatedDims(scatter, sequenceOf(scatter, 2));
  if (!dims || names[scatter.getDims()[0]] != op.getKey())
    return std::nullopt;
  Names indices(dims->size());
  for (auto [name, at] : llvm::zip_equal(names, *dims))
    indices[at] = name;
  return indices;
}

/// A prompt may be longer than a ring buffer. Its tokens read keys and values
/// where they are made, and those that the buffer would have: the last ones.
bool Prefill::placeRing(AttentionOp op) {
  StringRef sequence = sequenceOf(op, op.getAtOperand());
  auto keys = op.getIndexing().getOperandIndices(AttentionOp::kKeyOperand);
  int64_t slots = cast<RankedTensorType>(op.getK().getType())
                      .getDimSize(llvm::find(keys, op.getKey()) - keys.begin());
  auto k = indicesOfTokens(op, AttentionOp::kKeyOperand);
  auto v = indicesOfTokens(op, AttentionOp::kValueOperand);
  if (!k || !v) {
    if (slots >= serving.prompt)
      return false;
    op->emitError() << "prefill cannot attend to " << slots
                    << " slots for a prompt of " << serving.prompt
                    << " tokens, unless they are keys and values that the same "
                    << "tokens write at `" << serving.position << "["
                    << serving.batch << ", " << serving.sequence << "] % "
                    << slots << "`";
    isBroken = true;
    return false;
  }
  replaceOperand(op, AttentionOp::kKeyOperand, ringUpdate(op.getK()), *k);
  replaceOperand(op, AttentionOp::kValueOperand, ringUpdate(op.getV()), *v);
  for (unsigned number : {op.getKeyAtOperand(), op.getAtOperand()}) {
    dropOperandPin(op, number);
    dropUse(op, number);
    op.setIndexingAttr(withoutOperand(op.getIndexing(), number));
  }
  Value keyAt = op.getKeyAt();
  op.getKeyAtMutable().clear();
  op.getAtMutable().clear();
  eraseUnused(keyAt);
  op.setQuery(sequence);
  op.setWindow(std::min<uint64_t>(op.getWindow().value_or(slots), slots));
  return true;
}

/// Queries and keys are the same positions.
bool Prefill::placeAttention(AttentionOp op) {
  if (op.getKeyAt())
    return placeRing(op);
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
  IndexingAttr indexing = op.getIndexing();
  auto into = indexing.getOperandIndices(0);
  auto from = indexing.getOperandIndices(1);
  auto at = indexing.getOperandIndices(2);
  StringRef sequence = sequenceOf(op, 2);
  auto type = cast<RankedTensorType>(op.getResult().getType());
  auto dims = updatedDims(op, sequence);
  if (!dims || type.getDimSize(op.getDims()[0]) != serving.prompt)
    return false;
  // The update, with the destination's indices in their order.
  SmallVector<Attribute> wanted;
  for (unsigned dim : *dims)
    wanted.push_back(StringAttr::get(op.getContext(), from[dim]));
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

LogicalResult Prefill::run() {
  for (auto declare : program.getBody().getOps<DeclareOp>())
    if (declare.getKind() == TensorKind::Input &&
        declare.getSym() == serving.position)
      positions = declare;
  if (!positions)
    return success();
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
  if (tensor)
    eraseUnused(tensor);
  if (positions.use_empty())
    positions.erase();
  return failure(isBroken);
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
    if (*phase == ServingPhase::Decode)
      setFilledKeys(program, *serving, /*last=*/false);
    else if (failed(Prefill(program, *serving).run()))
      signalPassFailure();
  }
};

} // namespace
} // namespace shardc::shd
