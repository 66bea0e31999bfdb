//===- SearchTest.cpp - The large-scale search ----------------------------===//

#include "shardc/Solver/Search.h"
#include "BruteForce.h"
#include "Search/Carry.h"
#include "Search/ExactBound.h"
#include "Search/Exchange.h"
#include "Search/Order.h"
#include "Search/Probe.h"
#include "Search/Starts.h"
#include "shardc/Solver/Contract.h"
#include "gtest/gtest.h"

using namespace shardc::solver;
using namespace shardc::solver::search;
using namespace shardc::solver::test;

static Problem randomGraphProblem(std::mt19937_64 &random, Shape shape) {
  Problem problem = randomProblem(random, shape);
  problem.edgeUsages.clear();
  return problem;
}

/// A ring of blocks with chords, whose memory is tight.
static Problem ring(std::mt19937_64 &random, uint32_t size) {
  Problem problem;
  problem.numPoints = size;
  std::vector<int64_t> least(size, 0);
  for (uint32_t v = 0; v < size; ++v) {
    VariableData variable;
    uint32_t begin = v, end = std::min(size, v + 1 + uint32_t(random() % 9));
    int64_t labels = uniform(random, 2, 9), lowest = 1000;
    for (int64_t l = 0; l < labels; ++l) {
      variable.costs.push_back(uniform(random, 0, 1000));
      int64_t bytes = uniform(random, 10, 100);
      lowest = std::min(lowest, bytes);
      variable.usages.push_back({{begin, end, bytes}});
    }
    for (uint32_t t = begin; t < end; ++t)
      least[t] += lowest;
    problem.variables.push_back(std::move(variable));
  }
  problem.capacity = *std::max_element(least.begin(), least.end()) * 3 / 2;
  auto link = [&](uint32_t a, uint32_t b) {
    if (a == b)
      return;
    Table table;
    table.rows = problem.variables[a].costs.size();
    table.columns = problem.variables[b].costs.size();
    for (uint32_t k = 0; k < table.rows * table.columns; ++k)
      table.costs.push_back(chance(random, 10) ? kForbidden
                                               : uniform(random, 0, 500));
    // Equal positions are always allowed.
    for (uint32_t k = 0; k < std::min(table.rows, table.columns); ++k)
      table.costs[k * table.columns + k] = 5;
    problem.edges.push_back({a, b, uint32_t(problem.tables.size())});
    problem.tables.push_back(std::move(table));
  };
  for (uint32_t v = 0; v < size; ++v) {
    link(v, (v + 1) % size);
    link(v, random() % size);
  }
  return problem;
}

TEST(RangeTree, LikeAnArray) {
  std::mt19937_64 random(3);
  for (size_t size : {1, 2, 3, 7, 8, 100}) {
    std::vector<int64_t> plain(size);
    for (int64_t &value : plain)
      value = uniform(random, -50, 50);
    RangeTree tree(plain);
    for (int step = 0; step < 2000; ++step) {
      size_t begin = random() % size,
             end = begin + 1 + random() % (size - begin);
      int64_t value = uniform(random, -20, 20);
      tree.add(begin, end, value);
      for (size_t i = begin; i < end; ++i)
        plain[i] += value;
      auto most = std::max_element(plain.begin(), plain.end());
      ASSERT_EQ(tree.max(), *most);
      ASSERT_EQ(tree.argmax(), size_t(most - plain.begin()));
      size_t place = random() % size;
      ASSERT_EQ(tree.at(place), plain[place]);
    }
  }
}

