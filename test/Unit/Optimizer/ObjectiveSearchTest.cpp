//===- ObjectiveSearchTest.cpp - The search under max-type objectives -----===//
//
// The search on small networks without a program, against all of their plans.
//
//===----------------------------------------------------------------------===//

#include "Branching.h"
#include "LocalSearch.h"
#include "Plans.h"
#include "RandomNetwork.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

using namespace shardc;
using namespace shardc::test;
using solver::Label;
using Plan = std::vector<Label>;

namespace {

constexpr Objective kObjectives[] = {Objective::Lower, Objective::Scheduled};

/// Calls with each random network that has a plan, the plan of the least
/// `upper`, and each objective.
void forEachSearch(
    llvm::function_ref<void(const RandomNetwork &, const solver::Solution &,
                            ObjectiveSearchOptions &)>
        test) {
  unsigned count = 0, seeds = setting("SHARDC_TEST_PROGRAMS", 15);
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    RandomNetwork network(seed);
    solver::Solution first = solver::solve(network.get().problem);
    if (!isPlan(first))
      continue;
    ++count;
    for (Objective objective : kObjectives) {
      SCOPED_TRACE(std::string(objectiveName(objective)) + " of seed " +
                   std::to_string(seed));
      ObjectiveSearchOptions options;
      options.objective = objective;
      test(network, first, options);
    }
  }
  EXPECT_GT(count, seeds / 2);
}

EvaluatePlan scheduleAll(const RandomNetwork &network) {
  return [&](llvm::ArrayRef<Label> plan) { return network.schedule(plan); };
}

/// The answer is a plan that takes what is said, and no plan that is not
/// refused is below the bound.
void expectSound(
    const RandomNetwork &network, Objective objective,
    const std::optional<solver::Solution> &found,
    llvm::function_ref<bool(llvm::ArrayRef<Label>)> isRefused =
        [](llvm::ArrayRef<Label>) { return false; }) {
  ASSERT_TRUE(found);
  EXPECT_TRUE(network.isPlan(found->assignment));
  EXPECT_EQ(found->cost, network.time(objective, found->assignment));
  for (const Plan &plan : network.plans())
    if (!isRefused(plan))
      EXPECT_LE(found->bound, network.time(objective, plan));
  EXPECT_EQ(found->status == solver::Status::Optimal,
            found->bound == found->cost);
}

TEST(ObjectiveSearch, BoundIsNotAboveTheOptimum) {
  forEachSearch([](const RandomNetwork &network, const solver::Solution &first,
                   ObjectiveSearchOptions &options) {
    auto found =
        searchObjective(network.get(), first, scheduleAll(network), options);
    expectSound(network, options.objective, found);
    // `lower` is rows alone, so that limits on them are exact.
    if (options.objective == Objective::Lower)
      EXPECT_EQ(found->status, solver::Status::Optimal);
  });
}

/// Collectives that slow compute down: each row of a plan weighs less, and
/// `upper` has a part in it.
TEST(ObjectiveSearch, BoundCountsWhatHiddenCollectivesCost) {
  unsigned seeds = setting("SHARDC_TEST_PROGRAMS", 15);
  for (uint64_t seed = 0; seed < seeds; ++seed)
    for (int64_t slowdown : {5, 26}) {
      RandomNetwork network(seed, slowdown);
      solver::Solution first = solver::solve(network.get().problem);
      if (!isPlan(first))
        continue;
      for (Objective objective : kObjectives) {
        SCOPED_TRACE(std::string(objectiveName(objective)) + " of seed " +
                     std::to_string(seed) + " at " + std::to_string(slowdown));
        ObjectiveSearchOptions options;
        options.objective = objective;
        options.slowdown = slowdown;
        auto found = searchObjective(network.get(), first, scheduleAll(network),
                                     options);
        expectSound(network, objective, found);
        if (objective == Objective::Lower)
          EXPECT_EQ(found->status, solver::Status::Optimal);
      }
    }
}

/// No plan is scheduled twice, not even one that was refused.
TEST(ObjectiveSearch, RefusedPlansAreNotTaken) {
  forEachSearch([](const RandomNetwork &network, const solver::Solution &first,
                   ObjectiveSearchOptions &options) {
    std::set<Plan> asked;
    auto isRefused = [&](llvm::ArrayRef<Label> plan) {
      return plan != llvm::ArrayRef(first.assignment) &&
             (plan[0] + plan[1]) % 2 == 1;
    };
    auto found = searchObjective(
        network.get(), first,
        [&](llvm::ArrayRef<Label> plan) -> std::optional<EvaluatedPlan> {
          EXPECT_TRUE(asked.insert(plan.vec()).second);
          if (isRefused(plan))
            return std::nullopt;
          return network.schedule(plan);
        },
        options);
    expectSound(network, options.objective, found, isRefused);
    EXPECT_FALSE(isRefused(found->assignment));
  });
}

