//===- MeshChoice.cpp - The mesh that `mesh auto` chooses -----------------===//
//
// Best first by bounds. Meshes of the same sizes are bounded together first:
// each collective at the price of the binding where it is the cheapest. What is
// not below the best plan so far is left at once; the rest is halved until each
// binding is solved by itself, again only for what is better and with the
// labels that such plans can use at all. Meshes of few axes come first, since
// they are quick to solve and their plans often as good. Other times than
// `upper` are then planned in full on the meshes that looked best.
//
// Work is counted, and done in rounds that are the same for any number of
// threads: what a round may leave is what was known before it.
//
//===----------------------------------------------------------------------===//

#include "shardc/Questions/MeshChoice.h"
#include "MeshPlanner.h"
#include "RecipeChoice.h"
#include "StepWork.h"
#include "shardc/Pipelines/Compilation.h"
#include "shardc/Questions/BatchChoice.h"
#include "shardc/Questions/ChoiceAhead.h"
#include "shardc/Questions/PlanFigures.h"
#include "shardc/Questions/ProgramSource.h"
#include "shardc/Questions/StepChoice.h"
#include "shardc/Report/Seconds.h"
#include "shardc/Solver/Deadline.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace shardc;
using solver::Cost;

/// Work of all bounds, of all plans in full, and of those that are made only to
/// be shown beside the chosen one. A mesh takes one unit for each strategy of
/// each operation.
static constexpr double kBoundWork = 3e4, kPlanWork = 2e4, kShownWork = 1e3;
/// Part of a time limit for all bounds: the rest is for plans.
static constexpr double kShareOfBounds = 0.5;
/// Meshes that are solved with the same cutoff.
static constexpr size_t kRound = 4;
/// So few bindings are solved each by itself.
static constexpr size_t kFewBindings = 2;
/// So much less work is a mesh of which most labels are known to be of no use.
static constexpr double kFewLabels = 20;
/// Meshes of a pipeline on which the choices of the step are made, too.
static constexpr size_t kRefined = 4;
/// Meshes that are shown.
static constexpr size_t kShown = 6;

namespace {

/// Meshes of the same sizes.
struct Family {
  MeshFamily meshes;
  /// Its first candidate; the others follow in the bindings' order.
  size_t first = 0;
  /// No plan on any of them takes less, by the objective.
  Cost bound = 0;
  double work = 0;
  bool isRuledOut = false, isImpossible = false;
  /// All that better plans on any of them can use, if that is known.
  std::shared_ptr<const NetworkLabels> labels = {};

  /// Work of one or some of its meshes once all were bounded together.
  double workOfSome() const { return labels ? work / kFewLabels : work; }
};

/// Some meshes of a family: so many candidates from `first`.
struct Group {
  size_t family = 0, first = 0, size = 0;
};

/// One mesh and what is known of it.
struct Candidate {
  size_t family = 0;
  const NamedBinding *binding = nullptr;
  BoundMesh mesh;
  /// By the objective.
  Cost bound = 0;
  /// The best plan's `upper` time, if it is better than all before.
  std::optional<Cost> upper = {};
  bool isImpossible = false;
  std::optional<PlanFigures> plan = {};
  /// The planned module, as bytecode.
  std::shared_ptr<const std::string> planned = {};

  bool fits() const { return plan && plan->fits; }
};

class MeshSearch {
public:
  MeshSearch(const ProgramText &text, llvm::ArrayRef<Setting> settings,
             const Program &probe, const MeshChoiceOptions &options);

  std::optional<MeshChoice> run(std::string &error);

private:
  void listCandidates(const Program &probe);
  bool hasTime() const { return runner.hasTime(); }
  bool hasTimeToBound() const { return !endOfBounds.expired(); }

  void searchUpper();
  void boundFamilies(llvm::ArrayRef<size_t> members, bool deviceOnly);
  void solveGroups(std::vector<Group> open);
  static void split(const Group &group, std::vector<Group> &open);
  void takeBound(const Group &group, MeshBound result, bool hasCutoff);
  llvm::MutableArrayRef<Candidate> membersOf(const Group &group) {
    return llvm::MutableArrayRef(candidates).slice(group.first, group.size);
  }
  void boundByWork(const Program &probe);
  void boundDevices();
  void planUpper();
  void planBest();
  void refine();
  Variant variantOf(size_t candidate) const;
  void take(size_t candidate, Outcome outcome);
  void planSome(std::vector<size_t> order, double work, bool prunes);
  void planShown();
  void planLast();

