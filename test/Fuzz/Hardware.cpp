//===- Hardware.cpp - fuzz-hardware ---------------------------------------===//
//
// The text of a hardware file: the machine that it describes is printed, and a
// program is priced on it.
//
//===----------------------------------------------------------------------===//

#include "../../tools/shardc/Catalogue.h"
#include "Fuzz.h"
#include "shardc/Frontend/CatalogueNotes.h"
#include "llvm/Support/SourceMgr.h"

using namespace shardc;

/// A matmul after which there is something to move.
static constexpr const char *kProgram = R"(
dim FuzzB = 64, FuzzD = 128, FuzzF = 256
input fuzz_x: bf16[FuzzB, FuzzD]
weight fuzz_w: bf16[FuzzD, FuzzF]
fuzz_h[FuzzB, FuzzF] = relu(fuzz_x[FuzzB, FuzzD] * fuzz_w[FuzzD, FuzzF])
output fuzz_h[FuzzB, FuzzF]
)";

static void printMachineOf(llvm::StringRef text) {
  fuzz::Quiet quiet;
  llvm::SourceMgr sourceMgr;
  fuzz::setText(sourceMgr, text);
  std::optional<Program> program =
      importProgram(sourceMgr, &quiet.context, /*overrides=*/{});
  if (program && program->machine)
    printMachine(llvm::nulls(), *program->machine, CatalogueNotes());
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  printMachineOf(text);
  PlanOptions options;
  options.mode = OptMode::Propagate;
  fuzz::compile((text + kProgram).str(), options);
  return 0;
}
