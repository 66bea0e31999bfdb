//===- SolveTest.cpp - The whole solver -----------------------------------===//

#include "shardc/Solver/Solve.h"
#include "BruteForce.h"
#include "Clique.h"
#include "LayeredNetwork.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"

using namespace shardc::solver;
using namespace shardc::solver::test;

/// The assignment must be worth what the solution says.
static void expectVerified(const Problem &problem, const Solution &solution) {
  Evaluation now = evaluate(problem, solution.assignment);
  ASSERT_TRUE(now.cost.has_value());
  EXPECT_TRUE(now.fits);
  EXPECT_EQ(*now.cost, solution.cost);
  EXPECT_EQ(now.peak, solution.peak);
  EXPECT_LE(solution.bound, solution.cost);
}

/// Small problems are solved, or proven infeasible with the least peak.
static void expectSolved(const Problem &problem) {
  ASSERT_EQ(problem.check(), std::nullopt);
  Solution solution = solve(problem);
  Optimum optimum = bruteForce(problem);
  if (optimum.cost) {
    ASSERT_EQ(solution.status, Status::Optimal);
    expectVerified(problem, solution);
    EXPECT_EQ(solution.cost, *optimum.cost);
    EXPECT_EQ(solution.bound, *optimum.cost);
    return;
  }
  ASSERT_EQ(solution.status, Status::Infeasible);
  if (!optimum.leastPeak)
    return;
  ASSERT_EQ(solution.assignment.size(), problem.variables.size());
  EXPECT_TRUE(evaluate(problem, solution.assignment).cost.has_value());
  EXPECT_EQ(solution.peak, *optimum.leastPeak);
  EXPECT_EQ(solution.peakBound, *optimum.leastPeak);
}

TEST(Solve, SmallProblemsWithoutMemory) {
  std::mt19937_64 random(1);
  Shape shape;
  shape.memory = false;
  for (int i = 0; i < 2000; ++i) {
    SCOPED_TRACE(i);
    shape.forbiddenPercent = i % 5 * 12;
    expectSolved(randomProblem(random, shape));
  }
}

TEST(Solve, SmallProblemsWithMemory) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 4000; ++i) {
    SCOPED_TRACE(i);
    Shape shape;
    shape.maxVariables = i % 20 == 0 ? 7 : 5;
    shape.edgePercent = 30 + i % 3 * 30;
    shape.minCost = i % 4 == 0 ? -20 : 0;
    shape.maxCost = i % 3 == 0 ? 2 : 50; // many ties, or few
    expectSolved(randomProblem(random, shape));
  }
}

TEST(Solve, CapacityAtAndBelowTheLeastPeak) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 1500; ++i) {
    SCOPED_TRACE(i);
    Problem problem = randomProblem(random, Shape());
    Optimum optimum = bruteForce(problem);
    if (!optimum.leastPeak)
      continue;
    problem.capacity = *optimum.leastPeak;
    expectSolved(problem);
    if (*problem.capacity > 0) {
      --*problem.capacity;
      expectSolved(problem);
    }
  }
}

/// Several rows of which none may exceed the capacity, and their weighted sum
/// for costs: no prices of the rows raise the bound before the capacity is
/// below what mixed assignments reach. `factor`: of all bytes.
static Problem weightedRows(std::mt19937_64 &random, int64_t factor,
                            llvm::ArrayRef<int64_t> weights) {
  Problem problem;
  problem.numPoints = weights.size();
  size_t numVariables = uniform(random, 2, 7);
  auto draw = [&](size_t count, auto take) {
    for (size_t i = 0; i < count; ++i)
      for (uint32_t row = 0; row < weights.size(); ++row)
        take(i, row, factor * uniform(random, 0, 30));
  };
  for (size_t v = 0; v < numVariables; ++v) {
    VariableData &variable = problem.variables.emplace_back();
    size_t labels = uniform(random, 2, 4);
    variable.costs.resize(labels, 0);
    variable.usages.resize(labels);
    draw(labels, [&](size_t label, uint32_t row, int64_t bytes) {
      variable.usages[label].push_back({row, row + 1, bytes});
      variable.costs[label] += weights[row] * bytes;
    });
  }
  for (Variable v = 1; v < numVariables; ++v) {
    Variable other = uniform(random, 0, v - 1);
    Table &table = problem.tables.emplace_back();
    table.rows = problem.variables[other].costs.size();
    table.columns = problem.variables[v].costs.size();
    size_t entries = size_t(table.rows) * table.columns;
    table.costs.resize(entries, 0);
    problem.edges.push_back({other, v, TableId(problem.tables.size() - 1)});
    size_t first = problem.edgeUsages.size();
    for (uint32_t row = 0; row < weights.size(); ++row)
      problem.edgeUsages.push_back({uint32_t(problem.edges.size() - 1), row,
                                    row + 1, std::vector<int64_t>(entries)});
    draw(entries, [&](size_t entry, uint32_t row, int64_t bytes) {
      problem.edgeUsages[first + row].bytes[entry] = bytes;
      table.costs[entry] += weights[row] * bytes;
    });
  }
  problem.capacity = std::numeric_limits<int64_t>::max() / 4;
  return problem;
}

