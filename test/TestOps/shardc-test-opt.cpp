//===- shardc-test-opt.cpp - shardc-opt with the tests' operations --------===//

#include "TestOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "shardc/Dialect/Spmd/IR/Spmd.h"
#include "shardc/Frontend/Frontend.h"
#include "shardc/Pipelines/Pipelines.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<shardc::shd::ShdDialect, shardc::spmd::SpmdDialect,
                  shardc::test::TestDialect>();
  shardc::registerCatalogue(registry);
  shardc::registerAllPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "shardc optimizer driver with test operations\n", registry));
}
