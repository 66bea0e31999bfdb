//===- Serving.cpp - Prefill and decode planned together ------------------===//
//
// Each phase is planned freely, which bounds all pairs. Where the two place
// weights differently, each phase is planned with the layouts of the other, and
// the better pair is improved: one weight after the other, the largest first,
// takes the other phase's layout if that makes a request cheaper. Pairs are
// compared by plans of little effort, some side by side, and the best is
// planned again with all.
//
//===----------------------------------------------------------------------===//

#include "shardc/Questions/Serving.h"
#include "shardc/Optimizer/Context.h"
#include "shardc/Pipelines/Compilation.h"
#include "shardc/Questions/Evaluator.h"
#include "shardc/Report/Seconds.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include <array>
#include <cmath>

using namespace mlir;
using namespace shardc;
using shd::ServingPhase;

/// Weights whose layout is changed by itself; each takes two plans.
static constexpr size_t kMaxSwitches = 8;
/// Weights that are changed side by side, on any number of threads.
static constexpr size_t kSwitchesAtOnce = 2;
/// Plans of the first pairs: each phase free, and each with the other's
/// weights.
static constexpr int64_t kFirstPlans = 5;
/// A pair that is no farther from its lower bound is not improved.
static constexpr double kSmallGap = 0.002;

//===----------------------------------------------------------------------===//
// Figures
//===----------------------------------------------------------------------===//

static double chipsOf(const Report &report) {
  return double(report.hardware.chips);
}

double ServingPlan::tokensPerSecond() const {
  return double(serving.sequences) / token();
}

/// Continuous batching on average: while each of B sequences generates G
/// tokens, B prompts are prefilled and inserted, and decode waits.
double ServingPlan::tokensPerSecondWithPrefill() const {
  double sequences = double(serving.sequences);
  double tokens = double(serving.generate);
  double prefills = sequences / double(serving.promptBatch);
  double waits = serving.separate ? 0 : prefills * (firstToken() + insertion);
  return sequences * tokens / (tokens * token() + waits);
}

double ServingPlan::requestsPerSecond() const {
  return tokensPerSecondWithPrefill() / double(serving.generate);
}

double ServingPlan::tokensPerSecondPerChip() const {
  return tokensPerSecond() / chipsOf(*decode.report);
}

double ServingPlan::prefillServers() const {
  double each = firstToken() / double(serving.promptBatch);
  return each /
         (double(serving.generate) * token() / double(serving.sequences));
}

/// Steps of decode that one request pays for.
static double stepsOf(const shd::Serving &serving) {
  return double(serving.generate) / double(serving.sequences);
}

double ServingPlan::chipSecondsOfRequest() const {
  double inserted = serving.separate ? 0 : insertion;
  return chipsOf(*prefill.report) * (firstToken() + inserted) /
             double(serving.promptBatch) +
         chipsOf(*decode.report) * token() * stepsOf(serving);
}

std::optional<double> ServingPlan::usdOfRequest() const {
  std::optional<double> first = prefill.report->price.usd,
                        each = decode.report->price.usd;
  if (!first || !each)
    return std::nullopt;
  double inserted = serving.separate ? 0 : *first * insertion / firstToken();
  return (*first + inserted) / double(serving.promptBatch) +
         *each * stepsOf(serving);
}

std::optional<double> ServingPlan::usdPerMillionPromptTokens() const {
  std::optional<double> usd = prefill.report->price.usd;
  if (!usd)
    return std::nullopt;
  return *usd / (double(serving.promptBatch) * double(serving.prompt)) * 1e6;
}

std::optional<double> ServingPlan::usdPerMillionOutputTokens() const {
  std::optional<double> usd = decode.report->price.usd;
  if (!usd)
    return std::nullopt;
  return *usd / double(serving.sequences) * 1e6;
}

std::optional<double> ServingPlan::gap() const {
  if (!boundOfRequest || *boundOfRequest <= 0)
    return std::nullopt;
  return std::max(0.0, chipSecondsOfRequest() / *boundOfRequest - 1);
}

int64_t ServingPlan::peakMemory() const {
  return std::max(decode.report->memory.peak,
                  prefill.report->memory.peak + besidePrefill);
}

bool ServingPlan::fits() const {
  return prefill.report->fits() && decode.report->fits();
}

bool ServingPlan::meets(const ServingTargets &targets) const {
  return (!targets.firstSeconds || firstToken() <= *targets.firstSeconds) &&
         (!targets.tokenSeconds || token() <= *targets.tokenSeconds);
}

Point shardc::phasePoint(const ServingPlan &plan, const Point &point,
                         ServingPhase phase) {
  Point result = point;
  if (const std::optional<Setting> &mesh = plan.meshes[size_t(phase)])
    result.push_back(*mesh);
  result.push_back(phaseSetting(phase));
  return result;
}

//===----------------------------------------------------------------------===//
// One phase
//===----------------------------------------------------------------------===//

namespace {

/// A weight or a state of a phase.
struct Declared {
  std::string name, loc;
  std::vector<std::string> indices;
  PinPlace place;
  TensorShape shape;
  double bytes = 0;
  /// Dimensions of the batch and of the context.
  std::optional<unsigned> batchDim, contextDim;
  /// The part of a state that a decode step reads, on average.
  double readShare = 1;
};

/// What the imported program of a phase declares.
struct PhaseTensors {
  std::vector<Declared> weights, states;

