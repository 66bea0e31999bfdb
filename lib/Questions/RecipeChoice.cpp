//===- RecipeChoice.cpp - How to train on all chips -----------------------===//
//
// The meshes of a training step, each with the stages of its layers or without.
// Whatever its plan, a recipe takes the matrix work of the fullest stage at
// peak: that bound rules recipes out. An estimate from a few collectives of
// each binding says which come first. They are planned with the first form of
// the step that fits, and the best of these again with all choices of the step,
// until the work that such a search may take is spent. Where all recipes can
// have all choices, each gets them.
//
// Work is counted, and done in rounds that are the same for any number of
// threads: what a round may leave is what was known before it.
//
//===----------------------------------------------------------------------===//

#include "RecipeChoice.h"
#include "FrameworkSpace.h"
#include "StepWork.h"
#include "shardc/Dialect/Shd/IR/Experts.h"
#include "shardc/Dialect/Shd/IR/Gradient.h"
#include "shardc/Optimizer/IndexClasses.h"
#include "shardc/Pipelines/Compilation.h"
#include "shardc/Questions/Evaluator.h"
#include "shardc/Questions/PlanFigures.h"
#include "shardc/Questions/StepChoice.h"
#include "shardc/Report/Seconds.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include <cmath>
#include <map>
#include <numeric>

using namespace mlir;
using namespace shardc;

/// A plan takes as much work as its step has operations, times this for each
/// axis of more than one device, that of stages aside.
static constexpr double kWorkPerAxis = 10;
/// Work up to which all recipes get all choices, and what these may take where
/// not all do.
static constexpr double kAllWork = 1.5e5;
/// How far a search goes.
struct Limits {
  /// Work of all plans of first forms, and of those with all choices.
  double first = 1e5, full = kAllWork;
  /// Plans of one step, if limited.
  std::optional<double> ofStep = {};
  /// Axes beside that of stages.
  unsigned axes = ~0u;
  /// Bindings of the same sizes that are planned.
  unsigned bindings = 2;
  /// Recipes that get all choices of the step.
  size_t refined = 6;
};
/// Plans of large programs on one or two axes take about the same time: as much
/// work as their operations, times kWorkPerAxis: 6 and 10 plans of LLaMA, which
/// take a second each. Plans of a framework take less, on three axes, too: of
/// large programs half of the first work is for shapes, 3 to 6 of them.
static constexpr Limits kLimitsOfLarge = {8.5e3, 1.4e4, 2, 2, 1, 3},
                        kLimitsOfRoles = {1.4e4, 1.2e4, 4, 3},
                        kLimitsOfLargeRoles = {4e4, 2e4, 1, 3, 1, 2};
/// Forms of a step that are planned, on average.
static constexpr double kFormsOfStep = 6;
/// Recipes that are planned before anything is known of others, and those that
/// are judged by the best one before them.
static constexpr size_t kFirstRound = 2, kRound = 4;
/// Bindings that are estimated.
static constexpr size_t kMostEstimates = 200;
/// For large programs: what communication and the like leave to gain is too
/// little to search on.
static constexpr double kSmallRest = 0.02;
/// The report of the chosen plan takes this of a time limit, and at most so
/// many seconds.
static constexpr double kReportShare = 0.4, kReportSeconds = 2;
/// All choices of a step rarely make its first form faster by more than this
/// part: what is slower than the best by more gets none.
static constexpr double kPromising = 0.1;
/// Estimates are below the times of plans, as a rule.
static constexpr double kSurelyMore = 1.1;
/// Estimates that differ by less than this part are alike.
static constexpr double kAlike = 0.01;
/// Estimated slowdown of each axis: plans on few axes are found more surely.
static constexpr double kAxisCost = 0.01;
/// Estimated slowdown of what does not fit, even with all recomputed.
static constexpr double kDoesNotFit = 100;
/// Part of the memory for states and kept values; layers and collectives need
/// the rest.
static constexpr double kRoomForStates = 0.8;
/// Parts of the saved values that are recomputed: what frees most for its time
/// goes first, all of it takes a third of the step, less the last products of
/// the blocks.
static constexpr double kRecomputedParts[] = {0, 0.25, 0.5, 0.75, 1};
static constexpr double kWorkOfRecomputation = 0.27;
/// Bytes of gradients, and of moments and the master copy, for each byte of
/// weights: they are of f32, weights of half of it.
static constexpr double kGradients = 2, kOptimizer = 6;
/// Saved values of a layer are about so many times what it carries.
static constexpr double kSavedPerCarried = 16;
/// Programs of so many operations are large; where the plans are those of a
/// framework, which take less, of so many.
static constexpr double kManyOperations = 100, kManyOfRoles = 150;
/// Steps on the frontier of time against memory differ by at least this part of
/// the memory, and so many are shown.
static constexpr double kLessMemory = 0.05;
static constexpr size_t kMostTradeoffs = 8;
/// Recipes that are shown.
static constexpr size_t kShown = 8;

/// Among so many recipes are rivals of the best one, and how much slower they
/// may be: plans of little effort are off by some percent.
static constexpr size_t kMostFinals = 3;
static constexpr double kHardlySlower = 0.05;

namespace {

/// The step before any sharding.
struct StepSize {
  /// Matrix work on one device at its peak, in seconds: all, and that of the
  /// layers; without recomputation.
  double work = 0, workOfLayers = 0;
  double operations = 1;
  /// Bytes of all weights, and of what a layer hands to the next.
  double weights = 0, carried = 0;
  /// Bytes of all slots of experts that tokens go to or come from, in all
  /// layers and both passes.
  double slots = 0;
  /// Divides the numbers of experts; 1 without.
  int64_t experts = 1;
  /// Blocks of experts that the tokens of all layers keep to.
  std::optional<RoutedBlocks> routed;
  /// Each weight's bytes, and its extents but for the layers'.
  std::vector<std::pair<double, SmallVector<int64_t>>> ofWeights;
  int64_t layers = 1, batch = 1;
  std::string index;
};

/// How a step uses the axes without stages.
struct AxisUse {
  SmallVector<AxisIndex, 4> tensor, context, data, experts;
  /// Those of context and data that weights, gradients and moments are split
  /// over, as far as `zero` says.
  SmallVector<AxisIndex, 4> shards;
  AxisRoles::Zero zero = AxisRoles::Zero::Weights;
  bool splitsSequences = true;
};

/// A step before any plan.
struct Estimate {
  double seconds = HUGE_VAL;
  /// With all of the layers recomputed.
  bool isRecomputed = false;
  bool fits = false;
  /// Bytes of weights, gradients and the optimizer's state on a device.
  double states = 0;
};

struct Recipe {
  size_t family = 0;
  BoundMesh mesh;
  /// Those of a framework's plans.
  std::optional<AxisRoles> roles = {};
  int64_t stages = 1;
  unsigned wide = 0;
  /// Bytes of a device's weights if each is split as far as its extents allow.
  double leastWeights = 0;
  /// Decides the order alone.
  Estimate estimate;
  /// No plan takes less.
  Picoseconds bound = 0;
  double work = 0;
  bool isImpossible = false, isFull = false;
  /// Planned with all effort.
  bool isFinal = false;
  std::shared_ptr<const StepChoice> found = {};
  std::optional<PlanFigures> plan = {};

