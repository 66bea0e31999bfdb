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
  auto *dialect = context.getOrLoadDialect<shd::ShdDialect>();
  tables = &dialect->addInterface<SharedTables>();
  // The import verifies the program; the passes are the same at every point.
  pipeline.enableVerifier(false);
  buildPlanPipeline(pipeline, options);
  buildLoweringPipeline(pipeline);
}

/// Keeps the tables as long as machine, mesh and binding stay the same. Of a
/// machine a point can change the declaration and the shape.
void Evaluator::shareTables(const Program &program, const Point &point) {
  Place now{nullptr, {}, program.mesh, program.binding.parts};
  for (const Setting &setting : point)
    if (setting.machine)
      now.machine = setting.machine.get();
  if (program.machine)
    now.shape = program.machine->shape;
  if (now == place)
    return;
  tables->reshard = nullptr;
  place = std::move(now);
}

std::optional<Report> Evaluator::report(const Point &point) {
  std::optional<Program> program = importProgram(text, &context, point);
  if (!program)
    return std::nullopt;
  context.getLoadedDialect<shd::ShdDialect>()->setMachineLoader(
      [machine = program->machine](shd::HardwareAttr) { return machine; });
  shareTables(*program, point);
  if (failed(pipeline.run(*program->module)))
    return std::nullopt;
  auto op = *program->module->getOps<shd::ProgramOp>().begin();
  std::unique_ptr<PlanningContext> planning = createContext(op);
  if (!planning)
    return std::nullopt;
  ScheduledProgram scheduled =
      scheduleProgram(op, planning->model, options.memoryLimit);
  Report report =
      buildReport(op, planning->model, scheduled, {file, options.memoryLimit});
  // Says why, where it does not fit.
  (void)checkFits(report, scheduled.memory.peakLoc);
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
