//===- TrainingTest.cpp - Training steps on a grid of devices -------------===//
//
// Whatever the layouts are, the devices end with the weights and moments of the
// whole step, and take the memory that is predicted.
//
//===----------------------------------------------------------------------===//

#include "Assignments.h"
#include "Plans.h"
#include "TrainingSteps.h"
#include "shardc/Schedule/ScheduledProgram.h"
#include "shardc/Verify/Verify.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace shardc;
using namespace shardc::test;
using solver::Label;

namespace {

class TrainingVerify : public ::testing::TestWithParam<TrainingStep> {
protected:
  void checkRun(TestProgram &program, ModuleOp planned,
                const CollectiveModel &model, int64_t memory, bool shrink);
};

/// Runs an explicit program in the schedule that fits so much memory.
void TrainingVerify::checkRun(TestProgram &program, ModuleOp planned,
                              const CollectiveModel &model, int64_t memory,
                              bool shrink) {
  ScheduledProgram scheduled =
      scheduleProgram(TestProgram::programOf(planned), model, memory);
  VerifyOptions options;
  options.shrink = shrink;
  options.schedule = &scheduled.issues;
  FailureOr<Verification> result =
      verifyPlan(program.module(), planned, options);
  ASSERT_TRUE(succeeded(result)) << program.messages();
  for (const Verification::Result &each : result->results)
    EXPECT_FALSE(each.differs) << each.name;
  // Weights, moments and gradients.
  EXPECT_EQ(result->results.size(), GetParam().hasHead ? 6u : 3u);
  for (const auto &account : {result->inOrder, result->asScheduled})
    for (int64_t measured : account->measured)
      EXPECT_EQ(measured, account->predicted);
}

TEST_P(TrainingVerify, EveryPlanMakesTheSameWeights) {
  std::unique_ptr<TestProgram> program =
      TestProgram::ofModule(textOf(GetParam()));
  ASSERT_TRUE(program->module()) << program->messages();
  NetworkOptions options;
  options.memoryLimit = int64_t(1) << 50;
  PlannedNetwork network(*program, options);
  ASSERT_TRUE(bool(network)) << program->messages();
  AssignmentSampler sampler(network.get(), /*seed=*/1);
  for (unsigned i = 0, count = setting("SHARDC_TEST_ASSIGNMENTS", 100);
       i < count; ++i) {
    std::optional<std::vector<Label>> assignment = sampler.draw();
    ASSERT_TRUE(assignment);
    OwningOpRef<ModuleOp> lowered = network.lower(*assignment);
    ASSERT_TRUE(lowered) << program->messages();
    for (int64_t memory : {int64_t(0), INT64_MAX})
      checkRun(*program, *lowered, network.planning().model, memory,
               /*shrink=*/i % 4 == 3);
    if (HasFailure()) {
      std::string text;
      llvm::raw_string_ostream(text) << *lowered;
      FAIL() << text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Steps, TrainingVerify,
                         ::testing::ValuesIn(kTrainingSteps),
                         [](const auto &info) { return info.param.name; });

} // namespace