TEST(Graph, CostAndMemoryAreTheProblems) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 300; ++i) {
    Problem problem = randomGraphProblem(random, {});
    Network network = buildNetwork(problem);
    if (network.infeasible())
      continue;
    std::optional<Graph> graph = buildGraph(network);
    ASSERT_TRUE(graph.has_value());
    Labels labels;
    for (uint32_t u = 0; u < graph->size(); ++u)
      labels.push_back(random() % graph->labels(u));
    Evaluation now = evaluate(problem, recoverLabels(network, *graph, labels));
    int64_t cost = graphCost(*graph, labels);
    if (now.cost)
      EXPECT_EQ(cost + graph->constant, *now.cost);
    else
      EXPECT_GE(cost, graph->wall);
    if (!problem.capacity)
      continue;
    std::vector<int64_t> over = overflow(*graph, labels);
    for (size_t row = 0; row < over.size(); ++row)
      EXPECT_EQ(over[row],
                now.usage[network.rowPoints[row]] - *problem.capacity);
  }
}

TEST(FitsLargeSearch, AllPairsForbiddenFitIn64Bits) {
  // The wall of 2^46 - 1 is 2^47: 2^16 of them are 2^63, one too many.
  Wide most = (Wide(1) << 46) - 1;
  EXPECT_EQ(wallAbove(most), Wide(1) << 47);
  EXPECT_TRUE(fitsLargeSearch(most, (1 << 16) - 2));
  EXPECT_FALSE(fitsLargeSearch(most, (1 << 16) - 1));
  EXPECT_EQ(wallAbove(most + 1), Wide(1) << 48);
  EXPECT_FALSE(fitsLargeSearch(most + 1, (1 << 16) - 2));
}

