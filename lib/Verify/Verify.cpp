//===- Verify.cpp - Proof of a plan by execution --------------------------===//

#include "Detail.h"
#include "shardc/Dialect/Shd/IR/Experts.h"
#include "shardc/Dialect/Shd/IR/Order.h"
#include "shardc/Dialect/Shd/IR/RingAttention.h"
#include "shardc/Dialect/Shd/IR/WorkOrder.h"
#include "shardc/Optimizer/GroupCosts.h"
#include "shardc/Pipelines/Compilation.h"
#include "shardc/Schedule/Memory.h"
#include "shardc/Shrink/Shrink.h"
#include "shardc/Verify/RunSize.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace shardc;

namespace {

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

/// Random bits that depend on a tensor's name, the iterations that have a part
/// and the element only, so that both programs read the same. SplitMix64.
class Generator {
public:
  Generator(StringRef name, ArrayRef<int64_t> iterations, uint64_t seed)
      : state(seed) {
    state ^= llvm::xxh3_64bits(name);
    for (int64_t iteration : iterations)
      state = next() ^ uint64_t(iteration);
  }

  uint64_t next() {
    state += 0x9e3779b97f4a7c15;
    uint64_t bits = state;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
    return bits ^ (bits >> 31);
  }
  /// From -1 to 1.
  double real() { return double(int64_t(next() >> 11)) * 0x1p-52 - 1; }

private:
  uint64_t state;
};

/// Scales are from 1/4 to 4; what a square adds up is not negative.
double randomReal(Type type, shd::TensorKind kind, Generator &generator) {
  double value = generator.real();
  if (shd::isScale(type))
    return std::exp2(std::nearbyint(2 * value));
  return kind == shd::TensorKind::Moment ? std::abs(value) : value;
}

int64_t randomInteger(IntegerType type, Generator &generator) {
  uint64_t bits = generator.next();
  if (type.getWidth() == 1)
    return int64_t(bits & 1);
  if (type.getWidth() < 32 && !type.isUnsigned())
    return int64_t(bits & 15) - 8;
  // Mostly small: integers are positions.
  return int64_t((bits >> 8) & ((bits & 1) ? 7 : 63));
}

/// The numbers of the iterations that have part `number` of a stack.
SmallVector<int64_t, 2> iterationsOf(ArrayRef<int64_t> stack, int64_t number) {
  SmallVector<int64_t, 2> iterations(stack.size());
  for (size_t i = stack.size(); i-- > 0; number /= stack[i])
    iterations[i] = number % stack[i];
  return iterations;
}

//===----------------------------------------------------------------------===//
// Both runs
//===----------------------------------------------------------------------===//

/// The indices of what a program declares, and of its repeats, each once.
std::vector<Verification::Dim> dimsOf(shd::ProgramOp program) {
  std::vector<Verification::Dim> dims;
  llvm::StringSet<> known;
  auto add = [&](StringRef name, int64_t extent) {
    if (known.insert(name).second)
      dims.push_back({name.str(), extent, extent});
  };
  program->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto repeat = dyn_cast<shd::RepeatOp>(op))
      add(repeat.getIndex(), repeat.getCount());
    else if (auto declare = dyn_cast<shd::DeclareOp>(op))
      for (auto [name, extent] :
           llvm::zip_equal(declare.getIndices().getAsValueRange<StringAttr>(),
                           declare.getType().getShape()))
        add(name, extent);
  });
  return dims;
}

bool differs(const Difference &difference) {
  return difference.size > kVerifyTolerance;
}

class Verifier {
public:
  Verifier(shd::ProgramOp whole, spmd::ProgramOp device,
           const VerifyOptions &options, const RunSchedule *schedule = nullptr,
           shd::ProgramOp forward = {})
      : whole(whole), device(device), forward(forward), options(options),
        schedule(schedule) {
    result.options = options;
    result.mesh = result.fullMesh = shd::toMesh(device.getMeshAttr());
    result.dims = dimsOf(whole);
  }

