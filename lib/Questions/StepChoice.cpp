//===- StepChoice.cpp - Microbatches and recomputation --------------------===//
//
// A form of a step is a number of microbatches and a level of recomputation, of
// a pipeline of inference the number alone.
// Level 0 keeps every value that the backward pass reads; each further level
// also recomputes the value that frees the most bytes for each second of its
// recomputation, until what iterations carry is kept and nothing else. Levels
// of `every(k)` follow where they keep still less.
//
// The form that is planned next is the one with the least estimated time of
// those that are expected to fit, first of those that leave room. Memory of a
// plan that does not fit says which level or number of microbatches frees
// enough, and between a level that fits and one that does not the search
// halves. Where the form that keeps everything takes half of the memory or
// less, no other is planned; nor are forms with more recomputation and
// microbatches than one in which compute waits for next to nothing. No form is
// faster than its matrix work at peak on all devices, nor than its groups on
// one device of unlimited memory, divided by the devices: they work at no
// higher rate on parts of the data, and move no fewer bytes in all. None needs
// less memory than its declared tensors split over all devices. What these
// bounds exclude is never planned.
//
//===----------------------------------------------------------------------===//

#include "shardc/Questions/StepChoice.h"
#include "StepWork.h"
#include "shardc/Dialect/Shd/IR/Gradient.h"
#include "shardc/Dialect/Shd/IR/Host.h"
#include "shardc/Dialect/Shd/IR/Pipeline.h"
#include "shardc/Pipelines/Compilation.h"
#include "shardc/Questions/Evaluator.h"
#include "shardc/Questions/PlanFigures.h"
#include "shardc/Questions/ProgramSource.h"
#include "shardc/Report/Report.h"
#include "shardc/Report/Seconds.h"
#include "shardc/Solver/Deadline.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include <cmath>
#include <map>
#include <numeric>
#include <set>

using namespace mlir;
using namespace shardc;

/// Plans in all; of large programs, work in all, where a plan takes as much as
/// the step has operations, times ten for each axis of several devices.
static constexpr size_t kMostPlans = 12;
static constexpr double kPlanWork = 3.2e4;
/// Rounds that may fail to find a faster form before the search ends.
static constexpr unsigned kPatience = 3;
/// Plans where the first form that fits will do.
static constexpr size_t kQuickPlans = 3;
/// Forms that are planned side by side once one fits: each of another number of
/// microbatches, whatever the threads.
static constexpr size_t kRound = 2;
/// Forms that are planned, whatever the work, while none fits.
static constexpr size_t kLeastPlans = 5;
/// Programs of so much work a plan are large: they stop at a small gap.
static constexpr double kLargeWork = 5e3;
static constexpr double kSmallGap = 0.1;
/// Plans of programs with so many operations take seconds: forms that promise
/// less than this part of the step are left.
static constexpr double kManyOperations = 150, kTinyGap = 0.01;
/// Where the first form fits, others are planned that may be faster by more
/// than this part.
static constexpr double kWorthForms = 0.03;
/// Forms are tried first whose declared tensors take at most this part of the
/// memory: what else is live takes as much again, and what is left lets
/// collectives be issued early. Where steps are compared by plans of little
/// effort, those that take more than the second part are tried only while none
/// fits.
static constexpr double kComfortablePart = 0.6, kTightPart = 0.8;
/// A form that takes more than the first part must be estimated so many times
/// faster.
static constexpr double kTightCost = 1.3;
/// Once the work is spent, forms are still planned that the best plan says fit
/// in this part of the memory, if their estimate is so many times shorter.
static constexpr double kRoomPart = 0.95, kWorthPlan = 1.05;
/// Part of what no layer has that is counted for each stage of a pipeline: the
/// first has the embedding, the last what makes the logits. Stages may have
/// unequal layers: forms may be estimated to take so many times the memory.
static constexpr double kShareOfEnd = 0.5, kSlackOfStages = 1.3;
/// Recomputation that takes so little of a step is tried first.
static constexpr double kCheapRecomputation = 0.05;
/// Estimated slowdown of twice as many microbatches at most, where moving
/// weights and gradients takes as long as the step's work, and of each halving
/// of the devices of the longest axis that a microbatch can be split over.
static constexpr double kMicrobatchCost = 0.2, kSmallBatchCost = 0.5;
/// Gathers of all weights that a microbatch costs: forwards, backwards, and
/// gradients of twice the bytes.
static constexpr double kGathersOfMicrobatch = 4;
/// Where steps are compared so, estimates above this part of the best time are
/// believed.
static constexpr double kSurelySlower = 1.15;
/// The first of them at least; in a pipeline, which has many microbatches
/// anyway, and where the work hides what they move.
static constexpr double kLeastMicrobatchCost = 0.02;
/// The only axis beside stages can be one of tensor parallelism, which needs no
/// part of the batch, up to so many devices.
static constexpr int64_t kTensorAxis = 8;
/// Values whose recomputation is decided one by one.
static constexpr size_t kMostLevels = 64;
/// Segments with lengths from half to twice the square root of the iterations
/// are tried.
static constexpr int64_t kAroundRoot = 2;
/// Forms that are shown.
static constexpr size_t kShown = 8;
/// A form has this part of a time limit: two or three are planned. Until one
/// fits it has so many seconds at least, in which a search finds a plan.
static constexpr double kPartOfForm = 1.0 / 3, kLeastSeconds = 0.25;

static bool isNumberOpen(shd::ProgramOp program) {
  bool hasMicrobatches =
      program.getTraining() || shd::isInferencePipeline(program);
  return hasMicrobatches && shd::writtenMicrobatches(program) == 0;
}

static bool isRematOpen(shd::ProgramOp program) {
  std::optional<shd::TrainingAttr> training = program.getTraining();
  return training && training->getRemat() == shd::Remat::Auto &&
         !training->getSave();
}

static bool isOffloadOpen(shd::ProgramOp program) {
  std::optional<shd::TrainingAttr> training = program.getTraining();
  return training && training->getOffload() == shd::Offload::Auto;
}

/// True if updates may be fused into the backward pass of the step in one
/// microbatch, but are not (docs/Training.md#update). Whoever says how
/// gradients are stored wants them stored.
static bool mayFuseUpdates(shd::ProgramOp program) {
  std::optional<shd::TrainingAttr> training = program.getTraining();
  return training && !training->getFused() && !training->getClip() &&
         !program.getPipeline() && training->getMicrobatches() <= 1 &&
         training->getEvery() == 0 && !training->getGradientPins() &&
         training->getOffload() == shd::Offload::None &&
         !training->getOffloaded();
}

bool shardc::isStepOpen(shd::ProgramOp program) {
  return isNumberOpen(program) || isRematOpen(program) ||
         isOffloadOpen(program);
}