  Cost cutoff() const { return best ? *bestCost : solver::kMaxTotal; }
  bool isOutdone(size_t candidate, Cost cost) const;
  void offer(size_t candidate, Cost cost);
  std::vector<size_t> byPromise() const;
  Report::MeshSearch summary(size_t chosen) const;
  Report::MeshSearch::Candidate describe(const Candidate &candidate) const;
  size_t leastPeak() const;

  llvm::ArrayRef<Setting> settings;
  const MeshChoiceOptions &options;
  llvm::SMRange where;
  TrialRunner runner;
  solver::Deadline endOfBounds;
  /// The network of one stage bounds no pipeline: its meshes are planned, and
  /// nothing is ruled out.
  bool inStages;
  /// Without a choice of microbatches and recomputation.
  bool takesQuickSteps = true;
  std::vector<Family> families;
  /// Those of one family together.
  std::vector<Candidate> candidates;
  double boundWork;
  /// The time that no plan on any mesh takes less than, whatever the objective.
  Cost leastByWork = 0;
  /// The best plan that fits, and what it takes; while `upper` is searched, by
  /// that.
  std::optional<size_t> best;
  std::optional<Cost> bestCost;
  /// Prices of memory of the last solution.
  std::vector<double> multipliers;
  std::string firstError;
};

} // namespace

//===----------------------------------------------------------------------===//
// Candidates
//===----------------------------------------------------------------------===//

/// Strategies of all operations on so many axes, if extents allow all.
static double countStrategies(const Program &program, unsigned axes) {
  double strategies = 1;
  (*program.module).walk([&](shd::ShardingRuleOpInterface op) {
    strategies += countPlacements(axes, op.getShardingRule().factors.size());
  });
  return strategies;
}

MeshSearch::MeshSearch(const ProgramText &text,
                       llvm::ArrayRef<Setting> settings, const Program &probe,
                       const MeshChoiceOptions &options)
    : settings(settings), options(options), where(probe.autoMesh->where),
      runner(
          [&] {
            auto planner =
                std::make_unique<MeshPlanner>(text, options.plan, options.file);
            planner->takeQuickSteps();
            planner->stopAt(this->options.interrupted);
            return planner;
          },
          {options.jobs, options.showProgress, options.plan.timeLimitSeconds,
           options.interrupted}),
      endOfBounds(runner.deadline().part(kShareOfBounds)),
      inStages(!meshNames(probe).ofStages.empty()),
      boundWork(options.workShare * kBoundWork) {
  listCandidates(probe);
  boundByWork(probe);
}

void MeshSearch::listCandidates(const Program &probe) {
  MeshNames names = meshNames(probe);
  bool searches = options.plan.mode == OptMode::Optimize;
  for (MeshFamily &meshes : enumerateMeshes(*probe.machine, names)) {
    Family &family = families.emplace_back();
    family.meshes = std::move(meshes);
    unsigned wide = family.meshes.wideAxes();
    if (inStages && wide > 0)
      --wide; // no tensor lies on that of the stages
    family.work = countStrategies(probe, searches ? wide : 0);
  }
  for (size_t i = 0; i < families.size(); ++i) {
    families[i].first = candidates.size();
    for (const NamedBinding &binding : families[i].meshes.bindings)
      candidates.push_back(
          {i, &binding,
           boundMesh(families[i].meshes, binding,
                     /*renamed=*/names.areAlike && !inStages)});
  }
}

//===----------------------------------------------------------------------===//
// The least `upper` time
//===----------------------------------------------------------------------===//

