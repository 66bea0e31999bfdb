//===- FrameworkProgram.cpp - A program as a framework runs it ------------===//

#include "FrameworkProgram.h"
#include "DiagnosticPrinter.h"
#include "mlir/Support/FileUtilities.h"
#include "shardc/Dialect/Shd/IR/Gradient.h"
#include "shardc/Optimizer/IndexClasses.h"
#include "shardc/Pictures/FrameworkFile.h"
#include "shardc/Pipelines/Compilation.h"
#include "shardc/Questions/ProgramSource.h"
#include "shardc/Questions/StepChoice.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace mlir;
using namespace shardc;

/// The machine, the batch, the sequences and the layers of a program; nothing
/// after an error, which is emitted.
static std::optional<PlannedStep> stepOf(Program &program) {
  auto op = *program.module->getOps<shd::ProgramOp>().begin();
  PlannedStep step;
  if (!program.machine || !op.getTraining()) {
    emitError(op.getLoc()) << "--from-config expects a program with a machine "
                              "and a 'train' block";
    return std::nullopt;
  }
  step.chips = program.machine->numChips();
  step.batch = std::max<int64_t>(1, shd::batchExtent(op));
  step.length = IndexClasses(op).sequenceLength(op);
  for (auto repeat : op.getBody().getOps<shd::RepeatOp>())
    step.layers = std::max(step.layers, int64_t(repeat.getCount()));
  if (std::optional<shd::PipelineAttr> pipeline = op.getPipeline())
    step.layers = pipeline->getLayers();
  return step;
}

/// Reads the options as a plan of the program, and prints what is wrong.
static std::optional<FrameworkSetup>
readSetup(StringRef path, const std::optional<PlannedStep> &step) {
  std::string message;
  std::unique_ptr<MemoryBuffer> buffer = openInputFile(path, &message);
  if (!buffer) {
    errs() << path << ": error: " << message << "\n";
    return std::nullopt;
  }
  FrameworkFile file = readFrameworkFile(buffer->getBuffer());
  std::optional<FrameworkSetup> setup;
  if (step)
    setup = planOfFile(file, *step);
  SourceMgr manager;
  const char *begin = buffer->getBufferStart();
  manager.AddNewSourceBuffer(std::move(buffer), SMLoc());
  MLIRContext context(MLIRContext::Threading::DISABLED);
  DiagnosticPrinter printer(manager, &context);
  for (const FileMessage &each : file.errors) {
    auto [line, column] =
        manager.getLineAndColumn(SMLoc::getFromPointer(begin + each.offset));
    emitError(FileLineColLoc::get(&context, path, line, column), each.text);
  }
  if (!file.ignored.empty())
    errs() << path << ": note: not read, since a plan does not depend on them: "
           << llvm::join(file.ignored, ", ") << "\n";
  if (!file.open.empty())
    errs() << path
           << ": note: not read, since the program or the search says it: "
           << llvm::join(file.open, ", ") << "\n";
  return setup;
}

/// True if selective recomputation runs an operation again.
static bool isAgain(const FrameworkSetup &setup, shd::CostOpInterface op) {
  return (setup.recomputesAttention && isa<shd::AttentionOp>(op)) ||
         (setup.recomputesNorms && isNorm(op));
}

bool shardc::applyFrameworkFile(StringRef path, SourceMgr &program,
                                Overrides &overrides) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  DiagnosticPrinter printer(program, &context);
  ProgramSource source(program, &context, overrides);
  std::optional<Program> imported;
  if (source.text)
    imported = importProgram(*source.text, &context);
  std::optional<PlannedStep> step;
  if (imported)
    step = stepOf(*imported);
  std::optional<FrameworkSetup> setup = readSetup(path, step);
  if (!setup)
    return false;
  overrides.mesh = setup->mesh;
  overrides.stages = setup->stages;
  overrides.roles = setup->roles;
  StepForm form;
  form.microbatches = setup->microbatches;
  form.offload = setup->offloads ? "optimizer" : "none";
  if (!setup->schedule.empty())
    form.schedule = setup->schedule;
  if (!setup->remat.empty())
    form.remat = setup->remat;
  bool isSelective = setup->recomputesAttention || setup->recomputesNorms;
  if (setup->remat == "products" || isSelective) {
    ProgramSource placed(program, &context, overrides);
    form = isSelective ? recomputing(*placed.text, {}, std::move(form),
                                     [&](shd::CostOpInterface op) {
                                       return isAgain(*setup, op);
                                     })
                       : keepingProducts(*placed.text, {}, std::move(form));
  }
  overrides.step = std::move(form);
  return true;
}
