//===- Compilation.cpp - One program through all stages -------------------===//

#include "shardc/Pipelines/Compilation.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "shardc/Dialect/Shd/IR/Pipeline.h"
#include "shardc/Dialect/Shd/IR/Serving.h"
#include "shardc/Optimizer/SearchWatch.h"
#include "shardc/Pipelines/Pipelines.h"
#include "shardc/Pipelines/PlaceRoles.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace shardc;

/// Makes the phase of each program that serves and is to become one.
static LogicalResult makePhases(ModuleOp module) {
  auto isDue = [](shd::ProgramOp program) {
    return shd::servingPhase(program).has_value();
  };
  if (llvm::none_of(module.getOps<shd::ProgramOp>(), isDue))
    return success();
  PassManager manager(module.getContext());
  buildServingPipeline(manager);
  return manager.run(module);
}

/// A step has buffers of gradients, or where no weight has one a backward pass
/// all the same.
static bool isStep(shd::ProgramOp program) {
  for (auto declare : program.getBody().getOps<shd::DeclareOp>())
    if (declare.getKind() == shd::TensorKind::Gradient)
      return true;
  return program
      ->walk([](Operation *op) {
        return shd::getPhase(op) == shd::Phase::Forward
                   ? WalkResult::advance()
                   : WalkResult::interrupt();
      })
      .wasInterrupted();
}

/// Makes a step of each program of the module that is trained, or runs in
/// stages, and is none yet, and keeps what it was made of.
static LogicalResult makeSteps(ModuleOp module,
                               OwningOpRef<ModuleOp> &forward) {
  auto isDue = [](shd::ProgramOp program) {
    if (shd::isInferencePipeline(program))
      return program.getPipeline()->getHeld() == 0;
    return program.getTraining() && !isStep(program);
  };
  if (llvm::none_of(module.getOps<shd::ProgramOp>(), isDue))
    return success();
  forward = module.clone();
  PassManager manager(module.getContext());
  buildTrainingPipeline(manager);
  return manager.run(module);
}

static std::optional<Program> stepOf(std::optional<Program> program,
                                     const AxisRoles *roles) {
  if (!program || failed(makeSteps(*program->module, program->forward)) ||
      failed(makePhases(*program->module)))
    return std::nullopt;
  if (roles)
    for (auto op : program->module->getOps<shd::ProgramOp>())
      if (failed(placeRoles(op, *roles)))
        return std::nullopt;
  return program;
}

/// Losses run in the chunks that the settings say.
static void setChunks(ModuleOp module, ArrayRef<Setting> settings) {
  unsigned number = 0;
  module.walk([&](shd::CrossEntropyOp loss) {
    for (const Setting &setting : settings)
      if (setting.kind == Setting::Kind::Chunks && setting.loss == number)
        loss.setChunks(setting.number);
    ++number;
  });
}

std::optional<Program> shardc::importStep(const ProgramText &text,
                                          MLIRContext *context,
                                          ArrayRef<Setting> settings) {
  const AxisRoles *roles = text.roles ? &*text.roles : nullptr;
  for (const Setting &setting : settings)
    if (setting.kind == Setting::Kind::Roles)
      roles = &setting.roles;
  std::optional<Program> program = importProgram(text, context, settings);
  if (program)
    setChunks(*program->module, settings);
  return stepOf(std::move(program), roles);
}

std::optional<Program> shardc::importStep(llvm::SourceMgr &sourceMgr,
                                          MLIRContext *context,
                                          const Overrides &overrides) {
  return stepOf(importProgram(sourceMgr, context, overrides),
                overrides.roles ? &*overrides.roles : nullptr);
}

Compilation::Compilation(Program program, CompileOptions options)
    : imported(std::move(program)), how(std::move(options)),
      reached(Stage::Imported) {
  module().getContext()->getLoadedDialect<shd::ShdDialect>()->setMachineLoader(
      [machine = imported.machine](shd::HardwareAttr) { return machine; });
}

