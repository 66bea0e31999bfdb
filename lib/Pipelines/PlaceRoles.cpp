//===- PlaceRoles.cpp - Roles of mesh axes as pins ------------------------===//
//
// A role places one index of each operation
// (docs/Frameworks.md#plans-of-roles): the batch, a sequence, experts, or what
// tensor parallelism splits of its weight. Operands are pinned, not results: a
// pinned result could be computed in another layout and moved.
//
//===----------------------------------------------------------------------===//

#include "shardc/Pipelines/PlaceRoles.h"
#include "shardc/Cost/PipelineSchedule.h"
#include "shardc/Dialect/Shd/IR/Pipeline.h"
#include "shardc/Optimizer/IndexClasses.h"
#include "shardc/Optimizer/Names.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;
using Role = AxisRoles::Role;
using Zero = AxisRoles::Zero;

namespace {

using Names = SmallVector<StringRef, 6>;

/// Axes of each index of an operation, and indices that the search places.
struct IndexAxes {
  llvm::StringMap<AxisList> axes;
  llvm::StringSet<> open;
};

class RolePlacer {
public:
  RolePlacer(ProgramOp program, const AxisRoles &roles)
      : program(program), roles(roles), mesh(toMesh(program.getMeshAttr())),
        padding(program.getAllowPadding()), classes(program) {}

  LogicalResult run();

private:
  LogicalResult readAxes();
  LogicalResult placeStages();
  void findIndices();
  void findResidual();
  void findHeads();
  void findHidden();
  bool isOfWeights(StringRef name) const;
  LogicalResult checkSplit();
  LogicalResult checkBatch();
  void placeOperation(ShardingRuleOpInterface op);
  IndexAxes axesOf(ShardingRuleOpInterface op, const Names &names) const;
  void placeOperand(ShardingRuleOpInterface op, unsigned operand,
                    const IndexAxes &axes);
  void placeDeclared(DeclareOp declare);
  void placeActivation(DeclareOp declare);
  void placeWeight(DeclareOp declare);
  void split(Layout &layout, const TensorShape &shape, const Names &names,
             unsigned first, ArrayRef<AxisIndex> axes) const;
  bool divides(const TensorShape &shape, const Layout &layout) const {
    return padding || shardc::divides(mesh, shape, layout);
  }
  bool isExpertWork(const Names &names) const;
  /// The first index that tensor parallelism splits.
  StringRef splitIndex(const Names &names) const;

  ProgramOp program;
  const AxisRoles &roles;
  Mesh mesh;
  bool padding;
  IndexClasses classes;
  /// Axes of the batch, in all and of work on the slots of experts; of ZeRO.
  AxisList batch, batchOfExperts, zero, context, tensor, experts;
  bool splitsSequences = false;
  /// Indices of what layers hand on, of heads, and those that tensor
  /// parallelism splits.
  llvm::StringSet<> residual, heads, splitIndices;
  /// The index of experts and that of their slots.
  llvm::StringMap<std::string> slots;
};

} // namespace

static Names namesOf(ArrayRef<StringRef> names) {
  return Names(names.begin(), names.end());
}

static Names namesOf(DeclareOp declare) {
  Names names;
  llvm::append_range(names, declare.getIndices().getAsValueRange<StringAttr>());
  return names;
}

/// All indices of an operation, those of its operands first.
static Names namesOf(ShardingRuleOpInterface op) {
  llvm::SetVector<StringRef> names;
  IndexingAttr indexing = op.getIndexing();
  for (unsigned i = 0; i < indexing.getOperands().size(); ++i)
    names.insert_range(indexing.getOperandIndices(i));
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    names.insert_range(indexing.getResultIndices(i));
  return Names(names.begin(), names.end());
}