  bool fits() const { return plan && plan->fits; }
};

class RecipeSearch {
public:
  RecipeSearch(const ProgramText &text, llvm::ArrayRef<Setting> settings,
               const Program &probe, const MeshChoiceOptions &options);
  std::optional<MeshChoice> run(std::string &error);

private:
  void measure(const Program &probe);
  void listRecipes(const Program &probe);
  void listFamilies(const Machine &machine, const MeshNames &names);
  void addFamily(const Machine &machine, const MeshFamily &family,
                 bool isRenamed);
  void listRoles(const Program &probe);
  std::vector<StepForm> formsOf(const Recipe &recipe, bool isFull) const;
  std::optional<StepChoice> chooseForm(const Recipe &recipe, bool isFull,
                                       const MeshChoiceOptions &how) const;
  Estimate estimate(const CollectiveModel &model, const Recipe &recipe) const;
  Estimate estimate(const CollectiveModel &model, const Recipe &recipe,
                    const AxisUse &use) const;
  double slotsSeconds(const CollectiveModel &model,
                      llvm::ArrayRef<AxisIndex> axes, double bytes) const;
  double leastWeights(const Mesh &mesh) const;
  bool isLarge() const {
    return size.operations >=
           (options.framework ? kManyOfRoles : kManyOperations);
  }
  Limits limits() const {
    if (options.framework)
      return isLarge() ? kLimitsOfLargeRoles : kLimitsOfRoles;
    return isLarge() ? kLimitsOfLarge : Limits();
  }
  double workOf(const Recipe &recipe) const;
  double secondsOfFullest(const Recipe &recipe) const;
  Picoseconds boundOf(int64_t stages) const;
  Point pointOf(const Recipe &recipe) const;

  std::vector<size_t> byEstimate() const;
  std::vector<size_t> byTime() const;
  std::vector<int> shapeOf(const Recipe &recipe) const;
  std::vector<size_t> firstsOfShapes(llvm::ArrayRef<size_t> order) const;
  std::vector<size_t> promising() const;
  void planShapes(llvm::ArrayRef<size_t> order, double work);
  void planSome(llvm::ArrayRef<size_t> order, double work, bool isFull);
  void planLast(size_t last);
  void planRound(llvm::ArrayRef<size_t> round, bool isFull);
  bool isUnlikely(const Recipe &recipe) const;
  bool isLike(const Recipe &a, const Recipe &b) const;
  bool isSettledByOthers(const Recipe &recipe) const;
  void take(Recipe &recipe, std::shared_ptr<const StepChoice> choice,
            bool isFull);
  void findBest();
  bool isScreened() const;
  std::optional<StepChoice> planFinal(const Recipe &recipe) const;
  void takeFinal(Recipe &recipe, std::optional<StepChoice> choice);
  bool isRival(const Recipe &recipe) const;
  std::optional<size_t> nextFinal() const;
  void planFinals();
  bool isOutdone(const Recipe &recipe) const;
  bool leavesAtMost(double part) const;
  bool isGoodEnough() const;
  size_t chosen() const;
  Report::MeshSearch summary(size_t chosen) const;
  Report::MeshSearch::Candidate describe(const Recipe &recipe) const;
  std::vector<Report::MeshSearch::Tradeoff> frontier() const;

  const ProgramText &text;
  llvm::ArrayRef<Setting> settings;
  const MeshChoiceOptions &options;
  llvm::SMRange where;
  TrialRunner runner;
  StepSize size;
  int64_t capacity = 0;
  double devices = 1;
  bool isRematOpen = false, isOrderOpen = true, isOffloadOpen = false;
  /// The mesh is that of the program; roles alone are chosen.
  bool isMeshGiven = false;
  std::vector<Recipe> recipes;
  /// Bindings that are not worth a plan.
  int64_t left = 0;
  size_t families = 0;
  std::optional<size_t> best;
  double spent = 0;
  bool isCut = false;
  std::string note;
};

} // namespace

//===----------------------------------------------------------------------===//
// The step
//===----------------------------------------------------------------------===//

/// The repeat of a program with the most iterations, as the import has it; null
/// if there is none.
static shd::RepeatOp findLayers(shd::ProgramOp program) {
  shd::RepeatOp found;
  for (auto repeat : program.getBody().getOps<shd::RepeatOp>())
    if (!found || repeat.getCount() > found.getCount())
      found = repeat;
  return found;
}

static shd::ProgramOp programOf(ModuleOp module) {
  return *module.getOps<shd::ProgramOp>().begin();
}

/// The greatest common divisor of the numbers of experts; 1 if there are none.
static int64_t numExperts(shd::ProgramOp program) {
  int64_t experts = 0;
  program->walk([&](shd::DispatchOp op) {
    experts = std::gcd(experts, shd::ExpertExtents::of(op).experts);
  });
  return std::max<int64_t>(1, experts);
}

void RecipeSearch::measure(const Program &probe) {
  shd::ProgramOp forward = programOf(*probe.forward);
  size.batch = shd::batchExtent(forward);
  size.experts = numExperts(forward);
  std::optional<shd::PipelineAttr> pipeline = forward.getPipeline();
  if (shd::RepeatOp layers = findLayers(forward)) {
    size.index =
        pipeline ? pipeline->getIndex().str() : layers.getIndex().str();
    size.layers = pipeline ? pipeline->getLayers() : int64_t(layers.getCount());
    for (Value carried : layers.getResults())
      size.carried += bytesOf(carried);
  }
  for (auto declare : forward.getBody().getOps<shd::DeclareOp>())
    if (declare.getKind() == shd::TensorKind::Weight) {
      double bytes = bytesOf(declare.getResult());
      size.weights += bytes;
      SmallVector<int64_t> &extents =
          size.ofWeights.emplace_back(bytes, SmallVector<int64_t>()).second;
      for (auto [index, extent] :
           llvm::zip_equal(declare.getIndices().getAsValueRange<StringAttr>(),
                           declare.getType().getShape()))
        if (index != size.index)
          extents.push_back(extent);
    }
  const Machine &machine = *probe.machine;
  programOf(*probe.module)->walk([&](shd::CostOpInterface op) {
    ++size.operations;
    if (shd::getPhase(op) == shd::Phase::Recompute)
      return;
    if (isa<shd::DispatchOp>(op)) {
      auto routed = shd::movedShape(op->getResult(0)).routed;
      if (size.slots > 0 && size.routed != routed)
        routed.reset();
      size.routed = routed;
      size.slots += bytesOf(op->getResult(0)) * shd::runsOfAllStages(op);
    }
    if (auto combine = dyn_cast<shd::CombineOp>(op.getOperation()))
      size.slots += bytesOf(combine.getInput()) * shd::runsOfAllStages(op);
    double seconds = leastSeconds(op, machine, /*devices=*/1);
    size.work += seconds;
    for (auto repeat = op->getParentOfType<shd::RepeatOp>(); repeat;
         repeat = repeat->getParentOfType<shd::RepeatOp>())
      if (repeat.getIndex() == size.index) {
        size.workOfLayers += seconds;
        break;
      }
  });
}

