//===- DeviceBound.cpp - A bound by the work of a program ------*- C++ -*-===//

#include "shardc/Dialect/Shd/Transforms/DeviceBound.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "shardc/Dialect/Shd/IR/Pipeline.h"
#include "shardc/Optimizer/ObjectiveSearch.h"
#include "shardc/Optimizer/TimeRows.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

static bool hasChunks(ProgramOp program) {
  WalkResult found = program->walk([](CostOpInterface op) {
    return op.getRowChunks() == kNoChunks ? WalkResult::advance()
                                          : WalkResult::interrupt();
  });
  return found.wasInterrupted();
}

/// Makes every axis one of a single device.
static void leaveOneDevice(ProgramOp program) {
  MeshAttr mesh = program.getMeshAttr();
  if (!mesh)
    return;
  SmallVector<MeshAxisAttr> axes;
  for (MeshAxisAttr axis : mesh.getAxes())
    axes.push_back(MeshAxisAttr::get(program.getContext(), axis.getName(),
                                     /*size=*/1, /*on=*/{},
                                     /*stages=*/false));
  program.setMeshAttr(MeshAttr::get(program.getContext(), axes));
}

double shd::kernelsOf(ProgramOp program) {
  double kernels = 0;
  program->walk([&](CostOpInterface op) { kernels += runsOfAllStages(op); });
  return kernels;
}

/// The plan of the least `lower` of a relaxed network. Its times are those that
/// the network adds up: no program runs in all of these ways.
static solver::Solution leastLower(const PlanNetwork &network,
                                   NetworkSearchOptions options) {
  options.objective = Objective::Lower;
  TimeRows rows(network);
  auto addUp = [&](ArrayRef<solver::Label> plan) {
    std::vector<solver::Cost> busy = rows.busyTimes(plan);
    EvaluatedPlan times;
    times.busy.assign(busy.begin(), busy.end());
    times.upper = *solver::evaluate(network.problem, plan.vec()).cost;
    times.lower = times.scheduled = *llvm::max_element(busy);
    return std::optional(std::move(times));
  };
  solver::Solution first = solveUpper(network, options, {});
  ObjectiveSearchOptions search;
  search.objective = options.objective;
  search.maxWork = options.maxWork;
  search.isQuick = options.isQuick;
  search.cutoff = options.cutoff.value_or(search.cutoff);
  search.deadline = options.deadline;
  std::optional<solver::Solution> found;
  if (!first.assignment.empty() || network.problem.variables.empty())
    found = searchObjective(network, first, addUp, search);
  return found.value_or(solver::Solution());
}

std::optional<double> shd::boundByWork(ProgramOp program,
                                       NetworkSearchOptions options,
                                       double parts) {
  if (program.getPipeline() || hasChunks(program))
    return std::nullopt;
  OwningOpRef<ModuleOp> module = ModuleOp::create(program->getLoc());
  module->push_back(program->clone());
  ProgramOp alone = *module->getOps<ProgramOp>().begin();
  leaveOneDevice(alone);
  std::unique_ptr<PlanningContext> context = createContext(alone);
  if (!context)
    return std::nullopt;
  NetworkOptions how;
  how.measureResources = true;
  how.readsAnyStored = true;
  how.deadline = options.deadline;
  std::variant<PlanNetwork, NoNetwork> built =
      buildNetwork(*context, alone, how);
  auto *network = std::get_if<PlanNetwork>(&built);
  if (!network || network->problem.check())
    return std::nullopt;
  solver::Solution found = leastLower(*network, options);
  double devices = double(toMesh(program.getMeshAttr()).numDevices());
  double seconds = shareOfDevices(double(found.bound) * 1e-12, devices,
                                  kernelsOf(program) * parts);
  return seconds > 0 ? std::optional(seconds) : std::nullopt;
}
