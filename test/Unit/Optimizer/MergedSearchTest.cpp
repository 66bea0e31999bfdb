//===- MergedSearchTest.cpp - Plans on meshes of many axes ----------------===//
//
// On a mesh of four axes of two devices, small programs can be searched whole:
// what is found around merged axes is no better than the best of all plans, no
// worse than the best with any neighbours merged, and the best of all where
// every label is next to the best merged one.
//
//===----------------------------------------------------------------------===//

#include "shardc/Dialect/Shd/Transforms/MergedSearch.h"
#include "Assignments.h"
#include "Plans.h"
#include "shardc/Dialect/Shd/Transforms/DeviceBound.h"
#include "shardc/Solver/Solve.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace shardc;
using namespace shardc::test;

namespace {

constexpr const char *kMachine =
    "hardware tpu_v5e[4, 4]\nmesh [W=2, X=2, Y=2, Z=2]\n";

struct Found {
  /// The least `upper` of all plans, and the least with neighbours merged.
  int64_t best = 0, merged = 0;
  /// In seconds.
  std::optional<double> byWork;
  shd::MergedPlan plan;
};

/// The exact least cost of a network.
std::optional<int64_t> leastCost(PlanningContext &context, shd::ProgramOp op,
                                 const NetworkOptions &options) {
  auto built = buildNetwork(context, op, options);
  auto *network = std::get_if<PlanNetwork>(&built);
  if (!network)
    return std::nullopt;
  solver::Solution solution = solver::solve(network->problem);
  EXPECT_EQ(solution.status, solver::Status::Optimal);
  return solution.cost;
}

std::optional<Found> search(llvm::StringRef body, Objective objective) {
  TestProgram program(std::string(kMachine) + body.str());
  if (!program.module()) {
    ADD_FAILURE() << program.messages();
    return std::nullopt;
  }
  NetworkOptions options;
  options.memoryLimit = kUnlimited;
  options.measureResources = objective != Objective::Upper;
  options.measureLinks = objective == Objective::Scheduled;
  PlannedNetwork whole(program, options);
  if (!whole) {
    ADD_FAILURE() << program.messages();
    return std::nullopt;
  }
  shd::ProgramOp op = TestProgram::programOf(program.module());
  Found found;
  found.best = *leastCost(whole.planning(), op, options);
  found.merged = std::numeric_limits<int64_t>::max();
  for (const AxisBlocks &blocks :
       mergeNeighbours(separateAxes(whole.planning().mesh()), 3)) {
    LabelChoice choice{blocks, {}};
    NetworkOptions merged = options;
    merged.choice = &choice;
    if (auto cost = leastCost(whole.planning(), op, merged))
      found.merged = std::min(found.merged, *cost);
  }
  shd::NetworkSearchOptions how;
  how.objective = objective;
  found.byWork = shd::boundByWork(op, how);
  auto plan = searchMergedAxes(whole.planning(), op, options, how,
                               /*bound=*/std::nullopt);
  if (!plan) {
    ADD_FAILURE() << "no plan";
    return std::nullopt;
  }
  found.plan = std::move(*plan);
  return found;
}

struct Case {
  const char *name, *body;
};

const Case kCases[] = {
    {"feed_forward", R"(
dim B = 64, D = 256, F = 1024
input x: bf16[B, D]
weight W1: bf16[D, F]
weight W2: bf16[F, D]
h[B, F] = relu(x[B, D] * W1[D, F])
y[B, D] = h[B, F] * W2[F, D]
output y
)"},
    {"pinned", R"(
dim B = 64, D = 256, F = 1024
input x: bf16[B@X, D]
weight W1: bf16[D, F@Y]
weight W2: bf16[F, D@W]
h[B, F] = relu(x[B, D] * W1[D, F])
y[B@Z, D] = h[B, F] * W2[F, D]
output y
)"},
    {"reshard", R"(
dim N = 256, M = 64
input x: f32[N@(Y, W), M@X]
y[N@Z, M@(W, X)] = x[N, M]
output y
)"},
};

TEST(MergedSearch, BetweenTheBestAndTheBestMerged) {
  for (const Case &each : kCases) {
    SCOPED_TRACE(each.name);
    std::optional<Found> found = search(each.body, Objective::Upper);
    ASSERT_TRUE(found);
    ASSERT_TRUE(found->plan.found.fits());
    int64_t cost = found->plan.found.solution.cost;
    EXPECT_GE(cost, found->best);
    EXPECT_LE(cost, found->merged);
  }
}

/// One operation on one index: whatever is not a block is one move away from
/// the best merged plan, or as good.
TEST(MergedSearch, FindsTheBestWhereAllIsNear) {
  for (const char *body : {"dim N = 256\ninput x: f32[N]\ny = relu(x)\n"
                           "output y\n",
                           "dim N = 256, M = 3\ninput x: f32[N@Y, M]\n"
                           "y = relu(x)\noutput y\n"}) {
    SCOPED_TRACE(body);
    std::optional<Found> found = search(body, Objective::Upper);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->plan.found.solution.cost, found->best);
  }
}

