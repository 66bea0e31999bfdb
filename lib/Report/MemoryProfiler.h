//===- MemoryProfiler.h - Memory under a schedule --------------*- C++ -*-===//

#ifndef SHARDC_LIB_REPORT_MEMORYPROFILER_H
#define SHARDC_LIB_REPORT_MEMORYPROFILER_H

#include "shardc/Optimizer/Graph.h"
#include "shardc/Report/Memory.h"
#include "shardc/Reshard/ReshardMemory.h"

namespace shardc {

/// When what a collective makes takes memory, beside the points at which it is
/// read. In program points.
struct EarlyBuffer {
  /// From here to its reader.
  uint32_t from = UINT32_MAX;
  /// And during these [begin, end): for the next iteration of a repeat, or
  /// before the first.
  llvm::SmallVector<std::pair<uint32_t, uint32_t>, 2> also;
};

/// By collective; those that compute waits for are not in it.
using EarlyBuffers = llvm::DenseMap<mlir::Operation *, EarlyBuffer>;

/// Memory of one explicit program, under any schedule.
class MemoryProfiler {
public:
  explicit MemoryProfiler(shd::ProgramOp program);

  const Graph &programGraph() const { return graph; }

  /// Without buffers that are made early, in program order.
  MemoryProfile profile(const EarlyBuffers *early);

private:
  /// Memory taken during [begin, end).
  struct Interval {
    mlir::Value value;
    MemoryKind kind = MemoryKind::Activation;
    int64_t bytes = 0;
    uint32_t begin = 0, end = 0;
  };

  void addValue(const GraphValue &value);
  void addReaders(const GraphValue &value, mlir::Value stored,
                  mlir::Value copy);
  void addReader(mlir::Value operand, mlir::Value stored, mlir::Value copy,
                 uint32_t point);
  void addBuffer(mlir::Value value, mlir::Operation *maker, uint32_t begin,
                 uint32_t end, int64_t bytes);
  void add(mlir::Value value, MemoryKind kind, uint32_t begin, uint32_t end,
           int64_t bytes);
  const EarlyBuffer *earlyBuffer(mlir::Operation *maker) const;
  int64_t bytesOf(mlir::Value value) const;
  ReshardMemory chain(llvm::ArrayRef<mlir::Operation *> steps) const;
  bool staysOnChip(const GraphValue &value) const;
  LiveTensor describe(const Interval &interval) const;

  shd::ProgramOp program;
  Mesh mesh;
  Graph graph;
  const EarlyBuffers *early = nullptr;
  std::vector<Interval> intervals;
};

} // namespace shardc

#endif // SHARDC_LIB_REPORT_MEMORYPROFILER_H
