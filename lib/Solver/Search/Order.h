//===- Order.h - A problem's variables in the order of time ---*- C++ -*-===//
//
// Message passing visits nodes in their order, and gets far where neighbours
// are near. Problems come from programs, so that the order of time is good, and
// it does not depend on how a file numbers its nodes.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SOLVER_SEARCH_ORDER_H
#define SHARDC_SOLVER_SEARCH_ORDER_H

#include "shardc/Solver/Problem.h"
#include "llvm/ADT/ArrayRef.h"

namespace shardc::solver::search {

/// The variables by the point at which each begins to use memory. One that does
/// from the start on, such as a parameter, comes before the first of its
/// neighbours; one that never does comes after the last.
std::vector<Variable> orderByTime(const Problem &problem);

/// The problem with variable order[i] as its i-th.
Problem reordered(const Problem &problem, llvm::ArrayRef<Variable> order);

} // namespace shardc::solver::search

#endif // SHARDC_SOLVER_SEARCH_ORDER_H