  std::vector<PinPlace> places() const {
    std::vector<PinPlace> result;
    for (const std::vector<Declared> *tensors : {&weights, &states})
      for (const Declared &each : *tensors)
        result.push_back(each.place);
    return result;
  }
};

/// The mesh that was chosen for each phase, by its number.
using PhaseMeshes = std::array<std::optional<Setting>, 2>;

/// Plans the two phases, each on one mesh.
class PairSearch {
public:
  PairSearch(const ProgramText &text, const Point &point, PhaseMeshes meshes,
             const ServingOptions &options, solver::Deadline deadline,
             bool isQuick = false);

  /// The best of the first pairs. Nothing, without an error, if no pair takes
  /// fewer chip-seconds than `cutoff`.
  ServingOutcome run(std::optional<double> cutoff = {});
  /// The best pair where it is worth its plans to change one weight after the
  /// other.
  ServingOutcome improve(solver::Deadline until);

private:
  using Layouts = std::vector<Layout>;
  /// Plans of both phases with the layouts of their weights.
  struct Pair {
    Outcome prefill, decode;
    double insertion = 0;
  };
  /// A pair that is planned: its weights, and decode's plan if that is known.
  struct PairTrial {
    Layouts weights;
    std::optional<Outcome> decode = {};
  };

  Point pointOf(ServingPhase phase) const;
  bool import(ServingPhase phase, PhaseTensors &tensors);
  bool haveSameWeights();
  Variant trialOf(ServingPhase phase, const Layouts *weights,
                  std::optional<int64_t> beside) const;
  Variant variantOf(ServingPhase phase, Variant variant, const Layouts *weights,
                    std::optional<int64_t> beside) const;
  Outcome planAgain(ServingPhase phase, const Outcome &known,
                    std::optional<int64_t> beside);
  double partsOfTime() const;
  Outcome planOn(TrialPlanner &planner, Variant variant, double parts);
  std::vector<Outcome> plan(llvm::ArrayRef<Variant> variants);
  void record(const Outcome &outcome);
  Layouts weightsOf(const Outcome &outcome) const {
    return Layouts(outcome.layouts.begin(),
                   outcome.layouts.begin() + decodeTensors.weights.size());
  }
  std::optional<int64_t> besideOf(const Outcome &decode) const;
  Pair pairOf(Outcome decode, Outcome prefill);
  std::vector<bool> offerAll(std::vector<PairTrial> trials);
  void offerAlike(Outcome decode, Outcome prefill);
  std::optional<int64_t> leastBeside() const;
  double statesOf(const Outcome &decode) const;
  double insertionOf(const Outcome &prefill, const Outcome &decode);
  double transferOf(const Report &prefill, const Report &decode) const;
  ServingPlan summary(const Pair &pair) const;
  bool isBetter(const Pair &a, const Pair &b) const;
  void offer(Pair pair);
  void switchWeights();
  bool isTrial() const;
  void settle();
  bool isFarFromBound() const;
  ServingOutcome finished();
  void finish(ServingPlan &plan);
  double timeAtLastToken(ServingPlan &plan);

  const ProgramText &text;
  const Point &point;
  PhaseMeshes meshes;
  const ServingOptions &options;
  solver::Deadline deadline;
  /// Plans of one phase alone take little effort, too.
  bool isQuick;
  MLIRContext context;
  TrialRunner runner;
  shd::Serving serving;
  PhaseTensors prefillTensors, decodeTensors;
  /// For decode's machine and mesh, which are prefill's unless `separate`.
  std::unique_ptr<PlanningContext> planning;
  std::optional<Pair> best;
  /// The weights of the best pair, and those that each phase likes.
  Layouts bestWeights, decodeWeights, prefillWeights;
  int64_t planned = 0;
  /// A plan took all of its time.
  std::atomic<bool> isCutShort = false;
  std::optional<double> bound;
  std::string error, loc;
};

} // namespace

PairSearch::PairSearch(const ProgramText &text, const Point &point,
                       PhaseMeshes meshes, const ServingOptions &options,
                       solver::Deadline deadline, bool isQuick)
    : text(text), point(point), meshes(std::move(meshes)), options(options),
      deadline(deadline), isQuick(isQuick),
      context(MLIRContext::Threading::DISABLED),
      runner(
          [this] {
            auto planner = std::make_unique<Evaluator>(
                this->text, this->options.plan, this->options.file);
            planner->stopAt(this->options.interrupted);
            return planner;
          },
          {options.jobs, options.showProgress}) {
  context.printOpOnDiagnostic(false);
}

static Declared declared(shd::DeclareOp op, PinPlace place,
                         const shd::Serving &serving) {
  Declared result;
  result.name = op.getSym().str();
  result.loc = locationText(op.getLoc());
  result.place = place;
  result.shape = shd::tensorShape(op.getType());
  result.bytes = result.shape.elementBits / 8.0;
  for (int64_t extent : result.shape.extents)
    result.bytes *= double(extent);
  for (auto [dim, name] :
       llvm::enumerate(op.getIndices().getAsValueRange<StringAttr>())) {
    result.indices.push_back(name.str());
    if (name == serving.batch)
      result.batchDim = dim;
    if (name == serving.context)
      result.contextDim = dim;
  }
  return result;
}

Point PairSearch::pointOf(ServingPhase phase) const {
  Point result = point;
  if (const std::optional<Setting> &mesh = meshes[size_t(phase)])
    result.push_back(*mesh);
  result.push_back(phaseSetting(phase));
  return result;
}

