//===- Contract.h - Shrinking a network without loss ----------*- C++ -*-===//
//
// Each step keeps at least one optimal assignment, in cost and in memory; most
// keep all of them: docs/Optimizer.md#4-how-it-is-solved, step 1.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SOLVER_CONTRACT_H
#define SHARDC_SOLVER_CONTRACT_H

#include "shardc/Solver/Deadline.h"
#include "shardc/Solver/Network.h"

namespace shardc::solver {

/// Which of the steps below.
enum class Steps {
  All,
  /// Dominated labels stay: to look for them takes longest.
  WithoutDominance,
  /// Every assignment that fits stays: no label goes because another is better.
  KeepingAll,
};

/// These steps until none applies, or the network is infeasible. What is left
/// is consistent: each label has an allowed partner on each link.
void contract(Network &network, const Deadline &deadline = {},
              Steps steps = Steps::All);

/// Subtracts what every label of a node uses from the slack, then drops rows
/// that cannot bind and rows where no more is used than at a neighbouring one.
void compressRows(Network &network);

/// Removes labels that alone exceed the slack somewhere; true if any went.
bool removeOversized(Network &network, std::vector<bool> &changed);

/// Removes labels of `node` without an allowed partner on some link.
bool makeConsistent(Network &network, Variable node);

/// Removes labels of `node` that another one replaces at no more cost, memory
/// and pair costs, whatever its neighbours choose.
bool removeDominated(Network &network, Variable node);

/// Takes out links whose costs are a sum of one term for each end.
bool removeSeparableLinks(Network &network, Variable node);

/// If each label of a neighbour allows exactly one label of `node`: carries
/// costs, memory and links of `node` over to that neighbour.
bool mergeFunctional(Network &network, Variable node);

/// Takes out a node without memory and with at most two neighbours, if its
/// neighbours' table stays small.
bool eliminateNode(Network &network, Variable node);

} // namespace shardc::solver

#endif // SHARDC_SOLVER_CONTRACT_H
