//===- ExtentProblemTest.cpp - Small extents that relate as large ones ----===//

#include "ExtentProblem.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>
#include <random>

using namespace shardc;

namespace {

using Kind = ExtentCombination::Kind;

ExtentProblem problemOf(std::initializer_list<int64_t> originals) {
  ExtentProblem problem;
  for (int64_t original : originals)
    problem.extents.emplace_back(original);
  return problem;
}

std::vector<int64_t> valuesOf(const ExtentProblem &problem) {
  return solve(problem).values;
}

TEST(ExtentProblem, DifferentExtentsKeepTheirOrder) {
  EXPECT_EQ(valuesOf(problemOf({2, 100, 128, 4096})),
            (std::vector<int64_t>{2, 3, 4, 5}));
}

TEST(ExtentProblem, WithoutOrderAsSmallAsCanBe) {
  ExtentProblem problem = problemOf({2, 100, 128, 4096, 12800});
  problem.prefersOrder = false;
  problem.combinations.push_back({Kind::Product, 4, {1, 2}});
  EXPECT_EQ(valuesOf(problem), (std::vector<int64_t>{2, 2, 2, 2, 4}));
}

// 64 * 64 = 4096 = 32 * 128. 32 is 2; with 64 as 3, 9 is no multiple of 2; with
// 64 as 4, 128 is 8.
TEST(ExtentProblem, TwoProductsOfOneWhole) {
  ExtentProblem problem = problemOf({32, 64, 128, 4096});
  problem.combinations.push_back({Kind::Product, 3, {1, 1}});
  problem.combinations.push_back({Kind::Product, 3, {0, 2}});
  EXPECT_EQ(valuesOf(problem), (std::vector<int64_t>{2, 4, 8, 16}));
}

// 1 + 5 + 6 = 12: 1 + 2 + 3 = 6.
TEST(ExtentProblem, SumsCountOnes) {
  ExtentProblem problem = problemOf({5, 6, 12});
  problem.combinations.push_back({Kind::Sum, 2, {0, 1}, 1});
  EXPECT_EQ(valuesOf(problem), (std::vector<int64_t>{2, 3, 6}));
}

// 5 differs from the count, which is 2; 2 cannot.
TEST(ExtentProblem, ExtentsDifferFromCounts) {
  ExtentProblem problem = problemOf({2, 5, 80, 81});
  problem.extents[2].isCount = true;
  EXPECT_EQ(valuesOf(problem), (std::vector<int64_t>{2, 3, 2, 4}));
}

// 8 is fixed to 2 and must be a multiple of 4: it stays, and the axes with it.
TEST(ExtentProblem, ContradictionsKeepExtentsAndNameAxes) {
  ExtentProblem problem = problemOf({8, 12});
  problem.extents[0].fixTo(2);
  problem.extents[0].divideBy(4);
  problem.extents[0].axes = 5;
  ShrunkExtents result = solve(problem);
  EXPECT_EQ(result.values, (std::vector<int64_t>{8, 2}));
  EXPECT_EQ(result.unmetAxes, 5u);
}

//===----------------------------------------------------------------------===//
// Against exhaustive search
//===----------------------------------------------------------------------===//

/// All that must hold; with `preferences`, also all that should.
bool holds(const ExtentProblem &problem, llvm::ArrayRef<int64_t> values,
           bool preferences) {
  int64_t previous = 0;
  for (auto [extent, value] : llvm::zip_equal(problem.extents, values)) {
    if (!extent.admits(value))
      return false;
    bool isLiked =
        (extent.isFixed() || value >= extent.preferred) && value > previous &&
        llvm::none_of(extent.uneven,
                      [&](int64_t size) { return value % size == 0; });
    if (preferences && !isLiked)
      return false;
    previous = value;
  }
  for (const ExtentCombination &combination : problem.combinations) {
    int64_t product = 1, sum = combination.ones;
    for (unsigned part : combination.parts) {
      product *= values[part];
      sum += values[part];
    }
    if (values[combination.whole] !=
        (combination.kind == Kind::Product ? product : sum))
      return false;
  }
  return llvm::all_of(problem.distances, [&](const ExtentDistance &distance) {
    return values[distance.larger] >= values[distance.smaller] + distance.least;
  });
}

/// The lexicographically least values for which all holds; empty: none.
std::vector<int64_t> leastValues(const ExtentProblem &problem,
                                 bool preferences) {
  std::vector<int64_t> values(problem.extents.size(), 2);
  while (!holds(problem, values, preferences)) {
    size_t at = values.size();
    while (at > 0 && values[at - 1] == problem.extents[at - 1].original)
      values[--at] = 2;
    if (at == 0)
      return {};
    ++values[at - 1];
  }
  return values;
}

class RandomExtents {
public:
  explicit RandomExtents(unsigned seed) : random(seed) {}

  ExtentProblem make() {
    ExtentProblem problem;
    for (int64_t original = 2 + pick(3); problem.extents.size() < 5;
         original += 1 + pick(4))
      problem.extents.emplace_back(original);
    for (ShrinkableExtent &extent : problem.extents)
      constrain(extent);
    for (unsigned whole = 1; whole < problem.extents.size(); ++whole)
      relate(problem, whole);
    return problem;
  }

private:
  unsigned pick(unsigned count) { return random() % count; }

  void constrain(ShrinkableExtent &extent) {
    if (pick(3) == 0)
      extent.divideBy(2 + pick(2));
    if (pick(3) == 0)
      extent.preferred = 3 + pick(3);
    if (pick(5) == 0)
      extent.uneven.push_back(2 + pick(2));
    if (pick(12) == 0)
      extent.fixTo(2 + pick(2));
  }

  /// Adds the relations that hold between the original extents.
  void relate(ExtentProblem &problem, unsigned whole) {
    auto original = [&](unsigned extent) {
      return problem.extents[extent].original;
    };
    for (unsigned a = 0; a < whole; ++a)
      for (unsigned b = a; b < whole; ++b) {
        if (original(a) * original(b) == original(whole) && pick(2) == 0)
          problem.combinations.push_back({Kind::Product, whole, {a, b}});
        int64_t ones = original(whole) - original(a) - original(b);
        if (ones >= 0 && ones < 2 && pick(3) == 0)
          problem.combinations.push_back({Kind::Sum, whole, {a, b}, ones});
      }
    unsigned part = pick(whole);
    int64_t distance = original(whole) - original(part);
    if (pick(3) == 0)
      problem.distances.push_back(
          {part, whole, std::min<int64_t>(distance, 1 + pick(2))});
  }

  std::mt19937 random;
};

TEST(ExtentProblem, LeastValuesAsExhaustiveSearchFindsThem) {
  unsigned liked = 0, met = 0, unmet = 0;
  for (unsigned seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ExtentProblem problem = RandomExtents(seed).make();
    ShrunkExtents found = solve(problem);
    if (std::vector<int64_t> best = leastValues(problem, true); !best.empty()) {
      EXPECT_EQ(found.values, best);
      ++liked;
    } else if (!leastValues(problem, false).empty()) {
      EXPECT_TRUE(holds(problem, found.values, false));
      ++met;
    } else {
      EXPECT_FALSE(holds(problem, found.values, false));
      ++unmet;
    }
  }
  // Each kind of outcome is there.
  EXPECT_GT(liked, 40u);
  EXPECT_GT(met, 40u);
  EXPECT_GT(unmet, 40u);
}

} // namespace
