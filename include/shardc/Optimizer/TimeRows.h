//===- TimeRows.h - A network's times by resource -------------*- C++ -*-===//
//
// docs/CostModel.md#5-the-time-of-a-step: `lower` is the largest of the
// device's time and of each physical network's; `scheduled` is no less than
// these and than the length of each chain. All of them are sums over the
// network, so any weights make a problem of the same variables and labels, and
// a limit on all of them one with more points of memory.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_OPTIMIZER_TIMEROWS_H
#define SHARDC_OPTIMIZER_TIMEROWS_H

#include "shardc/Optimizer/Network.h"
#include "shardc/Solver/LabelBounds.h"

namespace shardc {

/// How much each row counts.
struct RowWeights : Weights {
  /// Weight of each physical network; empty: 0.
  llvm::SmallVector<int64_t, 4> networks = {};
  /// Links and loads of chains count this often.
  Chain chain = {};
};

/// Entries beyond these are forbidden.
struct RowLimits {
  /// Limit of the device's time, of each physical network's and of each chain.
  Picoseconds each = solver::kMaxTotal;
  /// Times of resources are limited as hidden collectives slow them down
  /// (Step::slowdown), those of chains without that.
  int64_t slowdown = 0;
  /// Limit of the weighted sum.
  solver::Cost weighed = solver::kMaxTotal;

  solver::Cost apply(solver::Cost cost) const {
    return cost > weighed ? solver::kForbidden : cost;
  }
};

/// A problem of some labels of a network.
struct PartialProblem {
  solver::Problem problem;
  /// The network's label of each label, ascending, by variable.
  std::vector<std::vector<solver::Label>> labels;
  /// Added to the costs, not above 0: a constant of chains.
  solver::Cost constant = 0;

  std::vector<solver::Label>
  expand(llvm::ArrayRef<solver::Label> assignment) const;
  /// Nothing if the assignment uses other labels.
  std::optional<std::vector<solver::Label>> restrict(
      llvm::ArrayRef<solver::Label> assignment) const;
  /// Raises bounds of the network's labels, none negative, to those of the
  /// problem's, which are in parts of so many.
  void raise(solver::LabelBounds &network, const solver::LabelBounds &bounds,
             int64_t parts) const;
};

class TimeRows {
public:
  /// The rows of `network`, which minimises `upper` and has its resources
  /// measured; it must outlive them.
  explicit TimeRows(const PlanNetwork &network);

  /// The problem of these weights with these labels.
  PartialProblem combine(const RowWeights &weights,
                         const solver::LabelSets &labels,
                         const RowLimits &limits) const;

  /// The same, where in addition neither a resource nor a chain may take more
  /// than `limits.each`: to the solver each is one more point of memory, after
  /// those of the network, and picoseconds are bytes.
  PartialProblem limitRows(const RowWeights &weights,
                           const solver::LabelSets &labels,
                           llvm::ArrayRef<Chain> chains,
                           const RowLimits &limits) const;

  solver::LabelSets allLabels() const;
  /// The device works alike whatever a variable is.
  bool isFree(solver::Variable variable) const;

  /// The plan's longest chain, of links alone, or with loads and then with each
  /// network; and what a plan takes on a chain.
  std::vector<Chain> longestChains(const ChainFinder &finder,
                                   llvm::ArrayRef<solver::Label> assignment,
                                   bool withLoads) const;
  solver::Cost lengthOf(const Chain &chain,
                        llvm::ArrayRef<solver::Label> assignment) const;

  /// By variable: how much its device time and its collectives differ between
  /// two assignments, those with its neighbours included.
  std::vector<double> differences(llvm::ArrayRef<solver::Label> a,
                                  llvm::ArrayRef<solver::Label> b) const;

  /// By variable: the collectives of an assignment that depend on it.
  std::vector<double>
  collectiveTimes(llvm::ArrayRef<solver::Label> assignment) const;

  /// How long each resource is busy under an assignment.
  std::vector<solver::Cost>
  busyTimes(llvm::ArrayRef<solver::Label> assignment) const;
  /// How long each resource is busy with a variable and its edges.
  std::vector<solver::Cost>
  busyTimes(solver::Variable variable,
            llvm::ArrayRef<solver::Label> assignment) const;

private:
  using Costs = std::vector<solver::Cost>;
  /// The terms of one variable or edge.
  struct Terms {
    llvm::ArrayRef<solver::Cost> allowed;
    llvm::SmallVector<std::pair<const Costs *, int64_t>, 6> weighted;
    llvm::SmallVector<const Costs *, 6> limited;

    solver::Cost at(size_t entry, const RowLimits &limits) const;
  };

  const ResourceTimes &device() const { return network->resources.front(); }
  llvm::ArrayRef<ResourceTimes> networks() const {
    return llvm::ArrayRef(network->resources).drop_front();
  }
  Terms termsOf(std::vector<Costs> ResourceTimes::*part, size_t index,
                const RowWeights &weights) const;
  Terms termsOfEdge(size_t index, const RowWeights &weights) const;
  /// Calls with each link of a chain that takes time, and with the cost of all
  /// of its runs by the time of one.
  using LinkCost = llvm::function_ref<solver::Cost(solver::Cost time)>;
  void forEachLink(
      const Chain &chain,
      llvm::function_ref<void(const LinkTime &, const LinkCost &)> call) const;
  llvm::ArrayRef<solver::Cost> edgeCosts(size_t edge) const;
  /// The cost of one edge; `costs` are a row's.
  solver::Cost edgeCost(const Costs &costs, size_t edge,
                        llvm::ArrayRef<solver::Label> assignment) const;
  /// The time of a variable or an edge in a row.
  using TimeOf = llvm::function_ref<solver::Cost(
      llvm::ArrayRef<solver::Label> assignment)>;
  /// Adds to each variable what is asked of its own time of a row, and of that
  /// of its edges.
  void addTimes(const ResourceTimes &row, std::vector<double> &times,
                llvm::function_ref<double(const TimeOf &)> of) const;
  solver::Cost loadOf(ChainLoad load,
                      llvm::ArrayRef<solver::Label> assignment) const;

  const PlanNetwork *network;
  ResourceTimes collectives;
  /// Of physical networks on which every edge takes as long, as where a mesh
  /// axis spans both, the first.
  std::vector<unsigned> networksOnce;
};

} // namespace shardc

#endif // SHARDC_OPTIMIZER_TIMEROWS_H