/// Seconds of the fullest stage, if the last one has all that is not in layers,
/// and as many layers as are best where stages may differ.
double RecipeSearch::secondsOfFullest(const Recipe &recipe) const {
  if (recipe.stages == 1)
    return size.work / devices;
  auto stages = double(recipe.stages), layers = double(size.layers);
  double ofStage = stages / devices;
  double ofLayer = size.workOfLayers / layers * ofStage;
  double others = (size.work - size.workOfLayers) * ofStage;
  if (recipe.roles && recipe.roles->hasEqualLayers)
    return std::ceil(layers / stages) * ofLayer + others;
  double least = HUGE_VAL;
  for (double last = 0; last <= layers / stages; ++last) {
    double most = std::ceil((layers - last) / (stages - 1));
    least = std::min(least, std::max(most * ofLayer, last * ofLayer + others));
  }
  return least;
}

/// The fullest stage has its share of the layers, rounded up.
Picoseconds RecipeSearch::boundOf(int64_t stages) const {
  double held = std::ceil(double(size.layers) / double(stages));
  double ofFullest =
      size.workOfLayers * held / double(size.layers) * double(stages) / devices;
  return wholePicoseconds(std::max(size.work / devices, ofFullest));
}

//===----------------------------------------------------------------------===//
// Estimates
//===----------------------------------------------------------------------===//

/// Into how many parts axes of these sizes can split extents that they divide.
static double mostParts(SmallVector<int64_t> extents,
                        llvm::ArrayRef<int64_t> sizes) {
  if (sizes.empty())
    return 1;
  int64_t size = sizes.front();
  double most = mostParts(extents, sizes.drop_front());
  for (int64_t &extent : extents)
    if (extent % size == 0) {
      extent /= size;
      most =
          std::max(most, double(size) * mostParts(extents, sizes.drop_front()));
      extent *= size;
    }
  return most;
}

double RecipeSearch::leastWeights(const Mesh &mesh) const {
  SmallVector<int64_t> sizes;
  double stages = 1;
  for (const MeshAxis &axis : mesh.axes) {
    if (axis.isStages)
      stages = double(axis.size);
    else if (axis.size > 1)
      sizes.push_back(axis.size);
  }
  double sum = 0;
  for (const auto &[bytes, extents] : size.ofWeights)
    sum += bytes / mostParts(extents, sizes);
  return sum / stages;
}

static double gatherSeconds(const CollectiveModel &model,
                            llvm::ArrayRef<AxisIndex> axes, double bytes) {
  return axes.empty() || bytes == 0
             ? 0
             : model.cost(CollectiveKind::AllGather, axes, bytes).seconds();
}

double RecipeSearch::slotsSeconds(const CollectiveModel &model,
                                  llvm::ArrayRef<AxisIndex> axes,
                                  double bytes) const {
  return (size.routed ? model.slotsCost(axes, bytes, axes, *size.routed)
                      : model.cost(CollectiveKind::AllToAll, axes, bytes))
      .seconds();
}

/// Collectives of the layers and of the gradients, and whether what is kept
/// fits.
Estimate RecipeSearch::estimate(const CollectiveModel &model,
                                const Recipe &recipe,
                                const AxisUse &use) const {
  int64_t stages = recipe.stages;
  auto devicesOf = [&](llvm::ArrayRef<AxisIndex> axes) {
    double devices = 1;
    for (AxisIndex axis : axes)
      devices *= double(model.mesh().axes[axis].size);
    return devices;
  };
  double tensor = devicesOf(use.tensor), shards = devicesOf(use.shards),
         experts = devicesOf(use.experts), context = devicesOf(use.context);
  double sequences = double(size.batch) / devicesOf(use.data);
  double seconds = secondsOfFullest(recipe);
  // The part of sequences that are fewer than one is idle, or costs as much.
  if (sequences < 1)
    seconds /= std::sqrt(sequences);
  double carried = size.carried / devicesOf(use.data) / context;
  double perStage = double(size.layers) / double(stages);
  double parameters = size.weights / double(stages) / tensor / experts;
  auto split = [&](AxisRoles::Zero least) {
    return use.zero >= least ? shards / experts : 1;
  };
  double states = parameters / split(AxisRoles::Zero::Weights) +
                  kGradients * parameters / split(AxisRoles::Zero::Gradients) +
                  kOptimizer * parameters / split(AxisRoles::Zero::Optimizer);
  if (!text.allowPadding)
    states =
        std::max(states, (1 + kGradients + kOptimizer) * recipe.leastWeights);
  // Four blocks' ends and beginnings, forwards and backwards; half of it hides.
  double ofLayers =
      perStage * (0.5 * 8 * gatherSeconds(model, use.tensor, carried) +
                  gatherSeconds(model, use.context, carried));
  // Slots go from the batch's parts to the experts. Of a part of the sequences,
  // and of tensor parallelism, they are partial sums: their ReduceScatter takes
  // as long as an AllGather. Without roles others may be cheaper.
  double slots = size.slots / devices;
  if (experts > 1)
    ofLayers += slotsSeconds(model, use.experts, slots * experts);
  if (recipe.roles)
    ofLayers += gatherSeconds(model, use.context, slots * context) +
                gatherSeconds(model, use.tensor, slots * tensor);
  SmallVector<AxisIndex, 4> replicas(use.data);
  llvm::append_range(replicas, use.context);
  double room = kRoomForStates * double(capacity);
  Estimate least;
  for (double recomputed : kRecomputedParts) {
    // Frameworks recompute all or little.
    if (recipe.roles && recomputed > 0 && recomputed < 1)
      continue;
    double kept = (recomputed + (1 - recomputed) * kSavedPerCarried) * carried *
                  perStage / (use.splitsSequences ? tensor : 1);
    double microbatches = std::clamp(sequences, 1.0, 8 * double(stages));
    if (stages == 1)
      for (microbatches = 1; states + kept / microbatches > room &&
                             2 * microbatches <= sequences;)
        microbatches *= 2;
    double needed =
        states + kept * std::min(double(stages), microbatches) / microbatches;
    double all = seconds * (1 + recomputed * recomputed * kWorkOfRecomputation);
    if (needed > room)
      all *= kDoesNotFit * needed / room;
    all *= 1 + double(stages - 1) / microbatches; // the bubble of 1f1b
    // Each microbatch gathers weights that are split and reduces gradients that
    // are; without roles gradients may be whole where weights are split.
    bool isReduced = recipe.roles && use.zero >= AxisRoles::Zero::Gradients;
    double gathers =
        use.zero == AxisRoles::Zero::Weights ? 2 * microbatches : 1;
    double reductions = isReduced ? microbatches : 1;
    double ofStates =
        reductions * gatherSeconds(model, replicas, kGradients * parameters) +
        gathers * gatherSeconds(model, use.shards, parameters);
    double sum =
        all + ofLayers + 0.1 * ofStates + std::max(0.0, ofStates - 0.5 * all);
    if (sum < least.seconds)
      least = {sum, recomputed == 1, needed <= room, states};
  }
  return least;
}