/// True if the best plan is not slower than any on a candidate whose plans take
/// at least `cost`. Of equally fast meshes the one of fewest axes is better, of
/// these the first.
bool MeshSearch::isOutdone(size_t candidate, Cost cost) const {
  auto axes = [&](size_t i) {
    return families[candidates[i].family].meshes.wideAxes();
  };
  return best &&
         std::pair(*bestCost, axes(*best)) <= std::pair(cost, axes(candidate));
}

void MeshSearch::offer(size_t candidate, Cost cost) {
  if (isOutdone(candidate, cost))
    return;
  best = candidate;
  bestCost = cost;
}

/// Bounds families as long as there is work left.
void MeshSearch::boundFamilies(llvm::ArrayRef<size_t> members,
                               bool deviceOnly) {
  std::vector<size_t> affordable;
  for (size_t i : members) {
    if (boundWork < families[i].work || !hasTimeToBound())
      continue;
    boundWork -= families[i].work;
    affordable.push_back(i);
  }
  std::vector<MeshBound> bounds(affordable.size());
  runner.run(affordable.size(), [&](TrialPlanner &planner, size_t i) {
    const MeshFamily &family = families[affordable[i]].meshes;
    bounds[i] = static_cast<MeshPlanner &>(planner).bound(
        settings,
        {&family, family.bindings, cutoff(),
         deviceOnly ? std::vector<double>() : multipliers, nullptr, deviceOnly},
        endOfBounds);
  });
  for (auto [i, result] : llvm::zip_equal(affordable, bounds)) {
    Family &family = families[i];
    if (!result.error.empty() && firstError.empty())
      firstError = result.error;
    family.bound = result.bound;
    family.isRuledOut = result.isRuledOut;
    family.isImpossible = !result.error.empty() || (result.isRuledOut && !best);
    if (deviceOnly)
      continue;
    family.labels = std::move(result.labels);
    if (multipliers.empty())
      multipliers = std::move(result.multipliers);
  }
}

/// `hasCutoff`: plans were looked for that are better than one known before.
void MeshSearch::takeBound(const Group &group, MeshBound result,
                           bool hasCutoff) {
  if (!result.error.empty() && firstError.empty())
    firstError = result.error;
  for (Candidate &candidate : membersOf(group)) {
    candidate.bound = std::max(candidate.bound, result.bound);
    candidate.isImpossible =
        !result.error.empty() || (result.isRuledOut && !hasCutoff);
  }
  bool isPlan = group.size == 1 && result.cost;
  if (isPlan)
    candidates[group.first].upper = result.cost;
  if (!result.multipliers.empty() && (isPlan || multipliers.empty()))
    multipliers = std::move(result.multipliers);
}

/// The parts of a group that may have a better plan, the first one last.
void MeshSearch::split(const Group &group, std::vector<Group> &open) {
  if (group.size <= kFewBindings) {
    for (size_t i = group.size; i-- > 0;)
      open.push_back({group.family, group.first + i, 1});
    return;
  }
  size_t half = group.size / 2;
  open.push_back({group.family, group.first + half, group.size - half});
  open.push_back({group.family, group.first, half});
}

/// Solves groups in rounds, the last one first, and parts what is not ruled
/// out.
void MeshSearch::solveGroups(std::vector<Group> open) {
  while (!open.empty()) {
    std::vector<Group> round;
    while (!open.empty() && round.size() < kRound) {
      Group group = open.back();
      open.pop_back();
      const Family &family = families[group.family];
      for (Candidate &candidate : membersOf(group)) {
        candidate.bound = std::max(candidate.bound, family.bound);
        candidate.isImpossible = family.isImpossible;
      }
      bool isOver = family.isRuledOut || family.isImpossible ||
                    (best && candidates[group.first].bound >= *bestCost);
      if (isOver || boundWork < family.workOfSome() || !hasTimeToBound())
        continue;
      boundWork -= family.workOfSome();
      round.push_back(group);
    }
    std::vector<MeshBound> bounds(round.size());
    runner.run(round.size(), [&](TrialPlanner &planner, size_t i) {
      const Family &family = families[round[i].family];
      size_t offset = round[i].first - family.first;
      bounds[i] = static_cast<MeshPlanner &>(planner).bound(
          settings,
          {&family.meshes,
           llvm::ArrayRef(family.meshes.bindings).slice(offset, round[i].size),
           cutoff(), multipliers, family.labels.get(), /*deviceOnly=*/false},
          endOfBounds);
    });
    bool hasCutoff = best.has_value();
    std::vector<Group> halved;
    for (auto [group, result] : llvm::zip_equal(round, bounds)) {
      if (group.size > 1 && !result.isRuledOut && result.error.empty())
        halved.push_back(group);
      takeBound(group, std::move(result), hasCutoff);
      if (group.size == 1 && candidates[group.first].upper)
        offer(group.first, *candidates[group.first].upper);
    }
    for (const Group &group : llvm::reverse(halved))
      split(group, open);
  }
}