/// Whether all rows can stay within a limit is decided, at the least limit at
/// which they can and just below.
TEST(Solve, RowsWithinLimits) {
  std::mt19937_64 random(11);
  const int64_t weights[] = {3, 2, 3};
  for (int i = 0; i < 1500; ++i) {
    SCOPED_TRACE(i);
    Problem problem =
        weightedRows(random, i % 2 == 0 ? 1 : 1'000'000'000'000, weights);
    int64_t least = *bruteForce(problem).leastPeak;
    for (int64_t limit : {least - 1, least, least + least / 20}) {
      problem.capacity = limit;
      Options options;
      options.anyBelowCutoff = true;
      options.cutoff = 8 * limit + 1;
      Solution solution = solve(problem, options);
      if (limit < least) {
        ASSERT_EQ(solution.status, Status::Infeasible);
        continue;
      }
      ASSERT_TRUE(solution.status == Status::Optimal ||
                  solution.status == Status::Feasible);
      expectVerified(problem, solution);
    }
  }
}

/// Less for every label of a variable moves the optimum by as much, below zero
/// too, where messages bound it.
TEST(Solve, NegativeCosts) {
  constexpr Cost kLess = 100'000;
  Problem problem;
  addClique(problem, {0, 100}, {0, 1000});
  Options options;
  options.maxWork = 1e9;
  Solution positive = solve(problem, options);
  for (VariableData &variable : problem.variables)
    for (Cost &cost : variable.costs)
      cost -= kLess;
  Solution negative = solve(problem, options);
  Cost moved = kCliqueVariables * kLess;
  EXPECT_LE(negative.bound, positive.cost - moved);
  EXPECT_LE(positive.bound, negative.cost + moved);
}

/// Tensors of one or two bytes stay for good or cost something; at each of many
/// points one more stays, which nearly fills the memory, or costs something.
/// Prices are high and add up over the points.
TEST(Solve, LongLivesInSmallMemory) {
  std::mt19937_64 random(13);
  for (int i = 0; i < 400; ++i) {
    SCOPED_TRACE(i);
    Problem problem;
    const int64_t capacity = uniform(random, 3, 6), unit = 1'000'000'000;
    problem.capacity = capacity;
    problem.numPoints = uniform(random, 24, 64);
    const size_t numLong = uniform(random, 1, 3);
    auto add = [&](int64_t cost, Usage usage) {
      problem.variables.push_back({"", {0, cost}, {{usage}, {}}});
    };
    for (size_t j = 0; j < numLong; ++j)
      add(unit * problem.numPoints * uniform(random, 1, 50),
          {0, problem.numPoints, uniform(random, 1, 2)});
    for (uint32_t point = 0; point < problem.numPoints; ++point)
      add(unit / 10 * uniform(random, 1, 1000),
          {point, point + 1, uniform(random, capacity - 1, capacity)});
    // Each choice of the long ones determines the short ones.
    Cost least = kMaxTotal;
    for (size_t gone = 0; gone < size_t(1) << numLong; ++gone) {
      Cost cost = 0;
      int64_t used = 0;
      for (auto [j, variable] : llvm::enumerate(problem.variables)) {
        int64_t bytes = variable.usages[0][0].bytes;
        bool isGone =
            j < numLong ? (gone >> j & 1) != 0 : used + bytes > capacity;
        cost += isGone ? variable.costs[1] : 0;
        used += j < numLong && !isGone ? bytes : 0;
      }
      if (used <= capacity)
        least = std::min(least, cost);
    }
    Solution solution = solve(problem);
    ASSERT_EQ(solution.status, Status::Optimal);
    EXPECT_EQ(solution.cost, least);
    expectVerified(problem, solution);
  }
}

/// Work that ends at once leaves what is proven valid.
TEST(Solve, LittleWorkIsEnoughForABound) {
  std::mt19937_64 random(12);
  for (int i = 0; i < 500; ++i) {
    SCOPED_TRACE(i);
    Problem problem = randomProblem(random, Shape());
    Optimum optimum = bruteForce(problem);
    Options options;
    options.maxWork = i % 10 * 100;
    Solution solution = solve(problem, options);
    if (!optimum.cost) {
      EXPECT_TRUE(solution.status == Status::Infeasible ||
                  solution.status == Status::Unknown);
      continue;
    }
    EXPECT_NE(solution.status, Status::Infeasible);
    EXPECT_LE(solution.bound, *optimum.cost);
    if (solution.status == Status::Optimal)
      EXPECT_EQ(solution.cost, *optimum.cost);
  }
}

