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

using Groups = llvm::DenseMap<Operation *, int64_t>;

Groups groupsOf(shd::ProgramOp program) {
  Groups groups;
  program->walk([&](Operation *op) {
    if (std::optional<int64_t> group = shd::fusionGroupOf(op))
      groups[op] = *group;
  });
  return groups;
}

/// The same operations are in one group.
bool areAlike(const Groups &a, const Groups &b) {
  llvm::DenseMap<int64_t, int64_t> partner, back;
  return llvm::all_of(a, [&](const auto &each) {
    int64_t other = b.lookup(each.first);
    return partner.try_emplace(each.second, other).first->second == other &&
           back.try_emplace(other, each.second).first->second == each.second;
  });
}

/// Puts the statements of a program into a random order; false if it has no
/// plan, or fuses otherwise in that order.
bool shuffle(TestProgram &program, uint64_t seed) {
  PlannedNetwork network(program, {});
  if (!network)
    return false;
  shd::ProgramOp op = TestProgram::programOf(program.module());
  Groups before = groupsOf(op);
  shd::moveInOrder(op, network.randomOrder(seed));
  bool grouped = program.run(program.module(), [](OpPassManager &manager) {
    manager.addPass(shd::createShdFusionGroups());
  });
  return grouped && areAlike(before, groupsOf(op));
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
      continue;
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
  for (uint64_t seed = 0; seed < setting("SHARDC_TEST_PROGRAMS", 15); ++seed)
    checkShuffles(randomProgram(seed).c_str());
}

} // namespace
