//===- NetworkLabelsTest.cpp - Networks of some labels --------------------===//
//
// A network of some of a network's labels has the plans that use no others, at
// the same costs: its best is that of the whole network in which all others are
// forbidden.
//
//===----------------------------------------------------------------------===//

#include "Assignments.h"
#include "RandomPrograms.h"
#include "SmallPrograms.h"
#include "shardc/Solver/LabelBounds.h"
#include "shardc/Solver/Solve.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace shardc;
using namespace shardc::test;

namespace {

/// All labels of some assignments, and some more at random.
solver::LabelSets drawLabels(const PlanNetwork &network, uint64_t seed) {
  solver::LabelSets kept;
  std::mt19937_64 random(seed);
  for (const solver::VariableData &variable : network.problem.variables) {
    std::vector<bool> &labels = kept.emplace_back();
    for (size_t i = 0; i < variable.costs.size(); ++i)
      labels.push_back(random() % 3 == 0);
  }
  AssignmentSampler sampler(network, seed);
  for (unsigned i = 0; i < 3; ++i)
    if (std::optional<std::vector<solver::Label>> plan = sampler.draw())
      for (auto [labels, label] : llvm::zip_equal(kept, *plan))
        labels[label] = true;
  return kept;
}

/// Forbids what selectLabels() leaves out: labels of operations but prologues,
/// of values and of copies, of which "none" stays.
solver::Problem forbid(const PlanNetwork &network,
                       const solver::LabelSets &kept) {
  solver::Problem problem = network.problem;
  auto forbidIn = [&](solver::Variable variable, size_t first) {
    auto &costs = problem.variables[variable].costs;
    for (size_t label = first; label < costs.size(); ++label)
      if (!kept[variable][label])
        costs[label] = solver::kForbidden;
  };
  for (auto [chunk, variable] :
       llvm::zip_equal(network.graph.chunks, network.chunkVariable))
    if (!chunk.prologue)
      forbidIn(variable, 0);
  for (const ValueVariable &value : network.values) {
    if (value.own)
      forbidIn(value.variable, 0);
    if (!value.copies.empty())
      forbidIn(value.copyVariable, 1);
  }
  return problem;
}

/// The best plans of both; false if the program has none.
bool compare(const char *text, uint64_t seed) {
  SCOPED_TRACE(text);
  TestProgram program(text);
  if (!program.module()) {
    ADD_FAILURE() << program.messages();
    return false;
  }
  NetworkOptions options;
  options.memoryLimit = int64_t(1) << 50;
  PlannedNetwork whole(program, options);
  if (!whole)
    return false;
  solver::LabelSets kept = drawLabels(whole.get(), seed);
  NetworkLabels labels = selectLabels(whole.get(), kept);
  options.within = &labels;
  std::variant<PlanNetwork, NoNetwork> built = buildNetwork(
      whole.planning(), TestProgram::programOf(program.module()), options);
  auto *part = std::get_if<PlanNetwork>(&built);
  EXPECT_TRUE(part);
  if (!part)
    return false;
  solver::Solution expected = solver::solve(forbid(whole.get(), kept));
  solver::Solution found = solver::solve(part->problem);
  EXPECT_EQ(found.status, expected.status);
  if (expected.status != solver::Status::Optimal)
    return false;
  EXPECT_EQ(found.cost, expected.cost);
  return true;
}

TEST(NetworkLabels, SmallProgramsHaveThePlansOfTheirLabels) {
  for (const SmallProgram &each : kSmallPrograms)
    for (uint64_t seed = 0; seed < 3; ++seed)
      EXPECT_TRUE(compare(each.text, seed)) << each.name;
}

TEST(NetworkLabels, RandomProgramsHaveThePlansOfTheirLabels) {
  unsigned compared = 0;
  for (uint64_t seed = 0; seed < 60; ++seed)
    compared += compare(randomProgram(seed).c_str(), seed);
  EXPECT_GT(compared, 45u);
}

/// A plan that costs less than the limit uses only labels below it, so that the
/// network of these has the same best plan.
TEST(NetworkLabels, OfWhatIsBelowALimitTheBestIsTheBest) {
  for (const SmallProgram &each : kSmallPrograms) {
    SCOPED_TRACE(each.name);
    TestProgram program(each.text);
    NetworkOptions options;
    options.memoryLimit = int64_t(1) << 50;
    PlannedNetwork whole(program, options);
    ASSERT_TRUE(whole);
    solver::Solution best = solver::solve(whole.problem());
    ASSERT_EQ(best.status, solver::Status::Optimal);
    solver::BoundWork work{1e8};
    NetworkLabels labels = selectLabels(
        whole.get(), solver::labelsBelow(solver::boundLabels(
                         whole.problem(), best.cost + 1, {}, work)));
    options.within = &labels;
    auto built = buildNetwork(
        whole.planning(), TestProgram::programOf(program.module()), options);
    auto *part = std::get_if<PlanNetwork>(&built);
    ASSERT_TRUE(part);
    EXPECT_LE(part->problem.variables.size(), whole.problem().variables.size());
    EXPECT_EQ(solver::solve(part->problem).cost, best.cost);
  }
}

} // namespace