namespace {

/// A value that the backward pass reads, kept from the forward pass.
struct KeptValue {
  double bytes = 0;
  bool isLeader = false;
};

/// What the next level recomputes.
struct LevelStep {
  std::vector<std::string> names;
  double freed = 0, seconds = 0;
  bool isLeader = false;
};

/// A form of the step before any sharding.
struct StepFacts {
  std::string error;
  /// Matrix work at peak on all devices, in seconds: all, and without what is
  /// recomputed.
  double work = 0, modelWork = 0;
  /// Declared bytes per device, if split over all of them where no layout is
  /// written: those of saved values, and the others. With stages an estimate,
  /// else no plan needs less.
  double saved = 0, others = 0;
  /// Saved values are on the host.
  bool movesSaved = false;
  /// A loss reads weights for each chunk, unless a collective stands before it.
  bool runsInChunks = false;
  /// Seconds in which all weights are gathered, without stages.
  double gather = 0;
  double operations = 1, devices = 1;
  /// Runs of all operations in a step.
  double kernels = 0;
  /// Stages of a pipeline.
  int64_t stages = 1;
  Mesh mesh;
  unsigned wideAxes = 0;
  /// The most devices along one axis without stages.
  int64_t longestAxis = 1;
  int64_t batch = 0, capacity = 0;
  /// The most iterations of a repeat of the program.
  int64_t iterations = 1;
  std::vector<LevelStep> steps;
};

/// Orders the kept values of a step that keeps all of them.
class LevelFinder {
public:
  LevelFinder(shd::ProgramOp program, const Machine &machine);
  std::vector<LevelStep> run();

private:
  double secondsOf(Operation *op) const;
  void close(Value value, llvm::SetVector<Operation *> &again) const;

  const Machine &machine;
  /// Of a pipeline; a device has one.
  int64_t stages;
  llvm::DenseMap<Value, std::string> names;
  llvm::MapVector<Value, KeptValue> kept;
  llvm::DenseSet<Operation *> recomputed;
};

LevelFinder::LevelFinder(shd::ProgramOp program, const Machine &machine)
    : machine(machine), stages(shd::numStages(program).value_or(1)) {
  for (auto &[op, value, name] : shd::recomputableValues(program))
    if (value)
      names[value] = name;
  program->walk([&](shd::UpdateOp update) {
    Value value = update.getValue();
    if (update.getDeclaration().getKind() != shd::TensorKind::Saved ||
        !names.contains(value))
      return;
    auto cost = cast<shd::CostOpInterface>(value.getDefiningOp());
    Value saved = update.getDeclaration().getResult();
    kept[value] = {bytesOf(saved) * double(shd::inFlight(saved) * stages),
                   cost.getFusionKind() == shd::FusionKind::Leader};
  });
}

double LevelFinder::secondsOf(Operation *op) const {
  OpWork work = wholeWork(cast<shd::CostOpInterface>(op), machine);
  double bytes = 0;
  for (Value value : op->getResults())
    bytes += bytesOf(value);
  for (Value value : op->getOperands())
    bytes += bytesOf(value);
  double seconds = bytes / machine.hbmBandwidth;
  if (std::optional<double> peak = machine.peak(work.computeType);
      peak && work.matrixFlops > 0)
    seconds = std::max(seconds, work.matrixFlops / *peak);
  return seconds * shd::runsOfAllStages(op);
}

/// The operations that run again to recompute a value: its own, and those of
/// operands that are neither kept nor recomputed already.
void LevelFinder::close(Value value,
                        llvm::SetVector<Operation *> &again) const {
  Operation *op = value.getDefiningOp();
  if (recomputed.contains(op) || !again.insert(op))
    return;
  for (Value operand : op->getOperands())
    if (names.contains(operand) && !kept.contains(operand))
      close(operand, again);
}

std::vector<LevelStep> LevelFinder::run() {
  std::vector<LevelStep> steps;
  while (!kept.empty() && steps.size() < kMostLevels) {
    Value best;
    double bestRate = -1;
    llvm::SetVector<Operation *> bestAgain;
    LevelStep step;
    for (const auto &[value, what] : kept) {
      llvm::SetVector<Operation *> again;
      close(value, again);
      double seconds = 0;
      for (Operation *op : again)
        seconds += secondsOf(op);
      double rate = what.bytes / std::max(seconds, 1e-12);
      if (rate <= bestRate)
        continue;
      best = value;
      bestRate = rate;
      bestAgain = again;
      step = {{}, what.bytes, seconds, what.isLeader};
    }
    kept.erase(best);
    step.names.push_back(names[best]);
    for (Operation *op : bestAgain) {
      recomputed.insert(op);
      for (Value result : op->getResults())
        if (result != best && !kept.contains(result) && names.contains(result))
          step.names.push_back(names[result]);
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

/// The repeats that are not in others, that over microbatches aside.
SmallVector<shd::RepeatOp> repeatsOfProgram(shd::ProgramOp program) {
  SmallVector<shd::RepeatOp> repeats;
  program->walk<WalkOrder::PreOrder>([&](shd::RepeatOp repeat) {
    if (repeat.getIndex() == "microbatch")
      return WalkResult::advance();
    repeats.push_back(repeat);
    return WalkResult::skip();
  });
  return repeats;
}

/// Plans forms in full as any evaluator, and looks at them without that.
/// Bounds that are proven of the plans of a form.
struct FormBound {
  /// Seconds that none takes less than; 0 while unknown.
  double seconds = 0;
  /// Seconds that updates may save where they are fused into the kernels that
  /// make their gradients: at most their own, and writing what they read.
  double saved = 0;
  /// The program has no such form.
  bool isRefused = false;
};

class StepPlanner : public Evaluator {
public:
  using Evaluator::Evaluator;
  StepFacts look(ArrayRef<Setting> settings, const StepForm &form,
                 bool findsLevels);
  /// Bounds the plans of a form in up to so many microbatches.
  FormBound bound(ArrayRef<Setting> settings, const StepForm &form,
                  double microbatches, solver::Deadline deadline);

private:
  std::optional<Compilation> importForm(ArrayRef<Setting> settings,
                                        const StepForm &form);
};

/// Seconds in which all devices gather all weights.
static double gatherSeconds(const Program &source, shd::ProgramOp program) {
  SmallVector<AxisIndex, 4> axes;
  for (auto [i, axis] : llvm::enumerate(source.mesh.axes))
    if (axis.size > 1)
      axes.push_back(AxisIndex(i));
  double bytes = 0;
  for (auto declare : program.getBody().getOps<shd::DeclareOp>())
    if (declare.getKind() == shd::TensorKind::Weight)
      bytes += bytesOf(declare.getResult());
  if (axes.empty() || bytes == 0)
    return 0;
  CollectiveModel model(*source.machine, source.mesh, source.binding);
  return model.cost(CollectiveKind::AllGather, axes, bytes).seconds();
}

/// The program of a form, to be looked at; nothing if it has none.
std::optional<Compilation> StepPlanner::importForm(ArrayRef<Setting> settings,
                                                   const StepForm &form) {
  Point point(settings.begin(), settings.end());
  point.push_back(stepSetting(form));
  std::optional<Program> program = importStep(text, &context, point);
  if (!program)
    return std::nullopt;
  CompileOptions unverified;
  unverified.verifyPasses = false;
  return Compilation(std::move(*program), std::move(unverified));
}

/// Bytes of a tensor on each of so many devices, at least: those of its layout,
/// if that is written.
static double leastLocalBytes(const Mesh &mesh, Value value, double devices) {
  shd::ShardingAttr pin = shd::getResultPin(value);
  if (!pin || pin.isOpen())
    return bytesOf(value) / devices;
  return shd::tensorShape(value.getType())
      .localBytes(mesh, shd::toLayout(mesh, pin));
}

StepFacts StepPlanner::look(ArrayRef<Setting> settings, const StepForm &form,
                            bool findsLevels) {
  StepFacts facts;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error &&
        facts.error.empty())
      facts.error = diagnostic.str();
  });
  std::optional<Compilation> compilation = importForm(settings, form);
  if (!compilation || !facts.error.empty())
    return facts;
  shd::ProgramOp op = compilation->program();
  const Program &source = compilation->source();
  facts.mesh = source.mesh;
  double devices = facts.devices = double(source.mesh.numDevices());
  for (const MeshAxis &axis : source.mesh.axes) {
    if (axis.isStages)
      continue; // no tensor lies on it
    facts.wideAxes += axis.size > 1;
    facts.longestAxis = std::max(facts.longestAxis, axis.size);
  }
  facts.batch = shd::batchExtent(op);
  facts.stages = shd::numStages(op).value_or(1);
  for (shd::RepeatOp repeat : repeatsOfProgram(op))
    facts.iterations = std::max(facts.iterations, int64_t(repeat.getCount()));
  double ofStage = devices / double(facts.stages);
  for (auto declare : op.getBody().getOps<shd::DeclareOp>()) {
    if (declare.getKind() == shd::TensorKind::Input)
      continue;
    bool isSaved = declare.getKind() == shd::TensorKind::Saved;
    bool isOnHost = shd::isOnHost(declare.getResult());
    facts.movesSaved |= isSaved && isOnHost;
    if (isOnHost)
      continue;
    double bytes = leastLocalBytes(source.mesh, declare.getResult(), ofStage) *
                   double(shd::inFlight(declare.getResult()));
    if (auto pipeline = op.getPipeline();
        pipeline && !shd::isStackedOverLayers(declare, *pipeline))
      bytes *= kShareOfEnd;
    (isSaved ? facts.saved : facts.others) += bytes;
  }
  if (!source.machine)
    return facts;
  const Machine &machine = *source.machine;
  facts.capacity = machine.usableMemory();
  facts.gather = gatherSeconds(source, op);
  facts.kernels = shd::kernelsOf(op);
  op->walk([&](shd::CostOpInterface each) {
    ++facts.operations;
    facts.runsInChunks |= each.getRowChunks() > 1;
    double seconds = leastSeconds(each, machine, devices);
    if (seconds == 0)
      return;
    facts.work += seconds;
    if (shd::getPhase(each) != shd::Phase::Recompute)
      facts.modelWork += seconds;
  });
  if (findsLevels)
    facts.steps = LevelFinder(op, machine).run();
  return facts;
}

/// Seconds of all runs of an operation as a kernel of its own on one device; no
/// limit of one that works on the host.
static double secondsAlone(shd::CostOpInterface op, const Machine &machine) {
  if (llvm::any_of(op->getOperands(),
                   [](Value operand) { return shd::isOnHost(operand); }))
    return std::numeric_limits<double>::infinity();
  OpWork work = wholeWork(op, machine);
  GroupCost cost;
  addWork(machine, work, cost);
  addTraffic(
      machine,
      std::accumulate(work.operandBytes.begin(), work.operandBytes.end(), 0.0) +
          std::accumulate(work.resultBytes.begin(), work.resultBytes.end(),
                          0.0),
      cost);
  calibrate(machine, /*kernels=*/1, cost);
  return cost.deviceSeconds() * double(shd::executionCount(op));
}

FormBound StepPlanner::bound(ArrayRef<Setting> settings, const StepForm &form,
                             double microbatches, solver::Deadline deadline) {
  FormBound result;
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) {});
  std::optional<Compilation> compilation = importForm(settings, form);
  result.isRefused = !compilation || failed(compilation->prepareNetwork());
  if (result.isRefused)
    return result;
  shd::ProgramOp op = compilation->program();
  const Machine &machine = *compilation->source().machine;
  shd::NetworkSearchOptions search;
  search.deadline = deadline;
  result.seconds = shd::boundByWork(op, search, microbatches).value_or(0);
  double updates = 0;
  op->walk([&](shd::CostOpInterface each) {
    if (shd::getPhase(each) == shd::Phase::Update)
      updates += secondsAlone(each, machine);
  });
  result.saved = 2 * updates / double(compilation->source().mesh.numDevices());
  return result;
}