/// Adds what `value` is read from to `found`, through what costs nothing to
/// read and conversions that are fused into their reader.
static void makersBehind(Value value,
                         llvm::SmallPtrSetImpl<Operation *> &found) {
  Operation *maker = value.getDefiningOp();
  if (!maker || !found.insert(maker).second)
    return;
  if (auto scatter = dyn_cast<shd::ScatterOp>(maker)) {
    makersBehind(scatter.getDestination(), found);
  } else if (isa<shd::PartOp, shd::SliceOp, shd::SplitOp, shd::MergeOp>(
                 maker)) {
    makersBehind(maker->getOperand(0), found);
  } else if (isa<shd::ElementwiseOp>(maker)) {
    for (Value operand : maker->getOperands())
      makersBehind(operand, found);
  }
}

/// The share of each state that attention reads, the largest of its readers;
/// nothing of one that no attention reads.
static llvm::DenseMap<Operation *, double> readShares(shd::ProgramOp program) {
  llvm::DenseMap<Operation *, double> shares;
  program->walk([&](shd::AttentionOp op) {
    llvm::SmallPtrSet<Operation *, 8> makers;
    makersBehind(op.getK(), makers);
    makersBehind(op.getV(), makers);
    for (Operation *maker : makers) {
      auto declare = dyn_cast<shd::DeclareOp>(maker);
      if (!declare || declare.getKind() != shd::TensorKind::State)
        continue;
      double &share = shares.try_emplace(declare, 0).first->second;
      share = std::max(share, shd::filledKeys(op));
    }
  });
  return shares;
}

/// Finds weights and states of a phase; false after an error, which is kept.
bool PairSearch::import(ServingPhase phase, PhaseTensors &tensors) {
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error || !error.empty())
      return;
    error = diagnostic.str();
    loc = locationText(diagnostic.getLocation());
  });
  std::optional<Program> program = importStep(text, &context, pointOf(phase));
  if (!program)
    return false;
  if (!program->machine) {
    error = "serving needs a machine, but the program names no hardware";
    return false;
  }
  Compilation compilation(std::move(*program));
  shd::ProgramOp op = compilation.program();
  serving = *shd::Serving::of(op);
  llvm::DenseMap<Operation *, double> shares = readShares(op);
  for (auto [number, each] : llvm::enumerate(operationsOf(op))) {
    auto declare = dyn_cast<shd::DeclareOp>(each);
    if (!declare)
      continue;
    PinPlace place{unsigned(number), std::nullopt};
    if (declare.getKind() == shd::TensorKind::Weight) {
      tensors.weights.push_back(declared(declare, place, serving));
    } else if (declare.getKind() == shd::TensorKind::State) {
      tensors.states.push_back(declared(declare, place, serving));
      if (auto share = shares.find(declare); share != shares.end())
        tensors.states.back().readShare = share->second;
    }
  }
  if (phase == ServingPhase::Decode)
    planning = createContext(op);
  return phase == ServingPhase::Prefill || planning;
}

/// False, with an error, if a weight has an extent that differs between the
/// phases, such as that of the context.
bool PairSearch::haveSameWeights() {
  for (auto [prefill, decode] :
       llvm::zip_equal(prefillTensors.weights, decodeTensors.weights))
    for (auto [index, ofPrefill, ofDecode] : llvm::zip_equal(
             decode.indices, prefill.shape.extents, decode.shape.extents)) {
      if (ofPrefill == ofDecode)
        continue;
      error = "index '" + index + "' of weight '" + decode.name + "' is " +
              std::to_string(ofPrefill) + " in prefill and " +
              std::to_string(ofDecode) +
              " in decode; expected one whose extent does not follow from that "
              "of the batch, the sequence or the context";
      loc = decode.loc;
      return false;
    }
  return true;
}

/// Plans may take the time that is left when they begin, divided by this: an
/// equal share for those of the first pairs, half for each further one.
double PairSearch::partsOfTime() const {
  return double(std::max<int64_t>(2, kFirstPlans - planned));
}

/// A phase with its weights where `weights` say; `beside` bytes of a device are
/// taken by something else. With weights, or if the search is quick, it takes
/// little effort.
Variant PairSearch::trialOf(ServingPhase phase, const Layouts *weights,
                            std::optional<int64_t> beside) const {
  Variant variant;
  if (weights || isQuick)
    variant.effort = std::min(kQuickEffort, options.plan.effort);
  return variantOf(phase, std::move(variant), weights, beside);
}

Variant PairSearch::variantOf(ServingPhase phase, Variant variant,
                              const Layouts *weights,
                              std::optional<int64_t> beside) const {
  const PhaseTensors &tensors =
      phase == ServingPhase::Prefill ? prefillTensors : decodeTensors;
  variant.point = pointOf(phase);
  variant.watched = tensors.places();
  variant.keepsPlan = true;
  if (weights)
    for (auto [weight, layout] : llvm::zip_equal(tensors.weights, *weights))
      variant.pins.push_back({weight.place, layout});
  if (beside) {
    int64_t all =
        options.plan.memoryLimit.value_or(planning->machine().usableMemory());
    variant.memoryLimit = std::max<int64_t>(1, all - *beside);
  }
  return variant;
}

