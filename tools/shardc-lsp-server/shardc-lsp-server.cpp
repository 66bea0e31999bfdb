//===- shardc-lsp-server.cpp - Language server for textual IR -------------===//

#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "shardc/Dialect/Shd/IR/Shd.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<shardc::shd::ShdDialect>();
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
