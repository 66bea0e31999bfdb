//===- EliminationTest.cpp - Elimination, messages, search ----------------===//
//
// Each algorithm on random networks against all assignments of them.
//
//===----------------------------------------------------------------------===//

#include "BruteForce.h"
#include "shardc/Solver/Contract.h"
#include "shardc/Solver/Dual.h"
#include "shardc/Solver/MessagePassing.h"
#include "shardc/Solver/StateSearch.h"
#include "gtest/gtest.h"

using namespace shardc::solver;
using namespace shardc::solver::test;

/// Priced sum of labels by the model's tables, or nothing if forbidden.
static std::optional<Int128> sumOf(const Model &model,
                                   const std::vector<Label> &labels) {
  Int128 sum = 0;
  for (uint32_t v = 0; v < model.size(); ++v) {
    if (model.costs(v)[labels[v]] >= kInfinity)
      return std::nullopt;
    sum += model.costs(v)[labels[v]];
  }
  for (const Model::Pair &pair : model.pairs()) {
    Scaled cost = pair.table->at(labels[pair.first], labels[pair.second]);
    if (cost >= kInfinity)
      return std::nullopt;
    sum += cost;
  }
  return sum;
}

/// Calls `visit` with every assignment of the model's variables.
template <typename Visit> static void forAll(const Model &model, Visit visit) {
  std::vector<Label> labels(model.size(), 0);
  while (true) {
    visit(labels);
    size_t v = 0;
    for (; v < labels.size(); ++v) {
      if (++labels[v] < model.costs(v).size())
        break;
      labels[v] = 0;
    }
    if (v == labels.size())
      return;
  }
}

static std::optional<Int128> leastSum(const Model &model) {
  std::optional<Int128> least;
  forAll(model, [&](const std::vector<Label> &labels) {
    std::optional<Int128> sum = sumOf(model, labels);
    if (sum && (!least || *sum < *least))
      least = sum;
  });
  return least;
}

/// Least true cost of assignments that fit.
static std::optional<Cost> leastFitting(const Problem &problem,
                                        const Model &model) {
  std::optional<Cost> least;
  forAll(model, [&](const std::vector<Label> &labels) {
    Evaluation now =
        evaluate(problem, recover(model.getNetwork(), model.toNodes(labels)));
    if (now.cost && now.fits && (!least || *now.cost < *least))
      least = now.cost;
  });
  return least;
}

static Prices randomPrices(std::mt19937_64 &random, const Network &network) {
  Prices prices;
  for (size_t row = 0; row < network.slack.size(); ++row)
    prices.push_back(chance(random, 50)
                         ? 0
                         : uniform(random, 0, int64_t(1) << (kPriceBits + 21)));
  return prices;
}

/// Runs `test` on many networks that are not infeasible, half contracted.
template <typename Test>
static void onRandomNetworks(uint64_t seed, int count, Shape shape, Test test) {
  std::mt19937_64 random(seed);
  for (int i = 0; i < count; ++i) {
    SCOPED_TRACE(i);
    shape.forbiddenPercent = i % 4 * 10;
    Problem problem = randomProblem(random, shape);
    Network network = buildNetwork(problem);
    if (i % 2 == 0)
      contract(network);
    if (!network.infeasible())
      test(random, problem, network);
  }
}

TEST(Elimination, FindsTheLeastSumAndItsLabels) {
  onRandomNetworks(
      11, 1500, Shape(),
      [](std::mt19937_64 &random, const Problem &, const Network &network) {
        Model model(network, Model::largestShift(network));
        model.setPrices(randomPrices(random, network));
        EliminationLimits limits;
        Elimination elimination(model, eliminationOrder(model, limits), limits);
        ASSERT_TRUE(elimination.isExact());
        Int128 sum = elimination.run(model);
        std::optional<Int128> least = leastSum(model);
        if (!least) {
          EXPECT_GE(sum, kInfinity);
          return;
        }
        EXPECT_TRUE(sum == *least);
        std::optional<Int128> decoded = sumOf(model, elimination.decode());
        ASSERT_TRUE(decoded.has_value());
        EXPECT_TRUE(*decoded == *least);
      });
}