/// Adds a use for each set of the data's axes that experts, too, may be on.
static void addUsesOfExperts(const Mesh &mesh, int64_t experts,
                             SmallVectorImpl<AxisUse> &uses) {
  for (size_t i = 0, end = uses.size(); i < end; ++i)
    for (unsigned subset = 1; subset < 1u << uses[i].data.size(); ++subset) {
      AxisUse use = uses[i];
      for (auto [j, axis] : llvm::enumerate(use.data))
        if (subset >> j & 1)
          use.experts.push_back(axis);
      if (experts % mesh.groupSize(use.experts) == 0)
        uses.push_back(std::move(use));
    }
}

/// The roles of a framework's axes, or each way to divide the axes between
/// activations and the batch, with weights split over the batch's or whole, and
/// experts on some of the batch's.
static SmallVector<AxisUse> usesOf(const Mesh &mesh, const Recipe &recipe,
                                   int64_t experts) {
  using Role = AxisRoles::Role;
  SmallVector<AxisUse> uses;
  if (recipe.roles) {
    AxisUse &use = uses.emplace_back();
    use.zero = recipe.roles->zero;
    use.splitsSequences = false;
    for (const AxisRoles::Axis &axis : recipe.roles->axes) {
      AxisIndex index = *mesh.find(axis.name);
      if (axis.role >= Role::Tensor) {
        use.tensor.push_back(index);
        use.splitsSequences = axis.role == Role::TensorSequence;
        continue;
      }
      (axis.role == Role::Context ? use.context : use.data).push_back(index);
      if (axis.role != Role::Replicated)
        use.shards.push_back(index);
      if (axis.role == Role::Expert)
        use.experts.push_back(index);
    }
    return uses;
  }
  SmallVector<AxisIndex, 4> axes;
  for (auto [i, axis] : llvm::enumerate(mesh.axes))
    if (axis.size > 1 && !axis.isStages)
      axes.push_back(AxisIndex(i));
  for (unsigned subset = 0; subset < 1u << axes.size(); ++subset)
    for (AxisRoles::Zero zero :
         {AxisRoles::Zero::Optimizer, AxisRoles::Zero::Weights}) {
      AxisUse &use = uses.emplace_back();
      use.zero = zero;
      for (auto [i, axis] : llvm::enumerate(axes))
        (subset >> i & 1 ? use.tensor : use.data).push_back(axis);
      use.shards = use.data;
    }
  if (experts > 1)
    addUsesOfExperts(mesh, experts, uses);
  return uses;
}

Estimate RecipeSearch::estimate(const CollectiveModel &model,
                                const Recipe &recipe) const {
  Estimate least;
  for (const AxisUse &use : usesOf(model.mesh(), recipe, size.experts)) {
    Estimate of = estimate(model, recipe, use);
    if (of.seconds < least.seconds)
      least = of;
  }
  least.seconds *= 1 + kAxisCost * recipe.wide;
  return least;
}

//===----------------------------------------------------------------------===//
// Recipes
//===----------------------------------------------------------------------===//

/// The part of a time limit that is for the search.
static std::optional<double> searchSeconds(std::optional<double> limit) {
  if (!limit)
    return std::nullopt;
  return *limit - std::min(kReportShare * *limit, kReportSeconds);
}

/// The axis of the pipeline's stages; empty if there are none.
static std::string axisOfStages(shd::ProgramOp program) {
  std::optional<shd::PipelineAttr> pipeline = program.getPipeline();
  return pipeline ? pipeline->getAxis().str() : "";
}

RecipeSearch::RecipeSearch(const ProgramText &text,
                           llvm::ArrayRef<Setting> settings,
                           const Program &probe,
                           const MeshChoiceOptions &options)
    : text(text), settings(settings), options(options),
      where(probe.autoMesh ? probe.autoMesh->where : llvm::SMRange()),
      runner([] { return std::unique_ptr<TrialPlanner>(); },
             {options.jobs, options.showProgress,
              searchSeconds(options.plan.timeLimitSeconds),
              options.interrupted}) {
  std::optional<shd::TrainingAttr> training =
      programOf(*probe.forward).getTraining();
  isRematOpen =
      training->getRemat() == shd::Remat::Auto && !training->getSave();
  isOffloadOpen = training->getOffload() == shd::Offload::Auto;
  if (auto pipeline = programOf(*probe.forward).getPipeline())
    isOrderOpen = pipeline->getOrder() == shd::kAutoOrder;
  measure(probe);
  if (options.framework)
    listRoles(probe);
  else
    listRecipes(probe);
}

/// Work of a plan. Where axes have roles, little is open, and each axis costs
/// the same. Other plans of large programs have few axes.
double RecipeSearch::workOf(const Recipe &recipe) const {
  if (recipe.roles)
    return size.operations * kWorkPerAxis * std::max(1u, recipe.wide);
  return size.operations *
         (isLarge() ? kWorkPerAxis : std::pow(kWorkPerAxis, recipe.wide));
}

void RecipeSearch::addFamily(const Machine &machine, const MeshFamily &family,
                             bool isRenamed) {
  Recipe recipe;
  recipe.family = families++;
  recipe.wide = 0;
  for (const MeshAxis &axis : family.mesh.axes) {
    if (axis.isStages)
      recipe.stages = axis.size;
    else
      recipe.wide += axis.size > 1;
  }
  recipe.bound = boundOf(recipe.stages);
  recipe.work = workOf(recipe);
  recipe.leastWeights = leastWeights(family.mesh);
  std::vector<Recipe> list;
  for (const NamedBinding &binding : family.bindings) {
    if (list.size() == kMostEstimates)
      break;
    recipe.mesh = boundMesh(family, binding, isRenamed);
    recipe.estimate = estimate(
        CollectiveModel(machine, family.mesh, binding.binding), recipe);
    list.push_back(recipe);
  }
  left += int64_t(family.bindings.size() - list.size());
  llvm::stable_sort(list, [](const Recipe &a, const Recipe &b) {
    return a.estimate.seconds < b.estimate.seconds;
  });
  llvm::append_range(recipes, list);
}

void RecipeSearch::listFamilies(const Machine &machine,
                                const MeshNames &names) {
  for (const MeshFamily &family : enumerateMeshes(machine, names)) {
    bool isWanted = llvm::all_of(family.mesh.axes, [&](const MeshAxis &axis) {
      return !axis.isStages || axis.size <= size.layers;
    });
    if (isWanted)
      addFamily(machine, family, names.areAlike && names.ofStages.empty());
  }
}