Compilation::Compilation(OwningOpRef<ModuleOp> module, Stage stage,
                         CompileOptions options)
    : how(std::move(options)), reached(stage) {
  imported.module = std::move(module);
  hasFailed = reached == Stage::Imported &&
              failed(makeSteps(this->module(), imported.forward));
}

Compilation::Stage Compilation::stageOf(ModuleOp module) {
  for (auto program : module.getOps<shd::ProgramOp>())
    if (program->hasAttr(shd::kPlan))
      return Stage::Explicit;
  return Stage::Imported;
}

std::optional<Compilation> Compilation::import(llvm::SourceMgr &sourceMgr,
                                               MLIRContext *context,
                                               const Overrides &overrides,
                                               CompileOptions options) {
  std::optional<Program> program = importStep(sourceMgr, context, overrides);
  if (!program)
    return std::nullopt;
  return Compilation(std::move(*program), std::move(options));
}

shd::ProgramOp Compilation::program() {
  auto programs = module().getOps<shd::ProgramOp>();
  return programs.empty() ? shd::ProgramOp() : *programs.begin();
}

/// Emits an error unless the module has one program.
static LogicalResult checkOneProgram(ModuleOp module) {
  auto programs = module.getOps<shd::ProgramOp>();
  if (llvm::hasSingleElement(programs))
    return success();
  return module.emitError("expected one shd.program, found ")
         << std::distance(programs.begin(), programs.end());
}

LogicalResult
Compilation::run(llvm::function_ref<void(OpPassManager &)> buildPipeline) {
  PassManager manager(module().getContext());
  manager.enableVerifier(how.verifyPasses);
  if (how.configure && failed(how.configure(manager)))
    return failure();
  buildPipeline(manager);
  return manager.run(module());
}

/// Reaches `stage`, which follows the present one.
LogicalResult
Compilation::advance(Stage stage,
                     llvm::function_ref<void(OpPassManager &)> buildPipeline) {
  if (hasFailed || failed(run(buildPipeline))) {
    hasFailed = true;
    return failure();
  }
  reached = stage;
  return success();
}

LogicalResult Compilation::prepareNetwork() {
  assert(reached == Stage::Imported && "the network is that of a search");
  if (hasFailed || failed(checkOneProgram(module())))
    return failure();
  return run(buildUnsolvedPipeline);
}

namespace {
/// Who is told of the searches of a context, while it lives.
class Watching {
public:
  Watching(MLIRContext *context, const CompileOptions &how) {
    if (!how.interrupted && !how.beginProgress)
      return;
    watch = &SearchWatch::attach(context);
    watch->interrupted = how.interrupted;
    if (how.beginProgress)
      watch->progress = how.beginProgress();
  }
  ~Watching() {
    if (!watch)
      return;
    watch->progress = nullptr;
    watch->interrupted = nullptr;
  }

private:
  SearchWatch *watch = nullptr;
};
} // namespace

LogicalResult Compilation::plan() {
  if (reached >= Stage::Planned)
    return success();
  if (hasFailed || failed(checkOneProgram(module())))
    return failure();
  if (how.knownPlan) {
    llvm::SourceMgr bytes;
    bytes.AddNewSourceBuffer(
        llvm::MemoryBuffer::getMemBufferCopy(*how.knownPlan), llvm::SMLoc());
    OwningOpRef<ModuleOp> planned =
        parseSourceFile<ModuleOp>(bytes, module().getContext());
    if (planned) {
      imported.module = std::move(planned);
      reached = Stage::Planned;
      return success();
    }
  }
  Watching watching(module().getContext(), how);
  bool searchesStages =
      program().getPipeline() && how.plan.mode == OptMode::Optimize;
  return searchesStages ? searchStages() : search();
}

/// The memory that the program of a stage that has everything may take.
std::optional<int64_t> Compilation::limitOfStage() const {
  std::optional<int64_t> limit = how.plan.memoryLimit;
  if (besideStage == 0)
    return limit;
  if (!limit && context)
    limit = context->model.machine().usableMemory();
  else if (!limit && imported.machine)
    limit = imported.machine->usableMemory();
  return limit ? std::optional(*limit + besideStage) : std::nullopt;
}

