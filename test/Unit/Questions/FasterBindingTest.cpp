//===- FasterBindingTest.cpp - Where else a mesh would better lie ---------===//

#include "shardc/Questions/FasterBinding.h"
#include "Planned.h"

using namespace shardc;
using namespace shardc::test;

namespace {

std::optional<Report::FasterBinding> fasterBinding(Planned &planned) {
  return findFasterBinding(*planned.planned, *planned.compilation,
                           *planned.report);
}

/// A weight gathered over X, split over Y, on a machine and mesh as given.
std::string gather(llvm::StringRef hardware, llvm::StringRef mesh) {
  return ("hardware " + hardware + "\nmesh " + mesh + R"(
dim B = 1024, D = 8192, F = 8192
input x: bf16[B, D]
weight W: bf16[D@X, F@Y]
y[B, F@Y] = x[B, D] * W[D@(), F@Y]
output y
)")
      .str();
}

// W takes 134217728 B, V is half of it. X = 8 goes on the node's 8 GPUs and Y =
// 2 on the nodes: nothing is faster than NVLink.
TEST(FasterBinding, NothingBetterThanNvlink) {
  Planned planned(gather("h100[2, 8]", "[Y=2, X=8]"), OptMode::None);
  ASSERT_TRUE(planned);
  EXPECT_FALSE(fasterBinding(planned));
}

// Bound the other way round, X = 2 nodes, of 50e9 a GPU. V = W / 8: V/2 / 50e9
// = 168 us; on two GPUs V/2 / 450e9 = 19 us.
TEST(FasterBinding, AcrossNodesIsSlower) {
  Planned planned(gather("h100[2, 8]", "[X=2 on node, Y=8 on gpu]"),
                  OptMode::None);
  ASSERT_TRUE(planned);
  std::optional<Report::FasterBinding> faster = fasterBinding(planned);
  ASSERT_TRUE(faster);
  EXPECT_EQ(faster->mesh, "mesh [X=2 on gpu, Y=8 on (gpu, node)]");
  double v = 8192.0 * 8192 * 2 / 8;
  EXPECT_NEAR(planned.report->time.scheduled - faster->scheduled,
              v / 2 / 50e9 - v / 2 / 450e9, 1e-9);
}

// On a v5e of 8x16 only the axis of 16 is a ring. X = 8 as the outer half of it
// would share its links; on the axis of 8 it is a line: V 7/8 / 45e9. Half of
// the ring inside is the same line, so that nothing is better.
TEST(FasterBinding, ALineIsALine) {
  Planned planned(gather("tpu_v5e[8, 16]", "[X=8, Y=16]"), OptMode::None);
  ASSERT_TRUE(planned);
  EXPECT_FALSE(fasterBinding(planned));
}

// The default for [X=16, Y=8] is row-major, since 16 stands before 8 on the
// machine's [8, 16]: Y the inner half of the ring, X the outer half of it and
// the line. The whole ring gathers in V / 90e9.
TEST(FasterBinding, WholeAxesOutOfOrder) {
  Planned planned(gather("tpu_v5e[8, 16]", "[X=16, Y=8]"), OptMode::None);
  ASSERT_TRUE(planned);
  std::optional<Report::FasterBinding> faster = fasterBinding(planned);
  ASSERT_TRUE(faster);
  // A program with the `mesh` line of the note gets the time of the note.
  Planned bound(gather("tpu_v5e[8, 16]", faster->mesh.substr(5)),
                OptMode::None);
  ASSERT_TRUE(bound);
  EXPECT_EQ(bound.report->time.scheduled, faster->scheduled);
  EXPECT_LT(faster->scheduled, planned.report->time.scheduled);
  EXPECT_FALSE(fasterBinding(bound));
}

// Nothing moves, so that nothing is faster.
TEST(FasterBinding, NoCollectives) {
  Planned planned(R"(
hardware h100[2, 8]
mesh [X=8, Y=2]
dim B = 1024, D = 512
input x: bf16[B@X, D]
y[B@X, D] = relu(x[B, D])
output y[B@X, D]
)");
  ASSERT_TRUE(planned);
  EXPECT_FALSE(fasterBinding(planned));
}

} // namespace
