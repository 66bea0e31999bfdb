//===- Differentiate.cpp - shd-differentiate -------------------*- C++ -*-===//
//
// Reverse-mode differentiation. The operations between the trained weights and
// the loss are visited from the last to the first of the canonical order; each
// gives its operands gradients (GradientOpInterface), and a value that several
// operations read sums what they give. A repeat becomes a repeat in reverse
// whose carried values are the gradients of the carried values; what its
// iterations read of the forward pass they find in buffers stacked along the
// repeat, or recompute.
//
// With `every(k)` a repeat is cut into segments first (Segments.h). The repeat
// over the segments keeps what each begins with; its gradient runs the segment
// again, keeps what the segment's iterations need, and differentiates them.
//
//===----------------------------------------------------------------------===//

#include "CanonicalOrder.h"
#include "ChunkedLoss.h"
#include "mlir/IR/IRMapping.h"
#include "shardc/Dialect/Shd/IR/Gradient.h"
#include "shardc/Dialect/Shd/IR/Segments.h"
#include "shardc/Dialect/Shd/Transforms/Passes.h"
#include "shardc/Optimizer/Names.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir;

namespace shardc::shd {
#define GEN_PASS_DEF_SHDDIFFERENTIATE
#include "shardc/Dialect/Shd/Transforms/Passes.h.inc"

namespace {

/// The repeat over the segments of `L` is `L.segment`.
constexpr llvm::StringLiteral kOverSegments = ".segment";

/// A repeat of the forward pass while its gradient is built.
struct Frame {
  RepeatOp forward, backward;
  Frame *outer = nullptr;
  /// Values of the forward iteration as the backward iteration has them.
  llvm::DenseMap<Value, Value> available;
  /// The last of the operations that make these, at the start of the body.
  Operation *lastMade = nullptr;
  /// The buffers of kept values; of a segment that runs again, those of the
  /// carried values, by their number.
  llvm::DenseMap<Value, DeclareOp> buffers;
  SmallVector<DeclareOp> beginnings;
  /// The segment of the forward pass that runs again.
  RepeatOp segment;
};

class Differentiation : private BackwardScope {
public:
  Differentiation(ProgramOp program, TrainingAttr training)
      : program(program), training(training), builder(program.getContext()) {}

  LogicalResult run();

private:
  FailureOr<OutputOp> findLoss();
  LogicalResult findTrained();
  void stackReadByNumber();
  LogicalResult cutIntoSegments();
  void cut(RepeatOp repeat, int64_t length);
  void findActive(Block &block);
  void prepare();
  LogicalResult visit(Block &block);
  LogicalResult visit(Operation &op);
  struct Carried;
  std::optional<Carried> findCarried(RepeatOp repeat);
  LogicalResult fillBody(const Carried &carried, Frame &frame);
  LogicalResult visitRepeat(RepeatOp repeat);
  void visitPart(PartOp part);
  struct ChunkOperand;
  Value splitChunks(const ChunkedLoss::Cut &cut, Value value, unsigned dim);
  Value addChunk(const ChunkedLoss::Cut &cut, const ChunkOperand &operand,
                 Value made, Value before, Value number);
  Type typeOfSum(const ChunkedLoss &loss, unsigned level, Value value);
  LogicalResult visitChunk(const ChunkedLoss &loss,
                           MutableArrayRef<ChunkOperand> operands,
                           Value gradient);
  LogicalResult runChunks(const ChunkedLoss &loss, unsigned level,
                          MutableArrayRef<ChunkOperand> operands,
                          Value gradient);
  LogicalResult visitInChunks(const ChunkedLoss &loss, Value gradient);
  std::string nameOf(Value value) const;
  void give(Value value, Value gradient);
  Value gradientOf(Value value);
  Value castTo(Value value, Type type);
  Value zeros(Value like, Type elementType);
  Type typeOfBuffers();
  Value asSent(Value gradient);
  DeclareOp declareLike(DeclareOp weight);

  bool isWanted(Value value) override;
  Type gradientType(Value value) override;
  Value read(Value value, OpBuilder &at) override;
  Frame *frameOf(Value value) const;
  Value bring(Value value, Frame &frame);
  bool isKept(Value value) const;
  bool isNamedForHost(Value value) const;
  LogicalResult checkOffloaded();
  void findRecomputed();
  Value keep(Value value, Frame &frame);
  DeclareOp bufferFor(Value value, Frame &frame);
  RepeatOp runAgain(RepeatOp repeat, Frame &frame);
  void skipUnneeded(Frame &frame);
  Value remake(Value value, Frame &frame);
  std::string freeName(StringRef name);