TEST(Solve, NoVariables) {
  Problem problem;
  Solution solution = solve(problem);
  EXPECT_EQ(solution.status, Status::Optimal);
  EXPECT_EQ(solution.cost, 0);
  problem.numPoints = 2;
  problem.fixedUsage = {3, 8};
  problem.capacity = 8;
  EXPECT_EQ(solve(problem).status, Status::Optimal);
  problem.capacity = 7;
  solution = solve(problem);
  EXPECT_EQ(solution.status, Status::Infeasible);
  EXPECT_EQ(solution.peak, 8);
  EXPECT_EQ(solution.peakBound, 8);
}

TEST(Solve, NothingFitsIntoNothing) {
  Problem problem;
  problem.numPoints = 1;
  problem.capacity = 0;
  problem.variables.push_back({"a", {5, 9}, {{{0, 1, 1}}, {}}});
  Solution solution = solve(problem);
  EXPECT_EQ(solution.status, Status::Optimal);
  EXPECT_EQ(solution.cost, 9);
  problem.variables[0].usages[1] = {{0, 1, 2}};
  solution = solve(problem);
  EXPECT_EQ(solution.status, Status::Infeasible);
  EXPECT_EQ(solution.peak, 1);
  EXPECT_EQ(solution.assignment, (std::vector<Label>{0}));
}

TEST(Solve, CostsNearTheLimit) {
  // Two variables at a third of the limit each and an edge at another third.
  Cost third = kMaxTotal / 3 - 1;
  Problem problem;
  problem.variables.push_back({"a", {third, -third}, {}});
  problem.variables.push_back({"b", {-third, third}, {}});
  problem.tables.push_back({2, 2, {0, third, third, -third}});
  problem.edges.push_back({0, 1, 0});
  ASSERT_EQ(problem.check(), std::nullopt);
  // In thirds: (0,0) 1 - 1 + 0 = 0, (0,1) 1 + 1 + 1 = 3, (1,0) -1 - 1 + 1 = -1,
  // (1,1) -1 + 1 - 1 = -1.
  Solution solution = solve(problem);
  EXPECT_EQ(solution.status, Status::Optimal);
  EXPECT_EQ(solution.cost, -third);
}

TEST(Solve, ParallelAndReversedEdgesAddUp) {
  Problem problem;
  problem.variables.push_back({"a", {0, 0}, {}});
  problem.variables.push_back({"b", {0, 0, 0}, {}});
  problem.tables.push_back({2, 3, {5, 1, 9, 9, 9, 2}});
  problem.tables.push_back({3, 2, {1, 9, 7, 9, 9, 4}});
  problem.edges = {{0, 1, 0}, {1, 0, 1}};
  // Sums: (0,0) 6, (0,1) 8, (0,2) 18, (1,0) 18, (1,1) 18, (1,2) 6; one more for
  // label 0 of a decides.
  problem.variables[0].costs[0] = 1;
  Solution solution = solve(problem);
  EXPECT_EQ(solution.status, Status::Optimal);
  EXPECT_EQ(solution.cost, 6);
  EXPECT_EQ(solution.assignment, (std::vector<Label>{1, 2}));
}

/// A tree of `count` variables with random costs.
static Problem randomTree(std::mt19937_64 &random, int count, bool isChain) {
  Problem problem;
  for (int v = 0; v < count; ++v) {
    problem.variables.push_back({"", {}, {}});
    for (int l = 0; l < 8; ++l)
      problem.variables.back().costs.push_back(uniform(random, 0, 1000));
    if (v == 0)
      continue;
    Table table{8, 8, {}};
    for (int k = 0; k < 64; ++k)
      table.costs.push_back(chance(random, 20) ? kForbidden
                                               : uniform(random, 0, 1000));
    problem.tables.push_back(std::move(table));
    Variable parent = isChain ? v - 1 : uniform(random, 0, v - 1);
    problem.edges.push_back({parent, Variable(v), TableId(v - 1)});
  }
  return problem;
}

/// Optimum of a tree whose parents come before their children, by dynamic
/// programming from the last variable to the first.
static Cost treeOptimum(const Problem &problem) {
  std::vector<std::vector<Cost>> costs;
  for (const VariableData &variable : problem.variables)
    costs.push_back(variable.costs);
  for (size_t e = problem.edges.size(); e-- > 0;) {
    const Edge &edge = problem.edges[e];
    for (Label i = 0; i < 8; ++i) {
      Cost best = kForbidden;
      for (Label j = 0; j < 8; ++j) {
        Cost pair = problem.tables[edge.table].at(i, j);
        if (pair < kForbidden && costs[edge.second][j] < kForbidden)
          best = std::min(best, pair + costs[edge.second][j]);
      }
      Cost &own = costs[edge.first][i];
      own = own >= kForbidden || best >= kForbidden ? kForbidden : own + best;
    }
  }
  return *std::min_element(costs[0].begin(), costs[0].end());
}

