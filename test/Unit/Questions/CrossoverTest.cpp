//===- CrossoverTest.cpp - Searches over made-up outcomes -----------------===//

#include "shardc/Questions/Crossover.h"
#include "FakeRunner.h"
#include "gtest/gtest.h"

using namespace shardc;
using namespace shardc::test;

static constexpr int64_t kMany = 1 << 20;

static CrossoverRange rangeOf(int64_t low, int64_t high) {
  CrossoverRange range;
  range.name = "B";
  range.low = low;
  range.high = high;
  return range;
}

/// "before..at: from -> to", for changes of what bounds the step.
static std::vector<std::string> textOf(const Crossovers &result) {
  std::vector<std::string> lines;
  for (const Change &change : result.changes)
    lines.push_back(std::to_string(change.before) + ".." +
                    std::to_string(change.at) + ": " + change.from + " -> " +
                    change.to);
  return lines;
}

using Lines = std::vector<std::string>;

TEST(Crossover, FindsTheFirstValueOfEachState) {
  FakeRunner runner([](int64_t n) {
    return boundBy(n < 241 ? "hbm" : n < 100'000 ? "network" : "compute");
  });
  Crossovers result =
      findCrossovers(rangeOf(1, kMany), LegalValues(1, kMany, 0, 1, 1), runner);
  EXPECT_EQ(textOf(result), (Lines{"240..241: hbm -> network",
                                   "99999..100000: network -> compute"}));
  EXPECT_EQ(result.first, 1);
  EXPECT_EQ(result.last, kMany);
  EXPECT_EQ(result.firstState.bound, "hbm");
  EXPECT_FALSE(result.complete);
  EXPECT_FALSE(result.alternates);
  EXPECT_TRUE(result.unresolved.empty());
  EXPECT_EQ(result.values, kMany);
  EXPECT_EQ(result.planned, int64_t(runner.planned));
  // 4 samples a doubling and 2 searches, not a million plans.
  EXPECT_LT(runner.planned, 82 + 2 * 24);
}

TEST(Crossover, LooksAtMultiplesOnly) {
  FakeRunner runner([](int64_t n) {
    return n % 48 == 0 ? boundBy(n < 241 ? "hbm" : "compute") : illegal();
  });
  Crossovers result = findCrossovers(rangeOf(1, kMany),
                                     LegalValues(1, kMany, 48, 48, 96), runner);
  EXPECT_EQ(textOf(result), (Lines{"240..288: hbm -> compute"}));
}

TEST(Crossover, PassesOverIllegalValues) {
  // Around an illegal run both ends are found; the state before it ends there.
  auto outcome = [](int64_t n) {
    return n >= 5000 && n < 7000 ? illegal()
                                 : boundBy(n < 6000 ? "hbm" : "compute");
  };
  FakeRunner runner(outcome);
  Crossovers result =
      findCrossovers(rangeOf(1, kMany), LegalValues(1, kMany, 0, 1, 1), runner);
  EXPECT_EQ(textOf(result), (Lines{"4999..7000: hbm -> compute"}));
}

TEST(Crossover, IllegalValuesAreNoChange) {
  FakeRunner runner([](int64_t n) {
    return n >= 5000 && n < 7000 ? illegal() : boundBy("hbm");
  });
  EXPECT_TRUE(
      findCrossovers(rangeOf(1, kMany), LegalValues(1, kMany, 0, 1, 1), runner)
          .changes.empty());
}

TEST(Crossover, ShortRangesAreComplete) {
  // Changes at every value: a search between samples would miss them.
  FakeRunner runner(
      [](int64_t n) { return boundBy(n % 2 ? "hbm" : "compute"); });
  Crossovers result =
      findCrossovers(rangeOf(1, 200), LegalValues(1, 200, 0, 1, 1), runner);
  EXPECT_EQ(result.changes.size(), 199u);
  EXPECT_TRUE(result.complete);
}

TEST(Crossover, SeesStatesThatLastAQuarterOfADoubling) {
  // 1000 * 2^(1/4) = 1189.2: the state comes and goes.
  FakeRunner runner([](int64_t n) {
    return boundBy(n >= 1000 && n < 1190 ? "network" : "hbm");
  });
  Crossovers result =
      findCrossovers(rangeOf(1, kMany), LegalValues(1, kMany, 0, 1, 1), runner);
  EXPECT_EQ(textOf(result),
            (Lines{"999..1000: hbm -> network", "1189..1190: network -> hbm"}));
}

TEST(Crossover, NamesTheRangesThatWereNotLookedAt) {
  // All samples from 16 on are multiples of 16, and so all alike.
  FakeRunner runner(
      [](int64_t n) { return boundBy(n % 16 ? "hbm" : "compute"); });
  Crossovers result = findCrossovers(rangeOf(1, kMany),
                                     LegalValues(1, kMany, 0, 1, 16), runner);
  EXPECT_TRUE(result.alternates);
  int64_t covered = 0;
  for (auto [from, to] : result.unresolved)
    covered += to - from - 1;
  EXPECT_GE(covered, result.values - result.planned);
  ASSERT_FALSE(result.unresolved.empty());
  EXPECT_EQ(result.unresolved.back().second, kMany);
}

TEST(Crossover, ListedValues) {
  FakeRunner runner(
      [](int64_t n) { return boundBy(n < 5 ? "hbm" : "compute"); });
  Crossovers result = findCrossovers(
      rangeOf(1, 64), LegalValues({1, 2, 4, 8, 16, 32, 64}), runner);
  EXPECT_EQ(textOf(result), (Lines{"4..8: hbm -> compute"}));
}

TEST(Crossover, DoesNotDependOnThreads) {
  auto outcome = [](int64_t n) {
    return boundBy(n % 3 == 0 ? "hbm" : n < 70'000 ? "network" : "compute");
  };
  std::vector<Lines> results;
  for (unsigned jobs : {1, 4}) {
    FakeRunner runner(outcome, jobs);
    results.push_back(textOf(findCrossovers(
        rangeOf(1, kMany), LegalValues(1, kMany, 0, 1, 6), runner)));
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(Crossover, ValuesOfManyChangesAreExact) {
  // Too many changes to find all; those found hold.
  auto bound = [](int64_t n) { return n / 64 % 2 ? "hbm" : "network"; };
  FakeRunner runner([&](int64_t n) { return boundBy(bound(n)); });
  Crossovers result =
      findCrossovers(rangeOf(1, kMany), LegalValues(1, kMany, 0, 1, 1), runner);
  EXPECT_FALSE(result.changes.empty());
  for (const Change &change : result.changes) {
    EXPECT_EQ(change.before, change.at - 1);
    EXPECT_EQ(change.from, bound(change.before));
    EXPECT_EQ(change.to, bound(change.at));
    EXPECT_NE(change.from, change.to);
  }
}

TEST(Crossover, StopsWhereEveryValueDiffers) {
  static const char *bounds[] = {"a", "b", "c", "d", "e", "f", "g"};
  FakeRunner runner([](int64_t n) { return boundBy(bounds[n % 7]); });
  Crossovers result = findCrossovers(rangeOf(1, kMany),
                                     LegalValues(1, kMany, 0, 1, 4096), runner);
  EXPECT_LT(runner.planned, 10'000);
  EXPECT_FALSE(result.unresolved.empty());
  for (const Change &change : result.changes) {
    EXPECT_EQ(change.before, change.at - 1);
    EXPECT_EQ(change.to, bounds[change.at % 7]);
  }
}

TEST(Crossover, NothingIsLegal) {
  FakeRunner runner([](int64_t) { return illegal(); });
  Crossovers result =
      findCrossovers(rangeOf(1, kMany), LegalValues(1, kMany, 0, 1, 1), runner);
  EXPECT_EQ(result.first, std::nullopt);
  EXPECT_EQ(result.error, "not divisible");
  EXPECT_EQ(findCrossovers(rangeOf(1, 9), LegalValues(), runner).first,
            std::nullopt);
}

TEST(Crossover, ComparesAllThatItPrints) {
  PlanState from{true,
                 "hbm",
                 true,
                 "X data",
                 {{"H", "einsum", "a.shd:5:1", "", "hbm"},
                  {"H", "einsum", "a.shd:6:1", "", "hbm"},
                  {"W", "all_gather", "a.shd:5:1", "W", "latency"}},
                 {"W[D@X, F]", "H[B, F]"},
                 {}};
  PlanState to{true,
               "network",
               false,
               "X tensor",
               {{"H", "einsum", "a.shd:5:1", "", "hbm"},
                {"H", "einsum", "a.shd:6:1", "", "compute"}},
               {"W[D, F@X]", "H[B, F]"},
               {}};
  std::vector<Change> changes = changesBetween(7, from, 8, to);
  Lines lines;
  for (const Change &change : changes)
    lines.push_back(change.what + " " + change.op.loc + ": " + change.from +
                    " -> " + change.to);
  EXPECT_EQ(lines,
            (Lines{"time.bound : hbm -> network", "memory.fits : true -> false",
                   "parallelism : X data -> X tensor",
                   "plan : W[D@X, F] -> W[D, F@X]",
                   "op.bound a.shd:6:1: hbm -> compute"}));
  EXPECT_TRUE(changesBetween(7, from, 8, from).empty());
}
