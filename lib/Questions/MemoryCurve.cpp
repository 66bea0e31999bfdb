//===- MemoryCurve.cpp - The time of a step against memory ----------------===//

#include "shardc/Questions/MemoryCurve.h"
#include "shardc/Optimizer/Options.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace shardc;
using llvm::SmallVector;

/// Limits from the least to the most.
static constexpr unsigned kSteps = 12;
/// Part of a time limit for the plans that say which limits are of interest.
static constexpr double kShareOfEnds = 0.4;

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

static void setStatus(PlanFigures &plan) {
  plan.status = plan.bound == plan.value ? "optimal" : "feasible";
}

/// Takes the plan of a search with another limit, if it takes no more than this
/// one, where the search with this one found a slower one or none.
static void takeFaster(PlanFigures &plan, const PlanFigures &other,
                       int64_t limit) {
  if (!other.fits || other.peak > limit ||
      (plan.fits && plan.value <= other.value))
    return;
  PlanFigures taken = other;
  taken.allowed = plan.allowed;
  // A bound is one of the order in which its search counts memory: of another
  // order, in which a faster plan fits, it says nothing.
  taken.bound =
      plan.bound && *plan.bound <= other.value ? plan.bound : std::nullopt;
  plan = std::move(taken);
  setStatus(plan);
}

/// Takes what is proven of more memory, which holds with less.
static void takeBound(PlanFigures &plan, const PlanFigures &withMore) {
  if (!plan.fits || !withMore.bound || plan.bound >= withMore.bound ||
      *withMore.bound > plan.value)
    return;
  plan.bound = withMore.bound;
  setStatus(plan);
}

void shardc::makeMonotone(MemoryCurve &curve) {
  SmallVector<PlanFigures *> plans;
  SmallVector<int64_t> limits;
  for (MemoryCurve::Point &point : curve.points) {
    plans.push_back(&point.plan);
    limits.push_back(point.limit);
  }
  if (curve.unlimited) {
    plans.push_back(&*curve.unlimited);
    limits.push_back(INT64_MAX);
  }
  for (size_t i = 1; i < plans.size(); ++i)
    takeFaster(*plans[i], *plans[i - 1], limits[i]);
  // A search with more memory may find a plan that would have fitted in less.
  for (size_t i = plans.size(); i-- > 0;)
    for (size_t j = i + 1; j < plans.size(); ++j)
      takeFaster(*plans[i], *plans[j], limits[i]);
  for (size_t i = plans.size() - 1; i > 0; --i)
    takeBound(*plans[i - 1], *plans[i]);
}

std::optional<MemoryCurve> shardc::findMemoryCurve(TrialRunner &runner) {
  // With nothing allowed, what is shown is the plan that takes least.
  const Variant ends[] = {Variant(), withLimit(kNoMemoryLimit), withLimit(0)};
  std::vector<Outcome> atEnds = runner.plan(ends, kShareOfEnds);
  const Outcome &written = atEnds[0], &unlimited = atEnds[1],
                &least = atEnds[2];
  bool isLegal = llvm::all_of(atEnds, [](const Outcome &outcome) {
    return outcome.report || outcome.isUntried;
  });
  if (!isLegal || !written.report)
    return std::nullopt;

  MemoryCurve curve;
  curve.file = written.report->file;
  curve.objective = written.report->plan.objective;
  curve.allowed = written.report->memory.allowed();
  if (unlimited.report)
    curve.unlimited = figuresOf(*unlimited.report);
  std::vector<int64_t> limits;
  if (least.report && curve.unlimited)
    limits = curveLimits(least.report->memory.peak, curve.unlimited->peak,
                         curve.allowed);
  llvm::erase(limits, curve.allowed);
  std::vector<Variant> variants;
  for (int64_t limit : limits)
    variants.push_back(withLimit(limit));
  curve.points.push_back({curve.allowed, figuresOf(*written.report)});
  for (auto [limit, plan] : llvm::zip_equal(limits, runner.plan(variants)))
    if (plan.report)
      curve.points.push_back({limit, figuresOf(*plan.report)});
  llvm::sort(curve.points,
             [](const auto &a, const auto &b) { return a.limit < b.limit; });
  curve.complete = runner.isComplete();
  makeMonotone(curve);
  return curve;
}