/// One form of the step, and what is known of it.
struct Form {
  size_t number = 0; // of microbatches, its index
  size_t level = 0;
  std::optional<PlanFigures> plan;
  std::optional<Report> report;
  std::shared_ptr<const std::string> module;
  std::vector<solver::Label> labels;
  /// Bytes of its saved values on a device, and of its activations at the peak.
  double saved = 0, activations = 0;
  /// Seconds in which the busiest network gathers weights and reduces their
  /// gradients, in all microbatches together; seconds that compute waits.
  double ofWeights = 0, exposed = 0;
  /// By its matrix work; by declared bytes.
  bool isSlower = false, isTooLarge = false, isImpossible = false;
  /// It is planned in this round.
  bool isChosen = false;
};

/// A level of recomputation.
struct Level {
  StepForm form;
  std::string label;
  /// Estimates for one device: of all recomputation, and of what is kept.
  double seconds = 0, bytes = 0;
  /// The results of products, attention and the like are kept, and no others.
  bool isSelective = false;
  bool isFull = false;
  /// Seconds that no plan takes less than; nothing while unknown.
  std::optional<double> bound;
};

class StepSearch {
public:
  /// With `isFused`, weights are updated right after their gradients, in one
  /// microbatch.
  StepSearch(const ProgramText &text, ArrayRef<Setting> settings,
             const MeshChoiceOptions &options, bool isFused = false)
      : settings(settings), options(options), isFused(isFused),
        runner(
            [this, &text] {
              auto planner = std::make_unique<StepPlanner>(
                  text, this->options.plan, this->options.file);
              planner->stopAt(this->options.interrupted);
              return planner;
            },
            {options.jobs, options.showProgress, options.plan.timeLimitSeconds,
             options.interrupted}) {}

  std::optional<StepChoice> run(shd::ProgramOp program);

private:
  StepFacts look(const StepForm &form, bool findsLevels);
  StepForm formOf(size_t number, size_t level) const;
  StepForm formOf(const Form &form) const {
    return formOf(form.number, form.level);
  }
  void listLevels();
  std::vector<int64_t> segmentLengths() const;
  void listSegments();
  void listNumbers();
  Form &at(size_t number, size_t level);
  double slowdown(size_t number) const;
  double estimate(size_t number, size_t level) const;
  double keptBytes(size_t number, size_t level) const;
  bool isExpectedToFit(size_t number, size_t level, double part) const;
  std::optional<size_t> propose(size_t number, double part) const;
  bool isOfNoUse(size_t number, size_t level) const;
  Form *tighterThan(const Form &form);
  bool needsNoMemory() const;
  size_t fullLevel() const;
  bool isDone() const;
  bool isSpent() const { return work < workOfPlan; }
  bool isSlower(double estimate, size_t number) const;
  bool isChosen(size_t number) const;
  std::optional<std::pair<size_t, size_t>> nextWithin(double part) const;
  std::optional<std::pair<size_t, size_t>> nextInRoom() const;
  std::optional<std::pair<size_t, size_t>> next() const;
  std::optional<std::pair<size_t, size_t>> nextOfLeast() const;
  void recall();
  std::vector<Form *> nextRound();
  Variant variantOf(const Form &form) const;
  double secondsOfForm(double all) const;
  void planRound(ArrayRef<Form *> round);
  void take(Form &form, Outcome outcome);
  bool exclude(Form &form);
  bool hasForms() const { return numbers.size() * levels.size() > 1; }
  bool boundsLevels() const;
  void boundLevels(ArrayRef<size_t> wanted);
  double boundOfForms();
  /// Of any form: by the model's products, in up to so many microbatches.
  double boundOfModel() const {
    return shd::shareOfDevices(base.modelWork, /*devices=*/1,
                               base.kernels * double(numbers.back()));
  }
  Report::StepSearch summary(const Form &chosen);

