//===- RunProgram.cpp - Runs a program on tensors of files ----------------===//
//
// run-program FILE.shd prints what the program declares, a line for each:
// input, weight or state, its name, real or integer, and its extents.
//
// run-program FILE.shd FOLDER runs the unsharded program by the reference
// semantics (docs/Verification.md). FOLDER/NAME has the elements of a declared
// tensor, in row-major order and of this machine's byte order: doubles of a
// real type, 64-bit integers of any other. An output goes to FOLDER/NAME.out.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/FileUtilities.h"
#include "shardc/Frontend/Frontend.h"
#include "shardc/Reference/Interpreter.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
using namespace shardc;

static std::string fileOf(StringRef folder, const Twine &name) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  return std::string(path);
}

/// The elements of a file; an error is emitted and zeros are returned if it has
/// not as many as the tensor.
static Tensor readTensor(const DeclaredTensor &declared, StringRef folder,
                         bool &failed) {
  Tensor tensor(declared.type);
  std::string path = fileOf(folder, declared.name), error;
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(path, &error);
  size_t bytes = size_t(tensor.getNumElements()) * 8;
  if (!file || file->getBufferSize() != bytes) {
    llvm::errs() << "error: '" << path << "': expected " << bytes
                 << " bytes, found "
                 << (file ? std::to_string(file->getBufferSize()) : "no file")
                 << "\n";
    failed = true;
    return tensor;
  }
  void *to = tensor.isReal() ? static_cast<void *>(tensor.getReals().data())
                             : tensor.getIntegers().data();
  memcpy(to, file->getBufferStart(), bytes);
  return tensor;
}

static LogicalResult writeTensor(const Tensor &tensor,
                                 const std::string &path) {
  std::string error;
  std::unique_ptr<llvm::ToolOutputFile> file = openOutputFile(path, &error);
  if (!file) {
    llvm::errs() << "error: " << error << "\n";
    return failure();
  }
  const void *from = tensor.isReal()
                         ? static_cast<const void *>(tensor.getReals().data())
                         : tensor.getIntegers().data();
  file->os().write(static_cast<const char *>(from),
                   size_t(tensor.getNumElements()) * 8);
  file->keep();
  return success();
}

static void printDeclared(shd::ProgramOp program) {
  for (auto declare : program.getBody().getOps<shd::DeclareOp>()) {
    RankedTensorType type = declare.getType();
    llvm::outs() << shd::stringifyTensorKind(declare.getKind()) << " "
                 << declare.getSym() << " "
                 << (isa<FloatType>(type.getElementType()) ? "real"
                                                           : "integer");
    for (int64_t extent : type.getShape())
      llvm::outs() << " " << extent;
    llvm::outs() << "\n";
  }
}

static LogicalResult run(shd::ProgramOp program, StringRef folder) {
  RunOptions options;
  bool failed = false;
  options.declared = [&](const DeclaredTensor &declared) {
    return readTensor(declared, folder, failed);
  };
  FailureOr<RunResult> result = interpret(program, options);
  if (mlir::failed(result) || failed)
    return failure();
  for (const RunResult::Final &final : result->finals)
    if (!final.isState() &&
        mlir::failed(writeTensor(*final.parts.front(),
                                 fileOf(folder, final.name + ".out"))))
      return failure();
  return success();
}

int main(int argc, char **argv) {
  if (argc < 2 || argc > 3) {
    llvm::errs() << "usage: run-program FILE.shd [FOLDER]\n";
    return 2;
  }
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(argv[1], &error);
  if (!file) {
    llvm::errs() << "error: " << error << "\n";
    return 1;
  }
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  MLIRContext context(MLIRContext::Threading::DISABLED);
  SourceMgrDiagnosticHandler handler(sources, &context);
  std::optional<Program> program = importProgram(sources, &context, {});
  if (!program)
    return 1;
  auto whole = *program->module->getOps<shd::ProgramOp>().begin();
  if (argc == 3)
    return failed(run(whole, argv[2]));
  printDeclared(whole);
  return 0;
}