  ProgramOp program;
  TrainingAttr training;
  OpBuilder builder;
  SmallVector<DeclareOp> weights;
  /// The order of the forward pass, against which the backward pass runs.
  ListOrder order;
  /// Values that depend on a trained weight.
  llvm::DenseSet<Value> active;
  /// The gradients that the operations visited so far give each value.
  llvm::DenseMap<Value, SmallVector<Value, 2>> contributions;
  /// Values that are recomputed although `remat` keeps them.
  llvm::DenseSet<Value> recomputed;
  /// Segments that run again for nothing; they go at the end.
  SmallVector<RepeatOp> unneeded;
  /// The innermost repeat whose gradient is built.
  Frame *innermost = nullptr;
  llvm::StringSet<> names;
  /// Values that `offload` names, with a buffer on the host.
  llvm::StringSet<> onHost;
};

//===----------------------------------------------------------------------===//
// What is differentiated
//===----------------------------------------------------------------------===//

FailureOr<OutputOp> Differentiation::findLoss() {
  for (auto output : program.getBody().getOps<OutputOp>()) {
    if (output.getSym() != training.getLoss())
      continue;
    auto type = cast<RankedTensorType>(output.getValue().getType());
    if (type.getRank() == 0 && isa<FloatType>(type.getElementType()))
      return output;
    return output.emitError("the loss '")
           << output.getSym() << "' must be a scalar of real numbers, but is "
           << typeName(type.getElementType()) << " with " << type.getRank()
           << " dimensions";
  }
  return program.emitError("no output is called '")
         << training.getLoss() << "', the loss";
}

/// The weights to train: all of real numbers, but scales, that no pattern
/// names.
LogicalResult Differentiation::findTrained() {
  std::vector<llvm::GlobPattern> patterns;
  for (StringAttr text : training.getFrozen()) {
    auto pattern = llvm::GlobPattern::create(text.getValue());
    if (!pattern)
      return program.emitError("invalid pattern for frozen weights: '")
             << text.getValue() << "': " << llvm::toString(pattern.takeError());
    patterns.push_back(std::move(*pattern));
  }
  for (auto declare : program.getBody().getOps<DeclareOp>()) {
    names.insert(declare.getSym());
    bool isFrozen = llvm::any_of(patterns, [&](const auto &pattern) {
      return pattern.match(declare.getSym());
    });
    if (declare.getKind() == TensorKind::Weight && !isFrozen &&
        hasGradient(declare.getType().getElementType())) {
      weights.push_back(declare);
      active.insert(declare.getResult());
    }
  }
  return success();
}

/// The repeats around an operation, the outermost first.
static SmallVector<RepeatOp> repeatsAround(Operation *op) {
  SmallVector<RepeatOp> repeats;
  for (auto at = op->getParentOfType<RepeatOp>(); at;
       at = at->getParentOfType<RepeatOp>())
    repeats.insert(repeats.begin(), at);
  return repeats;
}

/// True if a gather reads the parts that iterations of the repeats around it
/// have by their numbers, in an order that a stacked tensor has.
static bool readsPartOfIteration(GatherOp gather) {
  SmallVector<RepeatOp> repeats = repeatsAround(gather);
  ArrayRef<int64_t> dims = gather.getDims();
  if (repeats.empty() || dims.size() != repeats.size())
    return false;
  auto table = cast<RankedTensorType>(gather.getOperand(0).getType());
  for (auto [number, dim, position, repeat] :
       llvm::enumerate(dims, gather.getPositions(), repeats))
    if (dim != int64_t(number) || position != repeat.getIteration() ||
        table.getDimSize(dim) != int64_t(repeat.getCount()))
      return false;
  // The part's dimensions stay in their order.
  IndexingAttr indexing = gather.getIndexing();
  return ArrayRef(indexing.getOperandIndices(0)).drop_front(dims.size()) ==
         ArrayRef(indexing.getResultIndices(0));
}

/// The layout of a part; nothing if iterations are split.
static std::optional<ShardingAttr> pinOfPart(ShardingAttr pin,
                                             unsigned stacked) {
  if (!pin)
    return pin;
  for (const auto &dim : pin.getDims().take_front(stacked))
    if (!dim.getAxes().empty())
      return std::nullopt;
  return ShardingAttr::get(pin.getContext(), pin.getDims().drop_front(stacked),
                           pin.getPartial());
}

/// A weight of which a repeat reads its iterations' parts by their numbers is a
/// stacked weight: so is its gradient, of which each iteration writes a part.
void Differentiation::stackReadByNumber() {
  for (DeclareOp weight : weights) {
    SmallVector<GatherOp> gathers;
    auto isByNumber = [&](Operation *user) {
      auto gather = dyn_cast<GatherOp>(user);
      if (!gather || gather.getOperand(0) != weight.getResult() ||
          !readsPartOfIteration(gather) ||
          (!gathers.empty() &&
           gather->getBlock() != gathers.front()->getBlock()) ||
          !pinOfPart(getOperandPin(gather, 0), gather.getDims().size()))
        return false;
      gathers.push_back(gather);
      return true;
    };
    if (weight.getStacked() > 0 || weight->use_empty() ||
        !llvm::all_of(weight->getUsers(), isByNumber))
      continue;
    unsigned stacked = gathers.front().getDims().size();
    auto isOfParts = [&](DictionaryAttr pins) {
      return !pins ||
             pinOfPart(pins.getAs<ShardingAttr>(weight.getSym()), stacked);
    };
    if (!pinOfPart(getResultPin(weight.getResult()), stacked) ||
        !isOfParts(training.getGradientPins()) ||
        !isOfParts(training.getMomentPins()) ||
        !isOfParts(training.getMasterPins()))
      continue;
    weight.setStacked(stacked);
    OpBuilder::InsertionGuard guard(builder);
    for (GatherOp gather : gathers) {
      builder.setInsertionPoint(gather);
      Location loc = gather.getLoc();
      Type type = gather.getResult().getType();
      Value part = PartOp::create(builder, loc, type, weight.getResult(),
                                  gather.getPositions());
      ShardingAttr read = *pinOfPart(getOperandPin(gather, 0), stacked);
      if (read || !gather->hasAttr(kTemporary)) {
        ArrayAttr names =
            builder.getStrArrayAttr(gather.getIndexing().getResultIndices(0));
        auto copy = ReshardOp::create(
            builder, loc, type, part,
            IndexingAttr::get(builder.getContext(), {names}, names));
        for (NamedAttribute attr : gather->getDiscardableAttrs())
          copy->setDiscardableAttr(attr.getName(), attr.getValue());
        copy->removeDiscardableAttr(kOperandPins);
        copy->removeDiscardableAttr(kUses);
        if (read)
          setOperandPin(copy, 0, read);
        part = copy.getResult();
      }
      gather.getResult().replaceAllUsesWith(part);
      gather.erase();
    }
  }
}

/// Repeats of which not every iteration keeps what it begins with run segment
/// by segment. `save` says itself what is kept.
LogicalResult Differentiation::cutIntoSegments() {
  int64_t length = training.getEvery();
  if (length <= 1 || training.getSave())
    return success();
  Block &block = program.getBody().front();
  SmallVector<RepeatOp> repeats(block.getOps<RepeatOp>());
  int64_t longest = 0;
  for (RepeatOp repeat : repeats)
    longest = std::max(longest, int64_t(repeat.getCount()));
  if (longest < length)
    return program.emitError()
           << "`remat = every(" << length << ")` needs a repeat of at least "
           << length << " iterations, but the longest has " << longest;
  for (RepeatOp repeat : repeats)
    if (repeat.getCount() > 1)
      cut(repeat, std::min(length, int64_t(repeat.getCount())));
  return success();
}

/// Puts the repeat into one over its segments.
void Differentiation::cut(RepeatOp repeat, int64_t length) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(repeat);
  Segments segments;
  segments.total = int64_t(repeat.getCount());
  segments.length = length;
  Location loc = repeat.getLoc();
  std::string index = (repeat.getIndex() + kOverSegments).str();
  auto over = RepeatOp::create(builder, loc, repeat.getResultTypes(),
                               builder.getStringAttr(index),
                               builder.getI64IntegerAttr(segments.number()),
                               /*reverse=*/UnitAttr(), repeat.getInits());
  over->setDiscardableAttrs(repeat->getDiscardableAttrDictionary());
  removeSourceAttributes(over);
  repeat.replaceAllUsesWith(over);
  Block &body = over.getBody().emplaceBlock();
  body.addArgument(repeat.getIteration().getType(), loc);
  for (auto [number, type] : llvm::enumerate(repeat.getResultTypes()))
    repeat->setOperand(number, body.addArgument(type, loc));
  repeat->moveBefore(&body, body.end());
  repeat.setCount(length);
  repeat->setAttr(kSegments, builder.getDenseI64ArrayAttr(
                                 {segments.total, segments.length}));
  builder.setInsertionPointToEnd(&body);
  YieldOp::create(builder, loc, repeat.getResults());
}

static bool stopsGradient(Operation *op) {
  auto elementwise = dyn_cast<ElementwiseOp>(op);
  return elementwise && elementwise.getFunction() == Function::StopGradient;
}

/// A carried value that depends on a weight in one iteration does so in all.
void Differentiation::findActive(Block &block) {
  for (Operation &op : block) {
    if (auto repeat = dyn_cast<RepeatOp>(op)) {
      Block &body = repeat.getBody().front();
      Operation *yield = body.getTerminator();
      for (bool changed = true; changed;) {
        changed = false;
        for (auto [argument, init, yielded, result] :
             llvm::zip_equal(repeat.getCarried(), repeat.getInits(),
                             yield->getOperands(), repeat.getResults()))
          if (active.contains(init) || active.contains(yielded)) {
            changed |= active.insert(argument).second;
            active.insert(result);
          }
        findActive(body);
        for (auto [argument, yielded] :
             llvm::zip_equal(repeat.getCarried(), yield->getOperands()))
          changed |= active.contains(yielded) && !active.contains(argument);
      }
    } else if (!stopsGradient(&op) &&
               llvm::any_of(op.getOperands(),
                            [&](Value operand) { return isWanted(operand); })) {
      active.insert_range(op.getResults());
    }
  }
}

bool Differentiation::isWanted(Value value) {
  return active.contains(value) &&
         hasGradient(getElementTypeOrSelf(value.getType()));
}

Type Differentiation::gradientType(Value value) {
  return declarationOf(value) ? training.getGradients()
                              : getElementTypeOrSelf(value.getType());
}

//===----------------------------------------------------------------------===//
// Values of the forward pass
//===----------------------------------------------------------------------===//

/// The repeat in whose forward body a value is made, if its gradient is being
/// built.
Frame *Differentiation::frameOf(Value value) const {
  for (Frame *frame = innermost; frame; frame = frame->outer)
    if (frame->forward.getBody().isAncestor(value.getParentRegion()))
      return frame;
  return nullptr;
}

Value Differentiation::read(Value value, OpBuilder &) {
  Frame *frame = frameOf(value);
  return frame ? bring(value, *frame) : value;
}

Value Differentiation::bring(Value value, Frame &frame) {
  if (Value known = frame.available.lookup(value))
    return known;
  Value here = value == frame.forward.getIteration()
                   ? Value(frame.backward.getIteration())
               : isKept(value) ? keep(value, frame)
                               : remake(value, frame);
  frame.available[value] = here;
  return here;
}

/// Views, constants and what is broadcast from these are made anew; results of
/// repeats are always kept.
static bool isRemade(Operation *op) {
  auto elementwise = dyn_cast<ElementwiseOp>(op);
  return isa<PartOp, ConstantOp, IotaOp>(op) ||
         (elementwise && elementwise.getFunction() == Function::Copy &&
          elementwise.getInputs().front().getDefiningOp<ConstantOp>());
}

/// True for a segment that runs again, and repeats in it.
static bool isInSegment(const Frame &frame) {
  return segmentsOf(frame.forward) ||
         (frame.outer && isInSegment(*frame.outer));
}

void Differentiation::findRecomputed() {
  if (training.getRecomputed().empty())
    return;
  llvm::StringSet<> listed;
  for (StringAttr name : training.getRecomputed())
    listed.insert(name.getValue());
  for (auto &[op, value, name] : recomputableValues(program))
    if (value && listed.contains(name))
      recomputed.insert(value);
}

/// True of a value of a statement that `offload` names.
bool Differentiation::isNamedForHost(Value value) const {
  DictionaryAttr names = training.getOffloaded();
  Operation *op = value.getDefiningOp();
  return names && (!op || !op->hasAttr(kTemporary)) &&
         names.contains(nameOf(value));
}

/// Each value that `offload` names has a buffer on the host.
LogicalResult Differentiation::checkOffloaded() {
  DictionaryAttr names = training.getOffloaded();
  if (!names)
    return success();
  for (NamedAttribute name : names) {
    if (onHost.contains(name.getName()))
      continue;
    Location loc = program.getLoc();
    program->walk([&](Operation *op) {
      for (Value result : op->getResults())
        if (getResultName(result) == name.getName()) {
          loc = op->getLoc();
          return WalkResult::interrupt();
        }
      return WalkResult::advance();
    });
    return emitError(loc) << "'" << name.getName().getValue()
                          << "' is no value of a repeat that is saved for the "
                             "backward pass, so that `offload` cannot move it "
                             "to the host";
  }
  return success();
}

bool Differentiation::isKept(Value value) const {
  Operation *op = value.getDefiningOp();
  if (!op || isa<RepeatOp>(op))
    return true;
  if (isRemade(op))
    return false;
  if (DictionaryAttr save = training.getSave(); save && !isNamedForHost(value))
    return !op->hasAttr(kTemporary) && save.contains(getResultName(value));
  if (isNamedForHost(value))
    return true;
  if (recomputed.contains(value))
    return false;
  if (Frame *frame = frameOf(value); frame && isInSegment(*frame))
    return true; // it runs again to keep what is read
  switch (training.getRemat()) {
  case Remat::None:
    return true;
  case Remat::Full:
  case Remat::Every:
    return false;
  case Remat::Auto: // what is cheap to compute is recomputed
    auto cost = dyn_cast<CostOpInterface>(op);
    return cost && cost.getFusionKind() == FusionKind::Leader;
  }
  llvm_unreachable("unknown remat");
}

std::string Differentiation::freeName(StringRef name) {
  std::string free = name.str();
  for (unsigned number = 2; !names.insert(free).second; ++number)
    free = (name + "." + Twine(number)).str();
  return free;
}

/// Parts of a buffer along a repeat: of a segment that runs again, for its
/// iterations; of the repeat over segments, as those of a carried value.
static int64_t partsAlong(RepeatOp forward) {
  if (std::optional<Segments> segments = segmentsOf(forward))
    return segments->length;
  for (auto inner : forward.getBody().getOps<RepeatOp>())
    if (std::optional<Segments> segments = segmentsOf(inner))
      return segments->partsOfCarried();
  return int64_t(forward.getCount());
}

/// A buffer for the value of each iteration of the repeats around it; of a
/// segment that runs again, the next one uses the same.
DeclareOp Differentiation::bufferFor(Value value, Frame &frame) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<std::string> indices;
  SmallVector<int64_t> shape;
  unsigned stacked = 0;
  bool isOfSegment = false;
  Frame *outermost = &frame;
  for (Frame *each = &frame; each; outermost = each, each = each->outer) {
    if (isOfSegment)
      continue;
    isOfSegment = segmentsOf(each->forward).has_value();
    std::string index = each->forward.getIndex().str();
    indices.insert(indices.begin(),
                   isOfSegment ? index + kOverSegments.str() : index);
    shape.insert(shape.begin(), partsAlong(each->forward));
    ++stacked;
  }
  llvm::append_range(indices, indexNames(value));
  llvm::append_range(shape, type.getShape());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(outermost->forward);
  auto buffer =
      DeclareOp::create(builder, value.getLoc(), type.clone(shape),
                        TensorKind::Saved, freeName(nameOf(value) + ".saved"),
                        builder.getStrArrayAttr(SmallVector<StringRef>(
                            indices.begin(), indices.end())),
                        stacked, /*of=*/StringAttr());
  pinParts(buffer, training.getSave(), nameOf(value));
  bool isNamed = isNamedForHost(value);
  if (isNamed || training.getOffload() == Offload::Activations)
    buffer->setAttr(kHost, builder.getUnitAttr());
  if (isNamed) {
    onHost.insert(nameOf(value));
    pinParts(buffer, training.getOffloaded(), nameOf(value));
  }
  return buffer;
}

