//===- MemoryTest.cpp - Memory predicted and measured ---------------------===//
//
// What a device takes at most is counted by hand, predicted from the program's
// graph and measured on a grid of devices that runs the schedule.
//
//===----------------------------------------------------------------------===//

#include "TestProgram.h"
#include "shardc/Pipelines/Pipelines.h"
#include "shardc/Report/ScheduledProgram.h"
#include "shardc/Verify/Verify.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::test;

namespace {

/// What each device takes, predicted and measured, and how it overlaps.
struct Memory {
  int64_t predicted = -1;
  std::vector<int64_t> measured;
  std::vector<Overlap> overlap;
};

Memory measure(StringRef text, int64_t limit = int64_t(1) << 40) {
  TestProgram program(text);
  Memory result;
  if (!program.module()) {
    ADD_FAILURE() << program.messages();
    return result;
  }
  OwningOpRef<ModuleOp> imported = program.clone();
  PlanOptions options;
  options.mode = OptMode::None;
  PassManager manager(program.module()->getContext());
  buildPlanPipeline(manager, options);
  buildLoweringPipeline(manager);
  if (failed(manager.run(program.module()))) {
    ADD_FAILURE() << program.messages();
    return result;
  }
  shd::ProgramOp planned = TestProgram::programOf(program.module());
  std::unique_ptr<PlanningContext> context = createContext(planned);
  ScheduledProgram scheduled = scheduleProgram(planned, context->model, limit);
  VerifyOptions verify;
  verify.shrink = false;
  verify.schedule = &scheduled.issues;
  FailureOr<Verification> verification =
      verifyPlan(*imported, program.module(), verify);
  if (failed(verification)) {
    ADD_FAILURE() << program.messages();
    return result;
  }
  EXPECT_TRUE(verification->holds) << program.messages();
  result.predicted = scheduled.memory.peak;
  result.measured = {verification->run.peak.begin(),
                     verification->run.peak.end()};
  result.overlap = scheduled.overlap;
  return result;
}

void expectPeak(const Memory &memory, int64_t bytes) {
  EXPECT_EQ(memory.predicted, bytes);
  for (int64_t measured : memory.measured)
    EXPECT_EQ(measured, bytes);
}

/// Of each weight, a device holds 16 B for each iteration and 32 B as gathered;
/// x and h are 32 B.
constexpr const char *kLayers = R"(
hardware tpu_v5e[2, 2]
mesh [X=2, Y=2]
dim B = 8, D = 4, F = 8, L = 3
input x0: bf16[B@X, D]
x[B@X, D@()] = x0[B, D]
repeat L {
  weight Win:  bf16[D@X, F@Y]
  weight Wout: bf16[F@Y, D@X]
  h[B@X, F@Y] = relu(x[B@X, D@()] * Win[D@(), F@Y])
  x[B@X, D@()] = h[B@X, F@Y] * Wout[F@Y, D@()]
}
output x
)";

// While h is made: weights 3 * 32, x and h, Win as gathered, that of the next
// iteration and Wout.
TEST(MemoryTest, Prefetched) {
  Memory memory = measure(kLayers);
  ASSERT_EQ(memory.overlap[1], Overlap::Prefetch);
  expectPeak(memory, 96 + 64 + 3 * 32);
}

// Win and Wout.
TEST(MemoryTest, Ahead) {
  Memory memory = measure(kLayers, 96 + 64 + 2 * 32);
  ASSERT_EQ(memory.overlap[1], Overlap::Ahead);
  expectPeak(memory, 96 + 64 + 2 * 32);
}

// Win alone.
TEST(MemoryTest, Serial) {
  Memory memory = measure(kLayers, 96 + 64 + 32);
  ASSERT_EQ(memory.overlap[1], Overlap::Serial);
  expectPeak(memory, 96 + 64 + 32);
}

} // namespace
