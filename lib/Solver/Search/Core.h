//===- Core.h - Exact solution of what contraction leaves -----*- C++ -*-===//

#ifndef SHARDC_SOLVER_SEARCH_CORE_H
#define SHARDC_SOLVER_SEARCH_CORE_H

#include "Graph.h"
#include "shardc/Solver/Solve.h"

namespace shardc::solver::search {

/// The live part of a network as a problem of its own, whose variables are the
/// graph's nodes. Costs are without the network's constant.
Problem coreProblem(const Network &network, const Graph &graph);

} // namespace shardc::solver::search

#endif // SHARDC_SOLVER_SEARCH_CORE_H