/// Each forward iteration leaves the value in a buffer, where the backward
/// iteration finds it.
Value Differentiation::keep(Value value, Frame &frame) {
  auto argument = dyn_cast<BlockArgument>(value);
  DeclareOp buffer = argument && !frame.beginnings.empty()
                         ? frame.beginnings[argument.getArgNumber() - 1]
                         : bufferFor(value, frame);
  frame.buffers[value] = buffer;
  SmallVector<Value> numbers, backwardNumbers;
  Frame *each = &frame;
  for (unsigned i = 0; i < buffer.getStacked(); ++i, each = each->outer) {
    numbers.insert(numbers.begin(), each->forward.getIteration());
    backwardNumbers.insert(backwardNumbers.begin(),
                           each->backward.getIteration());
  }
  Location loc = value.getLoc();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(frame.forward.getBody().front().getTerminator());
  UpdateOp::create(builder, loc, value, buffer, numbers);
  if (frame.lastMade)
    builder.setInsertionPointAfter(frame.lastMade);
  else
    builder.setInsertionPointToStart(&frame.backward.getBody().front());
  auto part =
      PartOp::create(builder, loc, value.getType(), buffer, backwardNumbers);
  frame.lastMade = part;
  return part;
}

/// Runs the value's operation again, after what it reads.
Value Differentiation::remake(Value value, Frame &frame) {
  Operation *op = value.getDefiningOp();
  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, read(operand, builder));
  OpBuilder::InsertionGuard guard(builder);
  if (frame.lastMade)
    builder.setInsertionPointAfter(frame.lastMade);
  else
    builder.setInsertionPointToStart(&frame.backward.getBody().front());
  Operation *again = builder.clone(*op, mapping);
  removeSourceAttributes(again);
  if (isa<CostOpInterface>(op))
    setPhase(again, Phase::Recompute);
  frame.lastMade = again;
  for (auto [before, after] :
       llvm::zip_equal(op->getResults(), again->getResults()))
    frame.available[before] = after;
  return frame.available[value];
}

