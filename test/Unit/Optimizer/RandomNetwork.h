//===- RandomNetwork.h - Small networks without a program -----*- C++ -*-===//
//
// Random networks of few labels, and what their plans take, for tests of the
// search by brute force.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TEST_UNIT_OPTIMIZER_RANDOMNETWORK_H
#define SHARDC_TEST_UNIT_OPTIMIZER_RANDOMNETWORK_H

#include "shardc/Optimizer/ObjectiveSearch.h"

namespace shardc::test {

/// Six operations of three labels each on a device with two physical networks.
/// Operations take device time; edges between them occupy one network; some
/// edges' pairs are forbidden. Every second network has a memory limit.
class RandomNetwork {
public:
  /// `slowdown`: what hidden collectives cost compute (Step::slowdown).
  explicit RandomNetwork(uint64_t seed, int64_t slowdown = 0);

  const PlanNetwork &get() const { return network; }
  bool isPlan(llvm::ArrayRef<solver::Label> assignment) const;
  /// Every assignment that is allowed and fits.
  std::vector<std::vector<solver::Label>> plans() const;

  /// A schedule of the plan: `scheduled` is `lower`, or a part of the way from
  /// there to `upper` that no row knows.
  EvaluatedPlan schedule(llvm::ArrayRef<solver::Label> assignment) const;
  Picoseconds time(Objective objective,
                   llvm::ArrayRef<solver::Label> assignment) const;
  /// The least time of any plan.
  Picoseconds optimum(Objective objective) const;

private:
  PlanNetwork network;
  int64_t slowdown;
};

} // namespace shardc::test

#endif // SHARDC_TEST_UNIT_OPTIMIZER_RANDOMNETWORK_H