  ArrayRef<Setting> settings;
  const MeshChoiceOptions &options;
  bool isFused;
  TrialRunner runner;
  bool isTraining = false, isNumberOpen = false, isRematOpen = false;
  bool isOffloadOpen = false;
  /// Updates may be fused, but are not in the forms of this search.
  bool mayFuse = false;
  StepFacts base;
  /// Seconds that no plan takes less than.
  std::optional<double> leastOfForms;
  std::vector<Level> levels;
  std::vector<int64_t> numbers;
  /// By the indices of microbatches and level.
  std::map<std::pair<size_t, size_t>, Form> forms;
  Form *best = nullptr;
  size_t plans = 0;
  /// Rounds in a row in which forms fit and none was faster than the best.
  unsigned idle = 0;
  double work = kPlanWork, workOfPlan = 0;
  int64_t allowed = 0;
  std::string note;
};

StepFacts StepSearch::look(const StepForm &form, bool findsLevels) {
  StepFacts facts;
  runner.run(1, [&](TrialPlanner &planner, size_t) {
    facts =
        static_cast<StepPlanner &>(planner).look(settings, form, findsLevels);
  });
  return facts;
}

StepForm StepSearch::formOf(size_t number, size_t level) const {
  StepForm result = levels[level].form;
  result.isFused = isFused;
  if (isNumberOpen)
    result.microbatches = numbers[number];
  return result;
}

void StepSearch::listLevels() {
  Level level;
  level.bytes = base.saved;
  if (!isRematOpen) {
    level.label = isTraining ? "as written" : "";
    levels.push_back(std::move(level));
    return;
  }
  level.form.remat = "none";
  level.label = "none";
  levels.push_back(level);
  // Iterations may keep nothing but what they begin with.
  if (base.steps.empty())
    return listSegments();
  std::vector<std::string> names;
  size_t leaders = 0;
  for (auto [i, step] : llvm::enumerate(base.steps)) {
    llvm::append_range(names, step.names);
    level.form.recomputed = names;
    leaders += step.isLeader;
    // Carried values are always kept.
    level.bytes -= step.freed / base.devices;
    level.seconds += step.seconds / base.devices;
    bool onlyLeadersFollow =
        llvm::all_of(llvm::drop_begin(base.steps, i + 1),
                     [](const LevelStep &next) { return next.isLeader; });
    level.label = recomputeLabel(names);
    level.isSelective = leaders == 0 && onlyLeadersFollow;
    if (level.isSelective)
      level.label = "selective (" + level.label + ")";
    levels.push_back(level);
  }
  levels.back().label = "full";
  levels.back().isFull = true;
  levels.back().form.remat = "full";
  levels.back().form.recomputed.clear();
  listSegments();
}

/// Powers of two around the square root of the iterations, and their largest
/// divisor up to it.
std::vector<int64_t> StepSearch::segmentLengths() const {
  double root = std::sqrt(double(base.iterations));
  std::set<int64_t> lengths;
  for (int64_t length = 2; double(length) <= kAroundRoot * root; length *= 2)
    if (double(length * kAroundRoot) >= root)
      lengths.insert(length);
  for (auto length = int64_t(root); length > 1; --length)
    if (base.iterations % length == 0) {
      lengths.insert(length);
      break;
    }
  return {lengths.begin(), lengths.end()};
}

/// Segments that keep less than the values that each iteration begins with, the
/// most bytes first.
void StepSearch::listSegments() {
  if (base.stages > 1 || base.iterations < 4 || isFused)
    return;
  const Level full = levels.back();
  std::vector<Level> segments;
  for (int64_t length : segmentLengths()) {
    Level level;
    level.form = full.form;
    level.form.remat = level.label = "every(" + std::to_string(length) + ")";
    if (isNumberOpen)
      level.form.microbatches = 1;
    StepFacts facts = look(level.form, /*findsLevels=*/false);
    level.form.microbatches = std::nullopt;
    level.bytes = facts.saved;
    level.seconds = std::max(full.seconds, facts.work - facts.modelWork);
    if (facts.error.empty() && level.bytes < full.bytes)
      segments.push_back(std::move(level));
  }
  llvm::stable_sort(segments, [](const Level &a, const Level &b) {
    return a.bytes > b.bytes;
  });
  llvm::append_range(levels, segments);
}

void StepSearch::listNumbers() {
  numbers.push_back(1);
  if (isNumberOpen && base.batch > 1 && !isFused)
    numbers = microbatchNumbers(base.batch);
  if (numbers.size() == 1)
    return;
  StepForm form = levels.front().form;
  form.microbatches = numbers[1];
  StepFacts facts = look(form, /*findsLevels=*/false);
  if (facts.error.empty())
    return;
  note = "1 microbatch, since more are not possible: " + facts.error;
  numbers.resize(1);
}

Form &StepSearch::at(size_t number, size_t level) {
  Form &form = forms[{number, level}];
  form.number = number;
  form.level = level;
  return form;
}

/// How much longer a step with a number of microbatches is than its work.
double StepSearch::slowdown(size_t number) const {
  double count = double(numbers[number]);
  double bubble = double(base.stages - 1) / count;
  int64_t ofMicrobatch = base.batch / numbers[number];
  bool isTensor =
      base.stages > 1 && base.wideAxes == 1 && base.longestAxis <= kTensorAxis;
  int64_t ofBatch = isTensor ? 1 : base.longestAxis;
  double halvings =
      std::log2(double(ofBatch) / double(std::gcd(ofBatch, ofMicrobatch)));
  // Half of the time hides well, all of it does not.
  double moved = count * kGathersOfMicrobatch * base.gather;
  double share = base.stages > 1 || base.modelWork == 0
                     ? 0
                     : std::min(1.0, moved / base.modelWork);
  double cost = std::max(kLeastMicrobatchCost, kMicrobatchCost * share * share);
  return 1 + cost * std::log2(count) + bubble + kSmallBatchCost * halvings;
}

double StepSearch::estimate(size_t number, size_t level) const {
  return (base.modelWork + levels[level].seconds) * slowdown(number);
}

/// Bytes that a device keeps: each microbatch's part, as often as there are
/// microbatches in flight.
double StepSearch::keptBytes(size_t number, size_t level) const {
  double count = double(numbers[number]);
  return levels[level].bytes / count * std::min(count, double(base.stages));
}

/// As far as the plans so far say, and the declared tensors, which may take
/// this part of the memory.
bool StepSearch::isExpectedToFit(size_t number, size_t level,
                                 double part) const {
  double kept = keptBytes(number, level);
  double slack = base.stages > 1 && part == 1 ? kSlackOfStages : 1;
  if (base.others + kept > slack * part * double(allowed))
    return false;
  for (const auto &[key, form] : forms) {
    if (!form.plan || form.plan->fits || key.first > number ||
        key.second > level)
      continue;
    double before = keptBytes(form.number, form.level);
    double freed = before > 0 ? form.saved * (1 - kept / before) : 0;
    freed += form.activations *
             (1 - double(numbers[form.number]) / double(numbers[number]));
    if (double(form.plan->peak) - freed > double(allowed) ||
        (key.first == number && freed <= 0))
      return false;
  }
  return true;
}

