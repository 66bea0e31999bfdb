//===- WeightBounds.h - Bounds by weighted means of rows ------*- C++ -*-===//
//
// Any weighted mean of the rows is a sum over the network and never above the
// largest row, so its least value bounds every plan from below (Lagrangian
// relaxation). Labels with which some mean must exceed the incumbent go.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_OPTIMIZER_SEARCH_WEIGHTBOUNDS_H
#define SHARDC_LIB_OPTIMIZER_SEARCH_WEIGHTBOUNDS_H

#include "DualGame.h"
#include "PlanSolver.h"

namespace shardc {

/// How long weights are looked for.
struct WeightEffort {
  /// Weights that are solved for at most, and rounds of the dual game for each.
  unsigned weights, rounds;
  /// The part of all work that they leave.
  double leave;
};

class WeightBounds {
public:
  explicit WeightBounds(PlanSolver &solver);

  /// Raises the region's bound by weights that the dual game finds, until that
  /// helps no more.
  void raiseMany(Region &region, const WeightEffort &effort);
  /// Raises it by the least mean under the region's own weights, solved to a
  /// small gap.
  void raiseByOwn(Region &region);
  /// Plans that traded one row for another may be forbidden by now: raises it
  /// by the longest row of the incumbent alone.
  void raiseByLongest(Region &region);

  /// Bounds labels by messages of the mean under these weights, and drops those
  /// that no better plan uses.
  void boundLabels(Region &region, const Rows &weights);

  /// The region's labels whose bounds are not above a limit.
  solver::LabelSets labelsWithin(const Region &region, Picoseconds limit) const;

  /// Weights near the region's under which its known plans bound best.
  DualGame bestWeights(const Region &region, unsigned rounds) const;
  /// The weights of the region's bound, in the rows that are known now; at
  /// first those of all resources alike.
  Rows weightsOf(const Region &region) const;
  /// Weights that bound known plans of these labels best, and `share` of
  /// `upper`: 1 is `upper` alone.
  RowWeights mixWithUpper(const solver::LabelSets &labels, double share) const;

  /// Integral weights of the network's problems: they add up to unit().
  RowWeights integral(const Rows &weights) const;
  int64_t unit() const { return parts; }

private:
  unsigned leastWeights() const;
  PartialProblem meanOf(const Region &region, const Rows &weights) const;
  void raise(Region &region, const Rows &weights, double tolerance);
  void prune(Region &region, const Rows &weights, const PartialProblem &mean,
             solver::Cost proven, const solver::Solution &solution);
  void boundLabels(Region &region, const Rows &weights,
                   const PartialProblem &mean,
                   const std::vector<double> &multipliers, double elimination);
  Rows blendResources(Rows weights, double part) const;

  PlanSolver &solver;
  int64_t parts;
};

/// As long as it pays for the whole search space, for a first bound, and for
/// each part that branching makes: these are many, and have fewer plans to play
/// with.
inline constexpr WeightEffort kAllWeights = {24, 20000, 0.3},
                              kFirstWeights = {1, 20000, 0},
                              kPartWeights = {2, 1000, 0};

} // namespace shardc

#endif // SHARDC_LIB_OPTIMIZER_SEARCH_WEIGHTBOUNDS_H
