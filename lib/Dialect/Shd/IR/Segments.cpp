//===- Segments.cpp - Repeats that run segment by segment -----------------===//

#include "shardc/Dialect/Shd/IR/Segments.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::shd;

std::optional<Segments> shd::segmentsOf(RepeatOp repeat) {
  auto attr = repeat->getAttrOfType<DenseI64ArrayAttr>(kSegments);
  auto around = dyn_cast<RepeatOp>(repeat->getParentOp());
  if (!attr || !around)
    return std::nullopt;
  Segments segments;
  segments.total = attr[0];
  segments.length = attr[1];
  segments.left = segments.length - int64_t(repeat.getCount());
  segments.fromLast = around.getReverse();
  return segments;
}

int64_t shd::iterationsOfAll(RepeatOp repeat) {
  std::optional<Segments> segments = segmentsOf(repeat);
  return segments ? segments->total : int64_t(repeat.getCount());
}

/// The segment in which a repeat is, by the iterations around it.
static int64_t segmentWithin(RepeatOp repeat, ArrayRef<int64_t> around) {
  return cast<RepeatOp>(repeat->getParentOp()).numberOf(around.back());
}

int64_t shd::iterationsWithin(RepeatOp repeat, ArrayRef<int64_t> around) {
  std::optional<Segments> segments = segmentsOf(repeat);
  return segments ? segments->iterations(segmentWithin(repeat, around))
                  : int64_t(repeat.getCount());
}

int64_t shd::numberWithin(RepeatOp repeat, ArrayRef<int64_t> around,
                          int64_t step) {
  std::optional<Segments> segments = segmentsOf(repeat);
  if (!segments)
    return repeat.numberOf(step);
  int64_t segment = segmentWithin(repeat, around);
  if (repeat.getReverse())
    step = segments->iterations(segment) - 1 - step;
  return segment * segments->length + step;
}

RepeatOp shd::segmentedWithin(RepeatOp repeat) {
  for (auto inner : repeat.getBody().getOps<RepeatOp>())
    if (segmentsOf(inner))
      return inner;
  return nullptr;
}

/// The segments whose numbers those of a repeat are.
static std::optional<Segments> segmentsWithin(RepeatOp repeat) {
  RepeatOp segmented = segmentedWithin(repeat);
  return segmented ? segmentsOf(segmented) : std::nullopt;
}

bool shd::mayNumberParts(RepeatOp repeat, int64_t parts, bool isSaved) {
  if (std::optional<Segments> segments = segmentsOf(repeat))
    return isSaved ? parts == segments->length ||
                         parts == segments->partsOfCarried()
                   : parts == segments->total;
  if (parts == int64_t(repeat.getCount()))
    return true;
  std::optional<Segments> inner = segmentsWithin(repeat);
  return isSaved && inner && parts == inner->partsOfCarried();
}

int64_t shd::partNumber(RepeatOp repeat, int64_t parts, bool isSaved,
                        int64_t iteration) {
  std::optional<Segments> segments = repeat ? segmentsOf(repeat) : std::nullopt;
  if (!segments || !isSaved)
    return iteration;
  int64_t segment = iteration / segments->length;
  int64_t place = iteration % segments->length;
  if (parts == segments->length)
    return place;
  return place == 0 ? segment : segments->number() + place - 1;
}

int64_t shd::runsOfBody(RepeatOp repeat) {
  int64_t around = executionCount(repeat);
  std::optional<Segments> segments = segmentsOf(repeat);
  if (!segments)
    return std::min<uint64_t>(
        llvm::SaturatingMultiply(uint64_t(around), uint64_t(repeat.getCount())),
        std::numeric_limits<int64_t>::max());
  // In each run of the repeat around: a shortage in one segment of all.
  return around / segments->number() *
         (segments->total - segments->left * segments->number());
}
