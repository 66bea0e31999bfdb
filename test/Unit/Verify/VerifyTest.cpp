//===- VerifyTest.cpp - What verification runs and finds ------------------===//
//
// Programs whose plans are right. MutationTest.cpp has those that are not,
// test/Verify what is printed.
//
//===----------------------------------------------------------------------===//

#include "shardc/Verify/Verify.h"
#include "TestProgram.h"
#include "shardc/Pipelines/Compilation.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace shardc;
using namespace shardc::test;

namespace {

/// A program and its plan, exactly as annotated.
struct Planned {
  explicit Planned(StringRef text, bool allowPadding = false)
      : program(text, overrides(allowPadding)) {
    EXPECT_TRUE(program.module()) << program.messages();
    PlanOptions asWritten;
    asWritten.mode = OptMode::None;
    Compilation compilation(program.clone(), Compilation::Stage::Imported,
                            {asWritten});
    EXPECT_TRUE(succeeded(compilation.lower())) << program.messages();
    lowered = compilation.takeModule();
  }

  static Overrides overrides(bool allowPadding) {
    Overrides result;
    result.allowPadding = allowPadding;
    return result;
  }

  FailureOr<Verification> verify(const VerifyOptions &options = {}) {
    FailureOr<Verification> result =
        verifyPlan(program.module(), *lowered, options);
    EXPECT_TRUE(succeeded(result)) << program.messages();
    return result;
  }

  TestProgram program;
  OwningOpRef<ModuleOp> lowered;
};

std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream(text) << *module;
  return text;
}

/// A mesh of 2 x 3, and the same with extents that nothing divides.
std::string nonSquare(StringRef dims) {
  return ("hardware tpu_v5p[2, 3, 1]\nmesh [X=2, Y=3]\ndim " + dims + R"(
input x: f32[B@X, D@Y]
weight W: f32[D@Y, F@X]
y[B@(X, Y), F@()] = relu(x[B, D] * W[D, F])
z[B@(Y, X), F@()] = y[B, F]
output y
output z
)")
      .str();
}

VerifyOptions unshrunk() {
  VerifyOptions options;
  options.shrink = false;
  return options;
}

TEST(Verify, NonSquareMeshInFullSize) {
  Planned planned(nonSquare("B = 12, D = 18, F = 6"));
  auto result = planned.verify(unshrunk());
  EXPECT_TRUE(result->holds);
  EXPECT_EQ(result->mesh, result->fullMesh);
  EXPECT_EQ(result->mesh.numDevices(), 6);
  for (const Verification::Dim &dim : result->dims)
    EXPECT_EQ(dim.extent, dim.full) << dim.name;
  ASSERT_EQ(result->results.size(), 2u);
  EXPECT_EQ(result->results[0].elements, 12 * 6);
  EXPECT_EQ(result->results[0].notNumbers, 0);
}

/// Parts of 7 over (X, Y) are 2, 2, 0 and 2, 1, 0.
TEST(Verify, Padding) {
  Planned planned(nonSquare("B = 7, D = 11, F = 5"), /*allowPadding=*/true);
  EXPECT_TRUE(planned.verify(unshrunk())->holds);
  EXPECT_TRUE(planned.verify()->holds);
}

TEST(Verify, ProgramsStayAsTheyAre) {
  Planned planned(nonSquare("B = 24, D = 18, F = 6"));
  std::string before = textOf(planned.program.module()),
              plan = textOf(*planned.lowered);
  auto result = planned.verify();
  EXPECT_EQ(result->mesh.numDevices(), 4);
  EXPECT_EQ(result->fullMesh.numDevices(), 6);
  EXPECT_EQ(textOf(planned.program.module()), before);
  EXPECT_EQ(textOf(*planned.lowered), plan);
}

/// The same input, the same result; another seed, other numbers.
TEST(Verify, Seeds) {
  Planned planned(nonSquare("B = 12, D = 18, F = 6"));
  auto first = planned.verify(unshrunk()), second = planned.verify(unshrunk());
  VerifyOptions options = unshrunk();
  options.seed = 2;
  auto other = planned.verify(options);
  const Tensor &value = *first->run.finals[0].parts[0];
  EXPECT_EQ(value, *second->run.finals[0].parts[0]);
  EXPECT_FALSE(value == *other->run.finals[0].parts[0]);
}

/// Sums of 18 products below 1 in bf16, which has 8 bits: 6 roundings of
/// numbers up to 18 in each third, and 2 more, each by 2^-8 at most.
TEST(Verify, DeclaredTypesAreMeasured) {
  std::string text = nonSquare("B = 12, D = 18, F = 6");
  for (size_t at; (at = text.find("f32")) != std::string::npos;)
    text.replace(at, 3, "bf16");
  Planned planned(text);
  VerifyOptions options = unshrunk();
  options.roundToDeclared = true;
  auto result = planned.verify(options);
  EXPECT_TRUE(result->holds);
  EXPECT_FALSE(result->results[0].differs);
  EXPECT_GT(result->results[0].largest.size, kVerifyTolerance);
  EXPECT_LT(result->results[0].largest.size, 8 * 0x1p-8);
  // In doubles only the order of sums is left.
  EXPECT_LT(planned.verify(unshrunk())->results[0].largest.size, 1e-14);
}

/// Half of the numbers from -1 to 1 have no square root.
TEST(Verify, NaNIsCounted) {
  Planned planned(R"(
hardware tpu_v5e[2, 1]
mesh [X=2]
dim B = 64
input x: f32[B@X]
y[B@X] = sqrt(x)
z[B@X] = sqrt(abs(x))
output y
output z
)");
  auto result = planned.verify(unshrunk());
  EXPECT_TRUE(result->holds);
  EXPECT_GT(result->results[0].notNumbers, 10);
  EXPECT_LT(result->results[0].notNumbers, 54);
  EXPECT_EQ(result->results[1].notNumbers, 0);
}

/// One state of 3 iterations is one result.
TEST(Verify, StatesOfIterations) {
  Planned planned(R"(
hardware tpu_v5e[2, 1]
mesh [X=2]
dim B = 4, L = 3
input x: f32[B@X]
repeat L {
  state s: f32[B@X]
  s = s + x
}
)");
  auto result = planned.verify(unshrunk());
  EXPECT_TRUE(result->holds);
  ASSERT_EQ(result->results.size(), 1u);
  EXPECT_TRUE(result->results[0].isState());
  EXPECT_EQ(result->results[0].elements, 3 * 4);
}

} // namespace