void MeshSearch::searchUpper() {
  for (unsigned wide = 0; wide <= kMaxAutoAxes; ++wide) {
    std::vector<size_t> level, together;
    for (auto [i, family] : llvm::enumerate(families)) {
      if (family.meshes.wideAxes() != wide)
        continue;
      level.push_back(i);
      if (family.meshes.bindings.size() > 1)
        together.push_back(i);
    }
    boundFamilies(together, /*deviceOnly=*/false);
    llvm::stable_sort(level, [&](size_t a, size_t b) {
      return families[a].bound < families[b].bound;
    });
    std::vector<Group> open;
    for (size_t i : llvm::reverse(level)) {
      Group group{i, families[i].first, families[i].meshes.bindings.size()};
      split(group, open);
    }
    solveGroups(std::move(open));
  }
}

//===----------------------------------------------------------------------===//
// Plans in full
//===----------------------------------------------------------------------===//

/// Those that look best first: by `upper`, as far as that is known, then by
/// their bounds.
std::vector<size_t> MeshSearch::byPromise() const {
  std::vector<size_t> order;
  for (size_t i = 0; i < candidates.size(); ++i)
    if (!candidates[i].isImpossible)
      order.push_back(i);
  llvm::stable_sort(order, [&](size_t a, size_t b) {
    auto key = [&](size_t i) {
      const Candidate &candidate = candidates[i];
      return std::tuple(!candidate.upper.has_value(),
                        candidate.upper.value_or(candidate.bound),
                        families[candidate.family].meshes.wideAxes());
    };
    return key(a) < key(b);
  });
  return order;
}

/// Device time bounds the other objectives from below, the least `upper` does
/// not. A mesh whose device time is above the best `upper` is above their best,
/// too.
void MeshSearch::boundDevices() {
  std::vector<size_t> all;
  for (size_t i = 0; i < families.size(); ++i)
    if (!families[i].isImpossible) {
      families[i].bound = 0;
      families[i].isRuledOut = false;
      all.push_back(i);
    }
  boundWork = options.workShare * kBoundWork;
  boundFamilies(all, /*deviceOnly=*/true);
  for (Candidate &candidate : candidates)
    candidate.bound = std::max(leastByWork, families[candidate.family].bound);
}

/// The work of the program bounds plans on all meshes, for all chips.
void MeshSearch::boundByWork(const Program &probe) {
  if (inStages || !probe.machine)
    return;
  shd::ProgramOp program = *(*probe.module).getOps<shd::ProgramOp>().begin();
  double seconds =
      leastSeconds(program, *probe.machine, double(probe.machine->numChips()));
  leastByWork = Cost(seconds * 1e12);
  for (Candidate &candidate : candidates)
    candidate.bound = leastByWork;
}

Variant MeshSearch::variantOf(size_t candidate) const {
  Point point(settings.begin(), settings.end());
  point.push_back(meshSetting(candidates[candidate].mesh, where));
  Variant variant = Variant::at(std::move(point));
  variant.timeLimitSeconds = runner.deadline().remaining();
  variant.keepsPlan = true;
  return variant;
}

/// Whether a mesh has a plan is not known where its search was interrupted.
void MeshSearch::take(size_t candidate, Outcome outcome) {
  Candidate &taken = candidates[candidate];
  taken.planned = std::move(outcome.plan);
  if (outcome.report)
    taken.plan = figuresOf(*outcome.report);
  else
    taken.isImpossible = !options.isInterrupted();
}

