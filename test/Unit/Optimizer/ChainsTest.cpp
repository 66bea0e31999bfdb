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
  Picoseconds ofLinks = 0, withLoads = 0, device = 0, scheduled = 0;
};

/// The chains of a program's plan of least `upper`, and its schedule. A
/// training step's layouts are found from those in the text.
Measured measure(const char *text, ChainOrders orders = ChainOrders::Any) {
  TestProgram program(text);
  if (!program.module() || !program.makeStep()) {
    ADD_FAILURE() << program.messages();
    return {};
  }
  NetworkOptions options;
  options.fixed = !TestProgram::programOf(program.module()).getTraining();
  options.measureResources = options.measureLinks = true;
  PlannedNetwork network(program, options);
  EXPECT_TRUE(network);
  solver::Solution plan = solver::solve(network.problem());
  TimeRows times(network.get());
  ChainFinder finder(network.get().graph, network.get().linkEdges, {orders});
  Measured measured;
  for (bool withLoads : {false, true}) {
    Chain chain =
        times.longestChains(finder, plan.assignment, withLoads).front();
    (withLoads ? measured.withLoads : measured.ofLinks) =
        times.lengthOf(chain, plan.assignment);
  }
  OwningOpRef<ModuleOp> lowered = network.lower(plan.assignment);
  EXPECT_TRUE(lowered);
  Schedule schedule = scheduleProgram(TestProgram::programOf(*lowered),
                                      network.planning().model, INT64_MAX)
                          .schedule;
  measured.device = schedule.device;
  measured.scheduled = schedule.scheduled;
  return measured;
}

/// One of a program's matmuls on one of four TPU v5e: 2 x 1024 x 4096 x 4096
/// FLOP / 1.97e14 FLOP/s.
constexpr Picoseconds kMatmul = 174414000;
/// 4096 x 4096 x 2 B = 33.6 MB gathered on a line of four: / (4/3 x 45 GB/s).
constexpr Picoseconds kGather = 559240533;

/// k is gathered for s and q is not. The text makes q first, so that nothing
/// hides the gather; another order hides q behind it. No order is faster than
/// k, its gather and s.
TEST(Chains, HoldInEveryOrder) {
  const char *text = R"(
hardware tpu_v5e[4, 1]
mesh [X=4]
dim B = 4096, S = 4096, D = 4096, F = 4096
input x:   bf16[B@X, D@()]
input z:   bf16[S@X, D@()]
weight Wq: bf16[D@(), F@()]
weight Wk: bf16[D@(), F@()]
q[B@X, F@()] = x[B, D] * Wq[D, F]
k[S@X, F@()] = z[S, D] * Wk[D, F]
s[B@X, S@()] = q[B, F] * k[S@(), F]
output s
)";
  Measured inText = measure(text, ChainOrders::Text);
  EXPECT_NEAR(inText.scheduled, 3 * kMatmul + kGather, 2e6);
  EXPECT_EQ(inText.ofLinks, inText.scheduled);
  Measured inAny = measure(text, ChainOrders::Any);
  EXPECT_NEAR(inAny.ofLinks, 2 * kMatmul + kGather, 2e6);
}

/// Two products read x gathered: whichever runs first waits for it, and the
/// other need not.
TEST(Chains, CountTheLeastWaitOfSeveralReaders) {
  const char *text = R"(
hardware tpu_v5e[4, 1]
mesh [X=4]
dim B = 4096, D = 4096, E = 4096, F = 4096, G = 4096
input z:   bf16[B@X, D@()]
weight W:  bf16[D@(), E@()]
weight V:  bf16[E, F@X]
weight U:  bf16[E, G@X]
x[B@X, E@()] = z[B, D] * W[D, E]
v[B@(), F@X] = x[B@(), E] * V[E, F]
u[B@(), G@X] = x[B@(), E] * U[E, G]
output v
output u
)";
  Measured inAny = measure(text, ChainOrders::Any);
  EXPECT_NEAR(inAny.ofLinks, 3 * kMatmul + kGather, 2e6);
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
)",
                              ChainOrders::Text);
  EXPECT_LT(measured.ofLinks, measured.withLoads);
  EXPECT_EQ(measured.withLoads, measured.scheduled);
}

