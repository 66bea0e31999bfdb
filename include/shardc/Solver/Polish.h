//===- Polish.h - Less memory at the same cost ----------------*- C++ -*-===//
//
// People expect, among assignments that cost the same, one that keeps nothing
// whole which may as well be sharded.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SOLVER_POLISH_H
#define SHARDC_SOLVER_POLISH_H

#include "shardc/Solver/Problem.h"

namespace shardc::solver {

/// Gives one variable after another another label that costs the same together
/// with its neighbours' and uses less memory (bytes times points), until no
/// such label is left. No point's usage rises above the peak.
void polish(const Problem &problem, std::vector<Label> &assignment);

/// The same, also of chains of neighbours at once: for the plan that is chosen.
void polishChains(const Problem &problem, std::vector<Label> &assignment);

} // namespace shardc::solver

#endif // SHARDC_SOLVER_POLISH_H