/// Plans meshes in this order in rounds, as long as there is work left, the
/// first that has a plan in any case; if `prunes`, without those that a bound
/// rules out.
void MeshSearch::planSome(std::vector<size_t> order, double work, bool prunes) {
  work *= options.workShare;
  size_t next = 0;
  bool isFirst = true; // nothing has a plan yet
  while (next < order.size() && !options.isInterrupted()) {
    std::vector<size_t> round;
    for (; next < order.size() && round.size() < kRound; ++next) {
      const Candidate &candidate = candidates[order[next]];
      double takes = families[candidate.family].work;
      if (candidate.plan || (prunes && isOutdone(order[next], candidate.bound)))
        continue;
      bool isAffordable = takes <= work && hasTime();
      if (isFirst && !isAffordable && !round.empty())
        break;
      if (!isFirst && !isAffordable)
        continue;
      work -= takes;
      round.push_back(order[next]);
    }
    runner.run(round.size(), [&](TrialPlanner &planner, size_t i) {
      if (!takesQuickSteps)
        static_cast<MeshPlanner &>(planner).takeFullSteps();
      take(round[i], planner.plan(variantOf(round[i])));
    });
    isFirst &=
        llvm::none_of(round, [&](size_t i) { return candidates[i].plan; });
    for (size_t i : round) {
      Candidate &candidate = candidates[i];
      if (!candidate.plan)
        continue;
      candidate.bound =
          std::max(candidate.bound, candidate.plan->bound.value_or(0));
      if (candidate.plan->fits)
        offer(i, candidate.plan->value);
    }
    for (auto [i, candidate] : llvm::enumerate(candidates))
      if (best && i != *best)
        candidate.planned = nullptr;
  }
}

/// In full, a plan may take longer than what was found with few labels: then
/// the best of those that are planned.
void MeshSearch::planUpper() {
  planSome({*best}, kPlanWork, /*prunes=*/false);
  const Candidate &found = candidates[*best];
  if (found.fits() && found.plan->value <= *bestCost)
    return;
  std::vector<size_t> order = byPromise();
  best.reset();
  for (size_t i : order)
    if (candidates[i].fits())
      offer(i, candidates[i].plan->value);
  planSome(std::move(order), kPlanWork, /*prunes=*/true);
}

/// Chooses microbatches and recomputation on the meshes that are best without
/// such a choice.
void MeshSearch::refine() {
  std::vector<size_t> order;
  for (size_t i = 0; i < candidates.size(); ++i)
    if (candidates[i].fits())
      order.push_back(i);
  llvm::stable_sort(order, [&](size_t a, size_t b) {
    return candidates[a].plan->value < candidates[b].plan->value;
  });
  if (order.empty()) // recomputation may make them fit
    order = byPromise();
  order.resize(std::min(order.size(), kRefined));
  takesQuickSteps = false;
  best.reset();
  for (size_t i : order)
    candidates[i].plan.reset();
  planSome(std::move(order), kPlanWork, /*prunes=*/true);
}

void MeshSearch::planBest() {
  std::vector<size_t> order = byPromise();
  if (options.plan.mode == OptMode::Optimize && !inStages)
    boundDevices();
  best.reset();
  planSome(std::move(order), kPlanWork, /*prunes=*/true);
}

/// Plans the meshes shown beside the chosen one, as far as that takes little
/// time: one of each family.
void MeshSearch::planShown() {
  std::vector<size_t> order;
  std::vector<bool> isSeen(families.size(), false);
  if (best) {
    isSeen[candidates[*best].family] = true;
    order.push_back(*best);
  }
  for (size_t i : byPromise())
    if (!isSeen[candidates[i].family] && order.size() < kShown) {
      isSeen[candidates[i].family] = true;
      order.push_back(i);
    }
  planSome(std::move(order), kShownWork, /*prunes=*/false);
}