LogicalResult RolePlacer::readAxes() {
  for (const AxisRoles::Axis &axis : roles.axes) {
    std::optional<AxisIndex> found = mesh.find(axis.name);
    if (!found)
      return program.emitError("a role is that of axis '")
             << axis.name << "', which the mesh lacks";
    if (mesh.axes[*found].size == 1)
      continue;
    bool isBatch = axis.role <= Role::Expert;
    if (isBatch)
      batch.push_back(*found);
    if (isBatch && axis.role != Role::Expert)
      batchOfExperts.push_back(*found);
    if (axis.role == Role::Expert)
      experts.push_back(*found);
    if (axis.role == Role::Context)
      context.push_back(*found);
    if (axis.role >= Role::Tensor)
      tensor.push_back(*found);
    splitsSequences |= axis.role == Role::TensorSequence;
    bool isSharded = axis.role == Role::Sharded || axis.role == Role::Expert ||
                     axis.role == Role::Context;
    if (isSharded && roles.zero != Zero::None)
      zero.push_back(*found);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

/// Layers hand on the batch, sequences, and the width of the model.
void RolePlacer::findResidual() {
  auto add = [&](Value value) {
    SmallVector<std::string, 4> names = indexNames(value);
    bool hasBatch = llvm::any_of(
        names, [&](StringRef name) { return classes.batch.contains(name); });
    for (StringRef name : names)
      if (hasBatch && !classes.batch.contains(name) &&
          !classes.sequence.contains(name))
        residual.insert(name);
  };
  program->walk([&](RepeatOp repeat) {
    for (Value carried : repeat.getResults())
      add(carried);
  });
  if (residual.empty())
    program->walk([&](GatherOp gather) { add(gather.getResult()); });
}

/// Heads that queries and keys share; where keys have none, those of queries.
void RolePlacer::findHeads() {
  program->walk([&](AttentionOp op) {
    IndexingAttr indexing = op.getIndexing();
    Names keys = namesOf(indexing.getOperandIndices(1)), own;
    for (StringRef name : indexing.getOperandIndices(0))
      if (!classes.batch.contains(name) && !classes.sequence.contains(name) &&
          name != op.getHead())
        own.push_back(name);
    bool isShared = llvm::any_of(
        own, [&](StringRef name) { return llvm::is_contained(keys, name); });
    for (StringRef name : own)
      if (!isShared || llvm::is_contained(keys, name)) {
        heads.insert(name);
        break;
      }
  });
}

/// Indices that stand beside the width of the model in all weights that have
/// them: hidden widths and the vocabulary, no low ranks.
void RolePlacer::findHidden() {
  llvm::StringSet<> refused;
  SmallVector<StringRef> candidates;
  for (auto declare : program.getBody().getOps<DeclareOp>()) {
    if (declare.getKind() != TensorKind::Weight)
      continue;
    Names names = namesOf(declare);
    names.erase(names.begin(), names.begin() + declare.getStacked());
    if (names.size() < 2)
      continue;
    bool hasHeads = llvm::any_of(
        names, [&](StringRef name) { return heads.contains(name); });
    bool hasWidth = llvm::any_of(
        names, [&](StringRef name) { return residual.contains(name); });
    bool isFirst = true;
    for (StringRef name : names) {
      if (residual.contains(name) || slots.contains(name))
        continue;
      if (hasHeads || !hasWidth || !isFirst || classes.sequence.contains(name))
        refused.insert(name);
      else
        candidates.push_back(name);
      isFirst = false;
    }
  }
  for (StringRef name : candidates)
    if (!refused.contains(name))
      splitIndices.insert(name);
}

void RolePlacer::findIndices() {
  program->walk(
      [&](DispatchOp op) { slots[op.getExperts()] = op.getSlots().str(); });
  findResidual();
  findHeads();
  findHidden();
  for (const auto &head : heads)
    splitIndices.insert(head.getKey());
}

StringRef RolePlacer::splitIndex(const Names &names) const {
  for (StringRef name : names)
    if (splitIndices.contains(name))
      return name;
  return "";
}

bool RolePlacer::isExpertWork(const Names &names) const {
  return llvm::any_of(names, [&](StringRef name) {
    auto found = slots.find(name);
    return found != slots.end() &&
           llvm::is_contained(names, StringRef(found->second));
  });
}

/// Tensor and expert parallelism divide what they split, but a vocabulary,
/// which stays whole where they do not.
LogicalResult RolePlacer::checkSplit() {
  auto check = [&](DeclareOp declare, unsigned dim, StringRef name,
                   ArrayRef<AxisIndex> axes, StringRef role) -> LogicalResult {
    int64_t parts = mesh.groupSize(axes);
    int64_t extent = declare.getType().getShape()[dim];
    if (padding || extent % parts == 0)
      return success();
    if (declare.getStacked() == 0 && role == "tensor") {
      splitIndices.erase(name);
      return success();
    }
    return declare.emitError("'")
           << declare.getSym() << "': " << role << " parallelism over " << parts
           << " devices does not divide index '" << name << "' of " << extent;
  };
  bool hasExperts = false;
  for (auto declare : program.getBody().getOps<DeclareOp>()) {
    if (declare.getKind() != TensorKind::Weight)
      continue;
    Names names = namesOf(declare);
    for (unsigned dim = declare.getStacked(); dim < names.size(); ++dim) {
      bool isExperts = slots.contains(names[dim]);
      hasExperts |= isExperts;
      if (isExperts && names.size() - declare.getStacked() > 2 &&
          failed(check(declare, dim, names[dim], experts, "expert")))
        return failure();
      if (splitIndices.contains(names[dim]) &&
          failed(check(declare, dim, names[dim], tensor, "tensor")))
        return failure();
    }
  }
  if (!experts.empty() && !hasExperts)
    return program.emitError("expert parallelism expects experts, found none");
  return success();
}

/// The sequences of a microbatch, and their positions.
LogicalResult RolePlacer::checkBatch() {
  int64_t microbatches =
      std::max<int64_t>(1, program.getTraining()->getMicrobatches());
  for (auto declare : program.getBody().getOps<DeclareOp>()) {
    if (declare.getKind() != TensorKind::Input || padding)
      continue;
    for (auto [name, extent] :
         llvm::zip_equal(namesOf(declare), declare.getType().getShape())) {
      bool isBatch = classes.batch.contains(name);
      int64_t parts = mesh.groupSize(isBatch ? batch : context) *
                      (isBatch ? microbatches : 1);
      if ((!isBatch && !classes.sequence.contains(name)) || extent % parts == 0)
        continue;
      auto error = declare.emitError("'") << declare.getSym() << "': ";
      if (isBatch)
        return error << "a batch of " << extent << " is not whole for "
                     << parts / microbatches << " data-parallel ranks of "
                     << microbatches << " microbatches";
      return error << "context parallelism over " << parts
                   << " devices does not divide index '" << name << "' of "
                   << extent;
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

IndexAxes RolePlacer::axesOf(ShardingRuleOpInterface op,
                             const Names &names) const {
  IndexAxes result;
  bool ofExperts = isExpertWork(names);
  StringRef splitName = splitIndex(names);
  SmallVector<StringRef, 2> sequences;
  for (StringRef name : names) {
    if (classes.batch.contains(name))
      result.axes[name] = ofExperts ? batchOfExperts : batch;
    else if (classes.sequence.contains(name))
      sequences.push_back(name);
    else if (ofExperts && slots.contains(name))
      result.axes[name] = experts;
    else if (name == splitName)
      result.axes[name] = tensor;
  }
  // Keys stay where they are or go to all queries, as the search likes.
  if (sequences.size() > 1)
    for (StringRef name : llvm::drop_begin(sequences))
      result.open.insert(name);
  if (!sequences.empty()) {
    AxisList &along = result.axes[sequences.front()];
    along = context;
    if (splitName.empty() && splitsSequences)
      llvm::append_range(along, tensor);
  }
  // Slots of a part of the sequences are slots of their own.
  if (ofExperts && !context.empty())
    for (const auto &[expert, slot] : slots)
      result.open.insert(slot);
  return result;
}

static bool isReal(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() > 0 && isa<FloatType>(type.getElementType());
}

void RolePlacer::placeOperand(ShardingRuleOpInterface op, unsigned operand,
                              const IndexAxes &axes) {
  Value value = op->getOperand(operand);
  if (!isReal(value) || getOperandPin(op, operand))
    return;
  Names names = namesOf(op.getIndexing().getOperandIndices(operand));
  Layout layout = Layout::replicated(names.size());
  for (auto [dim, name] : llvm::enumerate(names))
    if (auto found = axes.axes.find(name);
        found != axes.axes.end() && !axes.open.contains(name))
      layout.dims[dim] = found->second;
  if (!divides(tensorShape(value.getType()), layout))
    return;
  MLIRContext *context = op->getContext();
  ShardingAttr pin = toSharding(context, mesh, layout);
  SmallVector<DimShardingAttr> dims(pin.getDims());
  for (auto [dim, name] : llvm::enumerate(names))
    if (axes.open.contains(name))
      dims[dim] = DimShardingAttr::get(context, {}, /*isOpen=*/true);
  setOperandPin(op, operand, ShardingAttr::get(context, dims, {}));
}

void RolePlacer::placeOperation(ShardingRuleOpInterface op) {
  // Rows of the embedding, and tokens on their way to experts and back, move as
  // the search likes.
  if (isa<GatherOp, ScatterOp, ScatterSumOp, DispatchOp, CombineOp,
          CombineGradOp>(op.getOperation()))
    return;
  Names names = namesOf(op);
  if (llvm::none_of(
          names, [&](StringRef name) { return classes.batch.contains(name); }))
    return;
  IndexAxes axes = axesOf(op, names);
  unsigned operands = op.getIndexing().getOperands().size();
  for (unsigned i = 0; i < operands; ++i)
    placeOperand(op, i, axes);
}

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

/// Adds axes to the dimensions from `first` on: all of them to one, that of the
/// model's width if they divide it, or else each where it divides.
void RolePlacer::split(Layout &layout, const TensorShape &shape,
                       const Names &names, unsigned first,
                       ArrayRef<AxisIndex> axes) const {
  SmallVector<unsigned> order;
  for (unsigned dim = first; dim < names.size(); ++dim)
    order.push_back(dim);
  llvm::sort(order, [&](unsigned a, unsigned b) {
    return std::pair(!residual.contains(names[a]), a) <
           std::pair(!residual.contains(names[b]), b);
  });
  auto add = [&](ArrayRef<AxisIndex> list) {
    for (unsigned dim : order) {
      Layout trial = layout;
      llvm::append_range(trial.dims[dim], list);
      if (!shardc::divides(mesh, shape, trial))
        continue;
      layout = std::move(trial);
      return true;
    }
    return false;
  };
  if (axes.empty() || add(axes))
    return;
  for (AxisIndex axis : axes)
    add(axis);
}

void RolePlacer::placeWeight(DeclareOp declare) {
  Names names = namesOf(declare);
  unsigned first = declare.getStacked();
  TensorShape shape = tensorShape(declare.getType());
  Layout layout = Layout::replicated(names.size());
  Names own(names.begin() + first, names.end());
  bool isOfExperts = own.size() > 2 && llvm::any_of(own, [&](StringRef name) {
                       return slots.contains(name);
                     });
  StringRef splitName = splitIndex(own);
  for (unsigned dim = first; dim < names.size(); ++dim) {
    if (isOfExperts && slots.contains(names[dim]))
      layout.dims[dim] = experts;
    else if (names[dim] == splitName)
      layout.dims[dim] = tensor;
  }
  TensorKind kind = declare.getKind();
  Zero least = kind == TensorKind::Weight     ? Zero::Weights
               : kind == TensorKind::Gradient ? Zero::Gradients
                                              : Zero::Optimizer;
  AxisList zeroAxes;
  for (AxisIndex axis : zero)
    if (!isOfExperts || !llvm::is_contained(experts, axis))
      zeroAxes.push_back(axis);
  if (roles.zero >= least)
    split(layout, shape, names, first, zeroAxes);
  // Gradients are summed up over the rest of the batch after the last
  // microbatch.
  if (kind == TensorKind::Gradient)
    for (const AxisList *list : {&batch, &context})
      for (AxisIndex axis : *list)
        if (!(layout.sharded() & axisBit(axis)))
          layout.partial |= axisBit(axis);
  if (!getResultPin(declare.getResult()) && divides(shape, layout))
    setResultPin(declare.getResult(),
                 toSharding(program.getContext(), mesh, layout));
}

/// Inputs, and values that are kept for the backward pass.
void RolePlacer::placeActivation(DeclareOp declare) {
  Names names = namesOf(declare);
  Names own(names.begin() + declare.getStacked(), names.end());
  bool ofExperts = isExpertWork(own);
  if (ofExperts && !context.empty())
    return;
  StringRef splitName = splitIndex(own);
  bool isInput = declare.getKind() == TensorKind::Input;
  Layout layout = Layout::replicated(names.size());
  for (unsigned dim = declare.getStacked(); dim < names.size(); ++dim) {
    StringRef name = names[dim];
    AxisList &axes = layout.dims[dim];
    if (classes.batch.contains(name))
      axes = ofExperts ? batchOfExperts : batch;
    else if (classes.sequence.contains(name)) {
      axes = context;
      if (splitName.empty() && splitsSequences && !isInput)
        llvm::append_range(axes, tensor);
    } else if (ofExperts && slots.contains(name))
      axes = experts;
    else if (name == splitName)
      axes = tensor;
  }
  if (!getResultPin(declare.getResult()) &&
      divides(tensorShape(declare.getType()), layout))
    setResultPin(declare.getResult(),
                 toSharding(program.getContext(), mesh, layout));
}

void RolePlacer::placeDeclared(DeclareOp declare) {
  if (declare.getType().getRank() == 0)
    return;
  switch (declare.getKind()) {
  case TensorKind::Weight:
  case TensorKind::Gradient:
  case TensorKind::Moment:
  case TensorKind::Master:
    return placeWeight(declare);
  case TensorKind::Input:
  case TensorKind::Saved:
    return placeActivation(declare);
  default:
    return;
  }
}

/// Stages of a framework that divides layers evenly.
LogicalResult RolePlacer::placeStages() {
  std::optional<PipelineAttr> pipeline = program.getPipeline();
  if (!roles.hasEqualLayers || !pipeline)
    return success();
  std::optional<PipelineOrder> order = parsePipelineOrder(pipeline->getOrder());
  int64_t parts =
      numStages(program).value_or(1) * (order ? order->chunks : int64_t(1));
  if (pipeline->getLayers() % parts != 0)
    return program.emitError("equal stages expect a number of layers that ")
           << parts << " chunks divide, found " << pipeline->getLayers();
  program->setAttr(kEqualLayers, UnitAttr::get(program.getContext()));
  return success();
}

LogicalResult RolePlacer::run() {
  if (failed(readAxes()) || failed(placeStages()))
    return failure();
  findIndices();
  if (failed(checkSplit()) || failed(checkBatch()))
    return failure();
  for (auto declare : program.getBody().getOps<DeclareOp>())
    placeDeclared(declare);
  program->walk([&](ShardingRuleOpInterface op) { placeOperation(op); });
  // A framework moves what an operation needs, and nothing to make room.
  program->setAttr(kStoredAsRead, UnitAttr::get(program.getContext()));
  return success();
}

LogicalResult shardc::placeRoles(ProgramOp step, const AxisRoles &roles) {
  if (!step.getTraining())
    return step.emitError("the roles of mesh axes are those of a training "
                          "step, and the program has no 'train' block");
  return RolePlacer(step, roles).run();
}