//===----------------------------------------------------------------------===//
// Sums of gradients
//===----------------------------------------------------------------------===//

/// A value's name; what a segment carries when it runs again has the name that
/// it had.
std::string Differentiation::nameOf(Value value) const {
  auto argument = dyn_cast<BlockArgument>(value);
  Frame *frame = argument ? frameOf(value) : nullptr;
  if (!frame || !isInSegment(*frame))
    return valueName(value);
  unsigned number = argument.getArgNumber() - 1;
  auto repeat = cast<RepeatOp>(argument.getOwner()->getParentOp());
  return repeat == frame->forward && frame->segment
             ? valueName(frame->segment.getCarried()[number])
             : nameOf(repeat.getInits()[number]);
}

void Differentiation::give(Value value, Value gradient) {
  contributions[value].push_back(gradient);
}

static IndexingAttr sameIndices(Value value, unsigned operands) {
  auto names = indexNames(value);
  Builder builder(value.getContext());
  ArrayAttr list = builder.getStrArrayAttr(
      SmallVector<StringRef>(names.begin(), names.end()));
  return IndexingAttr::get(value.getContext(),
                           SmallVector<ArrayAttr>(operands, list), list);
}

/// The sum of what a value's readers gave, or null if they gave nothing.
Value Differentiation::gradientOf(Value value) {
  auto found = contributions.find(value);
  if (found == contributions.end())
    return nullptr;
  SmallVector<Value, 2> parts = std::move(found->second);
  contributions.erase(found);
  // Products first: as partial sums they add up before anything moves.
  std::stable_partition(parts.begin(), parts.end(), [](Value part) {
    return bool(part.getDefiningOp<EinsumOp>());
  });
  IndexingAttr indexing = sameIndices(value, 2);
  Value sum = parts.front();
  for (Value part : llvm::drop_begin(parts)) {
    auto add =
        ElementwiseOp::create(builder, value.getLoc(), sum.getType(),
                              Function::Add, ValueRange{sum, part}, indexing);
    nameGradient(add, nameOf(value));
    sum = add.getResult();
  }
  return sum;
}

Value Differentiation::castTo(Value value, Type type) {
  auto from = cast<RankedTensorType>(value.getType());
  if (from.getElementType() == type)
    return value;
  auto cast =
      ElementwiseOp::create(builder, value.getLoc(), from.clone(type),
                            Function::Cast, value, sameIndices(value, 1));
  nameGradient(cast, isa<OpResult>(value) ? getResultName(value).str()
                                          : nameOf(value));
  return cast.getResult();
}