TEST(Elimination, MinMarginalsAreExact) {
  onRandomNetworks(
      12, 600, Shape(),
      [](std::mt19937_64 &random, const Problem &, const Network &network) {
        Model model(network, Model::largestShift(network));
        model.setPrices(randomPrices(random, network));
        EliminationLimits limits;
        Elimination elimination(model, eliminationOrder(model, limits), limits);
        Int128 least = elimination.run(model);
        if (least >= kInfinity)
          return;
        std::vector<std::vector<Int128>> expected(model.size());
        for (uint32_t v = 0; v < model.size(); ++v)
          expected[v].assign(model.costs(v).size(), Int128(kInfinity));
        forAll(model, [&](const std::vector<Label> &labels) {
          std::optional<Int128> sum = sumOf(model, labels);
          for (uint32_t v = 0; sum && v < model.size(); ++v)
            expected[v][labels[v]] =
                std::min(expected[v][labels[v]], *sum - least);
        });
        std::vector<std::vector<Scaled>> marginals = elimination.minMarginals();
        for (uint32_t v = 0; v < model.size(); ++v)
          for (Label l = 0; l < model.costs(v).size(); ++l)
            EXPECT_TRUE(marginals[v][l] == expected[v][l]);
      });
}

TEST(Elimination, SplitBucketsGiveALowerBound) {
  int split = 0;
  Shape shape;
  shape.edgePercent = 90;
  onRandomNetworks(
      13, 1000, shape,
      [&](std::mt19937_64 &random, const Problem &, const Network &network) {
        Model model(network, Model::largestShift(network));
        model.setPrices(randomPrices(random, network));
        EliminationLimits limits;
        limits.bucketEntries = 20;
        Elimination elimination(model, eliminationOrder(model, limits), limits);
        split += !elimination.isExact();
        Int128 bound = elimination.run(model);
        if (std::optional<Int128> least = leastSum(model))
          EXPECT_TRUE(bound <= *least);
      });
  EXPECT_GT(split, 100);
}

TEST(Model, BoundsNeverExceedTheOptimum) {
  onRandomNetworks(14, 1500, Shape(),
                   [](std::mt19937_64 &random, const Problem &problem,
                      const Network &network) {
                     Model model(network, Model::largestShift(network));
                     std::optional<Cost> optimum = leastFitting(problem, model);
                     if (!optimum)
                       return;
                     for (int trial = 0; trial < 3; ++trial) {
                       model.setPrices(randomPrices(random, network));
                       if (std::optional<Int128> least = leastSum(model)) {
                         EXPECT_LE(model.boundFor(*least), *optimum);
                         EXPECT_TRUE(*least <= model.sumLimit(*optimum + 1));
                       }
                     }
                   });
}

TEST(Model, MessagesMoveCostsWithoutChangingSums) {
  onRandomNetworks(
      15, 300, Shape(),
      [](std::mt19937_64 &random, const Problem &, const Network &network) {
        Model model(network, 10);
        Model moved(network, 10);
        Messages messages;
        for (const Model::Pair &pair : model.pairs()) {
          messages.toFirst.emplace_back();
          messages.toSecond.emplace_back();
          for (uint32_t i = 0; i < pair.table->rows; ++i)
            messages.toFirst.back().push_back(uniform(random, -5000, 5000));
          for (uint32_t j = 0; j < pair.table->columns; ++j)
            messages.toSecond.back().push_back(uniform(random, -5000, 5000));
        }
        moved.applyMessages(messages);
        forAll(model, [&](const std::vector<Label> &labels) {
          EXPECT_TRUE(sumOf(model, labels) == sumOf(moved, labels));
        });
      });
}

TEST(Dual, BoundsNeverExceedTheOptimum) {
  onRandomNetworks(
      16, 800, Shape(),
      [](std::mt19937_64 &, const Problem &problem, const Network &network) {
        Model model(network, Model::largestShift(network));
        std::optional<Cost> optimum = leastFitting(problem, model);
        if (!optimum)
          return;
        EliminationLimits limits;
        Elimination elimination(model, eliminationOrder(model, limits), limits);
        DualResult dual =
            ascendPrices(model, elimination, Prices(network.slack.size(), 0),
                         30, [](llvm::ArrayRef<Label>, Cost) { return false; });
        EXPECT_LE(dual.bound, *optimum);
        for (int64_t price : dual.prices)
          EXPECT_GE(price, 0);
      });
}