  FailureOr<Verification> verify();

private:
  RunOptions runOptions() const;
  LogicalResult checkStep(const RunResult &expected);
  LogicalResult findFirst();
  void findPartners();
  OpResult partnerOf(OpResult ofDevice) const;
  shd::ProgramOp whole;
  spmd::ProgramOp device;
  /// The program that was differentiated; may be null.
  shd::ProgramOp forward;
  const VerifyOptions &options;
  /// The schedule of the device's program; may be null.
  const RunSchedule *schedule;
  /// The operation of the whole program that makes what one of the device's
  /// computes a part of.
  llvm::DenseMap<Operation *, Operation *> partners;
  Verification result;
};

RunOptions Verifier::runOptions() const {
  return shardc::detail::inputsOf(whole, options);
}

/// The tensor as the devices store it: `op` has these indices.
Tensor asStored(const Tensor &whole, Operation *op,
                ArrayRef<StringRef> indices) {
  if (!op->hasAttr(shd::kDealt))
    return whole;
  return shd::stored(whole, shd::positionOrders(op, indices, whole.getShape()));
}

/// An output or a declared tensor, or the last dimensions of one.
Tensor asStored(const RunResult::Final &made, const Tensor &whole) {
  Operation *op = made.op;
  if (auto update = dyn_cast<spmd::UpdateOp>(op))
    op = update.getParameter();
  auto listed = op->getAttrOfType<ArrayAttr>("indices");
  if (!listed)
    return whole;
  SmallVector<StringRef> indices(listed.getAsValueRange<StringAttr>());
  return asStored(whole, op,
                  ArrayRef(indices).take_back(whole.getShape().size()));
}

void compareResult(const RunResult::Final &expected,
                   const RunResult::Final &found, Verification &result) {
  auto entry = llvm::find_if(result.results, [&](const auto &known) {
    return known.name == found.name && known.kind == found.kind;
  });
  if (entry == result.results.end()) {
    result.results.push_back(
        {found.name, found.kind, expected.loc, 0, 0, Difference(), false});
    entry = std::prev(result.results.end());
  }
  const Tensor wanted = asStored(found, *expected.parts.front());
  Difference difference =
      compare(Devices(result.mesh), found.global, wanted, found.parts);
  entry->elements += wanted.getNumElements();
  entry->notNumbers += llvm::count_if(
      wanted.getReals(), [](double value) { return std::isnan(value); });
  if (difference.size > entry->largest.size)
    entry->largest = std::move(difference);
  entry->differs = !result.options.roundToDeclared && differs(entry->largest);
  result.holds &= !entry->differs;
}

} // namespace

Tensor shardc::detail::randomTensor(const DeclaredTensor &declared,
                                    uint64_t seed) {
  Tensor tensor(declared.type);
  ArrayRef<int64_t> shape = declared.type.getShape();
  ArrayRef<int64_t> stack = shape.take_front(declared.stacked);
  int64_t size = numElements(shape.drop_front(declared.stacked));
  int64_t element = 0;
  for (int64_t part = 0, parts = numElements(stack); part < parts; ++part) {
    Generator generator(declared.name, iterationsOf(stack, part), seed);
    for (int64_t end = element + size; element < end; ++element)
      if (tensor.isReal())
        tensor.setReal(element, randomReal(tensor.getElementType(),
                                           declared.kind, generator));
      else
        tensor.setInteger(
            element, randomInteger(cast<IntegerType>(tensor.getElementType()),
                                   generator));
  }
  return tensor;
}

RunOptions shardc::detail::inputsOf(shd::ProgramOp whole,
                                    const VerifyOptions &options) {
  // A tensor of the forward program has the same elements, though it may be
  // stacked there along fewer repeats.
  llvm::StringMap<unsigned> stacked;
  for (auto declare : whole.getBody().getOps<shd::DeclareOp>())
    stacked[declare.getSym()] = declare.getStacked();
  RunOptions run;
  run.positions = PositionPolicy::Wrap;
  run.roundToDeclared = options.roundToDeclared;
  run.declared = [stacked, seed = options.seed](DeclaredTensor tensor) {
    if (auto known = stacked.find(tensor.name); known != stacked.end())
      tensor.stacked = known->second;
    return randomTensor(tensor, seed);
  };
  return run;
}