Value Differentiation::zeros(Value like, Type elementType) {
  auto scalar = RankedTensorType::get({}, elementType);
  auto zero = ConstantOp::create(
      builder, like.getLoc(), scalar,
      DenseElementsAttr::get(scalar,
                             Attribute(builder.getFloatAttr(elementType, 0))));
  auto type = cast<RankedTensorType>(like.getType()).clone(elementType);
  IndexingAttr same = sameIndices(like, 1);
  auto indexing = IndexingAttr::get(
      builder.getContext(), builder.getStrArrayAttr({}), same.getResults());
  auto copy = ElementwiseOp::create(builder, like.getLoc(), type,
                                    Function::Copy, zero.getResult(), indexing);
  nameGradient(copy, nameOf(like));
  return copy.getResult();
}

//===----------------------------------------------------------------------===//
// From the last operation to the first
//===----------------------------------------------------------------------===//

/// One microbatch adds nothing up: its gradients are kept as they are sent.
Type Differentiation::typeOfBuffers() {
  bool accumulates = training.getMicrobatches() > 1;
  return training.getReduce() && !accumulates ? training.getReduce()
                                              : training.getGradients();
}

/// A gradient as its buffer holds it.
Value Differentiation::asSent(Value gradient) {
  Value sent = castTo(gradient, typeOfBuffers());
  if (sent != gradient)
    sent.getDefiningOp()->setAttr(kSent, builder.getUnitAttr());
  return sent;
}

/// The buffer for the gradient of a weight.
DeclareOp Differentiation::declareLike(DeclareOp weight) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfter(weight);
  auto buffer = DeclareOp::create(
      builder, weight.getLoc(), weight.getType().clone(typeOfBuffers()),
      TensorKind::Gradient, freeName((weight.getSym() + ".grad").str()),
      weight.getIndices(), weight.getStacked(), weight.getSymAttr());
  pinParts(buffer, training.getGradientPins(), weight.getSym());
  return buffer;
}

/// The gradient of a weight's part goes where the weight's is stacked. Several
/// parts in one iteration are one part.
void Differentiation::visitPart(PartOp part) {
  Value gradient = gradientOf(part);
  auto weight = part.getSource().getDefiningOp<DeclareOp>();
  if (!gradient || !weight)
    return;
  for (auto other : part->getBlock()->getOps<PartOp>())
    if (other.getSource() == part.getSource() &&
        other.getAt() == part.getAt()) {
      if (other != part)
        return give(other, gradient);
      break;
    }
  SmallVector<Value> numbers;
  for (Value number : part.getAt())
    numbers.push_back(read(number, builder));
  UpdateOp::create(builder, part.getLoc(), asSent(gradient),
                   declareLike(weight), numbers);
}

/// A product that is a gradient has the index names of its value, not those of
/// the reader whose gradient it is: then gradients add up in one kernel.
static void nameIndicesAs(EinsumOp op, ArrayRef<std::string> names) {
  IndexingAttr indexing = op.getIndexing();
  SmallVector<StringRef, 4> own = indexing.getResultIndices(0);
  SmallVector<ArrayAttr> lists(indexing.getOperands());
  llvm::append_range(lists, indexing.getResults());
  auto isUsed = [&](StringRef name) {
    return llvm::any_of(lists, [&](ArrayAttr list) {
      return llvm::is_contained(list.getAsValueRange<StringAttr>(), name);
    });
  };
  if (names.size() != own.size())
    return;
  for (auto [from, to] : llvm::zip(own, names)) {
    if (from == to || isUsed(to))
      continue;
    for (ArrayAttr &list : lists) {
      SmallVector<StringRef> renamed(list.getAsValueRange<StringAttr>());
      llvm::replace(renamed, from, StringRef(to));
      list = Builder(op.getContext()).getStrArrayAttr(renamed);
    }
  }
  auto operands = ArrayRef(lists).drop_back();
  op.setIndexingAttr(
      IndexingAttr::get(op.getContext(), operands, lists.back()));
}

LogicalResult Differentiation::visit(Operation &op) {
  if (auto repeat = dyn_cast<RepeatOp>(op))
    return visitRepeat(repeat);
  if (auto part = dyn_cast<PartOp>(op)) {
    visitPart(part);
    return success();
  }
  SmallVector<Value, 2> gradients;
  for (Value result : op.getResults())
    gradients.push_back(gradientOf(result));
  if (llvm::none_of(gradients, [](Value gradient) { return bool(gradient); }))
    return success();
  if (getPhase(&op) == Phase::Forward)
    if (std::optional<ChunkedLoss> loss =
            findChunkedLoss(program, &op, training.getMicrobatches()))
      return visitInChunks(*loss, gradients.front());
  if (llvm::none_of(op.getOperands(),
                    [&](Value operand) { return isWanted(operand); }))
    return success();
  auto differentiable = dyn_cast<GradientOpInterface>(op);
  if (!differentiable)
    return op.emitError("has no derivative, but the loss depends on it");
  GradientBuilder gradientBuilder(builder, cast<ShardingRuleOpInterface>(op),
                                  gradients, *this);
  if (failed(differentiable.buildGradient(gradientBuilder)))
    return failure();
  for (auto [operand, gradient] :
       llvm::zip_equal(op.getOperands(), gradientBuilder.getGradients()))
    if (gradient) {
      if (Operation *maker = gradient.getDefiningOp();
          maker && isa<ShardingRuleOpInterface>(maker))
        nameGradient(maker, nameOf(operand));
      if (auto product = gradient.getDefiningOp<EinsumOp>())
        nameIndicesAs(product, indexNames(operand));
      give(operand, gradient);
    }
  return success();
}

//===----------------------------------------------------------------------===//
// Losses in chunks
//===----------------------------------------------------------------------===//

/// A value that the operations of a chunked loss read from outside.
struct Differentiation::ChunkOperand {
  /// As the forward pass has it, and where the operations run.
  Value forward, here;
  bool isWanted = false;
  /// The gradient of `here`; null if nothing gives it one.
  Value gradient = {};
};

/// The name of the loop along an index of the labels.
static std::string loopOf(const ChunkedLoss::Cut &cut) {
  return cut.index + ".chunk";
}

/// The indices of a value, and with those of the loop behind `dim`.
static std::pair<ArrayAttr, ArrayAttr> namesAround(const ChunkedLoss::Cut &cut,
                                                   Value value, unsigned dim) {
  auto names = indexNames(value);
  Builder builder(value.getContext());
  auto list = [&] {
    return builder.getStrArrayAttr(
        SmallVector<StringRef>(names.begin(), names.end()));
  };
  ArrayAttr own = list();
  names.insert(names.begin() + dim + 1, loopOf(cut));
  return {own, list()};
}