/// After an interrupt, the mesh that looks best has a moment to be planned, if
/// none has a plan.
void MeshSearch::planLast() {
  std::vector<size_t> order = byPromise();
  if (order.empty() || llvm::any_of(candidates, [](const Candidate &candidate) {
        return candidate.plan.has_value();
      }))
    return;
  size_t last = order.front();
  Outcome outcome;
  runner.run(1, [&](TrialPlanner &planner, size_t) {
    Variant variant = variantOf(last);
    variant.timeLimitSeconds = kSecondsAfterInterrupt;
    variant.ignoresInterrupt = true;
    outcome = planner.plan(variant);
  });
  if (outcome.report && !outcome.report->plan.noneInTime)
    take(last, std::move(outcome));
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

Report::MeshSearch::Candidate
MeshSearch::describe(const Candidate &candidate) const {
  Report::MeshSearch::Candidate result;
  result.mesh = toString(candidate.mesh);
  if (candidate.bound > 0)
    result.bound = toSeconds(candidate.bound);
  if (const auto &plan = candidate.plan) {
    result.plan = {plan->status,
                   toSeconds(plan->value),
                   toSeconds(plan->scheduled),
                   std::nullopt,
                   plan->peak,
                   plan->fits};
    if (plan->bound && *plan->bound > 0)
      result.plan->gap =
          double(plan->value - *plan->bound) / double(*plan->bound);
  }
  return result;
}

Report::MeshSearch MeshSearch::summary(size_t chosen) const {
  Report::MeshSearch result;
  result.meshes = candidates.size();
  result.isCut = !hasTime();
  result.isInterrupted = options.isInterrupted();
  std::optional<Cost> least;
  for (auto [i, candidate] : llvm::enumerate(candidates)) {
    if (candidate.isImpossible) {
      ++result.impossible;
      continue;
    }
    if (i == chosen)
      continue;
    least = std::min(least.value_or(candidate.bound), candidate.bound);
    if (bestCost && candidate.bound >= *bestCost)
      ++result.ruledOut;
    else
      ++result.open;
  }
  if (least.value_or(0) > 0)
    result.boundOfOthers = toSeconds(*least);
  // Planned ones first, then those of the least bound.
  std::vector<size_t> order;
  for (size_t i = 0; i < candidates.size(); ++i)
    if (i != chosen && !candidates[i].isImpossible)
      order.push_back(i);
  llvm::stable_sort(order, [&](size_t a, size_t b) {
    auto key = [&](size_t i) {
      const Candidate &candidate = candidates[i];
      return std::tuple(!candidate.fits(), !candidate.plan,
                        candidate.plan ? candidate.plan->value
                                       : candidate.bound,
                        families[candidate.family].meshes.wideAxes());
    };
    return key(a) < key(b);
  });
  order.insert(order.begin(), chosen);
  for (size_t i : llvm::ArrayRef(order).take_front(kShown))
    result.best.push_back(describe(candidates[i]));
  return result;
}

/// Where nothing fits: the plan of least memory.
size_t MeshSearch::leastPeak() const {
  return std::min_element(candidates.begin(), candidates.end(),
                          [](const Candidate &a, const Candidate &b) {
                            auto key = [](const Candidate &candidate) {
                              return std::pair(
                                  !candidate.plan,
                                  candidate.plan ? candidate.plan->peak : 0);
                            };
                            return key(a) < key(b);
                          }) -
         candidates.begin();
}

std::optional<MeshChoice> MeshSearch::run(std::string &error) {
  bool searches = options.plan.mode == OptMode::Optimize && !inStages;
  if (searches)
    searchUpper();
  if (!searches || (best && options.plan.objective != Objective::Upper))
    planBest();
  else if (best)
    planUpper();
  if (inStages)
    refine();
  if (best && !inStages)
    planShown();
  if (!best) {
    // Nothing fits, or nothing is known: the plans say.
    std::vector<size_t> all(candidates.size());
    for (size_t i = 0; i < all.size(); ++i) {
      all[i] = i;
      candidates[i].isImpossible = false;
    }
    planSome(std::move(all), kPlanWork, /*prunes=*/true);
  }
  if (options.isInterrupted())
    planLast();
  size_t chosen = best ? *best : leastPeak();
  if (!best && !candidates[chosen].plan) {
    error = options.isInterrupted() ? "interrupted before any plan was found"
                                    : firstError;
    return std::nullopt;
  }
  const BoundMesh &mesh = candidates[chosen].mesh;
  MeshChoice choice{meshSetting(mesh, where), toString(mesh), summary(chosen)};
  for (const Report::MeshSearch::Candidate &each : choice.search.best) {
    const Candidate &found =
        *llvm::find_if(candidates, [&](const Candidate &candidate) {
          return toString(candidate.mesh) == each.mesh;
        });
    choice.settings.push_back(meshSetting(found.mesh, where));
  }
  // Nothing can be searched again. Of a pipeline the module is not all.
  if (options.isInterrupted() && !inStages) {
    auto known = std::make_shared<StepChoice>();
    known->plan = candidates[chosen].planned;
    choice.step = std::move(known);
  }
  return choice;
}

/// Part of the time that is left for the choice: the best mesh is planned once
/// more.
static constexpr double kShareOfChoice = 0.6;

std::optional<double> shardc::timeToChoose(const solver::Deadline &deadline) {
  return deadline.part(kShareOfChoice).remaining();
}

static bool isTrained(const Program &program) {
  return llvm::any_of(
      (*program.module).getOps<shd::ProgramOp>(),
      [](shd::ProgramOp op) { return op.getTraining().has_value(); });
}

std::optional<MeshChoice> shardc::chooseMesh(const ProgramText &text,
                                             llvm::ArrayRef<Setting> settings,
                                             const Program &probe,
                                             const MeshChoiceOptions &options,
                                             std::string &error) {
  bool isStep = probe.forward && isTrained(probe);
  if (options.framework && !isStep) {
    error = "the plans of a framework are those of a training step, and the "
            "program has no 'train' block";
    return std::nullopt;
  }
  if (isStep && (options.framework || options.plan.mode == OptMode::Optimize))
    return chooseRecipe(text, settings, probe, options, error);
  return MeshSearch(text, settings, probe, options).run(error);
}

/// What `choose` makes of the program in the main buffer of `sourceMgr` with
/// these overrides.
template <typename Choice>
static std::optional<Choice> chooseOf(
    const llvm::SourceMgr &sourceMgr, const Overrides &overrides,
    const MeshChoiceOptions &options, std::string &error,
    std::optional<Choice> (*choose)(const ProgramText &,
                                    llvm::ArrayRef<Setting>, const Program &,
                                    const MeshChoiceOptions &, std::string &)) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  ScopedDiagnosticHandler silence(&context, [](Diagnostic &) {});
  ProgramSource source(sourceMgr, &context, overrides);
  if (!source.text)
    return std::nullopt;
  std::optional<Program> probe = importStep(*source.text, &context);
  if (!probe)
    return std::nullopt;
  return choose(*source.text, {}, *probe, options, error);
}