LogicalResult shardc::detail::compareResults(const RunResult &expected,
                                             Verification &result) {
  for (const RunResult::Final &wanted : expected.finals) {
    bool isMade = false;
    for (const RunResult::Final &found : result.run.finals) {
      if (found.name != wanted.name || found.kind != wanted.kind ||
          found.iterations != wanted.iterations)
        continue;
      compareResult(wanted, found, result);
      isMade = true;
    }
    if (!isMade)
      return emitError(wanted.loc)
             << (wanted.kind ? shd::stringifyTensorKind(*wanted.kind)
                             : "output")
             << " '" << wanted.name
             << "' is not made by the program of the devices";
  }
  return success();
}

namespace {

int64_t countOperations(Operation *program) {
  int64_t count = 0;
  program->walk([&](shd::EvaluationOpInterface) { ++count; });
  return count;
}

/// Operations by what they are and where they come from, in program order.
using OperationKey = std::pair<StringRef, Location>;
llvm::MapVector<OperationKey, SmallVector<Operation *>>
computingOperations(Operation *program) {
  llvm::MapVector<OperationKey, SmallVector<Operation *>> ops;
  program->walk<WalkOrder::PreOrder>([&](shd::EvaluationOpInterface op) {
    ops[{op->getName().getStringRef(), op->getLoc()}].push_back(op);
  });
  return ops;
}

/// Operations that the devices' program splits up have no partner.
void Verifier::findPartners() {
  auto ofWhole = computingOperations(whole);
  for (auto &[key, ofDevice] : computingOperations(device)) {
    SmallVector<Operation *> wanted = ofWhole.lookup(key);
    if (wanted.size() == ofDevice.size())
      for (auto [of, with] : llvm::zip_equal(ofDevice, wanted))
        partners[of] = with;
  }
}

/// Computing operations have partners of their own, collectives that of what
/// they move. Null if there is none.
OpResult Verifier::partnerOf(OpResult ofDevice) const {
  while (ofDevice && spmd::isCollective(ofDevice.getOwner()))
    ofDevice = dyn_cast<OpResult>(ofDevice.getOwner()->getOperand(0));
  Operation *partner =
      ofDevice ? partners.lookup(ofDevice.getOwner()) : nullptr;
  return partner ? partner->getResult(ofDevice.getResultNumber()) : OpResult();
}

/// The whole tensor of which an operation of the device's makes a part.
RankedTensorType globalTypeOf(OpResult ofDevice) {
  // With a halo it is no part of one.
  if (isa<spmd::HaloExchangeOp>(ofDevice.getOwner()))
    return {};
  bool isMoved = spmd::isCollective(ofDevice.getOwner());
  auto global = dyn_cast_or_null<TypeAttr>(
      shd::getResultAttr(ofDevice, isMoved ? "to" : StringRef(spmd::kGlobal)));
  return global ? cast<RankedTensorType>(global.getValue())
                : RankedTensorType();
}

std::string nameOf(OpResult value) {
  if (StringRef name = shd::getResultName(value); !name.empty())
    return name.str();
  auto moved = value.getOwner()->getAttrOfType<StringAttr>(shd::kOperand);
  return moved ? moved.str() : "";
}

/// The loss of a program that was run.
std::optional<double> lossOf(const RunResult &run, StringRef name) {
  for (const RunResult::Final &final : run.finals)
    if (!final.kind && final.name == name)
      return final.parts.front()->getReal(0);
  return std::nullopt;
}

/// A training step computes the loss of the program that was differentiated,
/// and its gradients.
LogicalResult Verifier::checkStep(const RunResult &expected) {
  std::optional<shd::TrainingAttr> training = whole.getTraining();
  if (!training)
    return success();
  FailureOr<Verification::Gradients> found =
      checkGradients(whole, expected, runOptions(), options.seed);
  if (failed(found))
    return failure();
  result.gradients = std::move(*found);
  Verification::Gradients &gradients = *result.gradients;
  gradients.loss = lossOf(expected, training->getLoss()).value_or(0);
  if (forward) {
    FailureOr<RunResult> run = interpret(forward, runOptions());
    if (failed(run))
      return failure();
    gradients.forwardLoss = lossOf(*run, training->getLoss());
    double loss = gradients.forwardLoss.value_or(0);
    double scale = std::max(1.0, std::abs(loss));
    gradients.lossDiffers =
        std::isfinite(loss) &&
        !(std::abs(loss - gradients.loss) <= kVerifyTolerance * scale);
  }
  result.holds &= gradients.wrong.empty() && !gradients.lossDiffers;
  return success();
}

/// A result of an operation of the whole program as the devices store it.
Tensor asStored(OpResult ofDevice, const Tensor &whole) {
  while (spmd::isCollective(ofDevice.getOwner()) &&
         isa<OpResult>(ofDevice.getOwner()->getOperand(0)))
    ofDevice = cast<OpResult>(ofDevice.getOwner()->getOperand(0));
  auto op = dyn_cast<shd::ShardingRuleOpInterface>(ofDevice.getOwner());
  if (!op)
    return whole;
  return asStored(
      whole, op, op.getIndexing().getResultIndices(ofDevice.getResultNumber()));
}

/// Values in the slots of experts, where the devices have tokens in another
/// order than the program: other tokens take a slot.
llvm::DenseSet<Value> otherSlots(spmd::ProgramOp device) {
  llvm::DenseSet<Value> values;
  device->walk([&](Operation *op) {
    bool reads = llvm::any_of(op->getOperands(), [&](Value operand) {
      return values.contains(operand);
    });
    if (auto dispatch = dyn_cast<shd::DispatchOp>(op))
      reads = llvm::any_of(
          shd::ExpertIndices::of(dispatch).tokens,
          [&](StringRef index) { return shd::dealtParts(op, index) > 1; });
    if (reads && !isa<shd::CombineOp, shd::RepeatOp>(op))
      values.insert(op->result_begin(), op->result_end());
  });
  return values;
}

/// Runs both again and compares every operation's result.
LogicalResult Verifier::findFirst() {
  findPartners();
  llvm::DenseSet<Value> incomparable = otherSlots(device);
  using Key = std::pair<void *, std::vector<int64_t>>;
  auto keyOf = [](OpResult result, const RunValue &value) {
    return Key(result.getAsOpaquePointer(), value.iterations.vec());
  };
  std::map<Key, TensorRef> expected;
  RunOptions run = runOptions();
  run.observe = [&](const RunValue &value) {
    expected[keyOf(value.value, value)] = value.parts.front();
  };
  if (failed(interpret(whole, run)))
    return failure();
  run.observe = [&](const RunValue &value) {
    Operation *op = value.value.getOwner();
    RankedTensorType global = globalTypeOf(value.value);
    auto it = expected.find(keyOf(partnerOf(value.value), value));
    if (result.first || !global || it == expected.end() ||
        incomparable.contains(value.value))
      return;
    Difference difference =
        compare(Devices(result.mesh), global,
                asStored(value.value, *it->second), value.parts);
    if (differs(difference))
      result.first = Verification::First{
          spmd::isCollective(op), op->getName().stripDialect().str(),
          nameOf(value.value), op->getLoc(), difference};
  };
  return failure(failed(interpret(device, run)));
}

FailureOr<Verification> Verifier::verify() {
  if (failed(checkRunSize(whole, /*devices=*/1)) ||
      failed(checkRunSize(device, double(result.mesh.numDevices()))))
    return failure();
  RunOptions counting = runOptions();
  counting.observeOperands = [&](Operation *op,
                                 ArrayRef<const Tensor *> operands) {
    auto dispatch = dyn_cast<shd::DispatchOp>(op);
    if (!dispatch || shd::getPhase(op) != shd::Phase::Forward)
      return;
    shd::PickCount count =
        shd::countPicks(dispatch, *operands[shd::kPicksOperand]);
    shd::PickCount &sum = result.picks ? *result.picks : result.picks.emplace();
    sum.picks += count.picks;
    sum.dropped += count.dropped;
  };
  FailureOr<RunResult> expected = interpret(whole, counting);
  if (failed(expected))
    return failure();
  RunOptions run = runOptions();
  run.schedule = schedule;
  FailureOr<RunResult> found = interpret(device, run);
  if (failed(found))
    return failure();
  result.run = std::move(*found);
  if (options.gradients && !options.roundToDeclared &&
      failed(checkStep(*expected)))
    return failure();
  result.operations = int64_t(countOperations(device));
  if (failed(shardc::detail::compareResults(*expected, result)) ||
      (!result.holds && failed(findFirst())))
    return failure();
  return std::move(result);
}

/// The same schedule of the program into which another one was converted,
/// operation by operation.
RunSchedule convertSchedule(const RunSchedule &schedule, Operation *from,
                            Operation *to) {
  SmallVector<Operation *> before, after;
  from->walk<WalkOrder::PreOrder>([&](Operation *op) { before.push_back(op); });
  to->walk<WalkOrder::PreOrder>([&](Operation *op) { after.push_back(op); });
  llvm::DenseMap<Operation *, Operation *> partner;
  for (auto [a, b] : llvm::zip_equal(before, after))
    partner[a] = b;
  RunSchedule result = schedule;
  for (EarlyIssue &issue : result) {
    issue.collective = partner.at(issue.collective);
    issue.block = &partner.at(issue.block->getParentOp())->getRegion(0).front();
    if (issue.after)
      issue.after = partner.at(issue.after);
  }
  return result;
}

/// FLOPs of each operation's busiest device in all of its runs, in program
/// order; 0 for others.
std::vector<double> predictFlops(shd::ProgramOp program) {
  Mesh mesh = shd::toMesh(program.getMeshAttr());
  std::vector<double> flops;
  program->walk<WalkOrder::PreOrder>([&](Operation *op) {
    flops.push_back(deviceFlops(mesh, op).busiest *
                    double(shd::executionCount(op)));
  });
  return flops;
}

/// Compares what was executed with the prediction, operation by operation;
/// nothing if the devices' program has others.
std::optional<Verification::Flops>
compareFlops(ArrayRef<double> predicted, spmd::ProgramOp device,
             ArrayRef<RunResult::Work> executed) {
  std::vector<Operation *> ops;
  device->walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
  if (ops.size() != predicted.size())
    return std::nullopt;
  llvm::DenseMap<Operation *, ArrayRef<double>> ofOp;
  for (const RunResult::Work &work : executed)
    ofOp[work.op] = work.flops;
  Verification::Flops result;
  result.executed.assign(shd::toMesh(device.getMeshAttr()).numDevices(), 0);
  for (auto [op, expected] : llvm::zip_equal(ops, predicted)) {
    result.predicted += expected;
    double most = 0;
    for (auto [total, flops] :
         llvm::zip_first(ofOp.lookup(op), result.executed)) {
      flops += total;
      most = std::max(most, total);
    }
    bool agrees =
        std::abs(most - expected) <= kVerifyTolerance * std::max(1.0, expected);
    if (!agrees && !result.wrong)
      result.wrong = {op->getLoc(), expected, most};
  }
  return result;
}

template <typename Program> Program programOf(ModuleOp module) {
  return *module.getOps<Program>().begin();
}

} // namespace

