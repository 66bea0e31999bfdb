//===- Starts.h - Assignments that a search begins from -------*- C++ -*-===//

#ifndef SHARDC_SOLVER_SEARCH_STARTS_H
#define SHARDC_SOLVER_SEARCH_STARTS_H

#include "Anneal.h"
#include "Ascent.h"

namespace shardc::solver::search {

/// An assignment, whatever memory it uses, and its cost with memory at prices.
struct Start {
  Labels labels;
  double priced = 0;
};

/// A decoding of the messages at the point's prices, or near them if these are
/// to be disturbed, improved by exact moves of forests.
Start makeStart(const Graph &graph, const Guide &guide, const DualPoint &point,
                bool disturbed, uint64_t seed);

/// The best `keep` that differ among `tries` starts, the first at the point's
/// prices and others near them.
std::vector<Start> makeStarts(const Graph &graph, const Guide &guide,
                              const DualPoint &point, unsigned tries,
                              unsigned keep, uint64_t seed,
                              const Deadline &stop);

/// Raises prices of rows where `walk` uses too much memory and sweeps, until
/// its assignment fits; false if it gave up. The guide's prices stay.
bool repair(const Graph &graph, const Guide &guide, Walk &walk, double bound,
            int64_t limit, const Deadline &stop);

} // namespace shardc::solver::search

#endif // SHARDC_SOLVER_SEARCH_STARTS_H
