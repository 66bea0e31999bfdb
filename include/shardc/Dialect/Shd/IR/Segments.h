//===- Segments.h - Repeats that run segment by segment --------*- C++ -*-===//
//
// `remat = every(k)` cuts a repeat into segments: a repeat over them has a
// repeat of k iterations in its body, whose numbers go on from segment to
// segment (kSegments). The last segment may be shorter. Weights stay stacked
// along all iterations. Buffers have parts for the iterations of one segment,
// and the one of a carried value has parts for the beginnings of all segments,
// followed by those for the other iterations of one.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHD_IR_SEGMENTS_H
#define SHARDC_DIALECT_SHD_IR_SEGMENTS_H

#include "shardc/Dialect/Shd/IR/Shd.h"

namespace shardc::shd {

/// On a repeat that runs the iterations of one segment, the number of which is
/// that of the repeat around it: the iterations of all segments and those of
/// one (a list of two numbers).
inline constexpr llvm::StringLiteral kSegments = "shd.segments";
/// On an update: it writes the part of the next iteration.
inline constexpr llvm::StringLiteral kAhead = "shd.ahead";

struct Segments {
  int64_t total = 1, length = 1;
  /// Iterations at the end of each segment that do not run: 1 where a segment
  /// runs again and nothing of its last iteration is needed.
  int64_t left = 0;
  /// The repeat around it runs from the last segment to the first.
  bool fromLast = false;

  int64_t number() const { return (total + length - 1) / length; }
  /// Iterations by which the last segment is shorter.
  int64_t shortage() const { return number() * length - total; }
  /// Parts for the beginnings of all segments and the other iterations of one.
  int64_t partsOfCarried() const { return number() + length - 1; }
  /// Iterations that run in a segment.
  int64_t iterations(int64_t segment) const {
    return length - left - (segment + 1 == number() ? shortage() : 0);
  }
};

/// The repeat whose iteration has the number, or null.
RepeatOp repeatOf(mlir::Value number);

/// True of a buffer for the backward pass, in any dialect, and of its parts.
bool isOfSaved(mlir::Value stack);

/// Nothing for a repeat that runs all of its iterations at once.
std::optional<Segments> segmentsOf(RepeatOp repeat);
/// The repeat that runs one of the segments over which a repeat runs; null for
/// any other repeat.
RepeatOp segmentedWithin(RepeatOp repeat);
/// Iterations of a repeat, those of all segments together.
int64_t iterationsOfAll(RepeatOp repeat);

/// How many iterations a repeat runs, and the number of one that runs behind
/// `step` others, within the iterations `around` of the repeats around it.
int64_t iterationsWithin(RepeatOp repeat, llvm::ArrayRef<int64_t> around);
int64_t numberWithin(RepeatOp repeat, llvm::ArrayRef<int64_t> around,
                     int64_t step);

/// True if a repeat's numbers may name the parts of a stack with so many;
/// `isSaved`: of a buffer for the backward pass.
bool mayNumberParts(RepeatOp repeat, int64_t parts, bool isSaved);
/// The part that the iteration with a number has; `repeat` may be null.
int64_t partNumber(RepeatOp repeat, int64_t parts, bool isSaved,
                   int64_t iteration);

/// Runs of a repeat's body in a step.
int64_t runsOfBody(RepeatOp repeat);

} // namespace shardc::shd

#endif // SHARDC_DIALECT_SHD_IR_SEGMENTS_H