/// `T -> (T', T.chunk)` with the chunk minor, so that a device that has a part
/// of T has a part of each chunk.
Value Differentiation::splitChunks(const ChunkedLoss::Cut &cut, Value value,
                                   unsigned dim) {
  auto type = cast<RankedTensorType>(value.getType());
  auto [own, split] = namesAround(cut, value, dim);
  StringAttr part = cast<StringAttr>(own[dim]);
  StringAttr whole = builder.getStringAttr(part.getValue() + ".all");
  SmallVector<Attribute> wholes(own.getValue());
  wholes[dim] = whole;
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] /= cut.count;
  shape.insert(shape.begin() + dim + 1, cut.count);
  auto op =
      SplitOp::create(builder, value.getLoc(), type.clone(shape), value, whole,
                      builder.getStrArrayAttr({part.getValue(), loopOf(cut)}),
                      IndexingAttr::get(builder.getContext(),
                                        builder.getArrayAttr(wholes), split));
  setResultAttr(op.getResult(), kName, builder.getStringAttr(nameOf(value)));
  op->setAttr(kTemporary, builder.getUnitAttr());
  setPhase(op, Phase::Backward);
  return op.getResult();
}

/// The gradient so far with that of a chunk: in its place, or as a summand.
Value Differentiation::addChunk(const ChunkedLoss::Cut &cut,
                                const ChunkOperand &operand, Value made,
                                Value before, Value number) {
  auto type = cast<RankedTensorType>(before.getType());
  Value chunk = castTo(made, type.getElementType());
  auto at = cut.dims.find(operand.forward);
  Operation *op;
  if (at == cut.dims.end()) {
    op = ElementwiseOp::create(builder, made.getLoc(), type, Function::Add,
                               ValueRange{before, chunk},
                               sameIndices(operand.here, 2));
  } else {
    auto [own, split] = namesAround(cut, operand.here, at->second);
    op = ScatterOp::create(
        builder, made.getLoc(), type, before, chunk, number,
        IndexingAttr::get(builder.getContext(),
                          {split, own, builder.getStrArrayAttr({})}, split),
        builder.getDenseI64ArrayAttr(at->second + 1), /*accumulate=*/false);
  }
  nameGradient(op, nameOf(operand.forward));
  return op->getResult(0);
}

/// The type in which the loops from `level` on hold the gradient of a value:
/// sums over chunks have that of buffers.
Type Differentiation::typeOfSum(const ChunkedLoss &loss, unsigned level,
                                Value value) {
  bool isSum =
      llvm::any_of(ArrayRef(loss.cuts).drop_front(level),
                   [&](const auto &cut) { return !cut.dims.contains(value); });
  return isSum ? training.getGradients() : gradientType(value);
}

/// Runs the operations again on a chunk, and differentiates them.
LogicalResult
Differentiation::visitChunk(const ChunkedLoss &loss,
                            MutableArrayRef<ChunkOperand> operands,
                            Value gradient) {
  IRMapping mapping;
  SmallVector<SmallVector<Value, 2>> later;
  for (ChunkOperand &operand : operands) {
    mapping.map(operand.forward, operand.here);
    if (operand.isWanted)
      active.insert(operand.here);
    later.push_back(std::move(contributions[operand.here]));
    contributions.erase(operand.here);
  }
  SmallVector<Operation *> chunk;
  for (Operation *op : loss.ops) {
    Operation *again = chunk.emplace_back(builder.clone(*op, mapping));
    removeSourceAttributes(again);
    setPhase(again, Phase::Recompute);
    auto type = cast<RankedTensorType>(again->getResult(0).getType());
    SmallVector<int64_t> shape(type.getShape());
    for (const ChunkedLoss::Cut &cut : loss.cuts)
      shape[cut.dims.at(op->getResult(0))] /= cut.count;
    again->getResult(0).setType(type.clone(shape));
    if (active.contains(op->getResult(0)))
      active.insert(again->getResult(0));
  }
  give(chunk.back()->getResult(0), gradient);
  for (Operation *op : llvm::reverse(chunk))
    if (failed(visit(*op)))
      return failure();
  active.erase(chunk.back()->getResult(0));
  chunk.back()->erase(); // its derivative reads what it reads
  for (auto [operand, before] : llvm::zip_equal(operands, later)) {
    operand.gradient = gradientOf(operand.here);
    if (!before.empty())
      contributions[operand.here] = std::move(before);
  }
  return success();
}

/// The loop of a cut, and those inside. It carries the gradients of what the
/// operations read: of what has the index a part is written in each iteration,
/// of all else a sum grows.
LogicalResult Differentiation::runChunks(const ChunkedLoss &loss,
                                         unsigned level,
                                         MutableArrayRef<ChunkOperand> operands,
                                         Value gradient) {
  if (level == loss.cuts.size())
    return visitChunk(loss, operands, gradient);
  const ChunkedLoss::Cut &cut = loss.cuts[level];
  Location loc = gradient.getLoc();
  unsigned ofLabels = cut.dims.at(loss.ops.back()->getResult(0));
  Value gradients = splitChunks(cut, gradient, ofLabels);
  SmallVector<Value> splits, inits;
  for (ChunkOperand &operand : operands) {
    auto at = cut.dims.find(operand.forward);
    Value split = at == cut.dims.end()
                      ? operand.here
                      : splitChunks(cut, operand.here, at->second);
    splits.push_back(split);
    if (operand.isWanted)
      inits.push_back(zeros(split, typeOfSum(loss, level, operand.forward)));
  }
  auto loop = RepeatOp::create(builder, loc, ValueRange(inits).getTypes(),
                               builder.getStringAttr(loopOf(cut)),
                               builder.getI64IntegerAttr(cut.count),
                               /*reverse=*/UnitAttr(), inits);
  Block &body = loop.getBody().emplaceBlock();
  body.addArgument(RankedTensorType::get({}, builder.getI32Type()), loc);
  for (Value init : inits)
    body.addArgument(init.getType(), init.getLoc());
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&body);
    auto part = [&](Value whole, Value split, unsigned dim) -> Value {
      auto [own, names] = namesAround(cut, whole, dim);
      auto type = cast<RankedTensorType>(whole.getType());
      SmallVector<int64_t> shape(type.getShape());
      shape[dim] /= cut.count;
      auto op = GatherOp::create(
          builder, loc, type.clone(shape), split, loop.getIteration(),
          IndexingAttr::get(builder.getContext(),
                            {names, builder.getStrArrayAttr({})}, own),
          builder.getDenseI64ArrayAttr(dim + 1));
      setResultAttr(op.getResult(), kName,
                    builder.getStringAttr(nameOf(whole)));
      op->setAttr(kTemporary, builder.getUnitAttr());
      setPhase(op, Phase::Backward);
      return op.getResult();
    };
    SmallVector<ChunkOperand> inner(operands.begin(), operands.end());
    for (auto [operand, split] : llvm::zip_equal(inner, splits)) {
      auto at = cut.dims.find(operand.forward);
      if (at != cut.dims.end())
        operand.here = part(operand.here, split, at->second);
      else if (auto constant = split.getDefiningOp<ConstantOp>())
        operand.here = builder.clone(*constant)->getResult(0);
    }
    if (failed(runChunks(loss, level + 1, inner,
                         part(gradient, gradients, ofLabels))))
      return failure();
    SmallVector<Value> yielded;
    for (const ChunkOperand &operand : inner) {
      if (!operand.isWanted)
        continue;
      Value before = loop.getCarried()[yielded.size()];
      yielded.push_back(operand.gradient
                            ? addChunk(cut, operand, operand.gradient, before,
                                       loop.getIteration())
                            : before);
    }
    YieldOp::create(builder, loc, yielded);
  }
  unsigned number = 0;
  for (auto [operand, split] : llvm::zip_equal(operands, splits)) {
    if (!operand.isWanted)
      continue;
    operand.gradient = loop.getResult(number++);
    auto cutting = split.getDefiningOp<SplitOp>();
    if (split == operand.here)
      continue;
    auto type = cast<RankedTensorType>(operand.here.getType())
                    .clone(getElementTypeOrSelf(operand.gradient));
    auto merged = MergeOp::create(
        builder, loc, type, operand.gradient, cutting.getPartsAttr(),
        cutting.getWholeAttr(),
        IndexingAttr::get(builder.getContext(),
                          cutting.getIndexing().getResults(),
                          cutting.getIndexing().getOperands().front()));
    nameGradient(merged, nameOf(operand.forward));
    operand.gradient = merged.getResult();
  }
  return success();
}