/// The level to plan next with a number of microbatches, if declared tensors
/// may take this part of the memory.
std::optional<size_t> StepSearch::propose(size_t number, double part) const {
  size_t least = 0; // above all that do not fit
  std::optional<size_t> fits;
  auto isKnown = [&](size_t level) {
    auto found = forms.find({number, level});
    return found != forms.end() &&
           (found->second.plan || found->second.isSlower ||
            found->second.isTooLarge || found->second.isImpossible);
  };
  for (const auto &[key, form] : forms) {
    if (key.first != number)
      continue;
    bool tooLarge = form.isTooLarge || (form.plan && !form.plan->fits);
    if (tooLarge)
      least = std::max(least, key.second + 1);
    else if (form.plan && !fits)
      fits = key.second;
  }
  if (!fits) {
    for (size_t level = least; level < levels.size(); ++level)
      if (!isKnown(level) && isExpectedToFit(number, level, part))
        return level;
    return std::nullopt;
  }
  while (least < *fits &&
         (isKnown(least) || !isExpectedToFit(number, least, part)))
    ++least;
  if (least < *fits) {
    size_t middle = least + (*fits - least) / 2;
    for (size_t level = middle; level < *fits; ++level)
      if (!isKnown(level))
        return level;
    return least;
  }
  // Least crosses the link to the host where nothing else is kept.
  if (base.movesSaved && !isKnown(fullLevel()))
    return fullLevel();
  // More recomputation leaves memory to better layouts: of large programs all
  // that is cheap is tried at once.
  if (workOfPlan >= kLargeWork) {
    size_t cheap = *fits;
    while (cheap + 1 < levels.size() &&
           levels[cheap + 1].seconds <= kCheapRecomputation * base.modelWork)
      ++cheap;
    return cheap > *fits && !isKnown(cheap) ? std::optional(cheap)
                                            : std::nullopt;
  }
  for (size_t level = *fits + 1; level < levels.size(); ++level)
    if (!isKnown(level))
      return level;
  return std::nullopt;
}

/// More microbatches and more recomputation save memory, and microbatches the
/// bubble of a pipeline. Without one they are no faster than fewer in a plan
/// that fits and is all but the best, if compute hardly waits for collectives
/// there; nor are more microbatches of programs with many operations anyway.
bool StepSearch::isOfNoUse(size_t number, size_t level) const {
  if (base.stages > 1)
    return false;
  return llvm::any_of(forms, [&](const auto &each) {
    const auto &[key, form] = each;
    if (key.first > number || key.second > level || !form.plan ||
        !form.plan->fits || !form.plan->bound ||
        double(form.plan->value) > (1 + kTinyGap) * double(*form.plan->bound))
      return false;
    bool hardlyWaits = form.exposed <= kTinyGap * toSeconds(form.plan->value);
    return hardlyWaits ||
           (key.first < number && base.operations >= kManyOperations);
  });
}

/// Without stages, microbatches and recomputation do nothing but free memory,
/// unless what is kept crosses the link to the host.
bool StepSearch::needsNoMemory() const {
  if (base.movesSaved)
    return false;
  auto first = forms.find({0, 0});
  return base.stages == 1 && first != forms.end() && first->second.plan &&
         first->second.plan->isRoomy();
}

/// The level that keeps nothing but what iterations begin with, or the only
/// one.
size_t StepSearch::fullLevel() const {
  auto full =
      llvm::find_if(levels, [](const Level &level) { return level.isFull; });
  return full == levels.end() ? 0 : full - levels.begin();
}

bool StepSearch::isDone() const {
  if (!runner.hasTime() && (plans > 0 || best))
    return true;
  if (best && (options.takesFirstForm || needsNoMemory()))
    return true;
  if (options.takesFirstForm && plans >= kQuickPlans)
    return true;
  if (!best)
    return plans >= kMostPlans || (plans >= kLeastPlans && isSpent());
  if (plans >= kMostPlans || idle >= kPatience)
    return true;
  double value = toSeconds(best->plan->value);
  // Other forms than the first only do more: to leave room for better layouts.
  bool isFirst = best->number == 0 && best->level == 0 && base.stages == 1 &&
                 !base.movesSaved;
  if (isFirst && leastOfForms && value <= (1 + kWorthForms) * *leastOfForms)
    return true;
  double gap = base.modelWork > 0 ? value / base.modelWork - 1 : 1;
  if (workOfPlan < kLargeWork)
    return gap <= 0;
  return gap <= kSmallGap;
}

/// Until one fits, those that keep nothing but what iterations or segments
/// begin with, or the only one, in the most microbatches.
std::optional<std::pair<size_t, size_t>> StepSearch::nextOfLeast() const {
  if (best || (!runner.hasTime() && plans > 0))
    return std::nullopt;
  size_t number = numbers.size() - 1;
  for (size_t level = levels.size(); level-- > 0;) {
    if (!forms.count({number, level}))
      return std::pair(number, level);
    if (levels[level].isFull)
      break;
  }
  return std::nullopt;
}

/// True of a form with this estimate that is no faster than the best one: by
/// its work alone, or, where little effort is taken, by the estimate, or if
/// each microbatch gathers weights and reduces gradients for as long as those
/// of the best one: a plan that reduces them once would need more memory.
bool StepSearch::isSlower(double estimate, size_t number) const {
  double value = toSeconds(best->plan->value);
  double times = double(numbers[number]) / double(numbers[best->number]);
  if (options.plan.isQuick() &&
      (estimate > kSurelySlower * value || times * best->ofWeights > value))
    return true;
  return estimate / slowdown(number) >= value;
}

/// The form that recomputes least in the memory that the best one leaves, if
/// its estimate is worth the time: what a plan keeps is known better than what
/// it will.
std::optional<std::pair<size_t, size_t>> StepSearch::nextInRoom() const {
  if (plans == 0 || plans >= kLeastPlans || options.plan.isQuick())
    return std::nullopt;
  double kept = keptBytes(best->number, best->level);
  auto fits = [&](size_t level) {
    double more = best->saved * (keptBytes(best->number, level) / kept - 1);
    return kept > 0 &&
           double(best->plan->peak) + more <= kRoomPart * double(allowed);
  };
  double most = estimate(best->number, best->level) / kWorthPlan;
  for (size_t level = 0; level < best->level; ++level)
    if (fits(level))
      return estimate(best->number, level) < most &&
                     !forms.count({best->number, level})
                 ? std::optional(std::pair(best->number, level))
                 : std::nullopt;
  return std::nullopt;
}

/// True if the round has a form with so many microbatches: its plan says which
/// level is next.
bool StepSearch::isChosen(size_t number) const {
  return llvm::any_of(forms, [&](const auto &each) {
    return each.first.first == number && each.second.isChosen;
  });
}

/// The form of the least estimate whose declared tensors take at most this part
/// of the memory.
std::optional<std::pair<size_t, size_t>>
StepSearch::nextWithin(double part) const {
  std::optional<std::pair<size_t, size_t>> found;
  double least = 0;
  for (size_t number = 0; number < numbers.size(); ++number) {
    std::optional<size_t> level = propose(number, part);
    if (!level || isOfNoUse(number, *level) || isChosen(number))
      continue;
    double seconds = estimate(number, *level);
    if (best && isSlower(seconds, number))
      continue;
    if (found && seconds >= least)
      continue;
    found = {number, *level};
    least = seconds;
  }
  return found;
}

