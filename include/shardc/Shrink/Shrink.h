//===- Shrink.h - Programs small enough to run ----------------*- C++ -*-===//
//
// A planned program and the program that it was planned from, made so small
// that both run in a second, with the plan's structure unchanged. Shrinking is
// a map on extents, so both programs shrink alike. docs/Verification.md says
// what it keeps.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SHRINK_SHRINK_H
#define SHARDC_SHRINK_SHRINK_H

#include "shardc/Dialect/Shd/IR/Shd.h"
#include <map>
#include <vector>

namespace shardc {

struct ShrinkOptions {
  /// Mesh axes are at most this large, and at least 2 if they were: a plan over
  /// an axis of size 1 would have no collectives there.
  int64_t maxAxis = 2;
  /// Extents keep their order where they can, so that small ones differ as
  /// large ones do; else each is as small as it can be.
  bool keepsOrder = true;
  /// Extents that stay at least so large: the small one for each.
  std::map<int64_t, int64_t> least;
  /// By how much the second extent of a pair exceeds the first one at least,
  /// once both are small.
  std::map<std::pair<int64_t, int64_t>, int64_t> distances;
};

struct Shrinking {
  /// The small extent for each extent of a tensor.
  std::map<int64_t, int64_t> extents;
  /// The small count for each number of iterations.
  std::map<int64_t, int64_t> counts;
  /// The parts to which each class of indices in zigzag order is dealt.
  std::map<int64_t, int64_t> dealt;
  /// The small number of rows for each number of rows of a halo: windows that
  /// reach so far back shrink alike.
  std::map<int64_t, int64_t> halos;
  /// The size of each mesh axis.
  llvm::SmallVector<int64_t> axes;

  /// The small extent for `extent`; itself if the planned program lacks it.
  int64_t extent(int64_t extent) const;
  /// The smaller number of iterations for `count`; itself if the program lacks
  /// it.
  int64_t count(int64_t count) const;
};

/// Decides from a program with shardings in its types and every collective
/// explicit. Deterministic; a program whose constraints leave no room keeps its
/// extents, and its axes where those extents need them.
Shrinking chooseShrinking(shd::ProgramOp planned,
                          const ShrinkOptions &options = {});

/// The same for programs that exchange tensors, each with a mesh of its own: an
/// extent becomes the same in all of them.
std::vector<Shrinking> chooseShrinking(llvm::ArrayRef<shd::ProgramOp> planned,
                                       const ShrinkOptions &options);

/// Both phases of a program that serves: each unsharded, and planned with every
/// collective explicit.
struct ServedPrograms {
  shd::ProgramOp prefillWhole, prefillPlan, decodeWhole, decodePlan;
};

/// Extents of programs that are run one after the other, and the decode steps
/// that follow a prefill.
struct ServedExtents {
  int64_t sequences = 1, promptBatch = 1, prompt = 1, capacity = 1, steps = 1;
};

/// Shrinks all four alike, so that the caches of a prefill are the first
/// positions of those of decode, and a few decode steps fit behind the prompt;
/// an error if none does. Without `shrinks` only finds the extents.
mlir::FailureOr<ServedExtents> shrinkServed(const ServedPrograms &programs,
                                            bool shrinks = true);

/// Rewrites types, the mesh, counts, ranges and windows, and drops prices,
/// which are of the large program. What verified before verifies after.
void applyShrinking(shd::ProgramOp program, const Shrinking &shrinking);

} // namespace shardc

#endif // SHARDC_SHRINK_SHRINK_H
