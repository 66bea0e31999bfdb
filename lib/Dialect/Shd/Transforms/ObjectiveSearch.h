//===- ObjectiveSearch.h - Plans for times that are no sums ---*- C++ -*-===//
//
// `lower` is the largest of a few sums, device time and the time of each
// physical network; `scheduled` is at least that, and at least any chain of
// work that waits for each other. Any weighted mean of the sums is a sum, so
// the network with these weights has a least cost that bounds both from below,
// and the plans that reach it are worth a try (Lagrangian relaxation;
// docs/Optimizer.md#3-what-is-proven). Then limits on all sums together are
// met, which is a plan to try, or refuted, which is a bound; and what they
// cannot tell apart is parted.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_DIALECT_SHD_TRANSFORMS_OBJECTIVESEARCH_H
#define SHARDC_LIB_DIALECT_SHD_TRANSFORMS_OBJECTIVESEARCH_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "shardc/Optimizer/Options.h"
#include "shardc/Optimizer/TimeRows.h"
#include "shardc/Solver/Deadline.h"
#include "shardc/Solver/Solve.h"
#include <set>

namespace shardc::shd {

class ObjectiveSearch {
public:
  /// `network` minimises `upper` and has its resources measured.
  ObjectiveSearch(PlanningContext &context, ProgramOp program,
                  const PlanNetwork &network, Objective objective,
                  double maxWork, solver::Deadline deadline,
                  std::function<void(const solver::SearchProgress &)> progress)
      : context(context), program(program), network(network), times(network),
        objective(objective), maxWork(maxWork), deadline(deadline),
        progress(std::move(progress)) {}

  /// Table entries that may be looked at: a fixed number, so that results do
  /// not depend on the machine, and more if the user gives much time.
  static double workFor(std::optional<double> seconds);

  /// From a plan that fits: the best that is found, its time, and a bound.
  /// Assignments are of networks of any weights.
  solver::Solution run(const solver::Solution &first);

private:
  /// What a plan takes: device time, that of each physical network, and that of
  /// each chain.
  using Rows = std::vector<double>;
  struct Trial {
    std::vector<solver::Label> assignment;
    Rows rows;
    Picoseconds value = 0, upper = 0;
    /// What memory costs it, and how many bytes more it would take.
    Picoseconds memoryCosts = 0;
    int64_t missingBytes = 0;
  };

  /// Labels of which all better plans are made, and what these take at least.
  struct Region {
    solver::LabelSets labels;
    /// What better plans with each label take at least; none: not known.
    solver::LabelBounds labelBounds = {};
    solver::Cost bound = 0;
    /// Those of the bound, and how far from them better ones may be.
    Rows weights = {};
    double radius = 1;
    /// From the best plan to what the weights prove with which labels were last
    /// pruned.
    double gap = std::numeric_limits<double>::infinity();
  };
  /// Weights, and what the known plans take at least under them.
  struct Play {
    Rows weights;
    double mean = -1;
  };

  /// Weights that are solved for at most, rounds of play for each, and the part
  /// of all work that they leave.
  struct Effort {
    unsigned weights, plays;
    double leave;
  };
  static constexpr Effort kAllPlans = {12, 20000, 0.3},
                          kOneWeights = {1, 20000, 0},
                          kPartOfPlans = {2, 1000, 0};

  bool isKnown(const std::vector<solver::Label> &plan) const;
  void tryPlan(const std::vector<solver::Label> &assignment);
  void addTrial(mlir::ModuleOp module, std::vector<solver::Label> assignment);
  void addChains(const std::vector<solver::Label> &assignment, bool withLoads);
  void addLoads();
  const Trial &best() const;

  solver::Solution solveCounted(const PartialProblem &partial,
                                solver::Options &how);
  std::optional<solver::Solution> solve(PartialProblem &partial,
                                        double tolerance);
  void tell(const Region &region) const;
  void tryWithRoom(const Region &region);
  double gapOf(const Region &region) const;
  bool isNearlyClosed(const Region &region) const;
  void trySurrogates(const Region &region);
  RowWeights mixed(const solver::LabelSets &labels, double share) const;
  void tidyLast();
  solver::LabelSets labelsAround(const std::vector<solver::Label> &plan,
                                 const std::vector<bool> &touched) const;
  solver::LabelSets labelsBeside(solver::Variable variable,
                                 const std::vector<solver::Label> &plan) const;
  std::vector<bool> around(solver::Variable variable, unsigned reach) const;
  std::vector<solver::Variable> longestFirst(const Trial &plan) const;
  bool hasBetter(size_t known, const Trial &than) const;
  bool stepByWeights(const Trial &start, double leave);
  bool stepToLimit(const Trial &start, double leave);
  void improve(const Region &region, double work);
  void improveFirst(Region &region);
  bool improveAgain(const Region &region);
  std::optional<solver::Solution> solveAndTidy(PartialProblem &partial,
                                               double tolerance);

  RowWeights integral(const Rows &weights) const;
  Rows weightsOf(const Region &region) const;
  Play bestWeights(const Region &region, unsigned plays) const;
  Rows blended(Rows weights, double part) const;
  PartialProblem meanOf(const Region &region, const Rows &weights) const;
  void raiseBound(Region &region, const Rows &weights, double tolerance);
  void raiseBounds(Region &region, const Effort &effort);
  void prune(Region &region, const PartialProblem &partial, solver::Cost proven,
             const std::vector<double> &multipliers, double work);
  void boundLabels(Region &region, const PartialProblem &partial,
                   const std::vector<double> &multipliers, double work);

  solver::LabelSets labelsWithin(const Region &region, Picoseconds limit) const;
  solver::Solution findWithin(const Region &region, Picoseconds limit,
                              double work, std::vector<double> &prices);
  std::optional<Picoseconds> longestRow(const std::vector<solver::Label> &plan);
  void raiseByLongest(Region &region);
  bool narrow(Region &region);

  solver::Cost branch(Region root);
  std::optional<Region> takeHalf(Region &region) const;

  PlanningContext &context;
  ProgramOp program;
  /// Of `upper`; for `scheduled` with what its links take.
  const PlanNetwork &network;
  TimeRows times;
  Objective objective;
  double maxWork;
  solver::Deadline deadline;
  std::function<void(const solver::SearchProgress &)> progress;
  std::vector<Trial> trials;
  /// Values of those from which small steps were made.
  std::set<Picoseconds> improved;
  /// How many edges away steps to limits may change variables.
  unsigned reach = 3;
  /// The longest of the plans tried.
  std::vector<Chain> chains;
  bool hasLoads = false;
  /// Weights are integers that add up to this.
  int64_t unit = 1;
  /// Of memory and rows, at the last limit.
  std::vector<double> prices;
  /// Table entries that may still be looked at.
  double workLeft = 0;
  /// That one weighted mean took.
  double mostWork = 0;
};

} // namespace shardc::shd

#endif // SHARDC_LIB_DIALECT_SHD_TRANSFORMS_OBJECTIVESEARCH_H
