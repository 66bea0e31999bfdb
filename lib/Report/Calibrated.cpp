//===- Calibrated.cpp - What a calibrated report rests on -----------------===//
//
// The figures of the machine's calibration that a plan uses, and the times of
// the same plan at peak rates.
//
//===----------------------------------------------------------------------===//

#include "Collect.h"
#include "shardc/Pipelines/Compilation.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

using Figure = Report::Calibration::Figure;
using Provenance = Report::Calibration::Provenance;

llvm::StringRef shardc::stringify(Provenance provenance) {
  switch (provenance) {
  case Provenance::Measured:
    return "measured";
  case Provenance::Borrowed:
    return "borrowed";
  case Provenance::Missing:
    return "missing";
  }
  llvm_unreachable("a provenance");
}

const Figure *Report::Calibration::worst() const {
  const Figure *worst = nullptr;
  for (const Figure &figure : figures)
    if (!worst || figure.provenance > worst->provenance)
      worst = &figure;
  return worst;
}

bool shardc::slowsKernels(const Report &report) {
  return report.calibration &&
         llvm::any_of(report.calibration->figures, [](const Figure &figure) {
           return figure.name == "overlap" && figure.value && *figure.value < 1;
         });
}

namespace {
/// Lists figures that a plan uses.
class FigureList {
public:
  FigureList(const Machine &machine, std::vector<Figure> &figures)
      : machine(machine), figures(figures) {}

  void add(const llvm::Twine &name, const MaybeFigure &figure) {
    Figure &shown = figures.emplace_back();
    shown.name = name.str();
    if (!figure)
      return;
    shown.value = figure->value;
    shown.machine = figure->machine;
    shown.provenance = figure->machine == machine.name ? Provenance::Measured
                                                       : Provenance::Borrowed;
  }

  /// `reduced`: members of the largest group that all-reduces.
  void addNetwork(const Network &network, double reduced) {
    const NetworkCalibration &measured = network.calibration;
    add(network.name + ".base", measured.base);
    add(network.name + ".latency", measured.latency);
    add(network.name + ".bandwidth", measured.bandwidth);
    add(network.name + ".ramp", measured.ramp);
    if (valueOr(measured.reductionMin, reduced + 1) <= reduced)
      add(network.name + ".reduction.min", measured.reductionMin);
  }

private:
  const Machine &machine;
  std::vector<Figure> &figures;
};
} // namespace

/// Devices of a group.
static double membersOf(const ReportCollective &collective, const Mesh &mesh) {
  double members = 1;
  for (const std::string &name : collective.axes)
    if (std::optional<AxisIndex> axis = mesh.find(name))
      members *= double(mesh.axes[*axis].size);
  return members;
}

void shardc::fillCalibration(const CollectiveModel &model, Report &report) {
  const Machine &machine = model.machine();
  if (!machine.isCalibrated)
    return;
  Report::Calibration &calibration = report.calibration.emplace();
  bool hasMatmul = false, hasAttention = false, hasKernel = false;
  double reduced = 1;
  llvm::SmallVector<bool, 4> isUsed(machine.networks.size(), false);
  for (const ReportItem &item : report.items) {
    if (const ReportCompute *compute = item.compute()) {
      hasMatmul |= compute->cost.matrixFlops > 0;
      hasAttention |= llvm::StringRef(item.kind).starts_with("attention");
      hasKernel |= item.seconds > 0;
    } else {
      const ReportCollective &collective = *item.collective();
      if (isHostTransfer(collective.kind))
        continue;
      for (unsigned axis : collective.cost.occupies)
        isUsed[model.physical()[axis].network] = true;
      if (item.kind == stringify(CollectiveKind::AllReduce))
        reduced = std::max(reduced, membersOf(collective, model.mesh()));
    }
  }
  FigureList list(machine, calibration.figures);
  if (hasMatmul)
    list.add("matmul", machine.calibration.matmul);
  if (hasAttention && machine.calibration.attention)
    list.add("attention", machine.calibration.attention);
  if (hasKernel) {
    list.add("hbm", machine.calibration.hbm);
    list.add("overhead", machine.calibration.overhead);
    if (machine.calibration.kernels)
      list.add("kernels", machine.calibration.kernels);
    list.add("step", machine.calibration.step);
  }
  if (llvm::is_contained(isUsed, true) && machine.calibration.overlap)
    list.add("overlap", machine.calibration.overlap);
  for (auto [network, used] : llvm::zip_equal(machine.networks, isUsed))
    if (used)
      list.addNetwork(network, reduced);
}

/// The plan priced at peak rates, with its collectives and groups as they are.
static OwningOpRef<ModuleOp> atPeakRates(Compilation &compilation) {
  OwningOpRef<ModuleOp> module = compilation.clone();
  module->walk([](Operation *op) {
    if (auto price = op->getAttrOfType<CollectiveCostAttr>("cost"))
      op->setAttr("cost",
                  CollectiveCostAttr::get(
                      op->getContext(), price.getBytes(), price.getWireBytes(),
                      price.getBandwidthS(), price.getLatencyS(),
                      price.getNetworks(), price.getBoundBy(), {}));
    if (auto price = op->getAttrOfType<GroupCostAttr>(kGroupCost))
      op->setAttr(kGroupCost, GroupCostAttr::get(
                                  op->getContext(), price.getFlops(),
                                  price.getVectorFlops(), price.getHbmBytes(),
                                  price.getMatrixS(), price.getVectorS(),
                                  price.getHbmS(), price.getHost(), {}));
  });
  return module;
}

void shardc::fillRooflineTimes(Compilation &compilation, Report &report) {
  const CollectiveModel &model = compilation.planning()->model;
  Machine machine = model.machine();
  machine.isCalibrated = false;
  CollectiveModel peak(std::move(machine), model.mesh(), model.binding());
  OwningOpRef<ModuleOp> module = atPeakRates(compilation);
  ProgramOp program = *module->getOps<ProgramOp>().begin();
  ScheduledProgram scheduled =
      scheduleProgram(program, peak, compilation.limitOfStage());
  ReportOptions options;
  options.memoryLimit = compilation.options().plan.memoryLimit;
  std::optional<StagePlan> stages;
  if (program.getPipeline()) {
    stages = planStages(program, peak, scheduled, options.memoryLimit);
    if (!stages)
      return;
    options.stages = &*stages;
  }
  report.calibration->roofline =
      buildReport(program, peak, scheduled, options).time;
}
