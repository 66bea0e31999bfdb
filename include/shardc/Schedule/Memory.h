//===- Memory.h - Memory of a planned program over time -------*- C++ -*-===//
//
// Memory in use on one device at each point of the step:
// docs/CostModel.md#6-memory-of-one-device.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SCHEDULE_MEMORY_H
#define SHARDC_SCHEDULE_MEMORY_H

#include "shardc/Dialect/Shd/IR/Shd.h"
#include "shardc/Schedule/RunSchedule.h"
#include <array>

namespace shardc {

enum class MemoryKind : uint8_t {
  Weight,
  State,
  Input,
  Activation,
  Buffer,
  Gradient,
  /// Moments and master copies.
  Optimizer,
  /// What the forward pass keeps for the backward pass.
  Saved
};
inline constexpr unsigned kNumMemoryKinds = unsigned(MemoryKind::Saved) + 1;

/// Bytes of each MemoryKind.
using MemoryByKind = std::array<int64_t, kNumMemoryKinds>;

/// One tensor in memory.
struct LiveTensor {
  std::string name;
  MemoryKind kind = MemoryKind::Activation;
  int64_t bytes = 0;
  /// In the language's notation.
  std::string sharding;
};

/// A tensor in memory while points run, the first and last one included.
struct MemorySpan {
  mlir::Value value;
  MemoryKind kind = MemoryKind::Activation;
  int64_t bytes = 0;
  unsigned first = 0, last = 0;
};

struct MemoryProfile {
  /// Bytes at each point (one per costed operation, in program order).
  std::vector<int64_t> usage;
  int64_t peak = 0;
  unsigned peakPoint = 0;
  /// Name and location of the operation at the peak.
  std::string peakName;
  mlir::Location peakLoc;
  /// The live tensors there, the largest first.
  std::vector<LiveTensor> live;
  /// `usage` by kind, at the moment of the largest usage of each point.
  std::vector<MemoryByKind> usageByKind = {};
  /// The tensors that `usageByKind` counts: at each point the bytes of a kind
  /// add up to it. A tensor may have several spans.
  std::vector<MemorySpan> spans = {};
  /// The operations that run at a point.
  std::vector<std::pair<mlir::Operation *, unsigned>> points = {};

  int64_t atPeak(MemoryKind kind) const;
};

/// A span's tensor in the words of the program.
LiveTensor describe(const MemorySpan &span, const Mesh &mesh);

/// Memory of a program whose plan is explicit (after shd-annotate-cost). In
/// program order (an empty schedule) it is what the optimizer counts.
MemoryProfile profileMemory(shd::ProgramOp program,
                            const RunSchedule &schedule = {});

} // namespace shardc

#endif // SHARDC_SCHEDULE_MEMORY_H