TEST(Dual, FindsThePriceOfOneRow) {
  // Three tensors at one point, each 10 bytes for 0 or 5 bytes for cost 1, 2 or
  // 4; 20 bytes fit. Two must shrink: best cost 1 + 2 = 3. At a price of p per
  // byte the bound is min(10p, 1+5p) + min(10p, 2+5p) + min(10p, 4+5p) - 20p;
  // its slope is 10 below p = 1/5, 5 up to 2/5, then 0: at best 1 + 2 = 3.
  Problem problem;
  problem.numPoints = 1;
  problem.capacity = 20;
  for (Cost cost : {1, 2, 4})
    problem.variables.push_back({"", {0, cost}, {{{0, 1, 10}}, {{0, 1, 5}}}});
  Network network = buildNetwork(problem);
  Model model(network, 20);
  EliminationLimits limits;
  Elimination elimination(model, eliminationOrder(model, limits), limits);
  DualResult dual =
      ascendPrices(model, elimination, {0}, 40,
                   [](llvm::ArrayRef<Label>, Cost) { return false; });
  EXPECT_EQ(dual.bound, 3);
}

TEST(Dual, IsNotSlowedByRowsThatDoNotBind) {
  // At each of 1000 points 40 tensors of 10 bytes, or of 5 bytes for 100, 200,
  // ... 4000; 310 bytes fit, at the first point 300, where the 20 cheapest must
  // shrink: 100 + 200 + ... + 2000 = 21000, and 100000 in any case. Elsewhere
  // 18 were enough.
  constexpr uint32_t numPoints = 1000;
  Problem problem;
  problem.numPoints = numPoints;
  problem.capacity = 310;
  problem.variables.push_back({"", {100000}, {{{0, 1, 10}}}});
  for (Cost tensor = 1; tensor <= 40; ++tensor)
    problem.variables.push_back(
        {"", {0, 100 * tensor}, {{{0, numPoints, 10}}, {{0, numPoints, 5}}}});
  Network network = buildNetwork(problem);
  Model model(network, 20);
  EliminationLimits limits;
  Elimination elimination(model, eliminationOrder(model, limits), limits);
  DualResult dual =
      ascendPrices(model, elimination, Prices(network.slack.size(), 0), 40,
                   [](llvm::ArrayRef<Label>, Cost) { return false; });
  EXPECT_EQ(dual.bound, 121000);
}

TEST(MessagePassing, BoundsAndPrunesSoundly) {
  int pruned = 0;
  onRandomNetworks(
      17, 1500, Shape(),
      [&](std::mt19937_64 &random, const Problem &, const Network &network) {
        Model model(network, 12);
        MessagePassing passing(model);
        for (int trial = 0; trial < 3; ++trial) {
          model.setPrices(randomPrices(random, network));
          passing.updateCosts();
          std::optional<Int128> least = leastSum(model);
          if (!least)
            return;
          for (int sweep = 0; sweep < 4; ++sweep) {
            passing.sweep();
            ASSERT_FALSE(passing.isExhausted());
            EXPECT_TRUE(passing.bound() <= *least);
          }
        }
        // Labels that go are in no assignment within the limit.
        std::optional<Int128> least = leastSum(model);
        passing.setLimit(*least);
        passing.sweep();
        ASSERT_FALSE(passing.isExhausted());
        std::vector<std::vector<bool>> left = passing.remaining();
        for (const std::vector<bool> &flags : left)
          for (bool flag : flags)
            pruned += !flag;
        forAll(model, [&](const std::vector<Label> &labels) {
          std::optional<Int128> sum = sumOf(model, labels);
          for (uint32_t v = 0; sum && *sum <= *least && v < model.size(); ++v)
            EXPECT_TRUE(left[v][labels[v]]);
        });
      });
  EXPECT_GT(pruned, 500);
}

