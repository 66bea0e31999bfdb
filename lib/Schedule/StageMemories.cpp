//===- StageMemories.cpp - What the stages of a pipeline keep -------------===//
//
// A stage has the program's memory without the tensors of other stages, with
// saved values once for each microbatch in flight.
//
//===----------------------------------------------------------------------===//

#include "StageMemories.h"
#include "shardc/Cost/Saturating.h"
#include "shardc/Dialect/Shd/IR/Explicit.h"
#include "shardc/Dialect/Shd/IR/Pipeline.h"
#include "shardc/Optimizer/Names.h"
#include <numeric>

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

int64_t shardc::localBytes(const Mesh &mesh, Value value) {
  return wholeBytes(
      tensorShape(value.getType())
          .localBytes(mesh, explicitLayout(mesh, value.getType())));
}

StageMemories::StageMemories(ProgramOp program, const StageMap &map,
                             const Mesh &mesh)
    : program(program), map(map), mesh(mesh), pipeline(*program.getPipeline()),
      profiler(program) {
  findCrossings();
}

int64_t StageMemories::heldLayers() const {
  RepeatOp layers = map.forward();
  return layers ? int64_t(layers.getCount()) : pipeline.getHeld();
}

/// The stages that keep a value: others send on what their layers make, and do
/// not begin sums of microbatches that they add nothing to.
StageRoles StageMemories::rolesOf(Value value) const {
  Operation *op = value.getDefiningOp();
  if (op && op == map.forward())
    return LastRole;
  if (op && op == map.backward())
    return FirstRole;
  RepeatOp microbatches = map.microbatches();
  if (op && microbatches && value.hasOneUse() &&
      *value.getUsers().begin() == microbatches)
    return map.rolesOf(microbatches.getBody().getArgument(
        value.getUses().begin()->getOperandNumber() + 1));
  return map.rolesOf(value);
}

/// Values that a pass makes and a later one reads: buffers, which the program
/// has for each layer, and others.
void StageMemories::findCrossings() {
  if (!map.microbatches())
    return;
  for (auto declare : program.getBody().getOps<DeclareOp>()) {
    if (declare.getKind() != TensorKind::Saved)
      continue;
    int64_t bytes = localBytes(mesh, declare.getResult());
    bool isStacked = isStackedOverLayers(declare, pipeline);
    bool isForWeights = llvm::any_of(declare->getUsers(), [&](Operation *user) {
      return isa<PartOp>(user) &&
             llvm::any_of(user->getUsers(), [&](Operation *reader) {
               return map.passOf(reader) == StagePass::Weights;
             });
    });
    if (isStacked)
      bytes /= heldLayers();
    crossings.push_back({declare.getResult(),
                         map.rolesOf(declare.getResult()),
                         isStacked,
                         {bytes, isForWeights ? bytes : 0}});
  }
  map.microbatches()->walk([&](Operation *op) {
    if (isa<ConstantOp>(op) || isCollective(op))
      return;
    bool isOfLayers = map.isLayers(op->getParentOfType<RepeatOp>());
    for (Value result : op->getResults())
      addCrossing(result, map.passOf(op), rolesOf(result), isOfLayers);
  });
  // The gradient of what a layer makes, which the stage behind it sends.
  if (RepeatOp backward = map.backward())
    for (Value carried : backward.getBody().getArguments().drop_front())
      addCrossing(carried, StagePass::Backward, LayerRole, /*isOfLayers=*/true);
}

/// True of an elementwise operation that each reader computes for itself.
static bool isInlined(Operation *op) {
  Attribute group = op->getAttr(kGroup);
  return group && !op->use_empty() &&
         llvm::all_of(op->getUsers(), [&](Operation *user) {
           return computes(user, group) ||
                  (user->getAttr(kGroup) == group && isInlined(user));
         });
}

/// Who needs a value, in any layout: its users, and those that may compute for
/// themselves what these make of it.
void StageMemories::addReaders(Value value,
                               SmallVectorImpl<Operation *> &readers) const {
  for (Operation *user : value.getUsers()) {
    if (!isCollective(user))
      readers.push_back(user);
    if (!isCollective(user) && !profiler.isPrologue(user))
      continue;
    for (Value result : user->getResults())
      addReaders(result, readers);
  }
}

void StageMemories::addCrossing(Value value, StagePass made, StageRoles roles,
                                bool isOfLayers) {
  if (Operation *op = value.getDefiningOp(); op && isInlined(op))
    return;
  bool forBackward = false, forWeights = false;
  SmallVector<Operation *> readers;
  addReaders(value, readers);
  StageRoles reading = NoRole;
  for (Operation *user : readers) {
    StagePass read = map.passOf(user);
    if (read == made)
      continue;
    forBackward |= made == StagePass::Forward;
    forWeights |= read == StagePass::Weights;
    reading |= map.rolesOf(user);
  }
  if (!forBackward && !forWeights)
    return;
  roles &= reading;
  auto add = [&](Value form) {
    int64_t bytes = localBytes(mesh, form);
    crossings.push_back({form,
                         roles,
                         isOfLayers,
                         {forBackward ? bytes : 0, forWeights ? bytes : 0}});
  };
  Value stored = storedValue(value);
  if (!isa_and_nonnull<PartOp>(stored.getDefiningOp()) &&
      !profiler.isInBuffer(value))
    add(stored);
  if (Value copy = sharedCopy(stored))
    add(copy);
}

