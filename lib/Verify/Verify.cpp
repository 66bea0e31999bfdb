//===- Verify.cpp - Proof of a plan by execution --------------------------===//

#include "shardc/Verify/Verify.h"
#include "mlir/Pass/PassManager.h"
#include "shardc/Conversion/Passes.h"
#include "shardc/Dialect/Spmd/Transforms/Passes.h"
#include "shardc/Report/Memory.h"
#include "shardc/Verify/RunSize.h"
#include "shardc/Verify/Shrink.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace shardc;

namespace {

/// Beyond what another order of sums makes of doubles.
constexpr double kTolerance = 1e-9;

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

/// Random bits that depend on a tensor's name, its iteration and the element
/// only, so that both programs read the same. SplitMix64.
class Generator {
public:
  Generator(const DeclaredTensor &tensor, uint64_t seed) : state(seed) {
    state ^= llvm::xxh3_64bits(tensor.name);
    for (int64_t iteration : tensor.iterations)
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

int64_t randomInteger(IntegerType type, Generator &generator) {
  uint64_t bits = generator.next();
  if (type.getWidth() == 1)
    return int64_t(bits & 1);
  if (type.getWidth() < 32 && !type.isUnsigned())
    return int64_t(bits & 15) - 8;
  // Mostly small: integers are positions.
  return int64_t((bits >> 8) & ((bits & 1) ? 7 : 63));
}

/// Reals from -1 to 1; integers that are mostly positions near the beginning.
Tensor randomTensor(const DeclaredTensor &declared, uint64_t seed) {
  Tensor tensor(declared.type);
  Generator generator(declared, seed);
  for (int64_t i = 0; i < tensor.getNumElements(); ++i)
    if (tensor.isReal())
      tensor.setReal(i, generator.real());
    else
      tensor.setInteger(
          i,
          randomInteger(cast<IntegerType>(tensor.getElementType()), generator));
  return tensor;
}

//===----------------------------------------------------------------------===//
// Both runs
//===----------------------------------------------------------------------===//

class Verifier {
public:
  explicit Verifier(const VerifyOptions &options) : options(options) {
    result.options = options;
  }

  FailureOr<Verification> verify(ModuleOp imported, ModuleOp planned);

private:
  LogicalResult prepare(ModuleOp imported, ModuleOp planned);
  RunOptions runOptions() const;
  void compareResults(const RunResult &whole);
  LogicalResult findFirst();
  bool differs(const Difference &difference) const {
    return difference.size > kTolerance;
  }

  const VerifyOptions &options;
  OwningOpRef<ModuleOp> wholeModule;
  shd::ProgramOp whole;
  spmd::ProgramOp device;
  RunSchedule schedule;
  Verification result;
};

template <typename Program> Program programOf(ModuleOp module) {
  return *module.getOps<Program>().begin();
}

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

LogicalResult Verifier::prepare(ModuleOp imported, ModuleOp planned) {
  wholeModule = imported.clone();
  result.module = planned.clone();
  whole = programOf<shd::ProgramOp>(*wholeModule);
  auto explicitPlan = programOf<shd::ProgramOp>(*result.module);
  result.fullMesh = shd::toMesh(explicitPlan.getMeshAttr());
  result.dims = dimsOf(whole);
  if (options.shrink) {
    Shrinking shrinking = chooseShrinking(explicitPlan);
    applyShrinking(explicitPlan, shrinking);
    applyShrinking(whole, shrinking);
    for (auto [dim, small] : llvm::zip_equal(result.dims, dimsOf(whole)))
      dim.extent = small.extent;
  }
  auto original = programOf<shd::ProgramOp>(planned);
  if (options.schedule)
    result.predictedPeak =
        profileMemory(explicitPlan, convertSchedule(*options.schedule, original,
                                                    explicitPlan))
            .peak;
  PassManager manager(imported.getContext());
  manager.addPass(createConvertShdToSpmd());
  manager.addNestedPass<spmd::ProgramOp>(spmd::createSpmdDecomposeMatmuls());
  if (failed(manager.run(*result.module)))
    return failure();
  device = programOf<spmd::ProgramOp>(*result.module);
  result.mesh = shd::toMesh(device.getMeshAttr());
  if (options.schedule)
    schedule = convertSchedule(*options.schedule, original, device);
  double devices = 1;
  for (const MeshAxis &axis : result.mesh.axes)
    devices *= double(axis.size);
  return failure(failed(checkRunSize(whole, /*devices=*/1)) ||
                 failed(checkRunSize(device, devices)));
}

RunOptions Verifier::runOptions() const {
  RunOptions run;
  run.positions = PositionPolicy::Wrap;
  run.roundToDeclared = options.roundToDeclared;
  run.declared = [this](const DeclaredTensor &tensor) {
    return randomTensor(tensor, options.seed);
  };
  return run;
}

void Verifier::compareResults(const RunResult &expected) {
  Devices devices(result.mesh);
  llvm::StringMap<unsigned> known;
  for (auto [wanted, found] :
       llvm::zip_equal(expected.finals, result.run.finals)) {
    Difference difference =
        compare(devices, found.global, *wanted.parts.front(), found.parts);
    auto [it, isNew] =
        known.try_emplace((found.isState ? "state " : "output ") + found.name,
                          result.results.size());
    if (isNew)
      result.results.push_back(
          {found.name, found.isState, 0, Difference(), false, wanted.loc});
    Verification::Result &entry = result.results[it->second];
    entry.elements += found.global.getNumElements();
    if (difference.size > entry.largest.size)
      entry.largest = std::move(difference);
    entry.differs = !options.roundToDeclared && differs(entry.largest);
    result.holds &= !entry.differs;
  }
}

/// Operations that the whole program has too, in program order.
SmallVector<Operation *> computingOperations(Operation *program) {
  SmallVector<Operation *> ops;
  program->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<shd::EvaluationOpInterface>(op))
      ops.push_back(op);
  });
  return ops;
}

