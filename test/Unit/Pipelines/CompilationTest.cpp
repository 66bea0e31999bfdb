//===- CompilationTest.cpp - One program through all stages ---------------===//

#include "shardc/Pipelines/Compilation.h"
#include "TestProgram.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace shardc;
using namespace shardc::test;

namespace {

using Stage = Compilation::Stage;

constexpr const char *kText = R"(hardware tpu_v5e[2, 2]
mesh [X=2, Y=2]
dim B = 512, D = 1024, F = 1024
input x: bf16[B@X, D]
weight W: bf16[D, F@Y]
y[B, F] = x[B, D] * W[D, F]
output y
)";

// Asking for the schedule plans and lowers first, and only once.
TEST(Compilation, ReachesStagesOnDemand) {
  TestProgram text(kText);
  ASSERT_TRUE(text.module()) << text.messages();
  Compilation compilation(text.clone());
  EXPECT_EQ(compilation.stage(), Stage::Imported);
  EXPECT_EQ(Compilation::stageOf(compilation.module()), Stage::Imported);
  EXPECT_FALSE(compilation.planning());
  const ScheduledProgram *scheduled = compilation.schedule();
  ASSERT_TRUE(scheduled) << text.messages();
  EXPECT_EQ(compilation.stage(), Stage::Explicit);
  EXPECT_EQ(Compilation::stageOf(compilation.module()), Stage::Explicit);
  EXPECT_TRUE(compilation.planning());
  EXPECT_EQ(compilation.schedule(), scheduled);
}

// A clone keeps the stage at which it was made.
TEST(Compilation, ContinuesFromAStage) {
  TestProgram text(kText);
  Compilation compilation(text.clone());
  ASSERT_TRUE(succeeded(compilation.plan())) << text.messages();
  EXPECT_EQ(compilation.stage(), Stage::Planned);
  Compilation copy(compilation.clone(), Stage::Planned);
  ASSERT_TRUE(succeeded(compilation.lower())) << text.messages();
  ASSERT_TRUE(copy.schedule()) << text.messages();
  EXPECT_EQ(copy.schedule()->schedule.scheduled,
            compilation.schedule()->schedule.scheduled);
  ASSERT_TRUE(succeeded(copy.convertToSpmd())) << text.messages();
  EXPECT_EQ(copy.stage(), Stage::Spmd);
  EXPECT_FALSE(copy.program());
}

// A module of two programs has no plan, whichever stage is asked for.
TEST(Compilation, ExpectsOneProgram) {
  TestProgram text(kText);
  OwningOpRef<ModuleOp> module = text.clone();
  module->push_back((*module->getOps<shd::ProgramOp>().begin())->clone());
  Compilation compilation(std::move(module));
  EXPECT_TRUE(failed(compilation.plan()));
  EXPECT_TRUE(failed(compilation.lower()));
  EXPECT_FALSE(compilation.schedule());
  EXPECT_NE(text.messages().find("expected one shd.program, found 2"),
            std::string::npos)
      << text.messages();
}

} // namespace
