//===- Exchange.h - What one plan does better than another ----*- C++ -*-===//
//
// Where two plans differ, linked nodes form parts. The cost of one part does
// not depend on which plan's labels the others have: each may come from the
// plan that does better there, as far as memory allows.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SOLVER_SEARCH_EXCHANGE_H
#define SHARDC_SOLVER_SEARCH_EXCHANGE_H

#include "State.h"

namespace shardc::solver::search {

/// The linked sets of nodes whose labels differ.
std::vector<std::vector<uint32_t>>
differingParts(const Graph &graph, const Labels &a, const Labels &b);

/// Takes over from `other` the parts by which `state` costs less and still
/// fits, those that gain most first; true if there was one.
bool takeBetterParts(const Graph &graph, State &state, const Labels &other);

} // namespace shardc::solver::search

#endif // SHARDC_SOLVER_SEARCH_EXCHANGE_H
