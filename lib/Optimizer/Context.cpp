//===- Context.cpp - What planning a program needs -------------*- C++ -*-===//

#include "shardc/Optimizer/Context.h"
#include "shardc/Cost/Schedule.h"
#include "shardc/Dialect/Shd/IR/Host.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

/// Emits an error for each operation whose type the machine states no peak for.
static LogicalResult checkPeaks(ProgramOp program, const Machine &machine) {
  bool failed = false;
  program->walk([&](CostOpInterface op) {
    ShardingRule rule = cast<ShardingRuleOpInterface>(*op).getShardingRule();
    OpWork work = op.getWork(wholeExtents(rule), machine);
    if (work.computeType.empty())
      return;
    if (auto field = missingPeak(machine, work.computeType)) {
      op->emitError() << "hardware '" << machine.name << "' states no '"
                      << *field << "', which this operation needs";
      failed = true;
    }
  });
  return failure(failed);
}

/// Operations that the schedule of a step simulates: those of repeats in each
/// iteration that is simulated, so repeats within one another multiply.
static constexpr double kMaxSimulated = 5e6;

/// Adds the operations of a block, simulated `runs` times each; an error where
/// they become too many.
static LogicalResult addSimulated(Block &block, double runs, double &sum) {
  for (Operation &op : block) {
    sum += runs;
    if (sum > kMaxSimulated)
      return op.emitError() << "repeats within one another run more than "
                            << uint64_t(kMaxSimulated)
                            << " operations, which are too many to simulate";
    auto repeat = dyn_cast<RepeatOp>(op);
    if (!repeat)
      continue;
    int64_t simulated =
        std::min<int64_t>(repeat.getCount(), kSimulatedIterations);
    if (failed(addSimulated(repeat.getBody().front(), runs * double(simulated),
                            sum)))
      return failure();
  }
  return success();
}

std::unique_ptr<PlanningContext> shardc::createContext(ProgramOp program) {
  HardwareAttr hardware = program.getHardwareAttr();
  if (!hardware) {
    program.emitError("no hardware is declared, so nothing can be priced")
            .attachNote()
        << "declare one, such as 'hardware tpu_v5e[4, 4]', or pass --hardware";
    return nullptr;
  }
  auto *dialect = program->getContext()->getLoadedDialect<ShdDialect>();
  std::optional<Machine> machine = dialect->loadMachine(hardware);
  if (!machine) {
    program.emitError() << "unknown hardware '" << hardware.getName() << "'";
    return nullptr;
  }
  if (failed(checkPeaks(program, *machine)) ||
      failed(checkHost(program, *machine)))
    return nullptr;
  double simulated = 0;
  if (failed(addSimulated(program.getBody().front(), /*runs=*/1, simulated)))
    return nullptr;
  Mesh mesh;
  SmallVector<AxisRequest> requests;
  if (MeshAttr attr = program.getMeshAttr()) {
    mesh = toMesh(attr);
    for (MeshAxisAttr axis : attr.getAxes()) {
      AxisRequest &request = requests.emplace_back();
      for (StringAttr name : axis.getOn())
        request.on.push_back(name.str());
    }
  }
  MachineOr<MeshBinding> binding = bindMesh(*machine, mesh, requests, 0);
  if (auto *error = std::get_if<MachineError>(&binding)) {
    InFlightDiagnostic diagnostic = program.emitError(error->message);
    if (!error->note.empty())
      diagnostic.attachNote() << error->note;
    return nullptr;
  }
  auto *shared = dialect->getRegisteredInterface<SharedTables>();
  auto context = std::make_unique<PlanningContext>(
      CollectiveModel(std::move(*machine), std::move(mesh),
                      std::move(std::get<MeshBinding>(binding))),
      program.getAllowPadding(), shared ? shared->reshard : nullptr);
  if (shared)
    shared->reshard = context->planner.tables();
  return context;
}
