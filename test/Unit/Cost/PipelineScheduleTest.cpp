//===- PipelineScheduleTest.cpp - When a pipeline's stages run ------------===//

#include "shardc/Cost/PipelineSchedule.h"
#include "gtest/gtest.h"

using namespace shardc;

TEST(PipelineScheduleTest, fourStagesWithOneMicrobatch) {
  // One microbatch visits 4 stages of F + BW = 3, so 3 of 4 stages idle: the
  // step is 12, the bubble 1 - 3 / 12.
  Pipeline pipeline;
  pipeline.stages.assign(4, {{{1, 1, 1}}, 0, 0});
  PipelineRun run = simulate(pipeline);
  EXPECT_EQ(run.step, 12);
  EXPECT_DOUBLE_EQ(run.bubble, 0.75);
}