/// A phase of the best pair, planned with all effort from what is known; the
/// known plan where that finds none that is faster.
Outcome PairSearch::planAgain(ServingPhase phase, const Outcome &known,
                              std::optional<int64_t> beside) {
  if (!known.isQuick)
    return known;
  Variant variant;
  variant.start = known.labels;
  Outcome again =
      plan(variantOf(phase, std::move(variant), &bestWeights, beside)).front();
  bool isBetter = again.report && again.report->fits() &&
                  (!known.report->fits() ||
                   again.report->plan.value <= known.report->plan.value);
  return isBetter ? again : known;
}

/// Plans a variant on the thread of `planner`.
Outcome PairSearch::planOn(TrialPlanner &planner, Variant variant,
                           double parts) {
  variant.timeLimitSeconds = deadline.remaining();
  if (variant.timeLimitSeconds)
    *variant.timeLimitSeconds /= parts;
  Outcome outcome = planner.plan(variant);
  if (outcome.report && variant.timeLimitSeconds &&
      outcome.report->plan.search >= *variant.timeLimitSeconds)
    isCutShort = true;
  return outcome;
}

/// Plans variants side by side.
std::vector<Outcome> PairSearch::plan(llvm::ArrayRef<Variant> variants) {
  std::vector<Outcome> outcomes(variants.size());
  double parts = partsOfTime();
  runner.run(variants.size(), [&](TrialPlanner &planner, size_t i) {
    outcomes[i] = planOn(planner, variants[i], parts);
  });
  for (const Outcome &outcome : outcomes)
    record(outcome);
  return outcomes;
}

/// Counts a plan, unless it never began, and keeps the first error.
void PairSearch::record(const Outcome &outcome) {
  if (!outcome.report && outcome.error.empty())
    return;
  ++planned;
  if (!outcome.report && error.empty()) {
    error = outcome.error;
    loc = outcome.loc;
  }
}

//===----------------------------------------------------------------------===//
// Caches
//===----------------------------------------------------------------------===//

static double numParts(const Mesh &mesh, const AxisList &axes) {
  double parts = 1;
  for (AxisIndex axis : axes)
    parts *= double(mesh.axes[axis].size);
  return parts;
}

/// Bytes of a device that decode's caches take while prefill runs.
double PairSearch::statesOf(const Outcome &decode) const {
  double bytes = 0;
  for (auto [state, layout] : llvm::zip_equal(
           decodeTensors.states, llvm::ArrayRef(decode.layouts)
                                     .drop_front(decodeTensors.weights.size())))
    bytes += state.shape.localBytes(planning->mesh(), layout);
  return bytes;
}

/// The layout of decode for the prompts of one prefill: a dimension that its
/// axes do not divide is whole.
static Layout layoutOfPrompts(const Mesh &mesh, const TensorShape &shape,
                              Layout layout) {
  for (auto [extent, axes] : llvm::zip_equal(shape.extents, layout.dims))
    if (extent % int64_t(numParts(mesh, axes)) != 0)
      axes.clear();
  return layout;
}

/// Separate machines: all bytes of the prompts' caches from all chips of the
/// smaller side at once, over the slower side's outermost level of the network.
double PairSearch::transferOf(const Report &prefill,
                              const Report &decode) const {
  double bytes = 0;
  for (const Declared &state : prefillTensors.states)
    bytes += state.bytes;
  auto bandwidthOf = [](const Report &report) {
    return report.hardware.levels.front().bandwidth;
  };
  return bytes / (std::min(chipsOf(prefill), chipsOf(decode)) *
                  std::min(bandwidthOf(prefill), bandwidthOf(decode)));
}

double PairSearch::insertionOf(const Outcome &prefill, const Outcome &decode) {
  if (serving.separate)
    return transferOf(*prefill.report, *decode.report);
  auto from =
      llvm::ArrayRef(prefill.layouts).drop_front(prefillTensors.weights.size());
  auto to =
      llvm::ArrayRef(decode.layouts).drop_front(decodeTensors.weights.size());
  double seconds = 0;
  for (auto [state, made, wanted] :
       llvm::zip_equal(prefillTensors.states, from, to)) {
    const ReshardPlan *plan = planning->planner.plan(
        state.shape, made,
        layoutOfPrompts(planning->mesh(), state.shape, wanted));
    if (plan)
      seconds += toSeconds(plan->picoseconds);
  }
  return seconds;
}

//===----------------------------------------------------------------------===//
// Pairs
//===----------------------------------------------------------------------===//

ServingPlan PairSearch::summary(const Pair &pair) const {
  ServingPlan plan;
  plan.serving = serving;
  plan.prefill = pair.prefill;
  plan.decode = pair.decode;
  plan.insertion = pair.insertion;
  plan.besidePrefill = besideOf(pair.decode).value_or(0);
  return plan;
}

static auto rankOf(const ServingPlan &plan, const ServingTargets &targets) {
  return std::tuple(!plan.fits(), !plan.meets(targets), plan.cost());
}

bool PairSearch::isBetter(const Pair &a, const Pair &b) const {
  return rankOf(summary(a), options.targets) <
         rankOf(summary(b), options.targets);
}

PairSearch::Pair PairSearch::pairOf(Outcome decode, Outcome prefill) {
  Pair result{std::move(prefill), std::move(decode)};
  result.insertion = insertionOf(result.prefill, result.decode);
  return result;
}

/// Bytes of a device that decode's caches take beside prefill; nothing on
/// separate machines.
std::optional<int64_t> PairSearch::besideOf(const Outcome &decode) const {
  if (serving.separate)
    return std::nullopt;
  return int64_t(statesOf(decode));
}

