//===- Evaluator.cpp - Plans and prices a program at points ---------------===//

#include "shardc/Questions/Evaluator.h"
#include "shardc/Optimizer/Context.h"
#include "shardc/Pipelines/Pipelines.h"

using namespace mlir;
using namespace shardc;

Evaluator::Evaluator(const ProgramText &text, const PlanOptions &options,
                     std::string file)
    : text(text), options(options), file(std::move(file)),
      context(MLIRContext::Threading::DISABLED), pipeline(&context) {
  context.printOpOnDiagnostic(false);
  context.getOrLoadDialect<shd::ShdDialect>();
  buildPlanPipeline(pipeline, options);
  buildLoweringPipeline(pipeline);
}

std::optional<Report> Evaluator::report(const Point &point) {
  std::optional<Program> program = importProgram(text, &context, point);
  if (!program)
    return std::nullopt;
  context.getLoadedDialect<shd::ShdDialect>()->setMachineLoader(
      [machine = program->machine](shd::HardwareAttr) { return machine; });
  if (failed(pipeline.run(*program->module)))
    return std::nullopt;
  auto op = *program->module->getOps<shd::ProgramOp>().begin();
  std::unique_ptr<PlanningContext> planning = createContext(op);
  if (!planning)
    return std::nullopt;
  MemoryProfile memory = profileMemory(op);
  Report report =
      buildReport(op, planning->model, memory, {file, options.memoryLimit});
  // Says why, where it does not fit.
  (void)checkFits(report, memory.peakLoc);
  return report;
}

Outcome Evaluator::plan(const Point &point) {
  Outcome outcome;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error &&
        outcome.error.empty()) {
      outcome.error = diagnostic.str();
      outcome.loc = locationText(diagnostic.getLocation());
    }
  });
  outcome.report = report(point);
  return outcome;
}

bool Evaluator::isLegal(const Point &point) {
  ScopedDiagnosticHandler silence(&context, [](Diagnostic &) {});
  return checkSettings(text, &context, point) &&
         importProgram(text, &context, point).has_value();
}
