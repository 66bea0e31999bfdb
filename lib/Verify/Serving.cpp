//===- Serving.cpp - Prefill, then decoding, by execution -----------------===//
//
// The devices prefill the prompts, a few sequences at a time. Their caches,
// which lie as prefill's plan says, become the first positions of decode's,
// which are cut as decode's plan says. The unsharded decode program takes all
// tokens one by one, so it knows neither prefill nor insertion.
//
//===----------------------------------------------------------------------===//

#include "shardc/Verify/Serving.h"
#include "Detail.h"
#include "shardc/Dialect/Shd/IR/Experts.h"
#include "shardc/Dialect/Shd/IR/Explicit.h"
#include "shardc/Dialect/Shd/IR/Order.h"
#include "shardc/Dialect/Shd/IR/Serving.h"
#include "shardc/Dialect/Shd/IR/WorkOrder.h"
#include "shardc/Pipelines/Compilation.h"
#include "shardc/Shrink/Shrink.h"
#include "shardc/Verify/RunSize.h"
#include "llvm/ADT/StringMap.h"
#include <map>

using namespace mlir;
using namespace shardc;

namespace {

using Names = SmallVector<StringRef>;
/// Where the element at a place along a dimension comes from.
using Place = llvm::function_ref<int64_t(unsigned dim, int64_t at)>;

/// Calls `visit` with the numbers of an element of `shape` and of the one where
/// it comes from in `from`.
void forEachElement(ArrayRef<int64_t> shape, const Tensor &from, Place place,
                    llvm::function_ref<void(int64_t, int64_t)> visit) {
  SmallVector<int64_t, 4> strides = from.getStrides();
  SmallVector<int64_t> at(shape.size());
  for (int64_t i = 0, end = numElements(shape); i < end; ++i) {
    int64_t rest = i, source = 0;
    for (unsigned dim = shape.size(); dim-- > 0; rest /= shape[dim])
      source += place(dim, rest % shape[dim]) * strides[dim];
    visit(i, source);
  }
}

void copyElement(const Tensor &from, int64_t source, Tensor &to, int64_t at) {
  if (to.isReal())
    to.setReal(at, from.getReal(source));
  else
    to.setInteger(at, from.getInteger(source));
}

/// A tensor of elements of another one.
Tensor select(const Tensor &from, ArrayRef<int64_t> shape, Place place) {
  Tensor result(from.getElementType(), shape);
  forEachElement(shape, from, place, [&](int64_t at, int64_t source) {
    copyElement(from, source, result, at);
  });
  return result;
}

/// The whole tensor of which devices have parts.
Tensor assemble(const Devices &devices, const RunResult::Final &final) {
  Layout layout = shd::explicitLayout(devices.mesh(), final.global);
  ArrayRef<int64_t> shape = final.global.getShape();
  Tensor whole(final.global);
  for (unsigned device = 0; device < devices.size(); ++device) {
    Box part = partOf(devices, shape, layout, device);
    copyBox(*final.parts[device], part, whole, wholeBox(shape), part);
  }
  return whole;
}

/// States by name, whole.
using Caches = std::map<std::string, Tensor>;

/// Which part of a stack of states an iteration wrote.
int64_t numberOf(const RunResult::Final &final, const Tensor &whole) {
  size_t stacked = whole.getRank() - final.global.getRank();
  int64_t number = 0;
  for (auto [iteration, extent] : llvm::zip_first(
           ArrayRef(final.iterations).take_front(stacked), whole.getShape()))
    number = number * extent + iteration;
  return number;
}

/// The part itself.
Tensor partOf(const RunResult::Final &final, const Tensor &whole) {
  size_t stacked = whole.getRank() - final.global.getRank();
  return partOfStack(whole, numberOf(final, whole),
                     RankedTensorType::get(whole.getShape().drop_front(stacked),
                                           whole.getElementType()));
}

/// Writes what a step made of a state.
void store(Caches &caches, const RunResult::Final &final, const Tensor &made) {
  Tensor &whole = caches.at(final.name);
  setPartOfStack(whole, numberOf(final, whole), made);
}

/// Both phases, small, and what they read.
class ServedRun {
public:
  ServedRun(ServedPhase prefill, ServedPhase decode,
            const VerifyOptions &options)
      : options(options), prefillWhole(prefill.imported.clone()),
        decodeWhole(decode.imported.clone()),
        prefillPlan(prefill.planned.clone()),
        decodePlan(decode.planned.clone()) {
    shd::moveInOrder(whole(*prefillWhole),
                     shd::workOrderOf(whole(*prefillPlan)));
    shd::moveInOrder(whole(*decodeWhole), shd::workOrderOf(whole(*decodePlan)));
  }