FailureOr<Verification> shardc::verifyPrograms(shd::ProgramOp whole,
                                               spmd::ProgramOp device,
                                               const VerifyOptions &options) {
  return Verifier(whole, device, options).verify();
}

/// Runs the devices' program in program order and in `schedule`: of the
/// results, those of the first run that does not hold.
static FailureOr<Verification>
verifyInBoth(shd::ProgramOp whole, spmd::ProgramOp device,
             shd::ProgramOp forward, const VerifyOptions &options,
             const RunSchedule &schedule, Verification::Memory inOrder,
             Verification::Memory asScheduled) {
  const RunSchedule programOrder;
  VerifyOptions how = options;
  auto run = [&](const RunSchedule &each, Verification::Memory &memory) {
    FailureOr<Verification> result =
        Verifier(whole, device, how, &each, forward).verify();
    if (succeeded(result))
      memory.measured = result->run.peak;
    return result;
  };
  FailureOr<Verification> result = run(programOrder, inOrder);
  if (failed(result))
    return failure();
  asScheduled.measured = inOrder.measured;
  if (!schedule.empty()) {
    // The unsharded step's gradients do not depend on the schedule.
    how.gradients = false;
    FailureOr<Verification> scheduled = run(schedule, asScheduled);
    if (failed(scheduled))
      return failure();
    if (result->holds) {
      scheduled->gradients = std::move(result->gradients);
      result = std::move(scheduled);
    }
  }
  result->holds &= inOrder.agrees() && asScheduled.agrees();
  result->inOrder = std::move(inOrder);
  result->asScheduled = std::move(asScheduled);
  return result;
}