TEST(ObjectiveSearch, NothingIsFoundWhereTheFirstPlanIsRefused) {
  RandomNetwork network(0);
  unsigned asked = 0;
  auto found = searchObjective(
      network.get(), solver::solve(network.get().problem),
      [&](llvm::ArrayRef<Label>) -> std::optional<EvaluatedPlan> {
        ++asked;
        return std::nullopt;
      },
      {});
  EXPECT_FALSE(found);
  EXPECT_EQ(asked, 1u);
}

TEST(ObjectiveSearch, KeepsTheFirstPlanWhenTimeIsUp) {
  forEachSearch([](const RandomNetwork &network, const solver::Solution &first,
                   ObjectiveSearchOptions &options) {
    options.deadline = solver::Deadline(0.0);
    auto found =
        searchObjective(network.get(), first, scheduleAll(network), options);
    expectSound(network, options.objective, found);
    EXPECT_EQ(found->assignment, first.assignment);
  });
}

/// Interrupted while it schedules its third plan, it schedules no other.
TEST(ObjectiveSearch, EndsWhenInterrupted) {
  unsigned interruptions = 0;
  forEachSearch([&](const RandomNetwork &network, const solver::Solution &first,
                    ObjectiveSearchOptions &options) {
    std::atomic<bool> flag = false;
    options.deadline = solver::Deadline(std::nullopt, &flag);
    unsigned asked = 0;
    auto found = searchObjective(
        network.get(), first,
        [&](llvm::ArrayRef<Label> plan) {
          flag = ++asked == 3;
          return network.schedule(plan);
        },
        options);
    expectSound(network, options.objective, found);
    EXPECT_LE(asked, 3u);
    interruptions += asked == 3;
  });
  EXPECT_GT(interruptions, 0u);
}

TEST(ObjectiveSearch, BoundsWithoutWork) {
  forEachSearch([](const RandomNetwork &network, const solver::Solution &first,
                   ObjectiveSearchOptions &options) {
    options.maxWork = 0;
    expectSound(
        network, options.objective,
        searchObjective(network.get(), first, scheduleAll(network), options));
  });
}

/// Bounds and times that are told while a search goes on hold.
TEST(ObjectiveSearch, ProgressIsProven) {
  forEachSearch([](const RandomNetwork &network, const solver::Solution &first,
                   ObjectiveSearchOptions &options) {
    Picoseconds optimum = network.optimum(options.objective);
    Picoseconds last = std::numeric_limits<Picoseconds>::max();
    options.progress = [&](const solver::SearchProgress &told) {
      EXPECT_LE(*told.bound, optimum);
      EXPECT_GE(*told.cost, optimum);
      EXPECT_LE(*told.cost, last);
      last = *told.cost;
    };
    searchObjective(network.get(), first, scheduleAll(network), options);
  });
}

TEST(ObjectiveSearch, WorkFollowsTheTimeLimit) {
  EXPECT_EQ(searchWorkFor(std::nullopt), kUsualSearchWork);
  EXPECT_EQ(searchWorkFor(1), kUsualSearchWork);
  EXPECT_EQ(searchWorkFor(20), 10 * kUsualSearchWork);
}

//===----------------------------------------------------------------------===//
// Parts of the search
//===----------------------------------------------------------------------===//

/// A search that has scheduled the plan of the least `upper`.
struct Started {
  Started(const RandomNetwork &network, const solver::Solution &first,
          const ObjectiveSearchOptions &options)
      : evaluate(scheduleAll(network)),
        solver(network.get(), evaluate, options), weights(solver),
        all{solver.times.allLabels()} {
    solver.candidates.propose(first.assignment);
    for (const std::vector<bool> &labels : all.labels)
      all.labelBounds.emplace_back(labels.size(), 0);
  }

  EvaluatePlan evaluate;
  PlanSolver solver;
  WeightBounds weights;
  Region all;
};

bool uses(const solver::LabelSets &labels, const Plan &plan) {
  return llvm::all_of(llvm::zip_equal(labels, plan), [](const auto &pair) {
    const auto &[flags, label] = pair;
    return flags[label];
  });
}