TEST(MessagePassing, IsTightOnAChain) {
  // On a chain the bound of sequential passing is the optimum.
  std::mt19937_64 random(18);
  for (int i = 0; i < 200; ++i) {
    Problem problem;
    for (int v = 0; v < 6; ++v) {
      problem.variables.push_back({"", {}, {}});
      for (int l = 0; l < 3; ++l)
        problem.variables.back().costs.push_back(uniform(random, 0, 9));
      if (v == 0)
        continue;
      Table table{3, 3, {}};
      for (int k = 0; k < 9; ++k)
        table.costs.push_back(uniform(random, 0, 9));
      problem.tables.push_back(table);
      problem.edges.push_back({Variable(v - 1), Variable(v), TableId(v - 1)});
    }
    Network network = buildNetwork(problem);
    Model model(network, 8);
    MessagePassing passing(model);
    passing.sweep();
    EXPECT_TRUE(passing.bound() == *leastSum(model));
    EXPECT_TRUE(*sumOf(model, passing.decode()) == passing.bound());
  }
}

TEST(StateSearch, IsExactWhenNothingIsDropped) {
  int dropped = 0;
  Shape shape;
  shape.maxPoints = 12;
  onRandomNetworks(
      19, 3000, shape,
      [&](std::mt19937_64 &random, const Problem &problem,
          const Network &network) {
        Model model(network, Model::largestShift(network));
        std::optional<Cost> optimum = leastFitting(problem, model);
        EliminationLimits limits;
        if (chance(random, 30))
          limits.bucketEntries = 20;
        Elimination plan(model, eliminationOrder(model, limits), limits);
        Guides guides;
        for (int g = 0; g < 3; ++g)
          guides.push_back(std::make_unique<Guide>(
              model, plan, randomPrices(random, network)));
        std::vector<uint32_t> rows;
        for (uint32_t row = 0; row < network.slack.size(); ++row)
          rows.push_back(row);
        Cost upper = optimum.value_or(1000) + uniform(random, -2, 3);
        StateLimits stateLimits;
        if (chance(random, 50))
          stateLimits.width = uniform(random, 1, 4);
        StateResult found = searchStates(guides, rows, upper, stateLimits);
        dropped += !found.complete;
        // Nothing that fits costs less than the bound and less than `upper`.
        if (optimum)
          EXPECT_LE(found.bound, std::max(*optimum, upper));
        if (optimum && *optimum < upper)
          EXPECT_LE(found.bound, *optimum);
        if (found.labels) {
          Evaluation now =
              evaluate(problem, recover(network, model.toNodes(*found.labels)));
          ASSERT_TRUE(now.cost.has_value());
          EXPECT_TRUE(now.fits);
          if (found.complete && *now.cost < upper)
            EXPECT_EQ(*now.cost, *optimum);
        } else if (found.complete && optimum) {
          EXPECT_GE(*optimum, upper);
        }
      });
  EXPECT_GT(dropped, 50);
}

TEST(StateSearch, FewerRowsGiveALowerBound) {
  onRandomNetworks(
      20, 1500, Shape(),
      [](std::mt19937_64 &random, const Problem &problem,
         const Network &network) {
        Model model(network, Model::largestShift(network));
        std::optional<Cost> optimum = leastFitting(problem, model);
        if (!optimum)
          return;
        EliminationLimits limits;
        Elimination plan(model, eliminationOrder(model, limits), limits);
        Guides guides;
        for (int g = 0; g < 2; ++g)
          guides.push_back(std::make_unique<Guide>(
              model, plan, randomPrices(random, network)));
        std::vector<uint32_t> rows;
        for (uint32_t row = 0; row < network.slack.size(); ++row)
          if (chance(random, 50))
            rows.push_back(row);
        StateResult found =
            searchStates(guides, rows, *optimum + 1, StateLimits());
        EXPECT_TRUE(found.complete);
        ASSERT_TRUE(found.labels.has_value());
        EXPECT_LE(found.bound, *optimum);
      });
}