/// The backward pass of a loss in chunks, and of the products that make its
/// operand: each chunk runs them again.
LogicalResult Differentiation::visitInChunks(const ChunkedLoss &loss,
                                             Value gradient) {
  llvm::SetVector<Value> outside;
  for (Operation *op : loss.ops)
    for (Value operand : op->getOperands())
      if (!llvm::is_contained(loss.ops, operand.getDefiningOp()))
        outside.insert(operand);
  SmallVector<ChunkOperand> operands;
  for (Value value : outside)
    operands.push_back({value, read(value, builder), isWanted(value)});
  if (failed(runChunks(loss, /*level=*/0, operands, gradient)))
    return failure();
  for (const ChunkOperand &operand : operands)
    if (operand.gradient)
      give(operand.forward,
           castTo(operand.gradient, gradientType(operand.forward)));
  return success();
}

LogicalResult Differentiation::visit(Block &block) {
  SmallVector<Operation *> forward;
  for (Operation &op : block)
    if (!isa<DeclareOp, OutputOp, UpdateOp, YieldOp>(op))
      forward.push_back(&op);
  llvm::stable_sort(forward, [&](Operation *a, Operation *b) {
    return order.lookup(a) < order.lookup(b);
  });
  for (Operation *op : llvm::reverse(forward))
    if (failed(visit(*op)))
      return failure();
  return success();
}

/// Values from outside, other than stacked tensors, whose gradients the body
/// adds to.
static llvm::SetVector<Value> outsideValues(RepeatOp repeat) {
  llvm::SetVector<Value> values;
  repeat.getBody().walk([&](Operation *op) {
    if (isa<PartOp, UpdateOp>(op))
      return;
    for (Value operand : op->getOperands())
      if (!repeat.getBody().isAncestor(operand.getParentRegion()))
        values.insert(operand);
  });
  return values;
}

/// What a repeat in reverse carries: gradients of carried values, then sums for
/// values from outside.
struct Differentiation::Carried {
  SmallVector<unsigned> numbers;
  SmallVector<Value> outside, inits;
};

/// Nothing if the loss depends on no result of the repeat.
std::optional<Differentiation::Carried>
Differentiation::findCarried(RepeatOp repeat) {
  bool isReached = llvm::any_of(repeat.getResults(), [&](Value result) {
    return isWanted(result) && contributions.contains(result);
  });
  if (!isReached)
    return std::nullopt;
  Carried carried;
  for (auto [number, result] : llvm::enumerate(repeat.getResults())) {
    if (!isWanted(result))
      continue;
    Value gradient = gradientOf(result);
    carried.numbers.push_back(number);
    carried.inits.push_back(gradient ? gradient
                                     : zeros(result, gradientType(result)));
  }
  for (Value value : outsideValues(repeat))
    if (isWanted(value)) {
      carried.outside.push_back(value);
      carried.inits.push_back(zeros(value, training.getGradients()));
    }
  return carried;
}

LogicalResult Differentiation::fillBody(const Carried &carried, Frame &frame) {
  OpBuilder::InsertionGuard guard(builder);
  Block &body = frame.backward.getBody().emplaceBlock();
  body.addArgument(frame.forward.getIteration().getType(),
                   frame.forward.getLoc());
  for (Value init : carried.inits)
    body.addArgument(init.getType(), init.getLoc());
  builder.setInsertionPointToStart(&body);
  Block &forward = frame.forward.getBody().front();
  for (auto [number, argument] :
       llvm::zip(carried.numbers, frame.backward.getCarried()))
    give(forward.getTerminator()->getOperand(number), argument);
  if (failed(visit(forward)))
    return failure();
  SmallVector<Value> yielded;
  for (unsigned number : carried.numbers) {
    Value argument = frame.forward.getCarried()[number];
    Value gradient = gradientOf(argument);
    yielded.push_back(gradient ? gradient
                               : zeros(argument, gradientType(argument)));
  }
  auto sums = frame.backward.getCarried().drop_front(carried.numbers.size());
  for (auto [value, sum] : llvm::zip_equal(carried.outside, sums)) {
    Value more = gradientOf(value);
    give(value, sum);
    if (more)
      give(value, castTo(more, training.getGradients()));
    yielded.push_back(gradientOf(value));
  }
  YieldOp::create(builder, frame.forward.getLoc(), yielded);
  return success();
}