/// A name for the axis of stages that no axis of the program has.
static constexpr llvm::StringLiteral kStages = "pp";

void RecipeSearch::listRecipes(const Program &probe) {
  const Machine &machine = *probe.machine;
  devices = double(machine.numChips());
  capacity = options.plan.memoryLimit.value_or(machine.usableMemory());
  const std::vector<std::string> &names = probe.autoMesh->names;
  std::string ofStages = axisOfStages(programOf(*probe.forward));
  listFamilies(machine, {names, names.empty(), ofStages});
  // With names the program says which axes there are.
  if (!names.empty())
    return;
  if (size.layers < 2) {
    note = "no stages were tried: the program has no repeat of layers";
    return;
  }
  size_t without = recipes.size();
  for (const std::vector<std::string> &axes :
       {std::vector<std::string>{kStages.str()},
        {kStages.str(), "X"},
        {kStages.str(), "X", "Y"}}) {
    for (const MeshFamily &family :
         enumerateMeshes(machine, {axes, true, kStages.str()}))
      if (family.wideAxes() == axes.size() &&
          family.mesh.axes.front().size <= size.layers)
        addFamily(machine, family, /*isRenamed=*/false);
  }
  if (recipes.size() == without)
    return;
  // One of them says whether layers can be stages at all.
  MLIRContext context(MLIRContext::Threading::DISABLED);
  std::string refusal;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error &&
        refusal.empty())
      refusal = diagnostic.str();
  });
  if (importStep(text, &context, pointOf(recipes[without])))
    return;
  recipes.resize(without);
  note = "no stages were tried: " + refusal;
}

Point RecipeSearch::pointOf(const Recipe &recipe) const {
  Point point(settings.begin(), settings.end());
  if (!isMeshGiven)
    point.push_back(meshSetting(recipe.mesh, where));
  if (recipe.roles)
    point.push_back(rolesSetting(*recipe.roles));
  return point;
}

//===----------------------------------------------------------------------===//
// Plans of a framework
//===----------------------------------------------------------------------===//

/// Every mesh with every assignment of roles, in the order of ranks alone.
void RecipeSearch::listRoles(const Program &probe) {
  const Machine &machine = *probe.machine;
  devices = double(machine.numChips());
  capacity = options.plan.memoryLimit.value_or(machine.usableMemory());
  shd::ProgramOp forward = programOf(*probe.forward);
  isMeshGiven = !probe.autoMesh;
  RoleLimits limits;
  limits.batch = std::max<int64_t>(
      1, size.batch /
             std::max<int64_t>(1, forward.getTraining()->getMicrobatches()));
  limits.length = IndexClasses(forward).sequenceLength(forward);
  limits.layers = size.layers;
  limits.experts = size.experts;
  if (std::string stages = axisOfStages(forward); !stages.empty())
    limits.stages = stages;
  const FrameworkSpace &space = spaceOf(*options.framework);
  std::vector<RoleMesh> list =
      isMeshGiven ? rolesOn(space, probe.mesh, limits)
                  : roleMeshes(space, machine.numChips(), limits);
  const Mesh *before = nullptr;
  for (const RoleMesh &each : list) {
    Recipe recipe;
    families += !before || !(*before == each.mesh);
    before = &each.mesh;
    recipe.family = families - 1;
    recipe.mesh.mesh = each.mesh;
    recipe.mesh.on.resize(each.mesh.size());
    recipe.roles = each.roles;
    for (const MeshAxis &axis : each.mesh.axes) {
      recipe.stages *= axis.isStages ? axis.size : 1;
      recipe.wide += axis.size > 1 && !axis.isStages;
    }
    std::vector<AxisRequest> requests(each.mesh.size());
    MachineOr<MeshBinding> bound =
        isMeshGiven ? MachineOr<MeshBinding>(probe.binding)
                    : bindMesh(machine, each.mesh, requests, 0);
    const auto *binding = std::get_if<MeshBinding>(&bound);
    if (!binding)
      continue;
    recipe.bound = boundOf(recipe.stages);
    recipe.work = workOf(recipe);
    recipe.leastWeights = leastWeights(each.mesh);
    recipe.estimate =
        estimate(CollectiveModel(machine, each.mesh, *binding), recipe);
    recipes.push_back(std::move(recipe));
  }
  if (list.empty())
    note = "no roles suit the mesh";
}

/// Forms of all that the program leaves open and the framework has, the one of
/// the recipe's estimate first.
std::vector<StepForm> RecipeSearch::formsOf(const Recipe &recipe,
                                            bool isFull) const {
  const FrameworkSpace &space = spaceOf(*options.framework);
  std::vector<StepForm> forms(1);
  if (isOffloadOpen && (!space.offloads || recipe.stages > 1))
    forms.front().offload = "none";
  if (isRematOpen) {
    StepForm form = forms.front();
    forms.clear();
    for (llvm::StringRef remat : space.remats) {
      form.remat = remat.str();
      forms.push_back(
          remat == "products" ? keepingProducts(text, pointOf(recipe), form)
          : remat == "norms"  ? recomputing(text, pointOf(recipe), form, isNorm)
                              : form);
    }
    if (recipe.estimate.isRecomputed && !isFull)
      std::reverse(forms.begin(), forms.end());
  }
  if (recipe.stages == 1 || !isOrderOpen)
    return forms;
  std::vector<StepForm> inOrders;
  for (const StepForm &form : forms)
    for (llvm::StringRef order :
         isFull ? space.orders : space.orders.take_front(1)) {
      inOrders.push_back(form);
      inOrders.back().schedule = order.str();
    }
  return inOrders;
}

/// A plan of this form of a step that has the choices of a search alone, those
/// that the form leaves open; null of another form.
static std::shared_ptr<const StepChoice>
withoutForm(const std::shared_ptr<const StepChoice> &plan,
            const StepForm &form) {
  if (!plan)
    return nullptr;
  StepForm own = plan->form;
  own.microbatches = form.microbatches;
  if (!(own == form))
    return nullptr;
  auto made = std::make_shared<StepChoice>(*plan);
  made->form = {};
  made->form.microbatches = plan->form.microbatches;
  return made;
}

