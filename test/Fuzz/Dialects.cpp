//===- Dialects.cpp - fuzz-dialects ---------------------------------------===//
//
// The text of a module of the shd or the spmd dialect: parser, verifier,
// printer, and every pass on whatever verifies.
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"
#include "mlir/Parser/Parser.h"
#include "shardc/Conversion/Passes.h"
#include "shardc/Dialect/Shd/IR/Shd.h"
#include "shardc/Dialect/Shd/Transforms/Passes.h"

using namespace mlir;
using namespace shardc;
using fuzz::Quiet;

static std::string print(ModuleOp module, bool generic) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os, OpPrintingFlags().printGenericOpForm(generic));
  return text;
}

/// Printed text reads back as the same module.
static void checkRoundTrip(ModuleOp module, bool generic) {
  std::string text = print(module, generic);
  OwningOpRef<ModuleOp> read =
      parseSourceString<ModuleOp>(text, module->getContext());
  fuzz::require(bool(read), "what is printed can be read\n" + text);
  fuzz::require(print(*read, generic) == text,
                "what is read prints as before\n" + text);
}

/// Runs one pass on a copy of the module.
static void runOnCopy(Quiet &quiet, ModuleOp module,
                      llvm::function_ref<void(OpPassManager &)> addPasses) {
  OwningOpRef<ModuleOp> copy = module.clone();
  if (succeeded(fuzz::runPasses(quiet, *copy, addPasses)))
    checkRoundTrip(*copy, /*generic=*/false);
}

/// From as far as the module has come to the program of one device.
static void runPipeline(Quiet &quiet, ModuleOp module, bool propagate) {
  shd::ShdOptimizeOptions optimize;
  optimize.fixed = propagate;
  optimize.timeLimit = 0;
  std::function<std::unique_ptr<Pass>()> passes[] = {
      shd::createShdPropagate,
      shd::createShdReplicateOpen,
      [] { return shd::createShdFusionGroups(); },
      [&] { return shd::createShdOptimize(optimize); },
      [] { return shd::createShdApplyOrder(); },
      [] { return shd::createShdInsertCollectives(); },
      [] { return shd::createShdAnnotateCost(); },
  };
  for (const auto &create :
       llvm::ArrayRef(passes).drop_front(propagate ? 0 : 2))
    if (failed(fuzz::runPasses(quiet, module, [&](OpPassManager &manager) {
          manager.nest<shd::ProgramOp>().addPass(create());
        })))
      return;
  checkRoundTrip(module, /*generic=*/false);
  runOnCopy(quiet, module, [](OpPassManager &manager) {
    manager.addPass(createConvertShdToSpmd());
  });
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // MLIR's lexer reads one character beyond the text, which has to be a NUL.
  std::string text(reinterpret_cast<const char *>(data), size);
  Quiet quiet;
  DialectRegistry registry;
  registerCatalogue(registry);
  quiet.context.appendDialectRegistry(registry);
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(text, &quiet.context);
  if (!module) {
    fuzz::require(quiet.errors != 0, "a text that cannot be read is an error");
    return 0;
  }
  checkRoundTrip(*module, /*generic=*/false);
  checkRoundTrip(*module, /*generic=*/true);
  using AddPass = void (*)(OpPassManager &);
  const AddPass alone[] = {
      [](OpPassManager &manager) { manager.addPass(createConvertShdToSpmd()); },
      [](OpPassManager &manager) {
        manager.nest<shd::ProgramOp>().addPass(shd::createShdShrink());
      },
      [](OpPassManager &manager) {
        manager.nest<shd::ProgramOp>().addPass(
            shd::createShdInsertCollectives());
      },
      [](OpPassManager &manager) {
        manager.nest<shd::ProgramOp>().addPass(shd::createShdAnnotateCost());
      }};
  for (AddPass addPass : alone)
    runOnCopy(quiet, *module, addPass);
  for (bool propagate : {true, false}) {
    OwningOpRef<ModuleOp> copy = module->clone();
    runPipeline(quiet, *copy, propagate);
  }
  return 0;
}
