//===- Evaluator.cpp - Plans and prices a program at points ---------------===//

#include "shardc/Questions/Evaluator.h"
#include "mlir/Pass/PassManager.h"
#include "shardc/Optimizer/Context.h"
#include "shardc/Pipelines/Pipelines.h"
#include "shardc/Questions/MeshChoice.h"

using namespace mlir;
using namespace shardc;

Evaluator::Evaluator(const ProgramText &text, const PlanOptions &options,
                     std::string file)
    : text(text), options(options), file(std::move(file)),
      context(MLIRContext::Threading::DISABLED) {
  context.printOpOnDiagnostic(false);
  auto *dialect = context.getOrLoadDialect<shd::ShdDialect>();
  tables = &dialect->addInterface<SharedTables>();
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

/// The import verifies the program; the passes are the same every time.
static LogicalResult
run(ModuleOp module, llvm::function_ref<void(OpPassManager &)> buildPipeline) {
  PassManager manager(module->getContext());
  manager.enableVerifier(false);
  buildPipeline(manager);
  return manager.run(module);
}

static void applyPins(ArrayRef<Operation *> operations,
                      ArrayRef<Variant::Pin> pins, const Mesh &mesh) {
  for (const Variant::Pin &pin : pins) {
    MLIRContext *context = operations.front()->getContext();
    setPinAt(operations, pin.place,
             pin.layout ? shd::toSharding(context, mesh, *pin.layout)
                        : shd::ShardingAttr());
  }
}

std::optional<Report> Evaluator::report(const Point &point,
                                        const Variant &variant,
                                        std::vector<Layout> &layouts) {
  std::optional<Program> program = importProgram(text, &context, point);
  if (!program)
    return std::nullopt;
  if (program->autoMesh)
    return reportOnBestMesh(point, variant, layouts, *program);
  context.getLoadedDialect<shd::ShdDialect>()->setMachineLoader(
      [machine = program->machine](shd::HardwareAttr) { return machine; });
  shareTables(*program, point);
  auto op = *program->module->getOps<shd::ProgramOp>().begin();
  PlanOptions how = options;
  if (variant.memoryLimit)
    how.memoryLimit = variant.memoryLimit;
  if (variant.mode)
    how.mode = *variant.mode;
  std::vector<Operation *> operations = operationsOf(op);
  applyPins(operations, variant.pins, program->mesh);
  if (variant.edit)
    variant.edit(op);
  if (failed(run(*program->module, [&](OpPassManager &manager) {
        buildPlanPipeline(manager, how);
      })))
    return std::nullopt;
  for (PinPlace place : variant.watched)
    layouts.push_back(shd::toLayout(program->mesh, pinAt(operations, place)));
  if (failed(run(*program->module, buildLoweringPipeline)))
    return std::nullopt;
  std::unique_ptr<PlanningContext> planning = createContext(op);
  if (!planning)
    return std::nullopt;
  ScheduledProgram scheduled =
      scheduleProgram(op, planning->model, how.memoryLimit);
  Report report =
      buildReport(op, planning->model, scheduled, {file, how.memoryLimit});
  if (variant.inspect)
    variant.inspect(op, operations, *planning, report);
  // Says why, where it does not fit.
  (void)checkFits(report, scheduled.memory.peakLoc);
  return report;
}

/// The same of a program with `mesh auto`.
std::optional<Report> Evaluator::reportOnBestMesh(Point point,
                                                  const Variant &variant,
                                                  std::vector<Layout> &layouts,
                                                  const Program &probe) {
  MeshChoiceOptions how;
  how.plan = options;
  how.file = file;
  std::string error;
  std::optional<MeshChoice> choice = chooseMesh(text, point, probe, how, error);
  if (!choice) {
    emitError(UnknownLoc::get(&context), error);
    return std::nullopt;
  }
  point.push_back(choice->setting);
  std::optional<Report> found = report(point, variant, layouts);
  if (found)
    addMeshSearch(*found, std::move(choice->search));
  return found;
}

Outcome Evaluator::plan(const Point &point) { return plan(point, {}); }

Outcome Evaluator::plan(const Variant &variant) { return plan({}, variant); }

Outcome Evaluator::plan(const Point &point, const Variant &variant) {
  Outcome outcome;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error &&
        outcome.error.empty()) {
      outcome.error = diagnostic.str();
      outcome.loc = locationText(diagnostic.getLocation());
    }
  });
  outcome.report = report(point, variant, outcome.layouts);
  return outcome;
}

bool Evaluator::isLegal(const Point &point) {
  ScopedDiagnosticHandler silence(&context, [](Diagnostic &) {});
  return checkSettings(text, &context, point) &&
         importProgram(text, &context, point).has_value();
}
