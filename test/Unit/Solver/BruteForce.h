//===- BruteForce.h - Small random problems and their optimum -*- C++ -*-===//

#ifndef SHARDC_TEST_UNIT_SOLVER_BRUTEFORCE_H
#define SHARDC_TEST_UNIT_SOLVER_BRUTEFORCE_H

#include "shardc/Solver/Problem.h"
#include <random>

namespace shardc::solver::test {

/// Uniform integer in [low, high], the same on every platform.
inline int64_t uniform(std::mt19937_64 &random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % uint64_t(high - low + 1));
}

inline bool chance(std::mt19937_64 &random, int percent) {
  return uniform(random, 0, 99) < percent;
}

/// Sizes and features of random problems.
struct Shape {
  int64_t minVariables = 1, maxVariables = 6;
  int64_t maxDomain = 4;
  int64_t maxCost = 20;
  int64_t minCost = 0;
  int edgePercent = 50;
  int forbiddenPercent = 15;
  int64_t maxPoints = 5;
  bool memory = true;
};

inline Problem randomProblem(std::mt19937_64 &random, const Shape &shape) {
  Problem problem;
  problem.numPoints = shape.memory ? uniform(random, 1, shape.maxPoints) : 0;
  auto cost = [&] {
    return chance(random, shape.forbiddenPercent)
               ? kForbidden
               : uniform(random, shape.minCost, shape.maxCost);
  };
  auto interval = [&](uint32_t &begin, uint32_t &end) {
    begin = uniform(random, 0, problem.numPoints - 1);
    end = uniform(random, begin, problem.numPoints);
  };
  int64_t count = uniform(random, shape.minVariables, shape.maxVariables);
  for (int64_t v = 0; v < count; ++v) {
    VariableData variable;
    int64_t labels = uniform(random, 1, shape.maxDomain);
    bool usesMemory = shape.memory && chance(random, 70);
    for (int64_t l = 0; l < labels; ++l) {
      variable.costs.push_back(chance(random, 30) ? cost()
                                                  : uniform(random, 0, 3));
      if (!usesMemory)
        continue;
      std::vector<Usage> usages(uniform(random, 0, 2));
      for (Usage &usage : usages) {
        interval(usage.begin, usage.end);
        usage.bytes = uniform(random, 0, 6);
      }
      variable.usages.push_back(std::move(usages));
    }
    problem.variables.push_back(std::move(variable));
  }
  for (Variable a = 0; a < count; ++a)
    for (Variable b = 0; b < count; ++b) {
      // Half of all ordered pairs, so that parallel edges occur.
      if (a == b || !chance(random, shape.edgePercent / 2))
        continue;
      Table table;
      table.rows = problem.variables[a].costs.size();
      table.columns = problem.variables[b].costs.size();
      for (size_t i = 0; i < size_t(table.rows) * table.columns; ++i)
        table.costs.push_back(cost());
      problem.tables.push_back(std::move(table));
      problem.edges.push_back(
          {a, b, static_cast<TableId>(problem.tables.size() - 1)});
      if (!shape.memory || !chance(random, 30))
        continue;
      EdgeUsage usage;
      usage.edge = problem.edges.size() - 1;
      interval(usage.begin, usage.end);
      for (size_t i = 0; i < problem.tables.back().costs.size(); ++i)
        usage.bytes.push_back(chance(random, 50) ? 0 : uniform(random, 0, 4));
      problem.edgeUsages.push_back(std::move(usage));
    }
  if (!shape.memory)
    return problem;
  if (chance(random, 90))
    problem.capacity = uniform(random, 0, 3 * count);
  if (chance(random, 30))
    for (uint32_t t = 0; t < problem.numPoints; ++t)
      problem.fixedUsage.push_back(uniform(random, 0, 3));
  return problem;
}

struct Optimum {
  /// Nothing if no assignment is allowed and fits.
  std::optional<Cost> cost;
  /// Least peak among assignments without forbidden choices.
  std::optional<int64_t> leastPeak;
};

/// Calls with every assignment and what it comes to.
template <typename Call>
void eachAssignment(const Problem &problem, Call call) {
  std::vector<Label> labels(problem.variables.size(), 0);
  while (true) {
    call(labels, evaluate(problem, labels));
    size_t v = 0;
    for (; v < labels.size(); ++v) {
      if (++labels[v] < problem.variables[v].costs.size())
        break;
      labels[v] = 0;
    }
    if (v == labels.size())
      return;
  }
}

/// Tries every assignment.
inline Optimum bruteForce(const Problem &problem) {
  Optimum result;
  eachAssignment(problem, [&](const auto &, const Evaluation &now) {
    if (now.cost && now.fits && (!result.cost || *now.cost < *result.cost))
      result.cost = now.cost;
    if (now.cost && (!result.leastPeak || now.peak < *result.leastPeak))
      result.leastPeak = now.peak;
  });
  return result;
}

} // namespace shardc::solver::test

#endif // SHARDC_TEST_UNIT_SOLVER_BRUTEFORCE_H