/// Runs both again and compares every operation's result.
LogicalResult Verifier::findFirst() {
  SmallVector<Operation *> wanted = computingOperations(whole);
  SmallVector<Operation *> found = computingOperations(device);
  if (wanted.size() != found.size())
    return success();
  llvm::DenseMap<Operation *, Operation *> partner;
  for (auto [ofWhole, ofDevice] : llvm::zip_equal(wanted, found))
    partner[ofDevice] = ofWhole;

  std::map<std::pair<Operation *, std::vector<int64_t>>, TensorRef> expected;
  RunOptions run = runOptions();
  run.observe = [&](const RunValue &value) {
    expected[{value.op, value.iterations.vec()}] = value.parts.front();
  };
  if (failed(interpret(whole, run)))
    return failure();
  Devices devices(result.mesh);
  run.observe = [&](const RunValue &value) {
    auto global = value.op->getAttrOfType<TypeAttr>(spmd::kGlobal);
    auto it = expected.find({partner.lookup(value.op), value.iterations.vec()});
    if (result.first || !global || it == expected.end())
      return;
    Difference difference =
        compare(devices, cast<RankedTensorType>(global.getValue()), *it->second,
                value.parts);
    if (!differs(difference))
      return;
    auto name = value.op->getAttrOfType<StringAttr>(shd::kName);
    result.first = Verification::First{name ? name.str() : "",
                                       value.op->getLoc(), difference};
  };
  return failure(failed(interpret(device, run)));
}

FailureOr<Verification> Verifier::verify(ModuleOp imported, ModuleOp planned) {
  if (failed(prepare(imported, planned)))
    return failure();
  FailureOr<RunResult> expected = interpret(whole, runOptions());
  if (failed(expected))
    return failure();
  RunOptions run = runOptions();
  if (options.schedule)
    run.schedule = &schedule;
  FailureOr<RunResult> found = interpret(device, run);
  if (failed(found))
    return failure();
  result.run = std::move(*found);
  result.operations = int64_t(computingOperations(device).size());
  compareResults(*expected);
  for (int64_t peak : result.run.peak)
    result.holds &= peak == *result.predictedPeak;
  if (!result.holds && failed(findFirst()))
    return failure();
  return std::move(result);
}

} // namespace

FailureOr<Verification> shardc::verifyPlan(ModuleOp imported, ModuleOp planned,
                                           const VerifyOptions &options) {
  return Verifier(options).verify(imported, planned);
}
