//===- OrderTest.cpp - Statements in other orders -------------------------===//

#include "Assignments.h"
#include "Plans.h"
#include "RandomPrograms.h"
#include "SmallPrograms.h"
#include "shardc/Dialect/Shd/IR/WorkOrder.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace shardc;
using namespace shardc::test;

namespace {

constexpr unsigned kShuffles = 5;

/// Puts the statements of a program into a random order; false if it has no
/// plan.
bool shuffle(TestProgram &program, uint64_t seed) {
  PlannedNetwork network(program, {});
  if (!network)
    return false;
  shd::moveInOrder(TestProgram::programOf(program.module()),
                   network.randomOrder(seed));
  return true;
}

/// What is proven in one order of the statements holds in all: no order has a
/// plan below the bound of another, and proven optima are the same.
void checkShuffles(const char *text) {
  SCOPED_TRACE(text);
  int64_t best = std::numeric_limits<int64_t>::max(), bound = 0;
  for (uint64_t seed = 0; seed <= kShuffles; ++seed) {
    TestProgram program(text);
    ASSERT_TRUE(program.module()) << program.messages();
    if (seed > 0 && !shuffle(program, seed))
      return;
    std::optional<Picked> picked =
        optimize(program, kUnlimited, Objective::Scheduled);
    ASSERT_TRUE(picked);
    best = std::min(best, picked->value);
    bound = std::max(bound, picked->bound);
    if (picked->status == "optimal")
      EXPECT_EQ(picked->value, picked->bound);
  }
  EXPECT_LE(bound, best);
}

TEST(Order, SmallProgramsKeepTheirProofs) {
  for (const SmallProgram &program : kSmallPrograms)
    checkShuffles(program.text);
}

TEST(Order, RandomProgramsKeepTheirProofs) {
  for (uint64_t seed = 0; seed < setting("SHARDC_TEST_PROGRAMS", 40); ++seed)
    checkShuffles(randomProgram(seed).c_str());
}

} // namespace