/// Pruned labels are used by no plan that is better than the incumbent.
TEST(WeightBounds, KeepLabelsOfBetterPlans) {
  unsigned pruned = 0;
  forEachSearch([&](const RandomNetwork &network, const solver::Solution &first,
                    ObjectiveSearchOptions &options) {
    Started search(network, first, options);
    search.weights.raiseMany(search.all, kAllWeights);
    search.weights.raiseByLongest(search.all);
    search.weights.boundLabels(search.all,
                               search.weights.weightsOf(search.all));
    // Plans that are no better than the incumbent may be pruned.
    EXPECT_LE(std::min<Picoseconds>(search.all.bound, search.solver.best()),
              network.optimum(options.objective));
    for (const Plan &plan : network.plans())
      if (network.time(options.objective, plan) < search.solver.best())
        EXPECT_TRUE(uses(search.all.labels, plan));
    for (const std::vector<bool> &labels : search.all.labels)
      pruned += llvm::count(labels, false);
  });
  EXPECT_GT(pruned, 0u);
}

/// Limits from far below the best plan to the incumbent: each is refuted or met
/// as brute force says.
TEST(LimitSearch, FindsAPlanWhereThereIsOne) {
  unsigned met = 0, refuted = 0;
  forEachSearch([&](const RandomNetwork &network, const solver::Solution &first,
                    ObjectiveSearchOptions &options) {
    Started search(network, first, options);
    LimitSearch limits(search.solver, search.weights);
    Picoseconds least = network.optimum(Objective::Lower);
    for (Picoseconds limit :
         {least / 2, least - 1, least, (least + search.solver.best()) / 2}) {
      solver::Solution found =
          limits.findWithin(search.all, limit, /*work=*/1e7);
      if (limit < least) {
        EXPECT_EQ(found.status, solver::Status::Infeasible);
        ++refuted;
        continue;
      }
      ASSERT_TRUE(isPlan(found));
      EXPECT_TRUE(network.isPlan(found.assignment));
      EXPECT_LE(network.time(Objective::Lower, found.assignment), limit);
      ++met;
    }
  });
  EXPECT_GT(met, 0u);
  EXPECT_GT(refuted, 0u);
}

/// Two halves have all plans of a region between them, and none twice.
TEST(Branching, HalvesShareThePlans) {
  forEachSearch([](const RandomNetwork &network, const solver::Solution &first,
                   ObjectiveSearchOptions &options) {
    Started search(network, first, options);
    Region rest = search.all;
    std::vector<Region> parts;
    while (std::optional<Region> half =
               split(rest, search.solver, search.weights))
      parts.push_back(std::move(*half));
    parts.push_back(rest);
    EXPECT_GT(parts.size(), 1u);
    for (const Plan &plan : network.plans())
      EXPECT_EQ(llvm::count_if(parts,
                               [&](const Region &part) {
                                 return uses(part.labels, plan);
                               }),
                1);
  });
}

/// From plans of the highest `upper`, small steps lead on.
TEST(LocalSearch, ImprovesBadPlans) {
  unsigned improved = 0, count = 0;
  forEachSearch([&](const RandomNetwork &network, const solver::Solution &,
                    ObjectiveSearchOptions &options) {
    std::vector<Plan> plans = network.plans();
    solver::Solution worst;
    worst.assignment =
        *llvm::max_element(plans, [&](const Plan &a, const Plan &b) {
          return network.time(options.objective, a) <
                 network.time(options.objective, b);
        });
    Started search(network, worst, options);
    LimitSearch limits(search.solver, search.weights);
    LocalSearch steps(search.solver, search.weights, limits);
    steps.improve(search.all, kUsualSearchWork);
    Picoseconds before = network.time(options.objective, worst.assignment);
    EXPECT_LE(search.solver.best(), before);
    improved += search.solver.best() < before;
    ++count;
  });
  EXPECT_GT(improved, count / 2);
}

/// Two plans that take 2 and 0, or 0 and 2: weights of a half each bound both
/// by 1, and no others do. One more row that is longest for none weighs
/// nothing.
TEST(DualGame, WeighsRowsThatPlansTrade) {
  Candidate first, second;
  first.rows = {2, 0, 0};
  second.rows = {0, 2, 0};
  Rows center(3, 1.0 / 3);
  DualGame game = playDualGame({&first, &second}, center, /*radius=*/1, 10000);
  EXPECT_NEAR(game.mean, 1, 0.02);
  EXPECT_LE(game.mean, 1);
  EXPECT_NEAR(game.weights[0], 0.5, 0.02);
  EXPECT_NEAR(game.weights[1], 0.5, 0.02);
  // Near weights that are a third each the third row keeps some.
  game = playDualGame({&first, &second}, center, /*radius=*/0.1, 10000);
  EXPECT_NEAR(game.weights[2], 1.0 / 3 - 0.1, 1e-9);
  EXPECT_NEAR(game.weights[0] + game.weights[1] + game.weights[2], 1, 1e-9);
}

} // namespace
