//===- MeshPlanner.cpp - Bounds of a program on many meshes ---------------===//
//
// The network of the program on a mesh, solved for the least `upper` time, and
// only as far as it takes to show that nothing is below the cutoff.
//
//===----------------------------------------------------------------------===//

#include "MeshPlanner.h"
#include "shardc/Pipelines/Compilation.h"
#include "shardc/Solver/LabelBounds.h"

using namespace mlir;
using namespace shardc;

/// The axis of the pipeline's stages; empty if there are none.
static std::string axisOfStages(const Program &program) {
  for (shd::ProgramOp op : (*program.module).getOps<shd::ProgramOp>())
    if (std::optional<shd::PipelineAttr> pipeline = op.getPipeline())
      return pipeline->getAxis().str();
  return "";
}

/// True if the program places anything on an axis.
static bool placesAxes(const Program &program) {
  bool found = false;
  auto look = [&](shd::ShardingAttr pin) {
    if (!pin)
      return;
    found |= !pin.getPartial().empty() ||
             llvm::any_of(pin.getDims(), [](shd::DimShardingAttr dim) {
               return !dim.getAxes().empty();
             });
  };
  (*program.module).walk([&](Operation *each) {
    if (isa<ModuleOp, shd::ProgramOp>(each))
      return;
    for (Value made : each->getResults())
      look(shd::getResultPin(made));
    for (unsigned i = 0; i < each->getNumOperands(); ++i)
      look(shd::getOperandPin(each, i));
  });
  return found;
}

MeshNames shardc::meshNames(const Program &program) {
  return {program.autoMesh->names, !placesAxes(program), axisOfStages(program)};
}

/// The mesh, bound in any way: what is imported depends on the sizes alone.
static Setting unboundMesh(const Mesh &mesh) {
  BoundMesh bound{mesh, {}};
  bound.on.resize(mesh.size());
  return meshSetting(bound, {});
}

static CollectiveModel modelOf(const Machine &machine, const MeshTask &task) {
  if (task.bindings.size() == 1)
    return CollectiveModel(machine, task.family->mesh,
                           task.bindings.front().binding);
  std::vector<MeshBinding> bindings;
  for (const NamedBinding &each : task.bindings)
    bindings.push_back(each.binding);
  return CollectiveModel::optimistic(machine, task.family->mesh, bindings);
}

/// Table entries that looking for labels below the cutoff may look at.
static constexpr double kLabelWork = 1e9;

/// A network of the labels that plans below the cutoff can use; nothing if
/// there is no such plan.
static std::optional<PlanNetwork>
buildBelow(const PlanNetwork &whole, PlanningContext &planning,
           shd::ProgramOp op, NetworkOptions how, const MeshTask &task,
           const solver::Deadline &deadline, MeshBound &result) {
  solver::BoundWork work{.messages = kLabelWork};
  solver::LabelSets kept = solver::labelsBelow(solver::boundLabels(
      whole.problem, task.cutoff, task.multipliers, work, deadline));
  if (solver::lacksLabels(kept))
    return std::nullopt;
  result.labels =
      std::make_shared<const NetworkLabels>(selectLabels(whole, kept));
  how.within = result.labels.get();
  std::variant<PlanNetwork, NoNetwork> built = buildNetwork(planning, op, how);
  if (auto *below = std::get_if<PlanNetwork>(&built))
    return std::move(*below);
  // Without any copies, values meet each of their users in a larger table.
  result.labels = nullptr;
  return whole;
}

static void solve(PlanNetwork &network, const MeshTask &task,
                  solver::Options how, MeshBound &result) {
  how.cutoff = task.cutoff;
  how.multipliers = task.multipliers;
  solver::Solution solution = solver::solve(network.problem, how);
  result.multipliers = std::move(solution.multipliers);
  result.isRuledOut = solution.status == solver::Status::Infeasible;
  result.bound = result.isRuledOut
                     ? task.cutoff
                     : std::clamp<solver::Cost>(solution.bound, 0, task.cutoff);
  if (solution.status == solver::Status::Optimal ||
      solution.status == solver::Status::Feasible)
    result.cost = solution.cost;
}

MeshBound MeshPlanner::bound(ArrayRef<Setting> settings, const MeshTask &task,
                             const solver::Deadline &deadline) {
  MeshBound result;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error &&
        result.error.empty())
      result.error = diagnostic.str();
  });
  Point point(settings.begin(), settings.end());
  point.push_back(unboundMesh(task.family->mesh));
  std::optional<Program> program = importStep(text, &context, point);
  if (!program)
    return result;
  CompileOptions unverified;
  unverified.verifyPasses = false;
  Compilation compilation(std::move(*program), std::move(unverified));
  if (failed(compilation.prepareNetwork()))
    return result;
  shd::ProgramOp op = compilation.program();
  const Machine &machine = *compilation.source().machine;
  PlanningContext planning(modelOf(machine, task), op.getAllowPadding());
  NetworkOptions how;
  how.within = task.within;
  how.deadline = deadline;
  how.memoryLimit = options.memoryLimit.value_or(machine.usableMemory());
  if (task.deviceOnly)
    how.weights.collectives = 0;
  std::variant<PlanNetwork, NoNetwork> built = buildNetwork(planning, op, how);
  auto *network = std::get_if<PlanNetwork>(&built);
  if (!network || network->problem.check()) {
    result.isUnknown = true;
    return result;
  }
  std::optional<PlanNetwork> below;
  if (!task.within && task.cutoff < solver::kMaxTotal) {
    below = buildBelow(*network, planning, op, how, task, deadline, result);
    if (!below) {
      result.isRuledOut = true;
      result.bound = task.cutoff;
      return result;
    }
    network = &*below;
  }
  solver::Options solverOptions;
  solverOptions.interrupted = deadline.interruption();
  solverOptions.timeLimitSeconds = deadline.remaining();
  solve(*network, task, std::move(solverOptions), result);
  return result;
}
