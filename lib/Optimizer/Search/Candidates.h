//===- Candidates.h - Plans that a search has evaluated -------*- C++ -*-===//
//
// Every plan that was proposed, what it takes of each row, and the incumbent. A
// row is a sum over the network that no plan's time is below: the busy time of
// a resource, or the length of a chain. Chains are found as plans are: the
// longest of each plan becomes a row of all of them.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_OPTIMIZER_SEARCH_CANDIDATES_H
#define SHARDC_LIB_OPTIMIZER_SEARCH_CANDIDATES_H

#include "WorkBudget.h"
#include "shardc/Optimizer/TimeRows.h"
#include <deque>
#include <set>

namespace shardc {

/// By row, of resources first and then of chains: picoseconds or weights.
using Rows = std::vector<double>;

double weightedMean(llvm::ArrayRef<double> weights,
                    llvm::ArrayRef<double> rows);
/// Weighs nothing but the first of the longest rows.
Rows weighLongest(llvm::ArrayRef<double> rows);

struct Candidate {
  std::vector<solver::Label> assignment;
  Rows rows;
  /// The objective, and `upper`.
  Picoseconds value = 0, upper = 0;
  /// How much longer it takes because memory is not unlimited, and how many
  /// bytes more would change that.
  Picoseconds memoryCosts = 0;
  int64_t missingBytes = 0;

  Picoseconds longestRow() const;
};

class CandidatePool {
public:
  CandidatePool(const PlanNetwork &network, const TimeRows &times,
                const EvaluatePlan &evaluate,
                const ObjectiveSearchOptions &options, WorkBudget &work)
      : times(times), capacity(network.problem.capacity), evaluate(evaluate),
        options(options), work(work),
        finder(network.graph, network.linkEdges,
               {options.orders, options.matmulsOverlap}) {}

  /// The outcome of a proposed plan. References to candidates stay valid.
  struct Proposal {
    /// Null if the plan was refused.
    const Candidate *candidate = nullptr;
    /// It was evaluated now, not before.
    bool isNew = false;

    /// A plan was found that was not known and is faster.
    bool improvesOn(Picoseconds value) const {
      return isNew && candidate->value < value;
    }
  };
  /// Evaluates a plan of the network, unless that was done before.
  Proposal propose(const std::vector<solver::Label> &assignment);

  bool empty() const { return candidates.empty(); }
  /// In the order in which they were evaluated.
  const std::deque<Candidate> &all() const { return candidates; }
  /// Candidates that use only these labels.
  std::vector<const Candidate *> within(const solver::LabelSets &labels) const;
  /// The fastest; of equal ones that of the least `upper`, and of these the
  /// first.
  const Candidate &incumbent() const;

  size_t numResources() const {
    return candidates.front().rows.size() - rowsOfChains.size();
  }
  size_t numRows() const { return candidates.front().rows.size(); }
  /// The chains of the rows after the resources.
  llvm::ArrayRef<Chain> chains() const { return rowsOfChains; }

  /// From now on chains wait for what networks carry, too; mostly not at first,
  /// since each is a row for every network.
  void addNetworkWaits();
  bool hasNetworkWaits() const { return withNetworkWaits; }

private:
  const Candidate &add(std::vector<solver::Label> assignment,
                       const EvaluatedPlan &evaluated);
  double rowOf(const Candidate &candidate, Picoseconds time) const;
  void addChains(llvm::ArrayRef<solver::Label> assignment, bool withLoads);

  const TimeRows &times;
  std::optional<int64_t> capacity;
  const EvaluatePlan &evaluate;
  const ObjectiveSearchOptions &options;
  WorkBudget &work;
  ChainFinder finder;
  std::deque<Candidate> candidates;
  std::set<std::vector<solver::Label>> refused;
  std::vector<Chain> rowsOfChains;
  bool withNetworkWaits = false;
};

} // namespace shardc

#endif // SHARDC_LIB_OPTIMIZER_SEARCH_CANDIDATES_H
