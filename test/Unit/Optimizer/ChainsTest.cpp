//===- ChainsTest.cpp - Work that waits for each other --------------------===//

#include "Assignments.h"
#include "shardc/Optimizer/TimeRows.h"
#include "shardc/Schedule/ScheduledProgram.h"
#include "shardc/Solver/Solve.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace shardc;
using namespace shardc::test;

namespace {

struct Measured {
  Picoseconds ofLinks = 0, withLoads = 0, scheduled = 0;
};

/// The chains of a program's plan of least `upper`, and its schedule.
Measured measure(const char *text) {
  TestProgram program(text);
  if (!program.module()) {
    ADD_FAILURE() << program.messages();
    return {};
  }
  NetworkOptions options;
  options.fixed = true;
  options.measureResources = options.measureLinks = true;
  PlannedNetwork network(program, options);
  EXPECT_TRUE(network);
  solver::Solution plan = solver::solve(network.problem());
  TimeRows times(network.get());
  Measured measured;
  for (bool withLoads : {false, true}) {
    Chain chain =
        times
            .longestChains(plan.assignment, /*matmulsOverlap=*/false, withLoads)
            .front();
    (withLoads ? measured.withLoads : measured.ofLinks) =
        times.lengthOf(chain, plan.assignment);
  }
  OwningOpRef<ModuleOp> lowered = network.lower(plan.assignment);
  EXPECT_TRUE(lowered);
  measured.scheduled = scheduleProgram(TestProgram::programOf(*lowered),
                                       network.planning().model, INT64_MAX)
                           .schedule.scheduled;
  return measured;
}

/// k and v are made one after the other and gathered on the same network, so
/// that one gather waits for the other: longer than k takes alone and then v
/// with its gather.
TEST(Chains, TwoGathersWaitForEachOther) {
  Measured measured = measure(R"(
hardware tpu_v5e[4, 1]
mesh [X=4]
dim B = 1024, D = 1024, E = 1024, F = 1024
input x:   bf16[B@X, D]
input z:   bf16[F@X, D]
weight Wk: bf16[D@(), F@()]
weight Wv: bf16[D@(), E@()]
k[B@X, F] = x[B, D] * Wk[D, F]
v[F@X, E] = z[F, D] * Wv[D, E]
s[B@(), E@()] = k[B@(), F@()] * v[F@(), E@()]
output s
)");
  EXPECT_LT(measured.ofLinks, measured.withLoads);
  EXPECT_EQ(measured.withLoads, measured.scheduled);
}

/// What a reduction needs of an input is reduced before it is its turn: beside
/// the matmuls before it, not behind them.
TEST(Chains, StatisticsOfInputsDoNotWait) {
  Measured measured = measure(R"(
hardware tpu_v5e[4, 1]
mesh [X=4]
dim B = 4096, D = 4096, F = 4096
input x:   bf16[B@(), D@()]
input w:   f32[B@X, D]
weight W:  bf16[D@(), F@()]
k[B@(), F@()] = x[B, D] * W[D, F]
m[] = max[B, D](w[B, D])
output k
output m
)");
  EXPECT_LE(measured.withLoads, measured.scheduled);
}

} // namespace