std::optional<std::pair<size_t, size_t>> StepSearch::next() const {
  if (options.seeksFit)
    return nextOfLeast();
  if (isDone())
    return std::nullopt;
  if (best && isSpent())
    return nextInRoom();
  if (best)
    return nextWithin(options.plan.isQuick() ? kTightPart : 1);
  auto comfortable = nextWithin(kComfortablePart);
  auto tight = nextWithin(kTightPart);
  auto secondsOf = [&](const auto &form) {
    return estimate(form->first, form->second);
  };
  if (comfortable &&
      (!tight || kTightCost * secondsOf(tight) >= secondsOf(comfortable)))
    return comfortable;
  if (tight)
    return tight;
  if (auto found = nextWithin(1))
    return found;
  // Nothing is expected to fit: the least memory.
  for (size_t number : {numbers.size() - 1, size_t(0)}) {
    auto known = forms.find({number, levels.size() - 1});
    if (known == forms.end())
      return std::pair(number, levels.size() - 1);
  }
  return std::nullopt;
}

/// Bounds a form without planning it.
bool StepSearch::exclude(Form &form) {
  StepFacts facts = look(formOf(form), /*findsLevels=*/false);
  form.isImpossible = !facts.error.empty();
  form.isSlower = best && wholePicoseconds(facts.work) >= best->plan->value;
  form.isTooLarge =
      best && base.stages == 1 && facts.saved + facts.others > double(allowed);
  if (best && !form.isImpossible && !form.isSlower && !form.isTooLarge &&
      boundsLevels()) {
    boundLevels(form.level);
    form.isSlower = wholePicoseconds(levels[form.level].bound.value_or(0)) >=
                    best->plan->value;
  }
  return form.isImpossible || form.isSlower || form.isTooLarge;
}

/// Where the answer is a proof, and not a comparison with little effort.
bool StepSearch::boundsLevels() const {
  return base.stages == 1 && isTraining && !base.runsInChunks &&
         options.plan.effort > kQuickEffort && !options.takesFirstForm &&
         !options.seeksFit && !options.framework;
}

/// Bounds the forms of these levels, those with fused updates too: more
/// microbatches than one do the same work in parts. Where updates take little,
/// so does fusing them.
void StepSearch::boundLevels(ArrayRef<size_t> wanted) {
  auto boundsOf = [&](ArrayRef<size_t> some, bool fuses) {
    std::vector<FormBound> bounds(some.size());
    runner.run(some.size(), [&](TrialPlanner &planner, size_t i) {
      StepForm form = formOf(0, some[i]);
      form.isFused |= fuses;
      if (runner.hasTime())
        bounds[i] = static_cast<StepPlanner &>(planner).bound(
            settings, form, double(numbers.back()), runner.deadline());
    });
    return bounds;
  };
  SmallVector<size_t> open, fused;
  for (size_t level : wanted)
    if (!levels[level].bound)
      open.push_back(level);
  for (auto [level, form] :
       llvm::zip_equal(open, boundsOf(open, /*fuses=*/false))) {
    double &bound = levels[level].bound.emplace(form.seconds);
    double saved = mayFuse ? form.saved : 0;
    if (saved > kTinyGap * bound)
      fused.push_back(level);
    else
      bound -= saved;
  }
  for (auto [level, form] :
       llvm::zip_equal(fused, boundsOf(fused, /*fuses=*/true)))
    if (!form.isRefused)
      levels[level].bound = std::min(*levels[level].bound, form.seconds);
}

/// Seconds that no plan takes less than, of any form that may fit.
double StepSearch::boundOfForms() {
  if (!(hasForms() || isOffloadOpen) || !boundsLevels())
    return boundOfModel();
  std::vector<StepFacts> facts(levels.size());
  runner.run(levels.size(), [&](TrialPlanner &planner, size_t level) {
    if (runner.hasTime())
      facts[level] = static_cast<StepPlanner &>(planner).look(
          settings, formOf(0, level), /*findsLevels=*/false);
  });
  double least = std::numeric_limits<double>::infinity();
  // The first is often the least: then the products of most others take longer.
  for (bool isFirst : {true, false}) {
    SmallVector<size_t> open;
    for (auto [level, each] : llvm::enumerate(facts)) {
      // More microbatches take less memory.
      bool isTooLarge = numbers.size() == 1 && each.error.empty() &&
                        each.saved + each.others > double(allowed);
      if (!isTooLarge && each.work < least && (!isFirst || open.empty()))
        open.push_back(level);
    }
    boundLevels(open);
    for (size_t level : open)
      least = std::min(least, levels[level].bound.value_or(0));
  }
  return std::isinf(least) ? boundOfModel() : std::max(boundOfModel(), least);
}

/// Begins with the plan that a search before chose.
void StepSearch::recall() {
  const StepChoice *known = options.known.get();
  if (!known)
    return;
  for (size_t number = 0; number < numbers.size(); ++number)
    for (size_t level = 0; level < levels.size(); ++level) {
      if (!(known->form == formOf(number, level)))
        continue;
      Outcome outcome;
      outcome.report = known->report;
      outcome.plan = known->plan;
      outcome.labels = known->labels;
      return take(at(number, level), std::move(outcome));
    }
}

/// The form of as many microbatches that keeps most of those that may fit, if
/// it keeps more.
Form *StepSearch::tighterThan(const Form &form) {
  std::optional<size_t> level = propose(form.number, kTightPart);
  return level && *level < form.level ? &at(form.number, *level) : nullptr;
}

/// The forms to plan next: one until a form fits, then several. Beside the
/// first of all one that is less sure to fit: of a large program no other is
/// planned, and of the largest not even that.
std::vector<Form *> StepSearch::nextRound() {
  std::vector<Form *> round;
  while (auto key = next()) {
    Form &form = at(key->first, key->second);
    if (best && exclude(form))
      continue;
    auto choose = [&](Form &chosen) {
      chosen.isChosen = true;
      round.push_back(&chosen);
      ++plans;
      work -= workOfPlan;
    };
    bool isFirst = plans == 0 && workOfPlan <= work &&
                   !options.plan.isQuick() && !options.takesFirstForm &&
                   !options.seeksFit;
    choose(form);
    if (Form *tighter = isFirst ? tighterThan(form) : nullptr)
      choose(*tighter);
    if (!best || round.size() == kRound)
      break;
  }
  return round;
}

Variant StepSearch::variantOf(const Form &form) const {
  Variant variant;
  variant.point.assign(settings.begin(), settings.end());
  variant.point.push_back(stepSetting(formOf(form)));
  variant.keepsPlan = true;
  variant.start = options.start;
  return variant;
}

double StepSearch::secondsOfForm(double all) const {
  double seconds = kPartOfForm * all;
  return best ? seconds : std::max(seconds, kLeastSeconds);
}

void StepSearch::planRound(ArrayRef<Form *> round) {
  std::vector<Outcome> outcomes(round.size());
  runner.run(round.size(), [&](TrialPlanner &planner, size_t i) {
    Variant variant = variantOf(*round[i]);
    if (std::optional<double> all = options.plan.timeLimitSeconds)
      variant.timeLimitSeconds =
          std::min(secondsOfForm(*all), *runner.deadline().remaining());
    outcomes[i] = planner.plan(variant);
  });
  const Form *before = best;
  bool fits = false;
  for (auto [form, outcome] : llvm::zip_equal(round, outcomes)) {
    form->isChosen = false;
    take(*form, std::move(outcome));
    fits |= form->plan && form->plan->fits;
  }
  if (best != before)
    idle = 0;
  else if (fits)
    ++idle;
}

