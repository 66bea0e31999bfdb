//===- shardc-opt.cpp - Runs passes on textual IR -------------------------===//

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "shardc/Dialect/Spmd/IR/Spmd.h"
#include "shardc/Frontend/Frontend.h"
#include "shardc/Pipelines/Pipelines.h"

#ifdef SHARDC_INCLUDE_TESTS
#include "TestDialect.h"
#endif

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<shardc::shd::ShdDialect, shardc::spmd::SpmdDialect>();
#ifdef SHARDC_INCLUDE_TESTS
  registry.insert<shardc::test::TestDialect>();
#endif
  shardc::registerCatalogue(registry);
  shardc::registerAllPasses();
  mlir::registerTransformsPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "shardc optimizer driver\n", registry));
}
