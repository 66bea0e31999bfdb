//===- MemoryProfiler.h - Memory under a schedule --------------*- C++ -*-===//

#ifndef SHARDC_LIB_SCHEDULE_MEMORYPROFILER_H
#define SHARDC_LIB_SCHEDULE_MEMORYPROFILER_H

#include "shardc/Optimizer/Graph.h"
#include "shardc/Reshard/ReshardMemory.h"
#include "shardc/Schedule/Memory.h"
#include "shardc/Schedule/RunSchedule.h"
#include "llvm/ADT/DenseSet.h"
#include <functional>

namespace shardc {

/// A program point has two moments, which differ at the end of a repeat only:
/// there an iteration ends that another one follows, and then the last one.
constexpr uint32_t kMomentsPerPoint = 2;

/// When what a collective makes takes memory, beside the points at which it is
/// read. In moments.
struct EarlyBuffer {
  struct Begin {
    uint32_t moment = UINT32_MAX;
    /// An iteration begins, and it has been there since the one before.
    bool isOlder = false;

    void include(Begin other) {
      isOlder = (moment <= other.moment && isOlder) ||
                (other.moment <= moment && other.isOlder);
      moment = std::min(moment, other.moment);
    }
  };
  struct Span {
    Begin begin;
    uint32_t end = 0; // excluded
  };
  /// From here to its reader.
  Begin from;
  /// And during these: for the next iteration of a repeat, or before the first.
  llvm::SmallVector<Span, 2> also;

  void include(const EarlyBuffer &other) {
    from.include(other.from);
    also.append(other.also);
  }
};

/// By collective; those that compute waits for are not in it.
using EarlyBuffers = llvm::DenseMap<mlir::Operation *, EarlyBuffer>;

/// Where the schedule makes buffers early; the graph's points are moments.
EarlyBuffers earlyBuffers(const Graph &graph, const RunSchedule &schedule);

/// The operation computes the fusion group while it reads its inputs.
bool computes(mlir::Operation *user, mlir::Attribute group);

/// What a pipeline stage has of a program's memory.
struct StageMemory {
  /// The stage's bytes of a value of which the program has so many.
  std::function<int64_t(mlir::Value value, int64_t bytes)> bytesOf;
  /// True of the sum of what different stages have, if only one summand is here
  /// and in memory: from the addition on, that is the sum.
  std::function<bool(mlir::Value sum)> isSummand;
  /// True if the stage runs the operation.
  std::function<bool(mlir::Operation *)> runs;
  /// Kept beside those while the microbatches run.
  std::vector<std::pair<mlir::Value, int64_t>> beside;
  shd::RepeatOp microbatches;
};

/// Memory of one explicit program, under any schedule.
class MemoryProfiler {
public:
  explicit MemoryProfiler(shd::ProgramOp program);

  /// An empty schedule is program order; without a stage, all of the program.
  MemoryProfile profile(const RunSchedule &schedule,
                        const StageMemory *stage = nullptr);

  /// True of an operation that readers of its result may compute for
  /// themselves, and whose operands therefore live as long.
  bool isPrologue(mlir::Operation *op) const {
    auto it = graph.chunkOf.find(op);
    return it != graph.chunkOf.end() && graph.chunks[it->second].prologue;
  }

  /// True of a view that lies, as it is stored, in the buffer of a declared
  /// tensor.
  bool isInBuffer(mlir::Value value) const;

private:
  /// Memory taken during the moments [begin, end).
  struct Interval {
    mlir::Value value;
    MemoryKind kind = MemoryKind::Activation;
    int64_t bytes = 0;
    uint32_t begin = 0, end = 0;
  };

  void addValue(const GraphValue &value);
  EarlyBuffer earlyUseBehind(mlir::Operation *update, mlir::Value buffer) const;
  void addEarlyUpdates(const GraphValue &value, const EarlyBuffer &early);
  void addReaders(const GraphValue &value, mlir::Value stored,
                  mlir::Value copy);
  void addReader(mlir::Value operand, mlir::Value stored, mlir::Value copy,
                 uint32_t begin, uint32_t end);
  void addRingSum(unsigned chunk);
  void addEarly(mlir::Value value, MemoryKind kind, uint32_t begin,
                uint32_t end, int64_t bytes, const EarlyBuffer &buffer);
  bool costsNothing(const Chunk &chunk) const;
  void addFreeReaders(mlir::Value value,
                      llvm::SmallVectorImpl<mlir::Operation *> &readers) const;
  uint32_t earlyFlow(mlir::OpOperand &use,
                     llvm::DenseSet<mlir::Value> &seen) const;
  EarlyBuffer seenFrom(mlir::Value value, mlir::Operation *user,
                       const EarlyBuffer &early) const;
  EarlyBuffer earlyUse(mlir::Value value,
                       llvm::DenseSet<mlir::Value> &seen) const;
  EarlyBuffer earlyUse(mlir::Value value) const;
  EarlyBuffer earlyCopy(mlir::Value value, mlir::Operation *maker) const;
  void addUntilRead(mlir::Value value, mlir::Value tensor, bool isCopy,
                    uint32_t begin, uint32_t end, int64_t bytes,
                    const EarlyBuffer &buffer);
  uint32_t endOfBlock(mlir::Value value) const;
  void addBuffer(mlir::Value value, mlir::Operation *maker, uint32_t begin,
                 uint32_t end, int64_t bytes);
  void add(mlir::Value value, MemoryKind kind, uint32_t begin, uint32_t end,
           int64_t bytes);
  const EarlyBuffer *earlyBuffer(mlir::Operation *maker) const;
  int64_t bytesOf(mlir::Value value) const;
  ReshardMemory chain(llvm::ArrayRef<mlir::Operation *> steps) const;
  bool staysOnChip(const GraphValue &value) const;
  bool isInPlace(const GraphValue &value, mlir::Value stored) const;
  void takeShare(const StageMemory &stage);
  uint32_t endOn(const StageMemory &stage, const Interval &interval) const;
  void addSpans(llvm::ArrayRef<uint32_t> largestMoments,
                MemoryProfile &profile) const;

  shd::ProgramOp program;
  Mesh mesh;
  /// With moments in place of points.
  Graph graph;
  EarlyBuffers early;
  std::vector<Interval> intervals;
};

} // namespace shardc

#endif // SHARDC_LIB_SCHEDULE_MEMORYPROFILER_H
