//===- Solve.cpp - Answers to problems of the contest ---------------------===//

#include "shardc/Contest/Solve.h"
#include "llvm/ADT/STLExtras.h"
#include <cassert>
#include <fmt/format.h>

namespace shardc::contest {

using namespace solver;

std::optional<std::string> checkSums(const Problem &problem) {
  // As Problem::check() has it for bytes; costs may sum to anything.
  constexpr Wide limit = std::numeric_limits<int64_t>::max() / 4;
  Wide sum = problem.capacity.value_or(0);
  for (const VariableData &variable : problem.variables) {
    int64_t most = 0;
    for (const std::vector<Usage> &usages : variable.usages)
      for (const Usage &usage : usages)
        most = std::max(most, usage.bytes);
    sum += most;
  }
  if (sum < limit)
    return std::nullopt;
  return fmt::format("the memory usages add up to too much: expected a sum "
                     "below {} with the limit, found {}",
                     limit, sum);
}

static Problem divideCosts(const Problem &problem, unsigned shift) {
  Problem result = problem;
  auto divide = [shift](std::vector<Cost> &costs) {
    for (Cost &cost : costs)
      if (cost < kForbidden)
        cost >>= shift;
  };
  for (VariableData &variable : result.variables)
    divide(variable.costs);
  for (Table &table : result.tables)
    divide(table.costs);
  return result;
}

double Answer::gap() const {
  if (!bound || cost == *bound || cost == 0)
    return 0;
  return double(cost - *bound) / double(cost);
}

Answer solve(const Problem &problem, const SearchOptions &options) {
  unsigned shift = 0;
  for (Wide sum = mostCost(problem);
       !fitsLargeSearch(sum >> shift, problem.edges.size());)
    ++shift;
  std::optional<Problem> divided;
  if (shift)
    divided = divideCosts(problem, shift);
  const Problem &searched = divided ? *divided : problem;

  SearchOptions scaled = options;
  if (options.progress)
    scaled.progress = [&, shift](SearchProgress progress) {
      for (std::optional<Cost> *value : {&progress.cost, &progress.bound})
        if (*value)
          **value <<= shift;
      options.progress(progress);
    };
  SearchResult solution = searchLarge(searched, scaled);

  Answer answer;
  answer.status = solution.status;
  answer.limit = problem.capacity.value_or(0);
  if (solution.hasBound)
    answer.bound = Wide(solution.bound) << shift;
  if (solution.assignment.empty())
    return answer;
  // Memory is the same in both; costs may be too large for an evaluation.
  Evaluation evaluation = evaluate(searched, solution.assignment);
  std::optional<Wide> cost = totalCost(problem, solution.assignment);
  assert(cost && evaluation.fits && "the search returned what is not allowed");
  answer.choices = std::move(solution.assignment);
  answer.cost = *cost;
  answer.peak = evaluation.peak;
  answer.status = answer.bound && *answer.bound >= *cost ? Status::Optimal
                                                         : Status::Feasible;
  return answer;
}

} // namespace shardc::contest
