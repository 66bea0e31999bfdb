//===- ShrinkServed.cpp - Small programs of prefill and decode ------------===//

#include "shardc/Dialect/Shd/IR/Serving.h"
#include "shardc/Shrink/Shrink.h"

using namespace mlir;
using namespace shardc;

/// Decode steps that run at most: the first reads prefill's caches, the second
/// what the first wrote, the third what two wrote.
static constexpr int64_t kMostSteps = 3;

/// Shrinking bounds windows by the keys of each phase: all programs take the
/// smallest, attention by attention.
static void alignWindows(ArrayRef<shd::ProgramOp> programs) {
  SmallVector<SmallVector<shd::AttentionOp>> all;
  for (shd::ProgramOp program : programs) {
    auto &found = all.emplace_back();
    program->walk([&](shd::AttentionOp op) { found.push_back(op); });
    if (found.size() != all.front().size())
      return;
  }
  for (size_t i = 0; i < all.front().size(); ++i) {
    std::optional<uint64_t> least;
    for (auto &found : all)
      if (std::optional<uint64_t> window = found[i].getWindow())
        least = std::min(least.value_or(*window), *window);
    if (least)
      for (auto &found : all)
        found[i].setWindow(*least);
  }
}

/// The small form of decode, whose extents are those of prefill where both have
/// them.
static Shrinking shrink(const ServedPrograms &programs,
                        const ShrinkOptions &how) {
  std::vector<Shrinking> all = chooseShrinking(
      ArrayRef<shd::ProgramOp>{programs.prefillPlan, programs.decodePlan}, how);
  for (shd::ProgramOp each : {programs.prefillWhole, programs.prefillPlan})
    applyShrinking(each, all.front());
  for (shd::ProgramOp each : {programs.decodeWhole, programs.decodePlan})
    applyShrinking(each, all.back());
  alignWindows({programs.prefillWhole, programs.prefillPlan,
                programs.decodeWhole, programs.decodePlan});
  return all.back();
}

FailureOr<ServedExtents> shardc::shrinkServed(const ServedPrograms &programs,
                                              bool shrinks) {
  shd::ProgramOp whole = programs.decodeWhole;
  shd::Serving serving = *shd::Serving::of(whole);
  int64_t steps = std::min(serving.generate, kMostSteps);
  Shrinking small;
  if (shrinks) {
    ShrinkOptions how;
    how.distances[{serving.prompt, serving.capacity}] = steps;
    small = shrink(programs, how);
  }
  ServedExtents result;
  result.sequences = small.extent(serving.sequences);
  result.promptBatch = small.extent(serving.promptBatch);
  result.prompt = small.extent(serving.prompt);
  result.capacity = small.extent(serving.capacity);
  result.steps = std::min(steps, result.capacity - result.prompt);
  if (result.steps < 1)
    return whole.emitError("a prompt of ")
           << result.prompt << " tokens fills the small cache of "
           << result.capacity << " positions: no decode step can follow";
  return result;
}