/// Seconds in which the busiest network gathers weights and reduces their
/// gradients before the update.
static double secondsOfWeights(const Report &report) {
  llvm::StringSet<> weights;
  for (const ReportTensor &tensor : report.tensors)
    if (tensor.kind == "weight")
      weights.insert(tensor.name);
  llvm::StringMap<double> seconds;
  double most = 0;
  for (const ReportItem &item : report.items) {
    const ReportCollective *collective = item.collective();
    if (!collective || item.phase == shd::Phase::Update)
      continue;
    StringRef operand = collective->operand;
    operand.consume_back(".grad");
    if (!weights.contains(operand))
      continue;
    double &sum = seconds[collective->network];
    sum += toSeconds(item.total);
    most = std::max(most, sum);
  }
  return most;
}

void StepSearch::take(Form &form, Outcome outcome) {
  if (!outcome.report) {
    form.isImpossible = true;
    return;
  }
  form.plan = figuresOf(*outcome.report);
  form.module = std::move(outcome.plan);
  for (const ReportTensor &tensor : outcome.report->tensors)
    if (tensor.kind == "saved")
      form.saved += tensor.localBytes;
  // A stage keeps values of several microbatches.
  form.saved = std::max(form.saved, double(outcome.report->memory.saved));
  form.activations = double(outcome.report->memory.activations);
  form.ofWeights = secondsOfWeights(*outcome.report);
  form.exposed = outcome.report->time.exposed;
  form.report = std::move(outcome.report);
  form.labels = std::move(outcome.labels);
  if (form.plan->fits && (!best || form.plan->value < best->plan->value))
    best = &form;
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

/// A plan's gap: `ofForms` bounds it in seconds, and so does its own search.
static std::optional<double> gapOf(const PlanFigures &plan, double ofForms) {
  if (plan.status == "optimal")
    return 0;
  if (!plan.fits || !plan.bound || *plan.bound <= 0)
    return std::nullopt;
  double bound = std::max(toSeconds(*plan.bound), ofForms);
  return std::max(0.0, toSeconds(plan.value) / bound - 1);
}

static void show(const PlanFigures &plan, double ofForms,
                 Report::StepSearch::Variant &shown) {
  shown.value = toSeconds(plan.value);
  shown.scheduled = toSeconds(plan.scheduled);
  shown.memory = plan.peak;
  shown.fits = plan.fits;
  shown.gap = gapOf(plan, ofForms);
}

Report::StepSearch StepSearch::summary(const Form &chosen) {
  Report::StepSearch result;
  result.note = note;
  result.isMicrobatchesOpen = isNumberOpen;
  result.isRematOpen = isRematOpen;
  result.hasOthers = hasForms();
  double least = leastOfForms.value_or(boundOfModel());
  if ((result.hasOthers || isOffloadOpen) && least > 0)
    result.boundOfOthers = least;
  // Named levels and one doubling are shown although they were not planned.
  for (size_t number = 0; number < std::min<size_t>(2, numbers.size());
       ++number)
    for (size_t level = 0; level < levels.size(); ++level)
      if (level == 0 || levels[level].isFull || levels[level].isSelective)
        at(number, level);
  std::vector<Form *> order;
  for (auto &[key, form] : forms)
    if (&form != &chosen)
      order.push_back(&form);
  llvm::stable_sort(order, [](const Form *a, const Form *b) {
    auto key = [](const Form &form) {
      return std::tuple(!form.plan || !form.plan->fits, !form.plan,
                        form.plan ? form.plan->value : 0);
    };
    return key(*a) < key(*b);
  });
  order.insert(order.begin(), const_cast<Form *>(&chosen));
  for (Form *form : llvm::ArrayRef(order).take_front(kShown)) {
    Report::StepSearch::Variant &shown = result.variants.emplace_back();
    shown.microbatches = isNumberOpen ? numbers[form->number]
                                      : chosen.report->training->microbatches;
    shown.remat = levels[form->level].label;
    shown.isFused = chosen.report->training && chosen.report->training->isFused;
    shown.offload =
        chosen.report->training ? chosen.report->training->offload : "none";
    if (const auto &plan = form->plan) {
      show(*plan, least, shown);
      shown.status = form == &chosen ? "chosen" : "planned";
      continue;
    }
    bool isExcluded = form->isImpossible || form->isSlower || form->isTooLarge;
    if (!isExcluded && best)
      isExcluded = exclude(*form);
    shown.status = isExcluded ? "ruled out" : "open";
  }
  return result;
}

std::optional<StepChoice> StepSearch::run(shd::ProgramOp program) {
  isTraining = program.getTraining().has_value();
  isNumberOpen = ::isNumberOpen(program);
  isRematOpen = ::isRematOpen(program);
  isOffloadOpen = ::isOffloadOpen(program);
  mayFuse = !isFused && mayFuseUpdates(program);
  StepForm first;
  first.isFused = isFused;
  if (isNumberOpen)
    first.microbatches = 1;
  if (isRematOpen)
    first.remat = "none";
  base = look(first, isRematOpen);
  if (!base.error.empty())
    return std::nullopt;
  work = options.stepWork.value_or(kPlanWork);
  allowed = options.plan.memoryLimit.value_or(base.capacity);
  workOfPlan = base.operations * std::pow(10, base.wideAxes);
  listLevels();
  listNumbers();
  recall();
  while (true) {
    std::vector<Form *> round = nextRound();
    if (round.empty())
      break;
    planRound(round);
    if (best && !leastOfForms)
      leastOfForms = boundOfForms();
  }
  const Form *chosen = best;
  for (const auto &[key, form] : forms)
    if (!best && form.plan && (!chosen || form.plan->peak < chosen->plan->peak))
      chosen = &form;
  if (!chosen)
    return std::nullopt;
  StepChoice choice;
  choice.search = summary(*chosen);
  choice.search.noneInTime = !best && !runner.hasTime();
  choice.form = formOf(*chosen);
  choice.plan = chosen->module;
  choice.labels = chosen->labels;
  choice.report = *chosen->report;
  choice.work = double(plans) * workOfPlan;
  return choice;
}

} // namespace

std::vector<int64_t> shardc::microbatchNumbers(int64_t batch) {
  constexpr int64_t kMost = 256;
  std::vector<int64_t> numbers;
  for (int64_t number = 1; number <= std::min(batch, kMost); ++number)
    if (batch % number == 0)
      numbers.push_back(number);
  return numbers;
}

StepForm
shardc::recomputing(const ProgramText &text, ArrayRef<Setting> settings,
                    StepForm form,
                    llvm::function_ref<bool(shd::CostOpInterface)> again) {
  form.remat = "none";
  form.recomputed.clear();
  MLIRContext context(MLIRContext::Threading::DISABLED);
  ScopedDiagnosticHandler silence(&context, [](Diagnostic &) {});
  Point point(settings.begin(), settings.end());
  point.push_back(stepSetting(form));
  std::optional<Program> program = importStep(text, &context, point);
  if (!program)
    return form;
  auto op = *program->module->getOps<shd::ProgramOp>().begin();
  for (auto &each : shd::recomputableValues(op))
    if (again(each.op))
      form.recomputed.push_back(each.name);
  return form;
}

bool shardc::isNorm(shd::CostOpInterface op) {
  auto named = cast<shd::ShardingRuleOpInterface>(op.getOperation());
  return StringRef(named.getFunctionName()).contains("norm");
}

StepForm shardc::keepingProducts(const ProgramText &text,
                                 ArrayRef<Setting> settings, StepForm form) {
  return recomputing(text, settings, std::move(form),
                     [](shd::CostOpInterface op) {
                       return op.getFusionKind() != shd::FusionKind::Leader;
                     });
}

