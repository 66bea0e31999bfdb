//===- Collect.h - The parts of buildReport --------------------*- C++ -*-===//

#ifndef SHARDC_LIB_REPORT_COLLECT_H
#define SHARDC_LIB_REPORT_COLLECT_H

#include "shardc/Cost/Saturating.h"
#include "shardc/Report/Report.h"
#include "shardc/Schedule/StagePlan.h"
#include "llvm/ADT/DenseMap.h"

namespace shardc {

/// Fills `report.tensors` and `report.parameters`.
void collectTensors(shd::ProgramOp program, const Mesh &mesh, Report &report);

/// Elements of a tensor, over all layers of a pipeline.
int64_t elementsOfAll(shd::DeclareOp declare,
                      std::optional<shd::PipelineAttr> pipeline);

/// Index in `Report::items` of each collective and of the operation that
/// carries a group's price.
using ItemIndex = llvm::DenseMap<mlir::Operation *, unsigned>;

/// Fills `report.repeats` and `report.items`.
ItemIndex collectItems(shd::ProgramOp program, const CollectiveModel &model,
                       Report &report);

/// Position of each operation in program order.
using ProgramOrder = llvm::DenseMap<mlir::Operation *, unsigned>;

/// Why a collective of a planned program is there: what made its operand
/// partial, or who reads it in another layout. A sentence without a full stop.
std::string collectiveReason(mlir::Operation *collective, const Mesh &mesh,
                             const ProgramOrder &order);

/// The plan in words, and the role of each axis of the mesh.
struct PlanWords {
  std::string text;
  /// As in Report::Axis.
  struct Role {
    std::string role = "none", zero;
    bool splitsExperts = false;
    std::string keys;
  };
  std::vector<Role> roles;
  std::vector<std::pair<std::string, int64_t>> zigzag;
};

/// The plan in one line: `data parallel 8 (X: ZeRO-3) x tensor parallel 4 (Y)`.
/// With `stages` if it runs in these.
PlanWords planInWords(shd::ProgramOp program, const Mesh &mesh,
                      const StagePlan *stages);

/// Makes the figures of a stage those of a pipeline: times, work, parameters
/// and tensors, once they are known of the stage that has everything.
void fillStages(shd::ProgramOp program, const StagePlan &stages,
                Report &report);
/// The same of the plan's value and bound, and the phases of a training step.
/// `idealSeconds`: the model's work on one chip at its peak, if known.
void fillStagePlan(shd::ProgramOp program, const StagePlan &stages,
                   std::optional<double> idealSeconds,
                   std::optional<double> secondsOfLayers, Report &report);

/// Whether kernels slow down beside collectives, as a calibrated machine says.
bool slowsKernels(const Report &report);
/// Fills `report.calibration`, but for the times at peak rates.
void fillCalibration(const CollectiveModel &model, Report &report);
/// Those times, of a report that has a calibration.
void fillRooflineTimes(Compilation &compilation, Report &report);

} // namespace shardc

#endif // SHARDC_LIB_REPORT_COLLECT_H