/// Whatever the order, a network that gathers k and v has nothing to carry
/// before one of them is made.
TEST(Chains, NetworksWaitForTheFirstToBeMade) {
  Measured measured = measure(R"(
hardware tpu_v5e[4, 1]
mesh [X=4]
dim B = 4096, D = 4096, E = 4096, F = 4096
input x:   bf16[B@X, D@()]
input z:   bf16[E@X, D@()]
weight Wk: bf16[D@(), F@()]
weight Wv: bf16[D@(), F@()]
k[B@X, F@()] = x[B, D] * Wk[D, F]
v[E@X, F@()] = z[E, D] * Wv[D, F]
s[B@(), E@()] = k[B@(), F@()] * v[E@(), F@()]
output s
)");
  EXPECT_NEAR(measured.withLoads, 5 * kMatmul + 2 * kGather, 2e6);
  EXPECT_EQ(measured.withLoads, measured.scheduled);
}

/// The gate and the product with it are one group, whose second part reads u:
/// what reads h runs behind u too.
TEST(Chains, CountWhatTheSecondPartOfAGroupReads) {
  Measured measured = measure(R"(
hardware tpu_v5e[4, 1]
mesh [X=4]
dim B = 4096, D = 4096, F = 4096, G = 4096
input x:   bf16[B@X, D@()]
weight Wu: bf16[D@(), F@()]
weight Wg: bf16[D@(), F@()]
weight Wd: bf16[F, G@X]
u[B@X, F@()] = x[B, D] * Wu[D, F]
h[B@X, F@()] = relu(x[B, D] * Wg[D, F]) * u[B@X, F]
y[B@(), G@X] = h[B@(), F] * Wd[F, G]
output y
)");
  EXPECT_NEAR(measured.ofLinks, 3 * kMatmul + kGather, 2e6);
}

/// The second part of h's group waits for u's gather, and y for that part.
TEST(Chains, WaitForWhatTheSecondPartOfAGroupReads) {
  Measured measured = measure(R"(
hardware tpu_v5e[4, 1]
mesh [X=4]
dim B = 4096, D = 4096, F = 4096, G = 4096, E = 16
input x:   bf16[B@X, D@()]
input z:   bf16[B@(), E@()]
weight Wu: bf16[D@(), F@()]
weight Wg: bf16[E@(), F@()]
weight Wd: bf16[F@(), G@X]
u[B@X, F@()] = x[B, D] * Wu[D, F]
h[B@(), F@()] = relu(z[B, E] * Wg[E, F]) * u[B@(), F]
y[B@(), G@X] = h[B, F] * Wd[F, G]
output y
)");
  EXPECT_NEAR(measured.ofLinks, 2 * kMatmul + kGather, 4e6);
}

/// The gradients of both weights stay partial until the backward pass has
/// ended. Then each update reads a reduced gradient and its result is gathered:
/// the network carries these one after the other, and hides the updates.
///
/// A gradient is 2048 x 2048 x 4 B = 16.8 MB; a line of four TPU v5e carries it
/// in 16.8 MB / (4/3 x 45 GB/s) = 279620267 ps, reduced or gathered. There are
/// 2 x 3 of each. An update reads weight, gradient and momentum and writes
/// weight and momentum, 5 x 4.19 MB / 820 GB/s = 25575024 ps, also 2 x 3 times.
TEST(Chains, UpdatesWaitForTheNetwork) {
  Measured measured = measure(R"(
hardware tpu_v5e[4, 1]
mesh [X=4]
dim B = 4096, D = 2048, E = 2048, L = 3
input  z: bf16[B@X, D]
x[B@X, D] = relu(z[B, D])
repeat L {
  weight V: f32[D@(), E@()]
  weight W: f32[E@(), D@()]
  h[B@X, E] = relu(x[B, D] * V[D, E])
  x[B@X, D] = h[B, E] * W[E, D]
}
l[] = mean[B, D](x)
train {
  loss = l  optimizer = sgd(momentum=f32)  microbatches = 1  remat = none
  gradient V[D, E]{+X}  gradient W[E, D]{+X}
  moments V[D, E@X]  moments W[E, D@X]
}
)",
                              ChainOrders::Text);
  EXPECT_EQ(measured.scheduled, measured.device - 6 * Picoseconds(25575024) +
                                    12 * Picoseconds(279620267));
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