/// The iterations of a segment once more, from what it began with.
RepeatOp Differentiation::runAgain(RepeatOp repeat, Frame &frame) {
  IRMapping mapping;
  for (Value init : repeat.getInits()) {
    mapping.map(init, read(init, builder));
    frame.beginnings.push_back(innermost->buffers.lookup(init));
  }
  auto again = cast<RepeatOp>(builder.clone(*repeat, mapping));
  again->walk([](Operation *op) {
    removeSourceAttributes(op);
    if (isa<CostOpInterface>(op))
      setPhase(op, Phase::Recompute);
  });
  for (auto [before, after] : mapping.getValueMap())
    if (active.contains(before))
      active.insert(after);
  for (auto [before, after] : mapping.getOperationMap())
    order[after] = order.lookup(before);
  return again;
}

/// The last iteration of a segment need not run again if iterations keep only
/// what they begin with: then each iteration keeps that of the next one.
void Differentiation::skipUnneeded(Frame &frame) {
  RepeatOp again = frame.forward;
  Segments segments = *segmentsOf(again);
  SmallVector<UpdateOp> updates;
  again->walk([&](UpdateOp update) { updates.push_back(update); });
  auto isOfBeginning = [&](UpdateOp update) {
    return llvm::is_contained(frame.beginnings, update.getDeclaration());
  };
  for (DeclareOp buffer : frame.beginnings) {
    bool isUsed = llvm::any_of(updates, [&](UpdateOp update) {
      return update.getDeclaration() == buffer;
    });
    SmallVector<int64_t> shape(buffer.getType().getShape());
    shape.front() = segments.number();
    if (!isUsed)
      buffer.getResult().setType(buffer.getType().clone(shape));
  }
  if (updates.empty())
    return unneeded.push_back(again);
  bool lastMayEnd = segments.iterations(segments.number() - 1) > 1;
  if (!lastMayEnd || !llvm::all_of(updates, isOfBeginning))
    return;
  Operation *yield = again.getBody().front().getTerminator();
  for (UpdateOp update : updates) {
    unsigned number = cast<BlockArgument>(update.getValue()).getArgNumber() - 1;
    update.getValueMutable().assign(yield->getOperand(number));
    update->setAttr(kAhead, builder.getUnitAttr());
  }
  again.setCount(segments.length - 1);
}

LogicalResult Differentiation::visitRepeat(RepeatOp repeat) {
  std::optional<Carried> carried = findCarried(repeat);
  if (!carried)
    return success();
  // What later operations gave to values from outside waits until the repeat's
  // own part is there.
  SmallVector<SmallVector<Value, 2>> later;
  for (Value value : carried->outside) {
    later.push_back(std::move(contributions[value]));
    contributions.erase(value);
  }
  Frame frame;
  Attribute segments = repeat->getAttr(kSegments);
  frame.forward = segments ? runAgain(repeat, frame) : repeat;
  frame.segment = segments ? repeat : RepeatOp();
  frame.backward = RepeatOp::create(
      builder, repeat.getLoc(), ValueRange(carried->inits).getTypes(),
      repeat.getIndexAttr(), repeat.getCountAttr(),
      repeat.getReverse() ? UnitAttr() : builder.getUnitAttr(), carried->inits);
  if (segments)
    frame.backward->setAttr(kSegments, segments);
  frame.outer = innermost;
  innermost = &frame;
  LogicalResult filled = fillBody(*carried, frame);
  innermost = frame.outer;
  if (failed(filled))
    return failure();
  if (segments)
    skipUnneeded(frame);
  for (auto [value, gradients] : llvm::zip_equal(carried->outside, later))
    if (!gradients.empty())
      contributions[value] = std::move(gradients);
  for (auto [number, gradient] :
       llvm::zip(carried->numbers, frame.backward.getResults()))
    if (isWanted(repeat.getInits()[number]))
      give(repeat.getInits()[number], gradient);
  auto sums = frame.backward.getResults().drop_front(carried->numbers.size());
  for (auto [value, gradient] : llvm::zip_equal(carried->outside, sums))
    give(value, castTo(gradient, gradientType(value)));
  return success();
}

/// Active operations give what their derivatives read.
void Differentiation::prepare() {
  SmallVector<GradientOpInterface> ops;
  program.walk([&](GradientOpInterface op) {
    if (llvm::any_of(op->getResults(),
                     [&](Value result) { return isWanted(result); }))
      ops.push_back(op);
  });
  for (GradientOpInterface op : ops) {
    for (Value result : op->getResults())
      active.erase(result);
    builder.setInsertionPoint(op);
    active.insert_range(op.prepareGradient(builder)->getResults());
  }
}

LogicalResult Differentiation::run() {
  FailureOr<OutputOp> output = findLoss();
  if (failed(output) || failed(findTrained()))
    return failure();
  WalkResult updates = program.walk([](UpdateOp update) {
    update.emitError("the state '")
        << update.getSym() << "' is updated, which a training step cannot";
    return WalkResult::interrupt();
  });
  if (updates.wasInterrupted())
    return failure();
  Block &block = program.getBody().front();
  Value loss = output->getValue();
  stackReadByNumber();
  if (failed(cutIntoSegments()))
    return failure();
  findActive(block);
  if (!isWanted(loss))
    return output->emitError("the loss '")
           << output->getSym() << "' depends on no weight that is trained";
  prepare();
  order = canonicalOrder(program);
  loss = output->getValue(); // which may have been made anew
  findRecomputed();
  builder.setInsertionPointToEnd(&block);
  auto type = cast<RankedTensorType>(loss.getType());
  auto one = ConstantOp::create(
      builder, output->getLoc(), type,
      DenseElementsAttr::get(
          type, Attribute(builder.getFloatAttr(type.getElementType(), 1))));
  // shd-microbatch divides it.
  setInverseOf(one, {});
  auto none = builder.getStrArrayAttr({});
  auto seed = ElementwiseOp::create(
      builder, output->getLoc(), type, Function::Copy, ValueRange{one},
      IndexingAttr::get(builder.getContext(), {none}, none));
  nameGradient(seed, output->getSym());
  give(loss, seed.getResult());
  if (failed(visit(block)))
    return failure();
  for (DeclareOp weight : weights)
    if (Value gradient = gradientOf(weight))
      UpdateOp::create(builder, weight.getLoc(), asSent(gradient),
                       declareLike(weight), ValueRange());
  for (RepeatOp repeat : unneeded)
    repeat.erase();
  return checkOffloaded();
}

struct DifferentiatePass : impl::ShdDifferentiateBase<DifferentiatePass> {
  using ShdDifferentiateBase::ShdDifferentiateBase;
  void runOnOperation() override {
    ProgramOp program = getOperation();
    std::optional<TrainingAttr> training = program.getTraining();
    if (training && failed(Differentiation(program, *training).run()))
      signalPassFailure();
  }
};

} // namespace
} // namespace shardc::shd
