//===- OtherDialectTest.cpp - Operations that no pass knows ---------------===//
//
// What test/Pipelines/other-dialect.mlir plans computes the same on a grid of
// devices as on one.
//
//===----------------------------------------------------------------------===//

#include "TestDialect.h"
#include "mlir/Parser/Parser.h"
#include "shardc/Dialect/Spmd/IR/Spmd.h"
#include "shardc/Frontend/Frontend.h"
#include "shardc/Pipelines/Pipelines.h"
#include "shardc/Verify/Verify.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace shardc;

namespace {

/// Along J, which is split, the devices agree on the sum.
constexpr StringLiteral text = R"(
shd.program "outer" mesh <[X = 2, Y = 2]> hardware <"tpu_v5e", [2, 2]> {
  %x = shd.declare input "x" ["B", "I"] {shd.result_pin = #shd.sharding<[{Y}, {}]>} : tensor<8x4xi8>
  %y = shd.declare weight "y" ["B", "J"] {shd.result_pin = #shd.sharding<[{}, {X}]>} : tensor<8x6xf32>
  %c = shd.elementwise cast(%x) <[B, I] -> [B, I]> : (tensor<8x4xi8>) -> tensor<8x4xf32>
  %o = test.scaled_outer(%c, %y) by 5.0e-01 <[B, I], [B, J] -> [B, I, J]> : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<8x4x6xf32>
  %s = test.share(%o) over "J" <[B, I, J] -> [B, I, J]> : (tensor<8x4x6xf32>) -> tensor<8x4x6xf32>
  shd.output "s" %s ["B", "I", "J"] {shd.operand_pins = [#shd.sharding<[{Y}, {}, {X}]>]} : tensor<8x4x6xf32>
}
)";

TEST(Verify, OperationsOfAnotherDialect) {
  DialectRegistry registry;
  registry.insert<shd::ShdDialect, spmd::SpmdDialect, test::TestDialect>();
  registerCatalogue(registry);
  MLIRContext context(registry);
  OwningOpRef<ModuleOp> imported = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(imported);
  OwningOpRef<ModuleOp> planned = imported->clone();
  PassManager manager(&context);
  buildPlanPipeline(manager, {});
  buildLoweringPipeline(manager);
  ASSERT_TRUE(succeeded(manager.run(*planned)));
  unsigned statistics = 0;
  planned->walk([&](shd::StatisticOp) { ++statistics; });
  EXPECT_EQ(statistics, 1u);

  FailureOr<Verification> result = verifyPlan(*imported, *planned);
  ASSERT_TRUE(succeeded(result));
  EXPECT_TRUE(result->holds);
  // The cast, the product and the share, which the statistic is part of.
  EXPECT_EQ(result->operations, 3);
}

} // namespace