LogicalResult Compilation::search() {
  return advance(Stage::Planned, [&](OpPassManager &manager) {
    PlanOptions plan = how.plan;
    plan.memoryLimit = limitOfStage();
    buildPlanPipeline(manager, plan);
  });
}

/// The search counts the memory of a stage that has everything: what the first
/// stage has and what the last one has. Where that does not fit, it is planned
/// again with as much more memory as the plan shows to be no stage's.
LogicalResult Compilation::searchStages() {
  OwningOpRef<ModuleOp> before = clone();
  if (failed(search()))
    return failure();
  auto record = program()->getAttrOfType<DictionaryAttr>(shd::kPlan);
  auto status = record ? record.getAs<StringAttr>("status") : StringAttr();
  if (!status || status != "infeasible")
    return success();
  CompileOptions explore = how;
  explore.verifyPasses = false;
  Compilation trial(clone(), Stage::Planned, std::move(explore));
  if (!trial.stages())
    return failure();
  besideStage = trial.besideStage;
  if (besideStage == 0)
    return success();
  imported.module = std::move(before);
  reached = Stage::Imported;
  return search();
}

LogicalResult Compilation::lower() {
  if (reached >= Stage::Explicit)
    return success();
  if (failed(plan()))
    return failure();
  return advance(Stage::Explicit, buildLoweringPipeline);
}

const ScheduledProgram *Compilation::schedule() {
  if (scheduled)
    return &*scheduled;
  assert(reached <= Stage::Explicit && "schedules are of the explicit plan");
  if (failed(lower()) || failed(checkOneProgram(module())))
    return nullptr;
  context = createContext(program());
  if (!context) {
    hasFailed = true;
    return nullptr;
  }
  besideStage = 0;
  scheduleWithinLimit();
  return hasFailed ? nullptr : &*scheduled;
}

/// Collectives of a stage that has everything are issued as early as the
/// fullest stage has room for: that depends on the plan alone, however it was
/// found, so that its text has the same schedule.
void Compilation::scheduleWithinLimit() {
  std::optional<int64_t> limit = how.plan.memoryLimit;
  scheduled = scheduleProgram(program(), context->model, limit);
  auto has = limit.value_or(context->model.machine().usableMemory());
  if (!program().getPipeline() || scheduled->memory.peak <= has)
    return;
  std::optional<StagePlan> stages =
      planStages(program(), context->model, *scheduled, limit);
  hasFailed = !stages;
  if (!stages || stages->worstMemory().peak >= scheduled->memory.peak)
    return;
  besideStage = scheduled->memory.peak - stages->worstMemory().peak;
  scheduled = scheduleProgram(program(), context->model, limitOfStage());
}

const StagePlan *Compilation::stages() {
  const ScheduledProgram *inTime = schedule();
  if (!inTime || hasFailed || !program().getPipeline())
    return nullptr;
  if (!inStages)
    inStages =
        planStages(program(), context->model, *inTime, how.plan.memoryLimit);
  hasFailed = !inStages;
  return inStages ? &*inStages : nullptr;
}

LogicalResult Compilation::markRings() {
  const ScheduledProgram *inTime = schedule();
  if (!inTime)
    return failure();
  shardc::markRings(program(), *inTime);
  return success();
}

LogicalResult Compilation::convertToSpmd() {
  if (reached == Stage::Spmd)
    return success();
  if (failed(lower()))
    return failure();
  if (!program().getPipeline())
    return advance(Stage::Spmd,
                   [](OpPassManager &manager) { buildSpmdPipeline(manager); });
  const StagePlan *plan = stages();
  if (!plan)
    return failure();
  markStages(program());
  return advance(Stage::Spmd, [&](OpPassManager &manager) {
    buildSpmdPipeline(manager, layersOf(*plan), toString(plan->order));
  });
}