TEST(State, ManyForbiddenNeighbours) {
  // A hub whose label 0 goes with no leaf's label 0.
  const uint32_t leaves = 20'000;
  Problem problem;
  problem.variables.push_back({"", {0, 3}, {}});
  problem.tables.push_back({2, 2, {kForbidden, 7, 1'000'000'000, 0}});
  for (uint32_t leaf = 1; leaf <= leaves; ++leaf) {
    problem.variables.push_back({"", {0, 5}, {}});
    problem.edges.push_back({0, leaf, 0});
  }
  ASSERT_TRUE(fitsLargeSearch(mostCost(problem), problem.edges.size()));
  Network network = buildNetwork(problem);
  std::optional<Graph> graph = buildGraph(network);
  ASSERT_EQ(graph->size(), leaves + 1);
  ASSERT_GT(graph->wall, mostCost(problem));
  Labels labels(leaves + 1, 0);
  labels[0] = 1;
  State state(*graph, labels);
  EXPECT_EQ(state.costs(0)[0], leaves * graph->wall);
  EXPECT_EQ(state.cost(), 3 + leaves * int64_t(1'000'000'000));
  state.change(0, 0);
  EXPECT_EQ(state.cost(), leaves * graph->wall);
  for (uint32_t leaf = 1; leaf <= leaves; ++leaf)
    state.change(leaf, 1);
  EXPECT_EQ(state.costs(0)[0], leaves * int64_t(7));
  EXPECT_EQ(state.cost(), leaves * int64_t(7 + 5));
}

/// Calls `visit(labels, cost)` for each assignment that fits.
template <typename Visit>
static void forEachPlan(const Problem &problem, Visit visit) {
  std::vector<Label> labels(problem.variables.size(), 0);
  while (true) {
    Evaluation now = evaluate(problem, labels);
    if (now.cost && now.fits)
      visit(labels, *now.cost);
    size_t v = 0;
    while (v < labels.size() &&
           ++labels[v] == problem.variables[v].costs.size())
      labels[v++] = 0;
    if (v == labels.size())
      return;
  }
}

/// Whatever the prices and messages are, the bound holds, and no plan of at
/// most the cost given uses a label that is excluded.
/// Returns how many labels only probing excluded.
static size_t expectProven(const Problem &problem, const Network &network,
                           const Graph &graph, const DualPoint &point,
                           Cost optimum, Cost cost) {
  Prover prover(graph, point);
  Proof proof = prover.run(cost);
  EXPECT_LE(proof.bound, optimum);
  size_t probed = 0;
  for (size_t size : {1, 2, 3, 100}) {
    Probe probe(prover, size);
    for (uint32_t u = 0; u < graph.size(); ++u)
      probe.run(u, cost, proof.excluded, {});
    probed += probe.excluded;
  }
  forEachPlan(problem, [&](const std::vector<Label> &labels, Cost own) {
    if (own > cost)
      return;
    std::optional<Labels> projected = projectLabels(network, graph, labels);
    ASSERT_TRUE(projected.has_value());
    for (uint32_t u = 0; u < graph.size(); ++u)
      EXPECT_FALSE(proof.excluded[graph.firstLabel[u] + (*projected)[u]]);
  });
  return probed;
}

TEST(ExactBound, NeverAboveTheOptimum) {
  std::mt19937_64 random(5);
  Shape shape;
  shape.maxVariables = 5;
  size_t probed = 0;
  for (int i = 0; i < 400; ++i) {
    SCOPED_TRACE(i);
    Problem problem = randomGraphProblem(random, shape);
    std::optional<Cost> optimum = bruteForce(problem).cost;
    Network network = buildNetwork(problem);
    if (!optimum || !problem.capacity)
      continue;
    std::optional<Graph> graph = buildGraph(network);
    Ascent ascent(*graph, *problem.capacity);
    ascent.run(60, {});
    probed += expectProven(problem, network, *graph, ascent.best(), *optimum,
                           *optimum + i % 3);
    DualPoint garbage = ascent.best();
    for (float &message : garbage.messages)
      message += float(uniform(random, -30, 30)) / 7;
    for (double &price : garbage.prices)
      price = double(uniform(random, -5, 20)) / 3;
    probed +=
        expectProven(problem, network, *graph, garbage, *optimum, *optimum);
  }
  EXPECT_GT(probed, 50u);
}

TEST(ExactBound, TightOnTreesWithoutMemory) {
  // A chain of three: 0 + 2 + 0 + 1 + 0 is the least sum, found by hand.
  Problem problem;
  problem.variables = {{"", {0, 4}, {}}, {"", {3, 0}, {}}, {"", {0, 0}, {}}};
  problem.tables = {{2, 2, {0, 2, 5, 0}}, {2, 2, {9, 9, 1, 6}}};
  problem.edges = {{0, 1, 0}, {1, 2, 1}};
  Network network = buildNetwork(problem);
  std::optional<Graph> graph = buildGraph(network);
  Ascent ascent(*graph, 1);
  ascent.run(5, {});
  EXPECT_EQ(prove(*graph, ascent.best()).bound, 3);
}

TEST(Ascent, PriceOfMemory) {
  // One of two may use the byte that there is; the other pays 3 or 5. At a
  // price p the bound is min(p, 3) + min(p, 5) - p: 3 for all p from 3 to 5.
  Problem problem;
  problem.numPoints = 1;
  problem.capacity = 1;
  problem.variables = {{"", {0, 3}, {{{0, 1, 1}}, {}}},
                       {"", {0, 5}, {{{0, 1, 1}}, {}}}};
  ASSERT_EQ(problem.check(), std::nullopt);
  Network network = buildNetwork(problem);
  std::optional<Graph> graph = buildGraph(network);
  Ascent ascent(*graph, 1);
  ascent.run(Ascent::kFirstSteps, {});
  EXPECT_NEAR(ascent.best().bound, 3, 1e-3);
  ASSERT_EQ(ascent.best().prices.size(), 1u);
  EXPECT_GT(ascent.best().prices[0], 2.99);
  EXPECT_LT(ascent.best().prices[0], 5.01);
  EXPECT_EQ(prove(*graph, ascent.best()).bound, 3);
}

TEST(Walk, StateIsThatOfAFreshStart) {
  std::mt19937_64 random(6);
  Problem problem = ring(random, 120);
  ASSERT_EQ(problem.check(), std::nullopt);
  Network network = buildNetwork(problem);
  std::optional<Graph> graph = buildGraph(network);
  Ascent ascent(*graph, *problem.capacity);
  ascent.run(200, {});
  search::Guide guide(*graph, ascent.best().prices);
  std::vector<Start> starts =
      makeStarts(*graph, guide, ascent.best(), 4, 2, 1, {});
  ASSERT_FALSE(starts.empty());
  Walk walk(*graph, guide, starts[0].labels, 2);
  ASSERT_TRUE(
      repair(*graph, guide, walk, ascent.best().bound, *problem.capacity, {}));
  for (uint64_t steps = 1000; steps <= 20'000; steps += 1000) {
    while (walk.steps < steps)
      walk.anneal(50, 5, 100'000, {});
    State fresh(*graph, walk.state.labels());
    ASSERT_TRUE(walk.state.fits());
    ASSERT_EQ(walk.state.cost(), fresh.cost());
    ASSERT_EQ(walk.state.overflow(), fresh.overflow());
    for (uint32_t u = 0; u < graph->size(); ++u)
      for (uint32_t i = 0; i < graph->labels(u); ++i)
        ASSERT_EQ(walk.state.costs(u)[i], fresh.costs(u)[i]);
  }
  EXPECT_GT(walk.accepted, 100u);
  Evaluation best =
      evaluate(problem, recoverLabels(network, *graph, walk.best.labels));
  EXPECT_TRUE(best.fits);
  EXPECT_EQ(best.cost, walk.best.cost + graph->constant);
}

TEST(Exchange, PartsAreIndependentAndTheBetterOnesAreTaken) {
  std::mt19937_64 random(16);
  size_t taken = 0;
  for (int i = 0; i < 50; ++i) {
    Network network = buildNetwork(ring(random, 60));
    std::optional<Graph> graph = buildGraph(network);
    Labels a, b;
    for (uint32_t u = 0; u < graph->size(); ++u) {
      a.push_back(random() % graph->labels(u));
      b.push_back(chance(random, 20) ? random() % graph->labels(u) : a[u]);
    }
    auto costWith = [&](const std::vector<uint32_t> &part) {
      Labels labels = a;
      for (uint32_t u : part)
        labels[u] = b[u];
      return graphCost(*graph, labels);
    };
    int64_t cost = graphCost(*graph, a), sum = 0, gains = 0;
    for (const std::vector<uint32_t> &part : differingParts(*graph, a, b)) {
      int64_t change = costWith(part) - cost;
      sum += change;
      gains += std::min<int64_t>(change, 0);
    }
    EXPECT_EQ(cost + sum, graphCost(*graph, b));
    // With enough memory all that gain are taken, otherwise what fits.
    int64_t most = 0;
    for (int64_t &slack : graph->slack)
      most = std::max(most, slack);
    for (bool tight : {false, true}) {
      for (auto [slack, over] :
           llvm::zip_equal(graph->slack, overflow(*graph, a)))
        slack += tight ? over : 100 * most;
      State state(*graph, a);
      taken += takeBetterParts(*graph, state, b);
      EXPECT_TRUE(state.fits());
      EXPECT_EQ(state.cost(), graphCost(*graph, state.labels()));
      EXPECT_LE(state.cost(), cost);
      if (!tight)
        EXPECT_EQ(state.cost(), cost + gains);
    }
  }
  EXPECT_GT(taken, 50u);
}

TEST(Dive, RegionsKeepTheStateExact) {
  std::mt19937_64 random(11);
  Problem problem = ring(random, 80);
  Network network = buildNetwork(problem);
  std::optional<Graph> graph = buildGraph(network);
  Ascent ascent(*graph, *problem.capacity);
  ascent.run(200, {});
  search::Guide guide(*graph, ascent.best().prices);
  std::vector<Start> starts =
      makeStarts(*graph, guide, ascent.best(), 1, 1, 1, {});
  Walk walk(*graph, guide, starts[0].labels, 2);
  ASSERT_TRUE(
      repair(*graph, guide, walk, ascent.best().bound, *problem.capacity, {}));
  int64_t before = walk.state.cost();
  walk.diveRegions(1e-3, 1e-3, 20'000'000, {});
  EXPECT_GT(walk.steps, 5u);
  State fresh(*graph, walk.state.labels());
  EXPECT_TRUE(walk.state.fits());
  EXPECT_EQ(walk.state.cost(), fresh.cost());
  EXPECT_EQ(walk.state.overflow(), fresh.overflow());
  EXPECT_LE(walk.best.cost, before);
}

TEST(Forest, BestGivenTheRest) {
  // A block of a whole tree has no rest: its best labels are the optimum.
  std::mt19937_64 random(7);
  for (int i = 0; i < 100; ++i) {
    Problem problem;
    uint32_t size = 2 + random() % 5;
    for (uint32_t v = 0; v < size; ++v) {
      problem.variables.emplace_back();
      for (int64_t l = uniform(random, 1, 4); l > 0; --l)
        problem.variables.back().costs.push_back(uniform(random, 0, 9));
      if (v == 0)
        continue;
      uint32_t parent = random() % v;
      Table table;
      table.rows = problem.variables[parent].costs.size();
      table.columns = problem.variables[v].costs.size();
      for (uint32_t k = 0; k < table.rows * table.columns; ++k)
        table.costs.push_back(uniform(random, 0, 9));
      problem.edges.push_back({parent, v, v - 1});
      problem.tables.push_back(std::move(table));
    }
    Network network = buildNetwork(problem);
    std::optional<Graph> graph = buildGraph(network);
    search::Guide guide(*graph, {});
    Walk walk(*graph, guide, Labels(size, 0), i);
    walk.sweepPriced(guide.priced);
    EXPECT_EQ(walk.state.cost() + graph->constant, bruteForce(problem).cost);
  }
}

/// Without exact elimination, so that all else has to do the work.
static SearchOptions withoutElimination() {
  SearchOptions options;
  options.exactLabels = 0;
  return options;
}

TEST(Search, SmallProblems) {
  std::mt19937_64 random(8);
  for (int i = 0; i < 150; ++i) {
    SCOPED_TRACE(i);
    Problem problem = randomGraphProblem(random, {});
    std::optional<Cost> optimum = bruteForce(problem).cost;
    SearchResult result = searchLarge(problem, withoutElimination());
    if (!optimum) {
      EXPECT_TRUE(result.status == Status::Infeasible ||
                  result.status == Status::Unknown);
      EXPECT_TRUE(result.assignment.empty());
      continue;
    }
    ASSERT_FALSE(result.assignment.empty());
    Evaluation now = evaluate(problem, result.assignment);
    ASSERT_TRUE(now.fits);
    EXPECT_EQ(now.cost, result.cost);
    EXPECT_EQ(result.cost, *optimum);
    EXPECT_LE(result.bound, *optimum);
  }
}

TEST(Search, ThreadsDoNotMatter) {
  std::mt19937_64 random(9);
  Problem problem = ring(random, 24);
  SearchOptions options = withoutElimination();
  SearchResult one = searchLarge(problem, options);
  options.jobs = 2;
  SearchResult two = searchLarge(problem, options);
  ASSERT_FALSE(one.assignment.empty());
  EXPECT_EQ(one.assignment, two.assignment);
  EXPECT_EQ(one.bound, two.bound);
}

TEST(Search, InterruptedItReturnsTheBestSoFar) {
  std::mt19937_64 random(12);
  Problem problem = ring(random, 200);
  SearchOptions options = withoutElimination();
  std::atomic<bool> interrupted = false;
  options.interrupted = &interrupted;
  std::optional<Cost> last;
  options.progress = [&](const SearchProgress &progress) {
    last = progress.cost;
    interrupted = progress.cost.has_value();
  };
  SearchResult result = searchLarge(problem, options);
  ASSERT_TRUE(interrupted);
  EXPECT_EQ(result.status, Status::Feasible);
  EXPECT_EQ(result.cost, *last);
  Evaluation now = evaluate(problem, result.assignment);
  EXPECT_TRUE(now.fits);
  EXPECT_EQ(now.cost, result.cost);
  EXPECT_LT(result.bound, result.cost);
}

/// A variable that uses memory over [begin, end), if that is not empty.
static VariableData liveOver(uint32_t begin, uint32_t end) {
  VariableData variable;
  variable.costs = {0};
  if (begin < end)
    variable.usages = {{{begin, end, 1}}};
  return variable;
}

TEST(Order, IsThatOfTime) {
  Problem problem;
  problem.numPoints = 9;
  // 0 and 1 are there from the start on, 2 uses no memory: they are placed
  // before the first and after the last neighbour. Nothing is near 6.
  problem.variables = {liveOver(0, 9), liveOver(0, 3), liveOver(0, 0),
                       liveOver(6, 9), liveOver(4, 8), liveOver(2, 5),
                       liveOver(0, 9)};
  problem.tables = {{1, 1, {0}}};
  problem.edges = {{0, 3, 0}, {4, 0, 0}, {1, 5, 0}, {5, 2, 0}, {2, 4, 0}};
  EXPECT_EQ(orderByTime(problem), (std::vector<Variable>{6, 1, 5, 0, 4, 2, 3}));
  problem.variables.assign(3, liveOver(0, 0));
  problem.edges = {{0, 2, 0}};
  EXPECT_EQ(orderByTime(problem), (std::vector<Variable>{0, 1, 2}));
}

TEST(Order, ReorderedProblemsAreTheSame) {
  std::mt19937_64 random(13);
  for (int i = 0; i < 100; ++i) {
    Problem problem = randomGraphProblem(random, {});
    std::vector<Variable> order(problem.variables.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    Problem other = reordered(problem, order);
    std::vector<Label> labels, otherLabels;
    for (const VariableData &variable : problem.variables)
      labels.push_back(uniform(random, 0, variable.costs.size() - 1));
    for (Variable variable : order)
      otherLabels.push_back(labels[variable]);
    Evaluation one = evaluate(problem, labels);
    Evaluation two = evaluate(other, otherLabels);
    EXPECT_EQ(one.cost, two.cost);
    EXPECT_EQ(one.peak, two.peak);
  }
}

TEST(Search, NumbersOfNodesDoNotMatter) {
  std::mt19937_64 random(14);
  Problem problem = ring(random, 32);
  std::vector<Variable> order(problem.variables.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  SearchResult one = searchLarge(problem, withoutElimination());
  SearchResult two =
      searchLarge(reordered(problem, order), withoutElimination());
  ASSERT_FALSE(one.assignment.empty());
  EXPECT_EQ(one.cost, two.cost);
  EXPECT_EQ(one.bound, two.bound);
}

TEST(Carry, BoundStaysNearby) {
  std::mt19937_64 random(10);
  Problem problem = ring(random, 100);
  Network network = buildNetwork(problem);
  std::optional<Graph> before = buildGraph(network);
  Ascent ascent(*before, *problem.capacity);
  ascent.run(300, {});
  Naming from(network, *before);
  std::vector<int64_t> tightness = overflow(*before, Labels(before->size(), 0));
  contract(network);
  ASSERT_FALSE(network.infeasible());
  std::optional<Graph> after = buildGraph(network);
  ASSERT_LT(after->costs.size(), before->costs.size());
  Ascent again(*after, *problem.capacity);
  again.restart(carry(*before, from, ascent.best(), tightness, *after,
                      Naming(network, *after)),
                10, {});
  // Contraction loses nothing, but prices of rows may move.
  EXPECT_GT(again.best().bound, 0.9 * ascent.best().bound);
}