/// Plans pairs side by side, prefill with the memory that decode's caches
/// leave, and keeps the best one. Tells which are better than the best one of
/// before.
std::vector<bool> PairSearch::offerAll(std::vector<PairTrial> trials) {
  std::vector<Outcome> decodes(trials.size()), prefills(trials.size());
  double parts = partsOfTime();
  runner.run(trials.size(), [&](TrialPlanner &planner, size_t i) {
    const Layouts &weights = trials[i].weights;
    if (trials[i].decode)
      decodes[i] = std::move(*trials[i].decode);
    else if (!best || !deadline.expired())
      decodes[i] =
          planOn(planner, trialOf(ServingPhase::Decode, &weights, {}), parts);
    if (decodes[i].report)
      prefills[i] =
          planOn(planner,
                 trialOf(ServingPhase::Prefill, &weights, besideOf(decodes[i])),
                 parts);
  });
  std::optional<Pair> before = best;
  std::vector<bool> improves(trials.size(), false);
  for (size_t i = 0; i < trials.size(); ++i) {
    if (!trials[i].decode)
      record(decodes[i]);
    if (!decodes[i].report)
      continue;
    record(prefills[i]);
    if (!prefills[i].report)
      continue;
    Pair made = pairOf(std::move(decodes[i]), std::move(prefills[i]));
    improves[i] = !before || isBetter(made, *before);
    offer(std::move(made));
  }
  return improves;
}

/// Offers the plans of both phases, whose weights are alike or on machines of
/// their own; prefill is planned again where decode's caches leave it too
/// little memory.
void PairSearch::offerAlike(Outcome decode, Outcome prefill) {
  int64_t peak = prefill.report->memory.peak;
  if (!serving.separate && double(peak) + statesOf(decode) >
                               double(decode.report->memory.allowed())) {
    Layouts weights = weightsOf(decode);
    offerAll({{std::move(weights), std::move(decode)}});
    return;
  }
  offer(pairOf(std::move(decode), std::move(prefill)));
}

/// Bytes of a device that decode's caches take at least while prefill runs.
std::optional<int64_t> PairSearch::leastBeside() const {
  if (serving.separate)
    return std::nullopt;
  double bytes = 0;
  for (const Declared &state : decodeTensors.states)
    bytes += state.bytes;
  return int64_t(bytes / double(planning->mesh().numDevices()));
}

void PairSearch::offer(Pair pair) {
  if (best && !isBetter(pair, *best))
    return;
  bestWeights = weightsOf(pair.decode);
  best = std::move(pair);
}

/// One weight after the other takes the layout that the other phase likes, two
/// side by side. Of two that make a request cheaper the worse one is tried
/// again with the better, unless little effort is wanted.
void PairSearch::switchWeights() {
  const Layouts &a = decodeWeights, &b = prefillWeights;
  std::vector<size_t> order;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i])
      order.push_back(i);
  llvm::stable_sort(order, [&](size_t i, size_t j) {
    return decodeTensors.weights[i].bytes > decodeTensors.weights[j].bytes;
  });
  // All but one is a pair that was tried.
  if (order.size() < 2)
    return;
  size_t next = 0;
  while (next < std::min(order.size(), kMaxSwitches) && !deadline.expired()) {
    size_t end = std::min({next + kSwitchesAtOnce, order.size(), kMaxSwitches});
    std::vector<PairTrial> trials;
    for (size_t i : llvm::ArrayRef(order).slice(next, end - next)) {
      Layout &layout = trials.emplace_back(bestWeights).weights[i];
      layout = layout == a[i] ? b[i] : a[i];
    }
    Layouts before = bestWeights;
    std::vector<bool> improves = offerAll(std::move(trials));
    for (auto [number, improved] : llvm::enumerate(improves)) {
      size_t i = order[next + number];
      if (improved && bestWeights[i] == before[i] && !options.plan.isQuick())
        order.push_back(i);
    }
    next = end;
  }
}

/// True if the best pair was planned with little effort, and all is wanted.
bool PairSearch::isTrial() const {
  if (serving.separate || options.plan.isQuick())
    return false;
  return best->prefill.isQuick || best->decode.isQuick;
}

/// Plans the phases of the best pair with all effort, as far as they were not.
void PairSearch::settle() {
  Pair pair;
  pair.decode = planAgain(ServingPhase::Decode, best->decode, std::nullopt);
  // What is known of prefill holds beside no larger caches.
  if (statesOf(pair.decode) > statesOf(best->decode))
    pair.decode = best->decode;
  pair.prefill =
      planAgain(ServingPhase::Prefill, best->prefill, besideOf(pair.decode));
  pair.insertion = insertionOf(pair.prefill, pair.decode);
  offer(std::move(pair));
}

/// True if a better pair may be worth its plans.
bool PairSearch::isFarFromBound() const {
  ServingPlan plan = summary(*best);
  plan.boundOfRequest = bound;
  std::optional<double> gap = plan.gap();
  return !plan.fits() || !plan.meets(options.targets) || !gap ||
         *gap > kSmallGap;
}

/// A proven lower bound of a phase's time; nothing if there is none.
static std::optional<double> boundOf(const Outcome &outcome,
                                     const PlanOptions &options) {
  if (!outcome.report || options.objective != Objective::Scheduled)
    return std::nullopt;
  return outcome.report->plan.bound;
}