  FailureOr<ServedRuns> run();

private:
  shd::ProgramOp whole(ModuleOp module) const {
    return *module.getOps<shd::ProgramOp>().begin();
  }
  LogicalResult makeSmall();
  FailureOr<OwningOpRef<ModuleOp>> devicesOf(OwningOpRef<ModuleOp> plan,
                                             Verification &result);
  bool isSmallEnough();
  int64_t sequenceAt(int64_t first, int64_t row) const {
    return (first + row) % runs.sequences;
  }

  /// The first positions, of the sequences from `first` on.
  Tensor ofSequences(const Tensor &from, ArrayRef<int64_t> shape,
                     ArrayRef<StringRef> names, int64_t first) const {
    return select(from, shape, [&](unsigned dim, int64_t at) {
      return names[dim] == serving.batch ? sequenceAt(first, at) : at;
    });
  }
  /// Without those of a stack.
  ArrayRef<StringRef> indicesOfPart(const RunResult::Final &state) const {
    return ArrayRef(indices.find(state.name)->second)
        .take_back(state.global.getRank());
  }
  /// Sequences from `first` on at positions from `position` on.
  Tensor input(const DeclaredTensor &tensor, int64_t first,
               int64_t position) const;
  Tensor initial(StringRef name) const;
  RunOptions optionsOf(const Caches &caches, int64_t first, int64_t position);
  LogicalResult runTokenByToken();
  LogicalResult prefillAll();
  LogicalResult decodeAll();
  RunResult expectedPrefill(const RunResult &found, int64_t first) const;
  Tensor expectedOutput(const RunResult::Final &found, int64_t first) const;
  void insert(const RunResult &found, int64_t first);
  const RunResult::Final *find(int64_t position,
                               const RunResult::Final &like) const;

  const VerifyOptions &options;
  OwningOpRef<ModuleOp> prefillWhole, decodeWhole, prefillPlan, decodePlan;
  spmd::ProgramOp prefillDevices, decodeDevices;
  shd::Serving serving;
  ServedRuns runs;
  /// Indices of what decode declares, those of a stack first, and its type.
  llvm::StringMap<Names> indices;
  llvm::StringMap<DeclaredTensor> declared;
  /// Results of the unsharded program for each position, and the caches after
  /// the prompts.
  std::vector<RunResult> expected;
  Caches afterPrompts;
  /// Those of the devices.
  Caches caches;
};

} // namespace

LogicalResult ServedRun::makeSmall() {
  serving = *shd::Serving::of(whole(*decodeWhole));
  FailureOr<ServedExtents> extents =
      shrinkServed({whole(*prefillWhole), whole(*prefillPlan),
                    whole(*decodeWhole), whole(*decodePlan)},
                   options.shrink);
  if (failed(extents))
    return failure();
  static_cast<ServedExtents &>(runs) = *extents;
  return success();
}

FailureOr<OwningOpRef<ModuleOp>>
ServedRun::devicesOf(OwningOpRef<ModuleOp> plan, Verification &result) {
  Compilation compilation(std::move(plan), Compilation::Stage::Explicit);
  if (failed(compilation.convertToSpmd()))
    return failure();
  OwningOpRef<ModuleOp> module = compilation.takeModule();
  auto program = *module->getOps<spmd::ProgramOp>().begin();
  result.options = options;
  result.mesh = result.fullMesh = shd::toMesh(program.getMeshAttr());
  return std::move(module);
}