TEST(Solve, LongChainsAndLargeTrees) {
  std::mt19937_64 random(4);
  for (bool isChain : {true, false}) {
    Problem problem = randomTree(random, 2000, isChain);
    Solution solution = solve(problem);
    EXPECT_EQ(solution.status, Status::Optimal);
    expectVerified(problem, solution);
    EXPECT_EQ(solution.cost, treeOptimum(problem));
  }
}

TEST(Solve, LayeredNetworkThatFits) {
  Problem problem = LayeredNetwork(2).problem;
  Solution free = solve(problem);
  EXPECT_EQ(free.status, Status::Optimal);
  problem.capacity = free.peak;
  Solution fitting = solve(problem);
  EXPECT_EQ(fitting.status, Status::Optimal);
  EXPECT_EQ(fitting.cost, free.cost);
}

TEST(Solve, LayeredNetworkInTightMemory) {
  Problem problem = LayeredNetwork(1).problem;
  Cost last = solve(problem).cost;
  for (int64_t capacity :
       {500'000'000, 400'000'000, 250'000'000, 150'000'000}) {
    problem.capacity = capacity;
    Solution solution = solve(problem);
    EXPECT_EQ(solution.status, Status::Optimal) << capacity;
    expectVerified(problem, solution);
    // Less memory never makes it cheaper.
    EXPECT_GE(solution.cost, last);
    last = solution.cost;
  }
}

TEST(Solve, SeveralLayersInTightMemory) {
  Problem problem = LayeredNetwork(3).problem;
  problem.capacity = 1'200'000'000;
  Solution solution = solve(problem);
  EXPECT_EQ(solution.status, Status::Optimal);
  expectVerified(problem, solution);
}

TEST(Solve, IsDeterministic) {
  Problem problem = LayeredNetwork(2).problem;
  problem.capacity = 700'000'000;
  Solution first = solve(problem), second = solve(problem);
  EXPECT_EQ(first.assignment, second.assignment);
  EXPECT_EQ(first.bound, second.bound);
  EXPECT_EQ(first.multipliers, second.multipliers);
}

TEST(Solve, PricesMemoryWhereItBinds) {
  // One tensor that is replicated for 0 or split for 10; the limit forces the
  // split, so some point that it is alive at has a price.
  Problem problem;
  problem.numPoints = 3;
  problem.capacity = 6;
  for (int v = 0; v < 2; ++v)
    problem.variables.push_back({"", {0, 10}, {{{1, 2, 4}}, {{1, 2, 2}}}});
  Solution solution = solve(problem);
  EXPECT_EQ(solution.status, Status::Optimal);
  EXPECT_EQ(solution.cost, 10);
  ASSERT_EQ(solution.multipliers.size(), 3u);
  EXPECT_EQ(solution.multipliers[0], 0);
  EXPECT_GT(solution.multipliers[1], 0);
  EXPECT_EQ(solution.multipliers[2], 0);
}

TEST(Solve, DenseNetworksEndWithAValidBound) {
  // Too dense for exact elimination of what is left after contraction.
  std::mt19937_64 random(5);
  Problem problem;
  problem.numPoints = 10;
  problem.capacity = 900;
  for (int v = 0; v < 40; ++v) {
    VariableData variable;
    for (int l = 0; l < 12; ++l) {
      variable.costs.push_back(uniform(random, 0, 100));
      uint32_t begin = uniform(random, 0, 7);
      variable.usages.push_back({{begin, begin + 3, uniform(random, 0, 100)}});
    }
    problem.variables.push_back(std::move(variable));
  }
  for (int e = 0; e < 160; ++e) {
    Variable a = uniform(random, 0, 39), b = uniform(random, 0, 39);
    if (a == b)
      continue;
    Table table{12, 12, {}};
    for (int k = 0; k < 144; ++k)
      table.costs.push_back(uniform(random, 0, 100));
    problem.tables.push_back(std::move(table));
    problem.edges.push_back({a, b, TableId(problem.tables.size() - 1)});
  }
  Options options;
  options.timeLimitSeconds = 0.5;
  Solution solution = solve(problem, options);
  ASSERT_TRUE(solution.status == Status::Feasible ||
              solution.status == Status::Optimal);
  expectVerified(problem, solution);
  EXPECT_GT(solution.bound, 0);
}
