//===- StageMemories.h - What the stages of a pipeline keep ----*- C++ -*-===//

#ifndef SHARDC_LIB_SCHEDULE_STAGEMEMORIES_H
#define SHARDC_LIB_SCHEDULE_STAGEMEMORIES_H

#include "MemoryProfiler.h"
#include "StageRoles.h"
#include "shardc/Schedule/PipelineShape.h"

namespace shardc {

/// Memory of the stages of one explicit program, in any shape and under any
/// schedule.
class StageMemories {
public:
  StageMemories(shd::ProgramOp program, const StageMap &map, const Mesh &mesh);

  /// By stage; an empty schedule is program order.
  std::vector<MemoryProfile> profile(const PipelineShape &shape,
                                     const RunSchedule &schedule);

private:
  /// Bytes of a value that crosses from one pass into another.
  struct Crossing {
    mlir::Value value;
    shd::StageRoles roles = shd::kAllRoles;
    /// In each layer.
    bool isOfLayers = false;
    PipelineKept bytes;

    bool isBuffer() const { return value.getDefiningOp<shd::DeclareOp>(); }
  };

  /// Layers of the program, which may have been made small.
  int64_t heldLayers() const;
  shd::StageRoles rolesOf(mlir::Value value) const;
  void findCrossings();
  void addReaders(mlir::Value value,
                  llvm::SmallVectorImpl<mlir::Operation *> &readers) const;
  void addCrossing(mlir::Value value, shd::StagePass made,
                   shd::StageRoles roles, bool isOfLayers);
  std::vector<int64_t> keptBytes(llvm::ArrayRef<int64_t> layers, unsigned stage,
                                 int64_t stages,
                                 llvm::ArrayRef<PipelineItem> items,
                                 const Crossing &crossing) const;
  llvm::DenseMap<mlir::Value, int64_t>
  keptAtPeak(llvm::ArrayRef<int64_t> layers, unsigned stage, int64_t stages,
             llvm::ArrayRef<PipelineItem> items) const;
  bool isSummand(mlir::Value sum, shd::StageRoles roles) const;
  MemoryProfile profile(const PipelineShape &shape, unsigned stage,
                        const RunSchedule &schedule);

  shd::ProgramOp program;
  const StageMap &map;
  const Mesh &mesh;
  shd::PipelineAttr pipeline;
  MemoryProfiler profiler;
  /// Values that a later pass reads, buffers among them.
  std::vector<Crossing> crossings;
};

/// Bytes of a device's part of a value.
int64_t localBytes(const Mesh &mesh, mlir::Value value);

} // namespace shardc

#endif // SHARDC_LIB_SCHEDULE_STAGEMEMORIES_H