/// Each phase alone has been run before; this is about all their runs.
bool ServedRun::isSmallEnough() {
  ScopedDiagnosticHandler quiet(decodeDevices->getContext(),
                                [](Diagnostic &) { return success(); });
  for (auto [program, mesh, times] :
       std::initializer_list<std::tuple<Operation *, Mesh, int64_t>>{
           {whole(*decodeWhole), Mesh(), runs.prompt + runs.steps},
           {prefillDevices, runs.prefill.mesh, 1},
           {decodeDevices, runs.decode.mesh, runs.steps}}) {
    RunLimits limits;
    limits.steps /= double(times);
    if (failed(checkRunSize(program, double(mesh.numDevices()), limits)))
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Inputs of programs
//===----------------------------------------------------------------------===//

/// Random, one value for each sequence and position, whichever phase reads it.
Tensor ServedRun::input(const DeclaredTensor &tensor, int64_t first,
                        int64_t position) const {
  const Names &names = indices.find(tensor.name)->second;
  ArrayRef<int64_t> shape = tensor.type.getShape();
  if (tensor.name == serving.position) {
    Tensor result(tensor.type);
    auto length = shape[llvm::find(names, serving.sequence) - names.begin()];
    for (int64_t i = 0; i < result.getNumElements(); ++i)
      result.setInteger(i, position + i % length);
    return result;
  }
  SmallVector<int64_t> all(shape);
  for (auto [name, extent] : llvm::zip_equal(names, all))
    extent = name == serving.batch      ? runs.sequences
             : name == serving.sequence ? runs.prompt + runs.steps
                                        : extent;
  DeclaredTensor request = tensor;
  request.type = tensor.type.clone(all);
  Tensor requests = shardc::detail::randomTensor(request, options.seed);
  return select(requests, shape, [&](unsigned dim, int64_t at) {
    return names[dim] == serving.batch      ? sequenceAt(first, at)
           : names[dim] == serving.sequence ? position + at
                                            : at;
  });
}

/// A cache before anything is written: random, so that reading it shows.
Tensor ServedRun::initial(StringRef name) const {
  return shardc::detail::randomTensor(declared.find(name)->second,
                                      options.seed);
}

/// For a program with the sequences from `first` on, whose caches are the first
/// positions of `caches`.
RunOptions ServedRun::optionsOf(const Caches &caches, int64_t first,
                                int64_t position) {
  RunOptions run = shardc::detail::inputsOf(whole(*decodeWhole), options);
  auto weights = run.declared;
  run.declared = [this, weights, &caches, first,
                  position](const DeclaredTensor &tensor) {
    if (tensor.kind == shd::TensorKind::Input)
      return input(tensor, first, position);
    if (tensor.kind != shd::TensorKind::State)
      return weights(tensor);
    return ofSequences(caches.at(tensor.name.str()), tensor.type.getShape(),
                       indices.find(tensor.name)->second, first);
  };
  return run;
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

LogicalResult ServedRun::runTokenByToken() {
  Caches known = caches;
  for (int64_t position = 0; position < runs.prompt + runs.steps; ++position) {
    FailureOr<RunResult> made =
        interpret(whole(*decodeWhole), optionsOf(known, 0, position));
    if (failed(made))
      return failure();
    for (const RunResult::Final &final : made->finals)
      if (final.isState())
        store(known, final, *final.parts.front());
    expected.push_back(std::move(*made));
    if (position + 1 == runs.prompt)
      afterPrompts = known;
  }
  return success();
}

/// The unsharded program's value of the same output at a position.
const RunResult::Final *ServedRun::find(int64_t position,
                                        const RunResult::Final &like) const {
  for (const RunResult::Final &final : expected[position].finals)
    if (final.name == like.name && final.kind == like.kind &&
        final.iterations == like.iterations)
      return &final;
  return nullptr;
}

/// For an output without the sequence's index, that of the last position: the
/// number T - 1 stays what it is in a small program, and wraps.
Tensor ServedRun::expectedOutput(const RunResult::Final &found,
                                 int64_t first) const {
  Names names(cast<spmd::OutputOp>(found.op)
                  .getIndices()
                  .getAsValueRange<StringAttr>());
  size_t along = llvm::find(names, serving.sequence) - names.begin();
  Tensor result(found.global);
  Box all = wholeBox(result.getShape());
  for (int64_t position = 0; position < runs.prompt; ++position) {
    const RunResult::Final *made = find(position, found);
    bool isLast = position == (serving.prompt - 1) % runs.prompt;
    if (!made || (along == names.size() && !isLast))
      continue;
    Box here = all;
    if (along != names.size())
      here[along] = {position, 1, runs.prompt};
    auto sizes = llvm::map_to_vector(
        here, [](const FactorRange &range) { return range.size; });
    Tensor part = ofSequences(*made->parts.front(), sizes, names, first);
    copyBox(part, here, result, all, here);
  }
  return result;
}

/// The results that one prefill should leave.
RunResult ServedRun::expectedPrefill(const RunResult &found,
                                     int64_t first) const {
  RunResult result;
  for (const RunResult::Final &final : found.finals) {
    RunResult::Final wanted = final;
    Tensor expected =
        final.isState()
            ? ofSequences(partOf(final, afterPrompts.at(final.name)),
                          final.global.getShape(), indicesOfPart(final), first)
            : expectedOutput(final, first);
    wanted.parts = {std::make_shared<const Tensor>(std::move(expected))};
    result.finals.push_back(std::move(wanted));
  }
  return result;
}

/// The caches of prefill become the first positions of decode's.
void ServedRun::insert(const RunResult &found, int64_t first) {
  Devices devices(runs.prefill.mesh);
  for (const RunResult::Final &final : found.finals) {
    if (!final.isState())
      continue;
    ArrayRef<StringRef> names = indicesOfPart(final);
    Operation *state = cast<spmd::UpdateOp>(final.op).getParameter();
    Tensor made = shd::inProgramOrder(
        assemble(devices, final),
        shd::positionOrders(state, names, final.global.getShape()));
    Tensor part = partOf(final, caches.at(final.name));
    forEachElement(
        made.getShape(), part,
        [&](unsigned dim, int64_t at) {
          return names[dim] == serving.batch ? sequenceAt(first, at) : at;
        },
        [&](int64_t from, int64_t to) { copyElement(made, from, part, to); });
    store(caches, final, part);
  }
}

LogicalResult ServedRun::prefillAll() {
  const Caches before = caches;
  for (int64_t first = 0; first < runs.sequences; first += runs.promptBatch) {
    FailureOr<RunResult> found =
        interpret(prefillDevices, optionsOf(before, first, /*position=*/0));
    if (failed(found))
      return failure();
    RunResult wanted = expectedPrefill(*found, first);
    runs.prefill.run = std::move(*found);
    if (failed(shardc::detail::compareResults(wanted, runs.prefill)))
      return failure();
    insert(runs.prefill.run, first);
  }
  return success();
}

LogicalResult ServedRun::decodeAll() {
  Devices devices(runs.decode.mesh);
  for (int64_t step = 0; step < runs.steps; ++step) {
    int64_t position = runs.prompt + step;
    FailureOr<RunResult> found =
        interpret(decodeDevices, optionsOf(caches, /*first=*/0, position));
    if (failed(found))
      return failure();
    runs.decode.run = std::move(*found);
    if (failed(shardc::detail::compareResults(expected[position], runs.decode)))
      return failure();
    for (const RunResult::Final &final : runs.decode.run.finals)
      if (final.isState())
        store(caches, final, assemble(devices, final));
  }
  return success();
}

FailureOr<ServedRuns> ServedRun::run() {
  if (shd::dropsPicks(whole(*decodeWhole))) {
    runs.notRun = {
        "experts without `dropless` may drop other picks of a prompt",
        "than of its tokens one by one"};
    return std::move(runs);
  }
  if (failed(makeSmall()))
    return failure();
  for (auto declare : whole(*decodeWhole).getBody().getOps<shd::DeclareOp>()) {
    StringRef name = declare.getSym();
    indices[name] = Names(declare.getIndices().getAsValueRange<StringAttr>());
    DeclaredTensor tensor{name, declare.getKind(),
                          unsigned(declare.getStacked()), declare.getType()};
    declared.try_emplace(name, tensor);
    if (tensor.kind == shd::TensorKind::State)
      caches[name.str()] = initial(name);
  }
  auto prefillModule = devicesOf(std::move(prefillPlan), runs.prefill);
  auto decodeModule = devicesOf(std::move(decodePlan), runs.decode);
  if (failed(prefillModule) || failed(decodeModule))
    return failure();
  prefillDevices = *(*prefillModule)->getOps<spmd::ProgramOp>().begin();
  decodeDevices = *(*decodeModule)->getOps<spmd::ProgramOp>().begin();
  if (!isSmallEnough()) {
    runs.notRun = {"even with small dimensions the " +
                       std::to_string(runs.prompt + runs.steps) +
                       " positions of a sequence",
                   "take too long one by one"};
    return std::move(runs);
  }
  if (failed(runTokenByToken()) || failed(prefillAll()) || failed(decodeAll()))
    return failure();
  // Collectives are named by operations of these modules.
  runs.prefill.module = std::move(*prefillModule);
  runs.decode.module = std::move(*decodeModule);
  return std::move(runs);
}

FailureOr<ServedRuns> shardc::verifyServing(ServedPhase prefill,
                                            ServedPhase decode,
                                            const VerifyOptions &options) {
  return ServedRun(prefill, decode, options).run();
}