std::optional<MeshChoice> shardc::chooseMesh(const llvm::SourceMgr &sourceMgr,
                                             const Overrides &overrides,
                                             const MeshChoiceOptions &options,
                                             std::string &error) {
  return chooseOf(sourceMgr, overrides, options, error, chooseMesh);
}

/// Where a position of a buffer is.
static Location locationOf(llvm::SourceMgr &sourceMgr, MLIRContext *context,
                           llvm::SMLoc loc) {
  unsigned buffer = sourceMgr.FindBufferContainingLoc(loc);
  if (buffer == 0)
    return UnknownLoc::get(context);
  auto [line, column] = sourceMgr.getLineAndColumn(loc, buffer);
  return FileLineColLoc::get(
      context, sourceMgr.getMemoryBuffer(buffer)->getBufferIdentifier(), line,
      column);
}

/// Imports again with what was chosen; warnings have been given.
static std::optional<Program> importChosen(llvm::SourceMgr &sourceMgr,
                                           MLIRContext *context,
                                           const Overrides &overrides) {
  ScopedDiagnosticHandler silence(context, [](Diagnostic &diagnostic) {
    return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
  });
  return importStep(sourceMgr, context, overrides);
}

/// True of a training step of which the mesh or the form is open.
static bool isSearched(const Program &program) {
  return isTrained(program) &&
         (program.autoMesh ||
          isStepOpen(*(*program.module).getOps<shd::ProgramOp>().begin()));
}