/// The bytes of a crossing value that a stage keeps at each of its items, all
/// microbatches in flight together. `layers` are those of its chunks.
std::vector<int64_t> StageMemories::keptBytes(ArrayRef<int64_t> layers,
                                              unsigned stage, int64_t stages,
                                              ArrayRef<PipelineItem> items,
                                              const Crossing &crossing) const {
  SmallVector<PipelineKept> kept;
  for (auto [chunk, held] : llvm::enumerate(layers)) {
    StageRoles roles = rolesOfChunk(stage, stages, chunk, layers.size());
    int64_t times = !(roles & crossing.roles) ? 0
                    : crossing.isOfLayers     ? held
                                              : 1;
    kept.push_back({saturatingMultiply(crossing.bytes.untilBackward, times),
                    saturatingMultiply(crossing.bytes.untilWeights, times)});
  }
  return keptAt(items, kept);
}

/// By crossing value, at the item at which the stage holds the most of all
/// together. Buffers share memory that stays from the first need of it on.
llvm::DenseMap<Value, int64_t>
StageMemories::keptAtPeak(ArrayRef<int64_t> layers, unsigned stage,
                          int64_t stages, ArrayRef<PipelineItem> items) const {
  std::vector<int64_t> inBuffers(items.size(), 0), others(items.size(), 0);
  std::vector<std::vector<int64_t>> ofEach;
  for (const Crossing &crossing : crossings) {
    ofEach.push_back(keptBytes(layers, stage, stages, items, crossing));
    for (auto [sum, own] : llvm::zip_equal(
             crossing.isBuffer() ? inBuffers : others, ofEach.back()))
      sum = saturatingAdd(sum, own);
  }
  size_t peak = 0, fullest = 0, fullestAtPeak = 0;
  auto heldAt = [&](size_t item, size_t full) {
    return saturatingAdd(inBuffers[full], others[item]);
  };
  for (size_t item = 0; item < items.size(); ++item) {
    if (inBuffers[item] > inBuffers[fullest])
      fullest = item;
    if (heldAt(item, fullest) > heldAt(peak, fullestAtPeak)) {
      peak = item;
      fullestAtPeak = fullest;
    }
  }
  llvm::DenseMap<Value, int64_t> kept;
  for (auto [crossing, own] : llvm::zip_equal(crossings, ofEach))
    kept[crossing.value] = own[crossing.isBuffer() ? fullestAtPeak : peak];
  return kept;
}

bool StageMemories::isSummand(Value sum, StageRoles roles) const {
  Operation *op = sum.getDefiningOp();
  if (!op || map.passOf(op) == StagePass::Update || !map.isPartial(op))
    return false;
  SmallVector<Value> here;
  for (Value operand : op->getOperands())
    if (map.rolesOf(operand) & roles)
      here.push_back(operand);
  return op->getNumOperands() > 1 && here.size() == 1 &&
         fusionGroupOf(here.front().getDefiningOp()) != fusionGroupOf(op);
}

/// True of what nothing needs, or only parts of it that nothing needs.
static bool isUnread(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    return (isa<SplitOp, GatherOp, PartOp>(user) || isCollective(user)) &&
           isUnread(user->getResult(0));
  });
}

MemoryProfile StageMemories::profile(const PipelineShape &shape, unsigned stage,
                                     const RunSchedule &schedule) {
  StageRoles roles = rolesOfStage(stage, shape.stages);
  SmallVector<int64_t> held;
  for (size_t i = stage; i < shape.layers.size(); i += shape.stages)
    held.push_back(shape.layers[i]);
  int64_t layers = std::accumulate(held.begin(), held.end(), int64_t(0));
  std::vector<PipelineItem> items =
      orderOf(shape.order, stage, shape.stages, shape.microbatches,
              program.getTraining().has_value());
  llvm::DenseMap<Value, int64_t> kept =
      keptAtPeak(held, stage, shape.stages, items);
  StageMemory share;
  share.microbatches = map.microbatches();
  share.runs = [&](Operation *op) { return bool(map.rolesOf(op) & roles); };
  share.isSummand = [&](Value value) { return isSummand(value, roles); };
  share.bytesOf = [&](Value value, int64_t bytes) -> int64_t {
    auto declare = value.getDefiningOp<DeclareOp>();
    if (declare && declare.getKind() == TensorKind::Saved)
      return kept.lookup(value);
    bool isDeclared =
        isa_and_nonnull<DeclareOp, SplitOp>(rootValue(value).getDefiningOp());
    if (!(rolesOf(value) & roles) || (isDeclared && isUnread(value)))
      return 0;
    if (declare && isStackedOverLayers(declare, pipeline))
      return bytes / heldLayers() * layers;
    return bytes;
  };
  // One of them is among the program's own values while its pass runs.
  for (const Crossing &crossing : crossings)
    if (!crossing.isBuffer()) {
      int64_t own =
          (crossing.roles & roles) ? localBytes(mesh, crossing.value) : 0;
      share.beside.push_back(
          {crossing.value,
           std::max<int64_t>(0, kept.lookup(crossing.value) - own)});
    }
  return profiler.profile(schedule, &share);
}

std::vector<MemoryProfile> StageMemories::profile(const PipelineShape &shape,
                                                  const RunSchedule &schedule) {
  std::vector<MemoryProfile> profiles;
  for (int64_t stage = 0; stage < shape.stages; ++stage)
    profiles.push_back(profile(shape, unsigned(stage), schedule));
  return profiles;
}

std::vector<MemoryProfile> shardc::profileStages(ProgramOp program,
                                                 const PipelineShape &shape) {
  StageMap map(program);
  Mesh mesh = toMesh(program.getMeshAttr());
  return StageMemories(program, map, mesh).profile(shape, RunSchedule());
}