ServingOutcome PairSearch::run(std::optional<double> cutoff) {
  if (!import(ServingPhase::Prefill, prefillTensors) ||
      !import(ServingPhase::Decode, decodeTensors) || !haveSameWeights())
    return {std::nullopt, error, loc};
  std::vector<Outcome> free =
      plan({trialOf(ServingPhase::Decode, nullptr, std::nullopt),
            trialOf(ServingPhase::Prefill, nullptr, leastBeside())});
  Outcome &freeDecode = free[0], &freePrefill = free[1];
  if (!freeDecode.report || !freePrefill.report)
    return {std::nullopt, error, loc};
  std::optional<double> prefillBound = boundOf(freePrefill, options.plan),
                        decodeBound = boundOf(freeDecode, options.plan);
  if (prefillBound && decodeBound)
    bound = chipsOf(*freePrefill.report) * *prefillBound /
                double(serving.promptBatch) +
            chipsOf(*freeDecode.report) * *decodeBound * stepsOf(serving);
  if (cutoff && bound && *bound >= *cutoff)
    return {};
  decodeWeights = weightsOf(freeDecode);
  prefillWeights = weightsOf(freePrefill);
  if (serving.separate || decodeWeights == prefillWeights) {
    offerAlike(std::move(freeDecode), std::move(freePrefill));
    return finished();
  }
  std::vector<PairTrial> trials;
  trials.push_back({decodeWeights, std::move(freeDecode)});
  bool isLate = deadline.expired();
  if (!isLate)
    trials.push_back({prefillWeights});
  offerAll(std::move(trials));
  if (!best && isLate)
    offerAll({{prefillWeights}});
  return finished();
}

ServingOutcome PairSearch::improve(solver::Deadline until) {
  deadline = until;
  if (best && !serving.separate && isFarFromBound())
    switchWeights();
  if (best && isTrial() && !deadline.expired())
    settle();
  return finished();
}

ServingOutcome PairSearch::finished() {
  if (!best)
    return {std::nullopt, error, loc};
  ServingPlan plan = summary(*best);
  finish(plan);
  return {std::move(plan)};
}

//===----------------------------------------------------------------------===//
// What is told of the best pair
//===----------------------------------------------------------------------===//

/// The declared tensor behind parts and collectives.
static shd::DeclareOp rootOf(Value value) {
  Operation *maker = value.getDefiningOp();
  while (maker &&
         (isa<shd::PartOp, shd::ReshardOp>(maker) || shd::isCollective(maker)))
    maker = maker->getOperand(0).getDefiningOp();
  return dyn_cast_or_null<shd::DeclareOp>(maker);
}

/// Bytes of weights that a device reads in a step of an explicit plan; of
/// tables, rows alone.
static double weightBytesRead(shd::ProgramOp program, const Mesh &mesh) {
  double bytes = 0;
  program->walk([&](shd::CostOpInterface op) {
    if (isa<shd::GatherOp, shd::ReshardOp, shd::PartOp>(op.getOperation()) ||
        shd::isCollective(op))
      return;
    double runs = 1;
    for (Operation *outer = op->getParentOp(); outer;
         outer = outer->getParentOp())
      if (auto repeat = dyn_cast<shd::RepeatOp>(outer))
        runs *= double(repeat.getCount());
    for (Value operand : op->getOperands()) {
      shd::DeclareOp declare = rootOf(operand);
      if (!declare || declare.getKind() != shd::TensorKind::Weight)
        continue;
      Layout layout = shd::toLayout(mesh, shd::getSharding(operand.getType()));
      bytes +=
          runs * shd::tensorShape(operand.getType()).localBytes(mesh, layout);
    }
  });
  return bytes;
}

/// Prices the decode plan with caches as full as at the last token.
double PairSearch::timeAtLastToken(ServingPlan &plan) {
  ScopedDiagnosticHandler silence(&context, [](Diagnostic &) {});
  std::optional<Program> program =
      importStep(text, &context, pointOf(ServingPhase::Decode));
  if (!program)
    return plan.token();
  CompileOptions how{options.plan};
  how.knownPlan = plan.decode.plan;
  how.verifyPasses = false;
  Compilation compilation(std::move(*program), std::move(how));
  if (failed(compilation.plan()))
    return plan.token();
  shd::setFilledKeys(compilation.program(), serving, /*last=*/true);
  const ScheduledProgram *scheduled = compilation.schedule();
  if (!scheduled)
    return plan.token();
  plan.weightBytesRead =
      weightBytesRead(compilation.program(), compilation.source().mesh);
  std::optional<Report> report =
      buildReport(compilation, {options.file, std::nullopt});
  return report ? report->time.scheduled : plan.token();
}