std::optional<Program>
shardc::importOnBestMesh(llvm::SourceMgr &sourceMgr, MLIRContext *context,
                         Overrides &overrides, const MeshChoiceOptions &options,
                         std::optional<Report::BatchSearch> &batch,
                         std::optional<Report::MeshSearch> &search,
                         std::shared_ptr<const StepChoice> &step) {
  solver::Deadline deadline(options.plan.timeLimitSeconds, options.interrupted);
  bool isMade = options.framework && options.ahead && options.ahead->hasBegun();
  if (isMade)
    overrides = options.ahead->overrides();
  std::optional<Program> program = importStep(sourceMgr, context, overrides);
  if (program && program->autoBatch) {
    std::string error;
    std::optional<BatchChoice> choice =
        chooseOf(sourceMgr, overrides, options, error, chooseBatch);
    if (!choice) {
      emitError(locationOf(sourceMgr, context, program->autoBatch->where.Start))
          << error;
      return std::nullopt;
    }
    overrides.dims.push_back(choice->setting.name + "=" +
                             choice->setting.valueText());
    batch = std::move(choice->search);
    program = importChosen(sourceMgr, context, overrides);
  }
  if (program && options.ahead && !options.framework && isSearched(*program) &&
      !options.isInterrupted())
    options.ahead->begin(sourceMgr, overrides, options);
  if (!program || (!program->autoMesh && !options.framework))
    return program;
  bool isOpen = program->autoMesh.has_value();
  MeshChoiceOptions how = options;
  // A step comes with its plan.
  how.plan.timeLimitSeconds =
      isTrained(*program) ? deadline.remaining() : timeToChoose(deadline);
  std::string error;
  std::optional<MeshChoice> choice =
      isMade ? options.ahead->take(error)
             : chooseMesh(sourceMgr, overrides, how, error);
  if (!choice && options.framework) {
    emitError(program->module->getLoc(), "no plan that ")
        << frameworkName(*options.framework)
        << " expresses suits the program: " << error;
    return std::nullopt;
  }
  if (!choice) {
    emitError(locationOf(sourceMgr, context, program->autoMesh->where.Start),
              options.isInterrupted()
                  ? ""
                  : "no mesh of all chips of the machine suits the program; on "
                    "the first one: ")
        << error;
    return std::nullopt;
  }
  if (isOpen) {
    overrides.mesh = choice->text;
    overrides.stages = choice->setting.stages;
  }
  overrides.roles = choice->roles;
  step = choice->step;
  search = std::move(choice->search);
  return importChosen(sourceMgr, context, overrides);
}

void shardc::addMeshSearch(Report &report, Report::MeshSearch search) {
  Report::Plan &plan = report.plan;
  if (report.stepSearch && !search.ofRecipes) {
    // Other meshes were bounded with one form of the step alone; the work of
    // the model bounds all.
    search.open += search.ruledOut;
    search.ruledOut = 0;
    search.boundOfOthers = report.stepSearch->boundOfOthers;
  }
  // The bound of the chosen stages is that of their schedule and microbatches;
  // the work of the model bounds other ones.
  if (search.ofRecipes && report.stages && plan.bound && report.flops.mfu)
    plan.bound =
        std::min(*plan.bound, *report.flops.mfu * report.time.scheduled);
  if (plan.status == "optimal" || plan.status == "feasible") {
    bool hasOthers = search.ruledOut + search.open > 0;
    if (!plan.bound && !search.best.empty() && !report.stepSearch)
      plan.bound = search.best.front().bound;
    if (hasOthers)
      plan.bound =
          plan.bound && search.boundOfOthers
              ? std::optional(std::min(*plan.bound, *search.boundOfOthers))
              : std::nullopt;
    plan.gap = std::nullopt;
    if (plan.bound && *plan.bound > 0)
      plan.gap = (plan.value - *plan.bound) / *plan.bound;
    if (plan.bound && *plan.bound >= plan.value)
      plan.gap = 0;
    plan.status = plan.gap && *plan.gap == 0 ? "optimal" : "feasible";
  }
  report.meshSearch = std::move(search);
}
