//===- Evaluator.cpp - Plans and prices variants of a program -------------===//

#include "shardc/Questions/Evaluator.h"
#include "shardc/Pipelines/Compilation.h"
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
void Evaluator::shareTables(const Program &program, const Variant &variant) {
  Place now{nullptr, {}, program.mesh, program.binding.parts};
  for (const Setting &setting : variant.point)
    if (setting.machine)
      now.machine = setting.machine.get();
  if (program.machine)
    now.shape = program.machine->shape;
  if (now == place)
    return;
  tables->reshard = nullptr;
  place = std::move(now);
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

std::optional<Report> Evaluator::report(const Variant &variant,
                                        std::vector<Layout> &layouts) {
  std::optional<Program> program =
      importStep(textOf(variant), &context, variant.point);
  if (!program)
    return std::nullopt;
  if (program->autoMesh)
    return reportOnBestMesh(variant, layouts, *program);
  CompileOptions how{options};
  how.verifyPasses = false;
  if (variant.memoryLimit)
    how.plan.memoryLimit = variant.memoryLimit;
  if (variant.mode)
    how.plan.mode = *variant.mode;
  Compilation compilation(std::move(*program), std::move(how));
  const Mesh &mesh = compilation.source().mesh;
  shareTables(compilation.source(), variant);
  shd::ProgramOp op = compilation.program();
  std::vector<Operation *> operations = operationsOf(op);
  applyPins(operations, variant.pins, mesh);
  if (variant.edit)
    variant.edit(op);
  if (failed(compilation.plan()))
    return std::nullopt;
  for (PinPlace place : variant.watched)
    layouts.push_back(shd::toLayout(mesh, pinAt(operations, place)));
  std::optional<Report> report = buildReport(compilation, {file, std::nullopt});
  if (!report)
    return std::nullopt;
  if (variant.inspect)
    variant.inspect(op, operations, *compilation.planning(), *report);
  // Says why, where it does not fit.
  (void)checkFits(*report, compilation.schedule()->memory.peakLoc);
  return report;
}

/// The same of a program with `mesh auto`.
std::optional<Report> Evaluator::reportOnBestMesh(Variant variant,
                                                  std::vector<Layout> &layouts,
                                                  const Program &probe) {
  MeshChoiceOptions how;
  how.plan = options;
  how.file = file;
  std::string error;
  std::optional<MeshChoice> choice =
      chooseMesh(textOf(variant), variant.point, probe, how, error);
  if (!choice) {
    emitError(UnknownLoc::get(&context), error);
    return std::nullopt;
  }
  variant.point.push_back(choice->setting);
  std::optional<Report> found = report(variant, layouts);
  if (found)
    addMeshSearch(*found, std::move(choice->search));
  return found;
}

Outcome Evaluator::plan(const Variant &variant) {
  Outcome outcome;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error &&
        outcome.error.empty()) {
      outcome.error = diagnostic.str();
      outcome.loc = locationText(diagnostic.getLocation());
    }
  });
  outcome.report = report(variant, outcome.layouts);
  return outcome;
}

bool Evaluator::isLegal(const Point &point) {
  ScopedDiagnosticHandler silence(&context, [](Diagnostic &) {});
  return checkSettings(text, &context, point) &&
         importStep(text, &context, point).has_value();
}