void PairSearch::finish(ServingPlan &plan) {
  const Mesh &mesh = planning->mesh();
  double sequences = double(serving.sequences);
  double weightBytes = 0, stateBytes = 0, parts = 1, largest = 0;
  llvm::ArrayRef<Layout> layouts = plan.decode.layouts;
  for (auto [weight, layout] : llvm::zip(decodeTensors.weights, layouts))
    weightBytes += weight.shape.localBytes(mesh, layout);
  for (auto [state, layout] :
       llvm::zip_equal(decodeTensors.states,
                       layouts.drop_front(decodeTensors.weights.size()))) {
    double local = state.shape.localBytes(mesh, layout);
    plan.stateBytesRead += local * state.readShare;
    if (!state.batchDim)
      continue;
    plan.stateBytesPerSequence += state.bytes / sequences;
    if (state.contextDim)
      plan.stateBytesPerToken +=
          state.bytes / sequences / double(serving.capacity);
    double partsOfBatch = numParts(mesh, layout.dims[*state.batchDim]);
    stateBytes += local * partsOfBatch / sequences;
    if (state.bytes > largest) {
      largest = state.bytes;
      parts = partsOfBatch;
    }
  }
  if (stateBytes > 0)
    plan.sequencesThatFit = int64_t(
        std::max(0.0, std::floor((double(plan.decode.report->memory.allowed()) -
                                  weightBytes) /
                                 stateBytes)) *
        parts);
  plan.tokenLast = timeAtLastToken(plan);
  plan.boundOfRequest = bound;
  plan.planned = planned;
  plan.isCutShort = isCutShort;
  llvm::copy(meshes, plan.meshes);
}

//===----------------------------------------------------------------------===//
// Meshes
//===----------------------------------------------------------------------===//

namespace {
/// Tries the meshes that each phase likes by itself.
class MeshPairs {
public:
  MeshPairs(const ProgramText &text, const Point &point,
            const ServingOptions &options, solver::Deadline deadline)
      : text(text), point(point), options(options), deadline(deadline) {}

  /// The best pair on any of them.
  ServingOutcome run();
  /// Each phase on the best mesh of its own machine.
  ServingOutcome runSeparate();

private:
  bool choose(ServingPhase phase);
  void setBound(ServingPlan &plan) const;
  std::optional<ServingBound> ruledOut() const;
  std::optional<ServingBound> unlikely() const;
  std::optional<ServingBound>
  withSeconds(const std::optional<double> (&seconds)[2]) const;
  /// The time limit of one of `number` searches that are still to be made.
  solver::Deadline shareOf(size_t number) const {
    std::optional<double> left = deadline.remaining();
    if (left)
      *left /= double(number);
    return solver::Deadline(left, deadline.interruption());
  }

  const ProgramText &text;
  const Point &point;
  const ServingOptions &options;
  solver::Deadline deadline;
  bool isCutShort = false;
  /// By text, in the order in which they were found.
  std::vector<std::pair<std::string, Setting>> meshes;
  /// No mesh has a faster plan of the phase; the fastest that was found, with
  /// weights as the phase likes them.
  std::optional<double> bounds[2], fastest[2];
  std::string error, loc;
};
} // namespace

/// Meshes of each phase that are tried.
static constexpr size_t kMeshesOfPhase = 3;

bool MeshPairs::choose(ServingPhase phase) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error || !error.empty())
      return;
    error = diagnostic.str();
    loc = locationText(diagnostic.getLocation());
  });
  Point all = point;
  all.push_back(phaseSetting(phase));
  std::optional<Program> probe = importStep(text, &context, all);
  if (!probe)
    return false;
  if (!probe->autoMesh)
    return true;
  MeshChoiceOptions how;
  how.plan = options.plan;
  // Choosing meshes takes half of the time, pairs the rest.
  solver::Deadline share = shareOf(phase == ServingPhase::Decode ? 4 : 3);
  how.plan.timeLimitSeconds = share.remaining();
  how.file = options.file;
  how.workShare = options.meshWork;
  how.jobs = options.jobs;
  how.showProgress = options.showProgress;
  how.interrupted = options.interrupted;
  std::optional<MeshChoice> choice = chooseMesh(text, all, *probe, how, error);
  isCutShort |= share.expired();
  if (!choice)
    return false;
  size_t taken = 0;
  for (auto [candidate, setting] :
       llvm::zip(choice->search.best, choice->settings)) {
    // With less work, others than those that were planned cost too much.
    if (taken == kMeshesOfPhase ||
        (taken > 0 && options.meshWork < 1 && !candidate.plan))
      break;
    ++taken;
    if (llvm::none_of(meshes, [&](const auto &mesh) {
          return mesh.first == candidate.mesh;
        }))
      meshes.push_back({candidate.mesh, setting});
  }
  // That of the chosen mesh, and of all others.
  const Report::MeshSearch &search = choice->search;
  if (const auto &plan = search.best.front().plan; plan && plan->fits)
    fastest[size_t(phase)] = plan->scheduled;
  std::optional<double> own = search.best.front().bound;
  bool hasOthers = search.ruledOut + search.open > 0;
  if (own && (!hasOthers || search.boundOfOthers))
    bounds[size_t(phase)] =
        hasOthers ? std::min(*own, *search.boundOfOthers) : *own;
  return true;
}

/// The bound of the point, with what is known of each phase.
std::optional<ServingBound>
MeshPairs::withSeconds(const std::optional<double> (&seconds)[2]) const {
  if (!options.bound || options.plan.objective != Objective::Scheduled)
    return std::nullopt;
  ServingBound result = *options.bound;
  auto raise = [&](ServingPhase phase, double &figure) {
    figure = std::max(figure, seconds[size_t(phase)].value_or(0));
  };
  raise(ServingPhase::Prefill, result.firstSeconds);
  raise(ServingPhase::Decode, result.tokenSeconds);
  return result;
}

/// Set if no plan on any mesh keeps the targets for less than the cutoff, by
/// the bounds of the phases that are known so far.
std::optional<ServingBound> MeshPairs::ruledOut() const {
  std::optional<ServingBound> bound = withSeconds(bounds);
  if (!bound || (bound->keeps(options.targets) &&
                 (!options.cutoff || bound->cost() < *options.cutoff)))
    return std::nullopt;
  return bound;
}