/// The fastest form that fits, or else that of the least memory; the first one
/// that fits where that will do.
std::optional<StepChoice>
RecipeSearch::chooseForm(const Recipe &recipe, bool isFull,
                         const MeshChoiceOptions &how) const {
  if (!recipe.roles)
    return chooseStep(text, pointOf(recipe), how);
  auto key = [&](const StepChoice &choice) {
    const Report &report = choice.report;
    double value =
        report.memory.fits ? report.plan.value : double(report.memory.peak);
    return std::pair(!report.memory.fits, value);
  };
  std::optional<StepChoice> best;
  double work = 0;
  for (const StepForm &form : formsOf(recipe, isFull)) {
    Point point = pointOf(recipe);
    point.push_back(stepSetting(form));
    MeshChoiceOptions own = how;
    own.known = withoutForm(how.known, form);
    std::optional<StepChoice> choice = chooseStep(text, point, own);
    if (!choice)
      continue;
    work += choice->work;
    StepForm made = form;
    if (choice->form.microbatches)
      made.microbatches = choice->form.microbatches;
    if (choice->form.offload)
      made.offload = choice->form.offload;
    choice->form = std::move(made);
    if (!best || key(*choice) < key(*best))
      best = std::move(choice);
    if (!isFull && best->report.memory.fits)
      break;
  }
  if (best)
    best->work = work;
  return best;
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

std::vector<size_t> RecipeSearch::byEstimate() const {
  std::vector<size_t> order(recipes.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  llvm::stable_sort(order, [&](size_t a, size_t b) {
    return std::pair(recipes[a].estimate.seconds, recipes[a].wide) <
           std::pair(recipes[b].estimate.seconds, recipes[b].wide);
  });
  return order;
}

/// Those with a plan: of those that fit the fastest first, then those of the
/// least memory.
std::vector<size_t> RecipeSearch::byTime() const {
  std::vector<size_t> order;
  for (size_t i : byEstimate())
    if (recipes[i].plan)
      order.push_back(i);
  llvm::stable_sort(order, [&](size_t a, size_t b) {
    auto key = [&](const Recipe &recipe) {
      return std::tuple(!recipe.fits(),
                        recipe.fits() ? recipe.plan->value : recipe.plan->peak,
                        recipe.wide + (recipe.stages > 1));
    };
    return key(recipes[a]) < key(recipes[b]);
  });
  return order;
}

/// The roles of a recipe's axes, their sizes aside, its level of ZeRO, and
/// whether it has stages.
std::vector<int> RecipeSearch::shapeOf(const Recipe &recipe) const {
  std::vector<int> shape = {recipe.stages > 1, int(recipe.roles->zero)};
  for (const AxisRoles::Axis &axis : recipe.roles->axes)
    if (recipe.mesh.mesh.axes[*recipe.mesh.mesh.find(axis.name)].size > 1)
      shape.push_back(int(axis.role));
  return shape;
}

/// The first recipe of each shape: of those with about its least estimate, the
/// one of the least states, which are surer to fit.
std::vector<size_t>
RecipeSearch::firstsOfShapes(llvm::ArrayRef<size_t> order) const {
  struct Shape {
    size_t place = 0;
    double leastSeconds = 0;
  };
  std::map<std::vector<int>, Shape> shapes;
  std::vector<size_t> firsts;
  for (size_t i : order) {
    const Estimate &own = recipes[i].estimate;
    auto [found, isNew] = shapes.try_emplace(shapeOf(recipes[i]),
                                             Shape{firsts.size(), own.seconds});
    if (isNew)
      firsts.push_back(i);
    size_t &first = firsts[found->second.place];
    if (own.seconds <= (1 + kAlike) * found->second.leastSeconds &&
        own.states < recipes[first].estimate.states)
      first = i;
  }
  return firsts;
}

/// All devices split the batch and the weights.
static bool isPlainFsdp(const Recipe &recipe) {
  return recipe.stages == 1 && recipe.wide == 1 &&
         recipe.roles->zero == AxisRoles::Zero::Weights &&
         llvm::any_of(recipe.roles->axes, [](const AxisRoles::Axis &axis) {
           return axis.role == AxisRoles::Role::Sharded;
         });
}

/// Plans the first one of each shape, and then others of the best one's. Plain
/// FSDP is among the first two: it is quick to plan, and where it is the best,
/// what is estimated to be slower is skipped.
void RecipeSearch::planShapes(llvm::ArrayRef<size_t> order, double work) {
  std::vector<size_t> firsts = firstsOfShapes(order);
  auto fsdp =
      llvm::find_if(firsts, [&](size_t i) { return isPlainFsdp(recipes[i]); });
  if (fsdp != firsts.begin() && fsdp != firsts.end())
    std::rotate(firsts.begin() + 1, fsdp, fsdp + 1);
  planSome(firsts, work / 2, /*isFull=*/false);
  std::vector<size_t> others(order);
  llvm::erase_if(others, [&](size_t i) {
    return llvm::is_contained(firsts, i) ||
           (best && shapeOf(recipes[i]) != shapeOf(recipes[*best]));
  });
  if (!isGoodEnough())
    planSome(others, work / 2, /*isFull=*/false);
}

/// Those that all choices of the step may make the best.
std::vector<size_t> RecipeSearch::promising() const {
  std::vector<size_t> order = byTime();
  llvm::erase_if(order, [&](size_t i) {
    const Recipe &recipe = recipes[i];
    if (recipe.roles && !isLarge())
      return false;
    return (recipe.isFull && isLarge()) ||
           (best &&
            (!recipe.fits() ||
             double(recipe.plan->value) >
                 (1 + kPromising) * double(recipes[*best].plan->value)));
  });
  order.resize(std::min(order.size(), limits().refined));
  return order;
}

/// True of a recipe of a large program that has all its choices, or was not
/// planned and is estimated to take longer than the best one.
bool RecipeSearch::isUnlikely(const Recipe &recipe) const {
  if (!isLarge())
    return false;
  return recipe.isFull ||
         (best && !recipe.plan && recipe.estimate.fits &&
          recipe.estimate.seconds >=
              kSurelyMore * toSeconds(recipes[*best].plan->value));
}

/// True of recipes of a large program for which the same forms of the step do,
/// as a rule.
bool RecipeSearch::isLike(const Recipe &a, const Recipe &b) const {
  return isLarge() && !a.roles && a.wide == b.wide &&
         (a.stages > 1) == (b.stages > 1);
}

/// True if a recipe that is like this one has all its choices: they gain about
/// as much here, and this one's first form is no faster than the best plan.
bool RecipeSearch::isSettledByOthers(const Recipe &recipe) const {
  return best && recipe.fits() &&
         recipe.plan->value >= recipes[*best].plan->value &&
         llvm::any_of(recipes, [&](const Recipe &other) {
           return other.isFull && isLike(recipe, other);
         });
}

bool RecipeSearch::isOutdone(const Recipe &recipe) const {
  return best && recipe.bound >= recipes[*best].plan->value;
}

/// True if a mesh can save at most this part of the best step of a large
/// program: without stages, the rest is neither communication nor
/// recomputation.
bool RecipeSearch::leavesAtMost(double part) const {
  if (!best || recipes[*best].stages > 1 || !isLarge())
    return false;
  const Report &report = recipes[*best].found->report;
  double rest = report.time.exposed;
  if (isRematOpen)
    rest += report.training->recompute;
  return rest <= part * report.time.scheduled;
}

/// True if others need no look.
bool RecipeSearch::isGoodEnough() const {
  return (best && options.seeksFit) || leavesAtMost(kSmallRest);
}

void RecipeSearch::planRound(llvm::ArrayRef<size_t> round, bool isFull) {
  std::vector<std::shared_ptr<const StepChoice>> choices(round.size());
  runner.runAlone(round.size(), [&](size_t i) {
    const Recipe &recipe = recipes[round[i]];
    // One that has its first form.
    if (!isFull && recipe.found) {
      choices[i] = recipe.found;
      return;
    }
    MeshChoiceOptions how = options;
    how.jobs = std::max<unsigned>(1, options.jobs / unsigned(round.size()));
    how.showProgress = false;
    how.takesFirstForm = !isFull;
    if (std::optional<double> plans = limits().ofStep)
      how.stepWork =
          *plans * size.operations * std::pow(kWorkPerAxis, recipe.wide);
    if (isScreened())
      how.plan.effort = kQuickEffort;
    how.known = recipe.found;
    how.plan.timeLimitSeconds = runner.deadline().remaining();
    // The first one is planned in any case.
    if ((best || i > 0) && !runner.hasTime())
      return;
    if (std::optional<StepChoice> choice = chooseForm(recipe, isFull, how))
      choices[i] = std::make_shared<const StepChoice>(std::move(*choice));
  });
  bool isLate = !runner.hasTime();
  isCut |= isLate;
  for (auto [i, choice] : llvm::zip_equal(round, choices)) {
    Recipe &recipe = recipes[i];
    if (!choice) {
      recipe.isImpossible = !recipe.plan && !isLate;
      continue;
    }
    if (choice == recipe.found)
      continue;
    unsigned wide = recipe.roles ? std::max(1u, recipe.wide) : recipe.wide;
    spent += choice->work / std::pow(kWorkPerAxis, wide) / size.operations *
             recipe.work;
    take(recipe, std::move(choice), isFull);
  }
  findBest();
}

/// After an interrupt, a recipe has a moment to be planned, if none has a plan.
void RecipeSearch::planLast(size_t last) {
  MeshChoiceOptions how = options;
  how.interrupted = nullptr;
  how.takesFirstForm = true;
  how.plan.effort = kQuickEffort;
  how.plan.timeLimitSeconds = kSecondsAfterInterrupt;
  std::optional<StepChoice> choice = chooseForm(recipes[last], false, how);
  isCut = true;
  if (choice && !choice->report.plan.noneInTime)
    take(recipes[last], std::make_shared<const StepChoice>(std::move(*choice)),
         /*isFull=*/false);
}

/// Keeps the better one of a recipe's plans.
void RecipeSearch::take(Recipe &recipe,
                        std::shared_ptr<const StepChoice> choice, bool isFull) {
  PlanFigures figures = figuresOf(choice->report);
  recipe.isFull |= isFull;
  if (recipe.fits() && (!figures.fits || recipe.plan->value < figures.value))
    return;
  recipe.plan = std::move(figures);
  recipe.found = std::move(choice);
}

void RecipeSearch::findBest() {
  std::vector<size_t> order = byTime();
  best.reset();
  if (!order.empty() && recipes[order.front()].fits())
    best = order.front();
}

/// True if recipes are compared by plans that took little effort: only few are
/// worth more.
bool RecipeSearch::isScreened() const {
  return isLarge() && options.plan.objective == Objective::Scheduled &&
         !options.plan.isQuick();
}

/// The search among a step's forms, the chosen one as it is planned now.
static Report::StepSearch withFinal(Report::StepSearch search,
                                    const StepChoice &made) {
  const Report::StepSearch::Variant &own = made.search.variants.front();
  Report::StepSearch::Variant &chosen = search.variants.front();
  chosen.value = own.value;
  chosen.scheduled = own.scheduled;
  chosen.memory = own.memory;
  chosen.fits = own.fits;
  chosen.gap = own.gap;
  return search;
}

/// Plans a recipe with all effort, and the forms of its step unless they are a
/// framework's.
std::optional<StepChoice> RecipeSearch::planFinal(const Recipe &recipe) const {
  Point point = pointOf(recipe);
  if (options.framework)
    point.push_back(stepSetting(recipe.found->form));
  MeshChoiceOptions how = options;
  how.showProgress = false;
  how.plan.timeLimitSeconds = runner.deadline().remaining();
  how.start = recipe.found->labels;
  how.plan.effort = kFinalEffort;
  return chooseStep(text, point, how);
}

/// Keeps a plan of all effort, unless it does not fit, or is slower where time
/// was up.
void RecipeSearch::takeFinal(Recipe &recipe, std::optional<StepChoice> choice) {
  recipe.isFinal = true;
  if (!choice || !choice->report.memory.fits ||
      (recipe.fits() && figuresOf(choice->report).value > recipe.plan->value))
    return;
  if (options.framework) {
    choice->form = recipe.found->form;
    choice->search = withFinal(recipe.found->search, *choice);
  }
  recipe.plan = figuresOf(choice->report);
  recipe.found = std::make_shared<const StepChoice>(std::move(*choice));
}

/// The best recipe, or one that little effort may have taken for slower and
/// that is no larger.
bool RecipeSearch::isRival(const Recipe &recipe) const {
  const Recipe &known = recipes[*best];
  return recipe.stages <= known.stages && recipe.wide <= known.wide &&
         double(recipe.plan->value) <=
             (1 + kHardlySlower) * double(known.plan->value);
}

/// The recipe that is planned with all effort next: of the best one and its
/// rivals the smallest; where none fits, that of the least memory.
std::optional<size_t> RecipeSearch::nextFinal() const {
  std::vector<size_t> order = byTime();
  order.resize(std::min(order.size(), best ? kMostFinals : 1));
  llvm::erase_if(order, [&](size_t i) {
    return recipes[i].isFinal || (best && !isRival(recipes[i]));
  });
  if (order.empty())
    return std::nullopt;
  auto size = [&](size_t i) {
    return std::pair(recipes[i].stages, recipes[i].wide);
  };
  return *llvm::min_element(
      order, [&](size_t a, size_t b) { return size(a) < size(b); });
}

void RecipeSearch::planFinals() {
  while (std::optional<size_t> next = nextFinal()) {
    if (!runner.hasTime())
      return;
    takeFinal(recipes[*next], planFinal(recipes[*next]));
    findBest();
  }
}

/// Plans recipes in this order in rounds, as long as there is work left, the
/// first ones in any case.
void RecipeSearch::planSome(llvm::ArrayRef<size_t> order, double work,
                            bool isFull) {
  spent = 0;
  size_t next = 0;
  bool isTried = false;
  bool isFirst = llvm::none_of(
      recipes, [](const Recipe &recipe) { return recipe.plan.has_value(); });
  while (next < order.size() && !isGoodEnough()) {
    std::vector<size_t> round;
    double takes = 0;
    // The gap of the first ones decides on the others.
    size_t most = isFirst ? kFirstRound : kRound;
    for (; next < order.size() && round.size() < most; ++next) {
      const Recipe &recipe = recipes[order[next]];
      if (isOutdone(recipe) || isUnlikely(recipe) ||
          (isFull && isSettledByOthers(recipe)))
        continue;
      // The first of those that are alike decides on the others.
      if (isFull && llvm::any_of(round, [&](size_t other) {
            return isLike(recipe, recipes[other]);
          }))
        break;
      takes += recipe.work;
      if (!isFirst && spent + takes > work)
        break;
      round.push_back(order[next]);
    }
    if (round.empty())
      return;
    // Where nothing has a plan yet, one round is for it, whatever the time.
    if ((!isFirst || isTried) && !runner.hasTime()) {
      isCut = true;
      return;
    }
    planRound(round, isFull);
    isTried = true;
    isFirst &= llvm::none_of(
        recipes, [](const Recipe &recipe) { return recipe.plan.has_value(); });
  }
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

Report::MeshSearch::Candidate
RecipeSearch::describe(const Recipe &recipe) const {
  Report::MeshSearch::Candidate result;
  result.mesh = toString(recipe.mesh);
  if (recipe.bound > 0)
    result.bound = toSeconds(recipe.bound);
  Report::MeshSearch::Candidate::Recipe &step = result.recipe.emplace();
  step.stages = recipe.stages;
  if (!recipe.plan)
    return result;
  const PlanFigures &plan = *recipe.plan;
  result.plan = {plan.status,
                 toSeconds(plan.value),
                 toSeconds(plan.scheduled),
                 std::nullopt,
                 plan.peak,
                 plan.fits};
  if (plan.bound && *plan.bound > 0)
    result.plan->gap = double(plan.value - *plan.bound) / double(*plan.bound);
  const Report &report = recipe.found->report;
  step.microbatches = report.training->microbatches;
  step.remat = recipe.found->search.variants.front().remat;
  if (recipe.found->search.variants.front().remat == "as written")
    step.remat = report.training->remat;
  step.mfu = report.flops.mfu;
  if (report.stages) {
    step.microbatches = report.stages->microbatches;
    step.schedule = report.stages->order;
    step.bubble = report.stages->bubble;
  }
  return result;
}

std::vector<Report::MeshSearch::Tradeoff> RecipeSearch::frontier() const {
  std::vector<Report::MeshSearch::Tradeoff> all, best;
  for (size_t i : byTime())
    for (const Report::StepSearch::Variant &form :
         recipes[i].found->search.variants)
      if (form.fits && form.scheduled && form.memory)
        all.push_back({toString(recipes[i].mesh), form.remat, form.microbatches,
                       *form.scheduled, *form.memory});
  llvm::stable_sort(all, [](const auto &a, const auto &b) {
    return std::pair(a.scheduled, a.memory) < std::pair(b.scheduled, b.memory);
  });
  for (Report::MeshSearch::Tradeoff &each : all)
    if (best.empty() ||
        (best.size() < kMostTradeoffs &&
         double(each.memory) <= (1 - kLessMemory) * double(best.back().memory)))
      best.push_back(std::move(each));
  return best;
}

Report::MeshSearch RecipeSearch::summary(size_t chosen) const {
  Report::MeshSearch result;
  result.ofRecipes = true;
  result.isCut = isCut;
  result.isInterrupted = isCut && options.isInterrupted();
  result.frontier = frontier();
  result.note = note;
  result.meshes = int64_t(recipes.size()) + left;
  result.open = left;
  std::optional<Picoseconds> least;
  std::vector<size_t> order = byTime();
  llvm::erase(order, chosen);
  for (auto [i, recipe] : llvm::enumerate(recipes)) {
    if (i == chosen)
      continue;
    if (recipe.isImpossible) {
      ++result.impossible;
      continue;
    }
    if (!recipe.plan)
      order.push_back(i);
    least = std::min(least.value_or(recipe.bound), recipe.bound);
    ++(isOutdone(recipe) ? result.ruledOut : result.open);
  }
  // On as many devices, no form takes less on another mesh or in stages.
  const auto &ofForms = recipes[chosen].found->search.boundOfOthers;
  if (least && ofForms)
    least = std::max(*least, wholePicoseconds(*ofForms));
  if (least.value_or(0) > 0)
    result.boundOfOthers = toSeconds(*least);
  order.insert(order.begin(), chosen);
  // Only the best of those that differ in their bindings alone.
  std::vector<bool> isShown(families, false);
  for (size_t i : order) {
    if (result.best.size() == kShown)
      break;
    if (isShown[recipes[i].family])
      continue;
    isShown[recipes[i].family] = true;
    result.best.push_back(describe(recipes[i]));
  }
  return result;
}

std::optional<MeshChoice> RecipeSearch::run(std::string &error) {
  std::vector<size_t> order = byEstimate();
  double all = 0;
  for (const Recipe &recipe : recipes)
    all += recipe.work * kFormsOfStep;
  if (all <= kAllWork && !isLarge() && !options.framework) {
    planSome(order, kAllWork, /*isFull=*/true);
  } else {
    std::vector<unsigned> bindings(families, 0);
    llvm::erase_if(order, [&](size_t i) {
      const Recipe &recipe = recipes[i];
      if (isLarge() && !isMeshGiven && recipe.wide > limits().axes)
        return true;
      return !recipe.roles && bindings[recipe.family]++ >= limits().bindings;
    });
    // Where all choices of the first recipes leave nothing to gain, others need
    // no look.
    if (!options.framework) {
      planSome(llvm::ArrayRef(order).take_front(kFirstRound), limits().first,
               /*isFull=*/false);
      if (leavesAtMost(kPromising))
        planSome(size_t(*best), limits().full, /*isFull=*/true);
    }
    if (options.framework && isLarge())
      planShapes(order, limits().first);
    else if (!isGoodEnough())
      planSome(order, limits().first, /*isFull=*/false);
    if (!isGoodEnough() && !options.seeksFit)
      planSome(promising(), limits().full, /*isFull=*/true);
    if (isScreened() && !options.seeksFit)
      planFinals();
  }
  order = byTime();
  if (order.empty() && options.isInterrupted() && !recipes.empty()) {
    planLast(byEstimate().front());
    order = byTime();
  }
  if (order.empty() && options.isInterrupted()) {
    error = "interrupted before any plan was found";
    return std::nullopt;
  }
  if (order.empty()) {
    MLIRContext context(MLIRContext::Threading::DISABLED);
    Evaluator evaluator(text, options.plan, options.file);
    evaluator.stopAt(options.interrupted);
    error = recipes.empty()
                ? (options.framework ? "the roles of its axes fit no mesh of "
                                       "the machine"
                                     : "no mesh has all chips")
                : evaluator.plan(Variant::at(pointOf(recipes[0]))).error;
    return std::nullopt;
  }
  const Recipe &chosen = recipes[order.front()];
  MeshChoice choice{meshSetting(chosen.mesh, where), toString(chosen.mesh),
                    summary(order.front())};
  choice.step = chosen.found;
  choice.roles = chosen.roles;
  return choice;
}

std::optional<MeshChoice> shardc::chooseRecipe(const ProgramText &text,
                                               llvm::ArrayRef<Setting> settings,
                                               const Program &probe,
                                               const MeshChoiceOptions &options,
                                               std::string &error) {
  return RecipeSearch(text, settings, probe, options).run(error);
}