/// Of a pipeline, one stage that has everything runs, for one microbatch after
/// the other. True if the program was one.
static bool takeOneStage(shd::ProgramOp program) {
  if (!program.removePipelineAttr())
    return false;
  for (auto declare : program.getBody().getOps<shd::DeclareOp>())
    declare->removeAttr(shd::kInFlight);
  return true;
}

/// Runs the program whose attention runs in steps around rings: of the results,
/// those of `gathered`, the one with all_gathers for what travels, if that does
/// not hold.
static LogicalResult verifySteps(shd::ProgramOp whole,
                                 OwningOpRef<ModuleOp> planned,
                                 const VerifyOptions &options,
                                 OwningOpRef<ModuleOp> &module,
                                 FailureOr<Verification> &gathered) {
  Compilation compilation(std::move(planned), Compilation::Stage::Explicit);
  if (failed(compilation.convertToSpmd()))
    return failure();
  VerifyOptions how = options;
  how.schedule = nullptr;
  how.gradients = false;
  FailureOr<Verification> steps =
      Verifier(whole, programOf<spmd::ProgramOp>(compilation.module()), how)
          .verify();
  if (failed(steps))
    return failure();
  if (!gathered->holds)
    return success();
  steps->inOrder = std::move(gathered->inOrder);
  steps->asScheduled = std::move(gathered->asScheduled);
  steps->gradients = std::move(gathered->gradients);
  gathered = std::move(steps);
  module = compilation.takeModule();
  return success();
}