/// The fastest that fits, or else that of the least memory; its table lists the
/// variants of the others, too.
static std::optional<StepChoice> bestOf(std::vector<StepChoice> choices) {
  auto key = [](const StepChoice &choice) {
    const Report::Memory &memory = choice.report.memory;
    double value = memory.fits ? choice.report.plan.value : double(memory.peak);
    return std::pair(!memory.fits, value);
  };
  auto best = llvm::min_element(
      choices, [&](const auto &a, const auto &b) { return key(a) < key(b); });
  if (best == choices.end())
    return std::nullopt;
  StepChoice chosen = std::move(*best);
  choices.erase(best);
  for (StepChoice &other : choices) {
    chosen.search.hasOthers = true;
    if (auto bound = other.search.boundOfOthers)
      chosen.search.boundOfOthers =
          std::min(chosen.search.boundOfOthers.value_or(*bound), *bound);
    for (Report::StepSearch::Variant &variant : other.search.variants) {
      if (variant.status == "chosen")
        variant.status = "planned";
      chosen.search.variants.push_back(std::move(variant));
    }
  }
  return chosen;
}

/// Gradients that take so much of the memory are worth a step without them.
static constexpr double kLargeGradients = 0.1;

/// True if fused updates may make a step faster, or let it fit: the only memory
/// that they free is that of gradients.
static bool wantsFusedUpdates(const StepChoice &choice) {
  const Report::Memory &memory = choice.report.memory;
  if (!memory.fits)
    return true;
  bool savesMemory = choice.form.microbatches.value_or(1) > 1 ||
                     choice.report.training->recompute > 0;
  return savesMemory &&
         double(memory.gradients) >= kLargeGradients * double(memory.allowed());
}

/// The form of a step whose offloading is written: with all updates at its end,
/// or with fused ones where the search for these is worth its time.
static std::optional<StepChoice> chooseUpdates(const ProgramText &text,
                                               ArrayRef<Setting> settings,
                                               const MeshChoiceOptions &options,
                                               shd::ProgramOp program) {
  solver::Deadline deadline(options.plan.timeLimitSeconds, options.interrupted);
  std::optional<StepChoice> choice =
      StepSearch(text, settings, options).run(program);
  bool isEnough = options.takesFirstForm || options.plan.isQuick() ||
                  (options.seeksFit && choice && choice->report.memory.fits) ||
                  options.framework;
  if (!choice || isEnough || deadline.expired() || !mayFuseUpdates(program) ||
      !wantsFusedUpdates(*choice))
    return choice;
  std::vector<StepChoice> choices = {std::move(*choice)};
  MeshChoiceOptions how = options;
  how.plan.timeLimitSeconds = deadline.remaining();
  if (auto fused =
          StepSearch(text, settings, how, /*isFused=*/true).run(program))
    choices.push_back(std::move(*fused));
  return bestOf(std::move(choices));
}

std::optional<StepChoice> shardc::chooseStep(const ProgramText &text,
                                             ArrayRef<Setting> settings,
                                             const MeshChoiceOptions &options) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  ScopedDiagnosticHandler silence(&context, [](Diagnostic &) {});
  std::optional<Program> probe = importProgram(text, &context, settings);
  if (!probe)
    return std::nullopt;
  shd::ProgramOp op = *probe->module->getOps<shd::ProgramOp>().begin();
  if (!isOffloadOpen(op))
    return chooseUpdates(text, settings, options, op);
  // Without a link to the host there is no choice.
  std::vector<const char *> values = {"none"};
  if (probe->machine && probe->machine->hostBandwidth) {
    values.push_back("optimizer");
    // Frameworks' own ways to offload activations are not modelled.
    if (!options.framework)
      values.push_back("activations");
  }
  std::vector<StepChoice> choices;
  for (const char *value : values) {
    StepForm form;
    form.offload = value;
    Point point(settings.begin(), settings.end());
    point.push_back(stepSetting(form));
    MeshChoiceOptions how = options;
    if (how.plan.timeLimitSeconds)
      *how.plan.timeLimitSeconds /= double(values.size());
    std::optional<StepChoice> choice = StepSearch(text, point, how).run(op);
    if (!choice)
      continue;
    choice->form.offload = value;
    choices.push_back(std::move(*choice));
  }
  std::optional<StepChoice> best = bestOf(std::move(choices));
  if (best)
    best->search.isOffloadOpen = true;
  return best;
}

/// Spends what is left of a time limit on the chosen form.
static void searchLonger(const ProgramText &text,
                         const MeshChoiceOptions &options,
                         const solver::Deadline &deadline, StepChoice &choice) {
  if (choice.report.plan.status == "optimal")
    return;
  Variant variant = Variant::at({stepSetting(choice.form)});
  variant.keepsPlan = true;
  variant.start = choice.labels;
  variant.timeLimitSeconds = deadline.remaining();
  Evaluator planner(text, options.plan, options.file);
  planner.stopAt(options.interrupted);
  Outcome outcome = planner.plan(variant);
  auto key = [](const PlanFigures &plan) {
    return std::tuple(!plan.fits, plan.value, -plan.bound.value_or(0));
  };
  if (!outcome.report ||
      key(figuresOf(*outcome.report)) >= key(figuresOf(choice.report)))
    return;
  choice.report = std::move(*outcome.report);
  choice.plan = std::move(outcome.plan);
  choice.labels = std::move(outcome.labels);
  show(figuresOf(choice.report), choice.search.boundOfOthers.value_or(0),
       choice.search.variants.front());
}

std::optional<StepChoice> shardc::chooseStep(const llvm::SourceMgr &sourceMgr,
                                             const Overrides &overrides,
                                             const MeshChoiceOptions &options) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  ScopedDiagnosticHandler silence(&context, [](Diagnostic &) {});
  ProgramSource source(sourceMgr, &context, overrides);
  if (!source.text)
    return std::nullopt;
  solver::Deadline deadline(options.plan.timeLimitSeconds, options.interrupted);
  std::optional<StepChoice> choice = chooseStep(*source.text, {}, options);
  if (choice && deadline.remaining() && !deadline.expired())
    searchLonger(*source.text, options, deadline, *choice);
  return choice;
}

void shardc::addStepSearch(Report &report, Report::StepSearch search) {
  Report::Plan &plan = report.plan;
  if (search.noneInTime && !report.memory.fits) {
    plan.noneInTime = true;
    plan.status = "unknown";
  }
  if (plan.status == "optimal" || plan.status == "feasible") {
    // The work of the model bounds every form, the chosen one as well.
    if (plan.bound && search.boundOfOthers && *plan.bound > 0)
      search.ownGap = std::max(
          0.0, plan.value / std::max(*plan.bound, *search.boundOfOthers) - 1);
    if (plan.status == "optimal")
      search.ownGap = 0;
    if (search.hasOthers) {
      // A pipeline's bound is that of its microbatches, whatever runs again.
      bool boundsAll = report.stages && !search.isMicrobatchesOpen;
      plan.bound = boundsAll ? std::max(plan.bound, search.boundOfOthers)
                             : search.boundOfOthers;
      plan.gap = std::nullopt;
      if (plan.bound && *plan.bound > 0)
        plan.gap = std::max(0.0, (plan.value - *plan.bound) / *plan.bound);
      plan.status = plan.gap && *plan.gap == 0 ? "optimal" : "feasible";
    }
  }
  if (report.training && search.isRematOpen && report.training->every == 0)
    report.training->remat = search.variants.front().remat;
  report.stepSearch = std::move(search);
}
