//===- Clique.h - Variables that are all linked to each other -*- C++ -*-===//

#ifndef SHARDC_TEST_UNIT_SOLVER_CLIQUE_H
#define SHARDC_TEST_UNIT_SOLVER_CLIQUE_H

#include "BruteForce.h"

namespace shardc::solver::test {

inline constexpr unsigned kCliqueVariables = 11, kCliqueLabels = 10;

/// Costs from the first to the last.
struct CostRange {
  Cost first, last;
};

/// Eleven variables of ten labels, each linked to all others: too many to
/// eliminate exactly. Returns the cost of label 0 of each.
inline Cost addClique(Problem &problem, CostRange variables, CostRange pairs) {
  std::mt19937_64 random(3);
  auto first = Variable(problem.variables.size());
  Cost sum = 0;
  for (Variable a = 0; a < kCliqueVariables; ++a) {
    VariableData &data = problem.variables.emplace_back();
    for (Label label = 0; label < kCliqueLabels; ++label)
      data.costs.push_back(uniform(random, variables.first, variables.last));
    sum += data.costs[0];
  }
  for (Variable a = 0; a < kCliqueVariables; ++a)
    for (Variable b = a + 1; b < kCliqueVariables; ++b) {
      problem.edges.push_back(
          {first + a, first + b, TableId(problem.tables.size())});
      Table &table = problem.tables.emplace_back();
      table.rows = table.columns = kCliqueLabels;
      for (unsigned i = 0; i < kCliqueLabels * kCliqueLabels; ++i)
        table.costs.push_back(uniform(random, pairs.first, pairs.last));
      sum += table.costs[0];
    }
  return sum;
}

} // namespace shardc::solver::test

#endif // SHARDC_TEST_UNIT_SOLVER_CLIQUE_H
