//===- shardc-opt.cpp - Runs passes on textual IR -------------------------===//

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "shardc/Dialect/Spmd/IR/Spmd.h"
#include "shardc/Frontend/Frontend.h"
#include "shardc/Pipelines/Pipelines.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<shardc::shd::ShdDialect, shardc::spmd::SpmdDialect>();
  shardc::registerCatalogue(registry);
  shardc::registerAllPasses();
  mlir::registerTransformsPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "shardc optimizer driver\n", registry));
}