/// What travels around rings is gathered; returns the program in which it
/// travels, or nothing if that is the same.
static OwningOpRef<ModuleOp> gatherWhatTravels(shd::ProgramOp program) {
  bool hasRings = false;
  program->walk([&](Operation *op) { hasRings |= shd::travels(op); });
  if (!hasRings)
    return {};
  OwningOpRef<ModuleOp> inSteps = program->getParentOfType<ModuleOp>().clone();
  program->walk([](Operation *op) { op->removeAttr(shd::kRing); });
  return inSteps;
}

/// Extents that keep their order may make a program too large to run.
static FailureOr<Verification> verifySmall(ModuleOp imported, ModuleOp planned,
                                           const VerifyOptions &options,
                                           bool keepsOrder) {
  OwningOpRef<ModuleOp> wholeModule = imported.clone();
  OwningOpRef<ModuleOp> module = planned.clone();
  auto whole = programOf<shd::ProgramOp>(*wholeModule);
  auto explicitPlan = programOf<shd::ProgramOp>(*module);
  bool isOneStage = takeOneStage(explicitPlan);
  takeOneStage(whole);
  shd::moveInOrder(whole, shd::workOrderOf(explicitPlan));
  Mesh fullMesh = shd::toMesh(explicitPlan.getMeshAttr());
  std::vector<Verification::Dim> dims = dimsOf(whole);
  OwningOpRef<ModuleOp> forwardModule;
  shd::ProgramOp forward;
  // The loss of a stage is not that of all layers.
  if (options.forward && options.gradients && !isOneStage) {
    forwardModule = ModuleOp(options.forward).clone();
    forward = programOf<shd::ProgramOp>(*forwardModule);
  }
  if (options.shrink) {
    ShrinkOptions shrink;
    shrink.keepsOrder = keepsOrder;
    Shrinking shrinking = chooseShrinking(explicitPlan, shrink);
    // The repeat over microbatches and the index that it goes through are made
    // small each on its own: the small step may leave some of the batch out.
    if (forward && forward.getTraining()) {
      auto count = int64_t(forward.getTraining()->getMicrobatches());
      if (shrinking.count(count) == count && shrinking.extent(count) == count)
        applyShrinking(forward, shrinking);
      else
        forward = {};
    }
    applyShrinking(explicitPlan, shrinking);
    applyShrinking(whole, shrinking);
  }
  auto original = programOf<shd::ProgramOp>(planned);
  std::vector<double> flops = predictFlops(explicitPlan);
  Verification::Memory inOrder, asScheduled;
  if (options.schedule) {
    inOrder.predicted = profileMemory(explicitPlan).peak;
    asScheduled.predicted =
        profileMemory(explicitPlan, convertSchedule(*options.schedule, original,
                                                    explicitPlan))
            .peak;
  }
  // Memory and FLOPs are measured of what stands for what travels.
  OwningOpRef<ModuleOp> inSteps =
      options.schedule ? gatherWhatTravels(explicitPlan) : nullptr;
  Compilation compilation(std::move(module), Compilation::Stage::Explicit);
  if (failed(compilation.convertToSpmd()))
    return failure();
  auto device = programOf<spmd::ProgramOp>(compilation.module());
  if (options.shrink && keepsOrder &&
      !(isRunnable(whole, /*devices=*/1) &&
        isRunnable(device, double(spmd::meshOf(device).numDevices()))))
    return verifySmall(imported, planned, options, /*keepsOrder=*/false);
  FailureOr<Verification> result =
      options.schedule
          ? verifyInBoth(whole, device, forward, options,
                         convertSchedule(*options.schedule, original, device),
                         std::move(inOrder), std::move(asScheduled))
          : Verifier(whole, device, options, nullptr, forward).verify();
  if (failed(result))
    return failure();
  auto executed = compareFlops(flops, device, result->run.work);
  OwningOpRef<ModuleOp> ran = compilation.takeModule();
  if (inSteps &&
      failed(verifySteps(whole, std::move(inSteps), options, ran, result)))
    return failure();
  result->flops = std::move(executed);
  if (result->flops)
    result->holds &= !result->flops->wrong;
  result->isOneStage = isOneStage;
  result->fullMesh = fullMesh;
  for (auto [dim, before] : llvm::zip_equal(result->dims, dims))
    dim.full = before.full;
  result->module = std::move(ran);
  return result;
}

FailureOr<Verification> shardc::verifyPlan(ModuleOp imported, ModuleOp planned,
                                           const VerifyOptions &options) {
  return verifySmall(imported, planned, options, /*keepsOrder=*/true);
}

FailureOr<Verification> shardc::verifyPlan(ModuleOp imported,
                                           Compilation &compilation,
                                           VerifyOptions options) {
  const ScheduledProgram *scheduled = compilation.schedule();
  if (!scheduled || failed(compilation.markRings()))
    return failure();
  // What rings take in place of a matmul's collectives is not modelled.
  options.schedule = scheduled->matmuls.empty() ? &scheduled->issues : nullptr;
  options.forward = compilation.forward();
  FailureOr<Verification> result =
      verifyPlan(imported, compilation.module(), options);
  if (failed(result) || !result->isOneStage)
    return result;
  const StagePlan *stages = compilation.stages();
  if (!stages)
    return failure();
  FailureOr<Verification::Stages> ran = shardc::detail::verifyStages(
      imported, compilation.module(), *stages, options);
  if (failed(ran))
    return failure();
  result->holds &= ran->holds();
  result->stages = std::move(*ran);
  return result;
}
