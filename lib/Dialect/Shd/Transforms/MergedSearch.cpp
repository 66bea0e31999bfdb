//===- MergedSearch.cpp - Plans on meshes of many axes ---------*- C++ -*-===//

#include "shardc/Dialect/Shd/Transforms/MergedSearch.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"
#include "shardc/Dialect/Shd/Transforms/Passes.h"
#include "shardc/Dialect/Shd/Transforms/PlanEvaluator.h"
#include "shardc/Solver/Solve.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

/// Axes that are left after merging, at most: real models are searched in a
/// second or two on so many.
static constexpr unsigned kMergedAxes = 3;
/// Mergings that are searched: all of up to five axes, six of which merge into
/// three.
static constexpr size_t kMaxMergings = 6;
/// Work, in table entries, for the plan of the least `upper` of one merging or
/// round.
static constexpr double kUpperWork = 3e8;
/// Rounds around the best plan: how many at most, the work of each in parts of
/// the usual search, and the part of the time that each must gain. A network
/// around a plan has a hundredth of the entries of one of all labels.
static constexpr unsigned kMaxRounds = 6;
static constexpr double kRoundPart = 0.5, kWorthRound = 1e-3;
/// A gap at which no other merging is searched.
static constexpr double kNoGap = 1e-4;

namespace {
class MergedSearch {
public:
  MergedSearch(PlanningContext &context, ProgramOp program,
               const NetworkOptions &networkOptions,
               const NetworkSearchOptions &options,
               std::optional<solver::Cost> bound)
      : context(context), program(program), networkOptions(networkOptions),
        options(options), bound(bound) {}

  std::optional<MergedPlan> run();

private:
  using Module = OwningOpRef<ModuleOp>;

  Module copyProgram();
  void propagate();
  bool searchMergings(unsigned axes);
  void improve();
  bool searchMerging(LabelChoice choice);
  bool searchAround(LabelChoice choice);
  void evaluate(ProgramOp copy, const PlanNetwork &network,
                SearchedPlan &found);
  void keep(LabelChoice choice, const PlanNetwork &network, SearchedPlan found);
  std::optional<std::vector<solver::Label>>
  expressBest(const PlanNetwork &network) const;
  bool isBetter(const SearchedPlan &found) const;
  bool isWithin(double gap) const;
  bool isTimeUp() const { return options.deadline.expired(); }

  PlanningContext &context;
  ProgramOp program;
  const NetworkOptions &networkOptions;
  const NetworkSearchOptions &options;
  /// The time that no plan takes less than.
  std::optional<solver::Cost> bound;
  std::optional<MergedPlan> best;
  /// The labels of the best plan.
  PlanLabels bestLabels;
  /// Those of the plan of `--opt=propagate`, if there is one, and of the best
  /// plan of each merging.
  std::vector<PlanLabels> plans;
};
} // namespace

static ProgramOp programOf(ModuleOp module) {
  return *module.getOps<ProgramOp>().begin();
}

/// A search leaves its pins in the program: each has a copy of its own.
MergedSearch::Module MergedSearch::copyProgram() {
  Module module = ModuleOp::create(program->getLoc());
  module->push_back(program->clone());
  return module;
}

/// Propagates the user's pins to their surroundings, on single axes too.
void MergedSearch::propagate() {
  Module module = copyProgram();
  PassManager manager(program->getContext());
  OpPassManager &passes = manager.nest<ProgramOp>();
  passes.addPass(createShdPropagate());
  passes.addPass(createShdReplicateOpen());
  passes.addPass(createShdFusionGroups());
  if (failed(manager.run(*module)))
    return;
  NetworkOptions fixed;
  fixed.fixed = true;
  std::variant<PlanNetwork, NoNetwork> built =
      buildNetwork(context, programOf(*module), fixed);
  auto *network = std::get_if<PlanNetwork>(&built);
  if (!network || network->problem.check())
    return;
  solver::Solution solution = solver::solve(network->problem);
  if (solution.assignment.empty())
    return;
  PlanLabels labels = labelsOf(*network, solution.assignment);
  Graph graph = buildGraph(program);
  if (labels.chunks.size() == graph.chunks.size() &&
      labels.stored.size() == graph.values.size())
    plans.push_back(std::move(labels));
}

/// A plan that fits takes less time than the best; where none fits, it takes
/// less memory.
bool MergedSearch::isBetter(const SearchedPlan &found) const {
  if (found.solution.assignment.empty())
    return false;
  if (!best || found.fits() != best->found.fits())
    return !best || found.fits();
  return found.fits() ? found.solution.cost < best->found.solution.cost
                      : found.solution.peak < best->found.solution.peak;
}

/// No plan is faster than the best by more than a part of its time.
bool MergedSearch::isWithin(double gap) const {
  return bound && best && best->found.fits() &&
         best->found.of == options.objective &&
         double(best->found.solution.cost) <= double(*bound) * (1 + gap);
}

/// The best plan as an assignment of another network that has its labels.
std::optional<std::vector<solver::Label>>
MergedSearch::expressBest(const PlanNetwork &network) const {
  solver::Problem problem = network.problem;
  for (auto [variable, kept] :
       llvm::zip_equal(problem.variables, labelsIn(network, bestLabels)))
    for (auto [cost, isKept] : llvm::zip_equal(variable.costs, kept))
      if (!isKept)
        cost = solver::kForbidden;
  solver::Options how;
  how.maxWork = kUpperWork;
  solver::Solution solution = solver::solve(problem, how);
  if (solution.assignment.empty())
    return std::nullopt;
  return std::move(solution.assignment);
}

