//===- shardc-reduce.cpp - Shrinks IR that shows a defect -----------------===//

#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"
#include "shardc/Dialect/Shd/IR/Shd.h"
#include "shardc/Frontend/Frontend.h"
#include "shardc/Pipelines/Pipelines.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<shardc::shd::ShdDialect>();
  shardc::registerCatalogue(registry);
  shardc::registerAllPasses();
  mlir::MLIRContext context(registry);
  return mlir::failed(mlir::mlirReduceMain(argc, argv, context));
}
