//===- Evaluator.cpp - Plans and prices variants of a program -------------===//

#include "shardc/Questions/Evaluator.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "shardc/Pipelines/Compilation.h"
#include "shardc/Questions/BatchChoice.h"
#include "shardc/Questions/StepChoice.h"

using namespace mlir;
using namespace shardc;

Evaluator::Evaluator(const ProgramText &text, const PlanOptions &options,
                     std::string file)
    : text(text), options(options), file(std::move(file)),
      context(MLIRContext::Threading::DISABLED) {
  context.printOpOnDiagnostic(false);
  auto *dialect = context.getOrLoadDialect<shd::ShdDialect>();
  tables = &dialect->addInterface<SharedTables>();
  search = &dialect->addInterface<SearchStart>();
}

/// Keeps the tables as long as machine, mesh and binding stay the same. Of a
/// machine a point can change the declaration and the shape.
void Evaluator::shareTables(const Program &program, const Variant &variant) {
  Place now{nullptr, {}, program.mesh, program.binding.parts};
  for (const Setting &setting : variant.point)
    if (setting.kind == Setting::Kind::Phase)
      if (const ast::PhaseMachine *own =
              textOf(variant).machineOf(setting.phase))
        now.machine = own->hardware.get();
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
                                        Outcome &outcome) {
  std::optional<Program> program =
      importStep(textOf(variant), &context, variant.point);
  if (!program)
    return std::nullopt;
  if (program->autoBatch)
    return reportOnLargestBatch(variant, outcome, *program);
  if (program->autoMesh)
    return reportOnBestMesh(variant, outcome, *program);
  bool searches = variant.mode.value_or(options.mode) == OptMode::Optimize;
  shd::ProgramOp imported = *program->module->getOps<shd::ProgramOp>().begin();
  if (choosesSteps && searches && isStepOpen(imported))
    return reportBestStep(variant, outcome);
  CompileOptions how{options};
  how.interrupted = flagOf(variant);
  how.verifyPasses = false;
  if (variant.memoryLimit)
    how.plan.memoryLimit = variant.memoryLimit;
  if (variant.timeLimitSeconds)
    how.plan.timeLimitSeconds = variant.timeLimitSeconds;
  if (variant.effort)
    how.plan.effort = *variant.effort;
  if (variant.mode)
    how.plan.mode = *variant.mode;
  outcome.isQuick = how.plan.isQuick();
  Compilation compilation(std::move(*program), std::move(how));
  const Mesh &mesh = compilation.source().mesh;
  shareTables(compilation.source(), variant);
  shd::ProgramOp op = compilation.program();
  std::vector<Operation *> operations = operationsOf(op);
  applyPins(operations, variant.pins, mesh);
  if (variant.edit)
    variant.edit(op);
  search->start = variant.start;
  search->found.clear();
  if (failed(compilation.plan()))
    return std::nullopt;
  outcome.labels = search->found;
  for (PinPlace place : variant.watched)
    outcome.layouts.push_back(shd::toLayout(mesh, pinAt(operations, place)));
  if (variant.keepsPlan) {
    std::string bytes;
    llvm::raw_string_ostream os(bytes);
    if (succeeded(writeBytecodeToFile(compilation.module(), os)))
      outcome.plan = std::make_shared<const std::string>(std::move(bytes));
  }
  std::optional<Report> report = buildReport(compilation, {file, std::nullopt});
  if (!report)
    return std::nullopt;
  if (variant.inspect)
    variant.inspect(op, operations, *compilation.planning(), *report);
  // Says why, where it does not fit.
  (void)checkFits(*report, compilation.schedule()->memory.peakLoc);
  return report;
}

solver::Deadline Evaluator::deadlineOf(const Variant &variant) const {
  return solver::Deadline(variant.timeLimitSeconds ? variant.timeLimitSeconds
                                                   : options.timeLimitSeconds,
                          flagOf(variant));
}

MeshChoiceOptions Evaluator::choiceOptions(const Variant &variant) const {
  MeshChoiceOptions how;
  how.plan = options;
  if (variant.memoryLimit)
    how.plan.memoryLimit = variant.memoryLimit;
  if (variant.timeLimitSeconds)
    how.plan.timeLimitSeconds = variant.timeLimitSeconds;
  if (variant.effort)
    how.plan.effort = *variant.effort;
  how.file = file;
  how.interrupted = flagOf(variant);
  how.seeksFit = seeksFit;
  return how;
}

/// The same of a program with `batch = auto`.
std::optional<Report> Evaluator::reportOnLargestBatch(Variant variant,
                                                      Outcome &outcome,
                                                      const Program &probe) {
  solver::Deadline deadline = deadlineOf(variant);
  std::string error;
  std::optional<BatchChoice> choice = chooseBatch(
      textOf(variant), variant.point, probe, choiceOptions(variant), error);
  if (!choice) {
    emitError(UnknownLoc::get(&context), error);
    return std::nullopt;
  }
  variant.point.push_back(choice->setting);
  variant.timeLimitSeconds = deadline.remaining();
  std::optional<Report> found = report(variant, outcome);
  if (found)
    found->batchSearch = std::move(choice->search);
  return found;
}

/// The same of a program with `mesh auto`.
std::optional<Report> Evaluator::reportOnBestMesh(Variant variant,
                                                  Outcome &outcome,
                                                  const Program &probe) {
  solver::Deadline deadline = deadlineOf(variant);
  MeshChoiceOptions how = choiceOptions(variant);
  how.plan.timeLimitSeconds = timeToChoose(deadline);
  std::string error;
  std::optional<MeshChoice> choice =
      chooseMesh(textOf(variant), variant.point, probe, how, error);
  if (!choice) {
    emitError(UnknownLoc::get(&context), error);
    return std::nullopt;
  }
  variant.point.push_back(choice->setting);
  variant.timeLimitSeconds = deadline.remaining();
  knownStep = choice->step;
  std::optional<Report> found = report(variant, outcome);
  knownStep = nullptr;
  if (found)
    addMeshSearch(*found, std::move(choice->search));
  return found;
}

/// The same of a training step that leaves choices open. Where the variant
/// changes more than settings, the form is that of the program without.
std::optional<Report> Evaluator::reportBestStep(Variant variant,
                                                Outcome &outcome) {
  std::optional<StepChoice> choice =
      knownStep
          ? std::optional(*knownStep)
          : chooseStep(textOf(variant), variant.point, choiceOptions(variant));
  bool isWhole = variant.pins.empty() && !variant.edit &&
                 variant.watched.empty() && !variant.inspect;
  std::optional<Report> found;
  if (choice && isWhole) {
    found = std::move(choice->report);
  } else {
    // Without a choice the compiler says why.
    choosesSteps = false;
    if (choice)
      variant.point.push_back(stepSetting(choice->form));
    found = report(variant, outcome);
    choosesSteps = true;
  }
  if (found && choice)
    addStepSearch(*found, std::move(choice->search));
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
  outcome.report = report(variant, outcome);
  return outcome;
}

bool Evaluator::isLegal(const Point &point) {
  ScopedDiagnosticHandler silence(&context, [](Diagnostic &) {});
  return checkSettings(text, &context, point) &&
         importStep(text, &context, point).has_value();
}
