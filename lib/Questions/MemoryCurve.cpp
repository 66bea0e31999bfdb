//===- MemoryCurve.cpp - The time of a step against memory ----------------===//

#include "shardc/Questions/MemoryCurve.h"
#include "shardc/Optimizer/Options.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace shardc;

/// Limits from the least to the most.
static constexpr unsigned kSteps = 12;

static Variant withLimit(int64_t bytes) {
  Variant variant;
  variant.memoryLimit = bytes;
  return variant;
}

/// The next number of three digits and zeros.
static int64_t roundUp(int64_t bytes) {
  int64_t unit = 1;
  while (bytes / unit >= 1000)
    unit *= 10;
  return (bytes + unit - 1) / unit * unit;
}

std::vector<int64_t> shardc::curveLimits(int64_t least, int64_t most,
                                         int64_t allowed) {
  std::vector<int64_t> limits = {least, allowed, allowed + kMoreMemory};
  double ratio = double(most) / double(std::max<int64_t>(1, least));
  for (unsigned step = 1; step <= kSteps && ratio > 1; ++step)
    limits.push_back(roundUp(std::max<int64_t>(
        1,
        std::llround(double(least) * std::pow(ratio, double(step) / kSteps)))));
  llvm::sort(limits);
  limits.erase(std::unique(limits.begin(), limits.end()), limits.end());
  return limits;
}

const MemoryCurve::Point &MemoryCurve::atAllowed() const {
  return *llvm::find_if(
      points, [&](const Point &point) { return point.limit == allowed; });
}

std::optional<MemoryCurve> shardc::findMemoryCurve(TrialRunner &runner) {
  // With nothing allowed, what is shown is the plan that takes least.
  const Variant ends[] = {withLimit(kNoMemoryLimit), withLimit(0), Variant()};
  std::vector<Outcome> atEnds = runner.plan(ends);
  const Outcome &unlimited = atEnds[0], &least = atEnds[1],
                &written = atEnds[2];
  if (!unlimited.report || !least.report || !written.report)
    return std::nullopt;

  MemoryCurve curve;
  curve.file = written.report->file;
  curve.objective = written.report->plan.objective;
  curve.allowed = written.report->memory.allowed();
  curve.unlimited = figuresOf(*unlimited.report);
  std::vector<int64_t> limits = curveLimits(
      least.report->memory.peak, curve.unlimited.peak, curve.allowed);
  std::vector<Variant> variants;
  for (int64_t limit : limits)
    variants.push_back(withLimit(limit));
  for (auto [limit, plan] : llvm::zip_equal(limits, runner.plan(variants)))
    if (plan.report)
      curve.points.push_back({limit, figuresOf(*plan.report)});
  return curve;
}