/// Of the feed-forward block on one device, products take
/// 2 x 2 x 64 x 256 x 1024 / 197e12 s = 340,650.8 ps; each reads and writes
/// 2 x (64 x 256 + 256 x 1024 + 64 x 1024) B, 839,180.5 ps at 820 GB/s, which
/// is more. So 16 devices take 2 x 839,180.5 / 16 = 104,897.6 ps, less half a
/// picosecond or so for each of three operations.
TEST(MergedSearch, IsBoundByTheWorkOfOneDevice) {
  for (const Case &each : kCases) {
    SCOPED_TRACE(each.name);
    std::optional<Found> found = search(each.body, Objective::Lower);
    ASSERT_TRUE(found);
    // A reshard alone is no work.
    ASSERT_EQ(found->byWork.has_value(),
              llvm::StringRef(each.name) != "reshard");
    if (!found->byWork)
      continue;
    EXPECT_GT(*found->byWork, 0);
    EXPECT_LE(*found->byWork, double(found->plan.found.solution.cost) * 1e-12);
    if (llvm::StringRef(each.name) == "feed_forward")
      EXPECT_NEAR(*found->byWork, 104'897.6e-12, 2e-12);
  }
}

TEST(MergedSearch, MinimisesOtherTimes) {
  for (Objective objective : {Objective::Lower, Objective::Scheduled})
    for (const Case &each : kCases) {
      SCOPED_TRACE(each.name);
      std::optional<Found> found = search(each.body, objective);
      ASSERT_TRUE(found);
      EXPECT_EQ(found->plan.found.of, objective);
      // Neither is above `upper`.
      EXPECT_LE(found->plan.found.solution.cost, found->merged);
    }
}

/// The network of the labels that are returned has the plan at that cost, and
/// the program keeps its own pins.
TEST(MergedSearch, ItsLabelsGiveThePlan) {
  TestProgram program(std::string(kMachine) + kCases[1].body);
  ASSERT_TRUE(program.module());
  NetworkOptions options;
  options.memoryLimit = kUnlimited;
  PlannedNetwork whole(program, options);
  ASSERT_TRUE(whole);
  shd::ProgramOp op = TestProgram::programOf(program.module());
  std::string before, after;
  llvm::raw_string_ostream(before) << op;
  shd::NetworkSearchOptions how;
  how.objective = Objective::Upper;
  auto plan = searchMergedAxes(whole.planning(), op, options, how,
                               /*bound=*/std::nullopt);
  ASSERT_TRUE(plan);
  llvm::raw_string_ostream(after) << op;
  EXPECT_EQ(before, after);
  options.choice = &plan->choice;
  auto built = buildNetwork(whole.planning(), op, options);
  auto *network = std::get_if<PlanNetwork>(&built);
  ASSERT_TRUE(network);
  solver::Problem problem = network->problem;
  EXPECT_EQ(solver::evaluate(problem, plan->found.solution.assignment).cost,
            plan->found.solution.cost);
}

} // namespace