/// The network of a program that has some labels; nothing if there is none.
static std::optional<PlanNetwork> networkOf(PlanningContext &context,
                                            ProgramOp program,
                                            NetworkOptions options,
                                            const LabelChoice &choice) {
  options.choice = &choice;
  std::variant<PlanNetwork, NoNetwork> built =
      buildNetwork(context, program, options);
  auto *network = std::get_if<PlanNetwork>(&built);
  if (!network || network->problem.check())
    return std::nullopt;
  return std::move(*network);
}

/// Takes the time of the objective for the cost of a plan of the least `upper`,
/// whose collectives may cost less where they divide blocks.
void MergedSearch::evaluate(ProgramOp copy, const PlanNetwork &network,
                            SearchedPlan &found) {
  if (!found.fits())
    return;
  std::optional<EvaluatedPlan> times =
      PlanEvaluator(context, copy, network)(found.solution.assignment);
  if (!times)
    return;
  found.of = options.objective;
  found.solution.cost = objectiveTime(*times, options.objective);
}

void MergedSearch::keep(LabelChoice choice, const PlanNetwork &network,
                        SearchedPlan found) {
  if (found.solution.assignment.empty())
    return;
  PlanLabels labels = labelsOf(network, found.solution.assignment);
  if (!choice.blocks.empty())
    plans.push_back(labels);
  if (!isBetter(found))
    return;
  bestLabels = std::move(labels);
  best = MergedPlan{std::move(choice), std::move(found)};
}

/// The plan of the least `upper` where blocks of axes are one; true if there is
/// a network.
bool MergedSearch::searchMerging(LabelChoice choice) {
  Module module = copyProgram();
  NetworkOptions untimed = networkOptions;
  untimed.measureResources = untimed.measureLinks = false;
  std::optional<PlanNetwork> network =
      networkOf(context, programOf(*module), untimed, choice);
  if (!network)
    return false;
  NetworkSearchOptions upper = options;
  upper.objective = Objective::Upper;
  if (options.objective != Objective::Upper) {
    upper.maxUpperWork = kUpperWork;
    upper.progress = nullptr;
  }
  SearchedPlan found =
      searchNetwork(context, programOf(*module), *network, upper);
  evaluate(programOf(*module), *network, found);
  keep(std::move(choice), *network, std::move(found));
  return true;
}

/// Searches the plans around the best; true if there is a network.
bool MergedSearch::searchAround(LabelChoice choice) {
  Module module = copyProgram();
  std::optional<PlanNetwork> network =
      networkOf(context, programOf(*module), networkOptions, choice);
  if (!network)
    return false;
  NetworkSearchOptions limited = options;
  limited.maxWork *= kRoundPart;
  if (options.objective != Objective::Upper)
    limited.maxUpperWork = kUpperWork;
  if (best->found.fits() && best->found.of == options.objective)
    limited.cutoff = best->found.solution.cost;
  // The bound is that of these labels alone.
  if (options.progress)
    limited.progress = [&](const solver::SearchProgress &progress) {
      if (progress.cost &&
          (!limited.cutoff || *progress.cost < *limited.cutoff))
        options.progress({progress.cost, std::nullopt});
    };
  std::vector<std::vector<solver::Label>> starts;
  if (auto start = expressBest(*network))
    starts.push_back(std::move(*start));
  SearchedPlan found = searchNetwork(context, programOf(*module), *network,
                                     limited, std::move(starts));
  keep(std::move(choice), *network, std::move(found));
  return true;
}

/// Searches the mesh with so many axes after merging neighbours; true if the
/// program has a network on some.
bool MergedSearch::searchMergings(unsigned axes) {
  std::vector<AxisBlocks> mergings =
      mergeNeighbours(separateAxes(context.mesh()), axes);
  if (mergings.size() > kMaxMergings)
    mergings.resize(kMaxMergings);
  bool hasNetwork = false;
  std::vector<PlanLabels> pinned = plans;
  for (AxisBlocks &blocks : mergings)
    if (!isTimeUp() && !isWithin(kNoGap))
      hasNetwork |= searchMerging({std::move(blocks), pinned});
  return hasNetwork;
}

/// Moves from the best plan to the best one around it, while that gains.
void MergedSearch::improve() {
  for (unsigned round = 0;
       round < kMaxRounds && !isTimeUp() && !isWithin(kWorthRound); ++round) {
    SearchedPlan before = best->found;
    LabelChoice around;
    around.plans.push_back(bestLabels);
    llvm::append_range(around.plans, plans);
    if (!searchAround(std::move(around)))
      return;
    const SearchedPlan &now = best->found;
    if (!now.fits() ? now.solution.peak == before.solution.peak
                    : before.fits() &&
                          double(before.solution.cost - now.solution.cost) <=
                              kWorthRound * double(now.solution.cost))
      return;
  }
}

std::optional<MergedPlan> MergedSearch::run() {
  size_t numAxes = separateAxes(context.mesh()).size();
  if (numAxes < 2)
    return std::nullopt;
  // A merging on which pins cannot be met is left out.
  ScopedDiagnosticHandler silent(program->getContext(),
                                 [](Diagnostic &) { return success(); });
  propagate();
  for (unsigned axes = std::min(kMergedAxes, unsigned(numAxes) - 1); axes > 0;
       --axes)
    if (searchMergings(axes))
      break;
  if (best)
    improve();
  return std::move(best);
}

std::optional<MergedPlan>
shardc::shd::searchMergedAxes(PlanningContext &context, ProgramOp program,
                              const NetworkOptions &networkOptions,
                              const NetworkSearchOptions &options,
                              std::optional<solver::Cost> bound) {
  return MergedSearch(context, program, networkOptions, options, bound).run();
}