/// Set if the phases miss the targets, or cost more than the cutoff, by more
/// than estimates are off, although each has the weights as it likes them.
std::optional<ServingBound> MeshPairs::unlikely() const {
  std::optional<ServingBound> about = withSeconds(fastest);
  if (options.meshWork >= 1 || !options.cutoff || !about ||
      (about->keeps(options.targets, kNearEstimate) &&
       about->cost() <= kNearEstimate * *options.cutoff))
    return std::nullopt;
  return about;
}

ServingOutcome MeshPairs::run() {
  for (ServingPhase phase : {ServingPhase::Decode, ServingPhase::Prefill}) {
    if (!choose(phase))
      return {std::nullopt, error, loc};
    if (std::optional<ServingBound> bound = ruledOut())
      return {std::nullopt, "", "", bound};
    if (std::optional<ServingBound> about = unlikely())
      return {std::nullopt, "", "", std::nullopt, about};
  }
  ServingOutcome best;
  std::unique_ptr<PairSearch> chosen;
  int64_t planned = 0;
  auto tryMesh = [&](size_t i) {
    PhaseMeshes both = {meshes[i].second, meshes[i].second};
    std::optional<double> cutoff;
    if (best.plan && best.plan->fits() && best.plan->meets(options.targets))
      cutoff = best.plan->chipSecondsOfRequest();
    // Improving is a search more.
    auto search = std::make_unique<PairSearch>(text, point, both, options,
                                               shareOf(meshes.size() - i + 1),
                                               /*isQuick=*/true);
    ServingOutcome found = search->run(cutoff);
    if (!found.plan) {
      if (!best.plan && best.error.empty())
        best = std::move(found);
      return;
    }
    planned += found.plan->planned;
    isCutShort |= found.plan->isCutShort;
    if (best.plan && !(rankOf(*found.plan, options.targets) <
                       rankOf(*best.plan, options.targets)))
      return;
    best = std::move(found);
    chosen = std::move(search);
  };
  for (size_t i = 0; i < meshes.size(); ++i)
    if (!best.plan || !deadline.expired())
      tryMesh(i);
  if (!best.plan)
    return best;
  if (!deadline.expired()) {
    planned -= best.plan->planned;
    best = chosen->improve(shareOf(1));
    planned += best.plan->planned;
    isCutShort |= best.plan->isCutShort;
  }
  ServingPlan &plan = *best.plan;
  plan.planned = planned;
  plan.isCutShort = isCutShort;
  setBound(plan);
  return best;
}

/// No pair on any mesh is cheaper than the bounds of both phases together.
void MeshPairs::setBound(ServingPlan &plan) const {
  plan.boundOfRequest = std::nullopt;
  if (bounds[0] && bounds[1])
    plan.boundOfRequest =
        chipsOf(*plan.prefill.report) * *bounds[size_t(ServingPhase::Prefill)] /
            double(plan.serving.promptBatch) +
        chipsOf(*plan.decode.report) * *bounds[size_t(ServingPhase::Decode)] *
            stepsOf(plan.serving);
}

ServingOutcome MeshPairs::runSeparate() {
  PhaseMeshes chosen;
  for (ServingPhase phase : {ServingPhase::Decode, ServingPhase::Prefill}) {
    meshes.clear();
    if (!choose(phase))
      return {std::nullopt, error, loc};
    if (!meshes.empty())
      chosen[size_t(phase)] = meshes.front().second;
  }
  ServingOutcome found =
      PairSearch(text, point, chosen, options, shareOf(1)).run();
  if (!found.plan)
    return found;
  // A mesh that is written has the plan's own bound.
  for (ServingPhase phase : {ServingPhase::Decode, ServingPhase::Prefill})
    if (!chosen[size_t(phase)])
      bounds[size_t(phase)] = boundOf(found.plan->of(phase), options.plan);
  setBound(*found.plan);
  found.plan->isCutShort |= isCutShort;
  return found;
}

ServingOutcome shardc::planServing(const ProgramText &text, const Point &point,
                                   const ServingOptions &options) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
  solver::Deadline deadline(options.plan.timeLimitSeconds, options.interrupted);
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  ServingOutcome outcome;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error ||
        !outcome.error.empty())
      return;
    outcome.error = diagnostic.str();
    outcome.loc = locationText(diagnostic.getLocation());
  });
  std::optional<Program> probe = importStep(text, &context, point);
  if (!probe)
    return outcome;
  bool searches = options.plan.mode == OptMode::Optimize;
  std::optional<shd::Serving> serving =
      shd::Serving::of(*probe->module->getOps<shd::ProgramOp>().begin());
  if (serving->separate && searches)
    outcome = MeshPairs(text, point, options, deadline).runSeparate();
  else if (probe->autoMesh && searches)
    outcome = MeshPairs(text, point, options, deadline).run();
  else {
    PairSearch search(text, point, {}, options, deadline);
    outcome = search.run();
    if (outcome.plan)
      outcome = search.improve(deadline);
  }
  if (std::optional<double> limit = options.plan.timeLimitSeconds;
      outcome.plan && limit) {
    outcome.plan->searchSeconds =
        std::chrono::duration<double>(Clock::now() - start).count();
  }
  if (outcome.plan)
    outcome.plan->isCutShort |= deadline.expired();
  return outcome;
}
